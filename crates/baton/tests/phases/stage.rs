//! A fleet, a receiver, an operator's directory and a repository, as `examples/phases/README.md` tells to start them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use baton_rules::{Rule, WITHOUT};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::history::{History, Recorder, api};
use crate::process::{LOOK_EVERY, Outcome, Running, baton, client, run};

/// Nothing that is awaited takes this long, even on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(600);

/// What an example needs.
pub(crate) struct Needs {
    /// Its file.
    pub(crate) file: &'static str,
    /// Its set.
    pub(crate) set: &'static str,
    /// As `--cluster` takes them.
    pub(crate) clusters: Vec<String>,
    /// Hosts that its hooks call.
    pub(crate) hosts: Vec<String>,
    /// What the receiver is told to answer.
    pub(crate) answers: &'static [&'static str],
}

/// How the controller is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Usual,
    /// It does not know the receiver's authority.
    Distrusting,
    /// It has forgotten that phases hold anybody.
    Careless,
}

/// A call, as the receiver tells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: std::collections::BTreeMap<String, String>,
    pub(crate) body: String,
    pub(crate) tls: Value,
    pub(crate) status: u16,
    came_at: String,
    answered_at: String,
}

/// All of it, running.
pub(crate) struct Stage {
    home: TempDir,
    receiver: Running,
    _up: Running,
    client: Client,
    recorder: Recorder,
    needs: Needs,
}

// === impl Call ===

impl Call {
    /// Where the control plane was when it came, and when it was answered.
    pub(crate) fn span(&self) -> (u64, u64) {
        let number = |text: &str| text.parse().expect("a resourceVersion");
        (number(&self.came_at), number(&self.answered_at))
    }

    pub(crate) fn url(&self) -> String {
        format!("{} https://{}{}", self.method, self.host, self.path)
    }
}

// === impl Stage ===

impl Stage {
    pub(crate) async fn start(needs: Needs) -> Stage {
        Stage::with(needs, Manner::Usual).await
    }

    pub(crate) async fn with(needs: Needs, manner: Manner) -> Stage {
        let home = tempfile::tempdir().expect("a directory");
        // Commands of a root's controller run as somebody else.
        open_to_all(home.path());
        copy(&examples().join("commands"), &home.path().join("hooks"));
        copy(&examples().join("app"), &home.path().join("app"));
        git(&home.path().join("app"), &["init", "-q", "-b", "main"]);
        let path = |name: &str| home.path().join(name).to_str().expect("UTF-8").to_owned();
        commit(&home.path().join("app"));

        let (authority, kubeconfig) = (path("ca.pem"), path("up/kubeconfig"));
        let mut arguments = vec!["dev", "hook-receiver", "-o", "json", "--listen", "127.0.0.1:0"];
        arguments.extend(["--write-ca", &authority, "--kubeconfig", &kubeconfig]);
        needs.hosts.iter().for_each(|host| arguments.extend(["--host", host]));
        needs.answers.iter().for_each(|answer| arguments.extend(["--answer", answer]));
        let mut receiver = Running::start(arguments);
        let told: Value = serde_json::from_str(&receiver.line_with("listening")).expect("JSON");
        let options = told["options"].as_str().expect("options");
        let options = options.split(' ').map(str::to_owned).collect::<Vec<_>>();

        let repository = format!("https://github.com/example/app={}", path("app"));
        let (data, hooks) = (path("up"), path("hooks"));
        let mut arguments = vec!["up", "--ephemeral", "--no-demo", "--ready-delay", "50ms"];
        arguments.extend(["--data-dir", &data, "--listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        arguments.extend(["--repo", &repository, "--hooks-dir", &hooks]);
        // Where the kernel can hold commands it does; this is for machines where it cannot.
        arguments.push("--hooks-allow-unsandboxed");
        needs.clusters.iter().for_each(|cluster| arguments.extend(["--cluster", cluster]));
        let known = options.iter().map(String::as_str);
        // The authority is the first of them.
        arguments.extend(known.skip(if manner == Manner::Distrusting { 2 } else { 0 }));
        let mut command = baton();
        command.args(arguments);
        if manner == Manner::Careless {
            command.env(WITHOUT, format!("{:?}", Rule::PhasesAreGated));
        }
        let mut up = Running::of(command);
        up.line_with("Ctrl-C");
        let client = client(&home.path().join("up/kubeconfig")).await;
        let recorder = Recorder::start(&client).await;
        Stage { home, receiver, _up: up, client, recorder, needs }
    }

    /// Names of the members.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = String> {
        self.needs.clusters.iter().map(|cluster| cluster.split(',').next().unwrap_or_default().to_owned())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Applies the example.
    pub(crate) fn apply(&self) {
        self.kubectl(&["apply", "-f", examples().join(self.needs.file).to_str().expect("UTF-8")]);
    }

    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.path("up/kubeconfig"))
            .args(arguments)
            .env("HOME", self.home.path())
            .output()
            .expect("kubectl runs");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the repository's last commit is.
    pub(crate) fn head(&self) -> String {
        git(&self.path("app"), &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Commits another colour, and has git looked at, as a webhook would.
    pub(crate) async fn push(&self, colour: &str) {
        for file in ["app/manifests/web.yaml", "app/k8s/web.yaml"] {
            let text = fs::read_to_string(self.path(file)).expect("a file");
            let lines = text.lines().map(|line| match line.starts_with("  colour:") {
                true => format!("  colour: {colour}\n"),
                false => format!("{line}\n"),
            });
            fs::write(self.path(file), lines.collect::<String>()).expect("a file");
        }
        commit(&self.path("app"));
        let patch =
            json!({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}});
        let sets = api(&self.client, "ApplicationSet");
        sets.patch(self.needs.set, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the set");
    }

    pub(crate) async fn set(&self) -> Value {
        let set = api(&self.client, "ApplicationSet").get(self.needs.set).await.expect("the set");
        serde_json::to_value(set).expect("JSON")
    }

    /// The phased deployment of the only generator.
    pub(crate) async fn phases(&self) -> Value {
        self.set().await["status"]["phases"][0].clone()
    }

    /// Looks at the phased deployment until it is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let phases = self.phases().await;
            if is_so(&phases) {
                return phases;
            }
            assert!(
                Instant::now() < deadline,
                "waited in vain until {what}: {:#}",
                self.set().await["status"]
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The phase waits; then a person ends the wait.
    pub(crate) async fn advance(&self, phase: usize, rollout: &str) {
        self.until(&format!("phase {phase} waits"), |phases| {
            phases["rolloutID"] != rollout && phases["phases"][phase]["state"] == "Waiting"
        })
        .await;
        let outcome = self.baton(&["appset", "advance", self.needs.set]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }

    /// Another rollout than this one has come to its end.
    pub(crate) async fn complete(&self, rollout: &str) -> Value {
        self.until("all phases are complete", |phases| {
            phases["rolloutID"] != rollout && phases["state"] == "Complete"
        })
        .await
    }

    pub(crate) fn baton(&self, arguments: &[&str]) -> Outcome {
        let kubeconfig = self.path("up/kubeconfig");
        run(arguments.iter().copied().chain(["--kubeconfig", kubeconfig.to_str().expect("UTF-8")]))
    }

    pub(crate) async fn applications(&self) -> Vec<String> {
        let list = api(&self.client, "Application").list(&Default::default()).await.expect("a list");
        list.iter().map(ResourceExt::name_any).collect()
    }

    /// The clusters on which the example's ConfigMap has a colour: what is deployed, whatever anybody says of it.
    pub(crate) async fn coloured(&self, colour: &str) -> Vec<String> {
        let mut found = Vec::new();
        for name in self.clusters() {
            let member = client(&self.path(&format!("up/clusters/{name}.kubeconfig"))).await;
            let maps = Api::<ConfigMap>::all(member).list(&Default::default()).await.expect("a list");
            let has = |map: &ConfigMap| {
                map.data.as_ref().and_then(|data| data.get("colour")).is_some_and(|found| found == colour)
            };
            if maps.iter().any(has) {
                found.push(name);
            }
        }
        found
    }

    pub(crate) async fn history(&self) -> History {
        self.recorder.up_to_now().await
    }

    /// Ends everything, and gives what was written and what was called.
    pub(crate) async fn end(self) -> (History, Vec<Call>) {
        let history = self.history().await;
        let outcome = self.receiver.terminate();
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let calls = outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("a call"));
        (history, calls.collect())
    }
}

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/phases")
}

fn commit(directory: &Path) {
    git(directory, &["add", "-A"]);
    let author = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    git(directory, &[&author[..], &["commit", "-qm", "change"]].concat());
}

#[track_caller]
fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Copies a directory; programs stay programs.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    open_to_all(to);
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

pub(crate) fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}
