//! What the tests share: a configuration, an Application, a keeper and a post in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_hooks::{AllowList, Connector, Places, Secret, SystemResolver};
use baton_notifications::{
    About, Carrier, Config, DedupKey, DeliveryId, Entry, Kind, Message, Progress, State, Subject,
};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn noon() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

pub(crate) fn config(data: &[(&str, &str)]) -> Config {
    let data: BTreeMap<String, String> =
        data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let secrets = BTreeMap::from([("token".to_owned(), Secret::new("canary-0451"))]);
    let (config, findings) = Config::read(&data, &secrets);
    assert!(findings.is_empty(), "{findings:?}");
    config
}

pub(crate) fn application(status: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "uid": "u-1", "annotations": {}},
        "spec": {"project": "default"},
        "status": status,
    })
}

pub(crate) fn annotated(mut object: Value, annotations: &[(&str, &str)]) -> Value {
    for (key, value) in annotations {
        object["metadata"]["annotations"][*key] = (*value).into();
    }
    object
}

pub(crate) fn about_app(object: &Value) -> Subject<'_> {
    Subject { kind: Kind::Application, object, project: None }
}

pub(crate) fn about_set(object: &Value) -> Subject<'_> {
    Subject { kind: Kind::ApplicationSet, object, project: None }
}

/// What waits in an outbox, as `trigger service:recipient text`.
pub(crate) fn queued(state: &State) -> Vec<String> {
    let shown = |entry: &Entry| {
        let text = entry.message.first(&[baton_notifications::Part::Message]);
        format!("{} {}:{} {text}", entry.trigger, entry.service, entry.recipient)
    };
    state.outbox.entries().iter().filter(|entry| entry.progress == Progress::Queued).map(shown).collect()
}

/// A delivery of a message, as a service gets it.
pub(crate) fn entry(service: &str, recipient: &str, message: Message) -> Entry {
    let about =
        About { kind: Kind::Application, namespace: "argocd".into(), name: "web".into(), uid: "u-1".into() };
    let to = baton_notifications::Destination { service: service.into(), recipient: recipient.into() };
    let key = DedupKey::new("once", "on-x", "[0].h", &to);
    Entry {
        id: DeliveryId::new(&about, &key, None),
        key,
        about,
        trigger: "on-x".into(),
        service: service.into(),
        recipient: recipient.into(),
        queued_at: noon(),
        attempts: 0,
        next_at: noon(),
        progress: Progress::Queued,
        rearmed: false,
        until_delivered: false,
        last_fault: String::new(),
        message,
    }
}

/// A carrier that reaches this machine, and trusts an authority of the test.
pub(crate) fn carrier(authority: Option<&std::path::Path>, places: &[&str]) -> Carrier {
    let places = Places::parse(places.iter().copied()).expect("good places");
    let connector = Connector::new(AllowList::everything(), places, Arc::new(SystemResolver), authority);
    Carrier::new(Arc::new(connector.expect("the authorities can be read")))
}
