//! A hook that does its worst, and says how far it came. It always ends with exit code 3 when it ends by itself, so
//! that what it says is kept.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

const MIB: usize = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["read", paths @ ..] => paths.iter().for_each(|path| say("read", path, fs::read_to_string(path))),
        ["list", paths @ ..] => {
            paths.iter().for_each(|path| say("list", path, fs::read_dir(path).map(|_| "entries")))
        }
        ["write", paths @ ..] => {
            paths.iter().for_each(|path| say("write", path, fs::write(path, "x").map(|()| "done")))
        }
        ["environment"] => std::env::vars().for_each(|(name, value)| println!("{name}={value}")),
        ["ancestors"] => read_ancestors(),
        ["signal", processes @ ..] => processes.iter().for_each(|process| signal(process)),
        ["unix", path] => say("connect", path, UnixStream::connect(path).map(|_| "done")),
        ["tcp", address] => say("connect", address, TcpStream::connect(address).map(|_| "done")),
        ["run", program] => {
            say("run", program, Command::new(program).status().map(|status| status.to_string()))
        }
        ["escape", marker] => escape(marker),
        ["escaped", marker, depth] => escaped(marker, depth),
        ["idle", ..] => std::thread::sleep(Duration::from_secs(3600)),
        ["crowd", marker] => crowd(marker),
        ["bomb", marker] => bomb(marker),
        ["spin"] => loop {
            std::hint::spin_loop();
        },
        ["open"] => {
            let open: Vec<File> = (0..10_000).map_while(|_| File::open("villain").ok()).collect();
            println!("opened {}", open.len());
        }
        ["memory"] => hold(usize::MAX),
        ["herd", marker, count, mebibytes] => herd(marker, count.parse().unwrap_or(0), mebibytes),
        ["hold", mebibytes, ..] => {
            hold(mebibytes.parse().unwrap_or(0));
            std::thread::sleep(Duration::from_secs(3600));
        }
        ["files"] => files(false),
        ["nameless-files"] => files(true),
        ["file"] => one_file(),
        ["print", text, times] => (0..times.parse().unwrap_or(0)).for_each(|_| println!("{text}")),
        ["succeed"] => return ExitCode::SUCCESS,
        other => println!("what is {other:?}?"),
    }
    ExitCode::from(3)
}

fn say(what: &str, whom: &str, result: std::io::Result<impl std::fmt::Display>) {
    match result {
        Ok(got) => println!("{what} {whom}: GOT {got}"),
        Err(fault) => println!("{what} {whom}: {}", fault.kind()),
    }
}

/// The supervisor, the controller, and whatever is above them.
fn read_ancestors() {
    let parent = std::os::unix::process::parent_id();
    for path in
        [format!("/proc/{parent}/environ"), format!("/proc/{parent}/mem"), "/proc/1/environ".to_owned()]
    {
        say("read", &path.replace(&parent.to_string(), "PARENT"), fs::read(&path).map(|bytes| bytes.len()));
    }
    say("list", "/proc", fs::read_dir("/proc").map(|entries| entries.count()));
}

/// Only asks whether it could: should the sandbox ever fail, the machine that tests it is to live.
fn signal(process: &str) {
    let parent = std::os::unix::process::parent_id().to_string();
    let number = process.replace("PARENT", &parent).parse().unwrap_or(0);
    let result = match rustix::process::Pid::from_raw(number) {
        Some(pid) => rustix::process::test_kill_process(pid),
        None => Err(rustix::io::Errno::INVAL),
    };
    say("signal", process, result.map(|()| "done").map_err(std::io::Error::from));
}

fn again(arguments: &[&str]) -> std::io::Result<Child> {
    // Every copy carries the marker, so that a test finds those that are left. There is no /proc to find itself by.
    let own = std::env::args().next().unwrap_or_default();
    Command::new(own).args(arguments).stdin(Stdio::null()).spawn()
}

/// Leaves the group, the session and its parents, and stays.
fn escape(marker: &str) {
    say("start", "escaped", again(&["escaped", marker, "2"]).map(|_| "done"));
    std::thread::sleep(Duration::from_secs(3600));
}

fn escaped(marker: &str, depth: &str) {
    say("setsid", depth, rustix::process::setsid().map(|_| "done").map_err(std::io::Error::from));
    match depth {
        "0" => std::thread::sleep(Duration::from_secs(3600)),
        "1" => drop(again(&["escaped", marker, "0"])),
        _ => drop(again(&["escaped", marker, "1"])),
    }
}

/// As many processes as it can get.
fn crowd(marker: &str) {
    let mut count = 0;
    while count < 10_000 && again(&["idle", marker]).is_ok() {
        count += 1;
    }
    println!("started {count}");
}

/// Processes that start processes, and never mind.
fn bomb(marker: &str) {
    loop {
        let _ = again(&["bomb", marker]);
    }
}

fn hold(mebibytes: usize) {
    let mut held: Vec<Vec<u8>> = Vec::new();
    while held.len() < mebibytes {
        let mut piece: Vec<u8> = Vec::new();
        if piece.try_reserve_exact(MIB).is_err() {
            println!("no more than {} MiB", held.len());
            return;
        }
        piece.resize(MIB, 1);
        held.push(piece);
    }
    std::mem::forget(held);
}

fn herd(marker: &str, count: usize, mebibytes: &str) {
    for _ in 0..count {
        let _ = again(&["hold", mebibytes, marker]);
    }
    std::thread::sleep(Duration::from_secs(3600));
}

/// Files of a MiB each, with a name or without, up to far more than there may be.
fn files(nameless: bool) {
    let mut open = Vec::new();
    for number in 0..2048 {
        let path = format!("{}/file-{number}", std::env::var("TMPDIR").unwrap_or_default());
        let written = File::create(&path).and_then(|mut file| {
            if nameless {
                fs::remove_file(&path)?;
            }
            file.write_all(&vec![1; MIB])?;
            Ok(file)
        });
        match written {
            Ok(file) if nameless && open.len() < 200 => open.push(file),
            Ok(_) => {}
            Err(fault) => return println!("after {number}: {fault}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("wrote everything");
}

fn one_file() {
    let path = format!("{}/file", std::env::var("TMPDIR").unwrap_or_default());
    let Ok(mut file) = File::create(path) else { return println!("no file") };
    for number in 0..2048 {
        if let Err(fault) = file.write_all(&vec![1; MIB]) {
            return println!("after {number}: {fault}");
        }
    }
    println!("wrote everything");
}
