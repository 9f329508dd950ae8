//! Bodies from anyone.

use baton_controllers::webhook::parse;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Headers, event, headers, secrets, spec};

const SENDERS: [Headers<'_>; 9] = [
    &[("X-GitHub-Event", "push")],
    &[("X-GitHub-Event", "pull_request")],
    &[("X-Gitlab-Event", "System Hook")],
    &[("X-Vss-Activityid", "x")],
    &[("X-Hook-UUID", "x"), ("X-Event-Key", "repo:push")],
    &[("X-Event-Key", "repo:refs_changed")],
    &[("X-Event-Key", "pr:opened")],
    &[("X-Gitea-Event", "push")],
    &[("X-Gitea-Event", "pull_request")],
];

/// The bodies that once ended Argo CD: no updates at all, links of another shape, no repository.
#[test]
fn missing_and_empty_parts_are_no_trouble() {
    for body in [
        json!({}),
        json!({"repository": null, "project": null, "resource": null, "push": null, "changes": null}),
        json!({"eventType": "git.push", "resource": {"refUpdates": [], "repository": null}}),
        json!({"repository": {"links": {}}, "changes": []}),
        json!({"repository": {"links": {"clone": []}}, "changes": [{}]}),
        json!({"object_kind": "push", "ref": "", "action": "opened"}),
    ] {
        for sender in SENDERS {
            if let Ok(event) = event(sender, &body) {
                let generators = json!([{"git": {"repoURL": "https://x/y", "revision": "HEAD"}}]);
                assert!(!event.touches(&spec(generators), None), "{sender:?} {body}");
            }
        }
    }
    let links = json!({"repository": {"links": {"clone": "text"}}, "changes": []});
    assert!(event(&[("X-Event-Key", "repo:refs_changed")], &links).is_err());
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), ".{0,12}".prop_map(Value::from)];
    let name = prop_oneof![
        Just("repository".to_owned()),
        Just("resource".to_owned()),
        Just("refUpdates".to_owned()),
        Just("changes".to_owned()),
        Just("links".to_owned()),
        Just("clone".to_owned()),
        Just("ref".to_owned()),
        Just("eventType".to_owned()),
        Just("html_url".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_and_no_header_panics(body in value(), raw in prop::collection::vec(any::<u8>(), 0..64), header in "[ -~]{0,40}") {
        let set = spec(json!([{"git": {"repoURL": "https://x/y", "revision": "1.x"}}]));
        let secret = secrets(&[("webhook.github.secret", "s"), ("webhook.azuredevops.username", "u")]);
        for sender in SENDERS {
            if let Ok(event) = event(sender, &body) {
                event.touches(&set, None);
            }
            let more = [("X-Hub-Signature-256", header.as_str()), ("Authorization", header.as_str())];
            let pairs: Vec<(&str, &str)> = sender.iter().copied().chain(more).collect();
            let _ = parse(&headers(&pairs), &raw, &secret);
        }
    }
}
