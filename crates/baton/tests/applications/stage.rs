//! A running `baton up` with two clusters and a git repository of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::process::{LOOK_EVERY, Outcome, PATIENCE, Running, run};

pub(crate) struct Stage {
    home: TempDir,
    _up: Running,
}

impl Stage {
    pub(crate) fn start() -> Stage {
        let home = tempfile::tempdir().expect("a directory");
        git(&home.path().join("config"), &["init", "-q", "-b", "main"]);
        let directory = home.path().join("up");
        let mut up = Running::start([
            "up",
            "--ephemeral",
            "--no-demo",
            "--data-dir",
            directory.to_str().expect("UTF-8"),
            "--listen",
            "127.0.0.1:0",
            "--api-listen",
            "127.0.0.1:0",
            "--ready-delay",
            "50ms",
            "--cluster",
            "dev,env=dev",
            "--cluster",
            "prod,env=prod",
        ]);
        up.line_with("http://");
        Stage { home, _up: up }
    }

    pub(crate) fn repository(&self) -> String {
        self.home.path().join("config").to_str().expect("UTF-8").to_owned()
    }

    /// Commits files, each with its whole content.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) {
        let repository = self.repository();
        for (path, content) in files {
            let path = Path::new(&repository).join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
            fs::write(path, content).expect("a file");
        }
        self.record();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(Path::new(&self.repository()).join(path)).expect("a file");
        self.record();
    }

    fn record(&self) {
        let repository = self.repository();
        git(Path::new(&repository), &["add", "-A"]);
        git(
            Path::new(&repository),
            &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "change"],
        );
    }

    pub(crate) fn head(&self) -> String {
        git(Path::new(&self.repository()), &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Runs a command of the binary beside the control plane.
    pub(crate) fn baton(&self, arguments: &[&str]) -> Outcome {
        let kubeconfig = self.home.path().join("up/kubeconfig");
        let connection = ["--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
        run(arguments.iter().chain(&connection))
    }

    /// The same, and it succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let outcome = self.baton(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    #[track_caller]
    pub(crate) fn create(&self, name: &str, path: &str, more: &[&str]) {
        self.create_on("dev", name, path, more);
    }

    #[track_caller]
    pub(crate) fn create_on(&self, cluster: &str, name: &str, path: &str, more: &[&str]) {
        let repository = self.repository();
        let mut arguments =
            vec!["app", "create", name, "--repo", &repository, "--path", path, "--dest-name", cluster];
        if !more.contains(&"--dest-namespace") {
            arguments.extend(["--dest-namespace", "web"]);
        }
        arguments.extend(more);
        self.ok(&arguments);
    }

    /// An Application as a file that another one may hold.
    pub(crate) fn manifest(&self, name: &str, path: &str, cluster: &str) -> String {
        let repository = self.repository();
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {name}
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: default
  source: {{repoURL: {repository}, path: {path}}}
  destination: {{name: {cluster}, namespace: web}}
  syncPolicy: {{automated: {{}}, syncOptions: [CreateNamespace=true]}}
"
        )
    }

    #[track_caller]
    pub(crate) fn application(&self, name: &str) -> Value {
        serde_json::from_str(&self.ok(&["app", "get", name, "-o", "json"])).expect("JSON")
    }

    /// What kubectl says of a cluster; it succeeds.
    #[track_caller]
    pub(crate) fn kubectl(&self, cluster: &str, arguments: &[&str]) -> String {
        let kubeconfig = self.home.path().join(format!("up/clusters/{cluster}.kubeconfig"));
        kubectl(self.home.path(), &kubeconfig, arguments)
    }

    /// What kubectl says of the control plane; it succeeds.
    #[track_caller]
    pub(crate) fn control(&self, arguments: &[&str]) -> String {
        kubectl(self.home.path(), &self.kubeconfig(), arguments)
    }

    /// How to reach the control plane.
    pub(crate) fn kubeconfig(&self) -> std::path::PathBuf {
        self.home.path().join("up/kubeconfig")
    }

    /// Applies a manifest to the control plane.
    #[track_caller]
    pub(crate) fn apply_to_control(&self, manifest: &str) {
        let file = self.home.path().join("manifest.yaml");
        fs::write(&file, manifest).expect("a file");
        let kubeconfig = self.home.path().join("up/kubeconfig");
        kubectl(self.home.path(), &kubeconfig, &["apply", "-f", file.to_str().expect("UTF-8")]);
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "waited in vain until {what}");
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// What kubectl says; it succeeds.
#[track_caller]
pub(crate) fn kubectl(home: &Path, kubeconfig: &Path, arguments: &[&str]) -> String {
    let output = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .env("HOME", home)
        .output()
        .expect("kubectl runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    fs::create_dir_all(directory).expect("a directory");
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: main, image: 'registry.example.com/{name}:1'}}]}}
"
    )
}

pub(crate) fn job(name: &str, annotations: &[(&str, &str)]) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, annotations: {}}}
spec:
  backoffLimit: 0
  template:
    spec: {{restartPolicy: Never, containers: [{{name: main, image: 'registry.example.com/{name}:1'}}]}}
",
        map(annotations)
    )
}

pub(crate) fn config_map(name: &str, colour: &str, annotations: &[(&str, &str)]) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, annotations: {}}}
data: {{colour: {colour}}}
",
        map(annotations)
    )
}

fn map(annotations: &[(&str, &str)]) -> String {
    let entries: Vec<String> = annotations.iter().map(|(key, value)| format!("{key}: '{value}'")).collect();
    format!("{{{}}}", entries.join(", "))
}
