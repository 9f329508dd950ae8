//! What the tests share.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use baton_api::phases::{Check, Hook};
use baton_hooks::{
    AllowList, Call, Fault, Language, Namespace, Occasion, Outcome, Policy, Role, Runner, Secret, Secrets,
    SetName, Settings, prepare_check, prepare_hook,
};
use baton_template::Map;
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Settings under which the loopback interface may be called, in the clear.
pub(crate) fn local() -> Settings {
    Settings {
        allow: AllowList::parse(["127.0.0.0/8"]).expect("a good entry"),
        allow_http: true,
        ..Settings::default()
    }
}

pub(crate) fn set() -> SetName {
    SetName { namespace: "argocd".into(), name: "web".into() }
}

pub(crate) fn secrets() -> Secrets {
    let keys = [("token".to_owned(), Secret::new("hunter2-and-more"))];
    Secrets::from([("servicenow".to_owned(), keys.into())])
}

/// Fills in a hook from its JSON.
pub(crate) fn hook(settings: &Settings, role: Role, hook: Value) -> Result<Call, Fault> {
    let hook: Hook = serde_json::from_value(hook).expect("the JSON of a hook");
    let policy = Policy::new(settings, Namespace::ControlPlane, Language::Params);
    prepare_hook(&hook, role, &occasion(&set(), &secrets(), &params()), &policy)
}

pub(crate) fn check(settings: &Settings, check: Value) -> Result<Call, Fault> {
    let check: Check = serde_json::from_value(check).expect("the JSON of a check");
    let policy = Policy::new(settings, Namespace::ControlPlane, Language::Params);
    prepare_check(&check, &occasion(&set(), &secrets(), &params()), &policy)
}

fn params() -> Map {
    Map::strings([("name", "eu-1"), ("crooked", "a\r\nx-injected: yes"), ("inward", "169.254.169.254")])
}

fn occasion<'a>(set: &'a SetName, secrets: &'a Secrets, params: &'a Map) -> Occasion<'a> {
    let now = Timestamp::UNIX_EPOCH;
    Occasion {
        set,
        phase: "canary",
        params,
        secrets,
        now,
        attempt: 2,
        idempotency_key: "run-7/canary/notify",
    }
}

pub(crate) async fn run(settings: Settings, call: &Call) -> Outcome {
    let runner = Runner::new(settings).expect("the settings are good");
    runner.run(call, Timestamp::UNIX_EPOCH, &CancellationToken::new()).await
}

/// An operator's directory with the villain in it, and a place for temporary files, in a directory of its own.
pub(crate) struct Operator {
    place: tempfile::TempDir,
}

impl Operator {
    pub(crate) fn new() -> Operator {
        let operator = Operator { place: tempfile::tempdir().expect("a directory can be made") };
        open_to_all(operator.place.path());
        for directory in [operator.directory(), operator.scratch()] {
            fs::create_dir(&directory).expect("a directory can be made");
            open_to_all(&directory);
        }
        let villain = operator.directory().join("villain");
        fs::copy(env!("CARGO_BIN_EXE_baton-hooks-villain"), &villain).expect("the villain can be copied");
        open_to_all(&villain);
        operator
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.path("hooks")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    /// A program in the directory.
    pub(crate) fn script(&self, name: &str, text: &str) {
        let path = self.directory().join(name);
        fs::write(&path, text).expect("a file can be written");
        open_to_all(&path);
    }

    /// A file beside the directory that only this user may read.
    pub(crate) fn private(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file can be written");
        path.to_str().expect("paths are UTF-8").to_owned()
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            directory: Some(self.directory()),
            scratch: Some(self.scratch()),
            entry: env!("CARGO_BIN_EXE_baton-hooks-sandbox").into(),
            ..local()
        }
    }

    /// The same, with commands run as the user of the tests: only the sandbox stands between them and its files.
    pub(crate) fn as_this_user(&self) -> Settings {
        let user = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Settings { command_user: user, ..self.settings() }
    }

    /// Whether nothing is left of temporary files.
    pub(crate) fn is_clean(&self) -> bool {
        fs::read_dir(self.scratch()).expect("it can be read").next().is_none()
    }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode can be changed");
}

/// A hook that runs the villain with these arguments.
pub(crate) fn villain(settings: &Settings, arguments: &[&str]) -> Call {
    let command: Vec<&str> = ["villain"].iter().chain(arguments).copied().collect();
    let call = serde_json::json!({"name": "bad", "type": "command", "command": {"command": command}});
    hook(settings, Role::PreHook, call).expect("the hook is good")
}

/// A word that no other process has on its command line.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("marker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes with a word on their command line.
pub(crate) fn processes_with(marker: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split('\0').any(|word| word == marker)).collect()
}

/// Tests of the sandbox prove nothing on a kernel without it, and must not look as if they did. Who knows that and
/// wants the rest says so in the environment.
pub(crate) fn kernel_holds_commands() -> bool {
    let Some(missing) = Settings::default().support.missing() else { return true };
    let allowed = std::env::var_os("BATON_TEST_WITHOUT_SANDBOX").is_some();
    assert!(
        allowed,
        "NOT PROVED: this kernel has no {missing}; BATON_TEST_WITHOUT_SANDBOX=1 leaves these tests out"
    );
    eprintln!("NOT PROVED: this kernel has no {missing}");
    false
}
