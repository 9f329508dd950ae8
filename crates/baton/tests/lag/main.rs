//! Order with real processes: an API, the controller of sets and one of Applications, ours or a stand-in for Argo CD's,
//! each behind a lagging proxy of its own and killed at random, and commits in a real git repository. The API's history is
//! recorded past the proxies, and the judge of the simulator reads it.
//!
//! `BATON_LAG_COMMITS` says how many changes, `BATON_LAG_DELAY` how late a watch may be (a duration), `BATON_TEST_SEED`
//! repeats the choices of a run whose seed was printed; when what happens is up to the machine.

#[path = "../process/mod.rs"]
mod process;

mod fleet;
mod lease;
mod place;
mod proxy;
mod recorder;
mod stand_in;

use std::collections::BTreeSet;
use std::env;
use std::time::{Duration, Instant};

use baton_rules::Rule;
use baton_sim::checker::{Case, Change, Entry, starts, violations};
use fleet::{Fleet, Scenario};
use jiff::SignedDuration;
use place::{Applications, Leaders, Place};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// Of more changes than this few are seen to their end: that would take hours.
const MANY: u32 = 20;

/// How late a controller may know of a change: what a proxy and a few kills in a row make of it.
const SLACK: SignedDuration = SignedDuration::from_secs(60);

/// How long nobody may lead: a lease and a retry as the candidates have them, and what kills, starts and lagging proxies add on a
/// machine that does much else.
const LONGEST_GAP: SignedDuration = SignedDuration::from_millis(3_000 + 500 + 30_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_where_one_repository_changes() {
    judge(Scenario::OneRepository, Applications::StandIn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_with_our_own_application_controller() {
    judge(Scenario::OneRepository, Applications::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_where_the_template_changes() {
    judge(Scenario::Template, Applications::StandIn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_where_several_repositories_change_at_once() {
    judge(Scenario::ManyRepositories, Applications::StandIn).await;
}

/// Two controllers with a Lease, one of them killed or frozen at random: the one that wakes up finds that it no longer leads,
/// and what it writes until then is refused where another has written since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_holds_where_two_controllers_take_turns() {
    judge_with(Scenario::OneRepository, Applications::StandIn, Leaders::Two).await;
}

/// The same while a set is deleted, its last step first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_deletion_holds_where_two_controllers_take_turns() {
    judge_with(Scenario::Deletion, Applications::StandIn, Leaders::Two).await;
}

/// W2: what is reported is believed whatever commit it is of, and whenever it was found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_rules_that_the_pin_is_reported_and_asked_for_order_is_lost() {
    let changes = number("BATON_LAG_COMMITS").unwrap_or(12);
    let without = &[Rule::PinIsReported, Rule::Barrier];
    let History { fleet, entries, .. } =
        record(Scenario::OneRepository, Applications::StandIn, Leaders::One, changes, without).await;
    let found = violations(&case(&entries, &fleet));
    println!("without the rules: {changes} changes, {} violations", found.len());
    assert_ne!(found.len(), 0, "the judge sees what the rules keep from happening");
}

/// Makes changes behind lagging proxies and through kills, and reads in the history whether the order held.
async fn judge(scenario: Scenario, applications: Applications) {
    judge_with(scenario, applications, Leaders::One).await;
}

async fn judge_with(scenario: Scenario, applications: Applications, leaders: Leaders) {
    let changes = number("BATON_LAG_COMMITS").unwrap_or(3);
    let History { seed, fleet, entries, kills, freezes, gaps } =
        record(scenario, applications, leaders, changes, &[]).await;
    let (found, starts) = (violations(&case(&entries, &fleet)), starts(&entries));
    for violation in &found {
        println!("{violation}");
    }
    println!(
        "{scenario:?} {applications:?}, seed {seed}: {changes} changes, {} syncs, {} writes, {kills} kills, {freezes} freezes, {} violations",
        starts.len(),
        entries.len(),
        found.len()
    );
    assert_eq!(found.len(), 0, "BATON_TEST_SEED={seed} repeats the choices");
    // Every Application was synced at the beginning and in the end.
    assert!(starts.len() >= 2 * fleet.applications().len(), "the judge saw {} syncs", starts.len());
    let begun: Vec<Begun> = (starts.iter())
        .filter_map(|start| {
            let stamp = start.stamp?;
            Some((&*start.entry.name, stamp.set, stamp.n))
        })
        .collect();
    let again = begun_again(&begun);
    assert!(
        again.is_empty(),
        "no operation is begun twice: {again:?}; BATON_TEST_SEED={seed} repeats the choices"
    );
    assert_eq!(begun_again(&[begun[0], begun[0]]).len(), 1, "the judge sees what is begun twice");
    let disordered = disordered(&entries);
    assert_ne!(violations(&case(&disordered, &fleet)).len(), 0, "the judge sees what is out of order");
    if leaders == Leaders::Two {
        assert!(freezes >= 1, "nobody was frozen; BATON_TEST_SEED={seed} repeats the choices");
        assert!(!gaps.is_empty(), "the lead never changed; BATON_TEST_SEED={seed} repeats the choices");
        let late: Vec<_> = gaps.iter().filter(|gap| **gap > LONGEST_GAP).collect();
        assert!(late.is_empty(), "nobody led for {late:?}; BATON_TEST_SEED={seed} repeats the choices");
    }
    if fleet.is_deleted() {
        let early = deleted_early(&entries);
        let found = violations(&case(&early, &fleet));
        assert!(found.iter().any(|one| one.invariant == "I3"), "the judge sees what is deleted too early");
    }
}

/// What happened.
struct History {
    seed: u64,
    fleet: Fleet,
    entries: Vec<Entry>,
    kills: usize,
    freezes: usize,
    /// How long nobody led, each time that the lead changed.
    gaps: Vec<SignedDuration>,
}

/// Makes changes behind lagging proxies and through kills.
async fn record(
    scenario: Scenario,
    applications: Applications,
    leaders: Leaders,
    changes: u32,
    without: &'static [Rule],
) -> History {
    let seed: u64 = number("BATON_TEST_SEED").unwrap_or_else(rand::random);
    let delay = env::var("BATON_LAG_DELAY").unwrap_or_else(|_| "1s".to_owned());
    println!("{scenario:?} {applications:?}, seed {seed}: {changes} changes, watches late by up to {delay}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut place = Place::start(random.random(), &delay, applications, leaders, without).await;
    let turns = lease::Turns::follow(place.client());
    let mut fleet = Fleet::new(scenario, place.path("git"));
    place.create(&fleet).await;
    place.until_done(&mut random, &fleet).await;
    for change in 1..=changes {
        fleet.change(change);
        place.tell(&fleet).await;
        let (seen, begun) = if changes > MANY { (10, 50) } else { (60, 100) };
        match random.random_range(0..100) {
            // Nobody knows what becomes of it without a rule.
            _ if !without.is_empty() => place.meanwhile(&mut random, Duration::from_secs(6)).await,
            // The last one is seen to its end.
            _ if change == changes => place.until_done(&mut random, &fleet).await,
            // A change may come while the one before it is still on its way, or has not been looked at.
            chance if chance < seen => place.until_done(&mut random, &fleet).await,
            chance if chance < begun => place.until_begun(&mut random, &fleet).await,
            _ => place.meanwhile(&mut random, Duration::from_secs(3)).await,
        }
        println!("{scenario:?} {applications:?}: {change} changes, {} kills", place.kills());
    }
    if fleet.is_deleted() {
        place.delete(&mut random).await;
    }
    let begun = Instant::now();
    // However short the rollouts were: somebody is to freeze, and another to lead.
    while leaders == Leaders::Two && (place.freezes() == 0 || turns.gaps().is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(120), "the lead does not change: {}", turns.told());
        place.meanwhile(&mut random, Duration::from_secs(3)).await;
    }
    let (kills, freezes, gaps) = (place.kills(), place.freezes(), turns.gaps());
    if leaders == Leaders::Two {
        println!("{}", turns.told());
    }
    let (entries, told) = place.end().await;
    for line in told {
        println!("{line}");
    }
    History { seed, fleet, entries, kills, freezes, gaps }
}

/// A write that begins an operation: of which Application, for which set, and its number.
type Begun<'s> = (&'s str, &'s str, u64);

/// Those that begin what an earlier one began: every operation of an Application has a number of its own.
fn begun_again<'s>(begun: &[Begun<'s>]) -> Vec<Begun<'s>> {
    let mut seen = BTreeSet::new();
    begun.iter().filter(|one| !seen.insert(**one)).copied().collect()
}

fn case<'h>(entries: &'h [Entry], fleet: &'h Fleet) -> Case<'h> {
    Case {
        entries,
        git: fleet.git(),
        members: [(fleet::SERVER.to_owned(), recorder::MEMBER.to_owned())].into(),
        set: fleet::SET,
        wanted: None,
        by_people: &[],
        slack: SLACK,
        moment: SLACK,
        apart: SignedDuration::ZERO,
        ended: false,
        calls: &[],
        good: &[],
        left: false,
        blind: false,
    }
}

/// The same history with the first sync of the last step right after the first sync of all.
fn disordered(entries: &[Entry]) -> Vec<Entry> {
    let starts = starts(entries);
    let first = starts.first().expect("there are syncs");
    let last = starts.iter().find(|start| start.entry.name.starts_with('p')).expect("one of the last step");
    let mut changed = entries.to_vec();
    let mut early = changed.remove(last.place);
    early.at = first.entry.at;
    changed.insert(first.place + 1, early);
    changed
}

/// The same history in which the first step begins to go right before the last is gone.
fn deleted_early(entries: &[Entry]) -> Vec<Entry> {
    let is_app = |entry: &Entry| &*entry.resource == "applications.argoproj.io";
    let goes = |entry: &Entry| !entry.object["metadata"]["deletionTimestamp"].is_null();
    let first = |entry: &Entry| is_app(entry) && entry.name.starts_with('d') && goes(entry);
    let last =
        |entry: &Entry| is_app(entry) && entry.name.starts_with('p') && entry.change == Change::Deleted;
    let first = entries.iter().position(first).expect("the first step goes");
    let last = entries.iter().position(last).expect("the last step is gone");
    assert!(last < first, "the last step is gone before the first goes");
    let mut changed = entries.to_vec();
    let mut early = changed.remove(first);
    early.at = entries[last].at;
    changed.insert(last, early);
    changed
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// Between two kills of a controller.
fn pause(random: &mut StdRng) -> Duration {
    Duration::from_millis(random.random_range(2_000..12_000))
}
