//! What the API keeps of Applications and ApplicationSets, and what the ApplicationSet controller may do there: as Baton
//! brings it along, or as an Argo CD has it that Baton was put beside.

use http::Method;
use serde_json::{Map, Value, json};

use crate::faults::{Call, Fault};

/// Names the API that the scenes of this process have.
pub(crate) const VARIABLE: &str = "BATON_TEST_API";

/// An API as controllers may find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Keeps every field, and lets the controller do anything.
    Baton,
    /// Keeps the fields that Argo CD knows, and no others.
    Argo,
    /// The same, with the rights of Argo CD's own Role: the controller reads ConfigMaps and writes none.
    ArgoRights,
}

impl Api {
    /// As this process was told.
    pub(crate) fn of_process() -> Api {
        match std::env::var(VARIABLE) {
            Err(_) => Api::Baton,
            Ok(name) => Api::named(&name).unwrap_or_else(|| panic!("{VARIABLE}: no API is called {name:?}")),
        }
    }

    fn named(name: &str) -> Option<Api> {
        [Api::Argo, Api::ArgoRights].into_iter().find(|api| api.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Api::Baton => "baton",
            Api::Argo => "argo",
            Api::ArgoRights => "argo-rights",
        }
    }

    /// Whether fields of the status that only Baton has are kept.
    pub(crate) fn keeps_summary(self) -> bool {
        self == Api::Baton
    }

    /// Whether the controller may write ConfigMaps.
    pub(crate) fn allows_maps(self) -> bool {
        self != Api::ArgoRights
    }

    /// What a request of the ApplicationSet controller is refused with for want of a right.
    pub(crate) fn refuses(self, call: &Call) -> Option<Fault> {
        let (resource, ..) = call.target();
        let refused = !self.allows_maps() && resource == "configmaps" && call.method != Method::GET;
        refused.then(|| {
            Fault::Refused(403, format!("configmaps is forbidden: cannot {} it", call.method.as_str()))
        })
    }

    /// Whether a request writes the head of a rollout, where this API has it.
    pub(crate) fn writes_head(self, call: &Call) -> bool {
        let (resource, ..) = call.target();
        let annotated = || {
            call.patch
                .as_ref()
                .is_some_and(|patch| patch.pointer("/metadata/annotations/baton.dev~1rollout").is_some())
        };
        match self.allows_maps() {
            true => resource == "configmaps" && [Method::POST, Method::PATCH].contains(&call.method),
            false => resource == "applicationsets" && annotated(),
        }
    }

    pub(crate) fn definitions(self) -> Vec<Value> {
        let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schemas = match self {
            // Without schemas, whose reading would take most of a test's time.
            Api::Baton => [open(), open(), open()],
            Api::Argo | Api::ArgoRights => [schema(&application()), application_set(), open()],
        };
        let kinds = [
            ("applications", "Application"),
            ("applicationsets", "ApplicationSet"),
            ("appprojects", "AppProject"),
        ];
        let definition = |((plural, kind), schema): ((&str, &str), Value)| {
            let mut version = json!({
                "name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            });
            if kind == "ApplicationSet" {
                version["subresources"] = json!({"status": {}});
            }
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.argoproj.io")},
                "spec": {
                    "group": "argoproj.io", "scope": "Namespaced", "versions": [version],
                    "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                },
            })
        };
        kinds.into_iter().zip(schemas).map(definition).collect()
    }
}

/// What is kept: of an object its members, of an array that of its only element, and of anything else all.
fn schema(kept: &Value) -> Value {
    match kept {
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.iter().map(|(name, kept)| (name.clone(), schema(kept))).collect();
            json!({"type": "object", "properties": members})
        }
        Value::Array(items) => json!({"type": "array", "items": schema(&items[0])}),
        _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
    }
}

/// Argo CD's fields of an Application: of the status all that it has, and nothing that Baton adds.
fn application() -> Value {
    let health = json!({"status": 0, "message": 0, "lastTransitionTime": 0});
    let operation = json!({
        "info": [{"name": 0, "value": 0}],
        "initiatedBy": {"username": 0, "automated": 0},
        "retry": {"limit": 0, "refresh": 0, "backoff": {"duration": 0, "factor": 0, "maxDuration": 0}},
        "sync": {
            "autoHealAttemptsCount": 0, "dryRun": 0, "manifests": 0, "prune": 0, "revision": 0, "revisions": 0,
            "resources": [{"group": 0, "kind": 0, "name": 0, "namespace": 0}],
            "source": 0, "sources": 0, "syncOptions": 0, "syncStrategy": 0,
        },
    });
    json!({
        "operation": operation,
        // What a template may say of an Application is the same for both.
        "spec": 0,
        "status": {
            "conditions": [{"type": 0, "message": 0, "lastTransitionTime": 0}],
            "controllerNamespace": 0,
            "health": health,
            "history": [{
                "id": 0, "deployStartedAt": 0, "deployedAt": 0, "initiatedBy": {"username": 0, "automated": 0},
                "revision": 0, "revisions": 0, "source": 0, "sources": 0,
            }],
            "observedAt": 0,
            "operationState": {
                "operation": operation, "phase": 0, "message": 0, "startedAt": 0, "finishedAt": 0, "retryCount": 0,
                "syncResult": {
                    "revision": 0, "revisions": 0, "source": 0, "sources": 0, "managedNamespaceMetadata": 0,
                    "resources": [{
                        "group": 0, "version": 0, "kind": 0, "namespace": 0, "name": 0, "status": 0, "message": 0,
                        "hookPhase": 0, "hookType": 0, "images": 0, "syncPhase": 0,
                    }],
                },
            },
            "reconciledAt": 0,
            "resourceHealthSource": 0,
            "resources": [{
                "group": 0, "version": 0, "kind": 0, "namespace": 0, "name": 0, "status": 0, "health": health,
                "hook": 0, "requiresDeletionConfirmation": 0, "requiresPruning": 0, "syncWave": 0,
            }],
            "sourceHydrator": 0,
            "sourceType": 0,
            "sourceTypes": 0,
            "summary": {"externalURLs": 0, "images": 0, "isAppOfApps": 0},
            "sync": {
                "status": 0, "revision": 0, "revisions": 0,
                "comparedTo": {"destination": 0, "ignoreDifferences": 0, "source": 0, "sources": 0},
            },
        },
    })
}

/// Argo CD's fields of an ApplicationSet. Of the strategy too no others are kept, but for the steps of a deletion, which
/// one test is about; none needs what Baton adds to steps of a rollout. Generators and templates are the same for both.
fn application_set() -> Value {
    let mut schema = schema(&json!({
        "spec": {
            "applyNestedSelectors": 0, "generators": 0, "goTemplate": 0, "goTemplateOptions": 0,
            "ignoreApplicationDifferences": 0, "preservedFields": 0, "syncPolicy": 0, "template": 0,
            "templatePatch": 0,
            "strategy": {
                "type": 0, "deletionOrder": 0, "deletionSync": 0,
                "rollingSync": {
                    "steps": [{"matchExpressions": [{"key": 0, "operator": 0, "values": 0}], "maxUpdate": 0}],
                },
            },
        },
        "status": {
            "applicationStatus": [{
                "application": 0, "lastTransitionTime": 0, "message": 0, "status": 0, "step": 0, "targetRevisions": 0,
            }],
            "conditions": [{"type": 0, "status": 0, "reason": 0, "message": 0, "lastTransitionTime": 0}],
            "health": {"status": 0, "message": 0, "lastTransitionTime": 0},
            "resources": [{
                "group": 0, "version": 0, "kind": 0, "namespace": 0, "name": 0, "status": 0,
                "health": {"status": 0, "message": 0, "lastTransitionTime": 0},
                "hook": 0, "requiresDeletionConfirmation": 0, "requiresPruning": 0, "syncWave": 0,
            }],
            "resourcesCount": 0,
        },
    }));
    // Without these Argo CD's own definition refuses the whole status.
    let status = &mut schema["properties"]["status"]["properties"];
    status["applicationStatus"]["items"]["required"] =
        json!(["application", "message", "status", "step", "targetRevisions"]);
    status["conditions"]["items"]["required"] = json!(["message", "reason", "status", "type"]);
    schema
}
