//! Jobs: pods run until enough of them succeeded, or too many failed.

mod indexes;

use crate::Kind;
use crate::condition::{self, Condition};
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::{fresh_names, suffixed};
use crate::object::{
    after, annotation, at, count, deleting, flag, int, items, map, name, put_count, seconds, stamp, text,
    time, uid,
};
use crate::ownership::{claim, hand_down, is_active, pod_from};
use crate::pod;
use crate::replicaset::{BURST, total};
use crate::settings::Settings;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The API's own limit for indexed jobs; it also bounds the set of finished indexes.
const MOST_INDEXES: i64 = 100_000;
const LONGEST_BACKOFF: Duration = Duration::from_secs(360);

pub(crate) fn decide(job: &Value, family: &Family<'_>, settings: &Settings, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if deleting(job) {
        return decision;
    }
    if let Some(finished_at) = finished_at(job) {
        expire(&mut decision, job, finished_at, now);
        return decision;
    }
    let pods = claim(&mut decision, job, family, Kind::Pod);
    hand_down(&mut decision, job, &pods);
    let run = Run::new(job, pods, settings, now);
    let mut status = run.counters();
    if flag(job, &["spec", "suspend"]) {
        run.suspend(&mut decision, &mut status);
    } else if let Some((reason, message)) = run.failure() {
        run.finish(&mut decision, &mut status, ["FailureTarget", "Failed"], reason, message);
    } else if run.is_complete() {
        let message = "Reached expected number of succeeded pods";
        let conditions = ["SuccessCriteriaMet", "Complete"];
        run.finish(&mut decision, &mut status, conditions, "CompletionsReached", message);
        status.insert("completionTime".into(), stamp(now).into());
    } else {
        run.proceed(&mut decision, &mut status);
    }
    decision.status(job, status);
    decision
}

/// When the job ended, if it has.
fn finished_at(job: &Value) -> Option<Timestamp> {
    ["Complete", "Failed"].iter().find_map(|kind| {
        let condition = condition::find(job, kind).filter(|condition| condition["status"] == "True")?;
        Some(time(condition, &["lastTransitionTime"]).unwrap_or(Timestamp::MIN))
    })
}

fn expire(decision: &mut Decision, job: &Value, finished_at: Timestamp, now: Timestamp) {
    let Some(ttl) = int(job, &["spec", "ttlSecondsAfterFinished"]) else { return };
    let ends = after(finished_at, seconds(ttl));
    if ends <= now {
        decision.delete(job, Removal::Graceful);
    } else {
        decision.wake_by(Some(ends));
    }
}

/// A job that has not ended, with its pods told apart.
struct Run<'a> {
    job: &'a Value,
    settings: &'a Settings,
    now: Timestamp,
    pods: Vec<&'a Value>,
    active: Vec<&'a Value>,
    parallelism: i64,
    /// `None`: a work queue, done when one pod succeeded and none is left.
    completions: Option<i64>,
    succeeded: i64,
    failed: i64,
    /// The indexes done so far, for an indexed job.
    done: Option<BTreeSet<i64>>,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn new(job: &'a Value, pods: Vec<&'a Value>, settings: &'a Settings, now: Timestamp) -> Self {
        let in_phase = |phase: &str| {
            let phase = phase.to_owned();
            pods.iter().copied().filter(move |pod| text(pod, &["status", "phase"]) == phase)
        };
        let active: Vec<&Value> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
        let parallelism = int(job, &["spec", "parallelism"]);
        let indexed = text(job, &["spec", "completionMode"]) == "Indexed";
        let completions = int(job, &["spec", "completions"])
            .or_else(|| parallelism.is_none().then_some(1))
            .map(|completions| completions.clamp(0, if indexed { MOST_INDEXES } else { i64::MAX }));
        let most = total(settings.max_pods_per_owner);
        let done = indexed.then(|| {
            let limit = completions.unwrap_or(0);
            let mut done = indexes::parse(text(job, &["status", "completedIndexes"]), limit);
            done.extend(in_phase("Succeeded").filter_map(index).filter(|index| *index < limit));
            done
        });
        // Finished pods may be deleted by hand; what was counted stays counted.
        let seen = |phase, key| total(in_phase(phase).count()).max(count(job, &["status", key]));
        let succeeded = match &done {
            Some(done) => total(done.len()),
            None => seen("Succeeded", "succeeded"),
        };
        let failed = seen("Failed", "failed");
        let parallelism = parallelism.unwrap_or(1).clamp(0, most);
        Self { job, settings, now, active, parallelism, completions, succeeded, failed, done, pods }
    }

    fn counters(&self) -> Map<String, Value> {
        let mut status = map(self.job, &["status"]);
        let ready = self.active.iter().filter(|pod| pod::is_ready(pod)).count();
        let terminating = self.pods.iter().filter(|pod| deleting(pod)).count();
        status.entry("startTime").or_insert_with(|| stamp(self.now).into());
        put_count(&mut status, "active", total(self.active.len()));
        put_count(&mut status, "succeeded", self.succeeded);
        put_count(&mut status, "failed", self.failed);
        status.insert("ready".into(), json!(ready));
        status.insert("terminating".into(), json!(terminating));
        status.insert("uncountedTerminatedPods".into(), json!({}));
        if let Some(done) = self.done.as_ref().filter(|done| !done.is_empty()) {
            status.insert("completedIndexes".into(), indexes::print(done).into());
        }
        status
    }

    fn suspend(&self, decision: &mut Decision, status: &mut Map<String, Value>) {
        self.stop(decision, self.active.len());
        status.remove("startTime");
        let wanted =
            Condition { kind: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" };
        condition::set(status, &wanted, self.now);
    }

    fn failure(&self) -> Option<(&'static str, &'static str)> {
        let limit = int(self.job, &["spec", "backoffLimit"]).unwrap_or(6);
        // A container restarted in place uses the limit up without a pod ever failing. The simulator does
        // not play every restart: the first crash stands for all of them.
        let crashing = self.active.iter().any(|pod| is_crashing(pod));
        if self.failed > limit || crashing {
            return Some(("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let ends = self.deadline()?;
        (ends <= self.now).then_some(("DeadlineExceeded", "Job was active longer than specified deadline"))
    }

    fn deadline(&self) -> Option<Timestamp> {
        let limit = int(self.job, &["spec", "activeDeadlineSeconds"])?;
        let start = time(self.job, &["status", "startTime"]).unwrap_or(self.now);
        Some(after(start, seconds(limit)))
    }

    fn is_complete(&self) -> bool {
        match self.completions {
            Some(completions) => self.succeeded >= completions,
            None => self.succeeded > 0 && self.active.is_empty(),
        }
    }

    fn finish(
        &self,
        decision: &mut Decision,
        status: &mut Map<String, Value>,
        conditions: [&str; 2],
        reason: &str,
        message: &str,
    ) {
        for pod in &self.active {
            decision.delete(pod, Removal::Graceful);
        }
        put_count(status, "active", 0);
        status.insert("ready".into(), json!(0));
        status.insert("terminating".into(), json!(0));
        for kind in conditions {
            condition::set(status, &Condition { kind, status: "True", reason, message }, self.now);
        }
    }

    fn proceed(&self, decision: &mut Decision, status: &mut Map<String, Value>) {
        if condition::is_true(self.job, "Suspended") {
            let wanted = Condition {
                kind: "Suspended",
                status: "False",
                reason: "JobResumed",
                message: "Job resumed",
            };
            condition::set(status, &wanted, self.now);
            status.insert("startTime".into(), stamp(self.now).into());
        }
        let active = total(self.active.len());
        let wanted = match self.completions {
            Some(completions) => self.parallelism.min(completions.saturating_sub(self.succeeded)),
            None if self.succeeded > 0 => active.min(self.parallelism),
            None => self.parallelism,
        };
        let missing = usize::try_from(wanted.saturating_sub(active)).unwrap_or(0);
        let surplus = usize::try_from(active.saturating_sub(wanted)).unwrap_or(0);
        self.stop(decision, surplus);
        decision.wake_by(self.deadline());
        // Finished pods stay, so a job with endless completions would fill the store.
        let missing = missing.min(self.settings.max_pods_per_owner.saturating_sub(self.pods.len()));
        if missing == 0 {
            return;
        }
        match self.backoff_ends() {
            Some(later) if later > self.now => decision.wake_by(Some(later)),
            _ => self.start(decision, missing.min(BURST)),
        }
    }

    fn start(&self, decision: &mut Decision, missing: usize) {
        let labels = [
            ("batch.kubernetes.io/controller-uid", uid(self.job)),
            ("batch.kubernetes.io/job-name", name(self.job)),
            ("controller-uid", uid(self.job)),
            ("job-name", name(self.job)),
        ];
        let template = &self.job["spec"]["template"];
        let taken: HashSet<&str> = self.pods.iter().map(|pod| name(pod)).collect();
        let Some(done) = &self.done else {
            for pod_name in fresh_names(name(self.job), uid(self.job), &taken, missing) {
                decision.create(pod_from(self.job, template, &pod_name, &labels));
            }
            return;
        };
        let busy: HashSet<i64> = self.active.iter().filter_map(|pod| index(pod)).collect();
        let free = (0..self.completions.unwrap_or(0))
            .filter(|index| !done.contains(index) && !busy.contains(index))
            .take(missing);
        for index in free {
            let shown = index.to_string();
            let prefix = format!("{}-{shown}", name(self.job));
            let Some(pod_name) = (0u32..)
                .map(|attempt| suffixed(&prefix, &[uid(self.job), &shown, &attempt.to_string()]))
                .find(|candidate| !taken.contains(candidate.as_str()))
            else {
                continue;
            };
            let mut all = labels.to_vec();
            all.push((INDEX, &shown));
            let mut pod = pod_from(self.job, template, &pod_name, &all);
            let mut annotations = map(&pod, &["metadata", "annotations"]);
            annotations.insert(INDEX.into(), shown.as_str().into());
            pod["metadata"]["annotations"] = Value::Object(annotations);
            decision.create(pod);
        }
    }

    fn stop(&self, decision: &mut Decision, surplus: usize) {
        for pod in self.active.iter().rev().take(surplus) {
            decision.delete(pod, Removal::Graceful);
        }
    }

    /// The end of the pause after the last failure.
    fn backoff_ends(&self) -> Option<Timestamp> {
        let last = self.pods.iter().filter_map(|pod| failed_at(pod)).max()?;
        let doublings = u32::try_from(self.failed.saturating_sub(1).clamp(0, 16)).unwrap_or(16);
        let pause = self.settings.job_backoff.saturating_mul(1 << doublings).min(LONGEST_BACKOFF);
        Some(after(last, pause))
    }
}

fn index(pod: &Value) -> Option<i64> {
    annotation(pod, INDEX).parse().ok().filter(|index| *index >= 0)
}

fn is_crashing(pod: &Value) -> bool {
    items(pod, &["status", "containerStatuses"])
        .iter()
        .any(|container| at(container, &["state", "waiting", "reason"]) == "CrashLoopBackOff")
}

fn failed_at(pod: &Value) -> Option<Timestamp> {
    if text(pod, &["status", "phase"]) != "Failed" {
        return None;
    }
    items(pod, &["status", "containerStatuses"])
        .iter()
        .filter_map(|container| time(container, &["state", "terminated", "finishedAt"]))
        .max()
}
