//! An API that enforces rights, what `baton install` prints applied to it, and the controllers with the rights of their accounts.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{LOOK_EVERY, Outcome, Running, baton, client, run};

/// Nothing that is awaited takes this long, even on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// Argo CD's namespace, and that of what is deployed.
pub(crate) const NAMESPACE: &str = "argocd";

pub(crate) struct Cluster {
    home: TempDir,
    _api: Running,
    runtime: Runtime,
    client: Client,
}

impl Cluster {
    /// An API without anything of ours.
    pub(crate) fn start() -> Cluster {
        let home = tempfile::tempdir().expect("a directory");
        let data = home.path().join("api");
        let mut api = Running::start([
            "apiserver",
            "--ephemeral",
            "--authorization-mode",
            "rbac",
            "--listen",
            "127.0.0.1:0",
            "--ready-delay",
            "50ms",
            "--data-dir",
            data.to_str().expect("UTF-8"),
        ]);
        api.line_with("kubeconfig");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let client = runtime.block_on(client(&data.join("kubeconfig")));
        Cluster { home, _api: api, runtime, client }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path("api/kubeconfig")
    }

    /// What kubectl says with a kubeconfig and something on its standard input.
    pub(crate) fn kubectl_as(&self, kubeconfig: &Path, arguments: &[&str], input: &str) -> Outcome {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(arguments)
            .env("HOME", self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        // It may say something before it has read everything.
        let writing = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().expect("kubectl ends");
        writing.join().expect("a writer does not panic");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The owner's kubectl; it succeeds.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl_with(arguments, "")
    }

    #[track_caller]
    pub(crate) fn kubectl_with(&self, arguments: &[&str], input: &str) -> String {
        let outcome = self.kubectl_as(&self.kubeconfig(), arguments, input);
        assert_eq!(outcome.code, Some(0), "kubectl {arguments:?}: {}", outcome.stderr);
        outcome.stdout
    }

    /// Applies what a command prints.
    #[track_caller]
    pub(crate) fn apply_printed(&self, arguments: &[&str]) -> String {
        let printed = run(arguments);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        self.kubectl_with(&["apply", "--server-side", "-f", "-"], &printed.stdout)
    }

    #[track_caller]
    pub(crate) fn apply(&self, object: &Value) {
        self.kubectl_with(&["apply", "-f", "-"], &object.to_string());
    }

    #[track_caller]
    pub(crate) fn object(&self, kind: &str, name: &str) -> Value {
        let text = self.kubectl(&["get", kind, name, "-n", NAMESPACE, "-o", "json"]);
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let (group, version, kind) = match kind {
            "application" => ("argoproj.io", "v1alpha1", "Application"),
            "applicationset" => ("argoproj.io", "v1alpha1", "ApplicationSet"),
            "lease" => ("coordination.k8s.io", "v1", "Lease"),
            "configmap" => ("", "v1", "ConfigMap"),
            other => panic!("nobody looks for a {other}"),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), NAMESPACE, &resource);
        let found = self.runtime.block_on(api.get_opt(name)).expect("an answer");
        found.map(|object| serde_json::to_value(object).expect("JSON"))
    }

    /// Looks until there is an answer.
    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            if Instant::now() > deadline {
                let all =
                    self.kubectl(&["get", "applications,applicationsets", "-n", NAMESPACE, "-o", "yaml"]);
                panic!("waited in vain until {what}:\n{all}");
            }
            thread::sleep(10 * LOOK_EVERY);
        }
    }

    /// A kubeconfig of a service account: the owner's, with a token in the place of the certificate.
    pub(crate) fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let token = self.kubectl(&["create", "token", account, "-n", NAMESPACE]);
        let text = fs::read_to_string(self.kubeconfig()).expect("a kubeconfig");
        let mut config = baton_grammar::yaml::first(&text).expect("YAML");
        config["users"][0]["user"] = json!({"token": token.trim()});
        let path = self.path(&format!("{account}.kubeconfig"));
        fs::write(&path, config.to_string()).expect("a file");
        path
    }

    /// Starts what a Deployment would, as its account: its own command line, but for where it listens and keeps things.
    pub(crate) fn start_component(&self, name: &str) -> Running {
        let deployment = self.object("deployment", name);
        let pod = &deployment["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().expect("an account");
        let container = &pod["containers"][0];
        let settings = self.find("configmap", "argocd-cmd-params-cm").unwrap_or_default();
        let mut command = baton();
        for argument in container["args"].as_array().expect("a command line") {
            let argument = argument.as_str().expect("a text");
            match argument.split_once('=') {
                Some(("--cache-dir", _)) => {
                    command.arg("--cache-dir").arg(self.path(&format!("cache-{name}")));
                }
                Some((flag, address)) if flag.ends_with("-listen") && address.contains(':') => {
                    command.args([flag, "127.0.0.1:0"]);
                }
                _ => drop(command.arg(argument)),
            }
        }
        for variable in container["env"].as_array().expect("variables") {
            let name = variable["name"].as_str().expect("a name");
            let key = variable["valueFrom"]["configMapKeyRef"]["key"].as_str().unwrap_or_default();
            let value = variable["value"].as_str().or_else(|| settings["data"][key].as_str());
            // The tests have a home of their own.
            if let Some(value) = value.filter(|_| name != "HOME") {
                command.env(name, value);
            }
        }
        command.arg("--kubeconfig").arg(self.kubeconfig_of(account)).arg("--allow-local-repos");
        // Each looks at git on its own.
        command.env("ARGOCD_RECONCILIATION_TIMEOUT", "2s");
        command.env("ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER", "2s");
        Running::of(command)
    }

    pub(crate) fn set(&self, name: &str) -> Value {
        self.find("applicationset", name).unwrap_or_default()
    }

    /// A repository with a directory for each name.
    pub(crate) fn repository(&self) -> Repository {
        self.repository_named("config")
    }

    pub(crate) fn repository_named(&self, name: &str) -> Repository {
        let path = self.path(name);
        fs::create_dir_all(&path).expect("a directory");
        git(&path, &["init", "-q", "-b", "main"]);
        Repository(path)
    }
}

/// What is deployed.
pub(crate) struct Repository(PathBuf);

impl Repository {
    pub(crate) fn url(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    /// Commits files and removes others, and tells the commit.
    pub(crate) fn commit(&self, files: &[(&str, String)], gone: &[&str]) -> String {
        for (path, text) in files {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        gone.iter().for_each(|path| fs::remove_file(self.0.join(path)).expect("a file"));
        git(&self.0, &["add", "-A"]);
        git(&self.0, &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "change"]);
        git(&self.0, &["rev-parse", "HEAD"]).trim().to_owned()
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
