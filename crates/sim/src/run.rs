//! One world from its beginning to its end, and what was seen.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

use crate::checker::{self, Case, Entry, Git, Violation};
use crate::fleet::{Mood, SET, VARIANTS, server};
use crate::people::People;
use crate::scenario::{Action, Scenario};
use crate::timeline;
use crate::world::World;

/// How late a controller may know of a change: the latest watch, the longest crash, and the time to start anew.
const SLACK: SignedDuration = SignedDuration::from_secs(45);
/// How long nothing may have been written before a world counts as at rest.
const REST: Duration = Duration::from_secs(100);
/// How long a world may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long it then must stay so.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// What was seen in a world.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What must not happen and did.
    pub violations: Vec<Violation>,
    /// How often things happened: faults, commits, starts.
    pub counts: BTreeMap<String, u64>,
    /// What happened, for people to read; empty where nobody asked.
    pub timeline: Vec<String>,
    /// Tells this run of the seed from one that went otherwise.
    pub fingerprint: u64,
}

/// Runs the world of a seed. `story` asks for the timeline also of a world in which all went well.
///
/// # Panics
/// If the machine gives no threads, no temporary directory or no git.
pub fn seed(seed: u64, story: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let report = runtime.block_on(run(Scenario::new(seed), story));
    runtime.shutdown_background();
    report
}

async fn run(scenario: Scenario, story: bool) -> Report {
    let world = World::new(&scenario).await;
    let mut people = People::new(&world, scenario.fleet.clone());
    let mut notes = Vec::new();
    people.apply().await;
    notes.push((world.control.now(), "the set is applied".to_owned()));
    // Most worlds begin with a fleet that was rolled out before.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rest(&world, Duration::from_secs(20), Duration::from_secs(300)).await;
    for (wait, action) in &scenario.actions {
        tokio::time::sleep(*wait).await;
        notes.push((world.control.now(), format!("{action:?}")));
        people.act(action).await;
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    notes.push((world.control.now(), "faults stop".to_owned()));
    world.air.calm();
    let rested = to_rest(&world, &people).await;
    let since = world.control.now();
    if rested {
        tokio::time::sleep(QUIET).await;
    }
    let noisy = match rested {
        true => checker::is_quiet(world.journal.last_write(), since),
        false => checker::is_quiet(world.journal.last_write(), Timestamp::MIN),
    };
    let entries = world.journal.entries().await;
    let git = git(&scenario, &world, people.pushed);
    let case = Case {
        entries: &entries,
        git: &git,
        members: scenario.members.iter().map(|name| (server(name), (*name).to_owned())).collect(),
        set: SET,
        slack: SLACK,
        ended: rested,
    };
    let mut violations = checker::violations(&case);
    violations.extend(noisy);
    let ended = world.ended.lock().clone().into_iter();
    violations.extend(ended.map(|text| Violation { invariant: "I0", at: since, text }));
    let timeline = match story || !violations.is_empty() {
        true => timeline::tell(&entries, &notes),
        false => Vec::new(),
    };
    let counts = counts(&scenario, &world, &entries);
    Report { seed: scenario.seed, violations, counts, timeline, fingerprint: fingerprint(&entries) }
}

/// Waits until nothing was written for a while; false where it never is.
async fn rest(world: &World, still: Duration, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let still = SignedDuration::try_from(still).unwrap_or(SignedDuration::MAX);
    while Instant::now() < deadline {
        let last = world.journal.last_write().map(|(at, _)| at).unwrap_or(Timestamp::MIN);
        if world.control.now().duration_since(last) >= still {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

/// Waits for rest; people do what waits for them meanwhile.
async fn to_rest(world: &World, people: &People<'_>) -> bool {
    for _ in 0..20 {
        if !rest(world, REST, PATIENCE).await {
            return false;
        }
        let revision = world.control.store().revision();
        people.approve().await;
        people.sync_by_hand().await;
        if world.control.store().revision() == revision {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

fn git(scenario: &Scenario, world: &World, pushed: usize) -> Git {
    let mut git = Git::default();
    for (commit, contents) in world.repository.commits().iter().zip(&scenario.commits) {
        for (name, content) in contents {
            for variant in VARIANTS {
                let directory = format!("{variant}/{name}");
                if matches!(content.mood, Mood::Stuck | Mood::Failing) {
                    git.broken.insert((commit.clone(), directory.clone()));
                }
                let files = git.contents.entry(commit.clone()).or_default();
                files.insert(directory, content.shown(variant));
            }
        }
    }
    git.head.clone_from(&world.repository.commits()[pushed]);
    git
}

fn counts(scenario: &Scenario, world: &World, entries: &[Entry]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |what: String, number: u64| *counts.entry(what).or_default() += number;
    world.air.tally().into_iter().for_each(|(what, number)| add(format!("fault: {what}"), number));
    for (_, action) in &scenario.actions {
        let word = format!("{action:?}");
        add(format!("action: {}", word.split([' ', '(']).next().unwrap_or_default()), 1);
        add("commits".to_owned(), u64::from(matches!(action, Action::Push { .. })));
    }
    add("starts".to_owned(), checker::starts(entries).len() as u64);
    add("writes".to_owned(), entries.len() as u64);
    for entry in entries.iter().filter(|entry| &*entry.resource == "applicationsets.argoproj.io") {
        let blockers = entry.object.pointer("/status/rollout/blockers").and_then(Value::as_array);
        for blocker in blockers.into_iter().flatten() {
            add(format!("blocker: {}", blocker["reason"].as_str().unwrap_or_default()), 1);
        }
    }
    counts
}

fn fingerprint(entries: &[Entry]) -> u64 {
    let line = |entry: &Entry| format!("{} {} {} {}", entry.at, entry.cluster, entry.resource, entry.name);
    entries.iter().fold(0, |sum: u64, entry| sum.rotate_left(5) ^ crate::dice::hash(&line(entry)))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.timeline {
            writeln!(f, "{line}")?;
        }
        for violation in &self.violations {
            writeln!(f, "seed {}: {violation}", self.seed)?;
        }
        Ok(())
    }
}
