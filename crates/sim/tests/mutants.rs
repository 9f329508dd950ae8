//! The judge bites: with any of the rules that keep the order switched off, it finds a world that breaks an invariant.
//!
//! W1-W12 are races of a simpler controller, H1-H25 holes of a simpler protocol, I1-I7 what is judged. Each row names
//! the rule that closes them and a world in which its absence is noticed. Where that world has changed since, up to a
//! thousand others are searched.

use std::collections::BTreeSet;

use baton_rules::{Rule, without};
use baton_sim::run;
use parking_lot::Mutex;

/// Worlds allocate all the time, on every core.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Worlds from this number on are wide: they have more to go wrong.
const WIDE: u64 = 1_000_000;
/// Worlds from this number on are phased: all have phases, which fail.
const PHASED: u64 = 2_000_000;
/// How many worlds are searched.
const SEEDS: u64 = 1000;

/// What a rule closes, the rule, the invariant that breaks without it, and a seed in which it does.
const NOTICED: &[(&[&str], Rule, &str, u64)] = &[
    (&["I1"], Rule::StepsAreReached, "I1", 1),
    (&["I2"], Rule::Limit, "I2", 2),
    (&["H15"], Rule::HeldSteps, "I2", 29),
    (&["H14", "W5"], Rule::SlotsAreKept, "I2", 15),
    (&["H3"], Rule::HealsTakeSlots, "I2", 17),
    (&["H4"], Rule::Arming, "I1", 133),
    (&["H5", "W3"], Rule::PinnedOperations, "I1", 1),
    (&["H10"], Rule::OneRevision, "I1 I6", 1),
    (&["H7"], Rule::RunNumbers, "I1", 1),
    (&["H12"], Rule::AdoptedOnce, "I1 I6", 1),
    (&["H24"], Rule::Guard, "I3", 6),
    (&["W6"], Rule::AskedForComparison, "I6", 9),
    (&["W10"], Rule::Triggers, "I7", 15),
    (&["I3"], Rule::DeletionOrder, "I3", 31),
    (&["I4"], Rule::Approval, "I4", 23),
    (&["W8"], Rule::NewestVersion, "I1 I2", 155),
    (&["W4"], Rule::DriftIsHealed, "I6", 384),
    (&["W7"], Rule::BegunOnce, "I7", 1),
    (&["W11"], Rule::LaterStepsClose, "I1 I6", 83),
    (&["W12"], Rule::TerminatingIsLeftAlone, "I1", 127),
    (&["H1"], Rule::Fencing, "I1", 437),
    (&["H2"], Rule::HealsBringBack, "I1 I2 I6", 510),
    (&["H6"], Rule::BusyIsLeftAlone, "I1", 57),
    (&["H17"], Rule::ConsistentList, "I1", 95),
    (&["H18"], Rule::Uids, "I6 I1 I3", 226),
    (&["I6"], Rule::Blockers, "I6", 12),
    (&["I7"], Rule::QuietViews, "I7", 2),
    (&["H13"], Rule::LostOperations, "I6", 99),
    (&["H9", "W2"], Rule::Barrier, "I1", 45),
    (&["H9"], Rule::AnswersAreWritten, "I1 I2 I6", WIDE + 396),
    (&["W9", "H10"], Rule::ComparedAfter, "I1", 66),
    (&["H25"], Rule::InvalidFirst, "I1 I6", 78),
    (&["H8"], Rule::WholeSyncs, "I1", 428),
    (&["W1"], Rule::ComparedToSpec, "I1", 6),
    (&["H16"], Rule::ViewsBlockNothing, "I6", 22),
    (&["W2", "H11"], Rule::PinIsReported, "I1 I6", WIDE + 24),
    (&["H9"], Rule::SteadyAnswers, "I1 I2 I6", WIDE + 3638),
    (&["I5"], Rule::PhasesAreGated, "I5", WIDE + 14),
    (&["I5"], Rule::MakingIsGated, "I5", PHASED + 1),
    (&["I5"], Rule::PassedOnce, "I5", PHASED + 169),
    (&["I5"], Rule::FailuresAreAnswered, "I5", PHASED + 1),
    (&["I5"], Rule::BackIsProved, "I5", PHASED + 3),
    (&["I5"], Rule::CallsAreWaitedFor, "I5", PHASED + 2),
];

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is to be a whole number, and is {text:?}")))
}

/// The invariant that is broken in a world without a rule, and is kept with it.
fn broken(rule: Rule, invariant: &str, seed: u64) -> Option<String> {
    let report = without(rule, || run::seed(seed, false));
    let found = report.violations.iter().find(|violation| invariant.contains(violation.invariant))?;
    run::seed(seed, false).violations.is_empty().then(|| found.to_string())
}

/// The number from which on the worlds of a seed's kind are counted.
fn first_of_kind(seed: u64) -> u64 {
    [PHASED, WIDE].into_iter().find(|first| seed >= *first).unwrap_or(0)
}

#[test]
fn the_judge_notices_each_rule_that_is_missing() {
    let missed = Mutex::new(Vec::new());
    run::each(NOTICED.len() as u64, |number| {
        let Some(&(names, rule, invariant, seed)) =
            usize::try_from(number).ok().and_then(|number| NOTICED.get(number))
        else {
            return;
        };
        let first = first_of_kind(seed);
        let worlds = std::iter::once(seed).chain((first + 1..=first + SEEDS).filter(|other| *other != seed));
        let found = worlds.into_iter().find_map(|seed| Some((seed, broken(rule, invariant, seed)?)));
        match found {
            Some((seed, violation)) => println!("{rule:?} ({}): seed {seed}: {violation}", names.join(", ")),
            None => missed.lock().push(rule),
        }
    });
    let missed = missed.into_inner();
    assert!(missed.is_empty(), "nobody notices that these are missing: {missed:?}");
}

#[test]
fn every_rule_and_every_hole_has_its_row() {
    let rules: Vec<Rule> = NOTICED.iter().map(|row| row.1).collect();
    assert_eq!(rules.len(), Rule::ALL.len());
    assert_eq!(rules.into_iter().collect::<BTreeSet<_>>(), Rule::ALL.into_iter().collect());
    // A name counts where its world is among the first thousand of its kind.
    let near = NOTICED.iter().filter(|row| row.3 - first_of_kind(row.3) <= SEEDS);
    let named = near.flat_map(|row| row.0);
    let named: BTreeSet<String> = named.map(|name| (*name).to_owned()).collect();
    let all = (1..=12).map(|w| format!("W{w}"));
    let all =
        all.chain((1..=18).chain([24, 25]).map(|h| format!("H{h}"))).chain((1..=7).map(|i| format!("I{i}")));
    assert_eq!(named, all.collect());
}

/// Searches worlds for a rule: `BATON_RULE=Limit BATON_INVARIANT=I2 cargo test -p baton-sim --test mutants -- search
/// --nocapture`; nothing where none is named. With `BATON_SIM_SEED` it tells what happens in that world without it.
#[test]
fn search() {
    let Ok(named) = std::env::var("BATON_RULE") else { return };
    let invariant = std::env::var("BATON_INVARIANT").unwrap_or_else(|_| "I1 I2 I3 I4 I5 I6 I7".to_owned());
    let rule = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == named).expect("the name of a rule");
    if let Some(seed) = number("BATON_SIM_SEED") {
        println!("{}", without(rule, || run::seed(seed, true)));
        return;
    }
    let first = number("BATON_SIM_FIRST_SEED").unwrap_or(1);
    let seeds = number("BATON_SIM_SEEDS").unwrap_or(SEEDS);
    let stride = number("BATON_SIM_STRIDE").unwrap_or(1).max(1);
    let found = Mutex::new(false);
    run::each(seeds / stride, |number| {
        let seed = first + stride * number;
        if !*found.lock()
            && let Some(violation) = broken(rule, &invariant, seed)
        {
            *found.lock() = true;
            println!("{named} {seed}: {violation}");
        }
    });
    println!("{named}: {}", if *found.lock() { "noticed" } else { "not noticed" });
}
