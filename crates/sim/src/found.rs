//! What the simulator once found, each in a world as small as it can be.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::action::{Action, Edit};
use crate::fleet::{Content, Deletion, Element, Fleet, Home, Mood, Step};
use crate::receiver::Manner;
use crate::repository::BRANCHES;
use crate::run;
use crate::scenario::{AFTER, BEFORE, Ending, Kind, Process, STILL, Scenario};
use crate::wire::{Blow, Doom, Moment, Weather};

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
