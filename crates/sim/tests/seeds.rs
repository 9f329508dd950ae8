//! Seeds of the simulator: each is a world of its own, and in none may an invariant break.
//!
//! `BATON_SIM_SEEDS` says how many, `BATON_SIM_FIRST_SEED` from which on; `make soak` sets both. One that failed is run again, with its
//! timeline, by `BATON_SIM_SEED=<seed> cargo test -p baton-sim --test seeds -- replay --nocapture`.

use std::collections::BTreeMap;
use std::time::Instant;

use baton_sim::run::{self, Report};
use baton_sim::tally;
use parking_lot::Mutex;

/// Worlds allocate all the time, on every core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many seeds every build runs. Each fault and each action is sure to be tried once in as many seeds as there are
/// of them.
const SEEDS: u64 = 2000;

/// Worlds with numbers above are wide: they have phases, and a git that is behind.
const WIDE: u64 = 1_000_000;

/// The world of a number: every other one is wide.
fn world(number: u64) -> u64 {
    match number {
        0..=WIDE if number.is_multiple_of(2) => WIDE + number / 2,
        0..=WIDE => number.div_ceil(2),
        _ => number,
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())?.parse().ok()
}

#[test]
fn no_seed_breaks_an_invariant() {
    let first = number("BATON_SIM_FIRST_SEED").unwrap_or(1);
    let seeds = number("BATON_SIM_SEEDS").unwrap_or(SEEDS);
    let begun = Instant::now();
    let counts: BTreeMap<String, u64> = tally::known().into_iter().map(|what| (what, 0)).collect();
    let (failed, counts) = (Mutex::new(Vec::new()), Mutex::new(counts));
    run::each(seeds, |number| {
        let seed = world(first + number);
        let report = run::seed(seed, false);
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
    println!("{seeds} seeds from {first} on in {:.1} s", begun.elapsed().as_secs_f64());
    let counts = counts.into_inner();
    for (what, count) in &counts {
        println!("{count:>9} {what}");
    }
    let failed = failed.into_inner();
    assert!(failed.is_empty(), "{} seeds failed: {failed:?}", failed.len());
    let untried: Vec<String> = tally::demanded().into_iter().filter(|what| counts[what] == 0).collect();
    assert!(seeds < SEEDS || untried.is_empty(), "never tried: {untried:?}");
}

fn tell(report: &Report) {
    for violation in &report.violations {
        println!("seed {}: {violation}", report.seed);
    }
    println!(
        "  again: BATON_SIM_SEED={} cargo test -p baton-sim --test seeds -- replay --nocapture",
        report.seed
    );
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
    for seed in [3, 11] {
        assert_eq!(run::seed(seed, false).fingerprint, run::seed(seed, false).fingerprint, "seed {seed}");
    }
}
