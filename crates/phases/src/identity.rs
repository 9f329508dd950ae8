//! Which rollout this is. A new identity begins at the first phase.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::phase_status::GeneratorPhases;
use baton_rollout::pin::Fingerprint;

use crate::config::Plan;
use crate::targets::Target;

/// Which rollout this is, and how far it has been followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The identity under which a generator's phases go on, or begin anew: `<run>-<configuration>-<content>`.
    pub rollout: String,
    /// The last run that it went on in with nothing new for its Applications; empty where that is the first.
    pub amended: String,
}

/// Which rollout this is.
///
/// It stays what it is while the configuration of the phases is the same and either the run is (those who join or leave
/// amend a run) or what the generator's Applications are to be (the run changed for others, or because some are put
/// back). Anything else is a new rollout. As the number of the run is part of it, going back to something earlier is one
/// too. Who joins it in a later run in which it went on amends it as well.
///
/// `stored` is the identity in the stored status. `pins` holds what the template wants of each Application, also of
/// those that were put back to something else.
pub fn follow(
    stored: Option<&Identity>,
    plan: &Plan,
    run: u64,
    pins: &BTreeMap<Arc<str>, Arc<str>>,
) -> Identity {
    of(stored, &plan.hash.to_string(), run, pins)
}

/// The same where the field was removed: phases are what they were.
pub fn follow_removed(stored: &Identity, run: u64, pins: &BTreeMap<Arc<str>, Arc<str>>) -> Identity {
    match stored.rollout.split('-').nth(1) {
        Some(config) => of(Some(stored), config, run, pins),
        None => stored.clone(),
    }
}

fn of(stored: Option<&Identity>, config: &str, run: u64, pins: &BTreeMap<Arc<str>, Arc<str>>) -> Identity {
    let run = run.to_string();
    let content = pins.iter().flat_map(|(name, pin)| [name.as_bytes(), pin.as_bytes()]);
    let content = Fingerprint::of(content).to_string();
    if let Some(stored) = stored {
        let parts: Vec<&str> = stored.rollout.split('-').collect();
        if let [of_run, of_config, of_content] = parts[..]
            && of_config == config
            && (of_run == run || stored.amended == run || of_content == content)
        {
            // What is wanted may be of the run to come already: only that it is the same tells something.
            let goes_on = of_run != run && of_content == content;
            let amended = if goes_on { run } else { stored.amended.clone() };
            return Identity { rollout: stored.rollout.clone(), amended };
        }
    }
    Identity { rollout: format!("{run}-{config}-{content}"), amended: String::new() }
}

/// Whether what is stored is of another generator than the one that stands in its place now: of its Applications none is
/// left, and there are others. What has passed for those has not passed for these, whoever brought them there: generators
/// that were put in another order, one that was set before, or a selector that chooses others.
pub fn is_of_others(stored: &GeneratorPhases, targets: &[Target]) -> bool {
    let known: BTreeSet<&str> = targets.iter().map(|target| &*target.name).collect();
    let mut entries = stored.phases.iter().flat_map(|phase| &phase.applications).peekable();
    // Those of a phase that were left out of the status could be anybody.
    let unknown = stored
        .phases
        .iter()
        .any(|phase| phase.started_at.is_some() && phase.selected > 0 && phase.applications.is_empty());
    !known.is_empty()
        && !unknown
        && entries.peek().is_some()
        && !entries.any(|entry| known.contains(entry.name.as_str()))
}

/// The run that a stored identity is of.
pub fn run_of(stored: &str) -> Option<u64> {
    stored.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hash: &str) -> Plan {
        let caps = crate::config::Caps { hooks: 5, checks: 10, applications: 1000 };
        let hash = Fingerprint::of([hash]);
        Plan { path: "".into(), phases: Vec::new(), history: 1, caps, hash }
    }

    fn pins(all: &[(&str, &str)]) -> BTreeMap<Arc<str>, Arc<str>> {
        all.iter().map(|(name, pin)| ((*name).into(), (*pin).into())).collect()
    }

    #[test]
    fn row_06_another_configuration_specification_or_revision_is_another_rollout() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "1")]));
        let next =
            |plan: &Plan, run, all: &[(&str, &str)]| follow(Some(&first), plan, run, &pins(all)).rollout;
        assert_eq!(next(&plan("a"), 1, &[("x", "1")]), first.rollout);
        assert_ne!(next(&plan("b"), 1, &[("x", "1")]), first.rollout, "phases were edited");
        assert_ne!(next(&plan("a"), 2, &[("x", "2")]), first.rollout, "a new pin");
    }

    #[test]
    fn who_joins_amends_and_a_run_for_others_is_no_news() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "1")]));
        let next = |run, all: &[(&str, &str)]| follow(Some(&first), &plan("a"), run, &pins(all)).rollout;
        assert_eq!(next(1, &[("x", "1"), ("y", "1")]), first.rollout);
        assert_eq!(next(2, &[("x", "1")]), first.rollout);
    }

    #[test]
    fn who_joins_in_a_later_run_amends_as_well() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "1")]));
        // What is put back begins a run.
        let back = follow(Some(&first), &plan("a"), 2, &pins(&[("x", "1")]));
        let joined = follow(Some(&back), &plan("a"), 2, &pins(&[("x", "1"), ("y", "1")]));
        let left = follow(Some(&joined), &plan("a"), 2, &pins(&[("y", "1")]));
        for next in [&back, &joined, &left] {
            assert_eq!(next.rollout, first.rollout);
        }
        // What is wanted is known before its run begins.
        let soon = follow(Some(&back), &plan("a"), 2, &pins(&[("x", "2")]));
        let commit = follow(Some(&soon), &plan("a"), 3, &pins(&[("x", "2")]));
        assert_eq!(soon.rollout, first.rollout);
        assert_ne!(commit.rollout, first.rollout, "a newer commit is another rollout");
        assert_ne!(follow(Some(&left), &plan("b"), 2, &pins(&[("y", "1")])).rollout, first.rollout);
    }

    #[test]
    fn what_is_stored_of_others_is_told_from_what_some_have_joined_or_left() {
        use baton_api::phase_status::{PhaseApplication, PhaseStatus};
        let stored = |names: &[&str]| {
            let entry =
                |name: &&str| PhaseApplication { name: (*name).to_owned(), ..PhaseApplication::default() };
            let applications = names.iter().map(entry).collect();
            let phase =
                PhaseStatus { selected: 2, started_at: started(), applications, ..Default::default() };
            GeneratorPhases { phases: vec![phase, PhaseStatus::default()], ..GeneratorPhases::default() }
        };
        let target = |name: &&str| Target { name: (*name).into(), params: BTreeMap::new() };
        let is = |names: &[&str], now: &[&str]| {
            let targets: Vec<Target> = now.iter().map(target).collect();
            is_of_others(&stored(names), &targets)
        };
        assert!(is(&["prod-1", "prod-2"], &["dev-1", "dev-2"]));
        assert!(!is(&["prod-1", "prod-2"], &["prod-2", "prod-3"]), "one has left, one has joined");
        assert!(!is(&["prod-1"], &[]), "nobody is there at the moment");
        assert!(!is(&[], &["dev-1"]), "who belongs to it is kept elsewhere");
    }

    fn started() -> Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
        Some(crate::instant::stored(jiff::Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn an_identity_tells_its_run() {
        let first = follow(None, &plan("a"), 17, &pins(&[("x", "1")]));
        assert_eq!(run_of(&first.rollout), Some(17));
        assert_eq!(run_of("what another version wrote"), None);
    }

    #[test]
    fn going_back_to_something_earlier_is_a_rollout_of_its_own() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "A")]));
        let second = follow(Some(&first), &plan("a"), 2, &pins(&[("x", "B")]));
        let third = follow(Some(&second), &plan("a"), 3, &pins(&[("x", "A")]));
        let all = [&first.rollout, &second.rollout, &third.rollout];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        let strange = Identity { rollout: "what another version wrote".into(), amended: "its own".into() };
        assert_eq!(follow(Some(&strange), &plan("a"), 3, &pins(&[("x", "A")])), third);
    }
}
