//! The processes below this one, and what they use, as `/proc` shows them.
//!
//! Neither control groups nor process namespaces are needed: the first are rarely writable in a container, the
//! second rarely allowed. A process below a subreaper cannot leave it, so following parents finds all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// What a file costs beside its content.
const ENTRY: u64 = 4096;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    parent: i32,
    /// Whether it only waits to be waited for.
    zombie: bool,
    tasks: u64,
    /// Tells it from another that has its number later.
    started: u64,
}

/// What processes use together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Processes and threads.
    pub(super) tasks: u64,
    /// Bytes of memory.
    pub(super) memory: u64,
    /// Bytes in files that are open and have no name any more.
    pub(super) nameless: u64,
}

/// All processes below one, whether their parents still live or not.
pub(super) fn below(root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in numbers().filter_map(look_at) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        // Taken out: numbers may be given anew while the list is read, and a circle must end.
        for process in children.remove(&parent).unwrap_or_default() {
            open.push(process.pid);
            found.push(process);
        }
    }
    found
}

/// What these processes use.
pub(super) fn usage(processes: &[Process]) -> Usage {
    let mut usage = Usage::default();
    let mut seen = BTreeSet::new();
    for process in processes.iter().filter(|process| !process.zombie) {
        usage.tasks += process.tasks;
        usage.memory += resident(process.pid);
        for (file, bytes) in nameless(process.pid) {
            if seen.insert(file) {
                usage.nameless += bytes;
            }
        }
    }
    usage
}

/// Kills processes. One that has ended meanwhile, and whose number is another's now, is left alone.
pub(super) fn kill(processes: &[Process]) {
    for process in processes.iter().filter(|process| !process.zombie) {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                if look_at(process.pid).is_some_and(|now| now.started == process.started) {
                    let _ = pidfd_send_signal(&handle, Signal::KILL);
                }
            }
            Err(rustix::io::Errno::SRCH) => {}
            Err(_) => {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// How many tasks a user has.
pub(super) fn tasks_of(user: u32) -> u64 {
    numbers().filter(|&pid| user_of(pid) == Some(user)).filter_map(look_at).map(|process| process.tasks).sum()
}

/// Whose a process is. The owner of its directory will not do: that is root for one that cannot be looked into.
fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The bytes of all files below a directory; none if a part of it cannot be looked at. Every entry counts
/// something, so that millions of empty files are not nothing.
pub(super) fn size_of(directory: &Path) -> Option<u64> {
    let mut size = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return None,
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            size += ENTRY + if found.is_file() { found.len().max(found.blocks() * 512) } else { 0 };
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Some(size)
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reads `/proc/<pid>/stat`. The name in it is anything, brackets included: fields count from behind its last
/// bracket.
fn look_at(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

fn parse(pid: i32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        tasks: fields.get(17)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn resident(pid: i32) -> u64 {
    let pages = || {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        statm.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    pages().unwrap_or(0) * rustix::param::page_size() as u64
}

fn nameless(pid: i32) -> Vec<((u64, u64), u64)> {
    let handles = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let files = handles.filter_map(|handle| fs::metadata(handle.path()).ok());
    let files = files.filter(|file| file.is_file() && file.nlink() == 0);
    files.map(|file| ((file.dev(), file.ino()), file.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_call_itself_what_it_likes() {
        let stat = "42 (x) R 1 (y) S 7 42 42 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 3 0 123456 0 0 0";
        let expected = Process { pid: 42, parent: 7, zombie: false, tasks: 3, started: 123_456 };
        assert_eq!(parse(42, stat), Some(expected));
        assert_eq!(parse(42, "42 (x"), None);
    }

    #[test]
    fn empty_files_and_directories_count_too() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("a")).expect("a directory");
        fs::write(directory.path().join("a/b"), vec![0; 10_000]).expect("a file");
        fs::write(directory.path().join("c"), b"").expect("a file");
        let size = size_of(directory.path()).expect("it can be looked at");
        assert!((3 * ENTRY + 10_000..4 * ENTRY + 20_000).contains(&size), "{size}");
    }
}
