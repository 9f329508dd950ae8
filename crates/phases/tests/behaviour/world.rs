//! A small world for the machine to decide in: Applications that do as told, a status that is stored or not, and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_api::phase_status::{GeneratorPhases, HookResult, HookState, PhaseState, PhaseStatus};
use baton_api::phases::DeploymentStrategy;
use baton_hooks::{Finding, Language, Namespace, Outcome, Policy, Settings, Verdict};
use baton_phases::{
    Call, CallKey, CallResult, Compiled, Decision, Gate, Hold, Plan, Progress, Requests, Seen, Situation,
    Strategy, Target, compile, decide,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) const PATH: &str = "spec.generators[0].deploymentStrategy";

pub(crate) fn policy() -> Policy {
    Policy::new(&Settings::default(), Namespace::ControlPlane, Language::Params)
}

/// Reads phases, written as the value of `phases`.
pub(crate) fn compiled(phases: &str) -> Compiled {
    let text = format!("type: phaseDeployment\nphases:\n{phases}");
    compile(&strategy(&text), PATH, &policy())
}

pub(crate) fn strategy(text: &str) -> DeploymentStrategy {
    serde_saphyr::from_str(text).expect("a strategy")
}

pub(crate) fn plan(phases: &str) -> Plan {
    let compiled = compiled(phases);
    compiled.plan.unwrap_or_else(|| panic!("{:?}", compiled.findings))
}

pub(crate) fn target(name: &str, params: &[(&str, &str)]) -> Target {
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Target { name: name.into(), params: params.collect() }
}

/// Targets by name, with the label `env` that is the part of the name before the dash.
pub(crate) fn fleet(names: &[&str]) -> Vec<Target> {
    let one = |name: &&str| {
        let env = name.split('-').next().unwrap_or_default();
        target(name, &[("name", name), ("metadata.labels.env", env)])
    };
    names.iter().map(one).collect()
}

/// A phase over the targets of an environment, with more fields, each on a line of its own.
pub(crate) fn phase(name: &str, env: &str, more: &str) -> String {
    let more: String = more.lines().map(|line| format!("  {line}\n")).collect();
    format!("- name: {name}\n  targets: [{{values: {{env: {env}}}}}]\n{more}")
}

pub(crate) fn hook(name: &str, more: &str) -> String {
    format!("{{name: {name}, type: http, http: {{url: \"https://example.com/{name}\"}}{more}}}")
}

pub(crate) fn hook_per_target(name: &str, more: &str) -> String {
    format!("{{name: {name}, type: http, http: {{url: \"https://example.com/{{{{name}}}}\"}}{more}}}")
}

/// The world of one generator.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) rollout: String,
    pub(crate) targets: Vec<Target>,
    pub(crate) seen: BTreeMap<Arc<str>, Seen>,
    pub(crate) stored: Option<GeneratorPhases>,
    pub(crate) requests: Requests,
    /// The step of each, where there are any.
    pub(crate) steps: BTreeMap<Arc<str>, usize>,
    pub(crate) in_flight: BTreeMap<CallKey, Call>,
    pub(crate) results: Vec<CallResult>,
    pub(crate) hold: Hold,
    pub(crate) removed: Option<Option<Plan>>,
    pub(crate) invalid: Option<Vec<Finding>>,
    pub(crate) consistent: bool,
    pub(crate) now: Timestamp,
    /// Every call that was made, as often as it was.
    pub(crate) made: Vec<Call>,
    pub(crate) good: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl World {
    pub(crate) fn new(phases: &str, names: &[&str]) -> World {
        World {
            plan: plan(phases),
            rollout: "1-a-b".to_owned(),
            targets: fleet(names),
            seen: names.iter().map(|name| ((*name).into(), seen(Progress::NotStarted))).collect(),
            stored: None,
            requests: Requests::default(),
            steps: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            results: Vec::new(),
            hold: Hold::None,
            removed: None,
            invalid: None,
            consistent: true,
            now: Timestamp::from_second(1_800_000_000).expect("a time"),
            made: Vec::new(),
            good: BTreeSet::new(),
        }
    }

    /// What is decided now, without anything being done.
    pub(crate) fn look(&self) -> Decision {
        let in_flight = self.in_flight.keys().cloned().collect();
        decide(&Situation {
            set: "uid",
            generator: 0,
            kind: "clusters",
            strategy: match (&self.invalid, &self.removed) {
                (Some(findings), _) => Strategy::Invalid(findings),
                (None, Some(kept)) => Strategy::Removed(kept.as_ref()),
                (None, None) => Strategy::Wanted(&self.plan),
            },
            rollout: &self.rollout,
            amended: "",
            stored: self.stored.as_ref(),
            targets: &self.targets,
            seen: &self.seen,
            consistent: self.consistent,
            requests: &self.requests,
            steps: &self.steps,
            results: &self.results,
            in_flight: &in_flight,
            hold: self.hold,
            now: self.now,
        })
    }

    /// Decides, makes the calls, keeps what is good, and stores the status, in this order.
    pub(crate) fn tick(&mut self) -> Decision {
        let decision = self.act();
        self.stored.clone_from(&decision.status);
        self.results.clear();
        decision
    }

    /// The same without storing the status: somebody died before.
    pub(crate) fn act(&mut self) -> Decision {
        let decision = self.look();
        for key in &decision.cancel {
            self.in_flight.remove(key);
        }
        for call in &decision.calls {
            self.made.push(call.clone());
            self.in_flight.insert(call.key.clone(), call.clone());
        }
        self.good.extend(decision.good.iter().cloned());
        decision
    }

    /// Decides until nothing changes any more.
    pub(crate) fn settle(&mut self) -> Decision {
        for _ in 0..100 {
            let before = (self.stored.clone(), self.in_flight.clone());
            let decision = self.tick();
            if (self.stored.clone(), self.in_flight.clone()) == before {
                return decision;
            }
        }
        panic!("it does not come to rest: {:?}", self.stored);
    }

    /// Somebody else takes over: what was on its way is not known to them.
    pub(crate) fn crash(&mut self) {
        self.in_flight.clear();
        self.results.clear();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += SignedDuration::try_from(time).expect("a duration");
    }

    pub(crate) fn see(&mut self, name: &str, progress: Progress) {
        let touched = !matches!(progress, Progress::NotStarted | Progress::Stuck(_));
        let one = self.seen.entry(name.into()).or_insert_with(|| seen(Progress::NotStarted));
        one.touched |= touched;
        one.progress = progress;
    }

    /// Every Application that is let through becomes healthy, until there is nothing left to do by that.
    pub(crate) fn deploy(&mut self) -> Decision {
        loop {
            let decision = self.settle();
            let mut moved = false;
            for (name, gate) in &decision.gates {
                if let Gate::Open { .. } = gate
                    && !self.seen[name].progress.is_done()
                {
                    self.see(name, Progress::Done);
                    moved = true;
                }
            }
            if !moved {
                return decision;
            }
        }
    }

    pub(crate) fn fail(&mut self, name: &str) {
        self.see(name, Progress::Failed { reason: "SyncFailed".into(), message: "it broke".into() });
    }

    /// Answers the calls that are being made, by name.
    pub(crate) fn answer(&mut self, name: &str, verdict: Verdict) -> usize {
        let keys = self.in_flight.iter().filter(|(_, call)| *call.name == *name);
        let keys: Vec<CallKey> = keys.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.in_flight.remove(key);
            self.results
                .push(CallResult { key: key.clone(), outcome: outcome(self.now, key, verdict.clone()) });
        }
        keys.len()
    }

    pub(crate) fn pass(&mut self, name: &str) {
        assert!(self.answer(name, Verdict::Success) > 0, "{name} is not being called: {:?}", self.in_flight);
        self.settle();
    }

    /// Has a call fail as often as it is tried.
    pub(crate) fn break_down(&mut self, name: &str) {
        while self.answer(name, broken()) > 0 {
            let wake = self.settle().wake;
            // What is woken for after the last attempt is not the call.
            let goes_on = self.calling().is_empty() && self.is_tried_again(name);
            self.now = wake.filter(|_| goes_on).unwrap_or(self.now);
            self.settle();
        }
    }

    fn is_tried_again(&self, name: &str) -> bool {
        let phases = self.status().phases.iter();
        let mut results =
            phases.flat_map(|phase| phase.pre_hooks.iter().chain(&phase.checks).chain(&phase.post_hooks));
        results.any(|result| result.name == name && result.state == HookState::Retrying)
    }

    pub(crate) fn status(&self) -> &GeneratorPhases {
        self.stored.as_ref().expect("a status")
    }

    pub(crate) fn phase(&self, index: usize) -> &PhaseStatus {
        &self.status().phases[index]
    }

    pub(crate) fn state(&self, index: usize) -> PhaseState {
        self.phase(index).state.clone()
    }

    /// Names of the Applications that may be changed.
    pub(crate) fn open(&self) -> Vec<String> {
        let gates = self.look().gates;
        gates.iter().filter(|(_, gate)| gate.is_open()).map(|(name, _)| name.to_string()).collect()
    }

    /// Names of the calls that are being made, with their targets.
    pub(crate) fn calling(&self) -> Vec<String> {
        self.in_flight.values().map(title).collect()
    }

    /// How often a call was made.
    pub(crate) fn times(&self, name: &str) -> usize {
        self.made.iter().filter(|call| *call.name == *name).count()
    }
}

pub(crate) fn title(call: &Call) -> String {
    match &*call.key.target {
        "" => call.name.to_string(),
        target => format!("{}/{target}", call.name),
    }
}

pub(crate) fn seen(progress: Progress) -> Seen {
    Seen { progress, pin: "new".into(), touched: false, skipped: false, good: Some("old".into()) }
}

pub(crate) fn broken() -> Verdict {
    Verdict::Timeout { after: Duration::from_secs(1) }
}

pub(crate) fn outcome(now: Timestamp, key: &CallKey, result: Verdict) -> Outcome {
    let attempt = key.attempt;
    Outcome { started: now, duration: Duration::ZERO, attempt, result, code: None, output: String::new() }
}

/// The state of a result, by name and target.
pub(crate) fn state_of(results: &[HookResult], name: &str, target: &str) -> Option<HookState> {
    let found = results.iter().find(|result| result.name == name && result.target == target);
    found.map(|result| result.state.clone())
}
