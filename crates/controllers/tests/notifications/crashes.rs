//! A controller that dies at any of its writes: nothing is lost, and nothing is another letter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::faults::{Call, Fault};
use crate::letterbox::Letterbox;
use crate::stage::{PLAIN, Stage, health, pass};

const ON_DEGRADED: &str = "notifications.argoproj.io/subscribe.on-degraded.slack";

fn is_write(call: &Call) -> bool {
    call.method != Method::GET && !call.path.ends_with("/events")
}

/// Kills a controller at its write of this number, with the write made or not; another goes on. Tells how often each
/// letter arrived, and what was written, or none if there are not so many writes.
async fn killed_at(number: usize, fault: &Fault) -> Option<(BTreeMap<String, usize>, String)> {
    let stage = Stage::new(PLAIN).await;
    let first = stage.run();
    stage.application("web", json!({ON_DEGRADED: "a;b"}), health("Healthy")).await;
    pass(Duration::from_secs(1)).await;
    let (writes, fault) = (Arc::new(AtomicUsize::new(0)), fault.clone());
    let died = Arc::new(parking_lot::Mutex::new(String::new()));
    first.wire.fail({
        let (writes, died) = (writes.clone(), died.clone());
        move |_, call| {
            if writes.load(Ordering::Relaxed) > number {
                return Some(Fault::Lost);
            }
            if !is_write(call) || writes.fetch_add(1, Ordering::Relaxed) != number {
                return None;
            }
            *died.lock() = format!("{} {}", call.method, call.target().0);
            Some(fault.clone())
        }
    });
    stage.status("applications", "web", health("Degraded")).await;
    pass(Duration::from_secs(10)).await;
    first.crash().await;
    let second = stage.run();
    stage.until("all is told", || stage.notified("web").len() == 2).await;
    pass(Duration::from_secs(600)).await;
    second.stop().await;
    assert_eq!(stage.outboxes(), [] as [&str; 0]);
    let mut counts = BTreeMap::new();
    for letter in stage.letters.attempts() {
        *counts.entry(format!("{} {} {}", letter.id, letter.to, letter.text)).or_default() += 1;
    }
    let died = died.lock().clone();
    (!died.is_empty()).then_some((counts, died))
}

#[tokio::test(start_paused = true)]
async fn only_a_death_between_the_answer_and_its_mark_repeats_a_letter() {
    for fault in [Fault::Lost, Fault::Silent] {
        let (mut number, mut repeats) = (0, 0);
        while let Some((counts, died)) = killed_at(number, &fault).await {
            assert_eq!(counts.len(), 2, "{fault:?} at {died} ({number}): {counts:?}");
            let repeated = counts.values().filter(|count| **count > 1).count();
            let most = usize::from(fault == Fault::Lost && died == "PATCH secrets");
            assert!(repeated <= most, "{fault:?} at {died} ({number}): {counts:?}");
            repeats += repeated;
            number += 1;
        }
        assert!(number >= 5, "there were {number} writes only");
        // Each of the two letters has its mark, and only a mark that was not made leaves a doubt.
        assert_eq!(repeats, if fault == Fault::Lost { 2 } else { 0 }, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_told_to_stop_waits_for_what_is_on_its_way() {
    let stage = Stage::with(Letterbox::taking(Duration::from_secs(3)), PLAIN).await;
    let first = stage.run();
    stage.application("web", json!({ON_DEGRADED: "a;b"}), health("Degraded")).await;
    stage.until("a letter is on its way", || stage.letters.attempts().len() == 1).await;
    first.stop().await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.letters.attempts().len(), 1, "nothing new is begun");
    let _second = stage.run();
    stage.arrived(2).await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.letters.arrived(), ["slack:a web is degraded in a", "slack:b web is degraded in b"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_another_has_overtaken_is_made_anew() {
    let stage = Stage::new(PLAIN).await;
    let controller = stage.run();
    pass(Duration::from_secs(1)).await;
    controller.wire.fail({
        let mut left = 7;
        move |_, call| {
            let fails = left > 0 && is_write(call) && call.method != Method::POST;
            left -= usize::from(fails);
            fails.then(|| Fault::Refused(409, "the object has been modified".to_owned()))
        }
    });
    stage.application("web", json!({ON_DEGRADED: "a"}), health("Degraded")).await;
    stage.until("all is told", || stage.notified("web").len() == 1).await;
    pass(Duration::from_secs(600)).await;
    assert_eq!(stage.letters.attempts().len(), 1, "it is known to have arrived");
    assert_eq!(stage.outboxes(), [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_outbox_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let stage = Stage::new(PLAIN).await;
    let first = stage.run();
    stage.letters.refuse(&["status 500"]);
    stage.application("web", json!({ON_DEGRADED: "a"}), health("Degraded")).await;
    stage.until("the first attempt", || stage.letters.attempts().len() == 1).await;
    pass(Duration::from_secs(1)).await;
    first.crash().await;
    let name = stage.outboxes().remove(0);
    let broken = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": crate::scene::NAMESPACE},
        "stringData": {"outbox": "[{"},
    });
    stage.apply(broken).await;
    let _second = stage.run();
    pass(Duration::from_secs(600)).await;
    assert_eq!(stage.letters.attempts().len(), 1);
    let told = stage.events().iter().filter(|event| event.contains("repair or delete it")).count();
    assert_eq!(told, 1, "{:?}", stage.events());
    stage.control.delete_object("v1", "Secret", crate::scene::NAMESPACE, &name).await.expect("a deletion");
    stage.arrived(1).await;
}
