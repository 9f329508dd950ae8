//! Names and marks of the objects that are kept beside a set.

use baton_api::names::API_VERSION;
use baton_api::names::baton::{APPLICATION_LABEL, PHASES_LABEL};
use baton_rollout::pin::Fingerprint;
use serde_json::{Value, json};

use crate::rollout::label_value;

/// Longest name of a set that leaves room for the endings of the names below.
const LONGEST_SET: usize = 200;

/// The set that objects are kept for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) uid: &'a str,
}

impl Owner<'_> {
    /// What the names of a set's ConfigMaps begin with.
    pub(super) fn base(self) -> String {
        match self.name.len() <= LONGEST_SET {
            true => format!("{}.baton-phases", self.name),
            false => format!("{}.baton-phases", label_value(self.name)),
        }
    }

    /// What the names of the ConfigMaps of one generator begin with.
    pub(super) fn begin(self, generator: usize) -> String {
        format!("{}-{generator}-", self.base())
    }

    /// Name of the ConfigMap that keeps how a generator was to be deployed.
    pub(super) fn strategy_name(self, generator: usize) -> String {
        format!("{}-{generator}-strategy", self.base())
    }

    /// Name of a good state of an Application. The UID is part of it: what an earlier set of this name left is not ours.
    pub(super) fn good_name(self, application: &str, revision: i64) -> String {
        format!("{}.{}-{revision}", label_value(self.name), Fingerprint::of([self.uid, application]))
    }

    /// Selects everything that is kept beside the set.
    pub(super) fn selector(self) -> String {
        format!("{PHASES_LABEL}={}", label_value(self.name))
    }

    /// The metadata of an object kept beside the set. It goes when the set does.
    pub(super) fn metadata(self, name: &str, application: Option<&str>) -> Value {
        let mut labels = json!({PHASES_LABEL: label_value(self.name)});
        if let Some(application) = application {
            labels[APPLICATION_LABEL] = label_value(application).into();
        }
        json!({
            "name": name, "namespace": self.namespace, "labels": labels,
            "ownerReferences": [{
                "apiVersion": API_VERSION, "kind": "ApplicationSet", "name": self.name, "uid": self.uid,
            }],
        })
    }

    /// Whether an object is this very set's.
    pub(super) fn owns(self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
        owners.iter().any(|owner| owner["uid"] == self.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room_and_tell_sets_of_one_name_apart() {
        let long = "a".repeat(253);
        for name in ["web", &long] {
            let owner = |uid| Owner { name, namespace: "argocd", uid };
            for made in [owner("1").strategy_name(99), owner("1").good_name(&long, i64::MAX)] {
                assert!(made.len() <= 253, "{made}");
            }
            assert_ne!(owner("1").good_name("x", 1), owner("2").good_name("x", 1));
        }
    }
}
