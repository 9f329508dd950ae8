//! What each generator's phases come to: everything that is known is put before `baton_phases::decide`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::phase_status::GeneratorPhases;
use baton_api::phases::DeploymentStrategy;
use baton_generators::kinds;
use baton_hooks::{Finding, Severity};
use baton_phases::identity::Identity;
use baton_phases::{
    CallKey, CallResult, Decision, Hold, Notice, Plan, Progress, Seen, Situation, Strategy, Target, decide,
    details, identity, misplaced,
};

use super::calls::Ended;
use super::memory::Memory;
use super::names::Owner;
use super::plans::{LanguagePolicy, Plans, Read, generator_path, phased};
use super::sides::{DETAILS, STRATEGY, Text};
use super::told::Round;

/// Most findings that are told of one generator.
const MOST_FINDINGS: usize = 20;

/// What one generator's phases come to.
pub(super) struct Judged {
    pub(super) generator: usize,
    pub(super) decision: Decision,
    /// How it is, or was, written.
    pub(super) written: Option<Arc<DeploymentStrategy>>,
    /// How many good states of each Application are kept beside the newest.
    pub(super) history: usize,
    /// What goes into the status of the set.
    pub(super) status: Option<GeneratorPhases>,
    /// What is to be kept beside the set.
    pub(super) sides: BTreeMap<String, Text>,
}

/// What all generators of a set are judged by.
pub(super) struct Court<'a> {
    pub(super) set: &'a ApplicationSet,
    pub(super) owner: Owner<'a>,
    pub(super) round: &'a Round<'a>,
    pub(super) hold: Hold,
    pub(super) policy: &'a LanguagePolicy,
    pub(super) in_flight: &'a BTreeSet<CallKey>,
    pub(super) ended: &'a [Ended],
}

/// How a generator is to be deployed, as far as it is known.
enum Known {
    Wanted(Arc<Plan>),
    Invalid(Vec<Finding>),
    Removed(Option<Arc<Plan>>),
}

impl Court<'_> {
    /// Judges every generator that has, or had, phases.
    pub(super) fn judge(&self, memory: &mut Memory, plans: &mut Plans) -> Vec<Judged> {
        let places: BTreeSet<usize> =
            phased(self.set).into_iter().chain(self.round.targets.keys().copied()).collect();
        places.into_iter().map(|generator| self.judge_one(generator, memory, plans)).collect()
    }

    fn judge_one(&self, generator: usize, memory: &mut Memory, plans: &mut Plans) -> Judged {
        let (round, owner) = (self.round, self.owner);
        let targets = round.targets.get(&generator).map(Vec::as_slice).unwrap_or_default();
        let (known, read, mut notices) = self.strategy(generator, memory, plans);
        let begin = owner.begin(generator);
        let stored = memory.whole(generator, &begin);
        let is_of_others = stored.is_some_and(|stored| identity::is_of_others(stored, targets));
        let id = stored
            .map(|stored| Identity { rollout: stored.rollout_id.clone(), amended: stored.amended.clone() });
        let id = match &known {
            Known::Wanted(plan) => {
                let own = id.as_ref().filter(|_| !is_of_others);
                identity::follow(own, plan, round.run, &self.pins(targets))
            }
            Known::Invalid(_) | Known::Removed(_) => id.unwrap_or_default(),
        };
        let seen = self.seen(targets, memory, identity::run_of(&id.rollout).unwrap_or(0));
        // What is open is finished as what it was begun as; whether there is something newer tells who is let go after it.
        let id = match &known {
            Known::Removed(_) => identity::follow_removed(&id, round.run, &self.pins(targets)),
            Known::Wanted(_) | Known::Invalid(_) => id,
        };
        let stored = memory.whole(generator, &begin);
        let kind = self.set.spec.generators.get(generator).and_then(|it| kinds(it).first().copied());
        let kind = kind.or(stored.map(|stored| stored.generator_type.as_str())).unwrap_or_default();
        let in_flight = self.in_flight.iter().filter(|key| key.generator == generator).cloned().collect();
        let results = self.ended.iter().filter(|ended| ended.result.key.generator == generator);
        let results: Vec<CallResult> = results.map(|ended| ended.result.clone()).collect();
        let mut decision = decide(&Situation {
            set: owner.uid,
            generator,
            kind,
            strategy: match &known {
                Known::Wanted(plan) => Strategy::Wanted(plan),
                Known::Invalid(findings) => Strategy::Invalid(findings),
                Known::Removed(plan) => Strategy::Removed(plan.as_deref()),
            },
            rollout: &id.rollout,
            amended: &id.amended,
            stored,
            targets,
            seen: &seen,
            consistent: round.consistent,
            requests: &round.requests,
            steps: round.steps,
            results: &results,
            in_flight: &in_flight,
            hold: self.hold,
            now: round.now,
        });
        notices.append(&mut decision.notices);
        decision.notices = notices;
        let changed = decision.status.as_ref() != stored;
        let (status, mut sides) = match &decision.status {
            None => (None, BTreeMap::new()),
            // What was stored is as small as it was.
            Some(_) if !changed => self.as_stored(generator, memory, &begin),
            Some(whole) => {
                let split = details::split(whole, &owner.base());
                let sides = split.objects.into_iter();
                let sides = sides.map(|side| (side.name, Text { key: DETAILS, text: side.text.into() }));
                (Some(split.status), sides.collect())
            }
        };
        self.keep_strategy(generator, &known, read.as_ref(), memory, &mut sides);
        if decision.status.is_none() {
            sides.clear();
        }
        let history = match &known {
            Known::Wanted(plan) | Known::Removed(Some(plan)) => plan.history,
            Known::Invalid(_) | Known::Removed(None) => usize::MAX,
        };
        let written = read.map(|read| read.written);
        Judged { generator, decision, written, history, status, sides }
    }

    fn as_stored(
        &self,
        generator: usize,
        memory: &Memory,
        begin: &str,
    ) -> (Option<GeneratorPhases>, BTreeMap<String, Text>) {
        let place = i64::try_from(generator).unwrap_or(i64::MAX);
        let stored = self.set.status.phases.iter().find(|phases| phases.generator == place).cloned();
        let sides = memory.sides.named(begin).map(|(name, text)| (name.clone(), text.clone()));
        (stored, sides.collect())
    }

    /// How a rollout was to go is kept for as long as it goes on, should the field be removed.
    fn keep_strategy(
        &self,
        generator: usize,
        known: &Known,
        read: Option<&Read>,
        memory: &Memory,
        sides: &mut BTreeMap<String, Text>,
    ) {
        let name = self.owner.strategy_name(generator);
        let text = match known {
            Known::Wanted(_) => read.and_then(|read| read.text.clone()),
            Known::Invalid(_) | Known::Removed(_) => memory.sides.text(&name, STRATEGY).cloned(),
        };
        match text {
            Some(text) => drop(sides.insert(name, Text { key: STRATEGY, text })),
            None => drop(sides.remove(&name)),
        }
    }

    /// How a generator is to be deployed, as it is written, and what people should know of that.
    fn strategy(
        &self,
        generator: usize,
        memory: &Memory,
        plans: &mut Plans,
    ) -> (Known, Option<Read>, Vec<Notice>) {
        let it = self.set.spec.generators.get(generator);
        let wrong = it.map(|it| misplaced(it, &generator_path(generator))).unwrap_or_default();
        let Some(strategy) = it.and_then(|it| it.deployment_strategy.as_ref()) else {
            if !wrong.is_empty() {
                return (Known::Invalid(wrong), None, Vec::new());
            }
            let kept = memory.sides.text(&self.owner.strategy_name(generator), STRATEGY);
            let kept = kept.and_then(|text| serde_json::from_str::<DeploymentStrategy>(text).ok());
            let read = kept.map(|kept| plans.read(generator, &kept, self.policy));
            let plan = read.as_ref().and_then(|read| read.plan.clone());
            return (Known::Removed(plan), read, Vec::new());
        };
        let read = plans.read(generator, strategy, self.policy);
        let warnings = read.findings.iter().filter(|finding| !finding.is_error()).take(MOST_FINDINGS);
        let warnings = warnings.map(|finding| Notice {
            severity: Severity::Warning,
            reason: "DoubtfulPhaseConfig",
            message: finding.to_string(),
        });
        let warnings = warnings.collect();
        match read.plan.clone() {
            Some(plan) if wrong.is_empty() => (Known::Wanted(plan), Some(read), warnings),
            _ => {
                let errors = read.findings.iter().filter(|finding| finding.is_error()).cloned();
                let findings = wrong.into_iter().chain(errors).take(MOST_FINDINGS).collect();
                (Known::Invalid(findings), Some(read), warnings)
            }
        }
    }

    fn pins(&self, targets: &[Target]) -> BTreeMap<Arc<str>, Arc<str>> {
        let pin = |target: &Target| Some((target.name.clone(), self.round.pins.get(&target.name)?.clone()));
        targets.iter().filter_map(pin).collect()
    }

    /// How far each target is in the rollout that began with the run `first`. What an earlier rollout has left under way
    /// has not started in this one.
    fn seen(&self, targets: &[Target], memory: &Memory, first: u64) -> BTreeMap<Arc<str>, Seen> {
        let seen = |target: &Target| {
            let app = self.round.seen.get(&target.name)?;
            let touched = app.touched.is_some_and(|run| run >= first);
            let progress = match &app.progress {
                Progress::UnderWay if !touched => Progress::NotStarted,
                progress => progress.clone(),
            };
            // The pin of the run, also of one that is being put back to another.
            let of_run = self.round.pins.get(&target.name).unwrap_or(&app.pin);
            let seen = Seen {
                progress,
                pin: app.pin.clone(),
                touched,
                skipped: app.skipped,
                good: memory.good.last(&target.name, of_run),
            };
            Some((target.name.clone(), seen))
        };
        targets.iter().filter_map(seen).collect()
    }
}

/// Whether the next status still waits for what came of a call, which was not taken note of then.
pub(super) fn waits_for(judged: &[Judged], ended: &Ended) -> bool {
    use baton_api::phase_status::HookState;
    use baton_hooks::{Role, Verdict};
    let key = &ended.result.key;
    let statuses = judged.iter().filter(|judged| judged.generator == key.generator);
    let mut statuses = statuses.filter_map(|judged| judged.decision.status.as_ref());
    let status = statuses.find(|status| *status.rollout_id == *key.rollout);
    let Some(phase) = status.and_then(|status| status.phases.get(key.phase)) else { return false };
    let results = match key.role {
        Role::PreHook => &phase.pre_hooks,
        Role::PostHook => &phase.post_hooks,
        Role::Check => &phase.checks,
    };
    // Who was stopped in the middle has said nothing.
    ended.result.outcome.result != Verdict::Cancelled
        && results.iter().any(|result| {
            *result.name == *ended.name
                && *result.target == *key.target
                && result.state == HookState::Running
                && result.attempt == i64::from(key.attempt)
        })
}
