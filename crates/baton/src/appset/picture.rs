//! A rollout as it is shown: how it stands, and how far its phases are.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::phase_status::{GeneratorPhases, PhaseApplication};
use baton_phases as phases;
use baton_rollout::explain::{self, Known, Outlook, Standing};
use baton_rollout::head::Head;
use baton_rollout::plan::rolling_steps;
use serde::Serialize;

use super::control::has_phases;

/// How a rollout stands, with its phases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Picture {
    #[serde(flatten)]
    pub(super) standing: Standing,
    /// `status.phases`, whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) phases: Vec<GeneratorPhases>,
    /// Whether it goes by steps that the set has written.
    #[serde(skip)]
    pub(super) steps: bool,
}

impl Picture {
    pub(super) fn of(set: &ApplicationSet, head: Option<&Head>, known: &BTreeMap<String, Known>) -> Picture {
        let mut standing = explain::standing(set, head, known);
        let phases = set.status.phases.clone();
        let steps = !has_phases(set) || rolling_steps(set.spec.strategy.as_ref()).is_some();
        if !steps {
            // Where there are phases alone, one step holds everybody, and nobody has written it.
            standing.step = 0;
        }
        Picture { standing, phases, steps }
    }

    /// How it goes on. It is not done before its phases are; one that has failed waits for somebody to decide, and nobody
    /// else has anything to do.
    pub(super) fn outlook(&self) -> Outlook {
        let standing = &self.standing;
        // Whoever goes, or is paused, is no longer about what has failed.
        let goes_on = !standing.outdated && standing.deletion.is_none() && standing.state != "Paused";
        match (standing.outlook(), phases::outlook(&self.phases)) {
            (_, phases::Outlook::Failed(_)) if goes_on => Outlook::Failed,
            (Outlook::Done, phases::Outlook::UnderWay(_)) => Outlook::Underway,
            (outlook, _) => outlook,
        }
    }

    /// Why a phase failed, where one has.
    pub(super) fn failure(&self) -> Option<String> {
        let mut phases = self.phases.iter().flat_map(|generator| &generator.phases);
        phases.find_map(|phase| {
            let failure = phase.failure.as_ref()?;
            Some(format!("phase {}: {}", phase.name, failure.message))
        })
    }

    /// The phase of an Application: its name, and how many there are before it. One whose phase has not begun is told by
    /// what it waits for.
    pub(super) fn phase(&self, application: &str) -> Option<(usize, &str)> {
        let phases = || self.phases.iter().flat_map(|generator| generator.phases.iter().enumerate());
        let holds = |names: &[PhaseApplication]| names.iter().any(|entry| entry.name == application);
        let begun = phases().find(|(_, phase)| holds(&phase.applications));
        let ahead = || {
            let one = self.standing.applications.iter().find(|one| one.name == application)?;
            let why = one.message.strip_prefix("PhaseGate: ").unwrap_or(&one.message);
            let name = phases::phase_held_by(why)?;
            phases().find(|(_, phase)| phase.name == name)
        };
        begun.or_else(ahead).map(|(at, phase)| (at, phase.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appset::watch::frame;
    use crate::screen::Screen;
    use serde_json::{Value, json};

    fn picture(rollout: &str, phases: Value, message: &str) -> Picture {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"generators": [{"deploymentStrategy": {"type": "phaseDeployment"}}], "template": {}},
            "status": {
                "rollout": {"run": 1, "state": rollout},
                "applicationStatus": [{"application": "web-a", "message": message, "status": "Waiting", "step": "1"}],
                "phases": [phases],
            },
        }))
        .expect("a set");
        Picture::of(&set, None, &BTreeMap::new())
    }

    fn phases(states: [&str; 2], failure: Value) -> Value {
        let open = if states[0] == "Complete" { 1 } else { 0 };
        json!({
            "generator": 0, "currentPhase": open, "totalPhases": 2, "state": states[open],
            "phases": [{"name": "dev", "state": states[0]}, {"name": "prod", "state": states[1], "failure": failure}],
        })
    }

    #[test]
    fn a_rollout_is_done_when_its_phases_are() {
        for busy in ["Checking", "PostHooks", "Waiting", "RollingBack"] {
            let picture = picture("Complete", phases(["Complete", busy], Value::Null), "");
            assert_eq!(picture.outlook(), Outlook::Underway, "{busy}");
        }
        let failure = json!({"message": "it broke", "action": "stop"});
        for end in ["Failed", "Aborted", "RolledBack"] {
            for told in ["Complete", "Progressing"] {
                let picture = picture(told, phases(["Complete", end], failure.clone()), "");
                assert_eq!(picture.outlook(), Outlook::Failed, "{told}, {end}");
            }
        }
        let ended = json!({"generator": 0, "currentPhase": 1, "totalPhases": 1, "phases": [{"name": "dev"}]});
        assert_eq!(picture("Complete", ended, "").outlook(), Outlook::Done);
    }

    #[test]
    fn the_application_that_a_phase_waits_for_is_pictured_with_its_cause() {
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"generators": [{"deploymentStrategy": {"type": "phaseDeployment"}}], "template": {}},
            "status": {
                "rollout": {
                    "run": 1, "state": "Progressing", "step": 1,
                    "steps": [{"step": 1, "state": "Open", "total": 1}],
                    "blockers": [{"reason": "PhaseGate", "object": "web-a", "message": "web-a is being updated"}],
                },
                "applicationStatus": [{
                    "application": "web-a", "message": "Degraded: Deployment web has no replicas",
                    "status": "Progressing", "step": "1",
                }],
                "phases": [phases(["Deploying", "Pending"], Value::Null)],
            },
        }))
        .expect("a set");
        let picture = Picture::of(&set, None, &BTreeMap::new());
        let screen = Screen { width: Some(120), height: Some(40), colours: false, folds: true };
        let text = frame("argocd/web", &picture, jiff::Timestamp::UNIX_EPOCH, &screen).join("\n");
        assert!(text.contains("Degraded: Deployment web has no replicas"), "{text}");
    }

    #[test]
    fn an_application_of_a_later_phase_is_in_that_phase() {
        let why = "PhaseGate: its phase \"prod\" opens after phase \"dev\", which is Deploying";
        let picture = picture("Progressing", phases(["Deploying", "Pending"], Value::Null), why);
        assert_eq!(picture.phase("web-a"), Some((1, "prod")));
        assert_eq!(picture.phase("web-b"), None);
    }
}
