//! How long runs, steps and waits took, and how the rollouts stand: read off the status, which is what people see too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::application_set::ApplicationSetStatus;
use baton_api::rollout_status::{Blocker, RolloutStatus, StepStatus};
use baton_traces::run::done_steps;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::cache::{Held, Known, ObjectKey};
use crate::leading::{Lead, WhileLeading};
use crate::namespaces::AllowedNamespaces;

/// From what a small fleet takes to what waits for a person over a weekend, in seconds.
const BUCKETS: [f64; 13] =
    [1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0];

/// The state of a run that a newer one took the place of.
const SUPERSEDED: &str = "Superseded";

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// How long what has come to an end took.
#[derive(Debug, Clone)]
pub(crate) struct Courses {
    runs: Durations<RunLabels>,
    steps: Durations<StepLabels>,
    waits: Durations<WaitLabels>,
    /// Which labels a set has left, to take them out when it goes.
    left: Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<Ended>>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    namespace: String,
    name: String,
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    namespace: String,
    name: String,
    step: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    reason: String,
}

/// What can come to an end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    Run(String),
    Step(i64),
    Wait(String),
}

/// What has come to an end between two statuses of a set, and how long it took.
fn ended(
    before: &ApplicationSetStatus,
    after: &ApplicationSetStatus,
    now: Timestamp,
) -> Vec<(Ended, Duration)> {
    let none = RolloutStatus::default();
    let known = before.rollout.as_ref().unwrap_or(&none);
    let next = after.rollout.as_ref().unwrap_or(&none);
    let mut ended = Vec::new();
    if known.run > 0 && known.run < next.run && known.finished_at.is_none() {
        ended.extend(took(&known.started_at, now).map(|took| (Ended::Run(SUPERSEDED.to_owned()), took)));
    }
    let same = Some(known).filter(|known| known.run == next.run);
    if let Some(Time(end)) = next.finished_at
        && same.is_none_or(|known| known.finished_at.is_none())
    {
        let state = next.state.as_str().to_owned();
        ended.extend(took(&next.started_at, end).map(|took| (Ended::Run(state), took)));
    }
    let was_done: BTreeSet<i64> =
        same.map(done_steps).unwrap_or_default().into_iter().map(|(step, ..)| step).collect();
    for (step, opened, end) in done_steps(next).into_iter().filter(|(step, ..)| !was_done.contains(step)) {
        ended.push((Ended::Step(step), span(opened, end)));
    }
    let waits = |blocker: &Blocker| (blocker.reason.clone(), blocker.object.clone());
    let still: BTreeSet<_> = next.blockers.iter().map(waits).collect();
    for blocker in known.blockers.iter().filter(|blocker| !still.contains(&waits(blocker))) {
        ended.extend(took(&blocker.since, now).map(|took| (Ended::Wait(blocker.reason.clone()), took)));
    }
    ended
}

fn took(begun: &Option<Time>, end: Timestamp) -> Option<Duration> {
    begun.as_ref().map(|Time(begun)| span(*begun, end))
}

/// Clocks may have been set back meanwhile.
fn span(begun: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(begun)).unwrap_or_default()
}

// === impl Courses ===

impl Courses {
    pub(super) fn registered(&self, registry: &mut Registry) {
        let help = "How long runs of rollouts took, by how they ended";
        registry.register_with_unit("run_duration", help, Unit::Seconds, self.runs.clone());
        let help = "How long steps of rollouts took from their opening until they were done";
        registry.register_with_unit("step_duration", help, Unit::Seconds, self.steps.clone());
        let help = "How long rollouts waited, by what they waited for";
        registry.register_with_unit("wait_duration", help, Unit::Seconds, self.waits.clone());
    }

    /// Measures what has come to an end with a write of a set's status.
    pub(super) fn observe(
        &self,
        key: &ObjectKey,
        before: &ApplicationSet,
        after: &ApplicationSet,
        now: Timestamp,
    ) {
        for (what, took) in ended(&before.status, &after.status, now) {
            let took = took.as_secs_f64();
            match &what {
                Ended::Run(state) => self.runs.get_or_create(&run_labels(key, state)).observe(took),
                Ended::Step(step) => self.steps.get_or_create(&step_labels(key, *step)).observe(took),
                Ended::Wait(reason) => {
                    self.waits.get_or_create(&WaitLabels { reason: reason.clone() }).observe(took);
                }
            }
            self.left.lock().entry(key.clone()).or_default().insert(what);
        }
    }

    /// A set that is gone is measured no more.
    pub(super) fn forget(&self, key: &ObjectKey) {
        for what in self.left.lock().remove(key).unwrap_or_default() {
            match what {
                Ended::Run(state) => drop(self.runs.remove(&run_labels(key, &state))),
                Ended::Step(step) => drop(self.steps.remove(&step_labels(key, step))),
                Ended::Wait(_) => {}
            }
        }
    }
}

impl Default for Courses {
    fn default() -> Courses {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        Courses {
            runs: Family::new_with_constructor(buckets),
            steps: Family::new_with_constructor(buckets),
            waits: Family::new_with_constructor(buckets),
            left: Arc::default(),
        }
    }
}

fn run_labels(key: &ObjectKey, state: &str) -> RunLabels {
    RunLabels { namespace: key.namespace.to_string(), name: key.name.to_string(), state: state.to_owned() }
}

fn step_labels(key: &ObjectKey, step: i64) -> StepLabels {
    StepLabels { namespace: key.namespace.to_string(), name: key.name.to_string(), step }
}

/// Looks at the rollouts whenever it is asked.
struct Standing {
    known: Arc<Known>,
    allowed: AllowedNamespaces,
}

/// Adds how rollouts stand.
pub(crate) fn register_standing(
    registry: &mut Registry,
    known: Arc<Known>,
    allowed: AllowedNamespaces,
    lead: &Lead,
) {
    let told = Standing { known, allowed };
    registry.register_collector(Box::new(WhileLeading { lead: lead.clone(), told }));
}

/// One value of a family, and its labels.
type Line = (Vec<(&'static str, String)>, i64);

impl Collector for Standing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sets: Vec<_> = {
            let sets = self.known.sets.lock();
            let whole = sets.all().filter(|(key, _)| self.allowed.contains(&key.namespace));
            let whole = whole.filter_map(|(key, held)| match held {
                Held::Whole(set) => Some((key.clone(), set.clone())),
                Held::Unreadable { .. } => None,
            });
            whole.collect()
        };
        let mut states = Vec::new();
        let mut steps = Vec::new();
        let mut applications = Vec::new();
        let mut waits = Vec::new();
        let mut phases = Vec::new();
        for (key, set) in &sets {
            let of = |more: &[(&'static str, String)]| {
                let own = [("namespace", key.namespace.to_string()), ("name", key.name.to_string())];
                own.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>()
            };
            if let Some(rollout) = set.status.rollout.as_ref().filter(|rollout| rollout.run > 0) {
                states.push((of(&[("state", rollout.state.as_str().to_owned())]), 1));
                steps.push((of(&[]), rollout.step));
                for (state, count) in counts(&rollout.steps) {
                    applications.push((of(&[("state", state.to_owned())]), count));
                }
                for (reason, since) in oldest(&rollout.blockers) {
                    waits.push((of(&[("reason", reason.to_owned())]), since.as_second()));
                }
            }
            for generator in &set.status.phases {
                for phase in &generator.phases {
                    let place = generator.generator.to_string();
                    let state = phase.state.as_str().to_owned();
                    let more = [("generator", place), ("phase", phase.name.clone()), ("state", state)];
                    phases.push((of(&more), 1));
                }
            }
        }
        let mut family = |name: &str, help: &str, lines: &[Line]| {
            let kind = ConstGauge::new(0_i64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in lines {
                ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
            }
            Ok::<(), fmt::Error>(())
        };
        family("baton_rollout_state", "The state each rollout is in", &states)?;
        family("baton_rollout_step", "The open step of each rollout, counted from 1", &steps)?;
        family("baton_rollout_applications", "Applications in steps of rollouts, by state", &applications)?;
        let help = "Since when each rollout waits, in seconds since 1970, by what it waits for";
        family("baton_rollout_waiting_since_seconds", help, &waits)?;
        family("baton_phase_state", "The state each phase is in", &phases)
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}

/// How many Applications of all steps are how far.
fn counts(steps: &[StepStatus]) -> [(&'static str, i64); 4] {
    let sum = |of: fn(&StepStatus) -> i64| steps.iter().map(of).sum::<i64>();
    let (total, done) = (sum(|step| step.total), sum(|step| step.done));
    let (updating, failed) = (sum(|step| step.updating), sum(|step| step.failed));
    let waiting = (total - done - updating - failed).max(0);
    [("done", done), ("updating", updating), ("failed", failed), ("waiting", waiting)]
}

/// For each reason the time of the wait that has lasted longest.
fn oldest(blockers: &[Blocker]) -> BTreeMap<&str, Timestamp> {
    let mut oldest = BTreeMap::new();
    for blocker in blockers {
        let Some(Time(since)) = blocker.since else { continue };
        let known = oldest.entry(blocker.reason.as_str()).or_insert(since);
        *known = since.min(*known);
    }
    oldest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(rollout: serde_json::Value) -> ApplicationSetStatus {
        serde_json::from_value(json!({"rollout": rollout})).expect("a status")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn seconds(ended: Vec<(Ended, Duration)>) -> Vec<(Ended, u64)> {
        ended.into_iter().map(|(what, took)| (what, took.as_secs())).collect()
    }

    #[test]
    fn what_has_ended_is_told_once_with_how_long_it_took() {
        let wait = json!({"reason": "Unhealthy", "object": "a", "since": "1970-01-01T00:00:20Z"});
        let begun = json!({
            "run": 1, "state": "Progressing", "startedAt": "1970-01-01T00:00:10Z", "blockers": [wait],
            "steps": [{"step": 1, "openedAt": "1970-01-01T00:00:12Z"}, {"step": 2}, {"step": -1}],
        });
        let mut opened = begun.clone();
        opened["steps"][0]["state"] = json!("Complete");
        opened["steps"][1]["openedAt"] = json!("1970-01-01T00:00:42Z");
        opened["blockers"] = json!([{"reason": "Soaking", "object": "1", "since": "1970-01-01T00:00:42Z"}]);
        let mut done = opened.clone();
        (done["state"], done["finishedAt"]) = (json!("Complete"), json!("1970-01-01T00:01:10Z"));
        done["blockers"] = json!([]);
        done["steps"][1]["state"] = json!("Complete");
        let none = ApplicationSetStatus::default();
        let [begun, opened, done] = [begun, opened, done].map(status);
        assert_eq!(ended(&none, &begun, at(10)), []);
        let first = [(Ended::Step(1), 30), (Ended::Wait("Unhealthy".to_owned()), 25)];
        assert_eq!(seconds(ended(&begun, &opened, at(45))), first);
        assert_eq!(ended(&opened, &opened, at(50)), []);
        let last = [
            (Ended::Run("Complete".to_owned()), 60),
            (Ended::Step(2), 28),
            (Ended::Wait("Soaking".to_owned()), 28),
        ];
        assert_eq!(seconds(ended(&opened, &done, at(70))), last);
        assert_eq!(ended(&done, &done, at(80)), []);
    }

    #[test]
    fn a_run_that_another_took_the_place_of_has_ended_too() {
        let run = |number: i64| {
            status(json!({"run": number, "state": "Progressing", "startedAt": "1970-01-01T00:00:10Z"}))
        };
        let superseded = [(Ended::Run(SUPERSEDED.to_owned()), 90)];
        assert_eq!(seconds(ended(&run(1), &run(2), at(100))), superseded);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_negative() {
        let begun =
            status(json!({"run": 1, "blockers": [{"reason": "Paused", "since": "1970-01-01T00:01:00Z"}]}));
        let over = status(json!({"run": 1}));
        assert_eq!(seconds(ended(&begun, &over, at(1))), [(Ended::Wait("Paused".to_owned()), 0)]);
    }

    #[test]
    fn a_set_that_is_gone_leaves_nothing() {
        let (courses, mut registry) = (Courses::default(), Registry::default());
        courses.registered(&mut registry);
        let key = ObjectKey::new("argocd", "web");
        let set = |rollout| {
            let metadata = json!({"name": "web", "namespace": "argocd"});
            let set = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata,
                "spec": {"generators": [], "template": {"metadata": {"name": "a"}, "spec": {"project": "default", "destination": {}}}},
                "status": {"rollout": rollout},
            });
            serde_json::from_value::<ApplicationSet>(set).expect("a set")
        };
        let begun = set(json!({"run": 1, "startedAt": "1970-01-01T00:00:10Z"}));
        let ended = set(json!({
            "run": 1, "state": "Failed", "startedAt": "1970-01-01T00:00:10Z", "finishedAt": "1970-01-01T00:00:15Z",
        }));
        courses.observe(&key, &begun, &ended, at(15));
        let text = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
            text
        };
        let line = r#"run_duration_seconds_sum{namespace="argocd",name="web",state="Failed"} 5.0"#;
        assert!(text().contains(line), "{}", text());
        courses.forget(&key);
        assert!(!text().contains("web"), "{}", text());
    }
}
