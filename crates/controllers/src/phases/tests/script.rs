//! A caller that does as it is told, and sees that every call was intended before it was made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_api::phase_status::HookState;
use baton_apiserver::Cluster;
use baton_hooks::{Fault, Outcome, Reason, Role, Verdict};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::world::stored_set;
use crate::clock::Clock;
use crate::phases::caller::{Caller, Prepared};

/// A call that was made.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) attempt: u32,
    pub(super) key: String,
}

#[derive(Default)]
struct State {
    made: Vec<Made>,
    waiting: VecDeque<(String, oneshot::Sender<Verdict>)>,
    /// What every call comes to at once.
    always: Option<Verdict>,
    dropped: usize,
    /// Calls that were not intended.
    wrong: Vec<String>,
}

/// The caller.
#[derive(Clone)]
pub(super) struct Script {
    cluster: Cluster,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

/// Counts calls that were ended before their time.
struct Watch(Arc<Mutex<State>>, bool);

impl Script {
    pub(super) fn new(cluster: Cluster, clock: Clock) -> Script {
        Script { cluster, clock, state: Arc::default() }
    }

    /// Has every call come to this at once.
    pub(super) fn always(&self, verdict: Verdict) {
        self.state.lock().always = Some(verdict);
    }

    pub(super) fn made(&self) -> Vec<Made> {
        self.state.lock().made.clone()
    }

    /// The names of the calls that were made, in order.
    pub(super) fn names(&self) -> Vec<String> {
        self.made().into_iter().map(|made| made.name).collect()
    }

    /// The calls that were not intended when they were made.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.state.lock().wrong.clone()
    }

    pub(super) fn dropped(&self) -> usize {
        self.state.lock().dropped
    }

    /// Ends the calls of this name that wait. Tells how many there were.
    pub(super) fn answer(&self, name: &str, verdict: Verdict) -> usize {
        let mut state = self.state.lock();
        let (now, later): (Vec<_>, Vec<_>) =
            state.waiting.drain(..).partition(|(waiting, _)| waiting == name);
        state.waiting = later.into();
        let heard = now.into_iter().filter(|(_, sender)| !sender.is_closed());
        heard.filter_map(|(_, sender)| sender.send(verdict.clone()).ok()).count()
    }
}

impl Caller for Script {
    fn call(&self, call: Prepared) -> BoxFuture<'static, Outcome> {
        self.was_intended(&call);
        let key = call.call.key.clone();
        let (sender, receiver) = oneshot::channel();
        let always = {
            let mut state = self.state.lock();
            state.made.push(Made {
                name: call.call.name.to_string(),
                attempt: key.attempt,
                key: call.call.idempotency_key.clone(),
            });
            if state.always.is_none() {
                state.waiting.push_back((call.call.name.to_string(), sender));
            }
            state.always.clone()
        };
        assert_ne!(&*call.call.name, "panics", "as it was told");
        let mut watch = Watch(self.state.clone(), false);
        let started = self.clock.now();
        async move {
            let result = match always {
                Some(verdict) => verdict,
                None => receiver.await.unwrap_or(Verdict::Cancelled),
            };
            watch.done();
            let duration = Duration::from_millis(5);
            Outcome { started, duration, attempt: key.attempt, result, code: None, output: String::new() }
        }
        .boxed()
    }
}

impl Script {
    /// Complains where the status that is stored at this moment does not say that the call is running.
    fn was_intended(&self, call: &Prepared) {
        if let Err(why) = self.intent(call) {
            self.state.lock().wrong.push(format!("{} for {:?}: {why}", call.call.name, call.call.key.target));
        }
    }

    fn intent(&self, call: &Prepared) -> Result<(), String> {
        let key = &call.call.key;
        let set = stored_set(&self.cluster, &call.set.name);
        let place = i64::try_from(key.generator).expect("a small number");
        let phases = set.status.phases.iter().find(|phases| phases.generator == place);
        let phases = phases.filter(|phases| *phases.rollout_id == *key.rollout).ok_or("no such rollout")?;
        let phase = &phases.phases[key.phase];
        let results = match key.role {
            Role::PreHook => &phase.pre_hooks,
            Role::PostHook => &phase.post_hooks,
            Role::Check => &phase.checks,
        };
        let intent = results.iter().find(|result| {
            *result.name == *call.call.name
                && *result.target == *key.target
                && result.attempt == i64::from(key.attempt)
        });
        let intent = intent.ok_or_else(|| format!("was not intended: {results:?}"))?;
        let is_so = intent.state == HookState::Running && intent.idempotency_key == call.call.idempotency_key;
        // A call for a target knows the target, and one for the phase knows none.
        let name = call.params.get("name").map(|name| name.to_string()).unwrap_or_default();
        let fits = name == *key.target && call.params.is_empty() == key.target.is_empty();
        (is_so && fits).then_some(()).ok_or_else(|| format!("is {intent:?}, with the name {name:?}"))
    }
}

impl Watch {
    fn done(&mut self) {
        self.1 = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.1 {
            self.0.lock().dropped += 1;
        }
    }
}

pub(super) fn broken() -> Verdict {
    let message = "the receiver answered 500, not 200".to_owned();
    Verdict::Failure(Fault { reason: Reason::UnexpectedStatus, message })
}
