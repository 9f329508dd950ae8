//! Configurations and annotations of people who mean harm, or do not know what they do.

use std::collections::BTreeMap;

use baton_hooks::Secret;
use baton_notifications::{Config, Outbox, State, decide};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{about_app, annotated, application, noon};

fn keys() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "service.webhook",
        "service.slack.x",
        "service.email",
        "service.teams",
        "template.t",
        "trigger.on-x",
        "defaultTriggers",
        "defaultTriggers.slack",
        "subscriptions",
        "context",
        "service.",
        "trigger.",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "when",
        "send",
        "url",
        "token",
        "message",
        "{{",
        "}}",
        ".app",
        "range",
        "end",
        "$token",
        "$",
        ": ",
        "- ",
        "\n",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "&a",
        "*a",
        "<<",
        "|",
        "https://x",
        "true",
        "1..9",
        "any(",
        "(",
        ")",
        ",",
        "#",
        "é",
    ]);
    prop_oneof![prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat()), any::<String>()]
}

proptest! {
    #[test]
    fn no_configuration_panics_or_shows_a_secret(data in prop::collection::btree_map(keys(), texts(), 0..6)) {
        let secrets = BTreeMap::from([("token".to_owned(), Secret::new("canary-0451"))]);
        let (config, findings) = Config::read(&data, &secrets);
        let app = annotated(application(json!({})), &[("notifications.argoproj.io/subscribe.on-x.slack", "a")]);
        let decision = decide(Some(&about_app(&app)), &config, &State::default(), noon());
        for shown in [format!("{config:?}"), format!("{findings:?}"), format!("{decision:?}")] {
            prop_assert!(!shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn no_annotation_panics(key in "[a-z.-]{0,12}", value in texts(), outbox in texts()) {
        let (config, _) = Config::read(&BTreeMap::new(), &BTreeMap::new());
        let forms = [format!("notifications.argoproj.io/subscribe.{key}"), "notifications.argoproj.io/subscriptions".into(),
            format!("{key}.recipients.argocd-notifications.argoproj.io"), "notified.notifications.argoproj.io".into()];
        for form in forms {
            let app = annotated(application(json!({})), &[(&form, &value)]);
            decide(Some(&about_app(&app)), &config, &State::default(), noon());
        }
        prop_assert!(Outbox::parse(&outbox).is_err() || outbox.trim() == "[]");
    }
}
