//! What this process uses of the machine, as the kernel tells it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Processor time of this process so far.
pub(crate) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Resident memory of this process in KiB.
pub(crate) fn resident() -> usize {
    memory("VmRSS:")
}

/// The most memory that was resident since [`forget_peak`], in KiB.
pub(crate) fn peak() -> usize {
    memory("VmHWM:")
}

/// Counts the peak from now on. Where the kernel does not let it, it stays the peak since the start.
pub(crate) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn memory(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// How many sockets this process holds.
pub(crate) fn sockets() -> usize {
    let links = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let links = links.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// The processes that this one started, and all that have a word on their command line, whosever children they are now.
pub(crate) fn processes(word: &str) -> usize {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|number| *number != own);
    others.filter(|number| parent(*number) == Some(own) || says(*number, word)).count()
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn says(process: u32, word: &str) -> bool {
    let line = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split('\0').any(|each| each == word)
}

/// Runs git.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
