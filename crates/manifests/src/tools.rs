//! Runs Kustomize and Helm: without this process's environment, with a home of their own, without network unless it is
//! needed, within limits.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_process::{Bounds, Failure, Invocation, Refusal, Runner};
use tokio::sync::OnceCell;

use crate::error::Fault;
use crate::settings::Limits;
use crate::workshop::Workshop;

/// Most of a complaint that is shown.
const MAX_COMPLAINT: usize = 8 << 10;

/// Variables of this process that tools may see: where programs and the machine's certificates are.
const INHERITED: [&str; 3] = ["PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The same, and how to get out, for those that may use the network.
const INHERITED_WITH_NETWORK: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"];

/// How to take the network away.
const WITHOUT_NETWORK: [&str; 4] = ["unshare", "--map-root-user", "--net", "--"];

/// Runs tools, so many at once.
#[derive(Debug)]
pub(crate) struct Tools {
    runner: Runner,
    time: Duration,
    output: usize,
    disk: u64,
    /// Whether this machine lets us take the network from a process.
    can_isolate: OnceCell<bool>,
}

/// One run of a tool.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The program, as found.
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether it may use the network.
    pub(crate) network: bool,
    /// How messages name it.
    pub(crate) shown: String,
}

impl Tools {
    pub(crate) fn new(limits: &Limits) -> Tools {
        Tools {
            runner: Runner::new(limits.tools),
            time: limits.tool_time,
            output: limits.tool_output,
            disk: limits.tree_bytes,
            can_isolate: OnceCell::new(),
        }
    }

    /// Runs a tool in a workshop and gives what it prints.
    pub(crate) async fn run(&self, workshop: &Workshop, job: Job<'_>) -> Result<String, Fault> {
        let mut words: Vec<OsString> = Vec::new();
        if !job.network && self.can_isolate(workshop).await {
            words.extend(WITHOUT_NETWORK.map(OsString::from));
        }
        words.push(job.program.as_os_str().to_owned());
        words.extend(job.arguments);
        let mut environment = self.environment(workshop, job.network);
        environment.extend(job.environment);
        let invocation = Invocation {
            program: PathBuf::from(words.remove(0)),
            arguments: words,
            directory: job.directory,
            environment,
            input: Vec::new(),
            bounds: Bounds {
                growth: Some((workshop.path().join("home"), self.disk)),
                ..self.bounds(self.time)
            },
        };
        let failed = |complaint: String| Fault::Tool { command: job.shown.clone(), complaint };
        match self.runner.output(invocation, self.output).await {
            Ok(output) => Ok(String::from_utf8_lossy(&output).into_owned()),
            Err(Failure::Exit(complaint)) => Err(failed(presentable(&workshop.without_paths(&complaint)))),
            Err(Failure::Late(after) | Failure::Silent(after)) => {
                Err(failed(format!("it was given up after {after:?}")))
            }
            Err(Failure::Refused(Refusal::Limit(why) | Refusal::Content(why))) => Err(failed(why)),
            Err(Failure::Refused(Refusal::Large { bytes, .. }) | Failure::Grown(bytes)) => {
                Err(failed(format!("it needs more than {bytes} bytes of disk")))
            }
            Err(Failure::Io(error) | Failure::Refused(Refusal::Io(error))) => {
                Err(Fault::Machine(format!("`{}` cannot be run: {error}", job.shown)))
            }
            Err(Failure::Abandoned) => Err(Fault::Machine("the rendering was given up".to_owned())),
        }
    }

    fn environment(&self, workshop: &Workshop, network: bool) -> Vec<(OsString, OsString)> {
        let path = |name: &str| workshop.path().join(name).into_os_string();
        let names = INHERITED.iter().chain(INHERITED_WITH_NETWORK.iter().filter(|_| network));
        let inherited = names.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let own = [
            ("HOME", path("home")),
            ("TMPDIR", path("home/tmp")),
            ("XDG_CONFIG_HOME", path("home/config")),
            ("XDG_CACHE_HOME", path("home/cache")),
            ("XDG_DATA_HOME", path("home/data")),
            ("LC_ALL", "C.UTF-8".into()),
            ("KUBECONFIG", "/dev/null".into()),
            // For remote bases, which Kustomize fetches by git.
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_ALLOW_PROTOCOL", "https".into()),
        ];
        inherited.chain(own.map(|(name, value)| (name.into(), value))).collect()
    }

    fn bounds(&self, time: Duration) -> Bounds {
        Bounds { total: time, silence: time, growth: None }
    }

    /// Whether a process can be run without network. Where the kernel or the container does not let us, tools are run
    /// as they are: what they would fetch has been looked for before.
    async fn can_isolate(&self, workshop: &Workshop) -> bool {
        let tried = self.can_isolate.get_or_init(|| async {
            let [program, arguments @ ..] = WITHOUT_NETWORK;
            let invocation = Invocation {
                program: program.into(),
                arguments: arguments.iter().chain(&["true"]).map(OsString::from).collect(),
                directory: workshop.path().to_owned(),
                environment: self.environment(workshop, false),
                input: Vec::new(),
                bounds: self.bounds(Duration::from_secs(10)),
            };
            let can = self.runner.output(invocation, 1000).await.is_ok();
            if !can {
                tracing::warn!("the network cannot be taken from Kustomize and Helm on this machine");
            }
            can
        });
        *tried.await
    }
}

/// Where a program is: its path as given, or as found in `PATH`.
pub(crate) fn find(program: &Path) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.components().count() > 1 {
        let path = std::path::absolute(program).ok()?;
        return is_program(&path).then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(|path| is_program(path))
}

/// The error for a program that is not there.
pub(crate) fn missing(program: &Path, remedy: &'static str) -> Fault {
    Fault::Missing {
        program: program.to_string_lossy().into_owned(),
        why: "there is no such program".to_owned(),
        remedy,
    }
}

/// Arguments of different kinds in one list.
pub(crate) fn words<const N: usize>(words: [&dyn AsRef<OsStr>; N]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// A line without what kubectl's log puts before it: time and process would make each complaint a new one.
fn without_log_header(line: &str) -> &str {
    let is_header = |header: &str| {
        let mut letters = header.bytes();
        letters.next().is_some_and(|level| b"IWEF".contains(&level))
            && letters.by_ref().take(4).filter(u8::is_ascii_digit).count() == 4
            && letters.next() == Some(b' ')
    };
    match line.split_once("] ") {
        Some((header, rest)) if is_header(header) => rest,
        _ => line,
    }
}

/// The end of a complaint, where the reason stands.
fn presentable(complaint: &str) -> String {
    let complaint: Vec<&str> = complaint.lines().map(without_log_header).collect();
    let complaint = complaint.join("\n");
    let complaint = complaint.trim();
    let begin = complaint.len().saturating_sub(MAX_COMPLAINT);
    let begin =
        (begin..complaint.len()).find(|at| complaint.is_char_boundary(*at)).unwrap_or(complaint.len());
    let shown: String =
        complaint[begin..].chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect();
    if shown.is_empty() { "it gave no reason".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::presentable;

    #[test]
    fn a_complaint_is_the_same_each_time() {
        let complaint = "E1115 12:18:20.355826   30385 run.go:72] \"command failed\" err=x\nerror: [a] b\n";
        assert_eq!(presentable(complaint), "\"command failed\" err=x\nerror: [a] b");
        assert_eq!(presentable("Each] one"), "Each] one");
    }
}
