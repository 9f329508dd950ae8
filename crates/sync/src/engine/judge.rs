//! How far running tasks are, by the health of their live objects.

use baton_api::application_status::{HealthCode, OperationPhase, ResultCode};
use baton_api::names::baton;
use baton_api::object::Object;
use serde_json::Value;

use super::Engine;
use crate::hooks;
use crate::task::Task;

impl Engine<'_> {
    /// Takes over hooks that this operation created without coming to note it.
    ///
    /// A hook that was let go of is noted in the results of its operation; only one that is still held is taken over.
    pub(super) fn adopt(&mut self) {
        let found = self.which(|task| task.is_pending() && self.is_our_hook(task));
        for index in found {
            let message = format!("{} created", self.tasks[index].key.name);
            self.set(index, ResultCode::Synced, OperationPhase::Running, &message);
        }
    }

    fn is_our_hook(&self, task: &Task) -> bool {
        task.is_hook() && task.live.as_deref().is_some_and(hooks::is_held) && self.is_stamped(task)
    }

    fn is_stamped(&self, task: &Task) -> bool {
        let stamp = task.live.as_deref().and_then(|live| live.annotation(baton::OPERATION));
        stamp == Some(self.request.stamp(&task.phase).as_str())
    }

    /// Whether the live object of a running task may be older than what was done to it.
    ///
    /// A hook without this operation's stamp is one of an earlier operation, which a cache that lags behind still shows.
    pub(super) fn is_outdated(&self, task: &Task) -> bool {
        let lags = task.is_hook() && !self.is_stamped(task) && !self.looked.contains(&task.key);
        task.live.is_none() || self.stale.contains(&task.key) || lags
    }

    /// Judges those of some tasks that run and whose object is known as it is now.
    pub(super) fn judge(&mut self, tasks: &[usize]) {
        for &index in tasks {
            if !self.tasks[index].is_running() || self.is_outdated(&self.tasks[index]) {
                continue;
            }
            let Some(live) = self.tasks[index].live.clone() else { continue };
            if self.tasks[index].is_hook() {
                match self.hook_state(&live) {
                    Ok((state, message)) => self.set_state(index, state, &message),
                    Err(error) => {
                        let message = format!("failed to get resource health: {error}");
                        self.set_state(index, OperationPhase::Error, &message);
                    }
                }
            } else if let Ok(health) = (self.world.health)(&live) {
                match health.as_ref().map(|health| (&health.code, health.message.as_str())) {
                    None => self.set_state(index, OperationPhase::Succeeded, ""),
                    Some((HealthCode::Healthy, message)) => {
                        self.set_state(index, OperationPhase::Succeeded, message);
                    }
                    Some((HealthCode::Degraded, message)) => {
                        self.set_state(index, OperationPhase::Failed, message);
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// How far a hook is. What has no health has done its work by being there.
    pub(super) fn hook_state(&self, live: &Value) -> Result<(OperationPhase, String), String> {
        let health = (self.world.health)(live)?;
        let state = match health.as_ref().map(|health| &health.code) {
            Some(HealthCode::Unknown | HealthCode::Degraded) => OperationPhase::Failed,
            Some(HealthCode::Progressing | HealthCode::Suspended) => OperationPhase::Running,
            Some(HealthCode::Healthy) => OperationPhase::Succeeded,
            Some(HealthCode::Missing | HealthCode::Other(_)) | None => {
                return Ok((OperationPhase::Succeeded, format!("{} created", live.name())));
            }
        };
        Ok((state, health.map(|health| health.message).unwrap_or_default()))
    }
}
