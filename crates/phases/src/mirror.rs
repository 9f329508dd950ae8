//! What annotations of the set say of its phases, and the two questions the proposal's interface answers. Annotations
//! mirror the status and are never read.

use std::collections::BTreeMap;

use baton_api::names::application_set::{PHASE_PREFIX, ROLLBACK_PHASE_PREFIX};
use baton_api::phase_status::GeneratorPhases;
use serde::Serialize;

/// The annotations to set and, where the value is none, to remove, so that they say what the status does.
pub fn annotations(
    status: &[GeneratorPhases],
    present: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let wanted = wanted(status);
    let ours = |name: &str| name.starts_with(PHASE_PREFIX) || name.starts_with(ROLLBACK_PHASE_PREFIX);
    let stale = present.keys().filter(|name| ours(name) && !wanted.contains_key(*name));
    let mut changes: BTreeMap<String, Option<String>> = stale.map(|name| (name.clone(), None)).collect();
    let other = wanted.into_iter().filter(|(name, value)| present.get(name) != Some(value));
    changes.extend(other.map(|(name, value)| (name, Some(value))));
    changes
}

fn wanted(status: &[GeneratorPhases]) -> BTreeMap<String, String> {
    let mut wanted = BTreeMap::new();
    let mut ordered: Vec<&GeneratorPhases> = status.iter().collect();
    ordered.sort_by_key(|phases| phases.generator);
    for phases in ordered {
        let plain = format!("{PHASE_PREFIX}{}", phases.generator_type);
        // The first of its kind has the plain name.
        let name = match wanted.contains_key(&plain) {
            true => format!("{plain}-{}", phases.generator),
            false => plain,
        };
        wanted.insert(name, phases.current_phase.to_string());
        for phase in &phases.phases {
            let failure = phase.failure.as_ref().filter(|failure| failure.action == "rollback");
            if let Some(at) = failure.and_then(|failure| failure.at.as_ref()) {
                let (name, at) = (format!("{ROLLBACK_PHASE_PREFIX}{}", phase.name), at.0.to_string());
                let earlier = wanted.get(&name).is_some_and(|known| *known > at);
                if !earlier {
                    wanted.insert(name, at);
                }
            }
        }
    }
    wanted
}

/// The phase of a generator that is under way, counted from 0, and how many there are. They are equal when all have
/// ended. None where the generator has no phases.
pub fn generator_phase_status(status: &[GeneratorPhases], generator: usize) -> Option<(i64, i64)> {
    let index = i64::try_from(generator).ok()?;
    let phases = status.iter().find(|phases| phases.generator == index)?;
    Some((phases.current_phase, phases.total_phases))
}

/// The same as JSON.
pub fn generator_phase_status_to_json(current_phase: i64, total_phases: i64) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Told {
        current_phase: i64,
        total_phases: i64,
    }
    serde_json::to_string(&Told { current_phase, total_phases }).unwrap_or_default()
}
