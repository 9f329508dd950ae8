//! Events that tell people what happened to an Application, in Argo CD's words.

use baton_api::Application;
use baton_api::application_status::{ApplicationStatus, OperationPhase};
use baton_api::names::API_VERSION;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::events::Recorder;

const RESOURCE_UPDATED: &str = "ResourceUpdated";
const OPERATION_STARTED: &str = "OperationStarted";
const OPERATION_COMPLETED: &str = "OperationCompleted";
const STATUS_REFRESHED: &str = "StatusRefreshed";
/// Baton's own: somebody's word is needed.
const APPROVAL_REQUIRED: &str = "DeletionApprovalRequired";

/// Writes events about Applications.
#[derive(Clone)]
pub(super) struct Announcer {
    recorder: Recorder,
}

impl Announcer {
    pub(super) fn new(recorder: Recorder) -> Announcer {
        Announcer { recorder }
    }

    /// Verdicts that changed.
    pub(super) fn verdicts(&self, application: &Application, after: &ApplicationStatus) {
        let before = &application.status;
        if before.sync.status != after.sync.status {
            let message = format!("Updated sync status: {} -> {}", before.sync.status, after.sync.status);
            self.recorder.normal(&about(application), RESOURCE_UPDATED, message);
        }
        if before.health.status != after.health.status {
            let mut message =
                format!("Updated health status: {} -> {}", before.health.status, after.health.status);
            if !after.health.message.is_empty() {
                message = format!("{message} ({})", after.health.message);
            }
            self.recorder.normal(&about(application), RESOURCE_UPDATED, message);
        }
    }

    /// An automatic sync was asked for.
    pub(super) fn started(&self, application: &Application, message: String) {
        self.recorder.normal(&about(application), OPERATION_STARTED, message);
    }

    /// An operation ended.
    pub(super) fn completed(&self, application: &Application, phase: &OperationPhase, message: String) {
        let about = about(application);
        match phase {
            OperationPhase::Succeeded => self.recorder.normal(&about, OPERATION_COMPLETED, message),
            _ => self.recorder.warning(&about, OPERATION_COMPLETED, message),
        }
    }

    /// A deletion could not go on.
    pub(super) fn deletion_failed(&self, application: &Application, why: &str) {
        let message = format!("Unable to delete application resources: {why}");
        self.recorder.warning(&about(application), STATUS_REFRESHED, message);
    }

    /// Something about a deletion that people should know.
    pub(super) fn deletion_noted(&self, application: &Application, message: &str) {
        self.recorder.normal(&about(application), STATUS_REFRESHED, message.to_owned());
    }

    /// A deletion waits for somebody's word.
    pub(super) fn approval_required(&self, application: &Application, message: &str) {
        self.recorder.warning(&about(application), APPROVAL_REQUIRED, message.to_owned());
    }
}

fn about(application: &Application) -> ObjectReference {
    let metadata = &application.metadata;
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("Application".to_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        field_path: None,
    }
}
