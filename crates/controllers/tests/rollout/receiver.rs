//! Whom hooks and checks call: it answers as it was told to, and remembers every call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_controllers::{Caller, Clock, Prepared};
use baton_hooks::{Fault, Outcome, Reason, Role, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// A receiver. Clones are the same.
#[derive(Clone)]
pub(crate) struct Receiver {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    /// Of these names, so many calls fail.
    failing: BTreeMap<String, usize>,
    /// Calls of these names are not answered.
    silent: Vec<String>,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) phase: String,
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) role: Role,
    pub(crate) attempt: u32,
    pub(crate) key: String,
}

impl Receiver {
    pub(crate) fn new(clock: Clock) -> Receiver {
        Receiver { clock, state: Arc::default() }
    }

    /// Lets so many calls of a name fail.
    pub(crate) fn fail(&self, name: &str, times: usize) {
        self.state.lock().failing.insert(name.to_owned(), times);
    }

    /// Answers calls of a name, or does not.
    pub(crate) fn silence(&self, name: &str, silent: bool) {
        let mut state = self.state.lock();
        state.silent.retain(|known| known != name);
        if silent {
            state.silent.push(name.to_owned());
        }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    /// The calls as `phase/name`, in order; each once.
    pub(crate) fn order(&self) -> Vec<String> {
        let mut order: Vec<String> = Vec::new();
        for call in self.calls() {
            let told = format!("{}/{}", call.phase, call.name);
            if order.last() != Some(&told) {
                order.push(told);
            }
        }
        order
    }

    pub(crate) fn clear(&self) {
        self.state.lock().calls.clear();
    }
}

impl Caller for Receiver {
    fn call(&self, prepared: Prepared) -> BoxFuture<'static, Outcome> {
        let (key, name) = (&prepared.call.key, prepared.call.name.to_string());
        let (fails, silent) = {
            let mut state = self.state.lock();
            state.calls.push(Call {
                phase: prepared.call.phase.to_string(),
                name: name.clone(),
                target: key.target.to_string(),
                role: key.role,
                attempt: key.attempt,
                key: prepared.call.idempotency_key.clone(),
            });
            let left = state.failing.get_mut(&name).filter(|left| **left > 0);
            let fails = left.map(|left| *left -= 1).is_some();
            (fails, state.silent.contains(&name))
        };
        let (attempt, started) = (key.attempt, self.clock.now());
        async move {
            let duration = Duration::from_millis(200);
            tokio::time::sleep(duration).await;
            if silent {
                std::future::pending::<()>().await;
            }
            let fault =
                Fault { reason: Reason::UnexpectedStatus, message: "answered 500, not 200".to_owned() };
            let result = if fails { Verdict::Failure(fault) } else { Verdict::Success };
            Outcome { started, duration, attempt, result, code: Some(200), output: String::new() }
        }
        .boxed()
    }
}
