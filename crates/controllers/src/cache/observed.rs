//! The few things kept of an Application, read without keeping the rest.

use std::borrow::Cow;
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::names::{self, API_VERSION};
use baton_api::operation::Operation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{NamespaceResourceScope, Resource};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::digest::{Digest, Hasher};
use crate::rollout::{RawStatus, Sight, label_value};

/// Whether an annotation is written all the time by others and never decides anything for a set: notifications,
/// requests to the application controller, what people approve and ask for, and the marks of a rollout. What a template says of it counts only where
/// the live object says nothing.
pub(crate) fn is_always_preserved(annotation: &str) -> bool {
    use names::{application, baton};
    matches!(
        annotation,
        application::NOTIFIED
            | application::REFRESH
            | application::REFRESH_TIMESTAMP
            | application::HYDRATE
            | application::DELETION_APPROVED
            | baton::APPROVAL
            | baton::DELETION_ASKED_BY
            | baton::PIN
            | baton::COMPARED
    )
}

/// What one look at an Application told.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) metadata: ObjectMeta,
    /// Name of the ApplicationSet that controls it.
    pub(crate) owner: Option<Arc<str>>,
    /// Of spec, labels, annotations, finalizers and owner references.
    pub(crate) digest: Digest,
    /// Of the same without the spec.
    pub(crate) outline: Digest,
    /// Whether it carries the label by which its set, if it keeps an order, lists it.
    pub(crate) marked: bool,
    /// Whether the guard of its set is among its owners.
    pub(crate) guarded: bool,
    /// What an order depends on, if it belongs to a set.
    pub(crate) sight: Option<Box<Sight>>,
    pub(crate) sync: SyncCode,
    pub(crate) health: HealthCode,
    pub(crate) phase: Option<OperationPhase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Option<RawStatus>,
    #[serde(default)]
    operation: Option<Operation>,
}

impl From<Raw> for Observed {
    fn from(raw: Raw) -> Observed {
        let mut metadata = raw.metadata;
        let outline = outline(&metadata);
        let mut hasher = Hasher::new();
        hasher.json(&raw.spec);
        hasher.digest(outline);
        let digest = hasher.finish();
        let owner = owning_set(&metadata);
        let label = metadata.labels.as_ref().and_then(|all| all.get(names::baton::SET_LABEL));
        let marked = owner.as_deref().zip(label).is_some_and(|(set, label)| *label == label_value(set));
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let guarded = owner.as_deref().is_some_and(|set| owners.iter().any(|owner| is_guard_of(set, owner)));
        let status = raw.status.unwrap_or_default();
        let (sync, health, phase) = status.verdicts();
        metadata.managed_fields = None;
        let sight = owner.is_some().then(|| Box::new(Sight::new(&metadata, raw.spec, status, raw.operation)));
        metadata.annotations = None;
        metadata.labels = None;
        Observed { owner, digest, outline, marked, guarded, sight, sync, health, phase, metadata }
    }
}

impl<'de> Deserialize<'de> for Observed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(Observed::from)
    }
}

impl Resource for Observed {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Application".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        names::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        names::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "applications".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The ApplicationSet an Application belongs to: the one that controls it, or the one that guards it where nothing
/// controls it. The garbage collector takes the controlling reference away when a set is deleted in the foreground.
pub(crate) fn owning_set(metadata: &ObjectMeta) -> Option<Arc<str>> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    if owners.iter().any(|owner| owner.controller == Some(true)) {
        return controlling_set(owners);
    }
    // The label alone is anybody's to write; the guard's name says which set it is.
    metadata.labels.as_ref()?.get(names::baton::SET_LABEL)?;
    owners.iter().find_map(guarded_set).map(Arc::from)
}

/// Whether an owner is the guard of a set: see [`names::baton::GUARD_SUFFIX`].
pub(crate) fn is_guard_of(set: &str, owner: &OwnerReference) -> bool {
    guarded_set(owner) == Some(set)
}

fn guarded_set(owner: &OwnerReference) -> Option<&str> {
    let is_map = owner.api_version == "v1" && owner.kind == "ConfigMap";
    is_map.then(|| owner.name.strip_suffix(names::baton::GUARD_SUFFIX)).flatten()
}

/// The ApplicationSet among the owners that controls the object. Its uid does not count: a set made anew takes over
/// the Applications of the one before.
pub(crate) fn controlling_set(owners: &[OwnerReference]) -> Option<Arc<str>> {
    let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
    let is_set = controller.api_version == API_VERSION && controller.kind == "ApplicationSet";
    is_set.then(|| Arc::from(controller.name.as_str()))
}

fn outline(metadata: &ObjectMeta) -> Digest {
    let mut hasher = Hasher::new();
    for (key, value) in metadata.labels.iter().flatten() {
        hasher.str(key);
        hasher.str(value);
    }
    hasher.str("annotations");
    for (key, value) in metadata.annotations.iter().flatten() {
        if !is_always_preserved(key) {
            hasher.str(key);
            hasher.str(value);
        }
    }
    hasher.str("finalizers");
    metadata.finalizers.iter().flatten().for_each(|finalizer| hasher.str(finalizer));
    hasher.str("owners");
    for owner in metadata.owner_references.iter().flatten() {
        for part in [&owner.api_version, &owner.kind, &owner.name, &owner.uid] {
            hasher.str(part);
        }
        hasher.str(&format!("{:?}{:?}", owner.controller, owner.block_owner_deletion));
    }
    hasher.finish()
}
