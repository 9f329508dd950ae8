//! What is wrong with a configuration, what changes in it, and what it keeps secret.

use std::time::Duration;

use serde_json::json;

use crate::scene::objects;
use crate::stage::{CANARY, PLAIN, Stage, health, pass};

const ON_DEGRADED: &str = "notifications.argoproj.io/subscribe.on-degraded.ops";
const ON_OTHER: &str = "notifications.argoproj.io/subscribe.on-other.ops";

#[tokio::test(start_paused = true)]
async fn a_wrong_template_is_told_of_and_stops_nobody_else() {
    let wrong: &[(&str, &str)] = &[
        ("template.failing", "message: '{{ index .app.status.list 7 }}'"),
        ("trigger.on-other", "- when: app.status?.health?.status == 'Degraded'\n  send: [failing]"),
        ("template.unreadable", "message: '{{ if }}'"),
        ("trigger.unreadable", "- when: app.status ==\n  send: [degraded]"),
    ];
    let stage = Stage::new(&[PLAIN, wrong].concat()).await;
    let _controller = stage.run();
    let status = json!({"health": {"status": "Degraded"}, "list": []});
    stage.application("web", json!({ON_DEGRADED: "", ON_OTHER: ""}), status).await;
    stage.application("db", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    let mut letters = stage.arrived(2).await;
    letters.sort();
    assert_eq!(letters, ["ops: db is degraded in ", "ops: web is degraded in "]);
    pass(Duration::from_secs(600)).await;
    let events = stage.events();
    let count = |start: &str| events.iter().filter(|event| event.starts_with(start)).count();
    assert_eq!(count("Application web NotificationProblem: trigger on-other for ops: template failing"), 1);
    let of_map = "ConfigMap argocd-notifications-cm NotificationConfiguration: argocd-notifications-cm:";
    assert_eq!(count(&format!("{of_map} template.unreadable, line 1")), 1, "{events:?}");
    assert_eq!(count(&format!("{of_map} trigger.unreadable, line 1")), 1, "{events:?}");
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!(stage.letters.attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_holds_from_then_on() {
    let stage = Stage::new(PLAIN).await;
    let _controller = stage.run();
    stage.application("web", json!({ON_DEGRADED: ""}), health("Healthy")).await;
    stage.application("db", json!({ON_DEGRADED: "", ON_OTHER: ""}), health("Healthy")).await;
    stage.letters.refuse(&["status 503"]);
    stage.status("applications", "web", health("Degraded")).await;
    stage.until("the first attempt", || stage.letters.attempts().len() == 1).await;
    let mut changed = PLAIN.to_vec();
    changed[2].1 = "message: '{{ .app.metadata.name }} is quite unwell'";
    changed
        .push(("trigger.on-other", "- when: app.status?.health?.status == 'Degraded'\n  send: [degraded]"));
    stage.configure(&changed).await;
    stage.status("applications", "db", health("Degraded")).await;
    let mut letters = stage.arrived(3).await;
    letters.sort();
    // What was queued before goes out as it was: one id never means two texts.
    let expected = ["ops: db is quite unwell", "ops: db is quite unwell", "ops: web is degraded in "];
    assert_eq!(letters, expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_told_of_once_a_configuration_asks_for_it() {
    let stage = Stage::new(PLAIN).await;
    let controller = stage.run();
    stage.application("web", json!({}), health("Degraded")).await;
    pass(Duration::from_secs(60)).await;
    let calls = controller.wire.take_calls();
    assert!(calls.iter().all(|call| !call.path.contains("applications/web")), "{calls:?}");
    let everybody = "- recipients: ['ops:']\n  triggers: [on-degraded]";
    stage.configure(&[PLAIN, &[("subscriptions", everybody)]].concat()).await;
    stage.arrived(1).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_that_people_see_holds_a_secret() {
    let stage = Stage::new(&[PLAIN, &[("service.email", "host: $token!\nfrom: a@b.c")]].concat()).await;
    let _controller = stage.run();
    stage.letters.refuse(&[&format!("the receiver said: your token {CANARY} is wrong")]);
    stage.application("web", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    stage.arrived(1).await;
    pass(Duration::from_secs(60)).await;
    let events = stage.events();
    assert!(events.iter().any(|event| event.contains("your token [redacted] is wrong")), "{events:?}");
    assert!(events.iter().any(|event| event.contains("service.email")), "{events:?}");
    for kind in ["events", "applications.argoproj.io", "configmaps"] {
        for (name, object) in objects(&stage.control, kind) {
            assert!(!object.to_string().contains(CANARY), "{kind} {name}: {object}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_to_be_told_nothing_is_asked() {
    let stage = Stage::new(PLAIN).await;
    let controller = stage.run();
    stage.application("web", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    stage.arrived(1).await;
    pass(Duration::from_secs(60)).await;
    controller.wire.take_calls();
    for number in 0..10 {
        stage.status("applications", "web", json!({"reconciledAt": format!("{number}")})).await;
        pass(Duration::from_secs(1)).await;
    }
    stage.until("it rests", || controller.controller.is_idle()).await;
    assert_eq!(controller.wire.take_calls(), []);
}
