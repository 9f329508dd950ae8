//! How a command ends when it does not succeed.

use std::fmt;

use crate::terminal;

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

    /// Says it at the end. A difference or a finding is a result and no error.
    pub(crate) fn tell(&self) {
        match self.code {
            FINDING => terminal::remark(&self.message),
            _ => terminal::complain(&format!("error: {self}")),
        }
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

impl From<baton_lag::ServeError> for Failure {
    fn from(error: baton_lag::ServeError) -> Failure {
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
        let at = crate::connection::server().map(|server| format!(" at {server}")).unwrap_or_default();
        match &error {
            kube::Error::Api(status) if status.code == 401 => Failure::api(format!(
                "the cluster{at} does not know who asks ({}): renew the credentials of the kubeconfig",
                status.message
            )),
            kube::Error::Api(status) if status.code == 404 && is_of_kind(&status.message) => {
                Failure::api(format!(
                    "the cluster{at} does not have the kind that is asked for ({}): `baton crds | kubectl apply --server-side \
                     -f -` defines those of Baton",
                    status.message.trim()
                ))
            }
            kube::Error::Api(status) if !status.message.is_empty() => Failure::api(status.message.clone()),
            kube::Error::SerdeError(cause) => {
                Failure::api(format!("what the cluster{at} answered cannot be read: {cause}"))
            }
            _ => {
                let cause = cause(&error);
                let advice = advice(&cause);
                Failure::api(format!("cannot reach the cluster{at}: {cause}{advice}"))
            }
        }
    }
}

/// Whether an answer says that there is no such kind, rather than no such object.
fn is_of_kind(message: &str) -> bool {
    message.contains("could not find the requested resource") || message.contains("page not found")
}

/// What is behind an error: those around it only say that something failed.
fn cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}

/// What a person can do about it.
fn advice(cause: &str) -> &'static str {
    let has = |part: &str| cause.contains(part);
    if has("Connection refused") {
        "; nothing listens there: is it running, and is this the right kubeconfig (--kubeconfig, --context)?"
    } else if has("UnknownIssuer") || has("BadSignature") || has("NotValidForName") {
        "; its certificate is not one that the kubeconfig trusts: is this the kubeconfig of another cluster, or an old one?"
    } else if has("alert") || has("CertificateRequired") {
        "; it does not accept the client certificate of the kubeconfig: is it of another cluster, or an old one?"
    } else if has("timed out") || has("deadline") || has("elapsed") {
        "; nothing answers there in time"
    } else if has("lookup") || has("resolve") {
        "; its name is not known here: is the address in the kubeconfig right?"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failure_is_told_and_not_what_is_around_it() {
        let refused = std::io::Error::from_raw_os_error(111);
        let around = kube::Error::Service(Box::new(refused));
        let told = Failure::from(around);
        assert_eq!(told.code(), API);
        assert!(told.to_string().contains("Connection refused"), "{told}");
        assert!(told.to_string().contains("is it running"), "{told}");
        for (cause, part) in [
            ("invalid peer certificate: UnknownIssuer", "another cluster"),
            ("received fatal alert: CertificateUnknown", "client certificate"),
            ("operation timed out", "in time"),
        ] {
            assert!(advice(cause).contains(part), "{cause}");
        }
        assert_eq!(advice("something else"), "");
    }
}
