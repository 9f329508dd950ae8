//! What the containers of a simulated Pod have written: a few lines that follow from the Pod alone, so that whoever reads
//! them twice reads the same.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::{at, items, name, namespace, text, time};

/// One line a container has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When.
    pub at: Timestamp,
    /// What, without the line break.
    pub text: String,
}

/// What a container has written until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// Whether it has ended and will write no more.
    pub ended: bool,
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLog {
    /// The Pod has no such container.
    Unknown,
    /// The container has not begun; why it waits.
    Waiting(String),
    /// There was no run before this one.
    NoPrevious,
}

/// The names of a Pod's containers, those that make it ready last.
pub fn containers(pod: &Value) -> (Vec<&str>, Vec<&str>) {
    let names =
        |list: &str| items(pod, &["spec", list]).iter().map(|one| text(one, &["name"])).collect::<Vec<_>>();
    let mut init = names("initContainers");
    init.extend(names("ephemeralContainers"));
    (init, names("containers"))
}

/// What a container of a Pod has written, in this run or in the one before it.
///
/// # Errors
/// There is no such container, or it has not run.
pub fn log(pod: &Value, container: &str, previous: bool) -> Result<Log, NoLog> {
    let (init, main) = containers(pod);
    let list = match (main.contains(&container), init.contains(&container)) {
        (true, _) => "containerStatuses",
        (false, true) => "initContainerStatuses",
        (false, false) => return Err(NoLog::Unknown),
    };
    let mut statuses = items(pod, &["status", list]).iter();
    let status = statuses.find(|status| text(status, &["name"]) == container).unwrap_or(&Value::Null);
    let last = at(status, &["lastState", "terminated"]);
    if previous {
        return if last.is_object() { Ok(run(pod, status, last, true)) } else { Err(NoLog::NoPrevious) };
    }
    let [running, ended, waiting] =
        ["running", "terminated", "waiting"].map(|one| at(status, &["state", one]));
    if running.is_object() {
        Ok(run(pod, status, running, false))
    } else if ended.is_object() {
        Ok(run(pod, status, ended, true))
    } else if last.is_object() {
        // Between two runs the last one is what there is to read.
        Ok(Log { ended: false, ..run(pod, status, last, true) })
    } else {
        let reason = text(waiting, &["reason"]);
        Err(NoLog::Waiting(if reason.is_empty() { "ContainerCreating" } else { reason }.to_owned()))
    }
}

/// The lines of one run of a container.
fn run(pod: &Value, status: &Value, state: &Value, ended: bool) -> Log {
    let started = time(state, &["startedAt"]).unwrap_or(Timestamp::UNIX_EPOCH);
    let finished = time(state, &["finishedAt"]).unwrap_or(started);
    let image = text(status, &["image"]);
    let mut texts = vec![
        format!("simulated container {} of pod {}/{}", text(status, &["name"]), namespace(pod), name(pod)),
        format!("image {image} on node {}", text(pod, &["spec", "nodeName"])),
    ];
    let mut lines: Vec<LogLine> = Vec::new();
    if !ended {
        texts.push("started; nothing runs here, so this is all there is to read".to_owned());
    }
    for (place, text) in (0_i32..).zip(texts) {
        // A line a millisecond: clients that sort by time keep their order.
        let at = started.saturating_add(SignedDuration::from_millis(i64::from(place))).unwrap_or(started);
        lines.push(LogLine { at, text });
    }
    if ended {
        let code = at(state, &["exitCode"]).as_i64().unwrap_or_default();
        let (reason, message) = (text(state, &["reason"]), text(state, &["message"]));
        let told = if message.is_empty() { String::new() } else { format!(": {message}") };
        let text = format!("ended with exit code {code} ({reason}){told}").replace(['\n', '\r'], " ");
        lines.push(LogLine { at: finished.max(started), text });
    }
    Log { lines, ended }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: Value) -> Value {
        json!({
            "metadata": {"name": "web-1", "namespace": "shop"},
            "spec": {"nodeName": "node-1", "initContainers": [{"name": "setup"}],
                "containers": [{"name": "web", "image": "web:1"}, {"name": "proxy"}]},
            "status": status,
        })
    }

    fn texts(log: Result<Log, NoLog>) -> Vec<String> {
        log.expect("a log").lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_running_container_has_said_what_it_is() {
        let pod = pod(json!({"containerStatuses": [
            {"name": "web", "image": "web:1", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}));
        let told = log(&pod, "web", false).expect("a log");
        assert_eq!(told.lines[0].text, "simulated container web of pod shop/web-1");
        assert_eq!(told.lines[1].text, "image web:1 on node node-1");
        assert!(!told.ended && told.lines.is_sorted_by_key(|line| line.at));
        assert_eq!(log(&pod, "web", false), Ok(told), "and says it again");
        assert_eq!(log(&pod, "web", true), Err(NoLog::NoPrevious));
        assert_eq!(log(&pod, "proxy", false), Err(NoLog::Waiting("ContainerCreating".to_owned())));
        assert_eq!(log(&pod, "other", false), Err(NoLog::Unknown));
        assert_eq!(containers(&pod), (vec!["setup"], vec!["web", "proxy"]));
    }

    #[test]
    fn a_container_that_ended_says_how() {
        let ended = json!({"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:09Z",
            "exitCode": 1, "reason": "Error", "message": "two\nlines"});
        let done = pod(json!({"containerStatuses": [{"name": "web", "state": {"terminated": ended}}]}));
        let told = log(&done, "web", false).expect("a log");
        assert!(told.ended);
        assert_eq!(told.lines[2].text, "ended with exit code 1 (Error): two lines");
        assert_eq!(told.lines[2].at.to_string(), "2026-01-01T00:00:09Z");
        let crashing = pod(json!({"containerStatuses": [{"name": "web", "lastState": {"terminated": ended},
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}));
        assert_eq!(texts(log(&crashing, "web", false)), texts(log(&crashing, "web", true)));
        assert!(!log(&crashing, "web", false).expect("a log").ended, "it will be started again");
        let stuck = pod(
            json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ErrImagePull"}}}]}),
        );
        assert_eq!(log(&stuck, "web", false), Err(NoLog::Waiting("ErrImagePull".to_owned())));
    }

    #[test]
    fn no_pod_makes_it_fail() {
        for odd in [
            json!(null),
            json!([]),
            json!({"spec": {"containers": [3, {"name": 4}, {"name": "x"}]}, "status": 5}),
        ] {
            let _ = (log(&odd, "x", false), log(&odd, "", true), containers(&odd));
        }
    }
}
