//! Writing to Applications: only what changed, only to the object and state that was judged.
//!
//! The CRD has no status subresource, so every write is a patch of the main object.

use std::sync::Arc;

use crate::guarded::Guarded;
use baton_api::application_status::ApplicationStatus;
use baton_api::edit::patch_between;
use baton_api::names::API_VERSION;
use baton_api::{Application, ApplicationSpec};
use kube::Client;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::known::{Held, Known};
use crate::cache::ObjectKey;
use crate::objects::{ApiError, Objects, Seen};

/// Name under which the API notes who wrote a field of an Application.
const FIELD_MANAGER: &str = "argocd-application-controller";

/// Writes Applications and keeps the answers.
pub(super) struct Writer {
    client: Client,
    known: Arc<Known>,
}

impl Writer {
    pub(super) fn new(client: Client, known: Arc<Known>) -> Writer {
        Writer { client, known }
    }

    /// The Application as the API has it now; the cache learns of it.
    pub(super) async fn read(&self, key: &ObjectKey) -> Result<Option<Arc<Application>>, ApiError> {
        match self.objects(key).get(&key.name).await? {
            Some(raw) => Ok(self.fold(key, raw)),
            None => Ok(None),
        }
    }

    /// Changes parts of the Application with a merge patch, in no other state of it than this one.
    pub(super) async fn patch(
        &self,
        application: &Application,
        patch: Value,
    ) -> Result<Arc<Application>, ApiError> {
        let key = ObjectKey::of(&application.metadata);
        let seen = Seen {
            uid: application.metadata.uid.as_deref().unwrap_or_default(),
            version: application.metadata.resource_version.as_deref(),
        };
        let answer = self.objects(&key).patch(&key.name, patch, seen).await;
        self.answered(&key, answer)
    }

    /// Makes the status what it is to be. Nothing is written where nothing differs.
    pub(super) async fn status(
        &self,
        application: &Arc<Application>,
        status: &ApplicationStatus,
        extra: Option<Value>,
    ) -> Result<Arc<Application>, ApiError> {
        let Some(patch) = status_patch(&application.status, status, extra) else {
            return Ok(application.clone());
        };
        self.patch(application, patch).await
    }

    /// Takes a served wish for a refresh back with this patch, which tests that it is still the same one.
    pub(super) async fn take_back(&self, application: &Application, patch: Value) -> Result<(), ApiError> {
        let key = ObjectKey::of(&application.metadata);
        match self.objects(&key).patch_json(&key.name, patch).await {
            // A newer wish stays, and is answered by the next pass.
            Err(error) if error.is_invalid() || error.is_conflict() || error.is_not_found() => {
                self.known.applications.lock().doubt(&key);
                Ok(())
            }
            answer => self.answered(&key, answer).map(drop),
        }
    }

    fn answered(
        &self,
        key: &ObjectKey,
        answer: Result<Value, ApiError>,
    ) -> Result<Arc<Application>, ApiError> {
        match answer {
            Ok(raw) => self
                .fold(key, raw)
                .ok_or_else(|| ApiError::NoAnswer("an Application that cannot be read".to_owned())),
            Err(error) => {
                if error.leaves_doubt() || error.is_conflict() {
                    self.known.applications.lock().doubt(key);
                }
                Err(error)
            }
        }
    }

    fn fold(&self, key: &ObjectKey, raw: Value) -> Option<Arc<Application>> {
        match serde_json::from_value::<Application>(raw) {
            Ok(mut application) => {
                baton_sync::approval::keep_record(&mut application.metadata);
                self.known.applications.lock().fold(Guarded(Ok(application.clone())));
                Some(Arc::new(application))
            }
            Err(_) => {
                self.known.applications.lock().doubt(key);
                None
            }
        }
    }

    fn objects(&self, key: &ObjectKey) -> Objects {
        Objects::new(self.client.clone(), API_VERSION, "applications", &key.namespace, false)
            .managed_by(FIELD_MANAGER)
    }
}

/// Whether what is held must be read anew before it is trusted.
pub(super) fn is_doubtful(known: &Known, key: &ObjectKey) -> bool {
    known.applications.lock().is_doubtful(key)
}

/// What is held, readable or not.
pub(super) fn is_known(known: &Known, key: &ObjectKey) -> bool {
    matches!(known.applications.lock().get(key), Some(Held::Whole(_)))
}

/// The patch from one status to another, with other changes; none where there is nothing to change.
pub(super) fn status_patch(
    before: &ApplicationStatus,
    after: &ApplicationStatus,
    extra: Option<Value>,
) -> Option<Value> {
    let mut patch = match extra {
        Some(Value::Object(extra)) => extra,
        _ => Map::new(),
    };
    if let Some(status) = difference(before, after) {
        patch.insert("status".to_owned(), status);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The patch from one spec to another.
pub(super) fn spec_patch(before: &ApplicationSpec, after: &ApplicationSpec) -> Option<Value> {
    difference(before, after).map(|spec| json!({ "spec": spec }))
}

fn difference<T: Serialize>(before: &T, after: &T) -> Option<Value> {
    let (Ok(before), Ok(after)) = (serde_json::to_value(before), serde_json::to_value(after)) else {
        return None;
    };
    patch_between(&Value::Null, &before, &after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::application_status::{ApplicationCondition, SyncCode};

    #[test]
    fn only_what_differs_is_written() {
        let before = ApplicationStatus::default();
        assert_eq!(status_patch(&before, &before, None), None);
        let mut after = before.clone();
        after.sync.status = SyncCode::Synced;
        let patch = status_patch(&before, &after, None).expect("a patch");
        assert_eq!(patch["status"], json!({"sync": {"status": "Synced"}}));
        let mut condition = after.clone();
        condition.conditions.push(ApplicationCondition { kind: "A".into(), ..Default::default() });
        let patch = status_patch(&after, &condition, Some(json!({"operation": null}))).expect("a patch");
        assert_eq!(
            patch,
            json!({"operation": null, "status": {"conditions": [{"type": "A", "message": ""}]}})
        );
    }
}
