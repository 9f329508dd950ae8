//! What the notifications controller knows of its cluster, kept by watches.
//!
//! It decides only whether there may be something to do: whatever is done is done on what the API has then.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::names::application::NOTIFIED;
use baton_hooks::Secret;
use baton_notifications::{About, Config, Finding, Kind, Outbox, Subject, read_outbox_secret, subscribed};
use k8s_openapi::api::core::v1::Secret as StoredSecret;
use kube::ResourceExt as _;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};

use crate::cache::ObjectKey;
use crate::namespaces::AllowedNamespaces;

/// Annotations that subscribe have this in their names.
const SUBSCRIBES: &str = "notifications.argoproj.io";

/// An Application or ApplicationSet.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) about: About,
    /// As much of it as says who is told.
    outline: Arc<Value>,
    /// All of it, as JSON; none where nobody was told of anything when it was seen last.
    pub(super) text: Option<Arc<str>>,
}

/// An outbox as far as it could be read.
pub(super) type HeldOutbox = Arc<Result<Outbox, String>>;

/// What is known. Locks are held for moments, never across a wait.
pub(super) struct Known {
    namespace: String,
    subjects: Mutex<BTreeMap<(Kind, ObjectKey), Held>>,
    projects: Mutex<BTreeMap<String, Project>>,
    outboxes: Mutex<BTreeMap<String, HeldOutbox>>,
    sources: Mutex<Sources>,
    config: RwLock<Arc<Config>>,
}

#[derive(Clone)]
struct Project {
    object: Arc<Value>,
    /// Where those live that may use it.
    users: AllowedNamespaces,
}

/// What the configuration is read from; none until it was seen.
#[derive(Default)]
struct Sources {
    map: Option<BTreeMap<String, String>>,
    secrets: Option<BTreeMap<String, Secret>>,
}

// === impl Held ===

impl Held {
    /// The Application or ApplicationSet, with the object itself if `is_told`.
    pub(super) fn new(kind: Kind, object: &Value, is_told: impl FnOnce(&Held) -> bool) -> Held {
        let outline = Arc::new(outline(kind, object));
        let about = Subject { kind, object: &outline, project: None }.about();
        let mut held = Held { about, outline, text: None };
        if is_told(&held) {
            held.text = Some(Arc::from(object.to_string()));
        }
        held
    }

    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.about.namespace.as_str(), self.about.name.as_str())
    }

    fn project_name(&self) -> Option<&str> {
        Subject { kind: self.about.kind, object: &self.outline, project: None }.project_name()
    }
}

/// As much of an object as subscriptions depend on.
fn outline(kind: Kind, object: &Value) -> Value {
    let metadata = |name: &str| object["metadata"][name].clone();
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations = annotations.filter(|(key, _)| key.contains(SUBSCRIBES) && *key != NOTIFIED);
    let annotations: Map<String, Value> =
        annotations.map(|(key, value)| (key.clone(), value.clone())).collect();
    let spec = match kind {
        Kind::Application => json!({"project": object["spec"]["project"]}),
        Kind::ApplicationSet => {
            json!({"template": {"spec": {"project": object.pointer("/spec/template/spec/project")}}})
        }
    };
    json!({
        "metadata": {
            "name": metadata("name"), "namespace": metadata("namespace"), "uid": metadata("uid"),
            "labels": metadata("labels"), "annotations": annotations,
        },
        "spec": spec,
    })
}

// === impl Known ===

impl Known {
    /// Knows nothing yet. Projects live in `namespace`.
    pub(super) fn new(namespace: &str) -> Known {
        Known {
            namespace: namespace.to_owned(),
            subjects: Mutex::default(),
            projects: Mutex::default(),
            outboxes: Mutex::default(),
            sources: Mutex::default(),
            config: RwLock::default(),
        }
    }

    pub(super) fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// Whether anybody is told of anything about an object, or something is wrong with its subscriptions.
    pub(super) fn is_told(&self, held: &Held) -> bool {
        let project = self.project_of(held.about.kind, &held.outline);
        let subject = Subject { kind: held.about.kind, object: &held.outline, project: project.as_deref() };
        let subscribed = subscribed(&subject, &self.config());
        !subscribed.destinations.is_empty() || !subscribed.complaints.is_empty()
    }

    /// The project of an object, if it may use it from where it lives: who names somebody else's project is not told
    /// in its name.
    pub(super) fn project_of(&self, kind: Kind, object: &Value) -> Option<Arc<Value>> {
        let subject = Subject { kind, object, project: None };
        let project = self.projects.lock().get(subject.project_name()?).cloned()?;
        project.users.contains(&subject.about().namespace).then_some(project.object)
    }

    /// The object of just this identity, if it is there.
    pub(super) fn subject(&self, about: &About) -> Option<Held> {
        let key = (about.kind, ObjectKey::new(about.namespace.as_str(), about.name.as_str()));
        self.subjects.lock().get(&key).filter(|held| held.about == *about).cloned()
    }

    /// Keeps an object; the one that was in its place, if it was another.
    pub(super) fn put_subject(&self, held: Held) -> Option<About> {
        let about = held.about.clone();
        let before = self.subjects.lock().insert((about.kind, held.key()), held)?;
        (before.about != about).then_some(before.about)
    }

    pub(super) fn remove_subject(&self, kind: Kind, key: &ObjectKey) -> Option<About> {
        self.subjects.lock().remove(&(kind, key.clone())).map(|held| held.about)
    }

    /// Where objects of a kind are.
    pub(super) fn subject_keys(&self, kind: Kind) -> Vec<ObjectKey> {
        let subjects = self.subjects.lock();
        subjects.keys().filter(|(of, _)| *of == kind).map(|(_, key)| key.clone()).collect()
    }

    /// All objects, or those of a project.
    pub(super) fn subjects(&self, project: Option<&str>) -> Vec<About> {
        let subjects = self.subjects.lock();
        let meant = |held: &&Held| project.is_none() || held.project_name() == project;
        subjects.values().filter(meant).map(|held| held.about.clone()).collect()
    }

    /// Keeps a project, or forgets it. Tells whether that changes anything.
    pub(super) fn set_project(&self, name: &str, object: Option<Arc<Value>>) -> bool {
        let mut projects = self.projects.lock();
        let same = |project: &Project| object.as_ref().is_some_and(|object| project.object == *object);
        if projects.get(name).map_or(object.is_none(), same) {
            return false;
        }
        match object {
            Some(object) => {
                let listed = object.pointer("/spec/sourceNamespaces").and_then(Value::as_array);
                let listed = listed.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned));
                // Of patterns that cannot be read none counts.
                let users = AllowedNamespaces::new(&self.namespace, &listed.collect::<Vec<_>>())
                    .unwrap_or_else(|_| AllowedNamespaces::only_own(&self.namespace));
                projects.insert(name.to_owned(), Project { object, users });
            }
            None => drop(projects.remove(name)),
        }
        true
    }

    pub(super) fn project_names(&self) -> Vec<String> {
        self.projects.lock().keys().cloned().collect()
    }

    pub(super) fn outbox(&self, name: &str) -> Option<HeldOutbox> {
        self.outboxes.lock().get(name).cloned()
    }

    /// Keeps an outbox, and tells what it is about if it can be read.
    pub(super) fn put_outbox(&self, secret: &StoredSecret) -> Option<About> {
        let (about, outbox) = match read_outbox_secret(secret) {
            Ok((about, outbox)) => (Some(about), Ok(outbox)),
            Err(error) => (None, Err(error.to_string())),
        };
        self.outboxes.lock().insert(secret.name_any(), Arc::new(outbox));
        about
    }

    pub(super) fn remove_outbox(&self, name: &str) {
        self.outboxes.lock().remove(name);
    }

    pub(super) fn outbox_names(&self) -> Vec<String> {
        self.outboxes.lock().keys().cloned().collect()
    }

    /// The ConfigMap holds this now. What is wrong with the configuration, if that makes another one.
    pub(super) fn set_map(&self, data: BTreeMap<String, String>) -> Option<Vec<Finding>> {
        let mut sources = self.sources.lock();
        let changed = sources.map.as_ref() != Some(&data);
        sources.map = Some(data);
        self.configured(&sources).filter(|_| changed)
    }

    /// The Secret holds this now. What is wrong with the configuration, if that makes another one.
    pub(super) fn set_secrets(&self, data: BTreeMap<String, Secret>) -> Option<Vec<Finding>> {
        let mut sources = self.sources.lock();
        let changed = sources.secrets.as_ref() != Some(&data);
        sources.secrets = Some(data);
        self.configured(&sources).filter(|_| changed)
    }

    /// Reads the configuration once both parts of it were seen.
    fn configured(&self, sources: &Sources) -> Option<Vec<Finding>> {
        let (map, secrets) = (sources.map.as_ref()?, sources.secrets.as_ref()?);
        let (config, findings) = Config::read(map, secrets);
        *self.config.write() = Arc::new(config);
        Some(findings)
    }
}
