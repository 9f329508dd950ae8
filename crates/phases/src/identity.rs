//! Which rollout this is. A new identity begins at the first phase.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_rollout::pin::Fingerprint;

use crate::config::Plan;

/// The identity under which a generator's phases go on, or begin anew: `<run>-<configuration>-<content>`.
///
/// It stays what it is while the configuration of the phases is the same and either the run is (those who join or leave
/// amend a run) or what the generator's Applications are to be (the run changed for others). Anything else is a new
/// rollout. As the number of the run is part of it, going back to something earlier is one too.
///
/// `stored` is the identity in the stored status. `pins` holds what the template wants of each Application, also of
/// those that were put back to something else.
pub fn follow(stored: Option<&str>, plan: &Plan, run: u64, pins: &BTreeMap<Arc<str>, Arc<str>>) -> String {
    let (run, config) = (run.to_string(), plan.hash.to_string());
    let content = pins.iter().flat_map(|(name, pin)| [name.as_bytes(), pin.as_bytes()]);
    let content = Fingerprint::of(content).to_string();
    if let Some(stored) = stored {
        let parts: Vec<&str> = stored.split('-').collect();
        if let [of_run, of_config, of_content] = parts[..]
            && of_config == config
            && (of_run == run || of_content == content)
        {
            return stored.to_owned();
        }
    }
    format!("{run}-{config}-{content}")
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
        let next = |plan: &Plan, run, all: &[(&str, &str)]| follow(Some(&first), plan, run, &pins(all));
        assert_eq!(next(&plan("a"), 1, &[("x", "1")]), first);
        assert_ne!(next(&plan("b"), 1, &[("x", "1")]), first, "phases were edited");
        assert_ne!(next(&plan("a"), 2, &[("x", "2")]), first, "a new pin");
    }

    #[test]
    fn who_joins_amends_and_a_run_for_others_is_no_news() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "1")]));
        assert_eq!(follow(Some(&first), &plan("a"), 1, &pins(&[("x", "1"), ("y", "1")])), first);
        assert_eq!(follow(Some(&first), &plan("a"), 2, &pins(&[("x", "1")])), first);
    }

    #[test]
    fn an_identity_tells_its_run() {
        assert_eq!(run_of(&follow(None, &plan("a"), 17, &pins(&[("x", "1")]))), Some(17));
        assert_eq!(run_of("what another version wrote"), None);
    }

    #[test]
    fn going_back_to_something_earlier_is_a_rollout_of_its_own() {
        let first = follow(None, &plan("a"), 1, &pins(&[("x", "A")]));
        let second = follow(Some(&first), &plan("a"), 2, &pins(&[("x", "B")]));
        let third = follow(Some(&second), &plan("a"), 3, &pins(&[("x", "A")]));
        assert!(first != second && second != third && first != third);
        assert_eq!(follow(Some("what another version wrote"), &plan("a"), 3, &pins(&[("x", "A")])), third);
    }
}
