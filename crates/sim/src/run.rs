//! One world from its beginning to its end, and what was seen.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::checker::{self, Case, Entry, Git, Shown, Violation};
use crate::fleet::{EXTRA, Mood, SET, VARIANTS, server};
use crate::people::People;
use crate::repository::BRANCHES;
use crate::scenario::Scenario;
use crate::world::World;
use crate::{tally, timeline};

/// How late a controller may know of a change: the latest watch, the longest crash, and the time to start anew.
const SLACK: SignedDuration = SignedDuration::from_secs(45);
/// How much later where watches are cut and begun anew.
const CUTS: SignedDuration = SignedDuration::from_secs(15);
/// How much later where answers are waited for until time is up, twice in a row.
const SILENCE: SignedDuration = SignedDuration::from_secs(75);
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
    world(Scenario::new(seed), story)
}

/// Runs the world of a scenario.
pub(crate) fn world(scenario: Scenario, story: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let report = runtime.block_on(run(scenario, story));
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
    let rested = to_rest(&world, &mut people).await;
    let since = world.control.now();
    if rested {
        tokio::time::sleep(QUIET).await;
    }
    let noisy = match rested {
        true => checker::is_quiet(world.journal.last_write(), since),
        false => checker::is_quiet(world.journal.last_write(), Timestamp::MIN),
    };
    let entries = world.journal.entries().await;
    let git = git(&scenario, &world, &people);
    let case = Case {
        entries: &entries,
        git: &git,
        members: scenario.members.iter().map(|name| (server(name), (*name).to_owned())).collect(),
        set: SET,
        by_people: &people.removed,
        slack: slack(&scenario),
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
    let counts = counts(&people, &world, &entries);
    Report { seed: scenario.seed, violations, counts, timeline, fingerprint: fingerprint(&entries) }
}

fn slack(scenario: &Scenario) -> SignedDuration {
    let weather = &scenario.weather;
    let cuts = if weather.cut.is_some() { CUTS } else { SignedDuration::ZERO };
    let silence = if weather.is_silent() { SILENCE } else { SignedDuration::ZERO };
    SLACK + cuts + silence
}

/// Waits until nothing was written for a while from now on; false where it never is.
async fn rest(world: &World, still: Duration, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let (still, begun) =
        (SignedDuration::try_from(still).unwrap_or(SignedDuration::MAX), world.control.now());
    while Instant::now() < deadline {
        let last = world.journal.last_write().map_or(begun, |(at, _)| at.max(begun));
        if world.control.now().duration_since(last) >= still {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

/// Waits for rest; people do what waits for them meanwhile.
async fn to_rest(world: &World, people: &mut People<'_>) -> bool {
    for round in 0..20 {
        if !rest(world, REST, PATIENCE).await {
            return false;
        }
        let revision = world.control.store().revision();
        people.help(round).await;
        if world.control.store().revision() == revision {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

fn git(scenario: &Scenario, world: &World, people: &People<'_>) -> Git {
    let mut git = Git::default();
    for (branch, commits) in scenario.commits.iter().enumerate() {
        for (commit, contents) in world.repositories.commits(branch).iter().zip(commits) {
            let files = git.contents.entry(commit.clone()).or_default();
            for (name, content) in contents {
                for variant in VARIANTS {
                    let directory = format!("{variant}/{name}");
                    if matches!(content.mood, Mood::Stuck | Mood::Failing) {
                        git.broken.insert((commit.clone(), directory.clone()));
                    }
                    let text = content.shown(variant);
                    files.insert(directory, Shown { object: name.clone(), text, workload: true });
                }
                let (object, text) = (format!("{name}-{EXTRA}"), content.shown(EXTRA));
                files.insert(format!("{EXTRA}/{name}"), Shown { object, text, workload: false });
            }
        }
    }
    for (at, branch, commit) in &people.pushes {
        let to = BRANCHES[*branch];
        let Some(commit) = world.repositories.commits(*branch).get(*commit) else { continue };
        git.pushes.push((*at, (to.url.to_owned(), to.name.to_owned()), commit.clone()));
    }
    git
}

fn counts(people: &People<'_>, world: &World, entries: &[Entry]) -> BTreeMap<String, u64> {
    let mut counts = tally::happened(entries, SET);
    let faults = world.air.tally().into_iter();
    let faults = faults.map(|(fault, number)| (format!("fault: {}", fault.words()), number));
    let actions = people.tally.iter().map(|(word, number)| (format!("action: {word}"), *number));
    counts.extend(faults.chain(actions));
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
