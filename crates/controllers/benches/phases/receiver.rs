//! Who is called: a receiver on the loopback interface that knows how many calls are under way, and the program that
//! command hooks run, which calls it as well.
//!
//! It has threads of its own, so that it does not wait for the runtime that is measured.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use baton_controllers::{HookSettings, Settings};
use baton_hooks::AllowList;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::common::ordered;
use super::common::process::{processes, sockets};

/// What the proposal allows at once.
const MOST_HOOKS: usize = 5;
const MOST_CHECKS: usize = 10;
/// First argument of this program where it is run as a command.
const CALL: &str = "--call";
const SIT: &str = "--sit";

/// A receiver, with an operator's directory of programs that call it.
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
    home: tempfile::TempDir,
    /// Sockets and processes that were there before anybody called.
    before: (usize, usize),
}

#[derive(Default)]
struct State {
    delay: AtomicU64,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    under_way: Vec<(Role, Arc<TcpStream>)>,
    seen: Seen,
}

/// What the receiver has seen.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) hooks: usize,
    pub(crate) checks: usize,
    /// The most that were under way at once.
    pub(crate) most_hooks: usize,
    pub(crate) most_checks: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Hook,
    Check,
}

// === impl Receiver ===

impl Receiver {
    pub(crate) fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let home = tempfile::tempdir().expect("a directory");
        for directory in [home.path().to_owned(), home.path().join("hooks"), home.path().join("scratch")] {
            fs::create_dir_all(&directory).expect("a directory");
            open_to_all(&directory);
        }
        let (own, program) = (std::env::current_exe().expect("a program"), home.path().join("hooks/call"));
        if fs::hard_link(&own, &program).is_err() {
            fs::copy(&own, &program).expect("a program can be copied");
        }
        open_to_all(&program);
        let state: Arc<State> = Arc::default();
        let known = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = known.clone();
                thread::spawn(move || state.answer(stream));
            }
        });
        let mut receiver = Receiver { address, state, home, before: (0, 0) };
        receiver.before = receiver.open();
        receiver
    }

    /// Settings of an operator who lets sets call it, over HTTP and with the program.
    pub(crate) fn settings(&self) -> Settings {
        let mut hooks = HookSettings::default();
        let calls = &mut hooks.calls;
        calls.allow = AllowList::parse(["127.0.0.1/32"]).expect("an address");
        calls.allow_http = true;
        calls.directory = Some(self.home.path().join("hooks"));
        calls.scratch = Some(self.home.path().join("scratch"));
        calls.allow_unsandboxed = calls.support.missing().is_some();
        Settings { hooks, ..ordered() }
    }

    /// How long each answer takes.
    pub(crate) fn delay(&self, delay: Duration) {
        self.state.delay.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// A hook or check over HTTP. `path` begins with `hook` or `check`; with `silent` in it, it is never answered.
    pub(crate) fn http(&self, name: &str, path: &str) -> Value {
        json!({"name": name, "type": "http", "http": {"url": format!("http://{}/{path}", self.address)}})
    }

    /// The same as a command, which then has a process of its own, and one more where it is silent.
    pub(crate) fn command(&self, name: &str, path: &str) -> Value {
        let command = ["./call", CALL, &self.address.to_string(), &format!("/{path}")];
        json!({"name": name, "type": "command", "command": {"command": command}})
    }

    /// What it has seen since it was last asked.
    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut self.state.calls.lock().seen)
    }

    /// What it has seen, which must be within the limits.
    pub(crate) fn judged(&self) -> Seen {
        let seen = self.state.calls.lock().seen;
        assert!(seen.most_hooks <= MOST_HOOKS, "{} hooks were under way at once", seen.most_hooks);
        assert!(seen.most_checks <= MOST_CHECKS, "{} checks were under way at once", seen.most_checks);
        seen
    }

    /// Tells how many sockets, processes and temporary directories are left, of which there must be none.
    pub(crate) async fn left(&self) -> String {
        let mut left = (0, 0, 0);
        // Whoever was called is told by the kernel, a moment later.
        for _ in 0..100 {
            let (sockets, processes) = self.open();
            let scratch = fs::read_dir(self.home.path().join("scratch")).expect("a directory").count();
            left = (sockets.saturating_sub(self.before.0), processes.saturating_sub(self.before.1), scratch);
            if left == (0, 0, 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let told = format!("{} sockets, {} processes, {} directories left", left.0, left.1, left.2);
        assert!(left == (0, 0, 0), "{told}");
        told
    }

    fn open(&self) -> (usize, usize) {
        self.state.calls.lock().let_go();
        (sockets(), processes(&self.address.to_string()))
    }
}

// === impl State ===

impl State {
    fn answer(&self, mut stream: TcpStream) {
        let Some(path) = read_request(&mut stream) else { return };
        let _ = stream.set_nonblocking(true);
        let role = if path.starts_with("/check") { Role::Check } else { Role::Hook };
        let stream = Arc::new(stream);
        self.calls.lock().arrived(role, &stream);
        if path.contains("silent") {
            return;
        }
        thread::sleep(Duration::from_millis(self.delay.load(Ordering::Relaxed)));
        // It is over when it is answered: whoever comes next may come before this thread goes on.
        self.calls.lock().under_way.retain(|(_, other)| !Arc::ptr_eq(other, &stream));
        let _ = stream.set_nonblocking(false);
        let _ = (&*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    }
}

// === impl Calls ===

impl Calls {
    fn arrived(&mut self, role: Role, stream: &Arc<TcpStream>) {
        self.let_go();
        self.under_way.push((role, stream.clone()));
        let count = |role: Role| self.under_way.iter().filter(|(other, _)| *other == role).count();
        let (hooks, checks) = (count(Role::Hook), count(Role::Check));
        let seen = &mut self.seen;
        seen.hooks += usize::from(role == Role::Hook);
        seen.checks += usize::from(role == Role::Check);
        (seen.most_hooks, seen.most_checks) = (seen.most_hooks.max(hooks), seen.most_checks.max(checks));
    }

    /// Forgets those whose caller has closed. The kernel knows that before the caller can make its next call.
    fn let_go(&mut self) {
        self.under_way.retain(|(_, stream)| match stream.peek(&mut [0]) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        });
    }
}

/// Reads a request whole, and tells its path.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(head.split_whitespace().nth(1)?.to_owned());
        }
    }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode can be changed");
}

/// If this process was started as a command, is that, and gives the code to exit with.
pub(crate) fn call_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<&str>>()[..] {
        [program, CALL, address, path] => {
            if path.contains("silent") {
                // Somebody whom nobody waits for.
                let _ = Command::new(program).args([SIT, address]).spawn();
            }
            Some(if call(address, path).is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        [_, SIT, _] => {
            thread::sleep(Duration::from_secs(3600));
            Some(ExitCode::SUCCESS)
        }
        _ => None,
    }
}

fn call(address: &str, path: &str) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(())
}
