//! Phased worlds: every set goes in phases, with hooks, checks, waits and failures of every kind.

use std::collections::BTreeMap;
use std::time::Duration;

use super::strategy::{self, FAILURES};
use super::{
    AFTER, BEFORE, Draft, Ending, Kind, MEMBERS, NAMES, Process, STILL, Scenario, companions, count, name,
    skew,
};
use crate::action::Action;
use crate::dice::Dice;
use crate::fleet::{Content, Element, Fleet, Home, Mood};
use crate::foreign::Temper;
use crate::receiver::Manner;
use crate::repository::BRANCHES;
use crate::wire::{Blow, Doom, Fault, Moment, Weather};

/// What people do in phased worlds, one word each, in turn.
const FEATURED: [&str; 15] = [
    "Push",
    "Advance",
    "Retry",
    "Rollback",
    "Variant",
    "Abort",
    "Relabel",
    "Join",
    "Pause",
    "DropPhases",
    "Leave",
    "Skip",
    "Rephase",
    "Option",
    "Resume",
];

/// How often they do what beside.
const WEIGHTS: [(&str, u64); 18] = [
    ("Push", 26),
    ("Variant", 6),
    ("Option", 3),
    ("Relabel", 4),
    ("Join", 5),
    ("Leave", 4),
    ("Pause", 3),
    ("Resume", 3),
    ("Abort", 3),
    ("Retry", 6),
    ("Skip", 2),
    ("Advance", 6),
    ("Rollback", 6),
    ("DropPhases", 2),
    ("Rephase", 3),
    ("Flap", 2),
    ("Drift", 3),
    ("Operate", 2),
];

/// How many commits people have in reserve, should the last have been put back.
const SPARE: usize = 2;

/// The faults of these worlds. What phases go by is what is shown of them, so that it is never refused.
fn faults() -> Vec<Fault> {
    Fault::phased().iter().copied().filter(|fault| *fault != Fault::ViewRefused).collect()
}

/// Draws the world of a seed.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, "phased fleet");
    let members = MEMBERS[..if dice.chance(20) { 3 } else { 2 }].to_vec();
    let tiers = strategy::tiers(&mut dice);
    let featured_action = FEATURED[count(seed) % FEATURED.len()];
    // Shifted a little more each time round, so that each fault meets each action.
    let faults = faults();
    let featured = faults[(count(seed) + count(seed) / FEATURED.len()) % faults.len()];
    let failure = FAILURES[(count(seed) + count(seed) / FAILURES.len()) % FAILURES.len()];
    let fleet = fleet(&mut dice, &members, tiers, failure);
    let alone = dice.chance(40);
    let mut draft = Draft {
        dice: Dice::new(seed, "phased actions"),
        tiers,
        members: members.clone(),
        fleet: fleet.clone(),
        exodus: false,
        actions: Vec::new(),
        pushes: [0; BRANCHES.len()],
        weights: &WEIGHTS,
    };
    draft.draw_phased(featured_action, featured, alone);
    let (actions, pushes) = (draft.actions, draft.pushes);
    let mut dice = Dice::new(seed, "phased commits");
    let commits = pushes.iter().zip(["m", "r", "x"]);
    let commits = commits.map(|(pushes, tag)| commits_of(&mut dice, tag, pushes + 1)).collect();
    let mut dice = Dice::new(seed, "phased faults");
    let weather = Weather::new(&mut dice, featured, alone, true);
    let wrong = featured == Fault::Skew || (dice.chance(8) && !alone);
    let behind = match featured == Fault::GitBehind || (dice.chance(6) && !alone) {
        true => Duration::from_secs(*dice.pick(&[4, 12, 30])),
        false => Duration::ZERO,
    };
    let mut dooms = [Process::Sets, Process::Applications]
        .map(|process| (process, blows(&mut dice, process, featured, alone)))
        .into_iter()
        .collect();
    let (slow_git, slow_members) = companions(seed, &mut dooms, !alone);
    let weather = Weather { slow_members, ..weather };
    let second = (featured == Fault::SecondLeader || (dice.chance(12) && !alone)).then(|| {
        let begin = Duration::from_secs(dice.between(5, 60));
        (begin, Duration::from_secs(dice.between(60, 300)))
    });
    let mut dice = Dice::new(seed, "phased receiver");
    let receiver = Manner::Trying(*dice.pick(&[0, 10, 25, 25, 60]));
    let ending = *dice.pick(&[Ending::Retry, Ending::Advance, Ending::Commit, Ending::Leave, Ending::Leave]);
    let foreign = dice.chance(40).then(|| Temper::new(&mut dice));
    Scenario {
        seed,
        kind: Kind::Phased,
        members: members.into_iter().map(str::to_owned).collect(),
        branches: BRANCHES.to_vec(),
        fleet,
        commits,
        actions,
        weather,
        dooms,
        behind,
        tagged: false,
        slow_git,
        skew: skew(&mut Dice::new(seed, "phased skew"), wrong),
        foreign,
        second,
        before: BEFORE,
        after: AFTER,
        // Deadlines and waits are shorter than what is taken for rest.
        waits: Duration::ZERO,
        still: STILL + Duration::from_secs(15),
        receiver,
        ending,
    }
}

fn fleet(dice: &mut Dice, members: &[&str], tiers: usize, failure: &str) -> Fleet {
    let apps = dice.between(3, 4);
    let element = |dice: &mut Dice| {
        // Now and then an Application is in no phase.
        let tier = if dice.chance(4) { tiers } else { count(dice.below(tiers as u64)) };
        Element { tier, member: (*dice.pick(members)).to_owned(), home: Home::Branch(0) }
    };
    let elements = (0..apps).map(|number| (name(number), element(dice))).collect();
    Fleet {
        elements,
        finalizer: dice.chance(50),
        automated: dice.chance(60),
        phased: Some(strategy::draw(dice, tiers, Some(failure))),
        ..Fleet::default()
    }
}

/// The commits of a branch: many of them hold somebody who does not get well.
fn commits_of(dice: &mut Dice, tag: &str, number: usize) -> Vec<BTreeMap<String, Content>> {
    let content = |version: String, mood| Content { version, mood, guarded: false };
    let first = |name| (name, content(format!("{tag}0"), Mood::Good));
    let mut commits: Vec<BTreeMap<String, Content>> = vec![(0..NAMES).map(name).map(first).collect()];
    let slow = dice.chance(20);
    for number in 1..number + SPARE {
        let mut next = commits[number - 1].clone();
        let all = dice.chance(60);
        for content in next.values_mut() {
            if all || content.mood.is_bad() || dice.chance(50) {
                content.version = format!("{tag}{number}");
            }
            content.mood = if slow { Mood::Slow } else { Mood::Good };
        }
        if dice.chance(45)
            && let Some(content) = next.get_mut(&name(dice.below(4)))
        {
            let moods = [Mood::Failing, Mood::Failing, Mood::Refused, Mood::Stuck, Mood::Slow];
            (content.version, content.mood) = (format!("{tag}{number}"), *dice.pick(&moods));
        }
        commits.push(next);
    }
    // Most worlds end with commits that mend what the others broke.
    let broken = dice.chance(12);
    let end = commits.len().saturating_sub(SPARE + 1);
    for commit in commits.iter_mut().skip(end).filter(|_| !broken) {
        commit.values_mut().filter(|content| content.mood.is_bad()).for_each(|c| c.mood = Mood::Good);
    }
    commits
}

/// The blows to one controller.
fn blows(dice: &mut Dice, process: Process, featured: Fault, alone: bool) -> Vec<(Doom, Duration)> {
    let sets = process == Process::Sets;
    let mut dooms = Vec::new();
    if sets && (featured == Fault::FrozenLeader || (dice.chance(12) && !alone)) {
        let moment = match dice.chance(60) {
            true => Moment::Recorded(dice.between(1, 10)),
            false => Moment::Write(dice.between(1, 25)),
        };
        let blow = Blow::Freeze(Duration::from_millis(dice.between(500, 20_000)));
        dooms.push((Doom { moment, blow }, Duration::from_millis(dice.between(0, 60_000))));
    }
    let sure = match featured {
        Fault::CrashBefore => Some((false, Blow::Before)),
        Fault::CrashAfter => Some((false, Blow::After)),
        Fault::CallCrashBefore if sets => Some((true, Blow::Before)),
        Fault::CallCrashAfter if sets => Some((true, Blow::After)),
        _ => None,
    };
    let crashes = if dice.chance(40) && !alone { dice.between(1, 3) } else { 0 };
    for number in 0..crashes.max(u64::from(sure.is_some()) * 2) {
        let random = (sets && dice.chance(40), if dice.chance(50) { Blow::After } else { Blow::Before });
        let (at_call, blow) = sure.filter(|_| number == 0 || dice.chance(50)).unwrap_or(random);
        let moment = match at_call {
            true => Moment::Call(dice.between(1, 6)),
            false => Moment::Write(dice.between(1, 25)),
        };
        dooms.push((Doom { moment, blow }, Duration::from_millis(dice.between(100, 20_000))));
    }
    dooms
}

impl Draft {
    /// Draws what happens; one action and one fault are sure to be tried.
    fn draw_phased(&mut self, action: &str, fault: Fault, alone: bool) {
        let number = match self.dice.below(10) {
            0 => self.dice.between(3, 5),
            1..4 => 2,
            _ => self.dice.between(0, 1),
        };
        let sure = self.dice.below(number + 1);
        for place in 0..=number {
            let word = if place == sure { action } else { self.word() };
            // What these are about is a rollout that is under way, or has failed.
            let about_a_rollout =
                ["Pause", "Abort", "Retry", "Advance", "Rollback", "Skip", "DropPhases", "Drift", "Operate"];
            if about_a_rollout.contains(&word) {
                let push = self.push();
                self.add(push);
            }
            let action = self.action(word);
            self.add(action);
        }
        self.spoil(fault, alone);
        let noticed = self.noticed();
        self.add(Action::Push { branch: 0, noticed });
        if self.fleet.paused {
            self.add(Action::Resume);
        }
        if self.dice.chance(6) {
            let cascade = *self.dice.pick(&["Background", "Foreground", "Orphan"]);
            self.add(Action::DeleteSet { cascade });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::action::PHASE_ACTIONS;

    #[test]
    fn phased_worlds_have_numbers_of_their_own() {
        let world = Scenario::new(2_000_005);
        assert_eq!((world.kind, world.seed, world.number()), (Kind::Phased, 5, 2_000_005));
        assert_eq!(format!("{world:?}"), format!("{:?}", Scenario::new(2_000_005)));
    }

    #[test]
    fn every_action_fault_and_consequence_of_a_failure_is_drawn() {
        let worlds: Vec<Scenario> = (0..60).map(scenario).collect();
        assert!(worlds.iter().all(|world| world.fleet.phased.is_some()));
        let actions = worlds.iter().flat_map(|world| &world.actions).map(|(_, action)| action.word());
        let actions: BTreeSet<String> = actions.collect();
        for word in FEATURED.iter().chain(&PHASE_ACTIONS) {
            assert!(actions.contains(*word), "{word} is never done");
        }
        let moments = worlds.iter().flat_map(|world| world.dooms.values().flatten());
        let calls = moments.filter(|(doom, _)| matches!(doom.moment, Moment::Call(_))).count();
        assert!(calls > 5, "{calls} blows at calls");
        let phases = |world: &Scenario| -> Vec<Value> {
            let phases =
                world.fleet.phased.as_ref().and_then(|strategy| strategy["phases"].as_array().cloned());
            phases.unwrap_or_default()
        };
        let phases: Vec<Value> = worlds.iter().flat_map(phases).collect();
        let failures: BTreeSet<&str> =
            phases.iter().filter_map(|phase| phase["onFailure"]["action"].as_str()).collect();
        assert_eq!(failures, FAILURES.into_iter().collect());
        for field in ["percentage", "maxUpdate", "maxConcurrent", "waitDuration"] {
            assert!(phases.iter().any(|phase| !phase[field].is_null()), "no phase has {field}");
        }
    }
}
