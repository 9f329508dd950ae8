//! Two controllers: one tells, and the other goes on where it left off.

use std::time::Duration;

use serde_json::json;

use crate::stage::{PLAIN, Stage, health, pass};

const ON_DEGRADED: &str = "notifications.argoproj.io/subscribe.on-degraded.ops";
/// Long enough for a lease to be believed to be given up.
const LEASE_RUNS_OUT: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn two_controllers_tell_once() {
    let stage = Stage::new(PLAIN).await;
    let first = stage.run_with(|settings| settings.leader_election = true);
    pass(Duration::from_secs(5)).await;
    let second = stage.run_with(|settings| settings.leader_election = true);
    stage.application("web", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    stage.arrived(1).await;
    pass(LEASE_RUNS_OUT).await;
    first.crash().await;
    pass(LEASE_RUNS_OUT).await;
    assert_eq!(stage.letters.attempts().len(), 1, "the second knows that it was told");
    stage.application("db", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    assert_eq!(stage.arrived(2).await[1], "ops: db is degraded in ");
    second.stop().await;
    pass(LEASE_RUNS_OUT).await;
    assert_eq!(stage.letters.attempts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_one_has_queued_the_next_sends() {
    let stage = Stage::new(PLAIN).await;
    let first = stage.run_with(|settings| settings.leader_election = true);
    stage.letters.refuse(&["status 500"]);
    stage.application("web", json!({ON_DEGRADED: ""}), health("Degraded")).await;
    stage.until("the first attempt", || stage.letters.attempts().len() == 1).await;
    pass(Duration::from_secs(1)).await;
    first.crash().await;
    // The object is gone before anybody hears of it.
    stage.delete("Application", "web").await;
    assert_eq!(stage.outboxes().len(), 1);
    let _second = stage.run_with(|settings| settings.leader_election = true);
    assert_eq!(stage.arrived(1).await, ["ops: web is degraded in "]);
    stage.until("nothing is left behind", || stage.outboxes().is_empty()).await;
    let attempts = stage.letters.attempts();
    assert_eq!((attempts.len(), &attempts[0].id), (2, &attempts[1].id));
}
