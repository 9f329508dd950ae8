//! What differs between two plans.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::{ApplicationPlan, Plan, StepPlan};

/// What differs between two plans.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shifts {
    /// Applications that have another place, by name.
    pub applications: Vec<Shift>,
    /// Settings of the order that are others.
    pub settings: Vec<Setting>,
}

/// An Application that has another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shift {
    /// Its name.
    pub name: String,
    /// What becomes of its place.
    #[serde(flatten)]
    pub what: Move,
}

/// What becomes of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "move", rename_all = "camelCase")]
pub enum Move {
    /// It was not there.
    Joins {
        /// Where it comes.
        to: Place,
    },
    /// It is no longer there.
    Leaves {
        /// Where it was.
        from: Place,
    },
    /// It goes in another step.
    Step {
        /// Where it was.
        from: Place,
        /// Where it comes.
        to: Place,
    },
    /// It goes in another batch of its step.
    Batch {
        /// Where it was.
        from: Place,
        /// Where it comes.
        to: Place,
    },
}

/// Where an Application goes in a change of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// Its step, counted from 1; -1 where no step holds it, absent where all go at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// Its batch, counted from 1; absent where people sync it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
}

/// A setting that is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Which one.
    pub name: String,
    /// What it was.
    pub from: String,
    /// What it becomes.
    pub to: String,
}

/// What differs between a plan and another that takes its place.
///
/// Places are those of a change of every Application, so that plans for different changes can be compared.
pub fn between(before: &Plan, after: &Plan) -> Shifts {
    let places = |plan: &Plan| -> BTreeMap<String, Place> {
        plan.applications.iter().map(|one| (one.name.clone(), Place::of(one))).collect()
    };
    let (old, new) = (places(before), places(after));
    let mut applications = Vec::new();
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let what = match (old.get(name).copied(), new.get(name).copied()) {
            (None, Some(to)) => Move::Joins { to },
            (Some(from), None) => Move::Leaves { from },
            (Some(from), Some(to)) if from.step != to.step => Move::Step { from, to },
            (Some(from), Some(to)) if from.batch != to.batch => Move::Batch { from, to },
            _ => continue,
        };
        applications.push(Shift { name: name.clone(), what });
    }
    Shifts { applications, settings: settings(before, after) }
}

fn settings(before: &Plan, after: &Plan) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut compare = |name: String, from: String, to: String| {
        if from != to {
            found.push(Setting { name, from, to });
        }
    };
    compare("strategy".to_owned(), before.strategy.to_owned(), after.strategy.to_owned());
    compare("deletionOrder".to_owned(), before.deletion.order.clone(), after.deletion.order.clone());
    for at in 0..before.steps.len().max(after.steps.len()) {
        let (old, new) = (before.steps.get(at), after.steps.get(at));
        let (Some(old), Some(new)) = (old, new) else {
            let told = |step: Option<&StepPlan>| step.map_or("none", |step| &step.selects).to_owned();
            compare(format!("step {}", at + 1), told(old), told(new));
            continue;
        };
        let absent = |text: &Option<String>, otherwise: &str| text.clone().unwrap_or(otherwise.to_owned());
        let mut field = |name: &str, from: String, to: String| {
            compare(format!("step {} {name}", at + 1), from, to);
        };
        field("labels", old.selects.clone(), new.selects.clone());
        field("maxUpdate", absent(&old.max_update, "all"), absent(&new.max_update, "all"));
        field("waitDuration", absent(&old.wait_duration, "none"), absent(&new.wait_duration, "none"));
        field(
            "progressDeadline",
            absent(&old.progress_deadline, "none"),
            absent(&new.progress_deadline, "none"),
        );
        field("maxFailures", absent(&old.max_failures, "none"), absent(&new.max_failures, "none"));
    }
    found
}

// === impl Shifts ===

impl Shifts {
    /// Whether the plans are alike.
    pub fn is_empty(&self) -> bool {
        self.applications.is_empty() && self.settings.is_empty()
    }
}

// === impl Place ===

impl Place {
    fn of(application: &ApplicationPlan) -> Place {
        Place { step: application.step, batch: application.batch_of_all }
    }
}
