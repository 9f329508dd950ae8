//! Holds a command while it runs.
//!
//! Nothing that must happen between `fork` and `exec` can be written without `unsafe` code, and little of it is
//! safe to do there in a process with threads. So this program starts itself anew, twice:
//!
//! ```text
//! controller ── supervisor (own session, reaps every orphan below it)
//!                   └── cell (limits, no privileges, Landlock, seccomp) ── exec ── the command
//!                                                                                   └── whatever it starts
//! ```
//!
//! The **supervisor** is what makes "killed with all its children" true: it is a *child subreaper*,
//! so a process that calls `setsid`, or whose parent ends, becomes its child and not init's. It ends when it has no
//! child left. Its input is a lifeline: when the controller cancels, crashes or is killed, the pipe closes and
//! everything below goes. It also watches what all processes together use, which limits per process cannot.
//!
//! The **cell** restricts itself and becomes the command. What it needs comes through its input, so that
//! no secret stands on a command line.
//!
//! A program that uses this crate calls [`enter_if_asked`] first thing in `main`.

mod cell;
mod fence;
mod filter;
mod order;
mod rlimits;
mod supervise;
mod tree;

use std::ffi::OsStr;
use std::process::ExitCode;

pub(crate) use order::{End, Order, Report, read_report, write_order};

/// First argument of a program that is to be a supervisor or a cell.
const ASK: &str = "baton-hooks-sandbox";

/// What the kernel can do to hold a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// Landlock: which files a command sees.
    pub landlock: bool,
    /// Landlock's scopes: signals stay inside (kernel 6.12).
    pub scopes: bool,
    /// Seccomp filters: which system calls it has.
    pub seccomp: bool,
}

/// What a program started as a part of the sandbox is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Supervisor,
    Cell,
}

/// If this process was started as a part of the sandbox, is that part, and gives the code to exit with.
///
/// Call it before anything else in `main`: before threads, before arguments and the environment are looked at.
pub fn enter_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(ASK)) {
        return None;
    }
    let part = arguments.next()?;
    let part = [Part::Supervisor, Part::Cell].into_iter().find(|known| part == known.name());
    Some(match part {
        Some(Part::Supervisor) => supervise::supervise(),
        Some(Part::Cell) => cell::enter(),
        None => ExitCode::FAILURE,
    })
}

// === impl Support ===

impl Support {
    /// Asks the kernel.
    pub fn detect() -> Support {
        Support {
            landlock: fence::is_supported(),
            scopes: fence::has_scopes(),
            seccomp: filter::is_supported(),
        }
    }

    /// Whether a command can be held as it should.
    pub fn is_enough(self) -> bool {
        self.landlock && self.seccomp
    }

    /// What is missing, in words; none if nothing is.
    pub fn missing(self) -> Option<&'static str> {
        match (self.landlock, self.seccomp) {
            (true, true) => None,
            (false, true) => Some("Landlock"),
            (true, false) => Some("seccomp filters"),
            (false, false) => Some("Landlock and seccomp filters"),
        }
    }
}

// === impl Part ===

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Supervisor => "supervisor",
            Part::Cell => "cell",
        }
    }

    /// The arguments that make a program this part.
    fn arguments(self) -> [&'static str; 2] {
        [ASK, self.name()]
    }
}

/// The arguments that make a program a supervisor.
pub(crate) fn supervisor_arguments() -> [&'static str; 2] {
    Part::Supervisor.arguments()
}
