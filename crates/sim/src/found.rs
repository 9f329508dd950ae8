//! What the simulator once found, each in a world as small as it can be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use crate::action::{Action, Edit};
use crate::dice::Dice;
use crate::fleet::{Content, Deletion, Element, Fleet, Home, Mood, Step, phase_per_tier};
use crate::foreign::Temper;
use crate::receiver::Manner;
use crate::repository::BRANCHES;
use crate::run;
use crate::scenario::{AFTER, BEFORE, Ending, Kind, PROGRESS, Process, STILL, Scenario};
use crate::wire::{Blow, Doom, Fault, Moment, Weather};

/// A fleet of which each is in a tier; one of each step may be under way.
fn fleet(tiers: &[usize]) -> Fleet {
    let element = |(number, tier): (usize, &usize)| {
        let element = Element { tier: *tier, member: "north".to_owned(), home: Home::Branch(0) };
        (format!("app-{number}"), element)
    };
    let last = tiers.iter().copied().max().unwrap_or_default();
    Fleet {
        elements: tiers.iter().enumerate().map(element).collect(),
        finalizer: true,
        automated: true,
        steps: (0..=last)
            .map(|tier| Step { tier, max_update: Some(json!(1)), wait: None, failures: None })
            .collect(),
        ..Fleet::default()
    }
}

/// What commits hold: each of these moods one after the other.
fn commits(fleet: &Fleet, moods: &[Mood]) -> Vec<BTreeMap<String, Content>> {
    let commit = |(number, mood): (usize, &Mood)| {
        let content = Content { version: format!("m{number}"), mood: *mood, guarded: false };
        fleet.elements.keys().map(|name| (name.clone(), content.clone())).collect()
    };
    moods.iter().enumerate().map(commit).collect()
}

/// What is wrong in a world in which nothing goes wrong but what is told, each so many milliseconds after the other.
fn violations(fleet: Fleet, moods: &[Mood], actions: Vec<(u64, Action)>) -> Vec<String> {
    judged(scenario(fleet, moods, actions))
}

fn scenario(fleet: Fleet, moods: &[Mood], actions: Vec<(u64, Action)>) -> Scenario {
    Scenario {
        seed: 1,
        kind: Kind::Usual,
        members: vec!["north".to_owned()],
        branches: BRANCHES.to_vec(),
        commits: vec![commits(&fleet, moods)],
        fleet,
        actions: actions.into_iter().map(|(wait, action)| (Duration::from_millis(wait), action)).collect(),
        weather: Weather::default(),
        dooms: BTreeMap::new(),
        behind: Duration::ZERO,
        tagged: false,
        slow_git: Duration::ZERO,
        skew: BTreeMap::new(),
        second: None,
        foreign: None,
        before: BEFORE,
        after: AFTER,
        waits: Duration::ZERO,
        still: STILL,
        receiver: Manner::Moody,
        ending: Ending::Usual,
    }
}

fn judged(scenario: Scenario) -> Vec<String> {
    let report = run::world(scenario, false);
    if !report.violations.is_empty() {
        println!("{report}");
    }
    report.violations.iter().map(|violation| format!("{}: {}", violation.invariant, violation.text)).collect()
}

fn push() -> Action {
    Action::Push { branch: 0, noticed: vec!["app-0".to_owned(), "app-1".to_owned()] }
}

#[test]
fn whoever_was_under_way_when_the_head_was_lost_still_holds_its_slot() {
    for how in [Edit::Delete, Edit::Reset, Edit::Garble] {
        let actions = vec![(0, push()), (6_000, Action::Head(how)), (0, Action::Retry { app: None })];
        assert_eq!(violations(fleet(&[0, 0]), &[Mood::Good, Mood::Slow], actions), [""; 0]);
    }
}

#[test]
fn whoever_is_being_healed_when_a_commit_comes_still_holds_its_slot() {
    let drift = Action::Drift { app: "app-1".to_owned(), deletes: false };
    let noticed = Action::Push { branch: 0, noticed: vec!["app-0".to_owned()] };
    let actions = vec![(0, drift), (200, noticed)];
    assert_eq!(violations(fleet(&[0, 0]), &[Mood::Good, Mood::Good], actions), [""; 0]);
}

#[test]
fn what_was_let_go_is_not_taken_back_by_a_leader_who_has_not_heard() {
    for seed in 1..6 {
        let ordered = Fleet { deletion: Deletion::Reverse, ..fleet(&[0, 1]) };
        let actions = vec![(0, Action::DeleteSet { cascade: "Orphan" })];
        let weather = Weather { lag: Duration::from_secs(5), ..Weather::default() };
        let second = Some((Duration::from_secs(5), Duration::from_secs(300)));
        let scenario = Scenario { seed, weather, second, ..scenario(ordered, &[Mood::Good], actions) };
        assert_eq!(judged(scenario), [""; 0], "seed {seed}");
    }
}

#[test]
fn whoever_is_done_is_not_started_again_for_a_stamp_that_people_spoiled() {
    for how in [Edit::Delete, Edit::Reset, Edit::Garble] {
        let edit = Action::EditStamp { app: "app-0".to_owned(), how };
        // The second is under way then.
        let actions = vec![(0, push()), (35_000, edit)];
        assert_eq!(violations(fleet(&[0, 0]), &[Mood::Good, Mood::Slow], actions), [""; 0], "{how:?}");
    }
}

#[test]
fn a_fence_that_lands_in_the_place_of_a_start_is_not_taken_for_it() {
    // It dies between the record of a start under a new template and the start itself, and is held when it comes back.
    let blow = Doom { moment: Moment::Recorded(3), blow: Blow::Before };
    let actions = vec![(0, Action::Variant), (1_500, Action::Pause), (20_000, Action::Resume)];
    let scenario = Scenario {
        dooms: BTreeMap::from([(Process::Sets, vec![(blow, Duration::from_secs(3))])]),
        ..scenario(fleet(&[0, 1]), &[Mood::Good], actions)
    };
    assert_eq!(judged(scenario), [""; 0]);
}

#[test]
fn whoever_began_after_the_head_was_lost_is_waited_for_by_those_who_only_may_have() {
    let away = Action::GitAway { branch: 0, time: Duration::from_secs(30) };
    let actions = vec![
        (0, away),
        (9_000, Action::Head(Edit::Delete)),
        (60, Action::Variant),
        (15_000, Action::Push { branch: 0, noticed: Vec::new() }),
    ];
    assert_eq!(violations(fleet(&[0, 0]), &[Mood::Good, Mood::Good], actions), [""; 0]);
}

#[test]
fn whoever_is_wanted_again_while_it_goes_has_its_turn_until_it_is_gone() {
    let ordered = Fleet { deletion: Deletion::Reverse, ..fleet(&[0, 1, 1]) };
    let leave = |app: &str| Action::Leave { app: app.to_owned() };
    let join = Action::Join { app: "app-2".to_owned(), tier: 1 };
    let actions = vec![(0, leave("app-2")), (100, join), (100, leave("app-1"))];
    assert_eq!(violations(ordered, &[Mood::Good], actions), [""; 0]);
}

#[test]
fn what_was_to_be_healed_and_was_edited_since_is_not_synced_as_it_was_edited() {
    let blow = Doom { moment: Moment::Recorded(3), blow: Blow::Before };
    let app = || "app-0".to_owned();
    let actions = vec![
        (0, Action::Drift { app: app(), deletes: false }),
        (2_000, Action::EditSpec { app: app(), path: true }),
        // The next run brings the specification back.
        (30_000, push()),
    ];
    let scenario = Scenario {
        dooms: BTreeMap::from([(Process::Sets, vec![(blow, Duration::from_secs(5))])]),
        ..scenario(fleet(&[0, 0]), &[Mood::Good, Mood::Good], actions)
    };
    assert_eq!(judged(scenario), [""; 0]);
}

#[test]
fn whoever_holds_a_slot_holds_it_before_a_leader_who_has_not_seen_it() {
    for seed in 1..9 {
        // One of two is there again, and started, before the other leader hears of it.
        let recreate = Action::Recreate { app: "app-0".to_owned() };
        let weather = Weather { lag: Duration::from_secs(5), ..Weather::default() };
        let second = Some((Duration::from_secs(5), Duration::from_secs(300)));
        let scenario =
            scenario(fleet(&[0, 0]), &[Mood::Good, Mood::Slow], vec![(0, recreate), (2_000, push())]);
        assert_eq!(judged(Scenario { seed, weather, second, ..scenario }), [""; 0], "seed {seed}");
    }
}

#[test]
fn what_was_written_and_not_synced_is_not_brought_in_by_healing() {
    // People sync the first step: they have not yet, when the template changes, and then one of them comes later.
    let mut fleet = fleet(&[0, 0, 1]);
    fleet.steps[0].max_update = Some(json!(0));
    let actions = vec![
        (0, Action::SyncByHand),
        (20_000, Action::Variant),
        (5_000, Action::Relabel { app: "app-1".to_owned(), tier: 1 }),
        // It has not looked at the new commit yet.
        (5_000, Action::Push { branch: 0, noticed: vec!["app-0".to_owned()] }),
    ];
    assert_eq!(violations(fleet, &[Mood::Good, Mood::Good], actions), [""; 0]);
}

#[test]
fn answers_that_are_lost_time_and_again_are_asked_for_until_one_comes() {
    for seed in 1..13 {
        let scenario = scenario(fleet(&[0, 1]), &[Mood::Good, Mood::Good], vec![(0, push())]);
        let temper = Temper::new(&mut Dice::new(seed, "temper"));
        let foreign = Some(Temper { nonce: true, loses: 80, ..temper });
        let scenario = Scenario { seed, foreign, ..scenario };
        assert_eq!(judged(scenario), [""; 0], "seed {seed}");
    }
}

/// Two phases with a hook before and after each, and a commit that goes through them.
fn phased() -> Scenario {
    let fleet = Fleet { steps: Vec::new(), phased: Some(phase_per_tier(2)), ..fleet(&[0, 1]) };
    let scenario = scenario(fleet, &[Mood::Good, Mood::Good], vec![(0, push())]);
    Scenario { waits: PROGRESS, receiver: Manner::Steady(BTreeSet::new()), ..scenario }
}

/// A controller dies before and after each moment there is of a kind, once in each world, until there is none left.
fn dies_at_each(process: Process, moment: fn(u64) -> Moment, faults: [Fault; 2]) -> u64 {
    let mut number = 0;
    loop {
        number += 1;
        let mut struck = 0;
        for (blow, fault) in [Blow::Before, Blow::After].into_iter().zip(faults) {
            let doom = (Doom { moment: moment(number), blow }, Duration::from_secs(2));
            let dooms = BTreeMap::from([(process, vec![doom])]);
            let report = run::world(Scenario { dooms, ..phased() }, false);
            assert!(report.violations.is_empty(), "{fault:?} {number}:\n{report}");
            let words = format!("fault: {}", fault.words());
            struck += report.counts.get(&words).copied().unwrap_or_default();
        }
        if struck == 0 {
            return number - 1;
        }
    }
}

#[test]
fn a_controller_of_sets_that_dies_before_or_after_any_call_of_a_phased_rollout_takes_it_up_again() {
    let faults = [Fault::CallCrashBefore, Fault::CallCrashAfter];
    // Four in the first rollout, and four in the second.
    assert_eq!(dies_at_each(Process::Sets, Moment::Call, faults), 8);
}

#[test]
fn a_controller_of_sets_that_dies_before_or_after_any_write_of_a_phased_rollout_takes_it_up_again() {
    let faults = [Fault::CrashBefore, Fault::CrashAfter];
    let writes = dies_at_each(Process::Sets, Moment::Write, faults);
    assert!(writes > 40, "{writes} writes");
}

#[test]
fn an_application_controller_that_dies_before_or_after_any_write_of_a_phased_rollout_takes_it_up_again() {
    let faults = [Fault::CrashBefore, Fault::CrashAfter];
    let writes = dies_at_each(Process::Applications, Moment::Write, faults);
    assert!(writes > 10, "{writes} writes");
}
