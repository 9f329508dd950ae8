//! Makes calls.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::{Action, Call, Request};
use crate::command::CommandCaller;
use crate::http::{HttpCaller, Resolve, SystemResolver};
use crate::outcome::{Fault, Outcome, Verdict};
use crate::settings::Settings;

/// Makes the calls of hooks and checks, one at a time. How many at once is the [`crate::Gate`]'s business.
pub struct Runner {
    http: HttpCaller,
    command: CommandCaller,
    http_timeout: Duration,
    command_timeout: Duration,
}

/// What came of a call, before it is timed.
struct Finished {
    verdict: Verdict,
    code: Option<i64>,
    output: String,
}

// === impl Runner ===

impl Runner {
    /// A runner with an operator's settings. It reads the machine's certificate authorities, once.
    ///
    /// # Errors
    /// The file of further authorities cannot be used.
    pub fn new(settings: Settings) -> std::io::Result<Runner> {
        Runner::with_resolver(settings, Arc::new(SystemResolver))
    }

    /// The same with another way to find hosts.
    ///
    /// # Errors
    /// As for [`Runner::new`].
    pub fn with_resolver(mut settings: Settings, resolver: Arc<dyn Resolve>) -> std::io::Result<Runner> {
        settings.limits = settings.limits.within_maxima();
        Ok(Runner {
            http: HttpCaller::new(&settings, resolver)?,
            command: CommandCaller::new(&settings),
            http_timeout: settings.limits.http_timeout,
            command_timeout: settings.limits.command_timeout,
        })
    }

    /// Makes one attempt. `now` is the time it begins, for the record.
    ///
    /// # Guarantees
    /// It ends when the call's time is up or it is cancelled. Its connection is closed then, and its processes are
    /// gone. Dropping the future does the same, but does not wait for the processes.
    pub async fn run(&self, call: &Call, now: Timestamp, cancel: &CancellationToken) -> Outcome {
        let begun = Instant::now();
        let result = match &call.action {
            Action::Http(request) => self.call_http(call, request, cancel).await,
            Action::Command(invocation) => {
                let call = Call { timeout: call.timeout.min(self.command_timeout), ..call.clone() };
                match self.command.call(&call, invocation, cancel).await {
                    Ok(ended) => Finished { verdict: ended.verdict, code: ended.code, output: ended.output },
                    Err(fault) => Finished::from(fault),
                }
            }
        };
        Outcome {
            started: now,
            duration: begun.elapsed(),
            attempt: call.attempt,
            result: redacted(result.verdict, call),
            code: result.code,
            output: printable(&result.output),
        }
    }

    async fn call_http(&self, call: &Call, request: &Request, cancel: &CancellationToken) -> Finished {
        let after = call.timeout.min(self.http_timeout);
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Finished::from(Verdict::Cancelled),
            answer = tokio::time::timeout(after, self.http.call(call, request)) => answer,
        };
        match answer {
            Err(_) => Finished::from(Verdict::Timeout { after }),
            Ok(Err(fault)) => Finished::from(fault),
            Ok(Ok(answer)) => Finished {
                verdict: answer.fault.map_or(Verdict::Success, Fault::verdict),
                code: Some(i64::from(answer.status)),
                output: call.redactor.redact_foreign(&answer.excerpt, answer.cut),
            },
        }
    }
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

// === impl Finished ===

impl From<Verdict> for Finished {
    fn from(verdict: Verdict) -> Finished {
        Finished { verdict, code: None, output: String::new() }
    }
}

impl From<Fault> for Finished {
    fn from(fault: Fault) -> Finished {
        Finished::from(fault.verdict())
    }
}

/// The last look before a verdict leaves: messages quote errors of libraries and of the system.
fn redacted(verdict: Verdict, call: &Call) -> Verdict {
    let fault = |fault: Fault| Fault { message: call.redactor.redact(&fault.message), ..fault };
    match verdict {
        Verdict::Failure(inner) => Verdict::Failure(fault(inner)),
        Verdict::Refused(inner) => Verdict::Refused(fault(inner)),
        other => other,
    }
}

/// Somebody else's text, without what would move a terminal's cursor.
fn printable(text: &str) -> String {
    let keep = |char: char| if char.is_control() && !matches!(char, '\n' | '\t') { '\u{fffd}' } else { char };
    text.trim_end().chars().map(keep).collect()
}
