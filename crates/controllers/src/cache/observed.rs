//! The few things kept of an Application, read without keeping the rest.

use std::borrow::Cow;
use std::sync::Arc;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::names::{self, API_VERSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::{NamespaceResourceScope, Resource};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::digest::{Digest, Hasher};

/// Annotations that are written all the time and never decide anything here.
pub(crate) const ALWAYS_PRESERVED_ANNOTATIONS: [&str; 3] =
    [names::application::NOTIFIED, names::application::REFRESH, names::application::HYDRATE];

/// What one look at an Application told.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) metadata: ObjectMeta,
    /// Name of the ApplicationSet that controls it.
    pub(crate) owner: Option<Arc<str>>,
    /// Of spec, labels, annotations, finalizers and owner references.
    pub(crate) digest: Digest,
    /// Whether it carries the label of a set that keeps an order.
    pub(crate) marked: bool,
    /// Whether the guard of its set is among its owners.
    pub(crate) guarded: bool,
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
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    #[serde(default)]
    sync: Option<RawVerdict>,
    #[serde(default)]
    health: Option<RawVerdict>,
    #[serde(default)]
    operation_state: Option<RawOperation>,
}

#[derive(Deserialize, Default)]
struct RawVerdict {
    #[serde(default)]
    status: Option<String>,
}

#[derive(Deserialize, Default)]
struct RawOperation {
    #[serde(default)]
    phase: Option<String>,
}

impl From<Raw> for Observed {
    fn from(raw: Raw) -> Observed {
        let mut metadata = raw.metadata;
        let digest = digest(&metadata, &raw.spec);
        let marked = metadata.labels.as_ref().is_some_and(|all| all.contains_key(names::baton::SET_LABEL));
        let owner = owning_set(&metadata);
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        let guarded = owner.as_deref().is_some_and(|set| owners.iter().any(|owner| is_guard_of(set, owner)));
        metadata.managed_fields = None;
        metadata.annotations = None;
        metadata.labels = None;
        let status = raw.status.unwrap_or_default();
        let verdict =
            |verdict: Option<RawVerdict>| verdict.and_then(|verdict| verdict.status).unwrap_or_default();
        Observed {
            owner,
            digest,
            marked,
            guarded,
            sync: SyncCode::from(verdict(status.sync)),
            health: HealthCode::from(verdict(status.health)),
            phase: status.operation_state.map(|state| OperationPhase::from(state.phase.unwrap_or_default())),
            metadata,
        }
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

fn digest(metadata: &ObjectMeta, spec: &Value) -> Digest {
    let mut hasher = Hasher::new();
    hasher.json(spec);
    for (key, value) in metadata.labels.iter().flatten() {
        hasher.str(key);
        hasher.str(value);
    }
    hasher.str("annotations");
    for (key, value) in metadata.annotations.iter().flatten() {
        if !ALWAYS_PRESERVED_ANNOTATIONS.contains(&key.as_str()) {
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
