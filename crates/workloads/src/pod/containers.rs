//! Container statuses for each stage of a pod's life.

use crate::naming::long_hex;
use crate::object::{at, count, items, name, stamp, text, uid};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Where in its life a bound pod is.
pub(super) enum Stage {
    /// Images are being pulled.
    Creating,
    /// All containers run.
    Running { ready: bool },
    /// Containers cannot be started at all.
    Waiting { reason: String },
    /// Containers start, end badly and are started again.
    Crashing { cause: Cause },
    /// All containers ended well.
    Succeeded,
    /// Containers ended badly and are not started again.
    Failed { cause: Cause },
}

/// Why a container ended badly.
pub(super) struct Cause {
    reason: &'static str,
    exit_code: i64,
    message: String,
}

// === impl Stage ===

impl Stage {
    /// The stage that the annotation value `reason` asks for.
    pub(super) fn failing(reason: &str, restart_policy: &str) -> Self {
        match reason {
            "ImagePullBackOff"
            | "ErrImagePull"
            | "InvalidImageName"
            | "CreateContainerConfigError"
            | "CreateContainerError" => return Self::Waiting { reason: reason.to_owned() },
            "NotReady" => return Self::Running { ready: false },
            _ => {}
        }
        let cause = match reason {
            "OOMKilled" => Cause { reason: "OOMKilled", exit_code: 137, message: String::new() },
            "true" | "Error" | "CrashLoopBackOff" => {
                Cause { reason: "Error", exit_code: 1, message: String::new() }
            }
            text => Cause { reason: "Error", exit_code: 1, message: text.to_owned() },
        };
        if restart_policy == "Never" { Self::Failed { cause } } else { Self::Crashing { cause } }
    }

    pub(super) fn phase(&self) -> &'static str {
        match self {
            Self::Creating | Self::Waiting { .. } => "Pending",
            Self::Running { .. } | Self::Crashing { .. } => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed { .. } => "Failed",
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self, Self::Running { ready: true })
    }

    pub(super) fn has_network(&self) -> bool {
        !matches!(self, Self::Creating)
    }
}

pub(super) fn describe(pod: &Value, status: &mut Map<String, Value>, stage: &Stage, now: Timestamp) {
    let init: Vec<_> = items(pod, &["spec", "initContainers"])
        .iter()
        .map(|container| Described::new(pod, "initContainerStatuses", container, now).init(stage))
        .collect();
    if !init.is_empty() {
        status.insert("initContainerStatuses".into(), Value::Array(init));
    }
    let main: Vec<_> = items(pod, &["spec", "containers"])
        .iter()
        .map(|container| Described::new(pod, "containerStatuses", container, now).main(stage))
        .collect();
    status.insert("containerStatuses".into(), Value::Array(main));
}

/// One container with what its status said before.
struct Described<'a> {
    pod: &'a Value,
    container: &'a Value,
    before: &'a Value,
    now: Timestamp,
}

// === impl Described ===

impl<'a> Described<'a> {
    fn new(pod: &'a Value, list: &str, container: &'a Value, now: Timestamp) -> Self {
        let before = items(pod, &["status", list])
            .iter()
            .find(|status| status["name"] == container["name"])
            .unwrap_or(&Value::Null);
        Self { pod, container, before, now }
    }

    /// Init containers have done their work as soon as the pod has its network.
    fn init(&self, stage: &Stage) -> Value {
        if stage.has_network() {
            self.status(0, false, json!({"terminated": self.ended("Completed", 0, "")}), None, true)
        } else {
            self.status(0, false, json!({"waiting": {"reason": "PodInitializing"}}), None, false)
        }
    }

    fn main(&self, stage: &Stage) -> Value {
        let restarts = count(self.before, &["restartCount"]);
        let last = || Some(self.before["lastState"].clone()).filter(Value::is_object);
        match stage {
            Stage::Creating => self.status(
                restarts,
                false,
                json!({"waiting": {"reason": "ContainerCreating"}}),
                last(),
                false,
            ),
            Stage::Running { ready } => {
                self.status(restarts, *ready, json!({"running": {"startedAt": self.started()}}), last(), true)
            }
            Stage::Waiting { reason } => {
                let waiting = json!({"waiting": {"reason": reason, "message": self.waiting_message(reason)}});
                self.status(restarts, false, waiting, last(), false)
            }
            Stage::Crashing { cause } => self.crashing(restarts, cause),
            Stage::Succeeded => self.status(
                restarts,
                false,
                json!({"terminated": self.ended("Completed", 0, "")}),
                last(),
                false,
            ),
            Stage::Failed { cause } => {
                let ended = self.ended(cause.reason, cause.exit_code, &cause.message);
                self.status(restarts, false, json!({"terminated": ended}), last(), false)
            }
        }
    }

    fn crashing(&self, restarts: i64, cause: &Cause) -> Value {
        let waiting = "CrashLoopBackOff";
        let already = at(self.before, &["state", "waiting", "reason"]) == waiting;
        let restarts = if already { restarts } else { restarts.saturating_add(1) };
        let pod_name = name(self.pod);
        let container = text(self.container, &["name"]);
        let mut message = format!("back-off 10s restarting failed container={container} pod={pod_name}");
        if !cause.message.is_empty() {
            message = format!("{message}: {}", cause.message);
        }
        let last = if already {
            self.before["lastState"].clone()
        } else {
            json!({"terminated": self.ended(cause.reason, cause.exit_code, &cause.message)})
        };
        let state = json!({"waiting": {"reason": waiting, "message": message}});
        self.status(restarts, false, state, Some(last), false)
    }

    fn status(&self, restarts: i64, ready: bool, state: Value, last: Option<Value>, started: bool) -> Value {
        let image = text(self.container, &["image"]);
        let container = text(self.container, &["name"]);
        let mut status = json!({
            "name": container,
            "image": image,
            "imageID": "",
            "ready": ready,
            "started": started && state["running"].is_object(),
            "restartCount": restarts,
            "state": state,
            "lastState": last.unwrap_or_else(|| json!({})),
        });
        let ran = !state_is_waiting(&status) || restarts > 0;
        if let Some(entry) = status.as_object_mut().filter(|_| ran) {
            entry.insert("imageID".into(), format!("sha256:{}", long_hex(&[image])).into());
            let id = long_hex(&[uid(self.pod), name(self.pod), container, &restarts.to_string()]);
            entry.insert("containerID".into(), format!("containerd://{id}").into());
        }
        status
    }

    fn waiting_message(&self, reason: &str) -> String {
        let image = text(self.container, &["image"]);
        match reason {
            "ImagePullBackOff" => format!("Back-off pulling image \"{image}\""),
            "ErrImagePull" => format!("failed to pull image \"{image}\": simulated"),
            "InvalidImageName" => format!("couldn't parse image name \"{image}\": simulated"),
            _ => "simulated".to_owned(),
        }
    }

    fn started(&self) -> String {
        let before = text(self.before, &["state", "running", "startedAt"]);
        if before.is_empty() { stamp(self.now) } else { before.to_owned() }
    }

    /// A terminated state; one that is already there keeps its times.
    fn ended(&self, reason: &str, exit_code: i64, message: &str) -> Value {
        let before = at(self.before, &["state", "terminated"]);
        if before["exitCode"] == exit_code {
            return before.clone();
        }
        let mut ended = json!({
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": self.started(),
            "finishedAt": stamp(self.now),
        });
        if let Some(entry) = ended.as_object_mut().filter(|_| !message.is_empty()) {
            entry.insert("message".into(), message.into());
        }
        ended
    }
}

fn state_is_waiting(status: &Value) -> bool {
    at(status, &["state", "waiting"]).is_object()
}
