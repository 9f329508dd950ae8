//! The process between the controller and a command: watches it, and leaves nothing of it behind.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, WaitOptions, WaitStatus};

use super::order::{End, Order, Report};
use super::{Part, order, tree};

/// How often the command is looked at. It begins with the shortest pause, so that a quick command is not kept
/// waiting.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How often what it uses is added up.
const ADD_UP: Duration = Duration::from_millis(100);

/// The controller has closed the lifeline, or is gone.
struct Cut;

/// Is the supervisor: order from the input, report to the output, and the input's end is the end of everything.
pub(super) fn supervise() -> ExitCode {
    match prepare().and_then(|()| order::read::<Order>(io::stdin().lock())) {
        Ok(order) => {
            let report = run(order);
            // Nobody may be there to read it.
            let _ = order::write(io::stdout().lock(), &report);
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn prepare() -> io::Result<()> {
    close_inherited()?;
    // Away from the controller's terminal.
    rustix::process::setsid()?;
    // Orphans below come here; see `tree`.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // A command of the same user must not look into a process that holds its order, with or without Landlock.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Closes files that were open in whatever started the controller and were handed down: neither Landlock nor a
/// cleared environment would keep them from the command.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in open {
        // The list's own file is closed by now.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn run(mut order: Order) -> Report {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    order.protected.push(own);
    let user = order.user.map_or_else(|| rustix::process::getuid().as_raw(), |(user, _)| user);
    order.tasks = tree::tasks_of(user).saturating_add(order.limits.processes);

    let (cut, lifeline) = mpsc::channel();
    let watcher = std::thread::Builder::new().name("lifeline".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = cut.send(Cut);
    });
    let started = watcher.and_then(|_| start(&order));
    let report = match started {
        Ok((child, complaints, output)) => attend(&order, &child, complaints, output, &lifeline),
        Err(fault) => Report { end: End::NotStarted(fault.to_string()), output: String::new(), cut: false },
    };
    clear(&order.scratch);
    report
}

type Pipes = (Child, std::process::ChildStdout, io::PipeReader);

/// Starts the cell in a group of its own and gives it its order.
fn start(order: &Order) -> io::Result<Pipes> {
    let (output, outputs) = io::pipe()?;
    // By this link even a user may start it who could not find the way to its file.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(Part::Cell.arguments())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(outputs)
        .process_group(0);
    if let Some((user, group)) = order.user {
        command.uid(user).gid(group);
    }
    let mut child = command.spawn()?;
    // The command itself holds a copy of the outputs' end, and would keep it open here.
    drop(command);
    let (Some(input), Some(complaints)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("it has no pipes"));
    };
    // One that ended already has closed its input: its complaint says why.
    let _ = order::write(input, order);
    Ok((child, complaints, output))
}

/// Waits for the end, whatever it is, and sees to it that it is one.
fn attend(
    order: &Order,
    child: &Child,
    complaints: std::process::ChildStdout,
    output: io::PipeReader,
    lifeline: &mpsc::Receiver<Cut>,
) -> Report {
    let keep = order.keep;
    let complaint = std::thread::spawn(move || order::read::<String>(io::BufReader::new(complaints)).ok());
    let tail = std::thread::spawn(move || read_tail(output, keep));
    let mut end = wait_for_end(order, child, lifeline);
    leave_nobody();
    if let Ok(Some(complaint)) = complaint.join() {
        end = End::NotStarted(complaint);
    }
    // All who could write are gone, so it has come to its end.
    let (kept, cut) = tail.join().unwrap_or_default();
    Report { end, output: String::from_utf8_lossy(&kept).into_owned(), cut }
}

fn wait_for_end(order: &Order, child: &Child, lifeline: &mpsc::Receiver<Cut>) -> End {
    let begun = Instant::now();
    let most = Duration::from_millis(order.milliseconds);
    let mut pause = SHORTEST_PAUSE;
    let mut add_up = begun + ADD_UP;
    loop {
        if let Some(end) = reap(child) {
            return end;
        }
        let now = Instant::now();
        if now.duration_since(begun) >= most {
            return End::Late;
        }
        if now >= add_up {
            if let Some(end) = excess(order) {
                return end;
            }
            // Adding up a great many files must not take all the time there is.
            add_up = Instant::now() + ADD_UP.max(now.elapsed() * 4);
        }
        match lifeline.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(LONGEST_PAUSE),
            Ok(Cut) | Err(RecvTimeoutError::Disconnected) => return End::Abandoned,
        }
    }
}

/// Waits for all that have ended, the orphans too; tells how the command did if it is among them.
fn reap(child: &Child) -> Option<End> {
    let mut end = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if u32::try_from(pid.as_raw_nonzero().get()) == Ok(child.id()) {
            end = Some(end_of(status));
        }
    }
    end
}

fn end_of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exit(code),
        (None, signal) => End::Signal(signal.unwrap_or(0)),
    }
}

/// What of the limits all processes together have passed.
fn excess(order: &Order) -> Option<End> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let usage = tree::usage(&tree::below(own));
    if usage.tasks > order.limits.processes {
        return Some(End::TooManyProcesses);
    }
    if usage.memory > order.limits.memory {
        return Some(End::TooMuchMemory);
    }
    // What cannot be looked at was made so to hide something.
    let disk = tree::size_of(&order.scratch).map(|bytes| bytes.saturating_add(usage.nameless));
    disk.is_none_or(|bytes| bytes > order.limits.disk).then_some(End::TooMuchDisk)
}

/// Kills every process below this one until there is none. Those that are started meanwhile are found in the next
/// round; the limit of processes sees to it that rounds run out.
fn leave_nobody() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut pause = SHORTEST_PAUSE;
    loop {
        tree::kill(&tree::below(own));
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // Nobody is left.
                Err(_) => return,
            }
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Reads to the end and keeps the end.
fn read_tail(mut output: impl Read, keep: usize) -> (Vec<u8>, bool) {
    let mut kept: Vec<u8> = Vec::new();
    let mut cut = false;
    let mut chunk = vec![0; 16 << 10];
    loop {
        match output.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => kept.extend_from_slice(&chunk[..length]),
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        if kept.len() > 2 * keep {
            kept.drain(..kept.len() - keep);
            cut = true;
        }
    }
    if kept.len() > keep {
        kept.drain(..kept.len() - keep);
        cut = true;
    }
    (kept, cut)
}

/// Empties a directory, also of directories that were made unreadable. Nobody is left who could put a link in the
/// way.
fn clear(directory: &Path) {
    if fs::remove_dir_all(directory).is_ok() {
        return;
    }
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept() {
        let (kept, cut) = read_tail(&b"0123456789"[..], 4);
        assert_eq!((kept.as_slice(), cut), (&b"6789"[..], true));
        let (kept, cut) = read_tail(&b"0123"[..], 4);
        assert_eq!((kept.as_slice(), cut), (&b"0123"[..], false));
    }
}
