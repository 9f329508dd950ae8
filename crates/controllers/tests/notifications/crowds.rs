//! Many objects, and services that hang.

use std::time::Duration;

use serde_json::json;

use crate::letterbox::Letterbox;
use crate::stage::{PLAIN, Stage, health, pass};

#[tokio::test(start_paused = true)]
async fn a_service_that_hangs_holds_up_no_other() {
    let stage = Stage::with(Letterbox::hanging("slack", Duration::from_secs(30)), PLAIN).await;
    let slow = "notifications.argoproj.io/subscribe.on-degraded.slack";
    for number in 0..40 {
        stage.application(&format!("slow-{number}"), json!({slow: "a"}), health("Degraded")).await;
    }
    let _controller = stage.run_with(|settings| settings.processors = 8);
    pass(Duration::from_secs(10)).await;
    let began = tokio::time::Instant::now();
    let fast = "notifications.argoproj.io/subscribe.on-degraded.ops";
    stage.application("fast", json!({fast: ""}), health("Degraded")).await;
    stage.arrived(1).await;
    assert!(began.elapsed() < Duration::from_secs(1), "it took {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_an_annotation_asks_for_does_not_grow_measurements() {
    let stage = Stage::new(PLAIN).await;
    let controller = stage.run();
    for number in 0..5 {
        let made_up = format!("notifications.argoproj.io/subscribe.on-made-up-{number}.ops");
        let nowhere = format!("notifications.argoproj.io/subscribe.on-degraded.nowhere-{number}");
        let good = "notifications.argoproj.io/subscribe.on-degraded.ops";
        let annotations = json!({made_up: "", nowhere: "", good: ""});
        stage.application(&format!("web-{number}"), annotations, health("Degraded")).await;
    }
    stage.arrived(5).await;
    pass(Duration::from_secs(10)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &controller.controller.registry().read())
        .expect("metrics");
    assert!(!text.contains("made-up") && !text.contains("nowhere"), "{text}");
    let told =
        "argocd_notifications_deliveries_total{trigger=\"on-degraded\",service=\"ops\",succeeded=\"true\"} 5";
    assert!(text.contains(told), "{text}");
}
