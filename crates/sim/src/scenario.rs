//! What happens in a world, drawn from its seed before it begins.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::fleet::{Content, Deletion, Element, Fleet, Mood, Step};
use crate::wire::Doom;

/// Names of the member clusters.
const MEMBERS: [&str; 3] = ["north", "south", "west"];

/// A world's fate.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) members: Vec<&'static str>,
    pub(crate) fleet: Fleet,
    /// What each commit holds for each Application there will ever be.
    pub(crate) commits: Vec<BTreeMap<String, Content>>,
    /// What happens, and how long after the one before.
    pub(crate) actions: Vec<(Duration, Action)>,
    /// Longest delay of a watch.
    pub(crate) lag: Duration,
    /// Crashes of either controller, one life after the other.
    pub(crate) dooms: BTreeMap<Process, Vec<(Doom, Duration)>>,
}

/// A controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Process {
    Sets,
    Applications,
}

/// Something people do, or that happens to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The next commit is pushed; these Applications are asked to look at it at once.
    Push {
        noticed: Vec<String>,
    },
    /// The template chooses the other directory.
    Variant,
    /// The template's sync options change.
    Option,
    Relabel {
        app: String,
        tier: usize,
    },
    Join {
        app: String,
        tier: usize,
    },
    Leave {
        app: String,
    },
    Pause,
    Resume,
    Strategy {
        steps: Vec<Step>,
    },
    DeletionOrder(Deletion),
    /// The pods of an Application go away and come back.
    Flap {
        app: String,
    },
    /// People sync what a held step leaves to them.
    SyncByHand,
    /// People approve what waits for it.
    Approve,
    DeleteSet {
        cascade: &'static str,
    },
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Scenario {
        let mut dice = Dice::new(seed, "fleet");
        let members = MEMBERS[..if dice.chance(30) { 3 } else { 2 }].to_vec();
        let tiers = count(dice.between(2, 4));
        let fleet = first_fleet(&mut dice, &members, tiers);
        let mut draft = Draft {
            dice: Dice::new(seed, "actions"),
            tiers,
            fleet: fleet.clone(),
            actions: Vec::new(),
            pushes: 0,
        };
        draft.draw();
        let (actions, pushes) = (draft.actions, draft.pushes);
        let commits = commits(&mut Dice::new(seed, "commits"), pushes + 1);
        let mut dice = Dice::new(seed, "faults");
        let lag = Duration::from_millis(*dice.pick(&[0, 500, 2_000, 5_000]));
        let mut dooms = BTreeMap::new();
        for process in [Process::Sets, Process::Applications] {
            let crashes = if dice.chance(50) { dice.between(1, 3) } else { 0 };
            let doom = |dice: &mut Dice| {
                let doom = Doom { write: dice.between(1, 25), after: dice.chance(50) };
                (doom, Duration::from_millis(dice.between(100, 20_000)))
            };
            dooms.insert(process, (0..crashes).map(|_| doom(&mut dice)).collect());
        }
        Scenario { seed, members, fleet, commits, actions, lag, dooms }
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn name(number: u64) -> String {
    format!("app-{number}")
}

/// Every Application there may ever be.
const NAMES: u64 = 9;

fn first_fleet(dice: &mut Dice, members: &[&str], tiers: usize) -> Fleet {
    let apps = dice.between(3, 7);
    let elements = (0..apps).map(|number| (name(number), element(dice, members, tiers))).collect();
    Fleet {
        elements,
        variant: 0,
        option: false,
        finalizer: dice.chance(60),
        automated: dice.chance(60),
        paused: false,
        steps: steps(dice, tiers),
        deletion: deletion(dice, tiers),
    }
}

fn element(dice: &mut Dice, members: &[&str], tiers: usize) -> Element {
    // Now and then an Application is in no step.
    let tier = if dice.chance(5) { tiers } else { count(dice.below(tiers as u64)) };
    Element { tier, member: (*dice.pick(members)).to_owned() }
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
    (0..tiers).map(|tier| Step { tier, max_update: limit(dice) }).collect()
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

fn commits(dice: &mut Dice, number: usize) -> Vec<BTreeMap<String, Content>> {
    let guarded = dice.chance(12);
    let first = |name: String| (name, Content { version: "c0".into(), mood: Mood::Good, guarded });
    let mut commits: Vec<BTreeMap<String, Content>> = vec![(0..NAMES).map(name).map(first).collect()];
    for number in 1..number {
        let all = dice.chance(60);
        let mut next = commits[number - 1].clone();
        for content in next.values_mut() {
            let bad = content.mood != Mood::Good;
            if all || bad || dice.chance(50) {
                content.version = format!("c{number}");
            }
            content.mood = Mood::Good;
            if guarded && dice.chance(40) {
                content.guarded = !content.guarded;
            }
        }
        if dice.chance(35)
            && let Some(content) = next.get_mut(&name(dice.below(NAMES)))
        {
            content.version = format!("c{number}");
            content.mood = *dice.pick(&[Mood::Slow, Mood::Stuck, Mood::Failing]);
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
    fleet: Fleet,
    actions: Vec<(Duration, Action)>,
    pushes: usize,
}

impl Draft {
    fn draw(&mut self) {
        let number = self.dice.between(3, 8);
        for _ in 0..number {
            let action = self.action();
            self.add(action);
        }
        // A broken commit is followed by one that mends it.
        let noticed = self.noticed();
        self.add(Action::Push { noticed });
        if self.fleet.paused {
            self.add(Action::Resume);
        }
        if self.dice.chance(25) {
            let cascade = *self.dice.pick(&["Background", "Background", "Foreground", "Orphan"]);
            self.add(Action::DeleteSet { cascade });
        }
    }

    fn add(&mut self, action: Action) {
        // Short waits fall into the middle of a rollout, long ones find it ended.
        let wait = match self.dice.below(10) {
            0..3 => self.dice.between(0, 500),
            3..8 => self.dice.between(500, 15_000),
            _ => self.dice.between(15_000, 120_000),
        };
        self.pushes += usize::from(matches!(action, Action::Push { .. }));
        self.actions.push((Duration::from_millis(wait), action));
    }

    fn action(&mut self) -> Action {
        match self.dice.below(100) {
            0..30 => Action::Push { noticed: self.noticed() },
            30..42 => Action::Variant,
            42..47 => Action::Option,
            47..55 => {
                let (app, tier) = (self.member(), self.tier());
                Action::Relabel { app, tier }
            }
            55..63 => {
                let names = (0..NAMES).map(name).filter(|name| !self.fleet.elements.contains_key(name));
                let Some(app) = names.collect::<Vec<_>>().first().cloned() else { return Action::Option };
                let tier = self.tier();
                let member = self.fleet.elements.values().next().map(|element| element.member.clone());
                self.fleet.elements.insert(app.clone(), Element { tier, member: member.unwrap_or_default() });
                Action::Join { app, tier }
            }
            63..70 => {
                if self.fleet.elements.len() < 3 {
                    return Action::Option;
                }
                let app = self.member();
                self.fleet.elements.remove(&app);
                Action::Leave { app }
            }
            70..77 => {
                self.fleet.paused = !self.fleet.paused;
                if self.fleet.paused { Action::Pause } else { Action::Resume }
            }
            77..83 => Action::Strategy { steps: steps(&mut self.dice, self.tiers) },
            83..87 => Action::DeletionOrder(deletion(&mut self.dice, self.tiers)),
            87..94 => Action::Flap { app: self.member() },
            94..97 => Action::SyncByHand,
            _ => Action::Approve,
        }
    }

    fn member(&mut self) -> String {
        let names: Vec<&String> = self.fleet.elements.keys().collect();
        (*self.dice.pick(&names)).clone()
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
    use super::*;

    #[test]
    fn a_seed_repeats_its_scenario() {
        assert_eq!(format!("{:?}", Scenario::new(5)), format!("{:?}", Scenario::new(5)));
        assert_ne!(format!("{:?}", Scenario::new(5)), format!("{:?}", Scenario::new(6)));
    }

    #[test]
    fn everything_that_can_happen_does() {
        let scenarios: Vec<Scenario> = (0..500).map(Scenario::new).collect();
        let words: std::collections::BTreeSet<String> = scenarios
            .iter()
            .flat_map(|scenario| &scenario.actions)
            .map(|(_, action)| format!("{action:?}").split([' ', '(']).next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(words.len(), 14, "{words:?}");
        assert!(scenarios.iter().any(|scenario| scenario.dooms.values().all(|dooms| !dooms.is_empty())));
        assert!(scenarios.iter().all(|scenario| !scenario.commits.is_empty()));
    }
}
