//! Who is told.

use baton_notifications::{Subject, subscribed};
use serde_json::json;

use crate::support::{about_app, about_set, annotated, application, config};

const CONFIG: &[(&str, &str)] = &[
    ("service.slack", "token: $token"),
    ("trigger.on-a", "- when: 'true'"),
    ("trigger.on-b", "- when: 'true'"),
    ("defaultTriggers", "[on-a, on-b]"),
    ("defaultTriggers.email", "[on-b]"),
];

fn shown(subject: &Subject<'_>, data: &[(&str, &str)]) -> Vec<String> {
    let mut shown = Vec::new();
    for (trigger, destinations) in subscribed(subject, &config(data)).destinations {
        shown.extend(destinations.iter().map(|to| format!("{trigger} {}:{}", to.service, to.recipient)));
    }
    shown
}

#[test]
fn every_form_of_annotation_subscribes() {
    for (key, value, expected) in [
        ("notifications.argoproj.io/subscribe.on-a.slack", "x; y ;", vec!["on-a slack:x", "on-a slack:y"]),
        ("notifications.argoproj.io/subscribe.slack", "x", vec!["on-a slack:x", "on-b slack:x"]),
        ("notifications.argoproj.io/subscribe.email", "a@b.c", vec!["on-b email:a@b.c"]),
        ("notifications.argoproj.io/subscribe.on-a.ops", "", vec!["on-a ops:"]),
        (
            "notifications.argoproj.io/subscriptions",
            "- trigger: [on-a, on-b]\n  destinations:\n  - service: slack\n    recipients: [x, z]\n  - service: ops",
            vec!["on-a ops:", "on-a slack:x", "on-a slack:z", "on-b ops:", "on-b slack:x", "on-b slack:z"],
        ),
        (
            "recipients.argocd-notifications.argoproj.io",
            "slack:x, email:y",
            vec!["on-a slack:x", "on-b email:y", "on-b slack:x"],
        ),
        ("on-a.recipients.argocd-notifications.argoproj.io", "slack:x", vec!["on-a slack:x"]),
        ("notifications.argoproj.io/other", "x", vec![]),
    ] {
        let app = annotated(application(json!({})), &[(key, value)]);
        assert_eq!(shown(&about_app(&app), CONFIG), expected, "{key}: {value}");
        let set = annotated(json!({"metadata": {"name": "s", "annotations": {}}}), &[(key, value)]);
        assert_eq!(shown(&about_set(&set), CONFIG), expected, "{key}: {value}");
    }
}

#[test]
fn a_project_subscribes_all_that_belongs_to_it() {
    let app = annotated(application(json!({})), &[("notifications.argoproj.io/subscribe.on-a.slack", "x")]);
    let project =
        json!({"metadata": {"annotations": {"notifications.argoproj.io/subscribe.on-a.slack": "x;y"}}});
    let subject = Subject { project: Some(&project), ..about_app(&app) };
    assert_eq!(shown(&subject, CONFIG), ["on-a slack:x", "on-a slack:y"]);
}

#[test]
fn the_configuration_subscribes_by_labels() {
    let mut app = application(json!({}));
    let data = [
        CONFIG,
        &[("subscriptions", "- recipients: ['slack:all']\n  triggers: [on-a]\n- recipients: ['slack:prod:eu']\n  selector: env=prod\n  triggers: [on-b]\n- recipients: [email:x]\n  selector: env=none")],
    ]
    .concat();
    assert_eq!(shown(&about_app(&app), &data), ["on-a slack:all"]);
    app["metadata"]["labels"] = json!({"env": "prod"});
    assert_eq!(shown(&about_app(&app), &data), ["on-a slack:all", "on-b slack:prod:eu"]);
}

#[test]
fn what_cannot_be_read_or_is_too_much_is_told() {
    let many: String = (0..200).map(|number| format!("r{number};")).collect();
    let app = annotated(
        application(json!({})),
        &[
            ("notifications.argoproj.io/subscriptions", "a: ["),
            ("notifications.argoproj.io/subscribe.on-a.slack", &many),
        ],
    );
    let found = subscribed(&about_app(&app), &config(CONFIG));
    assert_eq!(found.destinations["on-a"].len(), 100);
    assert!(found.complaints[0].contains("on-a has more than 100 recipients"), "{:?}", found.complaints);
    assert!(found.complaints[1].starts_with("annotation notifications.argoproj.io/subscriptions: yaml:"));
}

#[test]
fn owners_name_only_whom_the_operator_allows() {
    let data = [
        CONFIG,
        &[
            ("service.email", "host: mail.example\nfrom: a@b.c\nallowedRecipients: ['*@example.com']"),
            ("service.webhook.ops", "url: https://ops.example\nallowedRecipients: []"),
            ("subscriptions", "- recipients: ['email:ops@elsewhere.org']\n  triggers: [on-a]"),
        ],
    ]
    .concat();
    let app = annotated(
        application(json!({})),
        &[
            ("notifications.argoproj.io/subscribe.on-a.email", "me@example.com;thief@evil.org"),
            ("notifications.argoproj.io/subscribe.on-a.ops", ""),
            ("notifications.argoproj.io/subscribe.on-a.slack", "anybody"),
        ],
    );
    let project = json!({"metadata": {"annotations": {"notifications.argoproj.io/subscribe.on-a.ops": ""}}});
    let expected = ["on-a email:me@example.com", "on-a email:ops@elsewhere.org", "on-a slack:anybody"];
    assert_eq!(shown(&about_app(&app), &data), expected);
    // Projects are the operator's.
    let subject = Subject { project: Some(&project), ..about_app(&app) };
    assert_eq!(shown(&subject, &data).len(), 4);
    let complaints = subscribed(&subject, &config(&data)).complaints;
    let told = "\"thief@evil.org\" is not among the allowedRecipients of email, so it is not told";
    assert!(complaints.iter().any(|complaint| complaint == told), "{complaints:?}");
}
