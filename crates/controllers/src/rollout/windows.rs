//! Whether the windows of its project let an Application be synced now.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::application::Destination;
use baton_api::names::DEFAULT_PROJECT;
use baton_api::project::SyncWindow;
use baton_sync::windows::{self, Asker};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The windows of all projects at one time, and when something about those that were asked for will change.
#[derive(Debug, Default)]
pub(super) struct Windows {
    by_project: Arc<BTreeMap<String, Vec<SyncWindow>>>,
    now: Timestamp,
    changes_at: Option<Timestamp>,
}

impl Windows {
    /// The windows of all projects now.
    pub(super) fn new(by_project: Arc<BTreeMap<String, Vec<SyncWindow>>>, now: Timestamp) -> Windows {
        Windows { by_project, now, changes_at: None }
    }

    /// Whether what was told does not hold any more.
    pub(super) fn is_outdated(
        &self,
        by_project: &Arc<BTreeMap<String, Vec<SyncWindow>>>,
        now: Timestamp,
    ) -> bool {
        self.by_project != *by_project || self.changes_at.is_some_and(|change| change <= now)
    }

    /// When what was told does not hold any more.
    pub(super) fn changes_at(&self) -> Option<Timestamp> {
        self.changes_at
    }

    /// Why an Application may not be synced by itself now, if it may not.
    pub(super) fn closed(&mut self, name: &str, spec: &Value) -> Option<Arc<str>> {
        let project = match spec["project"].as_str() {
            None | Some("") => DEFAULT_PROJECT,
            Some(project) => project,
        };
        let all = self.by_project.get(project)?;
        let mut application = Application::default();
        application.metadata.name = Some(name.to_owned());
        application.spec.destination = Destination::deserialize(&spec["destination"]).unwrap_or_default();
        let verdict = windows::judge(&windows::matching(all, &application), Asker::default(), self.now);
        self.changes_at = self.changes_at.into_iter().chain(verdict.changes_at).min();
        if verdict.allowed {
            return None;
        }
        let named =
            |window: &&SyncWindow| format!("{} {:?} for {}", window.kind, window.schedule, window.duration);
        let why = verdict.error.unwrap_or_else(|| {
            let windows: Vec<String> = verdict.blocking.iter().map(named).collect();
            format!("windows of project {project} let nothing be synced now: {}", windows.join(", "))
        });
        Some(why.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_closed_window_is_named_with_its_end() {
        let deny =
            json!({"kind": "deny", "schedule": "0 22 * * *", "duration": "8h", "applications": ["prod-*"]});
        let deny: SyncWindow = serde_json::from_value(deny).expect("a window");
        let by_project = Arc::new(BTreeMap::from([("default".to_owned(), vec![deny])]));
        let at = |time: &str| time.parse::<Timestamp>().expect("a time");
        let night = at("2026-01-01T23:00:00Z");
        let mut windows = Windows::new(by_project.clone(), night);
        let spec = json!({"destination": {"name": "east"}});
        assert_eq!(windows.closed("dev-web", &spec), None);
        assert_eq!(windows.changes_at(), None);
        let why = windows.closed("prod-web", &spec).expect("closed");
        assert_eq!(&*why, "windows of project default let nothing be synced now: deny \"0 22 * * *\" for 8h");
        assert!(!windows.is_outdated(&by_project, night));
        assert!(windows.is_outdated(&by_project, at("2026-01-02T06:00:00Z")));
        assert!(windows.is_outdated(&Arc::default(), night));
    }
}
