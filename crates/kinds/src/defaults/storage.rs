//! Volumes, claims, classes, and limits on what may be asked for.

use serde_json::{Value, json};

use super::amounts;
use crate::lookup::{at_mut, ensure, fields, fill, list_mut, set, text};

pub(super) fn volume(object: &mut Value) {
    amounts(object, &["spec.capacity"]);
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    source(spec);
    if let Some(path) = at_mut(spec, "hostPath") {
        fill(path, "type", "");
    }
}

/// Defaults of volume sources that Pods and PersistentVolumes share.
pub(super) fn source(holder: &mut Value) {
    if let Some(source) = at_mut(holder, "iscsi") {
        fill(source, "iscsiInterface", "default");
    }
    if let Some(source) = at_mut(holder, "rbd") {
        fill(source, "pool", "rbd");
        fill(source, "user", "admin");
        fill(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = at_mut(holder, "azureDisk") {
        fill(source, "cachingMode", "ReadWrite");
        fill(source, "fsType", "ext4");
        fill(source, "kind", "Shared");
        fill(source, "readOnly", false);
    }
    if let Some(source) = at_mut(holder, "scaleIO") {
        fill(source, "storageMode", "ThinProvisioned");
        fill(source, "fsType", "xfs");
    }
}

pub(super) fn claim(object: &mut Value) {
    if let Some(spec) = ensure(object, "spec") {
        claim_spec(spec);
    }
    amounts(object, &["status.capacity", "status.allocatedResources"]);
}

pub(super) fn claim_spec(spec: &mut Value) {
    fill(spec, "volumeMode", "Filesystem");
    ensure(spec, "resources");
    amounts(spec, &["resources.requests", "resources.limits"]);
}

pub(super) fn class(object: &mut Value) {
    fill(object, "reclaimPolicy", "Delete");
    fill(object, "volumeBindingMode", "Immediate");
}

pub(super) fn driver(object: &mut Value) {
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill(spec, "requiresRepublish", false);
    fill(spec, "seLinuxMount", false);
    fill(spec, "volumeLifecycleModes", json!(["Persistent"]));
}

/// A container's default limit is its maximum, and its default request is its default limit, else its minimum.
pub(super) fn limit_range(object: &mut Value) {
    for limit in list_mut(object, "spec.limits") {
        amounts(limit, &["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]);
        if text(limit, "type") != "Container" {
            continue;
        }
        inherit(limit, "default", "max");
        inherit(limit, "defaultRequest", "default");
        inherit(limit, "defaultRequest", "min");
    }
}

fn inherit(limit: &mut Value, to: &str, from: &str) {
    let Some(from) = fields(limit, from).cloned() else {
        // Kubernetes shows the map it made even where nothing went into it.
        if fields(limit, to).is_none() {
            set(limit, to, json!({}));
        }
        return;
    };
    let Some(to) = ensure(limit, to) else { return };
    for (name, amount) in from {
        fill(to, &name, amount);
    }
}
