//! What the parts of the sandbox tell each other: one line of JSON each way.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::CommandLimits;

/// Longest line; arguments, environment and output are bounded well below.
const LONGEST: u64 = 16 << 20;

/// What is to be run, and how it is held. It holds secrets and is never printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its name for itself.
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// All its environment.
    pub(crate) environment: Vec<(String, String)>,
    /// The operator's directory, in which it runs.
    pub(crate) directory: PathBuf,
    /// Its own directory for temporary files.
    pub(crate) scratch: PathBuf,
    /// What else it may read.
    pub(crate) read: Vec<PathBuf>,
    /// User and group it runs as, if not this process's.
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) limits: CommandLimits,
    /// How long it may run.
    pub(crate) milliseconds: u64,
    /// Bytes of its output that are kept.
    pub(crate) keep: usize,
    pub(crate) landlock: bool,
    pub(crate) scopes: bool,
    pub(crate) seccomp: bool,
    pub(crate) network: bool,
    /// Processes it must not be able to signal, whatever Landlock can do.
    pub(crate) protected: Vec<i32>,
    /// How many tasks its user may have; the supervisor finds out.
    pub(crate) tasks: u64,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) end: End,
    /// The end of what it printed.
    pub(crate) output: String,
    /// Whether it printed more.
    pub(crate) cut: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    Late,
    /// Nobody wants it any more.
    Abandoned,
    TooMuchMemory,
    TooManyProcesses,
    TooMuchDisk,
    NotStarted(String),
}

pub(crate) fn write<T: Serialize>(mut to: impl Write, value: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

pub(crate) fn read<T: for<'de> Deserialize<'de>>(from: impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line)?;
    // The message of the JSON reader may quote what it read.
    serde_json::from_slice(&line).map_err(|_| io::Error::other("the line cannot be read"))
}

/// Gives a supervisor its order.
pub(crate) fn write_order(to: impl Write, order: &Order) -> io::Result<()> {
    write(to, order)
}

/// Reads a supervisor's report to the end.
pub(crate) fn read_report(from: impl Read) -> io::Result<Report> {
    read(io::BufReader::new(from))
}
