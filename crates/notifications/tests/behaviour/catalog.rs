//! The default catalog: what it tells, and when.

use std::collections::BTreeMap;

use baton_notifications::{Config, Part, State, Subject, catalog, decide};
use serde_json::{Value, json};

use crate::support::{about_app, about_set, application, noon};

/// The catalog with a service of every kind and a subscription to one trigger.
fn subscribed_to(trigger: &str) -> Config {
    let mut data: BTreeMap<String, String> = catalog::catalog().data.expect("the catalog holds something");
    for (key, text) in [
        ("service.slack", "token: t"),
        ("service.email", "{host: h, from: a@example.com}"),
        ("service.teams", "recipientUrls: {ops: 'https://a.example'}"),
        ("service.teams-workflows", "recipientUrls: {ops: 'https://a.example'}"),
        ("service.webhook", "url: https://a.example"),
        ("context", "argocdUrl: https://cd.example"),
    ] {
        data.insert(key.into(), text.into());
    }
    let everyone = "['slack:c', 'email:a@example.com', 'teams:ops', 'teams-workflows:ops', 'webhook']";
    data.insert("subscriptions".into(), format!("- recipients: {everyone}\n  triggers: [{trigger}]"));
    let (config, findings) = Config::read(&data, &BTreeMap::new());
    assert!(findings.is_empty(), "{findings:?}");
    config
}

/// What each service is told, by its name.
fn told(trigger: &str, subject: &Subject<'_>) -> BTreeMap<String, baton_notifications::Message> {
    let decision = decide(Some(subject), &subscribed_to(trigger), &State::default(), noon());
    assert!(decision.complaints.is_empty(), "{trigger}: {:?}", decision.complaints);
    let entries = decision.state.outbox.entries().iter();
    entries.map(|entry| (entry.service.clone(), entry.message.clone())).collect()
}

fn status(phase: &str, health: &str, sync: &str) -> Value {
    json!({
        "sync": {"status": sync},
        "health": {"status": health, "lastTransitionTime": "2026-03-01T11:50:00Z", "message": "it \"hurts\""},
        "reconciledAt": "2026-03-01T11:55:00Z",
        "conditions": [{"type": "ComparisonError", "message": "no"}],
        "operationState": {
            "phase": phase, "startedAt": "2026-03-01T11:40:00Z", "finishedAt": "2026-03-01T11:45:00Z",
            "message": "m", "syncResult": {"revision": "abc"},
        },
    })
}

fn set(status: Value) -> Value {
    json!({"metadata": {"name": "fleet", "namespace": "argocd", "uid": "u-2"}, "spec": {}, "status": status})
}

#[test]
fn the_catalog_is_a_document_with_every_name_of_argo_cd_and_our_own() {
    let document = catalog::object("argocd");
    assert_eq!(
        (&document["kind"], &document["metadata"]["name"]),
        (&json!("ConfigMap"), &json!("argocd-notifications-cm"))
    );
    let names: Vec<&str> = document["data"].as_object().expect("a map").keys().map(String::as_str).collect();
    for trigger in [
        "created",
        "deleted",
        "deployed",
        "health-degraded",
        "sync-failed",
        "sync-running",
        "sync-status-unknown",
        "sync-succeeded",
        "deletion-approval-required",
    ] {
        assert!(names.contains(&format!("trigger.on-{trigger}").as_str()), "{trigger}");
        assert!(names.contains(&format!("template.app-{trigger}").as_str()), "{trigger}");
    }
    for trigger in
        ["rollout-started", "rollout-step", "rollout-completed", "rollout-waiting-approval", "phase-failed"]
    {
        assert!(names.contains(&format!("trigger.on-{trigger}").as_str()), "{trigger}");
        assert!(names.contains(&format!("template.appset-{trigger}").as_str()), "{trigger}");
    }
}

#[test]
fn each_trigger_of_applications_fires_when_its_name_says() {
    let fresh = application(json!({}));
    let mut deleted = application(json!({}));
    deleted["metadata"]["deletionTimestamp"] = "2026-03-01T11:00:00Z".into();
    let good = application(status("Succeeded", "Healthy", "Synced"));
    let running = application(status("Running", "Progressing", "OutOfSync"));
    let failed = application(status("Failed", "Degraded", "Unknown"));
    for (trigger, expected) in [
        ("on-created", "fdgrx"),
        ("on-deleted", " d   "),
        ("on-deployed", "  g  "),
        ("on-health-degraded", "    x"),
        ("on-sync-failed", "    x"),
        ("on-sync-running", "   r "),
        ("on-sync-status-unknown", "    x"),
        ("on-sync-succeeded", "  g  "),
        ("on-deletion-approval-required", "     "),
    ] {
        let found: String = [&fresh, &deleted, &good, &running, &failed]
            .iter()
            .zip("fdgrx".chars())
            .map(|(app, letter)| if told(trigger, &about_app(app)).is_empty() { ' ' } else { letter })
            .collect();
        assert_eq!(found, expected, "{trigger}");
    }
}

#[test]
fn every_text_for_every_service_is_good() {
    let app = application(status("Failed", "Degraded", "Unknown"));
    for (service, message) in told("on-health-degraded", &about_app(&app)) {
        let text = message.first(&[Part::Message]);
        assert!(text.contains("Application web is degraded.\nit \"hurts\""), "{service}: {text}");
        assert!(text.ends_with("https://cd.example/applications/argocd/web"), "{text}");
        for part in
            [Part::SlackAttachments, Part::TeamsFacts, Part::TeamsPotentialAction, Part::WorkflowsFacts]
        {
            if let Some(json) = message.get(part) {
                assert!(serde_json::from_str::<Vec<Value>>(json).is_ok(), "{service} {part:?}: {json}");
            }
        }
    }
    let messages = told("on-health-degraded", &about_app(&app));
    assert_eq!(messages["email"].get(Part::EmailSubject), Some("Application web is degraded."));
    assert!(messages["slack"].first(&[Part::Message]).starts_with(":x: "));
}

#[test]
fn an_approval_is_asked_for_once_per_wait_and_lists_exactly_what_waits() {
    let mut app = application(json!({
        "resources": [
            {"kind": "Namespace", "name": "prod", "requiresDeletionApproval": true},
            {"group": "apps", "kind": "Deployment", "namespace": "prod", "name": "db", "requiresDeletionApproval": true},
            {"kind": "Service", "namespace": "prod", "name": "kept", "requiresDeletionConfirmation": true},
            {"kind": "Secret", "namespace": "prod", "name": "approved", "requiresDeletionApproval": false},
        ],
        "conditions": [{"type": "DeletionApprovalRequiredInfo", "message": "pruning waits"}],
        "operationState": {"phase": "Running", "startedAt": "2026-03-01T11:40:00Z"},
    }));
    let messages = told("on-deletion-approval-required", &about_app(&app));
    let text = messages["email"].first(&[Part::Message]);
    let listed: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(listed, ["- Namespace prod", "- Deployment.apps prod/db"], "{text}");
    assert!(text.contains("baton app confirm-deletion web"), "{text}");
    assert!(text.ends_with("https://cd.example/approvals?app=argocd/web"), "{text}");
    let webhook: Value = serde_json::from_str(messages["webhook"].first(&[Part::WebhookBody])).expect("JSON");
    assert_eq!(
        webhook,
        json!({
            "type": "deletion-approval-required", "app": "web", "namespace": "argocd", "project": "default",
            "cluster": "", "requestedAt": "2026-03-01T11:40:00Z", "message": "pruning waits",
            "resources": [
                {"group": "", "kind": "Namespace", "namespace": "", "name": "prod"},
                {"group": "apps", "kind": "Deployment", "namespace": "prod", "name": "db"},
            ],
            "approveUrl": "https://cd.example/approvals?app=argocd/web",
        })
    );
    // Once per wait, whatever is approved meanwhile; the next operation is another wait.
    let config = subscribed_to("on-deletion-approval-required");
    let look = |app: &Value, state: &State| decide(Some(&about_app(app)), &config, state, noon()).state;
    let first = look(&app, &State::default());
    assert!(first.outbox.entries().iter().all(|entry| entry.until_delivered));
    app["status"]["resources"][0]["requiresDeletionApproval"] = false.into();
    assert_eq!(look(&app, &first), first);
    app["status"]["operationState"]["startedAt"] = "2026-03-01T12:40:00Z".into();
    assert_eq!(look(&app, &first).outbox.entries().len(), 10);
}

#[test]
fn a_deletion_that_follows_a_sync_which_waits_is_another_wait() {
    let mut app = application(json!({
        "conditions": [{"type": "DeletionApprovalRequiredInfo", "message": "pruning waits for approval of X"}],
        "operationState": {"phase": "Running", "startedAt": "2026-03-01T11:40:00Z"},
    }));
    let config = subscribed_to("on-deletion-approval-required");
    let look = |app: &Value, state: &State| decide(Some(&about_app(app)), &config, state, noon()).state;
    let first = look(&app, &State::default());
    app["metadata"]["deletionTimestamp"] = "2026-03-01T11:50:00Z".into();
    assert_eq!(look(&app, &first), first, "the sync still waits");
    app["status"]["operationState"]["phase"] = "Failed".into();
    app["status"]["conditions"][0]["message"] = "waiting for deletion confirmation of Y".into();
    let second = look(&app, &first);
    let entries = second.outbox.entries();
    assert_eq!(entries.len(), 10);
    // Without rows the condition says what waits.
    let text = entries[9].message.first(&[Part::Message]);
    assert!(text.contains("\nwaiting for deletion confirmation of Y\n"), "{text}");
}

#[test]
fn resources_that_the_next_sync_will_wait_for_are_no_wait_yet() {
    let app = application(json!({
        "resources": [{"kind": "Namespace", "name": "prod", "requiresDeletionApproval": true}],
        "operationState": {"phase": "Succeeded", "startedAt": "2026-03-01T11:40:00Z"},
    }));
    assert!(told("on-deletion-approval-required", &about_app(&app)).is_empty());
}

#[test]
fn rollouts_are_told_of_at_every_step() {
    let underway = set(json!({"rollout": {"run": 3, "state": "Progressing", "step": 2, "steps": [
        {"step": 1, "state": "Complete", "total": 5, "done": 5}, {"step": 2, "state": "Open", "total": 7, "failed": 1},
    ]}}));
    let done = set(
        json!({"rollout": {"run": 3, "state": "Complete", "step": 2, "finishedAt": "2026-03-01T11:00:00Z"}}),
    );
    let idle = set(json!({}));
    for (trigger, expected) in [
        ("on-rollout-started", "u  "),
        ("on-rollout-step", "u  "),
        ("on-rollout-completed", " d "),
        ("on-rollout-waiting-approval", "   "),
        ("on-phase-failed", "   "),
    ] {
        let found: String = [&underway, &done, &idle]
            .iter()
            .zip("udi".chars())
            .map(|(set, letter)| if told(trigger, &about_set(set)).is_empty() { ' ' } else { letter })
            .collect();
        assert_eq!(found, expected, "{trigger}");
    }
    let text = told("on-rollout-step", &about_set(&underway))["email"].first(&[Part::Message]).to_owned();
    assert!(
        text.contains(
            "fleet has opened step 2.\nStep 1: Complete, 5 of 5 done\nStep 2: Open, 0 of 7 done, 1 failed\n"
        ),
        "{text}"
    );
    assert!(text.ends_with("https://cd.example/rollouts/argocd/fleet"), "{text}");
    // Applications are not asked about rollouts.
    assert!(told("on-rollout-step", &about_app(&application(json!({})))).is_empty());
}

#[test]
fn a_failed_phase_is_told_once_although_it_is_put_back() {
    let phases = |state: &str| {
        set(
            json!({"phases": [{"generator": 0, "rolloutID": "r1", "currentPhase": 1, "state": state, "phases": [
                {"name": "canary", "state": "Complete"},
                {"name": "half", "state": state, "failure": {"reason": "CheckFailed", "message": "p99 too high.", "remedy": "Look."}},
            ]}]}),
        )
    };
    let config = subscribed_to("on-phase-failed");
    let failed = phases("Failed");
    let first = decide(Some(&about_set(&failed)), &config, &State::default(), noon());
    assert_eq!((first.complaints.len(), first.state.outbox.entries().len()), (0, 5));
    let text = first.state.outbox.entries()[0].message.first(&[Part::Message]).to_owned();
    assert!(text.contains("CheckFailed: p99 too high. Look."), "{text}");
    for state in ["RollingBack", "RolledBack"] {
        let next = decide(Some(&about_set(&phases(state))), &config, &first.state, noon());
        assert_eq!(next.state, first.state, "{state}");
    }
}

#[test]
fn a_set_that_waits_for_a_person_says_so() {
    let held = set(
        json!({"conditions": [{"type": "DeletionHeld", "status": "True", "message": "12 of 20 Applications would go"}]}),
    );
    let text =
        told("on-rollout-waiting-approval", &about_set(&held))["slack"].first(&[Part::Message]).to_owned();
    assert!(text.contains("12 of 20 Applications would go"), "{text}");
    let blocked = set(json!({"rollout": {"run": 1, "state": "Progressing", "blockers": [
        {"reason": "Progressing", "object": "other", "message": "syncs"},
        {"reason": "ApprovalRequired", "object": "web-eu", "message": "waits for a person.", "remedy": "Approve it."},
    ]}}));
    let text =
        told("on-rollout-waiting-approval", &about_set(&blocked))["email"].first(&[Part::Message]).to_owned();
    assert!(text.contains("web-eu: waits for a person. Approve it.") && !text.contains("other"), "{text}");
}
