//! What phased deployments cost at the API, and whether calls keep to their limits: 10 phases of up to 1,000 Applications
//! with 5 hooks and 5 checks each, calls for every Application, and a storm of hooks. `make bench` runs it;
//! `cargo bench -p baton-controllers --bench phases -- --bench 1000 storm` only these parts of it.
//!
//! The API is embedded in this process and answers without a socket, and a stand-in for the Application controller syncs at
//! once. Calls are made in earnest: over sockets of the loopback interface, and as commands in their sandbox. Processor time
//! and memory hold the API, the stand-in and the receiver too.

mod common;
#[path = "phases/receiver.rs"]
mod receiver;
#[path = "phases/storm.rs"]
mod storm;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_controllers::Settings;
use serde_json::{Value, json};

use common::process::{forget_peak, peak, processor_time};
use common::{Counts, Fleet, grouped, ordered, parts, stepwise};
use receiver::Receiver;

const PHASES: usize = 10;
/// How long an answer takes.
const ANSWER: Duration = Duration::from_millis(20);
/// Most bytes of a generator's phases in the status, and what a write of them has around that.
const STATUS: usize = 256 << 10;
const AROUND: usize = 1 << 10;

fn main() -> ExitCode {
    if let Some(code) = baton_hooks::sandbox::enter_if_asked().or_else(receiver::call_if_asked) {
        return code;
    }
    let Some(parts) = parts() else { return ExitCode::SUCCESS };
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let receiver = Receiver::start();
    let sizes: Vec<usize> =
        [1000, 3000, 10_000].into_iter().filter(|apps| wanted(&apps.to_string())).collect();
    if !sizes.is_empty() {
        println!(
            "A commit goes through Applications in {PHASES} groups; phases have 5 hooks and 5 checks each"
        );
        heading();
    }
    for apps in sizes {
        runtime.block_on(sizes_of(&receiver, apps));
    }
    if wanted("targets") {
        println!("A commit goes through Applications in 1 phase with a hook and a check for each of them");
        heading();
        for apps in [250, 500, 1000] {
            runtime.block_on(each_target(&receiver, apps));
        }
    }
    if wanted("timeouts") {
        runtime.block_on(timeouts(&receiver));
    }
    if wanted("storm") {
        runtime.block_on(storm::storm(&receiver));
    }
    ExitCode::SUCCESS
}

fn heading() {
    println!(
        "  {:>6} {:<14} {:>6} {:>7} {:>7} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6} {:>9} {:>7} {:>6} {:>7}",
        "apps",
        "order",
        "calls",
        "writes",
        "good",
        "heads",
        "views",
        "phases",
        "details",
        "events",
        "lists",
        "409s",
        "bytes/app",
        "s",
        "cpu s",
        "MiB"
    );
}

/// What was measured of one run.
struct Measured {
    counts: Counts,
    took: Duration,
    processor: Duration,
    peak: usize,
}

impl Measured {
    fn print(&self, apps: usize, order: &str, calls: usize) {
        let counts = &self.counts;
        println!(
            "  {apps:>6} {order:<14} {calls:>6} {:>7.2} {:>7.2} {:>6} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6} {:>9.0} {:>7.1} {:>6.1} {:>7}",
            (counts.creates + counts.writes) as f64 / apps as f64,
            counts.revisions as f64 / apps as f64,
            counts.heads,
            counts.views + counts.statuses,
            counts.phases,
            counts.details,
            counts.events,
            counts.lists,
            counts.conflicts,
            counts.bytes as f64 / apps as f64,
            self.took.as_secs_f64(),
            self.processor.as_secs_f64(),
            self.peak / 1024,
        );
    }
}

/// The same Applications in phases, in steps, and at once.
async fn sizes_of(receiver: &Receiver, apps: usize) {
    let phased = phases(receiver, apps, &phased(receiver, apps), "phases").await;
    let steps = {
        let fleet = Fleet::new(ordered(), &[stepwise("fleet", apps, PHASES, "100%")]).await;
        fleet.complete(&["fleet"], 1).await;
        let measured = measured(&fleet, async {
            fleet.commit("second").await;
            fleet.complete(&["fleet"], 2).await;
        })
        .await;
        fleet.stop().await;
        measured
    };
    steps.print(apps, "steps", 0);
    none_of_phases(&steps.counts);
    let ratio = |of: f64, to: f64| of / to.max(f64::EPSILON);
    println!(
        "         phases to steps: writes {:.2}, bytes {:.2}, processor time {:.2}",
        ratio(phased.counts.all_writes() as f64, steps.counts.all_writes() as f64),
        ratio(phased.counts.bytes as f64, steps.counts.bytes as f64),
        ratio(phased.processor.as_secs_f64(), steps.processor.as_secs_f64()),
    );
    let off = Settings { progressive_syncs: false, ..ordered() };
    let (on, off) = (plain(ordered(), apps, "none").await, plain(off, apps, "none, off").await);
    // How often the set's status is written goes by when news of Applications come in, so it is told and not judged.
    let made = |counts: &Counts| counts.creates + counts.writes;
    let (with, without) = (made(&on.counts), made(&off.counts));
    println!(
        "         a set without phases where they may be used, to one where they may not: writes of Applications {with} to \
         {without}, of the status {} to {}, processor time {:.2}",
        on.counts.statuses,
        off.counts.statuses,
        ratio(on.processor.as_secs_f64(), off.processor.as_secs_f64()),
    );
    // Each is created once and changed once; what the stand-in came in between of is written again.
    assert!(with <= 2 * apps + on.counts.conflicts, "a set without phases costs more: {:?}", on.counts);
    assert_eq!((on.counts.heads, off.counts.heads), (0, 0), "a set without phases has something beside it");
}

/// A set without any strategy is made, and its template changes.
async fn plain(settings: Settings, apps: usize, order: &str) -> Measured {
    let fleet = Fleet::new(settings, &[]).await;
    let measured = measured(&fleet, async {
        fleet.control.apply("bench", &grouped("fleet", apps, PHASES)).await.expect("a set");
        until(|| async { is_compared(&fleet, apps).await }).await;
        let mut changed = grouped("fleet", apps, PHASES);
        changed["spec"]["template"]["spec"]["revisionHistoryLimit"] = json!(3);
        fleet.control.apply("bench", &changed).await.expect("a set");
        until(|| async { fleet.counts.lock().writes >= apps }).await;
        // What is told of it comes after.
        let mut last = 0;
        while last != fleet.counts.lock().all_writes() {
            last = fleet.counts.lock().all_writes();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    fleet.stop().await;
    measured.print(apps, order, 0);
    none_of_phases(&measured.counts);
    measured
}

/// Whether the stand-in has come to the last Application, so that it does not come between the controller's next writes.
async fn is_compared(fleet: &Fleet, apps: usize) -> bool {
    let last = fleet.applications().get_opt(&format!("fleet-{:05}", apps - 1)).await.expect("an answer");
    last.is_some_and(|last| last.data.pointer("/status/sync").is_some())
}

/// Phases leave a set alone that has none.
fn none_of_phases(counts: &Counts) {
    assert_eq!(counts.of_phases(), 0, "phases wrote for a set that has none: {counts:?}");
}

/// Rolls a set with phases out, and measures a commit.
async fn phases(receiver: &Receiver, apps: usize, set: &Value, order: &str) -> Measured {
    let fleet = Fleet::new(receiver.settings(), std::slice::from_ref(set)).await;
    complete(&fleet, 1).await;
    receiver.take();
    // So long that calls made together are seen together.
    receiver.delay(ANSWER);
    let measured = measured(&fleet, async {
        fleet.commit("second").await;
        complete(&fleet, 2).await;
    })
    .await;
    receiver.delay(Duration::ZERO);
    let seen = receiver.judged();
    measured.print(apps, order, seen.hooks + seen.checks);
    let size = fleet.set("fleet").await["status"]["phases"].to_string().len();
    let left = receiver.left().await;
    fleet.stop().await;
    println!(
        "         hooks {} of which {} at once, checks {} of which {} at once; {left}; status.phases {} KiB, its largest \
         write {} KiB",
        seen.hooks,
        seen.most_hooks,
        seen.checks,
        seen.most_checks,
        size.div_ceil(1024),
        measured.counts.largest.div_ceil(1024),
    );
    assert!(size <= STATUS, "status.phases has {size} bytes");
    let largest = usize::try_from(measured.counts.largest).unwrap_or(usize::MAX);
    assert!(largest <= STATUS + AROUND, "status.phases was written with {largest} bytes");
    measured
}

/// Many calls of one phase: what they cost must grow as they do.
async fn each_target(receiver: &Receiver, apps: usize) {
    let mut set = grouped("fleet", apps, 1);
    let phase = json!({
        "name": "all", "targets": [{"values": {"step": "s0"}}],
        "preHooks": [receiver.http("tell", "hook/{{ .app }}")],
        "checks": [receiver.http("ask", "check/{{ .app }}")],
    });
    set["spec"]["generators"][0]["deploymentStrategy"] =
        json!({"type": "phaseDeployment", "phases": [phase]});
    phases(receiver, apps, &set, "targets").await;
}

/// Hooks that are never answered, and a check that is not either: when their time is up, nothing is left of them.
async fn timeouts(receiver: &Receiver) {
    let silent = |mut hook: Value| {
        hook["timeout"] = "1s".into();
        hook["failurePolicy"] = "ignore".into();
        hook["parallel"] = true.into();
        hook
    };
    let hooks = (0..20).map(|number| {
        let name = format!("silent-{number}");
        silent(match number % 2 {
            0 => receiver.http(&name, "hook/silent"),
            _ => receiver.command(&name, "hook/silent"),
        })
    });
    let checks = (0..20).map(|number| {
        let name = format!("silent-{number}");
        let mut check = match number % 2 {
            0 => receiver.http(&name, "check/silent"),
            _ => receiver.command(&name, "check/silent"),
        };
        check["timeout"] = "1s".into();
        check
    });
    let phase = json!({
        "name": "all", "targets": [{"values": {"step": "s0"}}], "onFailure": {"action": "continue"},
        "preHooks": hooks.collect::<Vec<Value>>(), "checks": checks.collect::<Vec<Value>>(),
    });
    let mut set = grouped("fleet", 10, 1);
    set["spec"]["generators"][0]["deploymentStrategy"] =
        json!({"type": "phaseDeployment", "phases": [phase]});
    receiver.take();
    let begin = Instant::now();
    let fleet = Fleet::new(receiver.settings(), &[set]).await;
    let over = || async { !phases_of(&fleet).await["finishedAt"].is_null() };
    until(over).await;
    let seen = receiver.judged();
    println!(
        "20 hooks and 20 checks that nobody answers, half of them commands: {} and {} calls, {} and {} at once, {:.1} s; {}",
        seen.hooks,
        seen.checks,
        seen.most_hooks,
        seen.most_checks,
        begin.elapsed().as_secs_f64(),
        receiver.left().await,
    );
    fleet.stop().await;
}

async fn measured(fleet: &Fleet, work: impl Future<Output = ()>) -> Measured {
    *fleet.counts.lock() = Counts::default();
    forget_peak();
    let (before, begin) = (processor_time(), Instant::now());
    work.await;
    Measured {
        counts: fleet.counts.lock().clone(),
        took: begin.elapsed(),
        processor: processor_time() - before,
        peak: peak(),
    }
}

/// Waits until the phases of this run are complete.
async fn complete(fleet: &Fleet, run: u64) {
    fleet.complete(&["fleet"], run).await;
    let done = || async {
        let phases = phases_of(fleet).await;
        let rollout = phases["rolloutID"].as_str().and_then(baton_phases::identity::run_of);
        assert!(phases["state"] != "Failed", "the rollout failed: {phases:#}");
        phases["state"] == "Complete" && rollout >= Some(run)
    };
    until(done).await;
}

async fn phases_of(fleet: &Fleet) -> Value {
    fleet.set("fleet").await["status"]["phases"][0].clone()
}

async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A set in ten phases. One hook of each is never answered, and may fail.
fn phased(receiver: &Receiver, apps: usize) -> Value {
    let phase = |number: usize| {
        let together = |mut hook: Value| {
            hook["parallel"] = true.into();
            hook
        };
        let mut silent = match number % 2 {
            0 => receiver.http("silent", "hook/silent"),
            _ => receiver.command("silent", "hook/silent"),
        };
        silent["timeout"] = "1s".into();
        silent["failurePolicy"] = "ignore".into();
        json!({
            "name": format!("p{number}"), "targets": [{"values": {"step": format!("s{number}")}}],
            "preHooks": [
                together(receiver.http("open", "hook/open")),
                together(receiver.http("tell", "hook/tell")),
                together(receiver.command("freeze", "hook/freeze")),
            ],
            "checks": [
                receiver.http("errors", "check/errors"),
                receiver.http("latency", "check/latency"),
                receiver.http("traffic", "check/traffic"),
                receiver.command("smoke", "check/smoke"),
                receiver.command("nodes", "check/nodes"),
            ],
            "postHooks": [receiver.http("close", "hook/close"), silent],
        })
    };
    let all: Vec<Value> = (0..PHASES).map(phase).collect();
    let mut set = grouped("fleet", apps, PHASES);
    set["spec"]["generators"][0]["deploymentStrategy"] = json!({"type": "phaseDeployment", "phases": all});
    set
}
