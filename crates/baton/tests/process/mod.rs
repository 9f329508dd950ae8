//! The `baton` binary as a process: run to its end, or started, listened to and stopped.

#![allow(dead_code, reason = "each test binary that includes this module uses its own part of it")]

use std::{
    ffi::OsStr,
    fs,
    io::{self, BufRead as _, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// Nothing that is awaited takes this long, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something that is awaited.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that goes on until it is stopped. Dropping it kills it.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    errors: Option<thread::JoinHandle<String>>,
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Outcome {
    Running::start(arguments).ends()
}

// === impl Running ===

impl Running {
    pub(crate) fn start<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Self {
        let mut command = baton();
        command.args(arguments);
        Self::of(command)
    }

    /// Starts a command that is more than its arguments, as [`baton`] makes one, or of another program.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary under test starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let errors = read_all(child.stderr.take().expect("piped"));
        Self { child, lines, errors: Some(errors) }
    }

    /// Starts a command whose output nobody reads: both pipes are closed already.
    pub(crate) fn unread<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Self {
        let closed = || io::pipe().expect("a pipe").1;
        let child = baton()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(closed())
            .stderr(closed())
            .spawn()
            .expect("the binary under test starts");
        Self { child, lines: mpsc::channel().1, errors: None }
    }

    /// Reads standard output on until a line has this part.
    #[track_caller]
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(_) => {
                    self.kill();
                    panic!("no line with {part:?} on standard output; standard error: {}", self.complaint());
                }
            }
        }
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Ends it with SIGKILL, so that it can do nothing more.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Sends it a signal by its name.
    #[track_caller]
    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        let told = Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert!(told.success(), "{kill}");
    }

    /// Asks it with SIGTERM to end, and waits until it has.
    #[track_caller]
    pub(crate) fn terminate(self) -> Outcome {
        self.told("TERM")
    }

    /// The same with SIGINT, as Ctrl-C does.
    #[track_caller]
    pub(crate) fn interrupt(self) -> Outcome {
        self.told("INT")
    }

    #[track_caller]
    fn told(self, signal: &str) -> Outcome {
        self.signal(signal);
        self.ends()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn ends(mut self) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        while self.runs() {
            assert!(Instant::now() < deadline, "the command has not ended after {PATIENCE:?}");
            thread::sleep(LOOK_EVERY);
        }
        let status: ExitStatus = self.child.wait().expect("a child can be waited for");
        let stdout = self.lines.iter().map(|line| line + "\n").collect();
        Outcome { code: status.code(), stdout, stderr: self.complaint() }
    }

    /// What it wrote to standard error; it must have ended.
    fn complaint(&mut self) -> String {
        self.errors.take().map_or_else(String::new, |reader| reader.join().expect("a reader does not panic"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test, deaf to the settings of whoever runs the tests.
pub(crate) fn baton() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.env_remove("BATON_LOG");
    command
}

/// A client of the cluster that a kubeconfig names.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let text = fs::read_to_string(kubeconfig)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", kubeconfig.display()));
    client_of(Kubeconfig::from_yaml(&text).expect("a kubeconfig")).await
}

/// A client that never asks twice: what it reports happened, happened once.
pub(crate) async fn client_of(kubeconfig: Kubeconfig) -> Client {
    // Two crypto providers are in the dependency graph, so rustls asks for a choice; a second call is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a usable kubeconfig");
    config.default_retry = false;
    Client::try_from(config).expect("a client from the kubeconfig")
}

/// The address in a line such as `page  http://127.0.0.1:8080   (…)`.
pub(crate) fn address_in(line: &str) -> SocketAddr {
    let (_, after) = line.split_once("://").unwrap_or_else(|| panic!("no URL in {line:?}"));
    let address = after.split_whitespace().next().unwrap_or_default();
    address.parse().unwrap_or_else(|_| panic!("no address in {line:?}"))
}

/// Looks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = look().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(LOOK_EVERY).await;
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
