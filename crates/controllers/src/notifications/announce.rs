//! Events about what people should know of notifications: each thing once, and again only when it has changed.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::names::API_VERSION;
use baton_notifications::{About, Attempt, CONFIG_MAP, Finding, Kind};
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;

use crate::events::Recorder;

/// Something about subscriptions, triggers or templates is wrong.
const PROBLEM: &str = "NotificationProblem";
/// A message did not arrive.
const FAILED: &str = "NotificationFailed";
/// A key of the configuration is left out, or hardly means what it says.
const CONFIGURATION: &str = "NotificationConfiguration";

/// Most findings of one configuration that are told as events; all are logged.
const MOST_FINDINGS: usize = 20;
/// Most texts about one object that are told and remembered.
const MOST_TEXTS: usize = 32;
/// Longest text of an event: Kubernetes takes 1024 bytes.
const LONGEST: usize = 1000;

/// Writes events.
pub(super) struct Announcer {
    recorder: Recorder,
    told: Mutex<BTreeMap<About, Told>>,
}

/// What was told about an object and still holds.
#[derive(Default)]
struct Told {
    problems: BTreeSet<String>,
    /// The last fault of each trigger and service.
    faults: BTreeMap<(String, String), String>,
}

// === impl Announcer ===

impl Announcer {
    pub(super) fn new(recorder: Recorder) -> Announcer {
        Announcer { recorder, told: Mutex::default() }
    }

    /// What is wrong with an object's notifications now.
    pub(super) fn problems(&self, about: &About, problems: &[String]) {
        let now: BTreeSet<String> = problems.iter().take(MOST_TEXTS).cloned().collect();
        let mut all = self.told.lock();
        if now.is_empty() && !all.contains_key(about) {
            return;
        }
        let told = all.entry(about.clone()).or_default();
        for problem in now.difference(&told.problems) {
            tracing::warn!(%about, "{problem}");
            self.recorder.warning(&reference(about), PROBLEM, bounded(problem));
        }
        told.problems = now;
        if told.is_empty() {
            all.remove(about);
        }
    }

    /// What came of deliveries.
    pub(super) fn attempts(&self, about: &About, attempts: &[Attempt]) {
        let mut all = self.told.lock();
        for Attempt { trigger, service, fault } in attempts {
            let Some(fault) = fault else {
                tracing::info!(%about, trigger, service, "told");
                if let Some(told) = all.get_mut(about) {
                    told.faults.remove(&(trigger.clone(), service.clone()));
                }
                continue;
            };
            tracing::warn!(%about, trigger, service, "not told yet: {fault}");
            let told = all.entry(about.clone()).or_default();
            let place = (trigger.clone(), service.clone());
            let is_known = told.faults.get(&place) == Some(fault);
            if is_known || (told.faults.len() >= MOST_TEXTS && !told.faults.contains_key(&place)) {
                continue;
            }
            let text = format!("{trigger} for {service} could not be delivered and is tried again: {fault}");
            self.recorder.warning(&reference(about), FAILED, bounded(&text));
            told.faults.insert(place, fault.clone());
        }
    }

    /// What is wrong with the configuration.
    pub(super) fn findings(&self, namespace: &str, findings: &[Finding]) {
        let map = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: Some(namespace.to_owned()),
            name: Some(CONFIG_MAP.to_owned()),
            ..ObjectReference::default()
        };
        for (index, finding) in findings.iter().enumerate() {
            tracing::warn!("{finding}");
            if index < MOST_FINDINGS {
                self.recorder.warning(&map, CONFIGURATION, bounded(&finding.to_string()));
            }
        }
    }

    /// Nobody is told of anything about it any more.
    pub(super) fn forget(&self, about: &About) {
        self.told.lock().remove(about);
    }
}

// === impl Told ===

impl Told {
    fn is_empty(&self) -> bool {
        self.problems.is_empty() && self.faults.is_empty()
    }
}

fn reference(about: &About) -> ObjectReference {
    let kind = match about.kind {
        Kind::Application => "Application",
        Kind::ApplicationSet => "ApplicationSet",
    };
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(about.namespace.clone()),
        name: Some(about.name.clone()),
        uid: Some(about.uid.clone()),
        ..ObjectReference::default()
    }
}

fn bounded(text: &str) -> String {
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last().unwrap_or(0);
    if text.len() <= LONGEST { text.to_owned() } else { format!("{}…", &text[..end]) }
}
