//! What is believed of Applications that are seen out of turn.

use baton_api::application_status::{HealthCode, SyncCode};

use super::*;

fn seen(uid: &str, version: u64) -> Live {
    Live {
        name: "web".into(),
        uid: uid.into(),
        version,
        terminating: false,
        stamp: None,
        spec: Fingerprint::of(["spec"]),
        automatic: false,
        compared: false,
        sync: SyncCode::Unknown,
        prune_only: false,
        health: HealthCode::Missing,
        ailing: None,
        reported: Vec::new(),
        error: None,
        operation: None,
        last: None,
        deployed: Vec::new(),
        refresh: false,
        nonce: None,
        answered: false,
        reconciled: None,
        closed: None,
        heals_in_order: false,
    }
}

/// What is believed to be there, by its UID and version.
fn known(machine: &Machine) -> Option<(&str, u64)> {
    machine.apps.get("web").and_then(|app| app.live.as_ref()).map(|live| (&*live.uid, live.version))
}

#[test]
fn what_is_told_once_more_of_one_that_is_gone_does_not_bring_it_back() {
    let mut machine = Machine::new(None);
    machine.saw(seen("a", 5));
    machine.gone("web", "a");
    machine.saw(seen("a", 4));
    machine.saw(seen("a", 5));
    assert_eq!((known(&machine), machine.stale_reads()), (None, 2));
    // The next of its name is another, and newer.
    machine.saw(seen("b", 7));
    assert_eq!(known(&machine), Some(("b", 7)));
}

#[test]
fn what_is_told_once_more_of_the_one_before_replaces_nobody() {
    let mut machine = Machine::new(None);
    machine.saw(seen("b", 7));
    machine.saw(seen("a", 5));
    machine.gone("web", "a");
    assert_eq!((known(&machine), machine.stale_reads()), (Some(("b", 7)), 1));
}

#[test]
fn who_came_after_a_list_was_made_is_not_gone_for_not_being_in_it() {
    let mut machine = Machine::new(None);
    machine.saw(seen("a", 7));
    machine.listed(6, Vec::new());
    assert_eq!(known(&machine), Some(("a", 7)));
    machine.listed(7, Vec::new());
    assert_eq!(known(&machine), None);
}
