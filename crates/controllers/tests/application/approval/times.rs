//! Which times approve an operation.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::trial::{APPROVED, Trial, guarded, plain};
use crate::scene::conditions;

/// A sync that waits to prune `precious`, and when it began.
async fn waiting() -> (Trial, Timestamp) {
    let trial = Trial::deployed(&files()).await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    let started = trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    (trial, started.parse().expect("a time"))
}

fn files() -> [(&'static str, &'static str); 3] {
    let leak = |text: String| -> &'static str { text.leak() };
    [
        ("app/keep.yaml", leak(plain("keep"))),
        ("app/plain.yaml", leak(plain("plain"))),
        ("app/precious.yaml", leak(guarded("precious"))),
    ]
}

/// Nothing has gone and the sync still waits.
async fn in_vain(trial: &Trial) {
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(trial.left(&["plain", "precious"]), ["plain", "precious"]);
}

async fn granted(trial: &Trial) {
    trial.succeeds().await;
    assert_eq!(trial.left(&["keep", "plain", "precious"]), ["keep"]);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_older_than_the_start_does_not_count() {
    let (trial, started) = waiting().await;
    for words in [
        (started - SignedDuration::from_millis(1)).to_string(),
        (started - SignedDuration::from_hours(1)).to_string(),
        "1970-01-01T00:00:00Z".to_owned(),
    ] {
        trial.approve_all("app", &words).await;
        in_vain(&trial).await;
    }
    trial.approve_all_now().await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_given_before_the_sync_does_not_count_for_it() {
    let trial = Trial::deployed(&files()).await;
    trial.approve_all_now().await;
    trial.pass(std::time::Duration::from_secs(2)).await;
    trial.drop_files(&["app/plain.yaml", "app/precious.yaml"]);
    trial.prune(json!({})).await;
    in_vain(&trial).await;
    trial.approve_all_now().await;
    granted(&trial).await;
}

/// Whoever approved in vain is told why, beside what waits.
#[tokio::test(start_paused = true)]
async fn why_an_approval_does_not_count_is_said() {
    let (trial, started) = waiting().await;
    let old = (started - SignedDuration::from_hours(1)).to_string();
    let ahead = (started + SignedDuration::from_hours(24)).to_string();
    for (words, why) in [
        (old.as_str(), format!("its time {old} is before the operation began at {started}")),
        (ahead.as_str(), format!("its time {ahead} is ahead of the clock")),
        ("true", "it is not a time as 2006-01-02T15:04:05Z is".to_owned()),
    ] {
        trial.approve_all("app", words).await;
        let app = trial.asks_for("/ConfigMap/precious").await;
        let told = "pruning waits for approval of /ConfigMap/demo/precious; the approval on the Application does not count";
        assert_eq!(conditions(&app), [format!("DeletionApprovalRequiredInfo: {told}: {why}")]);
    }
    trial.take_back_all().await;
    trial.annotate("precious", json!({APPROVED: old})).await;
    let app = trial.asks_for("/ConfigMap/precious").await;
    let told = "the approval on /ConfigMap/demo/precious does not count: its time";
    assert!(conditions(&app)[0].contains(told), "{app:#?}");
    trial.approve_all_now().await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_the_very_second_of_the_start_counts() {
    let (trial, started) = waiting().await;
    trial.approve_all("app", &started.to_string()).await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn fractions_of_a_second_count_as_the_browser_writes_them() {
    let (trial, _) = waiting().await;
    let now = trial.now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    trial.approve_all("app", &now).await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn times_are_compared_as_moments_whatever_their_zone() {
    let (trial, started) = waiting().await;
    let words = |time: Timestamp, hours: i8| {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(hours));
        time.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    };
    // Reads like a later hour and is an earlier one.
    trial.approve_all("app", &words(started - SignedDuration::from_hours(1), 5)).await;
    in_vain(&trial).await;
    trial.approve_all("app", &words(trial.now(), -7)).await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn a_time_to_come_approves_nothing() {
    let (trial, _) = waiting().await;
    trial.approve_all("app", &(trial.now() + SignedDuration::from_hours(24)).to_string()).await;
    in_vain(&trial).await;
    trial.approve_all_now().await;
    granted(&trial).await;
}

#[tokio::test(start_paused = true)]
async fn on_the_application_only_a_time_counts() {
    let (trial, _) = waiting().await;
    for words in ["true", "", "yes", "2026", "1767225600"] {
        trial.approve_all("app", words).await;
        in_vain(&trial).await;
    }
    trial.approve_all_now().await;
    granted(&trial).await;
}
