//! What people can ask of a rollout, and when it makes sense to.

use std::collections::BTreeMap;
use std::fmt;

use baton_api::ApplicationSet;
use baton_api::application_set::ConditionStatus;
use baton_api::conditions::application_set::DELETION_HELD;
use baton_api::names::baton as names;
use baton_api::phase_status::PhaseStatus;
use baton_api::verbs::SetVerb;
use baton_phases::{Ask, refusal};
use baton_rollout::control;
use baton_rollout::explain::Standing;
use baton_rollout::plan::rolling_steps;
use schemars::JsonSchema;
use serde::Deserialize;

/// Something people can ask of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Hold it.
    Pause,
    /// Let it go on.
    Resume,
    /// End it.
    Abort,
    /// Try again what failed.
    Retry,
    /// Count an Application as done.
    Skip,
    /// End the wait of a phase, or go on after one that failed.
    Advance,
    /// Put back what the present phase changed.
    Rollback,
    /// Put back what the whole run changed.
    RollbackAll,
    /// Let the fuse pass a mass deletion.
    ApproveDeletion,
}

// === impl Action ===

impl Action {
    /// All of them, in the order they are shown.
    pub const ALL: [Action; 9] = [
        Action::Pause,
        Action::Resume,
        Action::Abort,
        Action::Retry,
        Action::Skip,
        Action::Advance,
        Action::Rollback,
        Action::RollbackAll,
        Action::ApproveDeletion,
    ];

    /// The right it takes, and the word for it.
    pub fn verb(self) -> SetVerb {
        match self {
            Action::Pause => SetVerb::Pause,
            Action::Resume => SetVerb::Resume,
            Action::Abort => SetVerb::Abort,
            Action::Retry => SetVerb::Retry,
            Action::Skip => SetVerb::Skip,
            Action::Advance => SetVerb::Advance,
            Action::Rollback => SetVerb::Rollback,
            Action::RollbackAll => SetVerb::RollbackAll,
            Action::ApproveDeletion => SetVerb::ApproveDeletion,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        self.verb().word()
    }

    /// How policies name the right to it.
    pub fn right(self) -> String {
        self.verb().right()
    }

    /// What its Event is told under.
    pub fn reason(self) -> &'static str {
        match self {
            Action::Pause => "BatonPaused",
            Action::Resume => "BatonResumed",
            Action::Abort => "BatonAborted",
            Action::Retry => "BatonRetried",
            Action::Skip => "BatonSkipped",
            Action::Advance => "BatonAdvanced",
            Action::Rollback | Action::RollbackAll => "BatonRolledBack",
            Action::ApproveDeletion => "BatonApproved",
        }
    }

    /// The annotation of the set that asks for it: writing it another way is asking for it.
    pub fn annotation(self) -> &'static str {
        match self {
            Action::Pause | Action::Resume => names::PAUSED,
            Action::Abort => names::ABORT,
            Action::Retry => names::RETRY,
            Action::Skip => names::SKIP,
            Action::Advance => names::ADVANCE,
            Action::Rollback => names::ROLLBACK,
            Action::RollbackAll => names::ROLLBACK_ALL,
            Action::ApproveDeletion => names::DELETION_APPROVED,
        }
    }

    /// Whether it makes sense now; else why not.
    pub fn sense(self, set: &ApplicationSet, standing: &Standing) -> Result<(), String> {
        if self == Action::ApproveDeletion {
            return match held(set) {
                Some(_) => Ok(()),
                None => Err("no mass deletion waits for approval".to_owned()),
            };
        }
        if rolling_steps(set.spec.strategy.as_ref()).is_none() && !has_phases(set) {
            return Err("it has no rollout: all its Applications change at once".to_owned());
        }
        let over = matches!(standing.state.as_str(), "Complete" | "Idle") && !standing.outdated;
        let run = if standing.run > 0 { format!("run {}", standing.run) } else { "the rollout".to_owned() };
        let paused = control::is_paused(set.metadata.annotations.as_ref()) || standing.state == "Paused";
        match self {
            Action::Pause if paused => Err("it is paused already".to_owned()),
            Action::Resume if !paused => Err("it is not paused".to_owned()),
            Action::Abort if over || standing.state == "Aborted" => {
                Err(format!("nothing to abort: {run} is {}", standing.state))
            }
            Action::Retry if over => Err(format!("nothing to retry: {run} is {}", standing.state)),
            Action::Skip if standing.applications.iter().all(|one| one.status == "Healthy") => {
                Err("nothing to skip: every Application is done".to_owned())
            }
            Action::Advance | Action::Rollback | Action::RollbackAll if !has_phases(set) => {
                Err("it has no phases: none of its generators has a deploymentStrategy".to_owned())
            }
            Action::Rollback | Action::RollbackAll if phases(set).all(|phase| phase.updated == 0) => {
                Err("nothing to put back: its phases have changed nothing yet".to_owned())
            }
            Action::Advance | Action::Rollback | Action::RollbackAll => match self.refused(set) {
                Some(why) => Err(why),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The lanes that a word about phases is for, by their ids. The word is one for all generators: each that does not
    /// refuse it hears it.
    pub fn lanes(self, set: &ApplicationSet) -> Vec<String> {
        let Some(ask) = self.ask() else { return Vec::new() };
        let hear = set.status.phases.iter().filter(|generator| refusal(ask, generator).is_none());
        hear.flat_map(|generator| {
            let last = generator.phases.len().saturating_sub(1);
            let open = usize::try_from(generator.current_phase).unwrap_or_default().min(last);
            let first = if self == Action::RollbackAll { 0 } else { open };
            let changed = |at: &usize| self == Action::Advance || generator.phases[*at].updated > 0;
            let places = (first..=open).filter(|at| *at < generator.phases.len()).filter(changed);
            places.map(|at| format!("phase-{}-{at}", generator.generator)).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Why the phases of every generator refuse it, in the words of the first.
    fn refused(self, set: &ApplicationSet) -> Option<String> {
        let ask = self.ask()?;
        let refusals = set.status.phases.iter().map(|generator| refusal(ask, generator));
        let refusals: Vec<String> = refusals.collect::<Option<_>>()?;
        Some(refusals.into_iter().next().unwrap_or_else(|| "no phase has begun".to_owned()))
    }

    /// What it is for phases alone.
    fn ask(self) -> Option<Ask> {
        match self {
            Action::Advance => Some(Ask::Advance),
            Action::Rollback => Some(Ask::Rollback),
            Action::RollbackAll => Some(Ask::RollbackAll),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a generator of the set goes in phases, or did until they are through.
pub(crate) fn has_phases(set: &ApplicationSet) -> bool {
    let mut generators = set.spec.generators.iter();
    !set.status.phases.is_empty() || generators.any(|generator| generator.deployment_strategy.is_some())
}

/// What the fuse says while it holds.
pub(crate) fn held(set: &ApplicationSet) -> Option<&str> {
    let mut conditions = set.status.conditions.iter();
    let held = conditions.find(|one| one.kind == DELETION_HELD && one.status == ConditionStatus::True);
    held.map(|held| held.message.as_str())
}

/// What somebody who may change a set needs besides to change it so: a right for every request that it carries anew,
/// and one for hooks.
pub(crate) fn rights_to_change(before: Option<&ApplicationSet>, after: &ApplicationSet) -> Vec<String> {
    let empty = BTreeMap::new();
    let annotations = |set: Option<&ApplicationSet>, name: &str| {
        let all = set.and_then(|set| set.metadata.annotations.as_ref()).unwrap_or(&empty);
        all.get(name).cloned().filter(|text| !text.is_empty())
    };
    let mut rights = Vec::new();
    for action in Action::ALL.into_iter().filter(|action| *action != Action::Resume) {
        let (old, new) =
            (annotations(before, action.annotation()), annotations(Some(after), action.annotation()));
        if old == new {
            continue;
        }
        let resumes = action == Action::Pause && !control::is_paused(after.metadata.annotations.as_ref());
        rights.push(if resumes { Action::Resume } else { action }.right());
    }
    let hooks = |set: &ApplicationSet| -> Vec<serde_json::Value> {
        let generators = set.spec.generators.iter().filter_map(|one| one.deployment_strategy.as_ref());
        let phases = generators.flat_map(|strategy| &strategy.phases);
        phases
            .map(|phase| serde_json::json!([phase.pre_hooks, phase.post_hooks, phase.checks]))
            .filter(|lists| {
                lists.as_array().is_some_and(|lists| lists.iter().any(|list| list != &serde_json::json!([])))
            })
            .collect()
    };
    if hooks(after) != before.map(&hooks).unwrap_or_default() {
        rights.push(SetVerb::ChangeHooks.right());
    }
    rights
}

fn phases(set: &ApplicationSet) -> impl Iterator<Item = &PhaseStatus> {
    set.status.phases.iter().flat_map(|generator| &generator.phases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(value: Value) -> ApplicationSet {
        serde_json::from_value(value).expect("a set")
    }

    fn sense(set: &ApplicationSet, action: Action) -> Result<(), String> {
        action.sense(set, &baton_rollout::explain::standing(set, None, &BTreeMap::new()))
    }

    #[test]
    fn every_verb_of_a_rollout_is_read_by_its_own_word() {
        let read = Action::ALL.map(|action| serde_json::from_value::<Action>(json!(action.as_str())).ok());
        assert_eq!(read, Action::ALL.map(Some));
        let verbs = SetVerb::ALL.into_iter().filter(|verb| *verb != SetVerb::ChangeHooks);
        assert_eq!(Action::ALL.map(Action::verb).to_vec(), verbs.collect::<Vec<_>>());
    }

    #[test]
    fn an_action_makes_sense_only_where_it_does_something() {
        let rolling = |status: Value, annotations: Value| {
            set(json!({"metadata": {"name": "web", "annotations": annotations}, "status": status,
                "spec": {"strategy": {"type": "RollingSync", "rollingSync": {"steps": [{}]}}}}))
        };
        let plain = set(json!({"metadata": {"name": "web"}}));
        assert!(sense(&plain, Action::Pause).is_err_and(|why| why.contains("no rollout")));
        let run = |state: &str| json!({"rollout": {"run": 3, "state": state}});
        for (state, action, sensible) in [
            ("Progressing", Action::Pause, true),
            ("Progressing", Action::Resume, false),
            ("Progressing", Action::Abort, true),
            ("Complete", Action::Abort, false),
            ("Aborted", Action::Abort, false),
            ("Aborted", Action::Retry, true),
            ("Failed", Action::Retry, true),
            ("Complete", Action::Retry, false),
            ("Complete", Action::Skip, false),
            ("Progressing", Action::Advance, false),
            ("Progressing", Action::Rollback, false),
            ("Progressing", Action::ApproveDeletion, false),
        ] {
            let judged = sense(&rolling(run(state), json!({})), action);
            assert_eq!(judged.is_ok(), sensible, "{action} while {state}: {judged:?}");
        }
        let paused = rolling(run("Progressing"), json!({"baton.dev/paused": "true"}));
        assert!(sense(&paused, Action::Resume).is_ok() && sense(&paused, Action::Pause).is_err());
    }

    #[test]
    fn phases_can_be_advanced_and_put_back_where_there_is_something() {
        let phased = |phase: Value| {
            set(
                json!({"metadata": {"name": "web"}, "status": {"phases": [{"generator": 0, "phases": [phase]}]}}),
            )
        };
        assert!(sense(&phased(json!({"name": "a", "state": "Waiting"})), Action::Advance).is_ok());
        assert!(sense(&phased(json!({"name": "a", "state": "Deploying"})), Action::Advance).is_err());
        assert!(sense(&phased(json!({"name": "a", "updated": 2})), Action::Rollback).is_ok());
        assert!(sense(&phased(json!({"name": "a"})), Action::RollbackAll).is_err());
    }

    #[test]
    fn a_word_names_the_phases_of_all_generators_that_hear_it() {
        let set = set(json!({"metadata": {"name": "web"}, "status": {"phases": [
            {"generator": 0, "currentPhase": 1, "phases": [{"name": "a", "state": "Complete", "updated": 1},
                {"name": "b", "state": "Waiting", "updated": 2}]},
            {"generator": 2, "currentPhase": 0, "phases": [{"name": "c", "state": "Deploying", "updated": 1}]},
            {"generator": 3, "currentPhase": 0, "phases": [{"name": "d", "state": "Waiting"}]},
        ]}}));
        assert_eq!(Action::Advance.lanes(&set), ["phase-0-1", "phase-3-0"]);
        assert_eq!(Action::Rollback.lanes(&set), ["phase-0-1", "phase-2-0"]);
        assert_eq!(Action::RollbackAll.lanes(&set), ["phase-0-0", "phase-0-1", "phase-2-0"]);
        assert_eq!(Action::Pause.lanes(&set), Vec::<String>::new());
    }

    #[test]
    fn asking_by_annotation_needs_the_same_right() {
        let with = |annotations: Value| set(json!({"metadata": {"annotations": annotations}}));
        let right = |verb: &str| format!("action/argoproj.io/ApplicationSet/{verb}");
        let plain = with(json!({"mine": "x"}));
        assert_eq!(rights_to_change(None, &plain), Vec::<String>::new());
        let paused = with(json!({"baton.dev/paused": "true"}));
        assert_eq!(rights_to_change(Some(&plain), &paused), [right("pause")]);
        assert_eq!(rights_to_change(Some(&paused), &plain), [right("resume")]);
        assert_eq!(rights_to_change(Some(&paused), &paused), Vec::<String>::new());
        let approved = with(json!({"baton.dev/deletion-approved": "0123456789abcdef"}));
        assert_eq!(rights_to_change(Some(&plain), &approved), [right("approve-deletion")]);
        let hooked = set(json!({"spec": {"generators": [{"deploymentStrategy": {"phases": [{"name": "a",
            "preHooks": [{"name": "tell"}]}]}}]}}));
        assert_eq!(rights_to_change(Some(&plain), &hooked), [right("change-hooks")]);
    }
}
