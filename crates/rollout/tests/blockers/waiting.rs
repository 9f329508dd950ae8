//! Whatever goes wrong, and in which order: while nothing happens something is named, and once everything is mended the
//! rollout ends.

use baton_api::application_status::{HealthCode, SyncCode};
use baton_api::names::baton::{ABORT, PAUSED, RETRY, SUPERSEDE};
use baton_rollout::blocker::Reason;
use baton_rollout::head::{Done, Intent};
use baton_rollout::pin::Fingerprint;
use serde_json::json;

use crate::dice::Dice;
use crate::stage::{FLEET, Mood, Stage, plain};

const WALKS: u64 = 150;
const MEMBERS: [(&str, usize); 4] = [("a", 0), ("b", 0), ("c", 1), ("d", 2)];

fn mood(number: u64) -> Mood {
    match number {
        0 => Mood::Idle,
        1 => Mood::NeverEnds,
        2 => Mood::Fails("a hook fails"),
        3 => Mood::AwaitsApproval,
        4 => Mood::KeepsPrunings,
        5 => Mood::Reports(|live| live.sync = SyncCode::Unknown),
        6 => Mood::Reports(|live| live.health = HealthCode::Degraded),
        7 => Mood::Reports(|live| live.reported = vec!["commit-0".into()]),
        8 => Mood::Reports(|live| live.error = Some(("ComparisonError".into(), "no such path".into()))),
        _ => Mood::Well,
    }
}

fn trouble(stage: &mut Stage, dice: &mut Dice) {
    let name = MEMBERS[dice.below(4) as usize].0;
    match dice.below(12) {
        0..=3 => stage.mood(name, mood(dice.below(10))),
        4..=5 => stage.commit(),
        6 => stage.change_template(),
        7 => stage.annotate(PAUSED, [None, Some("true")][dice.below(2) as usize]),
        8 => stage.annotate(ABORT, Some(&stage.now.to_string())),
        9 => stage.annotate(SUPERSEDE, [None, Some("Finish")][dice.below(2) as usize]),
        10 => stage.wanted.frozen = [None, Some("a generator fails".into())][dice.below(2) as usize].clone(),
        _ => stage.drift(name),
    }
}

/// Each second is judged by the stage itself: nothing happens only where something is named.
#[test]
fn while_nothing_happens_something_is_named() {
    let mut named = std::collections::BTreeSet::new();
    for seed in 0..WALKS {
        let mut dice = Dice(seed);
        let steps = json!([{"maxUpdate": 1 + dice.below(2)}, {}, {"waitDuration": "20s"}]);
        let mut stage = Stage::new(steps, &MEMBERS);
        for _ in 0..12 {
            stage.pass(dice.below(40) as usize);
            trouble(&mut stage, &mut dice);
            named.extend(stage.blockers().iter().map(|blocker| blocker.reason));
        }
        stage.mend();
        stage.annotations.clear();
        stage.wanted.frozen = None;
        // Who was done and drifted since is brought back by the next commit.
        stage.commit();
        stage.pass(60);
        stage.annotate(RETRY, Some("all"));
        stage.until(&format!("the end of walk {seed}"), Stage::is_over);
    }
    println!("{WALKS} walks; named were {named:?}");
    let usual = [Reason::Progressing, Reason::SyncFailed, Reason::Regressed, Reason::Superseded];
    assert!(usual.iter().all(|reason| named.contains(reason)), "{named:?}");
}

/// A commit changes nothing for an Application of the second step, which is found to be at its pin. Then somebody joins the
/// first step, which closes the second again, and the Application drifts: it is brought to that pin when its turn comes
/// anew, and not before.
#[test]
fn who_was_found_unchanged_and_drifts_before_its_turn_waits_for_it() {
    let mut stage = Stage::settled(plain(), &FLEET);
    stage.wanted.members.get_mut("c").expect("a member").self_heal = true;
    let reports = |stage: &mut Stage, report| stage.mood("c", Mood::Reports(report));
    reports(&mut stage, |live| {
        (live.sync, live.health) = (SyncCode::Synced, HealthCode::Healthy);
        live.reported = vec!["commit-2".into()];
    });
    stage.commit();
    let row = |stage: &Stage| stage.machine.head().row(Fingerprint::of(["uid-c"])).expect("a row").clone();
    stage.until("c to be found unchanged", |stage| row(stage).done == Some(Done::Unchanged));
    let another = stage.wanted.members["a"].clone();
    stage.wanted.members.insert("d".into(), another);
    stage.create("d");
    stage.mood("d", Mood::AwaitsApproval);
    stage.until("d to wait", |stage| stage.blocker(Reason::ApprovalRequired, "d").is_some());
    reports(&mut stage, |live| {
        (live.sync, live.health) = (SyncCode::OutOfSync, HealthCode::Healthy);
        live.reported = vec!["commit-2".into()];
    });
    stage.pass(60);
    let now = row(&stage);
    assert_eq!(now.done, None, "what it was found to be is over");
    assert!(!matches!(now.intent, Some(Intent::Heal | Intent::Start)), "{now:?}");
    assert!(stage.blocker(Reason::WaitingForStep, "c").is_some(), "{:#?}", stage.blockers());
    stage.mend();
    stage.until("the end", Stage::is_over);
    assert_eq!(stage.disorder, Vec::<String>::new());
}
