//! Runs one command.
//!
//! # Guarantees
//! - The program lies in the operator's directory, links followed (`program`); no shell reads its arguments.
//! - Its environment is what `environment` makes: nothing of this process's.
//! - When this call ends, in whatever way, so have the command and everything it started; also when this process is
//!   killed ([`crate::sandbox`]).
//! - Where the kernel cannot hold it, it does not run, unless the operator said so.
//!
//! # What it may do
//! Read the operator's directory (in which it runs), what `--hooks-read` names, and where programs, libraries and
//! certificates are; execute programs there; write into a directory of its own, which is gone after it and from
//! which nothing can be executed; use TCP and UDP, unless the operator says no. It sees no other file, so no
//! service account's token, and nothing under `/proc`, so no other process's environment.
//!
//! # Time
//! Commands are timed by the machine's clock and waited for on a blocking thread: a test that pauses tokio's clock
//! may run them, for tokio lets no time pass while a blocking task works.

mod environment;
mod program;

use std::fs::Permissions;
use std::io::{self, PipeWriter};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) use environment::{is_automatic, is_dangerous};
pub(crate) use program::named;

use crate::call::{Call, Invocation};
use crate::outcome::{Fault, Reason, Verdict};
use crate::sandbox::{self, End, Order, Report};
use crate::secret::{Cut, RUN, Redactor};
use crate::settings::Settings;

/// Runs commands.
pub(crate) struct CommandCaller {
    settings: Settings,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) verdict: Verdict,
    pub(crate) code: Option<i64>,
    pub(crate) output: String,
}

/// The end of the pipe whose closing ends everything. None before the supervisor has started, and after.
#[derive(Default)]
struct Lifeline {
    pipe: Option<PipeWriter>,
    cut: bool,
}

struct CutOnDrop(Arc<Mutex<Lifeline>>);

// === impl CommandCaller ===

impl CommandCaller {
    pub(crate) fn new(settings: &Settings) -> CommandCaller {
        CommandCaller { settings: settings.clone() }
    }

    /// Runs the command, within the call's time. When it is cancelled, waits until it is gone; dropping the future
    /// ends it too.
    pub(crate) async fn call(
        &self,
        call: &Call,
        invocation: &Invocation,
        cancel: &CancellationToken,
    ) -> Result<Ended, Fault> {
        if cancel.is_cancelled() {
            return Ok(Ended { verdict: Verdict::Cancelled, code: None, output: String::new() });
        }
        let (order, scratch) = self.order(call, invocation)?;
        let lifeline = Arc::new(Mutex::new(Lifeline::default()));
        let cut = CutOnDrop(lifeline.clone());
        let entry = self.settings.entry.clone();
        let redactor = call.redactor.clone();
        let timeout = call.timeout;
        let mut task = tokio::task::spawn_blocking(move || {
            // Removed by the supervisor; this is for when that was killed.
            let _scratch = scratch;
            let report = supervised(&entry, &order, &lifeline)?;
            Ok(ended(report, &order, timeout, &redactor))
        });
        let ended = tokio::select! {
            biased;
            ended = &mut task => ended,
            () = cancel.cancelled() => {
                drop(cut);
                // Whatever an interrupted start complains about, it is the interruption.
                let cancelled = Ended { verdict: Verdict::Cancelled, code: None, output: String::new() };
                task.await.map(|ended| Ok(ended.unwrap_or(cancelled)))
            }
        };
        match ended {
            Ok(ended) => ended,
            Err(_) => Err(Fault::new(Reason::NotStarted, "the command's thread came to an end")),
        }
    }

    fn order(&self, call: &Call, invocation: &Invocation) -> Result<(Order, TempDir), Fault> {
        let settings = &self.settings;
        let support = settings.support;
        if let Some(missing) = support.missing()
            && !settings.allow_unsandboxed
        {
            let message = format!(
                "commands are not run here: the kernel has no {missing} to hold them with; the operator can \
                 run them all the same with --hooks-allow-unsandboxed"
            );
            return Err(Fault::new(Reason::NoSandbox, message));
        }
        let program = program::find(settings.directory.as_deref(), &invocation.program)?;
        let not_made = |fault: &dyn std::fmt::Display| {
            Fault::new(Reason::NotStarted, format!("no temporary directory could be made: {fault}"))
        };
        let place = settings.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let scratch = tempfile::Builder::new()
            .prefix("baton-hook-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place);
        let scratch = scratch.map_err(|fault| not_made(&fault))?;
        let user = rustix::process::getuid().is_root().then_some(settings.command_user);
        if let Some((user, group)) = user {
            chown(scratch.path(), Some(user), Some(group)).map_err(|fault| not_made(&fault))?;
        }
        let scratch_path = scratch.path().canonicalize().map_err(|fault| not_made(&fault))?;
        let limits = settings.limits.command.clone();
        let order = Order {
            name: invocation.program.clone(),
            arguments: invocation.arguments.clone(),
            environment: environment::all(call, invocation, &program.directory, &scratch_path)?,
            program: program.path,
            directory: program.directory,
            scratch: scratch_path,
            read: settings.read.clone(),
            user,
            milliseconds: u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX),
            // Enough that a secret cut in two at the beginning can be left out.
            keep: limits.output + RUN,
            limits,
            landlock: support.landlock,
            scopes: support.scopes,
            seccomp: support.seccomp,
            network: settings.command_network,
            protected: std::process::id().try_into().into_iter().collect(),
            tasks: 0,
        };
        Ok((order, scratch))
    }
}

// === impl CutOnDrop ===

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        let mut lifeline = self.0.lock();
        lifeline.cut = true;
        lifeline.pipe = None;
    }
}

/// Starts a supervisor and waits for its report.
fn supervised(entry: &Path, order: &Order, lifeline: &Mutex<Lifeline>) -> Result<Report, Fault> {
    let broken = |fault: io::Error| {
        Fault::new(Reason::NotStarted, format!("the sandbox could not be started: {fault}"))
    };
    let (input, mut pipe) = io::pipe().map_err(broken)?;
    let mut child = {
        let mut lifeline = lifeline.lock();
        if lifeline.cut {
            return Ok(Report { end: End::Abandoned, output: String::new(), cut: false });
        }
        let child = Command::new(entry)
            .args(sandbox::supervisor_arguments())
            .env_clear()
            .current_dir("/")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(broken)?;
        lifeline.pipe = Some(pipe.try_clone().map_err(broken)?);
        child
    };
    // A supervisor that ended already has closed its input: there will be no report.
    let _ = sandbox::write_order(&mut pipe, order);
    drop(pipe);
    let report = match child.stdout.take() {
        Some(output) => sandbox::read_report(output),
        None => Err(io::Error::other("it has no output")),
    };
    finish(&mut child, lifeline);
    report.map_err(|_| Fault::new(Reason::NotStarted, "the sandbox ended without a report"))
}

/// The supervisor ends after its report, or has ended.
fn finish(child: &mut Child, lifeline: &Mutex<Lifeline>) {
    lifeline.lock().pipe = None;
    let _ = child.wait();
}

fn ended(report: Report, order: &Order, timeout: Duration, redactor: &Redactor) -> Ended {
    let limit =
        |what: &str| Fault::new(Reason::LimitExceeded, format!("the command was ended: {what}")).verdict();
    let mebibytes = |bytes: u64| bytes >> 20;
    let limits = &order.limits;
    let (verdict, code) = match report.end {
        End::Exit(0) => (Verdict::Success, Some(0)),
        End::Exit(code) => {
            let fault = Fault::new(Reason::NonZeroExit, format!("the command ended with exit code {code}"));
            (fault.verdict(), Some(i64::from(code)))
        }
        End::Signal(libc::SIGXCPU) => {
            (limit(&format!("it used more than {} s of processor time", limits.cpu_seconds)), None)
        }
        End::Signal(libc::SIGXFSZ) => {
            (limit(&format!("it wrote a file of more than {} MiB", mebibytes(limits.disk))), None)
        }
        End::Signal(libc::SIGSYS) => (limit("it used a system call of a foreign architecture"), None),
        End::Signal(signal) => {
            let fault = Fault::new(Reason::Killed, format!("the command was ended by signal {signal}"));
            (fault.verdict(), None)
        }
        End::Late => (Verdict::Timeout { after: timeout }, None),
        End::Abandoned => (Verdict::Cancelled, None),
        End::TooMuchMemory => {
            (limit(&format!("its processes held more than {} MiB of memory", mebibytes(limits.memory))), None)
        }
        End::TooManyProcesses => {
            (limit(&format!("it ran more than {} processes and threads", limits.processes)), None)
        }
        End::TooMuchDisk => {
            let disk = mebibytes(limits.disk);
            (limit(&format!("its temporary directory grew over {disk} MiB, or was made unreadable")), None)
        }
        End::NotStarted(why) => {
            let fault = Fault::new(Reason::NotStarted, format!("the command could not be started: {why}"));
            (fault.verdict(), None)
        }
    };
    let cut = if report.cut { Cut::Before } else { Cut::Nowhere };
    let output = match verdict {
        Verdict::Success => String::new(),
        _ => redactor.redact_foreign(&report.output, cut),
    };
    Ended { verdict, code, output }
}
