//! A rollout as it is shown: how it stands, and how far its phases are.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::phase_status::{GeneratorPhases, PhaseApplication, PhaseState};
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

    /// How it goes on. A phase that has failed waits for somebody to decide, and nobody else has anything to do.
    pub(super) fn outlook(&self) -> Outlook {
        use PhaseState as P;
        let is = |states: &[P]| self.phases.iter().any(|generator| states.contains(&generator.state));
        let busy =
            [P::PreHooks, P::Deploying, P::Checking, P::PostHooks, P::Waiting, P::RollingBack, P::Paused];
        match self.standing.outlook() {
            Outlook::Underway if is(&[P::Failed, P::Aborted]) && !is(&busy) => Outlook::Failed,
            outlook => outlook,
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

    /// The phase of an Application: its name, and how many there are before it.
    pub(super) fn phase(&self, application: &str) -> Option<(usize, &str)> {
        let phases = self.phases.iter().flat_map(|generator| generator.phases.iter().enumerate());
        let holds = |names: &[PhaseApplication]| names.iter().any(|entry| entry.name == application);
        let mut of = phases.filter(|(_, phase)| holds(&phase.applications));
        of.next().map(|(at, phase)| (at, phase.name.as_str()))
    }
}
