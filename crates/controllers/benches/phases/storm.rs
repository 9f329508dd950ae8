//! Many sets call at once, and others go on as if they did not.

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::common::process::processor_time;
use super::common::{Counts, Fleet, grouped, stepwise};
use super::receiver::Receiver;

const SETS: usize = 50;
const HOOKS: usize = 10;
/// How long each answer takes.
const ANSWER: Duration = Duration::from_millis(200);

/// What changes while others call: a set, and what of it is written in answer.
struct Bystander {
    what: &'static str,
    set: &'static str,
    answer: &'static str,
    /// How long it is left alone after each change.
    pause: Duration,
}

/// A rollout looks revisions up once in a second, and what it writes later is no answer to the next change.
const BYSTANDERS: [Bystander; 2] = [
    Bystander {
        what: "a set without a strategy (aim: 50)",
        set: "calm",
        answer: "calm-00000",
        pause: Duration::from_millis(40),
    },
    Bystander {
        what: "a set with steps, which waits for 300 ms of quiet before it begins",
        set: "steps",
        answer: "steps.baton-rollout",
        pause: Duration::from_millis(1100),
    },
];

/// Measures how long a change of a set takes to be answered by a write: when nothing else happens, while 500 hooks are called
/// and nobody is deployed, while 50 sets are deployed that call nobody, and while 50 sets do both.
pub(crate) async fn storm(receiver: &Receiver) {
    receiver.delay(ANSWER);
    let sets = [grouped("calm", 5, 1), stepwise("steps", 4, 2, "100%")];
    let fleet = Fleet::new(receiver.settings(), &sets).await;
    fleet.complete(&["steps"], 1).await;
    let hooks = hooks(receiver);
    let quiet = sampled(&fleet, 0, tokio::time::sleep(Duration::from_secs(10))).await;
    let alone = storm_of(receiver, &fleet, 1_000_000, |number| {
        let mut set = of_storm(&format!("alone-{number:02}"), &hooks);
        // Hooks are all there is of such a phase.
        set["spec"]["generators"][0]["deploymentStrategy"]["phases"][0]["percentage"] = 0.into();
        set
    });
    let alone = alone.await;
    let silent = rolled_out(&fleet, |number| of_storm(&format!("silent-{number:02}"), &[]));
    let silent = sampled(&fleet, 2_000_000, silent).await;
    let both =
        storm_of(receiver, &fleet, 3_000_000, |number| of_storm(&format!("storm-{number:02}"), &hooks)).await;
    for (at, bystander) in BYSTANDERS.iter().enumerate() {
        println!("  a change of {}, in ms until it is answered:", bystander.what);
        told("nothing else", &quiet[at]);
        told("500 hooks", &alone[at]);
        told("50 sets", &silent[at]);
        told("50 sets, 500 hooks", &both[at]);
        let ratio =
            |percent: usize| millis(&alone[at], percent) / millis(&quiet[at], percent).max(f64::EPSILON);
        println!("    hooks to nothing: p50 {:.2}, p99 {:.2}", ratio(50), ratio(99));
    }
    fleet.stop().await;
    receiver.delay(Duration::ZERO);
}

/// Samples while sets are rolled out that have ten hooks each, and tells how that went.
async fn storm_of(
    receiver: &Receiver,
    fleet: &Fleet,
    first: u64,
    set: impl Fn(usize) -> Value,
) -> Vec<Vec<Duration>> {
    receiver.take();
    *fleet.counts.lock() = Counts::default();
    let (processor, begin) = (processor_time(), Instant::now());
    let taken = sampled(fleet, first, rolled_out(fleet, set)).await;
    let (took, processor) = (begin.elapsed(), processor_time() - processor);
    let (seen, statuses) = (receiver.judged(), fleet.counts.lock().phases);
    let left = receiver.left().await;
    println!(
        "{SETS} sets with {HOOKS} hooks each, answered after {} ms: {} calls, {} at once, in {:.1} s ({:.1} s if never fewer), \
         {:.1} s of processor time, {statuses} writes of status.phases; {left}",
        ANSWER.as_millis(),
        seen.hooks,
        seen.most_hooks,
        took.as_secs_f64(),
        ANSWER.as_secs_f64() * (SETS * HOOKS / 5) as f64,
        processor.as_secs_f64(),
    );
    assert_eq!(seen.hooks, SETS * HOOKS, "each hook is called once");
    taken
}

/// Has sets made all at once, and waits until all are rolled out.
async fn rolled_out(fleet: &Fleet, set: impl Fn(usize) -> Value) {
    let sets: Vec<Value> = (0..SETS).map(set).collect();
    for set in &sets {
        fleet.control.apply("bench", set).await.expect("a set");
    }
    for set in &sets {
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        while fleet.set(name).await["status"]["phases"][0]["state"] != "Complete" {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Changes both bystanders over and over while something lasts, and tells how long each change took, sorted.
async fn sampled(fleet: &Fleet, first: u64, lasting: impl Future<Output = ()>) -> Vec<Vec<Duration>> {
    let taken: Vec<parking_lot::Mutex<Vec<Duration>>> =
        BYSTANDERS.iter().map(|_| Default::default()).collect();
    let each = BYSTANDERS.iter().zip(&taken).map(|(bystander, taken)| async move {
        for number in first.. {
            let delay = changed(fleet, bystander, number).await;
            taken.lock().push(delay);
            tokio::time::sleep(bystander.pause).await;
        }
    });
    tokio::select! {
        _ = futures::future::join_all(each) => {}
        () = lasting => {}
    }
    let taken = taken.into_iter().map(|taken| {
        let mut taken = taken.into_inner();
        taken.sort();
        taken
    });
    taken.collect()
}

/// Changes the template of a set, and tells how long it took until the controller wrote in answer.
async fn changed(fleet: &Fleet, bystander: &Bystander, number: u64) -> Duration {
    fleet.counts.lock().moments.insert(bystander.answer.to_owned(), None);
    let change = json!({"spec": {"template": {"spec": {"revisionHistoryLimit": number}}}});
    let begin = Instant::now();
    let sets = fleet.sets();
    sets.patch(bystander.set, &PatchParams::default(), &Patch::Merge(&change)).await.expect("a patch");
    loop {
        if let Some(Some(moment)) = fleet.counts.lock().moments.get(bystander.answer) {
            return moment.saturating_duration_since(begin);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn told(when: &str, taken: &[Duration]) {
    println!(
        "    {when:<18} {:>4} changes, p50 {:>6.1}, p99 {:>6.1}, most {:>6.1}",
        taken.len(),
        millis(taken, 50),
        millis(taken, 99),
        millis(taken, 100),
    );
}

fn millis(taken: &[Duration], percent: usize) -> f64 {
    let at = (taken.len() * percent / 100).min(taken.len().saturating_sub(1));
    taken.get(at).map_or(f64::NAN, |delay| delay.as_secs_f64() * 1000.0)
}

/// A set of four Applications in one phase with these hooks before them.
fn of_storm(name: &str, hooks: &[Value]) -> Value {
    let phase = json!({"name": "all", "targets": [{"values": {"step": "s0"}}], "preHooks": hooks});
    let mut set = grouped(name, 4, 1);
    set["spec"]["generators"][0]["deploymentStrategy"] =
        json!({"type": "phaseDeployment", "phases": [phase]});
    set
}

/// Hooks that may all be called at once.
fn hooks(receiver: &Receiver) -> Vec<Value> {
    let hook = |number: usize| {
        let called = format!("hook-{number}");
        let mut hook = match number % 5 {
            0 => receiver.command(&called, "hook/storm"),
            _ => receiver.http(&called, "hook/storm"),
        };
        hook["parallel"] = true.into();
        hook
    };
    (0..HOOKS).map(hook).collect()
}
