//! What ordered rollouts cost at the API: requests, bytes, lists, processor time, for fleets of up to 10,000
//! Applications. `make bench` runs it; `cargo bench -p baton-controllers --bench rollouts -- --bench 3000 teardown` only
//! these parts of it.
//!
//! The API is embedded in this process and answers without a socket. In the place of the Application controller stands
//! one that syncs at once, so that what is told is the cost of keeping order. Processor time holds the API's work too.

mod common;

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use common::process::{processor_time, resident};
use common::{Counts, Fleet, ordered, parts, stepwise};

fn main() {
    let Some(parts) = parts() else { return };
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("Applications made and rolled out once, then a commit; per Application: writes, bytes written");
    println!(
        "  {:>6} {:>5} {:>9} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>9} {:>6} {:>8} {:>7}",
        "apps",
        "steps",
        "maxUpdate",
        "made s",
        "writes",
        "heads",
        "views",
        "status",
        "lists",
        "409s",
        "bytes/app",
        "s",
        "cpu s",
        "MiB"
    );
    for (apps, steps) in [(1000, 3), (1000, 10), (3000, 3), (3000, 10)] {
        if !wanted(&apps.to_string()) {
            continue;
        }
        for limit in ["100%", "10%", "1"] {
            runtime.block_on(rollout(apps, steps, limit));
        }
    }
    if wanted("large") {
        runtime.block_on(large());
    }
    if wanted("flapping") {
        runtime.block_on(flapping());
    }
    if wanted("many") {
        runtime.block_on(many());
    }
    if wanted("teardown") {
        for apps in [500, 1000, 2000] {
            runtime.block_on(teardown(apps));
        }
    }
}

async fn rollout(apps: usize, steps: usize, limit: &str) {
    let begin = Instant::now();
    let fleet = Fleet::new(ordered(), &[stepwise("fleet", apps, steps, limit)]).await;
    fleet.complete(&["fleet"], 1).await;
    let made = begin.elapsed().as_secs_f64();
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    fleet.commit("second").await;
    fleet.complete(&["fleet"], 2).await;
    let (took, counts) = (begin.elapsed(), fleet.counts.lock().clone());
    println!(
        "  {apps:>6} {steps:>5} {limit:>9} {made:>6.1} {:>7.2} {:>6} {:>6} {:>6} {:>6} {:>6} {:>9.0} {:>6.1} {:>8.1} {:>7}",
        counts.writes as f64 / apps as f64,
        counts.heads,
        counts.views,
        counts.statuses,
        counts.lists,
        counts.conflicts,
        counts.bytes as f64 / apps as f64,
        took.as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        resident() / 1024,
    );
    fleet.stop().await;
}

/// The object of a set of 10,000.
async fn large() {
    let fleet = Fleet::new(ordered(), &[stepwise("fleet", 10_000, 10, "100%")]).await;
    fleet.complete(&["fleet"], 1).await;
    let set = fleet.set("fleet").await;
    let head = fleet.head("fleet").await;
    println!(
        "10,000 Applications: the set has {} KiB, the head {} KiB",
        set.to_string().len() / 1024,
        head.to_string().len() / 1024
    );
    fleet.stop().await;
}

/// Health that comes and goes.
async fn flapping() {
    let fleet = Fleet::new(ordered(), &[stepwise("fleet", 1000, 5, "10%")]).await;
    fleet.complete(&["fleet"], 1).await;
    *fleet.counts.lock() = Counts::default();
    let api = fleet.applications();
    let (before, begin) = (processor_time(), Instant::now());
    for round in 0..50 {
        let health = if round % 2 == 0 { "Progressing" } else { "Healthy" };
        let patch = json!({"status": {"health": {"status": health}}});
        for number in 0..1000 {
            let params = PatchParams::default();
            api.patch(&format!("fleet-{number:05}"), &params, &Patch::Merge(&patch)).await.expect("a patch");
        }
        let due = begin + Duration::from_millis(100) * (round + 1);
        tokio::time::sleep_until(due.into()).await;
    }
    let counts = fleet.counts.lock().clone();
    println!(
        "1,000 Applications change their health 50 times each: {} writes to Applications, {} of the head, {} of the status \
         in {:.1} s, {:.0} changes a second; {:.1} s of processor time, flapping included",
        counts.writes,
        counts.heads,
        counts.views,
        begin.elapsed().as_secs_f64(),
        50_000.0 / begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
    );
    fleet.stop().await;
}

/// Many rollouts at once.
async fn many() {
    let names: Vec<String> = (0..100).map(|number| format!("set-{number:02}")).collect();
    let sets: Vec<Value> = names.iter().map(|name| stepwise(name, 100, 3, "10%")).collect();
    let fleet = Fleet::new(ordered(), &sets).await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    fleet.complete(&names, 1).await;
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    fleet.commit("second").await;
    fleet.complete(&names, 2).await;
    let counts = fleet.counts.lock().clone();
    println!(
        "100 rollouts of 100 Applications at once: {:.1} s, {:.1} s of processor time, {} writes, {} lists, {} conflicts",
        begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        counts.writes,
        counts.lists,
        counts.conflicts,
    );
    fleet.stop().await;
}

/// A set that goes, last step first.
async fn teardown(apps: usize) {
    let mut set = stepwise("fleet", apps, 5, "100%");
    set["spec"]["strategy"]["deletionOrder"] = "Reverse".into();
    let fleet = Fleet::new(ordered(), &[set]).await;
    fleet.complete(&["fleet"], 1).await;
    *fleet.counts.lock() = Counts::default();
    let (before, begin) = (processor_time(), Instant::now());
    let sets = fleet.sets();
    sets.delete("fleet", &Default::default()).await.expect("a deletion");
    while sets.get_opt("fleet").await.expect("an answer").is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let counts = fleet.counts.lock().clone();
    println!(
        "{apps} Applications deleted in 5 steps, last first: {:.1} s, {:.1} s of processor time, {} deletes, {} lists",
        begin.elapsed().as_secs_f64(),
        (processor_time() - before).as_secs_f64(),
        counts.deletes,
        counts.lists,
    );
    fleet.stop().await;
}
