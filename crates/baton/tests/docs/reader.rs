//! Whoever follows a page: at the root of a clone, with a built binary, and with a terminal for everything that goes on.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::page::{Step, is_as_shown};
use crate::process::{LOOK_EVERY, PATIENCE};
use crate::root;

/// Where pages say that things are, and where only a reader's machine is free for them.
const SAID_PAGE: &str = "127.0.0.1:8080";
const SAID_API: &str = "127.0.0.1:6443";
const SAID_TEMPORARY: &str = "/tmp/";

/// No command of a page takes this long, even on a machine that does much else.
const LONGEST: Duration = Duration::from_secs(300);

/// Commands that only look: their reader looks again until it is as shown.
const LOOKS: [&str; 5] = ["get", "list", "explain", "phases", "resources"];

pub(crate) struct Reader {
    home: TempDir,
    /// What runs in terminals of its own.
    terminals: Vec<Terminal>,
    /// What stands in the place of what the page says.
    places: Vec<(&'static str, String)>,
}

/// A command that goes on until Ctrl-C.
struct Terminal {
    child: Child,
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
    /// Whether it holds the directory and the ports of a fleet.
    is_fleet: bool,
}

/// What came of a command.
struct Ended {
    code: Option<i32>,
    output: String,
}

// === impl Reader ===

impl Reader {
    /// Somebody with a clone, in which `make build` was there already: the binary is the one under test, and everything
    /// else of the Makefile is as it is.
    pub(crate) fn new() -> Self {
        let home = TempDir::new().expect("a directory");
        let path = |name: &str| home.path().join(name);
        for directory in ["home", "tmp", "bin", "target/release"] {
            fs::create_dir_all(path(directory)).expect("a directory");
        }
        copy(&root().join("examples"), &path("examples"));
        fs::copy(root().join("Makefile"), path("Makefile")).expect("the Makefile");
        symlink(root().join("ui"), path("ui")).expect("the pages, as the Makefile looks for them");
        let make = which("make");
        script(&path("bin/make"), &format!("exec {} --old-file=build \"$@\"", make.display()));
        // The ports of a page are not free on every machine. A later flag would win over these.
        let binary = env!("CARGO_BIN_EXE_baton");
        script(
            &path("target/release/baton"),
            &format!(
                "case $1 in\n\
                 up) shift; exec {binary} up --listen 127.0.0.1:0 --api-listen 127.0.0.1:0 \"$@\";;\n\
                 apiserver) shift; exec {binary} apiserver --listen 127.0.0.1:0 \"$@\";;\n\
                 esac\n\
                 exec {binary} \"$@\""
            ),
        );
        let temporary = format!("{}/", path("tmp").display());
        Self { home, terminals: Vec::new(), places: vec![(SAID_TEMPORARY, temporary)] }
    }

    /// Does what a step says.
    #[track_caller]
    pub(crate) fn follow(&mut self, page: &str, step: &Step) {
        let place = format!("{page}:{}: {}", step.line, step.command);
        let command = self.here(&step.command);
        if goes_on(&command) {
            return self.open(&place, &command, step);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = self.run(&place, &command);
            let output = self.as_told(&ended.output);
            let is_told = step.shown.is_empty() || is_as_shown(&step.shown, &output);
            if ended.code == Some(step.code) && is_told {
                return;
            }
            let looks = command.split_whitespace().any(|word| LOOKS.contains(&word));
            assert!(
                looks && ended.code == Some(step.code) && Instant::now() < deadline,
                "{place}\nended with {:?} and wrote:\n{output}\nthe page tells of {} and shows:\n{}",
                ended.code,
                step.code,
                step.shown.join("\n")
            );
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends everything with Ctrl-C.
    pub(crate) fn leaves(mut self) {
        self.terminals.drain(..).for_each(Terminal::interrupt);
    }

    /// A command as it has to be on this machine.
    fn here(&self, command: &str) -> String {
        self.places.iter().fold(command.to_owned(), |command, (said, is)| command.replace(said, is))
    }

    /// An output as it would be on a reader's machine.
    fn as_told(&self, output: &str) -> String {
        self.places.iter().fold(output.to_owned(), |output, (said, is)| output.replace(is, said))
    }

    /// A shell at the root of the clone, with what was exported before.
    fn shell(&self, command: &str) -> Command {
        let root = self.home.path();
        let exported = root.join("exported");
        let mut shell = Command::new("bash");
        let text = format!("test ! -e {0} || . {0}\n{command}", exported.display());
        let path = std::env::var("PATH").expect("a PATH");
        shell.args(["-c", &text]).current_dir(root).stdin(Stdio::null());
        shell.env("HOME", root.join("home")).env("PATH", format!("{}:{path}", root.join("bin").display()));
        for (name, value) in ["AUTHOR", "COMMITTER"].iter().flat_map(|role| {
            [(format!("GIT_{role}_NAME"), "A Reader"), (format!("GIT_{role}_EMAIL"), "reader@example.com")]
        }) {
            shell.env(name, value);
        }
        for name in [
            "KUBECONFIG",
            "BATON_LOG",
            "ARGOCD_SERVER",
            "ARGOCD_AUTH_TOKEN",
            "ARGOCD_CONFIG_DIR",
            "MAKEFLAGS",
        ] {
            shell.env_remove(name);
        }
        shell
    }

    #[track_caller]
    fn run(&self, place: &str, command: &str) -> Ended {
        let exported = self.home.path().join("exported");
        // What goes on has its terminal to itself: only here is anything exported for what comes after.
        let keep = format!("code=$?\nexport -p > {}\nexit $code", exported.display());
        let terminal = Terminal::start(self.shell(&format!("{{ {command}\n}} 2>&1\n{keep}")), false);
        match terminal.ends(LONGEST) {
            Ok(ended) => ended,
            Err(said) => panic!("{place}\nhas not ended after {LONGEST:?} and wrote:\n{said}"),
        }
    }

    /// Starts what goes on, in a terminal of its own, and waits until it is there.
    #[track_caller]
    fn open(&mut self, place: &str, command: &str, step: &Step) {
        let is_fleet = command.split_whitespace().any(|word| word == "up");
        // Two fleets have no room in one directory: the page says so, and its reader has ended the first.
        let (before, others) =
            self.terminals.drain(..).partition(|other: &Terminal| is_fleet && other.is_fleet);
        self.terminals = others;
        Vec::into_iter(before).for_each(Terminal::interrupt);
        self.places.retain(|(said, _)| !is_fleet || *said == SAID_TEMPORARY);

        let shell = self.shell(&format!("exec 2>&1\n{}", command.trim_end().trim_end_matches('&')));
        let mut terminal = Terminal::start(shell, is_fleet);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = terminal.said();
            if is_fleet && let Some((page, api)) = addresses(&said) {
                self.places.retain(|(said, _)| *said == SAID_TEMPORARY);
                self.places.extend([(SAID_PAGE, page), (SAID_API, api)]);
            }
            let output = self.as_told(&said);
            let is_there = match step.shown.is_empty() {
                true => output.contains("kubectl --kubeconfig") && (!is_fleet || output.contains("Ctrl-C")),
                false => is_as_shown(&step.shown, &output),
            };
            if is_there {
                break;
            }
            let runs = terminal.child.try_wait().expect("a child can be waited for").is_none();
            assert!(
                runs && Instant::now() < deadline,
                "{place}\nwrote:\n{output}\nthe page shows:\n{}",
                step.shown.join("\n")
            );
            thread::sleep(LOOK_EVERY);
        }
        self.terminals.push(terminal);
    }
}

/// Whether a command goes on until somebody ends it.
fn goes_on(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_fleet = matches!(&words[..], ["make", "up", ..])
        || matches!(&words[..], [baton, "up", ..] if is_baton(baton));
    let is_proxy = matches!(&words[..], [baton, "dev", "lag-proxy", ..] if is_baton(baton));
    is_fleet || is_proxy || command.trim_end().ends_with('&')
}

fn is_baton(word: &str) -> bool {
    Path::new(word).file_name().is_some_and(|name| name == "baton")
}

/// Where page and control plane of a fleet are, once it has told.
fn addresses(said: &str) -> Option<(String, String)> {
    let after = |label: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(label))?;
        Some(line.split_once("://")?.1.split_whitespace().next()?.to_owned())
    };
    Some((after("page")?, after("control plane")?))
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").args([from, to]).status().expect("cp");
    assert!(done.success(), "cannot copy {}", from.display());
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    let mut found = std::env::split_paths(&path).map(|directory| directory.join(program));
    found.find(|file| file.is_file()).unwrap_or_else(|| panic!("no {program} on this machine"))
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a script that can be run");
}

// === impl Terminal ===

impl Terminal {
    fn start(mut shell: Command, is_fleet: bool) -> Self {
        // Ctrl-C reaches all that runs in a terminal.
        let mut child = shell.process_group(0).stdout(Stdio::piped()).spawn().expect("bash starts");
        let mut pipe = child.stdout.take().expect("piped");
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = said.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut bytes) {
                heard.lock().extend_from_slice(&bytes[..read]);
            }
        });
        Self { child, said, reader: Some(reader), is_fleet }
    }

    /// Waits for its end and for all that it says; what it has said so far, where that takes longer than it may.
    fn ends(mut self, longest: Duration) -> Result<Ended, String> {
        let deadline = Instant::now() + longest;
        let mut code = None;
        while Instant::now() < deadline {
            if code.is_none() {
                code = self.child.try_wait().expect("a child can be waited for").map(|status| status.code());
            }
            let is_heard = self.reader.as_ref().is_none_or(thread::JoinHandle::is_finished);
            if let Some(code) = code.filter(|_| is_heard) {
                if let Some(reader) = self.reader.take() {
                    reader.join().expect("a reader does not panic");
                }
                return Ok(Ended { code, output: self.said() });
            }
            thread::sleep(LOOK_EVERY);
        }
        // What is dropped here is killed, with all that it has started.
        Err(self.said())
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock()).into_owned()
    }

    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", signal, "--", &group]).status();
    }

    #[track_caller]
    fn interrupt(mut self) {
        self.signal("INT");
        self.child.wait().expect("a child can be waited for");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader does not panic");
        }
        let said = self.said();
        assert!(!self.is_fleet || said.contains("\nStopped."), "the fleet did not end well:\n{said}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where the test has failed; what has ended has no group any more.
        if self.reader.is_some() {
            self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

#[test]
fn a_command_that_does_not_end_is_ended() {
    let mut shell = Command::new("bash");
    shell.args(["-c", "echo so far; sleep 3600 & wait"]).stdin(Stdio::null());
    let begun = Instant::now();
    let said = Terminal::start(shell, false).ends(Duration::from_secs(2)).err();
    assert_eq!(said.as_deref(), Some("so far\n"));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}
