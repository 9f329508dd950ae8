//! Claims and volumes: every claim is bound to a volume made for it.

use crate::Kind;
use crate::behaviour::Behaviour;
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::object::{at, deleting, items, map, name, namespace, text, uid};
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(crate) fn decide_claim(claim: &Value, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(claim) {
        return decision;
    }
    let behaviour = Behaviour::of(claim);
    let mut status = map(claim, &["status"]);
    if behaviour.fail.is_some() {
        status.insert("phase".into(), "Lost".into());
        decision.status(claim, status);
        return decision;
    }
    let bound = text(claim, &["status", "phase"]) == "Bound";
    if !bound && behaviour.stuck {
        status.insert("phase".into(), "Pending".into());
        decision.status(claim, status);
        return decision;
    }
    let due = settings.due(claim, Kind::PersistentVolumeClaim, &behaviour);
    if !bound && due > now {
        status.insert("phase".into(), "Pending".into());
        decision.status(claim, status);
        decision.wake_by(Some(due));
        return decision;
    }
    if text(claim, &["spec", "volumeName"]).is_empty() {
        let volume = make_volume(claim);
        let annotations = json!({
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        });
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": name(&volume)}});
        decision.create(volume);
        decision.patch(claim, patch);
    }
    status.insert("phase".into(), "Bound".into());
    for (key, value) in [
        ("accessModes", &claim["spec"]["accessModes"]),
        ("capacity", at(claim, &["spec", "resources", "requests"])),
    ] {
        if !value.is_null() {
            status.insert(key.into(), value.clone());
        }
    }
    decision.status(claim, status);
    decision
}

/// A volume is bound while its claim exists; afterwards it goes, or waits to be reclaimed by hand.
pub(crate) fn decide_volume(volume: &Value, family: &Family<'_>) -> Decision {
    let mut decision = Decision::default();
    if deleting(volume) {
        return decision;
    }
    let reference = &volume["spec"]["claimRef"];
    let claim = family
        .of_kind(Kind::PersistentVolumeClaim)
        .find(|claim| reference["namespace"] == namespace(claim) && reference["name"] == name(claim));
    let wanted_uid = text(reference, &["uid"]);
    let held = claim.is_some_and(|claim| match wanted_uid {
        "" => claim["spec"]["volumeName"] == name(volume),
        wanted => uid(claim) == wanted,
    });
    let phase = match (held, wanted_uid) {
        (true, _) => "Bound",
        (false, "") => "Available",
        (false, _) if text(volume, &["spec", "persistentVolumeReclaimPolicy"]) == "Delete" => {
            decision.delete(volume, Removal::Graceful);
            return decision;
        }
        (false, _) => "Released",
    };
    let mut status = map(volume, &["status"]);
    status.insert("phase".into(), phase.into());
    decision.status(volume, status);
    decision
}

fn make_volume(claim: &Value) -> Value {
    let volume_name = format!("pvc-{}", uid(claim));
    let mut spec = json!({
        "capacity": map(claim, &["spec", "resources", "requests"]),
        "accessModes": items(claim, &["spec", "accessModes"]),
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace(claim),
            "name": name(claim),
            "uid": uid(claim),
        },
        "csi": {"driver": "sim.baton.dev", "volumeHandle": volume_name},
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": claim["spec"]["volumeMode"].as_str().unwrap_or("Filesystem"),
    });
    if let (Some(spec), Some(class)) = (spec.as_object_mut(), claim["spec"]["storageClassName"].as_str()) {
        spec.insert("storageClassName".into(), class.into());
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume_name}, "spec": spec})
}
