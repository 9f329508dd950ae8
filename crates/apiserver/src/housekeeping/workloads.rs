//! The shell around [`baton_workloads`]: watches, asks what happens next, and does it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use baton_store::{Change, Event, Key, Record};
use baton_workloads::{
    Action, Affected, Family, Kind, Lookup, Removal, Settings, Target, affected_by, decide, relatives,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::catalog::Resource;
use crate::cluster::Core;
use crate::delete::{DeleteOptions, Propagation};
use crate::failure::Failure;
use crate::housekeeping::report;
use crate::object;
use crate::write::{Part, Proposal, WriteOptions};

const MANAGER: &str = "workload-simulator";

/// Follows the history for ever.
pub(crate) async fn run(core: Arc<Core>, settings: Settings) {
    let kinds: HashMap<&'static str, Kind> =
        Kind::WATCHED.into_iter().filter_map(|kind| Some((storage(kind)?, kind))).collect();
    loop {
        let revision = core.store.revision();
        let Ok(mut watch) = core.store.watch("", None, revision) else { continue };
        let mut simulator = Simulator {
            core: core.clone(),
            settings: settings.clone(),
            kinds: kinds.clone(),
            children: HashMap::new(),
            controllers: HashMap::new(),
            queue: BTreeSet::new(),
            wake: BTreeMap::new(),
        };
        for storage in kinds.keys() {
            for record in core.everything(storage) {
                simulator.note(&record, false);
            }
        }
        loop {
            // Everything known is taken in before anything is decided.
            match watch.try_next() {
                Ok(Some(event)) => {
                    simulator.observe(&event);
                    continue;
                }
                Ok(None) => {}
                Err(_) => break,
            }
            simulator.due();
            if let Some(id) = simulator.queue.pop_first() {
                simulator.settle(&id).await;
                continue;
            }
            let sleep = simulator.until_next();
            tokio::select! {
                biased;
                event = watch.next() => match event {
                    Ok(event) => simulator.observe(&event),
                    Err(_) => break,
                },
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }
}

/// The store's name of a kind.
fn storage(kind: Kind) -> Option<&'static str> {
    let version = kind.api_version().rsplit('/').next()?;
    Some(baton_kinds::find(kind.group(), version, kind.resource())?.resource())
}

/// An object to decide about.
type Id = (Kind, String, String);

struct Simulator {
    core: Arc<Core>,
    settings: Settings,
    kinds: HashMap<&'static str, Kind>,
    /// Controller uid to its children; the empty uid holds those without a controller.
    children: HashMap<String, BTreeSet<Id>>,
    controllers: HashMap<Id, String>,
    queue: BTreeSet<Id>,
    wake: BTreeMap<Timestamp, BTreeSet<Id>>,
}

impl Simulator {
    fn observe(&mut self, event: &Event) {
        if self.kinds.contains_key(&*event.record.key.resource) {
            self.note(&event.record, event.change == Change::Deleted);
        }
    }

    /// Takes in one object and queues whom it concerns.
    fn note(&mut self, record: &Record, gone: bool) {
        let Some(kind) = self.kinds.get(&*record.key.resource).copied() else { return };
        // Of the many ConfigMaps and Secrets of a cluster only one name matters.
        if kind == Kind::ConfigMap && &*record.key.name != "kube-root-ca.crt" {
            return;
        }
        let found = object::view(record);
        self.index(id(kind, &record.key), &found, gone);
        for affected in affected_by(&found) {
            match affected {
                Affected::One { kind, namespace, name } => {
                    self.queue.insert((kind, namespace, name));
                }
                Affected::Every { kind, namespace } => {
                    self.queue.extend(
                        self.all(kind, namespace.as_deref()).iter().map(|record| id(kind, &record.key)),
                    );
                }
                Affected::UnscheduledPods => {
                    let pods = self.all(Kind::Pod, None);
                    let unscheduled = pods.iter().filter(|record| {
                        object::view(record)["spec"]["nodeName"].as_str().is_none_or(str::is_empty)
                    });
                    self.queue.extend(unscheduled.map(|record| id(Kind::Pod, &record.key)));
                }
            }
        }
    }

    fn index(&mut self, id: Id, object: &Value, gone: bool) {
        if let Some(before) = self.controllers.remove(&id)
            && let Some(children) = self.children.get_mut(&before)
        {
            children.remove(&id);
            if children.is_empty() {
                self.children.remove(&before);
            }
        }
        if gone {
            return;
        }
        let references = object::meta(object, "ownerReferences").as_array();
        let controller = references
            .into_iter()
            .flatten()
            .find(|owner| owner["controller"] == true)
            .and_then(|owner| owner["uid"].as_str())
            .unwrap_or_default()
            .to_owned();
        self.children.entry(controller.clone()).or_default().insert(id.clone());
        self.controllers.insert(id, controller);
    }

    fn all(&self, kind: Kind, namespace: Option<&str>) -> Vec<Arc<Record>> {
        let Some(storage) = storage(kind) else { return Vec::new() };
        self.core
            .store
            .list(storage, namespace, baton_store::Page::default())
            .map(|listing| listing.records)
            .unwrap_or_default()
    }

    fn due(&mut self) {
        let now = self.core.clock.now();
        while let Some(entry) = self.wake.first_entry().filter(|entry| *entry.key() <= now) {
            self.queue.extend(entry.remove());
        }
    }

    fn until_next(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(3600);
        let Some((at, _)) = self.wake.first_key_value() else { return LONGEST };
        let left = at.duration_since(self.core.clock.now());
        // A clock that ticks in other steps than the timer must not make the loop spin.
        Duration::try_from(left).unwrap_or_default().clamp(Duration::from_millis(1), LONGEST)
    }

    /// Decides about one object and carries the decision out.
    async fn settle(&mut self, id: &Id) {
        let Some(found) = self.get(id) else { return };
        let members: Vec<Arc<Value>> =
            relatives(&found).iter().flat_map(|lookup| self.find(lookup)).collect();
        let family = Family { members: members.iter().map(|member| &**member).collect() };
        let decision = decide(&found, &family, &self.settings, self.core.clock.now());
        if let Some(at) = decision.wake_at {
            self.wake.entry(at).or_default().insert(id.clone());
        }
        for action in decision.actions {
            if let Some(key) = key(id) {
                report(self.perform(action).await, MANAGER, &key);
            }
        }
    }

    fn get(&self, id: &Id) -> Option<Arc<Value>> {
        self.core.store.get(&key(id)?).map(|record| object::view(&record))
    }

    fn find(&self, lookup: &Lookup) -> Vec<Arc<Value>> {
        match lookup {
            Lookup::Named { kind, namespace, name } => {
                self.get(&(*kind, namespace.clone(), name.clone())).into_iter().collect()
            }
            Lookup::All { kind, namespace } => {
                let within = (!namespace.is_empty()).then_some(namespace.as_str());
                self.all(*kind, within).iter().map(|record| object::view(record)).collect()
            }
            Lookup::Controlled { kind, namespace, uid } => {
                let of = |uid: &str| self.children.get(uid).into_iter().flatten();
                of(uid)
                    .chain(of(""))
                    .filter(|child| child.0 == *kind && child.1 == *namespace)
                    .filter_map(|child| self.get(child))
                    .collect()
            }
        }
    }

    async fn perform(&self, action: Action) -> Result<(), Failure> {
        let options = WriteOptions::internal(MANAGER);
        match action {
            Action::Create(object) => {
                let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
                let resource = self
                    .core
                    .catalog()
                    .find_kind(&text("apiVersion"), &text("kind"))
                    .ok_or_else(Failure::no_such_path)?;
                let namespace = object::namespace(&object).to_owned();
                self.core.create(&resource, &namespace, object, &options).await?;
            }
            Action::Patch { target, patch } => {
                let resource = self.resource(&target)?;
                let change =
                    |current: &Value| Ok(Proposal::Object(baton_schema::patch::merge(current, &patch)));
                // A controller notes things on a Deployment through its status, so that its generation stays.
                let metadata_only =
                    patch.as_object().is_some_and(|fields| fields.keys().all(|key| key == "metadata"));
                let noting = target.kind == Kind::Deployment && metadata_only;
                let part = if noting { Part::Status } else { Part::Main };
                self.modify(&resource, &target, part, &options, change).await?;
            }
            Action::Status { target, status } => {
                let resource = self.resource(&target)?;
                let change = |current: &Value| {
                    if object::meta_text(current, "resourceVersion") != target.resource_version {
                        return Err(Failure::modified(resource.subject(&target.name)));
                    }
                    let mut next = current.clone();
                    next["status"] = status.clone();
                    Ok(Proposal::Object(next))
                };
                self.modify(&resource, &target, Part::Status, &options, change).await?;
            }
            Action::Delete { target, removal } => {
                let resource = self.resource(&target)?;
                let options = DeleteOptions {
                    grace: (removal == Removal::Final).then_some(0),
                    propagation: (removal == Removal::Graceful).then_some(Propagation::Background),
                    uid: Some(target.uid.clone()),
                    ..DeleteOptions::default()
                };
                self.core.delete(&resource, &target.namespace, &target.name, &options).await?;
            }
        }
        Ok(())
    }

    fn resource(&self, target: &Target) -> Result<Arc<Resource>, Failure> {
        self.core
            .catalog()
            .find_kind(target.kind.api_version(), target.kind.kind())
            .ok_or_else(Failure::no_such_path)
    }

    async fn modify(
        &self,
        resource: &Resource,
        target: &Target,
        part: Part,
        options: &WriteOptions,
        mut change: impl FnMut(&Value) -> Result<Proposal, Failure>,
    ) -> Result<(), Failure> {
        self.core
            .modify(resource, &target.namespace, &target.name, part, options, |current| {
                if object::uid(current) != target.uid {
                    return Err(Failure::not_found(resource.subject(&target.name)));
                }
                change(current)
            })
            .await
            .map(|_| ())
    }
}

fn id(kind: Kind, key: &Key) -> Id {
    (kind, key.namespace.to_string(), key.name.to_string())
}

/// The reverse of [`id`].
fn key((kind, namespace, name): &Id) -> Option<Key> {
    Some(Key::new(storage(*kind)?, namespace.as_str(), name.as_str()))
}
