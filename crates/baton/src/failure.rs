//! How a command ends when it does not succeed.

use std::fmt;

/// Exit code of wrong usage.
pub(crate) const USAGE: u8 = 1;
/// Exit code of work that waits for a person.
pub(crate) const WAITING: u8 = 2;
/// Exit code of work that could not be done.
pub(crate) const FAILED: u8 = 3;
/// Exit code of a difference or a finding.
pub(crate) const FINDING: u8 = 4;
/// Exit code of an API that refused or could not be reached.
pub(crate) const API: u8 = 20;

/// Why a command did not succeed, in words for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line asks for something impossible.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into() }
    }

    /// The work could not be done.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, message: message.into() }
    }

    /// A person has to say a word first.
    pub(crate) fn waiting(message: impl Into<String>) -> Failure {
        Failure { code: WAITING, message: message.into() }
    }

    /// There is a difference, or something to mend.
    pub(crate) fn finding(message: impl Into<String>) -> Failure {
        Failure { code: FINDING, message: message.into() }
    }

    /// The API refused, or could not be reached.
    pub(crate) fn api(message: impl Into<String>) -> Failure {
        Failure { code: API, message: message.into() }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<baton_apiserver::OpenError> for Failure {
    fn from(error: baton_apiserver::OpenError) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<baton_apiserver::ServeError> for Failure {
    fn from(error: baton_apiserver::ServeError) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<baton_apiserver::Rejected> for Failure {
    fn from(error: baton_apiserver::Rejected) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Failure {
        match &error {
            kube::Error::Api(status) if !status.message.is_empty() => Failure::api(status.message.clone()),
            _ => Failure::api(format!("cannot reach the cluster: {error}")),
        }
    }
}
