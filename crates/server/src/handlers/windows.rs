//! Sync windows: which hold, and whether they let anybody sync now.

use baton_api::project::SyncWindow;
use baton_sync::windows::{self, Asker};
use serde_json::{Value, json};

use super::applications::Named;
use crate::error::Error;
use crate::server::{Context, Server};

impl Server {
    /// The windows that hold for an Application, and whether a person may sync it now.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub async fn application_windows(&self, context: &Context, at: &Named) -> Result<Value, Error> {
        let found = self.find(context, at, "get").await?;
        let project = context.configuration.projects.get(found.typed.spec.project.as_str());
        let all = project.map(|project| project.spec.sync_windows.as_slice()).unwrap_or_default();
        let assigned = windows::matching(all, &found.typed);
        let verdict = windows::judge(&assigned, Asker { manual: true, started_at: None }, self.now());
        let active = assigned.iter().copied().filter(|window| self.is_open(window));
        let told = |window: &SyncWindow| {
            json!({"kind": window.kind, "schedule": window.schedule, "duration": window.duration,
                "manualSync": window.manual_sync})
        };
        Ok(json!({
            "activeWindows": active.map(told).collect::<Vec<_>>(),
            "assignedWindows": assigned.iter().copied().map(told).collect::<Vec<_>>(),
            "canSync": verdict.allowed,
        }))
    }

    /// The windows of a project that are open now.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub fn project_windows(&self, context: &Context, name: &str) -> Result<Value, Error> {
        if !self.may(context, "projects", "get", name) {
            return Err(Error::hidden());
        }
        let project = context.configuration.projects.get(name).ok_or_else(Error::hidden)?;
        let open: Vec<&SyncWindow> =
            project.spec.sync_windows.iter().filter(|window| self.is_open(window)).collect();
        Ok(json!({"windows": open}))
    }

    /// Whether a window is open: one that allows then lets a sync run, one that denies stops it.
    fn is_open(&self, window: &SyncWindow) -> bool {
        let verdict = windows::judge(&[window], Asker::default(), self.now());
        verdict.error.is_none() && verdict.allowed == (window.kind == "allow")
    }
}
