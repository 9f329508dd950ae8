//! What is to be told, from what is seen and stored.

use baton_notifications::{Config, Decision, Notified, Outbox, Part, State, decide};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::{about_app, about_set, annotated, application, config, noon, queued};

const DEGRADED: &str = "- when: app.status.health.status == 'Degraded'\n  send: [t]";
const PER_REVISION: &str = "- when: app.status.operationState.phase == 'Succeeded'\n  oncePer: app.status.operationState.syncResult.revision\n  send: [t]";

fn configured(trigger: &str) -> Config {
    config(&[
        ("service.slack", "token: $token"),
        ("service.webhook.ops", "url: https://ops.example/hook\nretryMax: 2"),
        ("template.t", "message: '{{ .app.metadata.name }} is {{ .app.status.health.status }}'"),
        ("trigger.on-x", trigger),
    ])
}

fn app(health: &str, revision: &str) -> Value {
    let object = application(json!({
        "health": {"status": health},
        "reconciledAt": "2026-03-01T11:59:00Z",
        "operationState": {"phase": "Succeeded", "finishedAt": "2026-03-01T11:58:00Z", "syncResult": {"revision": revision}},
    }));
    annotated(object, &[("notifications.argoproj.io/subscribe.on-x.slack", "c")])
}

fn look(object: &Value, config: &Config, state: &State, now: Timestamp) -> Decision {
    decide(Some(&about_app(object)), config, state, now)
}

/// The state after everything queued has arrived.
fn delivered(state: &State, now: Timestamp) -> State {
    let text = state.outbox.to_text().replace("\"Queued\"", "\"Sent\"");
    let state = State { notified: state.notified.clone(), outbox: Outbox::parse(&text).expect("an outbox") };
    State { notified: baton_notifications::settle(&state, now), outbox: Outbox::default() }
}

fn minutes(count: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(count)
}

#[test]
fn a_condition_that_holds_is_told_once_and_again_after_it_did_not() {
    let config = configured(DEGRADED);
    let bad = app("Degraded", "abc");
    let first = look(&bad, &config, &State::default(), noon());
    assert_eq!(queued(&first.state), ["on-x slack:c web is Degraded"]);
    assert_eq!(look(&bad, &config, &first.state, minutes(1)).state, first.state, "it is queued once");
    let told = delivered(&first.state, minutes(1));
    assert_eq!(look(&bad, &config, &told, minutes(2)).state, told, "it is told once");
    let better = look(&app("Healthy", "abc"), &config, &told, minutes(3)).state;
    assert!(better.notified.is_empty() && better.outbox.is_empty());
    let again = look(&bad, &config, &better, minutes(4)).state;
    assert_eq!(queued(&again).len(), 1);
    assert_ne!(again.outbox.entries()[0].id, first.state.outbox.entries()[0].id, "it is another occasion");
}

#[test]
fn once_per_holds_whatever_happens_in_between() {
    let config = configured(PER_REVISION);
    let first = look(&app("Healthy", "abc"), &config, &State::default(), noon());
    let told = delivered(&first.state, noon());
    let mut running = app("Healthy", "abc");
    running["status"]["operationState"]["phase"] = "Running".into();
    let between = look(&running, &config, &told, minutes(1)).state;
    assert_eq!(between, told, "what is told per revision stays told");
    assert_eq!(look(&app("Healthy", "abc"), &config, &between, minutes(2)).state, told);
    let next = look(&app("Healthy", "def"), &config, &told, minutes(3)).state;
    assert_eq!(next.outbox.entries()[0].key.as_str().split(':').next(), Some("def"));
    // The id follows from object and occasion: it is the same even if everything stored is lost.
    let anew = look(&app("Healthy", "abc"), &config, &State::default(), minutes(9)).state;
    assert_eq!(anew.outbox.entries()[0].id, first.state.outbox.entries()[0].id);
}

#[test]
fn keys_and_annotation_are_those_of_argo_cd() {
    let config = configured(PER_REVISION);
    let decision = look(&app("Healthy", "abc"), &config, &State::default(), noon());
    let key = decision.state.outbox.entries()[0].key.as_str().to_owned();
    let hash = "LpuibPsvUlFP2XzU_R_WZoKwzxY";
    assert_eq!(key, format!("abc:on-x:[0].{hash}:slack:c"));
    let annotation = delivered(&decision.state, noon()).notified.to_annotation().expect("something was told");
    assert_eq!(annotation, format!("{{\"{key}\":{}}}", noon().as_second()));
    // What Argo CD has told is told.
    let app = annotated(app("Healthy", "abc"), &[("notified.notifications.argoproj.io", &annotation)]);
    let state = State { notified: Notified::of(&app), outbox: Outbox::default() };
    assert_eq!(look(&app, &config, &state, minutes(1)).state, state);
    let broken = annotated(app.clone(), &[("notified.notifications.argoproj.io", "{nonsense")]);
    assert!(Notified::of(&broken).is_empty());
}

#[test]
fn an_occasion_that_is_over_before_it_was_sent_is_sent_and_the_next_is_another() {
    let config = configured(DEGRADED);
    let first = look(&app("Degraded", "a"), &config, &State::default(), noon()).state;
    let over = look(&app("Healthy", "a"), &config, &first, minutes(1)).state;
    assert_eq!(queued(&over), ["on-x slack:c web is Degraded"], "it is not lost");
    let second = look(&app("Degraded", "a"), &config, &over, minutes(2)).state;
    assert_eq!(queued(&second).len(), 2);
    let told = delivered(&over, minutes(3));
    assert!(told.notified.is_empty(), "what is over does not count as told");
}

#[test]
fn nothing_is_decided_on_a_status_older_than_its_operation() {
    let config = configured(PER_REVISION);
    let mut stale = app("Healthy", "abc");
    stale["status"]["reconciledAt"] = "2026-03-01T11:57:00Z".into();
    assert_eq!(look(&stale, &config, &State::default(), noon()).state, State::default());
    // Nobody compares what is being deleted.
    stale["metadata"]["deletionTimestamp"] = "2026-03-01T11:59:00Z".into();
    assert_eq!(queued(&look(&stale, &config, &State::default(), noon()).state).len(), 1);
}

#[test]
fn conditions_about_sets_are_asked_of_sets_only() {
    let config = config(&[
        ("service.slack", "token: $token"),
        ("template.t", "message: told"),
        ("trigger.on-x", "- when: appset.status.x == 1\n  send: [t]\n- when: 'true'\n  send: [t]"),
    ]);
    let subscription = ("notifications.argoproj.io/subscribe.on-x.slack", "c");
    let set = json!({"metadata": {"name": "s", "uid": "u-2", "annotations": {}}, "status": {"x": 1}});
    let set = annotated(set, &[subscription]);
    let decision = decide(Some(&about_set(&set)), &config, &State::default(), noon());
    assert_eq!(decision.evaluated, [("on-x".to_owned(), true)]);
    let decision = look(&app("Healthy", "a"), &config, &State::default(), noon());
    assert_eq!((decision.evaluated.len(), decision.complaints.len()), (1, 0));
}

#[test]
fn time_alone_can_make_a_condition_true_so_it_is_looked_at_again() {
    let config = configured(
        "- when: time.Now().Sub(time.Parse(app.status.operationState.finishedAt)).Minutes() >= 5\n  send: [t]",
    );
    let early = look(&app("Healthy", "a"), &config, &State::default(), noon());
    assert_eq!((queued(&early.state).len(), early.wake), (0, Some(minutes(1))));
    let late = look(&app("Healthy", "a"), &config, &State::default(), minutes(4));
    assert_eq!(queued(&late.state).len(), 1);
    assert_eq!(look(&app("Healthy", "a"), &configured(DEGRADED), &State::default(), noon()).wake, None);
}

#[test]
fn what_is_wrong_is_told_without_secrets_and_approvals_go_out_all_the_same() {
    let broken = |more: &str| {
        config(&[
            ("service.slack", "token: $token"),
            ("template.t", "message: '{{ fail .secrets.token }}'"),
            ("trigger.on-x", &format!("- when: app.status.health.status == 'Degraded'\n  send: [t]{more}")),
        ])
    };
    let decision = look(&app("Degraded", "a"), &broken(""), &State::default(), noon());
    assert!(decision.state.outbox.is_empty());
    assert!(
        decision.complaints[0].starts_with("trigger on-x for slack: template t: "),
        "{:?}",
        decision.complaints
    );
    assert!(!decision.complaints[0].contains("canary"), "{:?}", decision.complaints);
    let approval = broken("\n  untilDelivered: true\n  description: somebody waits");
    let decision = look(&app("Degraded", "a"), &approval, &State::default(), noon());
    let text = decision.state.outbox.entries()[0].message.first(&[Part::Message]).to_owned();
    assert!(
        text.starts_with("Application argocd/web: somebody waits (the template could not be used:"),
        "{text}"
    );
    assert!(!text.contains("canary"));
    let decision = look(
        &app("Degraded", "a"),
        &configured("- when: app.status.nothing.at\n  send: [t]"),
        &State::default(),
        noon(),
    );
    assert!(decision.complaints[0].contains("cannot take at of nil"));
}

#[test]
fn a_hundred_keys_are_kept_and_all_that_hold_now() {
    let recipients: String = (0..90).map(|number| format!("r{number};")).collect();
    let app =
        annotated(app("Degraded", "a"), &[("notifications.argoproj.io/subscribe.on-x.slack", &recipients)]);
    let old: serde_json::Map<String, Value> =
        (0..150).map(|number| (format!("old{number}"), number.into())).collect();
    let noted =
        annotated(app.clone(), &[("notified.notifications.argoproj.io", &Value::Object(old).to_string())]);
    let config = configured(DEGRADED);
    let state = State { notified: Notified::of(&noted), outbox: Outbox::default() };
    let decision = look(&app, &config, &state, noon());
    assert_eq!(decision.state.notified.len(), 100);
    let annotation = decision.state.notified.to_annotation().expect("something was told");
    assert!(annotation.contains("old149") && annotation.contains("old50") && !annotation.contains("old49\""));
    // All that hold are kept beside them, or they would be told again and again.
    let mut state = decision.state;
    for round in 0..3 {
        state = delivered(&look(&app, &config, &state, minutes(round)).state, minutes(round));
    }
    let settled = look(&app, &config, &state, minutes(9)).state;
    assert!(queued(&settled).is_empty(), "{:?}", queued(&settled));
    assert_eq!(settled.notified.len(), 100);
}

#[test]
fn an_outbox_that_is_full_makes_others_wait_and_not_approvals() {
    let config = config(&[
        ("service.slack", "token: $token"),
        ("template.t", "message: told"),
        ("trigger.on-x", "- when: app.status.health.status == 'Degraded'\n  send: [t]"),
        (
            "trigger.on-approval",
            "- when: app.status.health.status == 'Degraded'\n  send: [t]\n  untilDelivered: true",
        ),
    ]);
    let many: String = (0..80).map(|number| format!("r{number};")).collect();
    let app = annotated(
        app("Degraded", "a"),
        &[
            ("notifications.argoproj.io/subscribe.on-x.slack", &many),
            ("notifications.argoproj.io/subscribe.on-approval.slack", "people"),
        ],
    );
    let mut state = State::default();
    // The others are there first.
    let mut without = app.clone();
    without["metadata"]["annotations"]
        .as_object_mut()
        .map(|all| all.remove("notifications.argoproj.io/subscribe.on-approval.slack"));
    let full = look(&without, &config, &state, noon());
    assert_eq!(queued(&full.state).len(), 48);
    assert!(full.complaints.iter().any(|text| text.contains("the outbox is full")));
    let more = look(&app, &config, &full.state, minutes(1));
    assert_eq!(queued(&more.state).len(), 49);
    assert_eq!(more.state.outbox.due(minutes(1))[0].trigger, "on-approval", "it goes first");
    // What had to wait is queued when there is room.
    state = delivered(&more.state, minutes(2));
    assert_eq!(queued(&look(&app, &config, &state, minutes(3)).state).len(), 32);
}

#[test]
fn a_long_once_per_does_not_make_a_long_key() {
    let long = configured("- when: 'true'\n  oncePer: join(map(1..500, {'x'}), '')\n  send: [t]");
    let decision = look(&app("Healthy", "a"), &long, &State::default(), noon());
    let key = decision.state.outbox.entries()[0].key.as_str().to_owned();
    assert!(key.starts_with("sha256-") && key.len() < 200, "{key}");
}

#[test]
fn an_outbox_that_cannot_be_read_is_not_an_empty_one() {
    assert!(Outbox::parse("{").is_err() && Outbox::parse("").is_err());
    let state = look(&app("Degraded", "a"), &configured(DEGRADED), &State::default(), noon()).state;
    assert_eq!(Outbox::parse(&state.outbox.to_text()).expect("an outbox"), state.outbox);
    assert!(!format!("{state:?}").contains("is Degraded"), "messages may hold secrets: {state:?}");
}
