//! A rollout as it is shown: how it stands, and how far its phases are.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::phase_status::GeneratorPhases;
use baton_rollout::explain::{self, Known, Standing};
use baton_rollout::head::Head;
use baton_rollout::plan::rolling_steps;
use serde::Serialize;

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
        let steps = phases.is_empty() || rolling_steps(set.spec.strategy.as_ref()).is_some();
        if !steps {
            // Where there are phases alone, one step holds everybody, and nobody has written it.
            standing.step = 0;
        }
        Picture { standing, phases, steps }
    }

    /// The phase of an Application: its name, and how many there are before it.
    pub(super) fn phase(&self, application: &str) -> Option<(usize, &str)> {
        let phases = self.phases.iter().flat_map(|generator| generator.phases.iter().enumerate());
        let holds = |names: &[baton_api::phase_status::PhaseApplication]| {
            names.iter().any(|entry| entry.name == application)
        };
        let mut of = phases.filter(|(_, phase)| holds(&phase.applications));
        of.next().map(|(at, phase)| (at, phase.name.as_str()))
    }
}
