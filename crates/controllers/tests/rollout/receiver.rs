//! Whom hooks and checks call: it answers as it was told to, and remembers every call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_apiserver::Cluster;
use baton_controllers::{Caller, Clock, Prepared};
use baton_hooks::{Fault, Outcome, Reason, Role, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

/// A receiver. Clones are the same.
#[derive(Clone)]
pub(crate) struct Receiver {
    clock: Clock,
    control: Cluster,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    /// Of these names, so many calls fail.
    failing: BTreeMap<String, usize>,
    /// Calls of these names are not answered.
    silent: Vec<String>,
    /// Calls that were ended from the other side, and the revision of the control plane then.
    dropped: Vec<(String, u64)>,
}

/// Sees a call end before its time.
struct Watch {
    receiver: Receiver,
    name: String,
    is_over: bool,
}

impl Watch {
    fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            let revision = self.receiver.control.store().revision();
            self.receiver.state.lock().dropped.push((std::mem::take(&mut self.name), revision));
        }
    }
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
    /// Of each parameter, what a Go template takes it for.
    pub(crate) kinds: BTreeMap<String, String>,
}

impl Receiver {
    pub(crate) fn new(clock: Clock, control: Cluster) -> Receiver {
        Receiver { clock, control, state: Arc::default() }
    }

    /// Calls that were ended from the other side, and the revision of the control plane then.
    pub(crate) fn dropped(&self) -> Vec<(String, u64)> {
        self.state.lock().dropped.clone()
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
        let kinds = prepared.params.snapshot().into_iter();
        let kinds = kinds.map(|(key, value)| (key.to_string(), value.type_name().to_owned())).collect();
        let (fails, silent) = {
            let mut state = self.state.lock();
            state.calls.push(Call {
                phase: prepared.call.phase.to_string(),
                name: name.clone(),
                target: key.target.to_string(),
                role: key.role,
                attempt: key.attempt,
                key: prepared.call.idempotency_key.clone(),
                kinds,
            });
            let left = state.failing.get_mut(&name).filter(|left| **left > 0);
            let fails = left.map(|left| *left -= 1).is_some();
            (fails, state.silent.contains(&name))
        };
        let (attempt, started) = (key.attempt, self.clock.now());
        let mut watch = Watch { receiver: self.clone(), name, is_over: false };
        async move {
            let duration = Duration::from_millis(200);
            tokio::time::sleep(duration).await;
            if silent {
                std::future::pending::<()>().await;
            }
            watch.over();
            let fault =
                Fault { reason: Reason::UnexpectedStatus, message: "answered 500, not 200".to_owned() };
            let result = if fails { Verdict::Failure(fault) } else { Verdict::Success };
            Outcome { started, duration, attempt, result, code: Some(200), output: String::new() }
        }
        .boxed()
    }
}
