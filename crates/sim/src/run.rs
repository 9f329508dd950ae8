//! One world from its beginning to its end, and what was seen.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;

use crate::action::Action;
use crate::checker::{self, Case, Entry, Git, Shown, Violation};
use crate::course::{self, About, Line, Witness};
use crate::fleet::{EXTRA, PINNED, SET, VARIANTS, server};
use crate::people::People;
use crate::repository::BRANCHES;
use crate::scenario::{Ending, Process, Scenario};
use crate::wire::{Blind, Fault};
use crate::world::{World, epoch};
use crate::{tally, timeline};

/// How long a controller takes from a read to a write where nothing keeps it.
const MOMENT: SignedDuration = SignedDuration::from_secs(2);
/// How late a controller may know of a change where nothing but watches is late.
const PROMPT: SignedDuration = SignedDuration::from_secs(10);
/// How late a controller may know of a change: the latest watch, the longest crash, and the time to start anew.
const SLACK: SignedDuration = SignedDuration::from_secs(45);
/// How much later where watches are cut and begun anew.
const CUTS: SignedDuration = SignedDuration::from_secs(15);
/// How much later where lists are old: so far back lies what the last versions of a quiet cluster were.
const OLD_LISTS: SignedDuration = SignedDuration::from_secs(120);
/// How much later where answers are waited for until time is up, twice in a row.
const SILENCE: SignedDuration = SignedDuration::from_secs(75);
/// How long nothing may have been written before a world counts as at rest: longer than a controller leaves what it
/// could not compare.
const REST: Duration = Duration::from_secs(190);
/// How much longer beside a stand-in.
const LOOKS: Duration = Duration::from_secs(60);
/// How long a world may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How many writes it may take.
const WRITES: u64 = 5000;
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
    /// The course of the rollout, for people to read; empty where nobody asked.
    pub course: Vec<Line>,
    /// What the set says in the end that it waits for.
    pub waiting: Vec<String>,
    /// Tells this run of the seed from one that went otherwise.
    pub fingerprint: u64,
}

/// What is told apart from the world itself.
#[derive(Clone, Copy, Default)]
struct Telling<'t> {
    /// Whether the timeline is asked for also where all went well.
    story: bool,
    /// What the set gives, where the judge cannot read that itself.
    wanted: Option<&'t BTreeMap<String, Value>>,
    /// What branches are called.
    titles: &'t [String],
}

/// Runs the world of a seed. `story` asks for the timeline also of a world in which all went well.
///
/// # Panics
/// If the machine gives no threads, no temporary directory or no git.
pub fn seed(seed: u64, story: bool) -> Report {
    world(Scenario::new(seed), story)
}

/// Does something for each number below a count, on every core.
pub fn each(count: u64, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    // One more than there are cores: worlds wait for git now and then.
    let threads = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
}

/// Runs the world of a scenario.
pub(crate) fn world(scenario: Scenario, story: bool) -> Report {
    of(scenario, Telling { story, ..Telling::default() })
}

/// Runs the world of somebody's own set, which gives these Applications and follows branches with these titles.
pub(crate) fn given(scenario: Scenario, wanted: &BTreeMap<String, Value>, titles: &[String]) -> Report {
    of(scenario, Telling { story: true, wanted: Some(wanted), titles })
}

fn of(scenario: Scenario, telling: Telling<'_>) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let report = runtime.block_on(run(scenario, telling));
    runtime.shutdown_background();
    report
}

async fn run(scenario: Scenario, telling: Telling<'_>) -> Report {
    let world = World::new(&scenario).await;
    let mut people = People::new(&world, &scenario);
    let mut notes = Vec::new();
    people.apply().await;
    notes.push((world.control.now(), About::People, "the set is applied".to_owned()));
    // Most worlds begin with a fleet that was rolled out before.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rest(&world, scenario.still, scenario.before).await;
    world.turn();
    for (wait, action) in &scenario.actions {
        tokio::time::sleep(*wait).await;
        if scenario.freezes() && matches!(action, Action::Pause | Action::Abort) {
            until_frozen(&world).await;
        }
        let title = |branch: usize| title(&world, telling.titles, branch);
        let about = if action.fault().is_some() { About::Fault } else { About::People };
        notes.push((world.control.now(), about, action.told(title)));
        people.act(action).await;
    }
    tokio::time::sleep(scenario.after).await;
    if !scenario.after.is_zero() {
        notes.push((world.control.now(), About::Fault, "faults stop".to_owned()));
    }
    world.air.calm();
    let rested = to_rest(&world, &mut people, &scenario).await;
    let title = |branch: usize| title(&world, telling.titles, branch);
    notes.extend(people.helped.iter().map(|(at, action)| (*at, About::People, action.told(title))));
    let since = world.control.now();
    if rested {
        tokio::time::sleep(QUIET + scenario.waits).await;
    }
    let noisy = match rested {
        true => checker::is_quiet(world.journal.last_write(), since),
        false => checker::is_quiet(world.journal.last_write(), Timestamp::MIN),
    };
    let entries = world.journal.entries().await;
    let good = world.journal.good_states();
    let git = git(&scenario, &world, &people);
    let calls = world.log.calls.lock().clone();
    let case = Case {
        entries: &entries,
        git: &git,
        members: scenario.members.iter().map(|name| (server(name), name.clone())).collect(),
        set: SET,
        wanted: telling.wanted,
        by_people: &people.removed,
        slack: slack(&scenario),
        moment: if scenario.is_smooth() { MOMENT } else { slack(&scenario) },
        apart: apart(&scenario),
        ended: rested,
        calls: &calls,
        good: &good,
        left: scenario.ending == Ending::Leave,
        blind: scenario.weather.blind == Blind::ToTheEnd,
    };
    let mut violations = checker::violations(&case);
    violations.extend(noisy);
    let ended = world.ended.lock().clone().into_iter();
    violations.extend(ended.map(|text| Violation { invariant: "I0", at: since, text }));
    let told = telling.story || !violations.is_empty();
    let timeline = if told { timeline::tell(&entries, &notes, &calls) } else { Vec::new() };
    let course = if told { course(&world, &entries, &notes, telling.titles) } else { Vec::new() };
    let waiting = World::objects(&world.control, "applicationsets.argoproj.io").remove(SET);
    let waiting = waiting.iter().flat_map(course::waits);
    let waiting = waiting.map(|(reason, objects)| course::told_in_short(&reason, &objects)).collect();
    let counts = counts(&people, &world, (&entries, &git), scenario.foreign.is_some());
    let fingerprint = fingerprint(&entries);
    Report { seed: scenario.number(), violations, counts, timeline, course, waiting, fingerprint }
}

fn course(
    world: &World,
    entries: &[Entry],
    notes: &[(Timestamp, About, String)],
    titles: &[String],
) -> Vec<Line> {
    let mut commits = BTreeMap::new();
    let branches = world.repositories.branches().len();
    for branch in 0..branches {
        for (number, commit) in world.repositories.commits(branch).iter().enumerate() {
            let of =
                if branches > 1 { format!(" of {}", title(world, titles, branch)) } else { String::new() };
            commits.insert(commit.clone(), format!("commit {number}{of}"));
        }
    }
    let (struck, began) = (world.air.struck(), epoch());
    let witness = Witness { entries, notes, struck: &struck, commits: &commits, set: SET, began };
    let mut lines = course::tell(&witness);
    // Where git is differs each time, and errors speak of it.
    let directory = world.repositories.directory().display().to_string();
    lines.iter_mut().for_each(|line| line.text = line.text.replace(&directory, ""));
    lines
}

/// What a branch is called.
fn title(world: &World, titles: &[String], branch: usize) -> String {
    titles.get(branch).cloned().unwrap_or_else(|| {
        let branch = &world.repositories.branches()[branch];
        format!("{} {}", branch.url, branch.name)
    })
}

/// People hold a rollout when they see that nothing moves.
async fn until_frozen(world: &World) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline && !world.air.tally().contains_key(&Fault::FrozenLeader) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn slack(scenario: &Scenario) -> SignedDuration {
    let weather = &scenario.weather;
    let lag = SignedDuration::try_from(weather.lag * 2).unwrap_or(SignedDuration::ZERO);
    // What a stand-in tells was found a while before.
    let toil = scenario.foreign.as_ref().map_or(Duration::ZERO, |temper| temper.late + temper.slow * 4);
    // What is decided on was read in several looks.
    let toil =
        SignedDuration::try_from(toil + scenario.behind + scenario.slow_git * 6 + weather.slow_members * 6)
            .unwrap_or(SignedDuration::ZERO);
    if scenario.is_smooth() {
        return PROMPT + lag + toil;
    }
    let cuts = if weather.cut.is_some() { CUTS } else { SignedDuration::ZERO };
    let silence = if weather.is_silent() { SILENCE } else { SignedDuration::ZERO };
    let old = if weather.stale > 0 { OLD_LISTS } else { SignedDuration::ZERO };
    SLACK + cuts + old + silence + toil
}

/// How far the clocks of two leaders are apart: what one of them is ahead, the other is behind.
fn apart(scenario: &Scenario) -> SignedDuration {
    let wrong = scenario.second.and_then(|_| scenario.skew.get(&Process::Sets));
    SignedDuration::from_secs(wrong.map_or(0, |wrong| 2 * wrong.abs()))
}

/// Waits until nothing was written for a while from now on; false where it never is.
async fn rest(world: &World, still: Duration, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let (still, begun) =
        (SignedDuration::try_from(still).unwrap_or(SignedDuration::MAX), world.control.now());
    let most = world.control.store().revision() + WRITES;
    while Instant::now() < deadline && world.control.store().revision() < most {
        let last = world.journal.last_write().map_or(begun, |(at, _)| at.max(begun));
        if world.control.now().duration_since(last) >= still {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

/// Waits for rest; people do what waits for them meanwhile.
async fn to_rest(world: &World, people: &mut People<'_>, scenario: &Scenario) -> bool {
    for round in 0..20 {
        // A stand-in may go by what it remembers of git for so much longer, and looks again of itself later still.
        let remembers = scenario.foreign.as_ref().map_or(Duration::ZERO, |temper| temper.memory + LOOKS);
        let patience = PATIENCE + scenario.before + scenario.waits * 2;
        if !rest(world, REST + remembers + scenario.waits, patience).await {
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
                    if content.mood.is_bad() {
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
    git.aliases =
        world.repositories.aliases().map(|(alias, commit)| (alias.to_owned(), commit.to_owned())).collect();
    if let Some(short) = &people.fleet.pinned {
        let url = BRANCHES[PINNED].url.to_string();
        git.pushes.push((Timestamp::MIN, (url, short.clone()), git.commit(short).to_owned()));
    }
    for (at, branch, commit) in &people.pushes {
        let to = &world.repositories.branches()[*branch];
        let Some(commit) = world.repositories.commits(*branch).get(*commit) else { continue };
        git.pushes.push((*at, (to.url.to_string(), to.name.to_string()), commit.clone()));
    }
    git
}

fn counts(
    people: &People<'_>,
    world: &World,
    (entries, git): (&[Entry], &Git),
    is_foreign: bool,
) -> BTreeMap<String, u64> {
    let mut counts = tally::happened(entries, SET);
    let faults = world.air.tally().into_iter();
    let faults = faults.map(|(fault, number)| (format!("fault: {}", fault.words()), number));
    let actions = people.tally.iter().map(|(word, number)| (format!("action: {word}"), *number));
    let answers = world.log.fates.lock().clone().into_iter();
    let answers = answers.map(|(fate, number)| (tally::answered(fate), number));
    let names = tally::names(entries, &git.aliases);
    counts.extend(faults.chain(actions).chain(answers).chain(names));
    // Of approvals and phases only what befell who sees to them while one was waited for, or under way.
    let meanwhile = tally::meanwhile(entries, SET);
    for struck in world.air.struck() {
        let Some(pattern) = struck.fault.pattern() else { continue };
        let at = epoch() + struck.after;
        let who = if is_foreign && *struck.whom == *tally::APPLICATIONS { "stand-in" } else { &struck.whom };
        let concerned = meanwhile
            .iter()
            .filter(|mean| *mean.who == *who && mean.times.iter().any(|time| time.contains(&at)))
            .map(|mean| mean.what);
        for led in concerned.chain([who]) {
            *counts.entry(tally::pattern(pattern, led)).or_default() += 1;
        }
    }
    counts
}

fn fingerprint(entries: &[Entry]) -> u64 {
    let line = |entry: &Entry| format!("{} {} {} {}", entry.at, entry.cluster, entry.resource, entry.name);
    entries.iter().fold(0, |sum: u64, entry| sum.rotate_left(5) ^ crate::dice::hash(&line(entry)))
}

impl Report {
    /// How long after the beginning of its world something happened.
    pub fn since(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(epoch())).unwrap_or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.timeline {
            writeln!(f, "{line}")?;
        }
        for (what, count) in self.counts.iter().filter(|(_, count)| **count > 0) {
            writeln!(f, "{count:>9} {what}")?;
        }
        for violation in &self.violations {
            writeln!(f, "seed {}: {violation}", self.seed)?;
        }
        Ok(())
    }
}
