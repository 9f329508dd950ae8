//! Runs `git` without the machine's configuration.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) use baton_process::{Bounds, Failure, Refusal, directory_size};

/// Variables of this process that `git` and its transports may see: where programs, temporary files and the
/// machine's certificates are.
const INHERITED: [&str; 5] = ["PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"];

/// How `git` runs, whatever is asked of it.
const FIXED_ENVIRONMENT: [(&str, &str); 9] = [
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

/// Settings no repository, machine or user may change.
const FIXED_CONFIG: [(&str, &str); 12] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("safe.directory", "*"),
    ("credential.helper", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.version", "2"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("fetch.unpackLimit", "1"),
    ("advice.detachedHead", "false"),
    ("core.askPass", ""),
];

/// One run of `git`.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) arguments: Vec<OsString>,
    /// The directory it runs in.
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) config: Vec<(String, String)>,
    pub(crate) input: Vec<u8>,
    pub(crate) bounds: Bounds,
    /// The protocols it may speak, joined by colons.
    pub(crate) protocols: &'static str,
}

impl Invocation {
    /// A run that speaks to nobody.
    pub(crate) fn offline<A: Into<OsString>>(
        directory: &Path,
        bounds: Bounds,
        arguments: impl IntoIterator<Item = A>,
    ) -> Invocation {
        Invocation {
            arguments: arguments.into_iter().map(Into::into).collect(),
            directory: directory.to_owned(),
            environment: Vec::new(),
            config: Vec::new(),
            input: Vec::new(),
            bounds,
            protocols: "none",
        }
    }
}

/// Runs `git`, so many at once.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    program: PathBuf,
    processes: baton_process::Runner,
}

impl Runner {
    pub(crate) fn new(program: PathBuf, processes: usize) -> Runner {
        Runner { program, processes: baton_process::Runner::new(processes) }
    }

    /// Runs `git`, giving its output to `reader`. It is killed when the returned future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        invocation: Invocation,
        reader: impl FnOnce(&mut dyn Read) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        self.processes.run(invocation.of(&self.program), reader).await
    }

    /// Runs `git` and gives all it prints, up to `most` bytes.
    pub(crate) async fn output(&self, invocation: Invocation, most: usize) -> Result<Vec<u8>, Failure> {
        self.processes.output(invocation.of(&self.program), most).await
    }
}

impl Invocation {
    fn of(self, program: &Path) -> baton_process::Invocation {
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        let inherited = INHERITED.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        environment.extend(inherited);
        let mut set = |name: &str, value: &str| environment.push((name.into(), value.into()));
        for (name, value) in FIXED_ENVIRONMENT {
            set(name, value);
        }
        set("GIT_ALLOW_PROTOCOL", self.protocols);
        for (name, value) in &self.environment {
            set(name, value);
        }
        let own = self.config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut count = 0;
        for (key, value) in FIXED_CONFIG.into_iter().chain(own) {
            set(&format!("GIT_CONFIG_KEY_{count}"), key);
            set(&format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        set("GIT_CONFIG_COUNT", &count.to_string());
        baton_process::Invocation {
            program: program.to_owned(),
            arguments: self.arguments,
            directory: self.directory,
            environment,
            input: self.input,
            bounds: self.bounds,
        }
    }
}
