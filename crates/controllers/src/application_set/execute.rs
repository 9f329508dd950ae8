//! Carrying out a plan: creating, patching and deleting Applications.
//!
//! Nothing is written on the word of a cache alone: an Application is changed or deleted only after a look at the
//! live object, and only if it is still in that state when the write arrives. One that fails does not keep the others
//! from being tried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::application::Destination;
use baton_api::names::baton::SET_LABEL;
use baton_api::names::finalizer;
use baton_render::RenderError;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use serde_json::{Value, json};

use super::compare::{self, CompareError, Rules};
use super::desired::Desired;
use super::destinations::Destinations;
use super::ownership::Guarding;
use super::plan::Plan;
use crate::cache::{Known, ObjectKey, Observed, Record};
use crate::digest::Digest;
use crate::events::Recorder;
use crate::objects::{ApiError, Deleted, Objects, Seen};
use crate::rollout::label_value;

/// Beyond this many live Applications one list is cheaper than a request for each.
const FEW: usize = 20;

/// Why one Application could not be made what it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error("error updating finalizers: {0}")]
    Finalizers(#[source] ApiError),
    #[error("Application {0:?} is not of this set and is being deleted: it is created anew once it is gone")]
    Terminating(String),
    #[error("Application {0:?} changes faster than it can be written")]
    Moving(String),
    #[error(
        "Application {0:?} is not of this set and is not taken, since the set is no longer there to stay"
    )]
    Untaken(String),
    #[error("Application {0:?} is not created, since the set is no longer there to stay")]
    Uncreated(String),
}

/// What an Application is released from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// Set and guard: it outlives both.
    Whole,
    /// The guard alone.
    Guard,
}

/// Failures by name of the Application.
pub(crate) type Failures = BTreeMap<Arc<str>, ApplyError>;

/// Pairs of live and desired digests found to need nothing more.
pub(crate) type NewlySettled = Vec<(Arc<str>, (Digest, Digest))>;

/// What execution needs to know of the set.
pub(crate) struct Executor<'a> {
    pub(crate) set: &'a ObjectKey,
    pub(crate) owner: OwnerReference,
    pub(crate) about: ObjectReference,
    pub(crate) rules: Rules,
    pub(crate) may_update: bool,
    pub(crate) objects: Objects,
    pub(crate) sets: Objects,
    pub(crate) known: &'a Known,
    pub(crate) recorder: Option<&'a Recorder>,
    pub(crate) concurrency: usize,
    pub(crate) dry_run: bool,
}

/// What is to be done about one Application.
enum Work<'a> {
    Create(&'a Desired),
    /// Its live state has to be looked at first.
    Update(&'a Desired),
    /// It was looked at and differs.
    Patch {
        desired: &'a Desired,
        patch: Value,
        takes: bool,
        uid: String,
        version: String,
    },
    Failed(&'a Desired, ApplyError),
}

/// The parts of a live Application that its deletion depends on.
#[derive(Debug)]
struct Doomed {
    uid: String,
    version: String,
    finalizers: Vec<String>,
    destination: Destination,
    ours: bool,
    deleting: bool,
}

impl Executor<'_> {
    /// Creates and updates, in the order of names.
    pub(crate) async fn write(
        &self,
        plan: &Plan<'_>,
        render: impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> (NewlySettled, Failures) {
        let mut settled = NewlySettled::new();
        let mut works = self.creations(plan).await;
        match self.look(&plan.compare, &render, &mut settled).await {
            Ok(compared) => works.extend(compared),
            Err(error) => {
                let Some(first) = plan.compare.first() else { return (settled, Failures::new()) };
                works.push(Work::Failed(first, error.into()));
            }
        }
        works.sort_by(|a, b| a.desired().name.cmp(&b.desired().name));
        let render = &render;
        let attempts: Vec<_> = works
            .into_iter()
            .map(|work| async move {
                let desired = work.desired();
                (desired, self.carry_out(work, render).await)
            })
            .collect();
        let results: Vec<_> =
            stream::iter(attempts).buffer_unordered(self.concurrency.max(1)).collect().await;
        let mut failures = Failures::new();
        for (desired, result) in results {
            match result {
                Ok(Some(live)) => settled.push((desired.name.clone(), (live, desired.digest))),
                Ok(None) => {}
                Err(error) => drop(failures.insert(desired.name.clone(), error)),
            }
        }
        (settled, failures)
    }

    /// Deletes, in the order of names.
    pub(crate) async fn delete(
        &self,
        names: &[Arc<str>],
        owned: &BTreeMap<Arc<str>, Arc<Record>>,
        destinations: &Destinations,
    ) -> Failures {
        let mut listed = match self.look_at_doomed(names).await {
            Ok(listed) => listed,
            Err(error) => {
                return names.first().map(|name| (name.clone(), error.into())).into_iter().collect();
            }
        };
        let attempts: Vec<_> = names
            .iter()
            .map(|name| {
                let seen = listed.as_mut().map(|all| all.remove(name));
                let uid = owned.get(name).map_or("", |record| &*record.uid);
                async move { (name.clone(), self.delete_one(name, uid, seen, destinations).await) }
            })
            .collect();
        let results: Vec<_> =
            stream::iter(attempts).buffer_unordered(self.concurrency.max(1)).collect().await;
        results.into_iter().filter_map(|(name, result)| Some((name, result.err()?))).collect()
    }

    /// Takes the set, its guard, or both out of the owners of an Application.
    pub(crate) async fn release(&self, name: &str, what: Release) -> Result<(), ApplyError> {
        for _ in 0..2 {
            let Some(live) = self.objects.get(name).await? else { return Ok(()) };
            let observed = observe(&live)?;
            let owners = observed.metadata.owner_references.clone().unwrap_or_default();
            let mut owners = Guarding::Without.applied(&self.set.name, owners);
            let mut patch = json!({"metadata": {}});
            if what == Release::Whole {
                owners.retain(|owner| !(owner.kind == "ApplicationSet" && owner.name == *self.set.name));
                if live["metadata"]["labels"][SET_LABEL] == label_value(&self.set.name) {
                    patch["metadata"]["labels"] = json!({SET_LABEL: null});
                }
            }
            patch["metadata"]["ownerReferences"] =
                if owners.is_empty() { Value::Null } else { json!(owners) };
            match self.objects.patch(name, patch, Seen::of(&live)).await {
                Ok(answer) => {
                    self.fold(&answer);
                    return Ok(());
                }
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApplyError::Moving(name.to_owned()))
    }

    /// Puts the label and the guard of a set that keeps an order on Applications that lack them, and touches nothing
    /// else: the order needs both even where Applications may not be updated.
    pub(crate) async fn mark(&self, names: &[Arc<str>]) -> Failures {
        let attempts: Vec<_> =
            names.iter().map(|name| async move { (name.clone(), self.mark_one(name).await) }).collect();
        let results: Vec<_> =
            stream::iter(attempts).buffer_unordered(self.concurrency.max(1)).collect().await;
        results.into_iter().filter_map(|(name, result)| Some((name, result.err()?))).collect()
    }

    async fn mark_one(&self, name: &str) -> Result<(), ApplyError> {
        for _ in 0..2 {
            let Some(live) = self.objects.get(name).await? else {
                self.evict_unknown(name);
                return Ok(());
            };
            let observed = observe(&live)?;
            let ours = observed.owner.as_deref() == Some(&*self.set.name);
            if !ours || observed.metadata.deletion_timestamp.is_some() {
                self.fold(&live);
                return Ok(());
            }
            let owners = observed.metadata.owner_references.unwrap_or_default();
            let guarded = self.rules.guard.applied(&self.set.name, owners.clone());
            let mut patch = json!({"metadata": {}});
            if let Some(mark) = &self.rules.mark {
                patch["metadata"]["labels"] = json!({SET_LABEL: mark});
            }
            if guarded != owners {
                patch["metadata"]["ownerReferences"] = json!(guarded);
            }
            match self.objects.patch(name, patch, Seen::of(&live)).await {
                Ok(answer) => {
                    self.fold(&answer);
                    return Ok(());
                }
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApplyError::Moving(name.to_owned()))
    }

    /// Compares with live objects, by one list if there are many. The rest is compared one by one later.
    async fn look<'a>(
        &self,
        compare: &[&'a Desired],
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
        settled: &mut NewlySettled,
    ) -> Result<Vec<Work<'a>>, ApiError> {
        if !self.is_list_worth(compare.len()) {
            return Ok(compare.iter().map(|desired| Work::Update(desired)).collect());
        }
        let mut missing: BTreeMap<&str, &'a Desired> =
            compare.iter().map(|desired| (&*desired.name, *desired)).collect();
        let mut works = Vec::new();
        self.objects
            .each(None, |live| {
                let name = live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                let Some(desired) = missing.remove(name) else { return };
                match self.judge(&live, desired, render) {
                    Ok(Judged::Settled(digest)) => {
                        settled.push((desired.name.clone(), (digest, desired.digest)))
                    }
                    Ok(Judged::LeftAlone) => {}
                    Ok(Judged::Differs { patch, takes }) => {
                        let seen = Seen::of(&live);
                        let (uid, version) =
                            (seen.uid.to_owned(), seen.version.unwrap_or_default().to_owned());
                        works.push(Work::Patch { desired, patch, takes, uid, version });
                    }
                    Err(error) => works.push(Work::Failed(desired, error)),
                }
            })
            .await?;
        works.extend(missing.into_values().map(Work::Update));
        Ok(works)
    }

    /// What is to be created. A set that is gone, which a cache filled by an old list may still show, creates nothing.
    async fn creations<'p>(&self, plan: &Plan<'p>) -> Vec<Work<'p>> {
        let Some(first) = plan.create.first() else { return Vec::new() };
        match self.may_take().await {
            Ok(true) => plan.create.iter().map(|desired| Work::Create(desired)).collect(),
            Ok(false) => vec![Work::Failed(first, ApplyError::Uncreated(first.name.to_string()))],
            Err(error) => vec![Work::Failed(first, error.into())],
        }
    }

    async fn carry_out(
        &self,
        work: Work<'_>,
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> Result<Option<Digest>, ApplyError> {
        match work {
            Work::Create(desired) => self.create(desired, render).await,
            Work::Update(desired) => self.update(desired, render).await,
            Work::Failed(_, error) => Err(error),
            Work::Patch { desired, patch, takes, uid, version } => {
                let seen = Seen { uid: &uid, version: Some(&version) };
                match self.patch(desired, (patch, takes), seen).await {
                    Err(ApplyError::Api(error)) if error.is_conflict() => self.update(desired, render).await,
                    other => other,
                }
            }
        }
    }

    async fn create(
        &self,
        desired: &Desired,
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> Result<Option<Digest>, ApplyError> {
        match self.try_create(desired, render).await {
            // Nobody's, another's, or our own that the cache does not show yet: the live object tells.
            Err(ApplyError::Api(error)) if error.is_already_exists() => self.update(desired, render).await,
            other => other,
        }
    }

    async fn try_create(
        &self,
        desired: &Desired,
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> Result<Option<Digest>, ApplyError> {
        let application = compare::creation(&render(desired)?, &self.owner, &self.rules)?;
        let answer = self.objects.create(&application).await?;
        self.note("created", format!("created Application {:?}", desired.name));
        Ok(self.settle(&answer))
    }

    async fn update(
        &self,
        desired: &Desired,
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> Result<Option<Digest>, ApplyError> {
        for _ in 0..2 {
            let Some(live) = self.objects.get(&desired.name).await? else {
                self.evict_unknown(&desired.name);
                if !self.may_take().await? {
                    return Err(ApplyError::Uncreated(desired.name.to_string()));
                }
                return self.try_create(desired, render).await;
            };
            match self.judge(&live, desired, render)? {
                Judged::Settled(digest) => return Ok(Some(digest)),
                Judged::LeftAlone => return Ok(None),
                Judged::Differs { patch, takes } => {
                    match self.patch(desired, (patch, takes), Seen::of(&live)).await {
                        Err(ApplyError::Api(error)) if error.is_conflict() => {}
                        other => return other,
                    }
                }
            }
        }
        Err(ApplyError::Moving(desired.name.to_string()))
    }

    async fn patch(
        &self,
        desired: &Desired,
        (patch, takes): (Value, bool),
        seen: Seen<'_>,
    ) -> Result<Option<Digest>, ApplyError> {
        if takes && !self.may_take().await? {
            return Err(ApplyError::Untaken(desired.name.to_string()));
        }
        match self.objects.patch(&desired.name, patch, seen).await {
            Ok(answer) => {
                self.note("updated", format!("updated Application {:?}", desired.name));
                Ok(self.settle(&answer))
            }
            Err(error) => {
                if error.leaves_doubt() {
                    self.known.applications.lock().doubt(&self.key(&desired.name));
                }
                Err(error.into())
            }
        }
    }

    /// Whether the set is there to stay. An Application that was let go as its set went must not be taken back by who has
    /// not heard of that yet: the garbage collector would delete it. The write is bound to the version that was seen
    /// without an owner, so that it is enough to ask after that.
    async fn may_take(&self) -> Result<bool, ApiError> {
        let set = self.sets.get(&self.set.name).await?;
        Ok(set.is_some_and(|set| {
            set["metadata"]["uid"] == *self.owner.uid && set["metadata"]["deletionTimestamp"].is_null()
        }))
    }

    /// Compares one live Application with what is wanted.
    fn judge(
        &self,
        live: &Value,
        desired: &Desired,
        render: &impl Fn(&Desired) -> Result<Value, RenderError>,
    ) -> Result<Judged, ApplyError> {
        let observed = observe(live)?;
        let digest = self.digest_of(&observed);
        let ours = observed.owner.as_deref() == Some(&*self.set.name);
        let deleting = observed.metadata.deletion_timestamp.is_some();
        let owners = observed.metadata.owner_references.as_deref().unwrap_or_default();
        let takes = !owners.iter().any(|owner| owner.uid == self.owner.uid);
        self.known.applications.lock().fold(observed);
        match (deleting, ours) {
            // Its going will be noticed, and it is created anew then.
            (true, true) => return Ok(Judged::LeftAlone),
            (true, false) => return Err(ApplyError::Terminating(desired.name.to_string())),
            (false, true) if !self.may_update => return Ok(Judged::LeftAlone),
            (false, _) => {}
        }
        Ok(match compare::compare(live, &render(desired)?, &self.owner, &self.rules)? {
            None => Judged::Settled(digest),
            Some(patch) => Judged::Differs { patch, takes },
        })
    }

    async fn look_at_doomed(
        &self,
        names: &[Arc<str>],
    ) -> Result<Option<BTreeMap<Arc<str>, Doomed>>, ApiError> {
        if !self.is_list_worth(names.len()) {
            return Ok(None);
        }
        let wanted: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
        let mut doomed = BTreeMap::new();
        self.objects
            .each(None, |live| {
                let name = live.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                if wanted.contains(name) {
                    doomed.insert(Arc::from(name), self.doomed(&live));
                }
            })
            .await?;
        Ok(Some(doomed))
    }

    /// `listed` is what a list showed; the outer none means that there was no list.
    async fn delete_one(
        &self,
        name: &Arc<str>,
        uid: &str,
        mut listed: Option<Option<Doomed>>,
        destinations: &Destinations,
    ) -> Result<(), ApplyError> {
        for _ in 0..2 {
            let seen = match listed.take() {
                Some(listed) => listed,
                None => self.objects.get(name).await?.map(|live| self.doomed(&live)),
            };
            let Some(doomed) = seen else {
                self.known.applications.lock().evict(&self.key(name), uid);
                return Ok(());
            };
            if !doomed.ours || doomed.deleting {
                return Ok(());
            }
            match self.strip_and_delete(name, doomed, destinations).await {
                Err(ApplyError::Api(error) | ApplyError::Finalizers(error)) if error.is_conflict() => {}
                other => return other,
            }
        }
        Err(ApplyError::Moving(name.to_string()))
    }

    /// Deletes an Application. One whose cluster is unknown loses the finalizer nobody could carry out.
    async fn strip_and_delete(
        &self,
        name: &Arc<str>,
        mut doomed: Doomed,
        destinations: &Destinations,
    ) -> Result<(), ApplyError> {
        let holds = doomed.finalizers.iter().any(|finalizer| finalizer == finalizer::RESOURCES);
        if holds && destinations.check(&doomed.destination).is_err() {
            doomed.finalizers.retain(|finalizer| finalizer != finalizer::RESOURCES);
            let patch = json!({"metadata": {"finalizers": doomed.finalizers}});
            let seen = Seen { uid: &doomed.uid, version: Some(&doomed.version) };
            let answer = self.objects.patch(name, patch, seen).await.map_err(ApplyError::Finalizers)?;
            self.note(
                "Updated",
                format!(
                    "Updated Application {name:?} finalizer before deletion, because application has an invalid \
                     destination"
                ),
            );
            if !self.dry_run {
                doomed = self.doomed(&answer);
            }
        }
        let seen = Seen { uid: &doomed.uid, version: Some(&doomed.version) };
        let outcome = self.objects.delete(name, seen).await;
        if let Err(error) = &outcome
            && error.leaves_doubt()
        {
            self.known.applications.lock().doubt(&self.key(name));
        }
        match outcome? {
            Deleted::Gone if self.dry_run => {}
            Deleted::Gone => drop(self.known.applications.lock().evict(&self.key(name), &doomed.uid)),
            Deleted::Waiting(answer) => self.fold(&answer),
        }
        self.note("Deleted", format!("Deleted Application {name:?}"));
        Ok(())
    }

    /// Reads what deletion depends on, and keeps the rest of the news.
    fn doomed(&self, live: &Value) -> Doomed {
        let text =
            |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let observed = observe(live).ok();
        let metadata = observed.as_ref().map(|observed| &observed.metadata);
        let doomed = Doomed {
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion"),
            finalizers: metadata.and_then(|metadata| metadata.finalizers.clone()).unwrap_or_default(),
            destination: Destination {
                server: text("/spec/destination/server"),
                name: text("/spec/destination/name"),
                namespace: String::new(),
            },
            ours: observed.as_ref().and_then(|observed| observed.owner.as_deref()) == Some(&*self.set.name),
            deleting: metadata.is_some_and(|metadata| metadata.deletion_timestamp.is_some()),
        };
        if let Some(observed) = observed {
            self.known.applications.lock().fold(observed);
        }
        doomed
    }

    /// Whether one list of the namespace costs less than so many requests.
    fn is_list_worth(&self, count: usize) -> bool {
        count > FEW && count * 10 >= self.known.applications.lock().count_in(&self.set.namespace)
    }

    /// Folds the answer to a write into the cache and tells its digest. A dry run changed nothing.
    fn settle(&self, answer: &Value) -> Option<Digest> {
        if self.dry_run {
            return None;
        }
        let observed = observe(answer).ok()?;
        let digest = self.digest_of(&observed);
        self.known.applications.lock().fold(observed);
        Some(digest)
    }

    /// Of what this side decides about.
    fn digest_of(&self, observed: &Observed) -> Digest {
        if self.rules.keeps_specs { observed.outline } else { observed.digest }
    }

    pub(crate) fn fold(&self, answer: &Value) {
        if !self.dry_run
            && let Ok(observed) = observe(answer)
        {
            self.known.applications.lock().fold(observed);
        }
    }

    /// Forgets an Application that the API does not know.
    fn evict_unknown(&self, name: &str) {
        let mut applications = self.known.applications.lock();
        let uid = applications.owned_by(self.set).get(name).map(|record| record.uid.clone());
        if let Some(uid) = uid {
            applications.evict(&self.key(name), &uid);
        }
    }

    fn note(&self, reason: &'static str, message: String) {
        tracing::info!(application_set = %self.set, "{message}");
        if let Some(recorder) = self.recorder {
            recorder.normal(&self.about, reason, message);
        }
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey { namespace: self.set.namespace.clone(), name: name.into() }
    }
}

enum Judged {
    /// Nothing is to be done; this is its digest.
    Settled(Digest),
    LeftAlone,
    /// This is to be written; it may make the set its owner.
    Differs {
        patch: Value,
        takes: bool,
    },
}

impl<'a> Work<'a> {
    fn desired(&self) -> &'a Desired {
        match self {
            Work::Create(desired) | Work::Update(desired) | Work::Failed(desired, _) => desired,
            Work::Patch { desired, .. } => desired,
        }
    }
}

fn observe(live: &Value) -> Result<Observed, CompareError> {
    Observed::deserialize(live).map_err(CompareError::Live)
}
