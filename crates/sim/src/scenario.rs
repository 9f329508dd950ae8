//! What happens in a world, drawn from its seed before it begins.

mod phased;
mod strategy;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::action::{ACTIONS, Action, Edit, Operation};
use crate::dice::Dice;
use crate::fleet::{Content, Deletion, Element, Fleet, Home, Mood, Slip, Step, phase_per_tier};
use crate::foreign::Temper;
use crate::receiver::Manner;
use crate::repository::{BRANCHES, Branch};
use crate::wire::{Blow, Doom, Fault, Moment, Weather};

/// Names of the member clusters.
const MEMBERS: [&str; 3] = ["north", "south", "west"];
/// How long the first rollout of a fleet this small may take.
pub(crate) const BEFORE: Duration = Duration::from_secs(300);
/// How long its faults go on in the end.
pub(crate) const AFTER: Duration = Duration::from_secs(30);

/// In how many worlds of a hundred, where nobody must approve anything, the Application controller is a stand-in.
const FOREIGN: u64 = 55;

/// How many worlds there are of a kind.
const WORLDS: u64 = 1_000_000;

/// How many seconds an Application of a phase may take, and a little more.
const PROGRESS_DEADLINE: u64 = 660;
pub(crate) const PROGRESS: Duration = Duration::from_secs(PROGRESS_DEADLINE);
/// How long nothing is written once a fleet is rolled out.
pub(crate) const STILL: Duration = Duration::from_secs(20);

/// In how many worlds of a hundred there are phases in the place of steps, where what people do makes sense then.
const PHASED: u64 = 35;
/// What people do there.
const PHASED_ACTIONS: [&str; 14] = [
    "Push",
    "Variant",
    "Option",
    "Relabel",
    "Join",
    "Leave",
    "Pause",
    "Resume",
    "Flap",
    "Drift",
    "Storm",
    "EditSpec",
    "EditLabel",
    "Operate",
];

/// A world's fate.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) members: Vec<String>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) fleet: Fleet,
    /// What each commit of each branch holds for each Application there will ever be.
    pub(crate) commits: Vec<Vec<BTreeMap<String, Content>>>,
    /// What happens, and how long after the one before.
    pub(crate) actions: Vec<(Duration, Action)>,
    /// What goes wrong with requests.
    pub(crate) weather: Weather,
    /// Blows to either controller, one life after the other, each with how long its successor is away or beside it.
    pub(crate) dooms: BTreeMap<Process, Vec<(Doom, Duration)>>,
    /// How far behind the git is that the Application controller reads.
    pub(crate) behind: Duration,
    /// Whether annotated tags that are moved stand in the place of branches.
    pub(crate) tagged: bool,
    /// How long a look at git takes either controller at least.
    pub(crate) slow_git: Duration,
    /// How wrong the clock of either controller is, in seconds.
    pub(crate) skew: BTreeMap<Process, i64>,
    /// How the Application controller behaves, where it is a stand-in for somebody else's.
    pub(crate) foreign: Option<Temper>,
    /// When a second controller of sets begins, and how long it stays.
    pub(crate) second: Option<(Duration, Duration)>,
    /// How long the first rollout may take before anything happens.
    pub(crate) before: Duration,
    /// How long faults go on after the last of what happens.
    pub(crate) after: Duration,
    /// How long nothing need be written though a step waits.
    pub(crate) waits: Duration,
    /// How long nothing is written once the fleet is rolled out in the beginning.
    pub(crate) still: Duration,
    /// How hooks are answered.
    pub(crate) receiver: Manner,
    /// What people do in the end where a phase has failed.
    pub(crate) ending: Ending,
}

/// A kind of worlds, which has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Usual,
    /// They may have phases, a mirror of git, and caches that are set back again and again.
    Wide,
    /// They have phases with all that belongs to them, and phases fail.
    Phased,
}

/// What people do in the end where a phase has failed and is held for them to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// They have it tried again, unless it was aborted or put back.
    Usual,
    /// They have it tried again; what was put back they commit anew.
    Retry,
    /// They let the rollout go on without it.
    Advance,
    /// They commit something newer.
    Commit,
    /// They leave it as it is.
    Leave,
}

/// A controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    Sets,
    Applications,
}

impl Scenario {
    pub(crate) fn new(number: u64) -> Scenario {
        let (seed, wide) = match Kind::of(number) {
            Kind::Phased => return phased::scenario(number % WORLDS),
            kind => (number % WORLDS, kind == Kind::Wide),
        };
        let mut dice = Dice::new(seed, "fleet");
        let members = MEMBERS[..if dice.chance(30) { 3 } else { 2 }].to_vec();
        let tiers = count(dice.between(2, 4));
        let action = ACTIONS[count(seed) % ACTIONS.len()];
        let mut fleet = first_fleet(&mut dice, &members, tiers, action);
        if action == "SyncByHand"
            && let Some(step) = fleet.steps.first_mut()
        {
            step.max_update = Some(json!(0));
        }
        if action == "Retry" {
            fleet.steps.iter_mut().for_each(|step| step.failures = Some(dice.below(2)));
        }
        // Shifted a little more each time round, so that each fault meets each action.
        let faults = if wide { Fault::wide() } else { Fault::narrow() };
        let featured = faults[(count(seed) + count(seed) / ACTIONS.len()) % faults.len()];
        let mut phases = Dice::new(seed, "phases");
        // What is shown of steps may be refused, and they go on; `status.phases` is what phases go by.
        let sighted = featured != Fault::ViewRefused;
        if wide && phases.chance(PHASED) && PHASED_ACTIONS.contains(&action) && !fleet.spread && sighted {
            (fleet.phased, fleet.deletion) = (Some(phase_per_tier(tiers)), Deletion::AllAtOnce);
        }
        // Nobody could be told what is left to prune.
        fleet.automated |= featured == Fault::ViewRefused;
        // Where little goes wrong at once, the judge knows best what a controller could have known.
        let alone = Dice::new(seed, "alone").chance(40);
        let mut draft = Draft {
            dice: Dice::new(seed, "actions"),
            tiers,
            members: members.clone(),
            fleet: fleet.clone(),
            exodus: false,
            actions: Vec::new(),
            pushes: [0; BRANCHES.len()],
            weights: &WEIGHTS,
        };
        draft.draw(action, featured, alone);
        let (actions, pushes) = (draft.actions, draft.pushes);
        // Beside, so that whatever else is drawn is what it was.
        let mut forms = Dice::new(seed, "forms");
        let tagged = wide && fleet.spread && forms.chance(50);
        fleet.refreshes = wide && forms.chance(15);
        // Everything takes long, and half of what is found is lost.
        let dull = wide && action == "Push" && forms.chance(70);
        let mut dice = Dice::new(seed, "commits");
        let guarded = action == "Approve" || dice.chance(if action == "Recreate" { 60 } else { 12 });
        // Where all are slow, much happens in the middle of a rollout.
        let slow = dice.chance(if action == "Storm" { 60 } else { 15 });
        let branches = pushes.iter().zip(["m", "r", "x"]);
        let mut commits: Vec<Vec<BTreeMap<String, Content>>> = branches
            .map(|(pushes, tag)| commits(&mut dice, tag, (guarded, slow, action == "Retry"), pushes + 1))
            .collect();
        if dull {
            let good = commits.iter_mut().flatten().flat_map(BTreeMap::values_mut);
            good.filter(|content| content.mood == Mood::Good).for_each(|content| content.mood = Mood::Slow);
        }
        let mut dice = Dice::new(seed, "faults");
        let weather = Weather::new(&mut Dice::new(seed, "weather"), featured, alone, wide);
        let wrong = featured == Fault::Skew || (dice.chance(10) && !alone);
        let skew = skew(&mut Dice::new(seed, "skew"), wrong);
        let mut late = Dice::new(seed, "behind");
        let behind = match wide && (featured == Fault::GitBehind || (late.chance(6) && !alone)) {
            true => Duration::from_secs(*late.pick(&[4, 12, 30])),
            false => Duration::ZERO,
        };
        // People hold a rollout where nothing moves.
        let holds = ["Pause", "Abort"].contains(&action).then_some(fleet.elements.len() as u64);
        let mut dooms: BTreeMap<Process, Vec<(Doom, Duration)>> = [Process::Sets, Process::Applications]
            .map(|process| (process, dooms(&mut dice, process, featured, (alone, holds))))
            .into_iter()
            .collect();
        let mut late = Dice::new(seed, "late blow");
        if guarded && !alone && late.chance(60) {
            // Late enough to strike while something waits for approval, or is deleted after it.
            let doom = Doom { moment: Moment::Write(late.between(20, 60)), blow: Blow::After };
            dooms
                .entry(Process::Applications)
                .or_default()
                .push((doom, Duration::from_secs(late.between(1, 10))));
        }
        let (slow_git, slow_members) = companions(seed, &mut dooms, wide && !alone);
        let weather = Weather { slow_members, ..weather };
        let second = (featured == Fault::SecondLeader || (dice.chance(12) && !alone)).then(|| {
            let seconds = |least, most, dice: &mut Dice| Duration::from_secs(dice.between(least, most));
            (seconds(5, 60, &mut dice), seconds(60, 300, &mut dice))
        });
        // An Application that does not get well fails its phase in the end.
        let waits = Duration::from_secs(if fleet.phased.is_some() { PROGRESS_DEADLINE } else { 0 });
        let mut dice = Dice::new(seed, "foreign");
        // Where people approve, and how that is waited for, is a matter of our own.
        let mut foreign = (dice.chance(FOREIGN) && !guarded).then(|| Temper::new(&mut dice));
        if let Some(temper) = foreign.as_mut().filter(|_| dull) {
            (temper.nonce, temper.split, temper.loses) = (true, true, 75);
            (temper.least, temper.late) = (Duration::from_secs(6), Duration::from_secs(8));
            temper.slow = Duration::from_millis(500);
        }
        Scenario {
            seed,
            kind: if wide { Kind::Wide } else { Kind::Usual },
            foreign,
            members: members.into_iter().map(str::to_owned).collect(),
            branches: BRANCHES.to_vec(),
            fleet,
            commits,
            actions,
            weather,
            dooms,
            behind,
            tagged,
            slow_git,
            skew,
            second,
            before: BEFORE,
            after: AFTER,
            waits,
            still: STILL,
            receiver: Manner::Moody,
            ending: Ending::Usual,
        }
    }
}

impl Scenario {
    /// The number it is drawn from.
    pub(crate) fn number(&self) -> u64 {
        self.seed + self.kind.first()
    }

    /// Whether a leader stands still in it for a while.
    pub(crate) fn freezes(&self) -> bool {
        let dooms = self.dooms.get(&Process::Sets).into_iter().flatten();
        dooms.into_iter().any(|(doom, _)| matches!(doom.blow, Blow::Freeze(_)))
    }

    /// Whether nothing goes wrong in it but that watches are late.
    pub(crate) fn is_smooth(&self) -> bool {
        let weather = &self.weather;
        weather.rates.is_empty()
            && weather.cut.is_none()
            && weather.stale == 0
            && self.dooms.values().all(Vec::is_empty)
            && self.second.is_none()
            && self.slow_git.is_zero()
            && weather.slow_members.is_zero()
            && !self.actions.iter().any(|(_, action)| action.fault().is_some())
    }
}

impl Kind {
    /// The kind of a world.
    fn of(number: u64) -> Kind {
        match number / WORLDS {
            0 => Kind::Usual,
            1 => Kind::Wide,
            _ => Kind::Phased,
        }
    }

    /// The number from which on its worlds are.
    fn first(self) -> u64 {
        match self {
            Kind::Usual => 0,
            Kind::Wide => WORLDS,
            Kind::Phased => 2 * WORLDS,
        }
    }
}

/// What comes with other faults: a controller may die at a read, and looks at git, and what members answer, may take a
/// while, which is told.
fn companions(
    seed: u64,
    dooms: &mut BTreeMap<Process, Vec<(Doom, Duration)>>,
    are_about: bool,
) -> (Duration, Duration) {
    let mut dice = Dice::new(seed, "companions");
    if !are_about {
        return (Duration::ZERO, Duration::ZERO);
    }
    if dice.chance(12) {
        let process = *dice.pick(&[Process::Sets, Process::Applications]);
        let doom = Doom { moment: Moment::Read(dice.between(1, 60)), blow: Blow::Before };
        let away = Duration::from_millis(dice.between(100, 20_000));
        dooms.entry(process).or_default().insert(0, (doom, away));
    }
    let mut takes = |chance: u64, seconds: &[u64]| match dice.chance(chance) {
        true => Duration::from_secs(*dice.pick(seconds)),
        false => Duration::ZERO,
    };
    (takes(8, &[1, 4, 15]), takes(8, &[1, 5]))
}

/// The blows to one controller.
fn dooms(
    dice: &mut Dice,
    process: Process,
    featured: Fault,
    (alone, holds): (bool, Option<u64>),
) -> Vec<(Doom, Duration)> {
    let others = |dice: &mut Dice, percent: u64| dice.chance(percent) && !alone;
    let freezes = process == Process::Sets
        && (featured == Fault::FrozenLeader || others(dice, 15) || (holds.is_some() && dice.chance(50)));
    let crashes = if others(dice, 40) { dice.between(1, 3) } else { 0 };
    let sure = match (process, featured) {
        (_, Fault::CrashBefore) => Some(Blow::Before),
        (_, Fault::CrashAfter) => Some(Blow::After),
        _ => None,
    };
    let mut dooms = Vec::new();
    if freezes {
        let moment = match (dice.chance(75), holds) {
            // In the rollout that is held, not in the first, in which each is started once.
            (true, Some(apps)) => Moment::Started(apps + dice.between(1, 3)),
            (true, None) => Moment::Recorded(dice.between(1, 10)),
            (false, _) => Moment::Write(dice.between(1, 25)),
        };
        let blow = Blow::Freeze(Duration::from_millis(dice.between(500, 20_000)));
        dooms.push((Doom { moment, blow }, Duration::from_millis(dice.between(0, 60_000))));
    }
    for number in 0..crashes.max(u64::from(sure.is_some())) {
        let random = if dice.chance(50) { Blow::After } else { Blow::Before };
        let blow = sure.filter(|_| number == 0).unwrap_or(random);
        let doom = Doom { moment: Moment::Write(dice.between(1, 25)), blow };
        let mut away = Duration::from_millis(dice.between(100, 20_000));
        if process == Process::Applications && dice.chance(8) {
            away += Duration::from_secs(130);
        }
        dooms.push((doom, away));
    }
    dooms
}

/// How wrong either clock is, if they are.
pub(crate) fn skew(dice: &mut Dice, wrong: bool) -> BTreeMap<Process, i64> {
    let mut seconds = || i64::try_from(dice.between(1, 120)).unwrap_or(0) - 60;
    let all = [Process::Sets, Process::Applications].map(|process| (process, seconds()));
    all.into_iter().filter(|_| wrong).collect()
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn name(number: u64) -> String {
    format!("app-{number}")
}

/// Every Application there may ever be.
const NAMES: u64 = 9;

fn first_fleet(dice: &mut Dice, members: &[&str], tiers: usize, action: &str) -> Fleet {
    // Small fleets are quick and show most of what large ones do.
    let apps = if dice.chance(20) || action == "Exodus" { dice.between(6, 7) } else { dice.between(3, 4) };
    let spread = dice.chance(30);
    let elements = (0..apps).map(|number| (name(number), element(dice, members, tiers, spread)));
    let mut elements: BTreeMap<String, Element> = elements.collect();
    if spread && let Some(element) = elements.get_mut(&name(dice.below(apps))) {
        element.home = Home::Both;
    }
    Fleet {
        elements,
        finalizer: dice.chance(60),
        automated: dice.chance(60),
        spread,
        steps: steps(dice, tiers),
        deletion: deletion(dice, tiers),
        ..Fleet::default()
    }
}

fn element(dice: &mut Dice, members: &[&str], tiers: usize, spread: bool) -> Element {
    // Now and then an Application is in no step.
    let tier = if dice.chance(5) { tiers } else { count(dice.below(tiers as u64)) };
    Element { tier, member: (*dice.pick(members)).to_owned(), home: home(dice, spread) }
}

fn home(dice: &mut Dice, spread: bool) -> Home {
    Home::Branch(if spread { count(dice.below(BRANCHES.len() as u64)) } else { 0 })
}

fn steps(dice: &mut Dice, tiers: usize) -> Vec<Step> {
    let limit = |dice: &mut Dice| -> Option<Value> {
        match dice.below(100) {
            0..40 => None,
            40..70 => Some(json!(1)),
            70..95 => Some(json!("50%")),
            95..98 => Some(json!(2)),
            _ => Some(json!(0)),
        }
    };
    let step = |tier| {
        let max_update = limit(dice);
        let wait = dice.chance(12).then(|| dice.between(5, 40));
        let failures = dice.chance(20).then(|| dice.between(0, 1));
        Step { tier, max_update, wait, failures }
    };
    (0..tiers).map(step).collect()
}

fn deletion(dice: &mut Dice, tiers: usize) -> Deletion {
    match dice.below(3) {
        0 => Deletion::AllAtOnce,
        1 => Deletion::Reverse,
        _ => {
            let mut order: Vec<usize> = (0..tiers).collect();
            for place in (1..order.len()).rev() {
                order.swap(place, count(dice.below(place as u64 + 1)));
            }
            Deletion::Custom(order)
        }
    }
}

/// The commits of a branch. No two branches hold the same.
fn commits(
    dice: &mut Dice,
    tag: &str,
    (guarded, slow, fails): (bool, bool, bool),
    number: usize,
) -> Vec<BTreeMap<String, Content>> {
    let first = |name: String| (name, Content { version: format!("{tag}0"), mood: Mood::Good, guarded });
    let mut commits: Vec<BTreeMap<String, Content>> = vec![(0..NAMES).map(name).map(first).collect()];
    for number in 1..number {
        let all = dice.chance(60);
        let mut next = commits[number - 1].clone();
        for content in next.values_mut() {
            let bad = content.mood.is_bad();
            if all || bad || dice.chance(50) {
                content.version = format!("{tag}{number}");
            }
            content.mood = if slow { Mood::Slow } else { Mood::Good };
            if guarded && dice.chance(40) {
                content.guarded = !content.guarded;
            }
        }
        if (dice.chance(35) || fails)
            && let Some(content) = next.get_mut(&name(dice.below(5)))
        {
            content.version = format!("{tag}{number}");
            let any = [
                Mood::Slow,
                Mood::Stuck,
                Mood::Failing,
                Mood::Failing,
                Mood::Refused,
                Mood::Suspended,
                Mood::Unfathomable,
            ];
            let failing = [Mood::Failing, Mood::Refused];
            content.mood = if fails { *dice.pick(&failing) } else { *dice.pick(&any) };
        }
        commits.push(next);
    }
    // The last commit mends what the others broke, but for the rare world that ends broken.
    if let Some(last) = commits.last_mut()
        && !dice.chance(5)
    {
        last.values_mut().filter(|content| content.mood != Mood::Slow).for_each(|c| c.mood = Mood::Good);
    }
    commits
}

/// A scenario being drawn: what people would see, so that what they do makes sense.
struct Draft {
    dice: Dice,
    tiers: usize,
    members: Vec<&'static str>,
    fleet: Fleet,
    /// Whether all but one have left.
    exodus: bool,
    actions: Vec<(Duration, Action)>,
    pushes: [usize; BRANCHES.len()],
    /// How often people do what.
    weights: &'static [(&'static str, u64)],
}

/// How often people do what, of a hundred times.
const WEIGHTS: [(&str, u64); 33] = [
    ("Push", 26),
    ("Variant", 9),
    ("Option", 4),
    ("Relabel", 6),
    ("Join", 6),
    ("Leave", 5),
    ("Pause", 4),
    ("Resume", 4),
    ("Abort", 3),
    ("Retry", 3),
    ("Skip", 2),
    ("Strategy", 4),
    ("DeletionOrder", 3),
    ("Flap", 4),
    ("Drift", 5),
    ("Storm", 3),
    ("Exodus", 2),
    ("Return", 1),
    ("Break", 2),
    ("Mend", 1),
    ("Window", 3),
    ("EditSpec", 2),
    ("EditLabel", 2),
    ("EditStamp", 2),
    ("Operate", 3),
    ("SwitchOn", 2),
    ("Misplace", 2),
    ("Wipe", 3),
    ("Recreate", 2),
    ("SyncByHand", 2),
    ("Approve", 2),
    ("DeleteSet", 0),
    ("Trim", 1),
];

impl Draft {
    /// Draws what happens; one action and one fault are sure to be tried.
    fn draw(&mut self, action: &str, fault: Fault, alone: bool) {
        // Many short worlds show more than a few long ones.
        let number = match self.dice.below(100) {
            0..5 => self.dice.between(4, 7),
            5..30 => self.dice.between(2, 3),
            _ => self.dice.between(0, 1),
        };
        let sure = self.dice.below(number + 1);
        for place in 0..=number {
            let word = if place == sure { action } else { self.word() };
            // What these are about is a rollout that is under way.
            match word {
                "Pause" | "Abort" | "Retry" | "Drift" | "Operate" => {
                    let push = self.push();
                    self.add(push);
                }
                "SyncByHand" => self.add(Action::Variant),
                "Storm" | "Trim" => {
                    let noticed = self.first().into_iter().collect();
                    self.add(Action::Push { branch: 0, noticed });
                }
                _ => {}
            }
            let action = self.action(word);
            self.add(action);
        }
        self.spoil(fault, alone);
        // A broken commit is followed by one that mends it.
        for branch in 0..if self.fleet.spread { BRANCHES.len() } else { 1 } {
            let noticed = self.noticed();
            self.add(Action::Push { branch, noticed });
        }
        if self.fleet.paused {
            self.add(Action::Resume);
        }
        if self.fleet.broken.is_some() {
            self.add(Action::Mend);
        }
        if self.exodus {
            self.add(Action::Return);
        }
        for (word, chance) in [("Drift", 10), ("Recreate", 5)] {
            if action == word || self.dice.chance(chance) {
                let late = self.action(word);
                self.add(late);
            }
        }
        if action == "DeleteSet" || self.dice.chance(20) {
            let cascade = *self.dice.pick(&["Background", "Background", "Foreground", "Orphan"]);
            self.add(Action::DeleteSet { cascade });
        }
    }

    /// Members and git may go away, and the head may be lost, before any of the actions.
    fn spoil(&mut self, featured: Fault, alone: bool) {
        let time = Duration::from_secs(self.dice.between(5, 40));
        let member = (*self.dice.pick(&self.members)).to_owned();
        let branch = if self.fleet.spread { count(self.dice.below(BRANCHES.len() as u64)) } else { 0 };
        let all = [
            (Action::MemberAway { member, time }, 8),
            (Action::GitAway { branch, time }, 8),
            (Action::Head(Edit::Delete), 3),
            (Action::Head(Edit::Reset), 3),
            (Action::Head(Edit::Garble), 3),
        ];
        for (action, chance) in all {
            if action.fault() == Some(featured) || (self.dice.chance(chance) && !alone) {
                let place = count(self.dice.below(self.actions.len() as u64));
                let wait = Duration::from_millis(self.dice.between(0, 10_000));
                self.actions.insert(place, (wait, action));
            }
        }
    }

    fn add(&mut self, action: Action) {
        // Short waits fall into the middle of a rollout, long ones find it ended.
        let wait = match self.dice.below(10) {
            0..3 => self.dice.between(0, 500),
            3..8 => self.dice.between(500, 15_000),
            _ => self.dice.between(15_000, 120_000),
        };
        if let Action::Push { branch, .. } = &action {
            self.pushes[*branch] += 1;
        }
        self.actions.push((Duration::from_millis(wait), action));
    }

    fn word(&mut self) -> &'static str {
        let all: u64 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.dice.below(all);
        for (word, weight) in self.weights {
            if drawn < *weight {
                return word;
            }
            drawn -= weight;
        }
        "Push"
    }

    fn action(&mut self, word: &str) -> Action {
        match word {
            "Variant" => Action::Variant,
            "Option" => Action::Option,
            "Relabel" => Action::Relabel { app: self.member(), tier: self.tier() },
            "Join" => self.join(),
            "Leave" => self.leave(),
            "Pause" | "Resume" => {
                self.fleet.paused = !self.fleet.paused;
                if self.fleet.paused { Action::Pause } else { Action::Resume }
            }
            "Exodus" | "Return" => {
                self.exodus = !self.exodus;
                if self.exodus { Action::Exodus } else { Action::Return }
            }
            "Break" | "Mend" => {
                self.fleet.broken = match self.fleet.broken {
                    Some(_) => None,
                    None => Some(self.slip()),
                };
                self.fleet.broken.map_or(Action::Mend, |slip| Action::Break { slip })
            }
            "Window" => Action::Window { time: Duration::from_secs(self.dice.between(5, 60)) },
            "Abort" => Action::Abort,
            "Retry" => {
                let app = self.dice.chance(30).then(|| self.member());
                Action::Retry { app }
            }
            "Skip" => Action::Skip { app: self.member() },
            "Advance" => Action::Advance,
            "Rollback" => Action::Rollback { all: self.dice.chance(40) },
            "DropPhases" => Action::DropPhases,
            "Rephase" => Action::Rephase { strategy: strategy::draw(&mut self.dice, self.tiers, None) },
            "Strategy" => Action::Strategy { steps: steps(&mut self.dice, self.tiers) },
            "DeletionOrder" => Action::DeletionOrder(deletion(&mut self.dice, self.tiers)),
            "Flap" => Action::Flap { app: self.member() },
            "Drift" => Action::Drift { app: self.member(), deletes: self.dice.chance(40) },
            "Storm" => Action::Storm,
            "EditSpec" => Action::EditSpec { app: self.member(), path: self.dice.chance(60) },
            "EditLabel" => Action::EditLabel { app: self.member(), tier: self.tier() },
            "EditStamp" => {
                let how = *self.dice.pick(&[Edit::Delete, Edit::Reset, Edit::Garble]);
                Action::EditStamp { app: self.member(), how }
            }
            "Operate" => {
                let how = *self.dice.pick(&[Operation::Target, Operation::Earlier, Operation::Partial]);
                Action::Operate { app: self.member(), how, over: self.dice.chance(30) }
            }
            "SwitchOn" => Action::SwitchOn { app: self.member() },
            "Misplace" => Action::Misplace { app: self.member() },
            "Wipe" => Action::Wipe { app: self.member() },
            "Trim" => Action::Trim { app: self.first().unwrap_or_default() },
            "Recreate" => Action::Recreate { app: self.member() },
            "SyncByHand" => Action::SyncByHand,
            "Approve" => Action::Approve,
            _ => self.push(),
        }
    }

    /// By turns, where there is a step that another would follow.
    fn slip(&self) -> Slip {
        let waits = self.fleet.phased.is_none() && self.fleet.steps.len() > 1 && self.actions.len() % 2 == 1;
        if waits { Slip::Wait } else { Slip::Generators }
    }

    fn push(&mut self) -> Action {
        let branch = if self.fleet.spread { count(self.dice.below(BRANCHES.len() as u64)) } else { 0 };
        Action::Push { branch, noticed: self.noticed() }
    }

    fn join(&mut self) -> Action {
        let mut names = (0..NAMES).map(name).filter(|name| !self.fleet.elements.contains_key(name));
        let Some(app) = names.next() else { return self.leave() };
        let tier = self.tier();
        let element = Element { tier, member: String::new(), home: Home::Branch(0) };
        self.fleet.elements.insert(app.clone(), element);
        Action::Join { app, tier }
    }

    fn leave(&mut self) -> Action {
        if self.fleet.elements.len() < 3 {
            return self.join();
        }
        let app = self.member();
        self.fleet.elements.remove(&app);
        Action::Leave { app }
    }

    fn member(&mut self) -> String {
        let names: Vec<&String> = self.fleet.elements.keys().collect();
        (*self.dice.pick(&names)).clone()
    }

    /// One of the first step.
    fn first(&self) -> Option<String> {
        let first = self.fleet.elements.iter().find(|(_, element)| element.tier == 0);
        first.map(|(name, _)| name.clone())
    }

    fn tier(&mut self) -> usize {
        count(self.dice.below(self.tiers as u64))
    }

    /// Who looks at a new commit at once: nobody, one, or some.
    fn noticed(&mut self) -> Vec<String> {
        let part = *self.dice.pick(&[0, 20, 50, 100]);
        let names: Vec<String> = self.fleet.elements.keys().cloned().collect();
        names.into_iter().filter(|_| self.dice.chance(part)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_repeats_its_scenario() {
        assert_eq!(format!("{:?}", Scenario::new(5)), format!("{:?}", Scenario::new(5)));
        assert_ne!(format!("{:?}", Scenario::new(5)), format!("{:?}", Scenario::new(6)));
    }

    #[test]
    fn everything_that_can_happen_does() {
        let scenarios: Vec<Scenario> = (0..60).map(Scenario::new).collect();
        let actions = || scenarios.iter().flat_map(|scenario| &scenario.actions).map(|(_, action)| action);
        let words: BTreeSet<String> =
            actions().filter(|action| action.fault().is_none()).map(Action::word).collect();
        assert_eq!(words, ACTIONS.map(str::to_owned).into_iter().collect());
        assert_eq!(words, WEIGHTS.map(|(word, _)| word.to_owned()).into_iter().collect());
        let faults: BTreeSet<Fault> = actions().filter_map(Action::fault).collect();
        assert_eq!(faults.len(), 5, "{faults:?}");
        assert!(scenarios.iter().any(|scenario| scenario.dooms.values().all(|dooms| !dooms.is_empty())));
        assert!(scenarios.iter().any(|scenario| scenario.second.is_some()));
        assert!(scenarios.iter().any(|scenario| scenario.fleet.spread));
    }
}
