//! The cluster under test and a kubectl that talks to it, with a namespace of its own for each subject.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// No single command takes this long, even against a busy cluster.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that is awaited.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One subject's kubectl: a namespace, a home directory for its caches, and the shared cluster.
pub(crate) struct Session {
    cluster: Arc<Cluster>,
    namespace: String,
    home: TempDir,
}

/// What a command left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that goes on, such as a watch, read line by line.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
}

enum Cluster {
    Embedded { server: Mutex<Child>, data: TempDir },
    Named { kubeconfig: PathBuf },
}

/// Tests that run at the same time share the server; the last one to end stops it.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

// === impl Session ===

impl Session {
    /// `subject` becomes part of the namespace's name.
    pub(crate) fn new(subject: &str) -> Self {
        let namespace = format!("kubectl-{subject}-{}", std::process::id());
        let home = tempfile::tempdir().expect("a temporary directory");
        let session = Self { cluster: Cluster::shared(), namespace, home };
        session.run(&["create", "namespace", session.namespace()]);
        session
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whether Pods start here. They do with the workload simulator; a bare control plane has no kubelet.
    pub(crate) fn runs_pods(&self) -> bool {
        matches!(*self.cluster, Cluster::Embedded { .. })
    }

    /// Runs a command that must succeed, and gives what it printed.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "")
    }

    /// As [`Session::run`], with text on standard input.
    #[track_caller]
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> String {
        let outcome = self.attempt_with(arguments, input);
        assert_eq!(
            outcome.code,
            0,
            "kubectl {} failed\nstdout: {}\nstderr: {}",
            arguments.join(" "),
            outcome.stdout,
            outcome.stderr
        );
        outcome.stdout
    }

    /// Runs a command that must fail, and gives its complaint.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        self.fails_with(arguments, "")
    }

    #[track_caller]
    pub(crate) fn fails_with(&self, arguments: &[&str], input: &str) -> String {
        let outcome = self.attempt_with(arguments, input);
        assert_ne!(outcome.code, 0, "kubectl {} succeeded: {}", arguments.join(" "), outcome.stdout);
        outcome.stderr
    }

    pub(crate) fn attempt(&self, arguments: &[&str]) -> Outcome {
        self.attempt_with(arguments, "")
    }

    pub(crate) fn attempt_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        // On a thread of its own: a command that does not read would otherwise block us for ever.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
        let stdout = read_all(child.stdout.take().expect("piped"));
        let stderr = read_all(child.stderr.take().expect("piped"));
        let status = wait_for(&mut child, &arguments.join(" "));
        let text = |reader: thread::JoinHandle<String>| reader.join().expect("a reader does not panic");
        Outcome { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Starts a command and lets it run.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self.spawn(arguments);
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Running { child, lines }
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.cluster.kubeconfig()).args(["--namespace", &self.namespace]);
        command.args(arguments).env("HOME", self.home.path()).env_remove("KUBECONFIG");
        command.env("KUBE_EDITOR", self.home.path().join("editor"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| {
            panic!("this test needs kubectl in PATH, and it cannot be started: {error}")
        })
    }

    /// Looks until the condition holds.
    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain until {what}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Writes a file into the session's directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, content).expect("a temporary file");
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Makes `kubectl edit` run this shell script on the file it offers.
    pub(crate) fn editor(&self, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.file("editor", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a permission on our own file");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.attempt(&["delete", "namespace", &self.namespace, "--wait=false", "--ignore-not-found"]);
    }
}

// === impl Running ===

impl Running {
    /// Reads on until a line has all the given parts.
    #[track_caller]
    pub(crate) fn line_with(&self, parts: &[&str]) -> String {
        self.line_within(PATIENCE, parts).unwrap_or_else(|| panic!("no line with {parts:?}"))
    }

    /// Whether such a line comes soon.
    pub(crate) fn sees(&self, parts: &[&str]) -> bool {
        self.line_within(Duration::from_secs(2), parts).is_some()
    }

    fn line_within(&self, patience: Duration, parts: &[&str]) -> Option<String> {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).ok()?;
            if parts.iter().all(|part| line.contains(part)) {
                return Some(line);
            }
        }
    }

    /// Waits for the end, which must be a success.
    #[track_caller]
    pub(crate) fn succeeds(mut self) {
        let status = wait_for(&mut self.child, "that was started");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Cluster ===

impl Cluster {
    fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return cluster;
        }
        let cluster = Arc::new(match env::var_os("BATON_TEST_KUBECONFIG") {
            Some(kubeconfig) => Self::Named { kubeconfig: kubeconfig.into() },
            None => Self::start(),
        });
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    fn start() -> Self {
        let data = tempfile::tempdir().expect("a temporary directory");
        let mut server = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["apiserver", "--listen", "127.0.0.1:0", "--ephemeral", "--data-dir"])
            .arg(data.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary under test starts");
        let deadline = Instant::now() + PATIENCE;
        while !data.path().join("kubeconfig").exists() {
            if let Some(status) = server.try_wait().expect("the child can be waited for") {
                panic!("baton apiserver ended before it was ready: {status}");
            }
            assert!(Instant::now() < deadline, "baton apiserver wrote no kubeconfig in {PATIENCE:?}");
            thread::sleep(LOOK_EVERY);
        }
        Self::Embedded { server: Mutex::new(server), data }
    }

    fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded { data, .. } => data.path().join("kubeconfig"),
            Self::Named { kubeconfig } => Path::new(kubeconfig).to_owned(),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Self::Embedded { server, .. } = self {
            let server = server.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[track_caller]
fn wait_for(child: &mut Child, arguments: &str) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("kubectl {arguments} has not ended after {PATIENCE:?}");
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before a broken pipe is what the command said.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
