//! Seeds of the simulator: each is a world of its own, and in none may an invariant break.
//!
//! `BATON_SIM_SEEDS` says how many, `BATON_SIM_FIRST_SEED` from which on; `make soak` sets both. One that failed is run again, with its
//! timeline, by `BATON_SIM_SEED=<seed> cargo test -p baton-sim --test seeds -- replay --nocapture`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_sim::run::{self, Report};
use baton_sim::tally;
use parking_lot::Mutex;

/// Worlds allocate all the time, on every core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many seeds every build runs. Each fault and each action is sure to be tried once in as many seeds as there are
/// of them.
const SEEDS: u64 = 2000;

/// Worlds with numbers above are wide: they may have phases, and a git that is behind.
const WIDE: u64 = 1_000_000;
/// Worlds with numbers above are phased: all have phases, which fail.
const PHASED: u64 = 2_000_000;

/// The world of a number: half of them are usual, one in twenty is phased, the rest are wide.
fn world(number: u64) -> u64 {
    match number {
        0..=WIDE if number.is_multiple_of(20) => PHASED + number / 20,
        0..=WIDE if number.is_multiple_of(2) => WIDE + number / 2,
        0..=WIDE => number.div_ceil(2),
        _ => number,
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is to be a whole number, and is {text:?}")))
}

#[test]
fn no_seed_breaks_an_invariant() {
    let first = number("BATON_SIM_FIRST_SEED").unwrap_or(1);
    let seeds = number("BATON_SIM_SEEDS").unwrap_or(SEEDS);
    let begun = Instant::now();
    let counts: BTreeMap<String, u64> = tally::known().into_iter().map(|what| (what, 0)).collect();
    let (failed, counts) = (Mutex::new(Vec::new()), Mutex::new(counts));
    let (progress, stopped) = (Mutex::new(Progress::new(seeds)), stop_when_asked());
    run::each(seeds, |number| {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        let seed = world(first + number);
        // What breaks one world says which it was, and leaves the others their summary.
        let Ok(report) = catch_unwind(|| run::seed(seed, false)) else {
            if !stopped.load(Ordering::Relaxed) {
                progress.lock().one_more(false);
                say(&format!("seed {seed}: the world itself broke; why stands above\n{}", again(seed)));
                failed.lock().push(seed);
            }
            return;
        };
        progress.lock().one_more(report.violations.is_empty());
        let mut counts = counts.lock();
        for (what, count) in &report.counts {
            *counts.entry(what.clone()).or_default() += count;
        }
        *counts.entry("violations".to_owned()).or_default() += report.violations.len() as u64;
        if !report.violations.is_empty() {
            tell(&report);
            failed.lock().push(seed);
        }
    });
    let done = progress.into_inner().end();
    let mut told = format!("{done} seeds from {first} on in {:.1} s\n", begun.elapsed().as_secs_f64());
    let counts = counts.into_inner();
    for (what, count) in &counts {
        let _ = writeln!(told, "{count:>9} {what}");
    }
    say(&told);
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
    if done < seeds {
        let (left, next) = (seeds - done, first + done);
        say(&format!(
            "stopped after {done} of {seeds} seeds, none of which failed; the rest: make soak SEEDS={left} FIRST_SEED={next}"
        ));
        // As whoever is ended by Ctrl-C; nothing is wrong with what was seen.
        std::process::exit(130);
    }
    let untried: Vec<String> = tally::demanded().into_iter().filter(|what| counts[what] == 0).collect();
    assert!(seeds < SEEDS || untried.is_empty(), "never tried: {untried:?}");
}

/// Set when somebody asks for the end: what is under way is finished, and all that was seen is told.
fn stop_when_asked() -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = stopped.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if runtime.is_ok_and(|runtime| runtime.block_on(tokio::signal::ctrl_c()).is_ok()) {
            flag.store(true, Ordering::Relaxed);
        }
    });
    stopped
}

/// How far it is, for people who wait: on a terminal all the time, elsewhere now and then.
struct Progress {
    all: u64,
    done: u64,
    failed: u64,
    begun: Instant,
    told: Instant,
}

impl Progress {
    /// Elsewhere, so many at a time are told of.
    const MANY: u64 = 1000;

    fn new(all: u64) -> Progress {
        Progress { all, done: 0, failed: 0, begun: Instant::now(), told: Instant::now() }
    }

    fn one_more(&mut self, is_well: bool) {
        self.done += 1;
        self.failed += u64::from(!is_well);
        let live = stderr().is_terminal();
        let due = match live {
            true => self.told.elapsed() >= Duration::from_millis(500),
            false => self.done.is_multiple_of(Progress::MANY),
        };
        if !due {
            return;
        }
        self.told = Instant::now();
        let left = self.begun.elapsed().as_secs() * (self.all - self.done) / self.done;
        let (done, all, failed) = (self.done, self.all, self.failed);
        let text =
            format!("{done} of {all} worlds, {failed} failed, {}:{:02} min left", left / 60, left % 60);
        let (before, after) = if live { ("\r", "\x1b[K") } else { ("", "\n") };
        // Nobody waits for what cannot be told.
        let _ = stderr().write_all(format!("{before}{text}{after}").as_bytes());
    }

    /// How many were done.
    fn end(self) -> u64 {
        if stderr().is_terminal() {
            say("");
        }
        self.done
    }
}

fn tell(report: &Report) {
    let mut told = String::new();
    for violation in &report.violations {
        let _ = writeln!(told, "seed {}: {violation}", report.seed);
    }
    say(&(told + &again(report.seed)));
}

/// How a world is run again.
fn again(seed: u64) -> String {
    format!("  again: BATON_SIM_SEED={seed} cargo test -p baton-sim --test seeds -- replay --nocapture")
}

/// Says something that is heard also where the test goes well and its output is kept to itself.
fn say(text: &str) {
    // Nobody waits for what cannot be told.
    let _ = stderr().write_all(format!("{}\n", text.trim_end()).as_bytes());
}

#[test]
fn replay() {
    let Some(seed) = number("BATON_SIM_SEED") else { return };
    let report = run::seed(seed, true);
    println!("{report}");
    assert!(report.violations.is_empty(), "{} violations", report.violations.len());
}

#[test]
fn a_seed_repeats_its_world() {
    for seed in [3, 11, PHASED + 3, PHASED + 16] {
        assert_eq!(run::seed(seed, false).fingerprint, run::seed(seed, false).fingerprint, "seed {seed}");
    }
}
