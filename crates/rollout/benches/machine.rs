//! What deciding costs, without any API: a rollout of many Applications that sync at once. `make bench` runs it.
//!
//! Told are microseconds per batch, and bytes written to the head; both must not grow with the number of Applications.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::strategy::RolloutStep;
use baton_rollout::head::Intent;
use baton_rollout::live::{Live, Operation};
use baton_rollout::machine::{Control, Machine, Member, Wanted};
use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};
use baton_rollout::stamp::Stamp;
use baton_rollout::steps::Steps;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

fn main() {
    // `cargo test` runs benches too, to see that they build; only `cargo bench` measures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("deciding, without an API: per batch, and the bytes of the head");
    println!(
        "  {:>6} {:>6} {:>9} {:>8} {:>11} {:>14}",
        "apps", "steps", "maxUpdate", "batches", "µs/batch", "head bytes/app"
    );
    for (apps, steps) in [(1000, 3), (1000, 10), (3000, 3), (3000, 10), (10_000, 10)] {
        for limit in [json!("100%"), json!("10%"), json!(1)] {
            rollout(apps, steps, &limit);
        }
    }
}

fn name(number: usize) -> Arc<str> {
    format!("app-{number:05}").into()
}

fn rollout(apps: usize, steps: usize, limit: &serde_json::Value) {
    let key = SourceKey {
        repo: "https://git.example.com/fleet.git".into(),
        target: "main".into(),
        chart: "".into(),
        tag_prefix: "".into(),
    };
    let plan: Vec<RolloutStep> =
        (0..steps).map(|_| serde_json::from_value(json!({"maxUpdate": limit})).expect("a step")).collect();
    let spec = Fingerprint::of(["spec"]);
    let member = |number: usize| Member {
        step: Some(number * steps / apps),
        spec: Some(spec),
        sources: vec![key.clone()],
        self_heal: false,
        fault: None,
        back: None,
    };
    let wanted = Wanted {
        set: "3f6c0a0e-8a7e-4b0e-9d43-4f0f6b8f3a11".into(),
        generation: 1,
        steps: Steps::read(&plan).0,
        members: (0..apps).map(|number| (name(number), member(number))).collect(),
        frozen: None,
        fuse: None,
        keeps_leavers: false,
        control: Control::default(),
    };
    let mut now = Timestamp::from_second(1_700_000_000).expect("a time");
    let mut machine = Machine::new(None);
    let mut lives: Vec<Live> = (0..apps).map(|number| live(number, spec)).collect();
    machine.wants(wanted, now);
    lives.iter().for_each(|live| machine.saw(live.clone()));
    let (mut spent, mut batches, mut bytes, mut version) = (Duration::ZERO, 0usize, 0usize, 1_000_000);
    let mut last = None;
    loop {
        now += SignedDuration::from_millis(100);
        let begin = Instant::now();
        let decision = machine.decide(now);
        let idle = decision.change.is_none()
            && decision.writes.is_empty()
            && !decision.list
            && decision.resolve.is_empty();
        if let Some(change) = &decision.change {
            let texts = machine.head().texts_of(change);
            bytes += texts
                .iter()
                .map(|(key, text)| key.len() + text.as_ref().map_or(4, String::len))
                .sum::<usize>();
            machine.stored(change);
        }
        spent += begin.elapsed();
        for key in decision.resolve {
            machine.resolved(&key, Ok(Resolution::exact("c0ffee")), now);
        }
        if decision.list {
            machine.listed(version, lives.clone());
        }
        batches += usize::from(decision.writes.iter().any(|write| write.what == Intent::Start));
        for write in decision.writes {
            version += 1;
            let at: usize = write.name[4..].parse().expect("a number");
            synced(&mut lives[at], &write.stamp, version);
            let begin = Instant::now();
            machine.saw(lives[at].clone());
            spent += begin.elapsed();
        }
        if machine.head().run.finished.is_some() {
            break;
        }
        assert!(!idle || last != Some(now), "the rollout stands still: {:?}", machine.blockers(now).first());
        last = idle.then_some(now);
    }
    let limit = limit.to_string().replace('"', "");
    let each = spent.as_secs_f64() * 1e6 / batches as f64;
    println!(
        "  {apps:>6} {steps:>6} {limit:>9} {batches:>8} {each:>11.0} {:>14.0}",
        bytes as f64 / apps as f64
    );
}

/// An Application that has never been synced.
fn live(number: usize, spec: Fingerprint) -> Live {
    Live {
        name: name(number),
        uid: format!("uid-{number}").into(),
        version: number as u64,
        terminating: false,
        stamp: None,
        spec,
        automatic: false,
        compared: true,
        sync: SyncCode::OutOfSync,
        prune_only: false,
        health: HealthCode::Missing,
        ailing: None,
        reported: vec!["c0ffee".into()],
        error: None,
        operation: None,
        last: None,
        deployed: Vec::new(),
        refresh: false,
        nonce: None,
        answered: false,
        reconciled: None,
        closed: None,
        heals_in_order: false,
    }
}

/// The same after its operation.
fn synced(live: &mut Live, stamp: &Stamp, version: u64) {
    live.version = version;
    live.stamp = Some(stamp.clone());
    (live.sync, live.health) = (SyncCode::Synced, HealthCode::Healthy);
    live.reconciled = Some(2);
    live.last = Some(Operation {
        phase: OperationPhase::Succeeded,
        stamp: Some(stamp.clone()),
        full: true,
        revisions: vec!["c0ffee".into()],
        finished: Some(1),
        retrying: false,
        awaits_approval: false,
        message: "done".into(),
    });
}
