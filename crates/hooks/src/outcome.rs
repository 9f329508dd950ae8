//! What came of an attempt.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// One attempt at a hook or a check, after it.
///
/// # Guarantees
/// No text here holds a header, a body, an environment variable, a path or query of a URL, or a declared secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// Its number, from 1.
    pub attempt: u32,
    /// What came of it.
    pub result: Verdict,
    /// HTTP status, or exit code of the command.
    pub code: Option<i64>,
    /// The end of what the command printed, or the start of what the receiver answered, when it was no success.
    ///
    /// # Caveats
    /// It is somebody else's text. Declared secrets and credentials that are written out are taken out, and parts of them;
    /// what else a program or a receiver prints is not known.
    pub output: String,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It did what it should.
    Success,
    /// It ran and did not.
    Failure(Fault),
    /// It took longer than it may.
    Timeout {
        /// How long it may take.
        after: Duration,
    },
    /// Nobody waits for it any more.
    Cancelled,
    /// It was not run, or not to the end, because it may not.
    Refused(Fault),
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// In one word.
    pub reason: Reason,
    /// In words.
    pub message: String,
}

/// What went wrong, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The receiver answered with another status than expected.
    UnexpectedStatus,
    /// The host has no address.
    NameNotFound,
    /// No connection.
    ConnectionFailed,
    /// The receiver's certificate or TLS is not good.
    TlsFailed,
    /// The connection broke, or what came over it is not HTTP.
    ProtocolError,
    /// The receiver sent the call elsewhere, too often or where it may not go.
    BadRedirect,
    /// The address, or the scheme, may not be called.
    AddressNotAllowed,
    /// The command's exit code is not 0.
    NonZeroExit,
    /// The command was ended by a signal.
    Killed,
    /// The command used more than it may.
    LimitExceeded,
    /// The command could not be started.
    NotStarted,
    /// The program is not one that may be run.
    ProgramNotAllowed,
    /// The kernel cannot hold the command.
    NoSandbox,
    /// The configuration does not hold, once its templates are filled in.
    Invalid,
}

// === impl Outcome ===

impl Outcome {
    /// Whether it did what it should.
    pub fn is_success(&self) -> bool {
        self.result == Verdict::Success
    }
}

// === impl Verdict ===

impl Verdict {
    /// In one word, for status and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verdict::Success => "Success",
            Verdict::Failure(fault) | Verdict::Refused(fault) => fault.reason.as_str(),
            Verdict::Timeout { .. } => "Timeout",
            Verdict::Cancelled => "Cancelled",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Success => f.write_str("succeeded"),
            Verdict::Failure(fault) => f.write_str(&fault.message),
            Verdict::Timeout { after } => write!(f, "took longer than {}", shown(*after)),
            Verdict::Cancelled => f.write_str("cancelled"),
            Verdict::Refused(fault) => write!(f, "refused: {}", fault.message),
        }
    }
}

/// A duration as people write it: from a second on without the fractions that nobody asked for, and without the zeroes
/// at its end.
pub(crate) fn shown(duration: Duration) -> String {
    let unit = if duration < Duration::from_secs(1) { 1_000_000 } else { 1_000_000_000 };
    let rounded = (duration.as_nanos() + unit / 2) / unit * unit;
    let nanoseconds = i64::try_from(rounded).unwrap_or(i64::MAX);
    let mut text = baton_grammar::duration::Duration::from_nanoseconds(nanoseconds).to_string();
    for (zeroes, rest) in [("m0s", 1), ("h0m", 1)] {
        if text.ends_with(zeroes) {
            text.truncate(text.len() - zeroes.len() + rest);
        }
    }
    text
}

// === impl Fault ===

impl Fault {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Fault {
        Fault { reason, message: message.into() }
    }

    /// The verdict it leads to: what may not be is refused, the rest has failed.
    pub(crate) fn verdict(self) -> Verdict {
        match self.reason {
            Reason::AddressNotAllowed | Reason::ProgramNotAllowed | Reason::NoSandbox | Reason::Invalid => {
                Verdict::Refused(self)
            }
            _ => Verdict::Failure(self),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

// === impl Reason ===

impl Reason {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::UnexpectedStatus => "UnexpectedStatus",
            Reason::NameNotFound => "NameNotFound",
            Reason::ConnectionFailed => "ConnectionFailed",
            Reason::TlsFailed => "TlsFailed",
            Reason::ProtocolError => "ProtocolError",
            Reason::BadRedirect => "BadRedirect",
            Reason::AddressNotAllowed => "AddressNotAllowed",
            Reason::NonZeroExit => "NonZeroExit",
            Reason::Killed => "Killed",
            Reason::LimitExceeded => "LimitExceeded",
            Reason::NotStarted => "NotStarted",
            Reason::ProgramNotAllowed => "ProgramNotAllowed",
            Reason::NoSandbox => "NoSandbox",
            Reason::Invalid => "Invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_read_them() {
        for (nanoseconds, expected) in [
            (19_999_987_080, "20s"),
            (1_499_999_999, "1s"),
            (250_400_000, "250ms"),
            (300_000_000_000, "5m"),
            (5_400_000_000_001, "1h30m"),
            (10_800_000_000_000, "3h"),
        ] {
            let verdict = Verdict::Timeout { after: Duration::from_nanos(nanoseconds) };
            assert_eq!(verdict.to_string(), format!("took longer than {expected}"));
        }
    }
}
