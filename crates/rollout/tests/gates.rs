//! What keeps a step shut, and what is said of it.

use std::sync::Arc;

use baton_api::application_status::{HealthCode, SyncCode};
use baton_rollout::blocker::Reason;
use baton_rollout::live::Live;
use baton_rollout::machine::{Control, Machine, Member, Wanted};
use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};
use baton_rollout::steps::Steps;
use jiff::Timestamp;
use serde_json::{Value, json};

const COMMIT: &str = "c0ffee";

fn key() -> SourceKey {
    SourceKey {
        repo: "https://git.example.com/r.git".into(),
        target: "main".into(),
        chart: "".into(),
        tag_prefix: "".into(),
    }
}

fn spec() -> Fingerprint {
    Fingerprint::of(["spec"])
}

/// Two steps with one Application each.
fn wanted(first: Value) -> Wanted {
    let steps: Vec<_> = serde_json::from_value(json!([first, {}])).expect("steps");
    let member = |step: usize| Member {
        step: Some(step),
        spec: Some(spec()),
        sources: vec![key()],
        self_heal: false,
        fault: None,
    };
    Wanted {
        set: "set-uid".into(),
        generation: 1,
        steps: Steps::read(&steps).0,
        members: [("a".into(), member(0)), ("b".into(), member(1))].into(),
        frozen: None,
        fuse: None,
        keeps_leavers: false,
        control: Control::default(),
    }
}

/// An Application that is as its pin says.
fn live(name: &str, version: u64) -> Live {
    Live {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        version,
        terminating: false,
        stamp: None,
        spec: spec(),
        automatic: false,
        compared: true,
        sync: SyncCode::Synced,
        prune_only: false,
        health: HealthCode::Healthy,
        ailing: None,
        reported: vec![COMMIT.into()],
        error: None,
        operation: None,
        last: None,
        deployed: Vec::new(),
        refresh: false,
        nonce: None,
        reconciled: None,
        closed: None,
        heals_in_order: false,
    }
}

/// Has a machine go on until it asks for nothing more.
fn drive(wanted: Wanted, lives: &[Live]) -> (Machine, Timestamp) {
    let mut machine = Machine::new(None);
    let mut now = Timestamp::from_second(1_000).expect("a time");
    machine.wants(wanted, now);
    lives.iter().for_each(|live| machine.saw(live.clone()));
    for _ in 0..50 {
        now = now.checked_add(jiff::SignedDuration::from_secs(1)).expect("a time");
        let decision = machine.decide(now);
        for key in &decision.resolve {
            machine.resolved(key, Ok(Resolution::exact(COMMIT)), now);
        }
        if decision.list {
            machine.listed(100, lives.to_vec());
        }
        if let Some(change) = &decision.change {
            machine.stored(change);
        }
    }
    (machine, now)
}

fn blockers(machine: &Machine, now: Timestamp) -> Vec<(Reason, Arc<str>, String)> {
    machine.blockers(now).into_iter().map(|one| (one.reason, one.object, one.message)).collect()
}

#[test]
fn a_step_whose_end_cannot_be_read_lets_no_later_one_open() {
    let lives = [live("a", 1), live("b", 2)];
    for (field, value) in [
        ("waitDuration", json!("soon")),
        ("waitDuration", json!("99999999h")),
        ("progressDeadline", json!("0s")),
        ("maxFailures", json!(-1)),
        ("maxFailures", json!("200%")),
    ] {
        let (machine, now) = drive(wanted(json!({field: value})), &lives);
        assert_eq!((machine.head().run.open, machine.head().run.finished), (1, None), "{field} {value}");
        let found = blockers(&machine, now);
        let (reason, _, message) = found.first().expect("a wait has a name");
        assert_eq!(*reason, Reason::InvalidRolloutConfig, "{field} {value}");
        assert!(message.starts_with(&format!("step 1: {field} ")), "{message}");
    }
    let (machine, now) = drive(wanted(json!({"waitDuration": "0s", "maxFailures": "100%"})), &lives);
    assert!(machine.head().run.finished.is_some());
    assert_eq!(blockers(&machine, now), []);
}

#[test]
fn an_application_that_cannot_be_created_says_why() {
    let mut wanted = wanted(json!({}));
    wanted.members.get_mut("a").expect("a member").fault = Some("its name is taken".into());
    let (machine, now) = drive(wanted, &[live("b", 2)]);
    let told = (Reason::InvalidApplication, "a".into(), "its name is taken".to_owned());
    assert!(blockers(&machine, now).contains(&told), "{:?}", blockers(&machine, now));
}

#[test]
fn an_application_that_is_not_healthy_names_the_resource() {
    let ailing = Some("Deployment web/a: CrashLoopBackOff".into());
    let sick = Live { health: HealthCode::Degraded, ailing, ..live("a", 1) };
    let (machine, now) = drive(wanted(json!({})), &[sick, live("b", 2)]);
    let message = "it is degraded: Deployment web/a: CrashLoopBackOff".to_owned();
    assert_eq!(blockers(&machine, now)[0], (Reason::Degraded, "a".into(), message));
}
