//! What people and programs may see of a rollout, written now and then into the set's status.
//!
//! A view: decisions never rest on it, and its failure blocks nothing. The summary is written at most once a second, and
//! in sets of more than a thousand once in as many milliseconds as there are Applications, for everybody who follows the
//! set reads all of it; the list of all Applications, which is most of it, still more seldom. So what a rollout costs
//! grows with the number of Applications and not with its square.

use std::sync::Arc;
use std::time::Duration;

use baton_api::ApplicationSet;
use baton_api::application_set::{
    ApplicationSetApplicationStatus, ApplicationSetCondition, ConditionStatus, ProgressiveSyncCode,
};
use baton_api::conditions::{application_set as kind, reason};
use baton_api::edit::patch_between;
use baton_api::rollout_status::{Blocker, RolloutState, RolloutStatus};
use baton_hooks::Severity;
use baton_phases::Notice;
use baton_rollout::blocker::Reason;
use baton_rollout::machine::{Machine, PhaseStanding, Progress, Status};
use baton_rules::{Rule, holds};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::application_set::{condition, merged, say_the_same};
use crate::cache::Whole;

/// Least time between two writes,
const PAUSE: Duration = Duration::from_secs(1);
/// and for each Application, where that is more.
const PAUSE_PER_APPLICATION: Duration = Duration::from_millis(1);
/// How long nothing is tried again where a write was refused: twice as long each time,
const REFUSED: Duration = Duration::from_secs(5);
/// and at most.
const LONGEST_REFUSED: Duration = Duration::from_secs(300);
/// So many Applications are listed anew with every write.
const FEW: usize = 100;
/// Time per Application that a change of the list may wait for others.
const PATIENCE: Duration = Duration::from_millis(100);
/// What a set's object may take, its margin off.
const BYTES: usize = (1 << 20) - (96 << 10);
/// What the entries of `status.resources` may take in a set that is rolled out.
const RESOURCES_BYTES: usize = 512 << 10;
/// What one of them takes, names aside.
const RESOURCE_BYTES: usize = 160;

/// What an entry of `status.applicationStatus` takes, its texts aside.
const ENTRY_BYTES: usize = 200;
/// Longest message of an entry.
const MESSAGE: usize = 512;

/// What was shown, and when.
#[derive(Debug, Default)]
pub(super) struct View {
    written: Option<Instant>,
    /// When it was last made ready, whether or not something was to be written.
    looked: Option<Instant>,
    /// How many Applications there were then.
    size: u32,
    /// Since when the list differs from what is shown.
    stale_since: Option<Instant>,
    /// The open step and state that the list was last written for.
    stage: Option<(i64, String)>,
    /// How often in a row the API refused it, and until when nothing is tried again.
    refusals: u32,
    refused_until: Option<Instant>,
    /// The summary as it was last sent, and what the API kept of it: Argo CD's definitions keep nothing.
    sent: Option<(RolloutStatus, Option<RolloutStatus>)>,
}

/// What is to be shown.
pub(super) struct Shown {
    /// How many Applications there are, listed or not.
    total: usize,
    entries: Vec<ApplicationSetApplicationStatus>,
    rollout: RolloutStatus,
    progressing: ApplicationSetCondition,
    /// What is wrong with phases, if anything.
    invalid: Option<ApplicationSetCondition>,
}

/// What is to be written, and when to look again.
pub(super) struct Plan {
    pub(super) patch: Option<Value>,
    pub(super) wait: Option<Duration>,
}

// === impl View ===

impl View {
    /// What was to be written was not, since the set has changed.
    pub(super) fn unwritten(&mut self) {
        (self.written, self.stage) = (None, None);
    }

    /// What was to be written was refused: tells how long nothing is tried again, longer each time.
    pub(super) fn refused(&mut self) -> Duration {
        let pause = (REFUSED * (1 << self.refusals.min(16))).min(LONGEST_REFUSED);
        (self.refusals, self.refused_until) = (self.refusals + 1, Some(Instant::now() + pause));
        pause
    }

    /// What was to be written was, and the set is this now.
    pub(super) fn written(&mut self, shown: &Shown, set: &ApplicationSet) {
        (self.refusals, self.refused_until) = (0, None);
        self.sent = Some((shown.rollout.clone(), kept(set)));
    }

    /// The summary as it was last sent.
    pub(super) fn sent(&self) -> Option<&RolloutStatus> {
        self.sent.as_ref().map(|(sent, _)| sent)
    }

    /// Whether the summary is worth a write of its own. It is not where the same was sent before and came back as it is
    /// stored, nor where the API has kept nothing of it: it goes with other changes then, so that an API that comes to
    /// know it has it.
    fn is_news(&self, summary: &RolloutStatus, set: &ApplicationSet) -> bool {
        let Some((sent, answer)) = &self.sent else { return true };
        let stored = kept(set);
        *answer != stored || (stored.is_some() && sent != summary)
    }

    /// How long nothing may be written yet, so that nothing need be made ready.
    pub(super) fn rests(&self) -> Option<Duration> {
        let pause = PAUSE.max(PAUSE_PER_APPLICATION * self.size);
        let end = self.written.map(|at| at + pause).max(self.refused_until);
        let wait = end?.checked_duration_since(Instant::now())?;
        (!wait.is_zero()).then_some(wait)
    }

    /// Whether it is worth while to make it ready in the middle of a pass.
    pub(super) fn is_due(&self) -> bool {
        self.rests().is_none() && self.looked.is_none_or(|at| at.elapsed() >= PAUSE)
    }

    /// What is to be written now into the status of the set.
    pub(super) fn plan(&mut self, shown: &Shown, set: &Whole, now: Timestamp) -> Plan {
        let at = Instant::now();
        self.looked = Some(at);
        let fresh = std::iter::once(shown.progressing.clone()).chain(shown.invalid.clone());
        let conditions = conditions(set, fresh, now);
        let stage = (shown.rollout.step, shown.rollout.state.as_str().to_owned());
        let lists_differ = !lists_the_same(&shown.entries, &set.status.application_status);
        let summary = summary_patch(set, &shown.rollout);
        let news = summary.is_some() && self.is_news(&shown.rollout, set);
        let changed = lists_differ || news || !say_the_same(&conditions, &set.status.conditions);
        if !lists_differ {
            self.stale_since = None;
        }
        if !changed && holds(Rule::QuietViews) {
            return Plan { patch: None, wait: None };
        }
        let mut changes = Map::new();
        let mut wait = None;
        if lists_differ {
            let since = *self.stale_since.get_or_insert(at);
            let patience = PATIENCE * u32::try_from(shown.entries.len()).unwrap_or(u32::MAX);
            let due = since + patience;
            let much = differing(&shown.entries, &set.status.application_status) * 25 >= shown.entries.len();
            if shown.entries.len() <= FEW || much || self.stage.as_ref() != Some(&stage) || due <= at {
                changes.insert("applicationStatus".to_owned(), json!(shown.entries));
                self.stale_since = None;
                self.stage = Some(stage);
            } else {
                wait = Some(due - at);
            }
        }
        if !say_the_same(&conditions, &set.status.conditions) {
            changes.insert("conditions".to_owned(), json!(conditions));
        }
        if let Some(summary) = summary.filter(|_| news || !changes.is_empty()) {
            changes.insert("rollout".to_owned(), summary);
        }
        if !holds(Rule::QuietViews) {
            changes.insert("rollout".to_owned(), json!({"message": format!("as of {now}")}));
        }
        if changes.is_empty() {
            return Plan { patch: None, wait };
        }
        (self.written, self.size) = (Some(at), u32::try_from(shown.total).unwrap_or(u32::MAX));
        Plan { patch: Some(json!({ "status": changes })), wait }
    }
}

/// What a machine has to show in a set's status.
pub(super) fn shown(
    machine: &Machine,
    set: &Whole,
    generation: i64,
    notices: &[Notice],
    now: Timestamp,
) -> Shown {
    let mut all: Vec<(Arc<str>, Progress)> = machine.progress().collect();
    let unfinished = |progress: &Progress| progress.step.is_some() && progress.status != Status::Healthy;
    let step = all.iter().filter(|(_, one)| unfinished(one)).filter_map(|(_, one)| one.step).min();
    let total = all.len();
    let names: usize = all.iter().map(|(name, _)| name.len()).sum();
    let mut rollout = machine.status(now);
    rollout.observed_generation = generation;
    // Whoever takes over sees the pause later than it was first seen.
    let before = set.status.rollout.as_ref().filter(|before| before.state == RolloutState::Paused);
    if let (Some(now), Some(before)) =
        (&mut rollout.paused_at, before.and_then(|before| before.paused_at.as_ref()))
    {
        *now = before.clone();
    }
    if let Some(before) = set.status.rollout.as_ref().filter(|before| before.run == rollout.run) {
        rollout.blockers.iter_mut().for_each(|blocker| keep_since(blocker, &before.blockers));
    }
    let standing = machine.phase_standing();
    if standing == Some(&PhaseStanding::Unknown) && machine.head().run.finished.is_some() {
        keep_end(&mut rollout, set);
    }
    // Those that are done say the least, and are left out first.
    all.sort_by(|(a, one), (b, two)| {
        let done = |progress: &Progress| progress.status == Status::Healthy;
        (done(one), a).cmp(&(done(two), b))
    });
    let entries = all.into_iter().map(|(name, progress)| entry(&name, progress));
    let mut left = budget(set, &rollout, names / total.max(1));
    let mut entries: Vec<_> = entries
        .map_while(|entry| {
            left = left.checked_sub(bytes_of(&entry))?;
            Some(entry)
        })
        .collect();
    entries.sort_by(|a, b| a.application.cmp(&b.application));
    let mut notes = notes(&rollout.blockers);
    if machine.holds_back() {
        notes.push("what the ApplicationSet wants by now waits for the end of this run".to_owned());
    }
    if entries.len() < total {
        let more = total - entries.len();
        let note = format!("{more} of {total} Applications are not listed: the object would be too large");
        rollout.message = match rollout.message.as_str() {
            "" => note.clone(),
            message => format!("{message} ({note})"),
        };
        notes.push(note);
    }
    if let Some(PhaseStanding::Failed(why)) = standing.filter(|_| rollout.blockers.is_empty()) {
        notes.push(shortened(why.to_string()));
    }
    let progressing = noted(progressing(step, standing, &rollout.state), &notes);
    Shown { total, entries, rollout: as_stored(&rollout), progressing, invalid: invalid(notices) }
}

/// Whoever takes over knows how a run has ended before its phases have ruled: as it was told.
fn keep_end(rollout: &mut RolloutStatus, set: &ApplicationSet) {
    let ends = [RolloutState::Complete, RolloutState::Failed];
    let told = set.status.rollout.as_ref().filter(|told| told.run == rollout.run);
    let told = told.filter(|told| ends.contains(&told.state) && rollout.state == RolloutState::Progressing);
    if let Some(told) = told {
        (rollout.state, rollout.message) = (told.state.clone(), told.message.clone());
        rollout.finished_at = told.finished_at.clone();
    }
}

/// Whoever takes over sees what is in the way later than it came.
fn keep_since(blocker: &mut Blocker, before: &[Blocker]) {
    let same = |known: &&Blocker| known.reason == blocker.reason && known.object == blocker.object;
    let known = before.iter().find(same).and_then(|known| known.since.as_ref());
    if let (Some(since), Some(known)) = (&mut blocker.since, known) {
        *since = known.clone().min(since.clone());
    }
}

/// Whether another run, step or state is told: not by whom it was told before, if that was us.
pub(super) fn tells_otherwise(before: &ApplicationSet, after: &ApplicationSet) -> bool {
    let told = |set: &ApplicationSet| {
        set.status
            .rollout
            .as_ref()
            .map(|rollout| (rollout.run, rollout.step, rollout.state.as_str().to_owned()))
    };
    told(before) != told(after)
}

/// How many of a set's Applications may be listed in `status.resources`, so that there is room for the rollout.
pub(crate) fn listable<'a>(names: impl Iterator<Item = &'a str>, namespace: &str) -> usize {
    let mut left = RESOURCES_BYTES;
    let fits = |name: &&str| {
        let bytes = RESOURCE_BYTES + namespace.len() + name.len();
        left.checked_sub(bytes).inspect(|rest| left = *rest).is_some()
    };
    names.take_while(fits).count()
}

/// The patch that tells of an error first, if it is not told already. The rest of the view stays as it was: as it is
/// stored, or where the API does not keep it, as it was sent.
pub(super) fn troubled(
    set: &ApplicationSet,
    sent: Option<&RolloutStatus>,
    error: &str,
    since: Timestamp,
    now: Timestamp,
) -> Option<Value> {
    let mut rollout = kept(set).or_else(|| sent.cloned()).unwrap_or_default();
    let reason = Reason::ApiError;
    let message: String = error.chars().take(MESSAGE).collect();
    let before = rollout.blockers.clone();
    rollout.blockers.retain(|blocker| blocker.reason != reason.as_str());
    let mut blocker = Blocker {
        reason: reason.as_str().to_owned(),
        message: message.clone(),
        since: Some(Time(since)),
        remedy: reason.remedy().to_owned(),
        count: 1,
        ..Blocker::default()
    };
    keep_since(&mut blocker, &before);
    rollout.blockers.insert(0, blocker);
    rollout.message = format!("{}: {message}", reason.as_str());
    let told = set.status.conditions.iter().find(|condition| condition.kind == kind::ROLLOUT_PROGRESSING);
    let plain = match told {
        Some(told) => ApplicationSetCondition { message: without_notes(&told.message), ..told.clone() },
        None => condition(
            kind::ROLLOUT_PROGRESSING,
            ConditionStatus::True,
            reason::MODIFIED,
            "ApplicationSet Rollout has not begun",
        ),
    };
    let invalid =
        set.status.conditions.iter().find(|known| known.kind == kind::INVALID_PHASE_CONFIG).cloned();
    let fresh = std::iter::once(noted(plain, &notes(&rollout.blockers))).chain(invalid);
    let conditions = conditions(set, fresh, now);
    let told = say_the_same(&conditions, &set.status.conditions);
    let summary = summary_patch(set, &as_stored(&rollout));
    // Where the API keeps no summary, the condition tells whether it was sent.
    if told && (summary.is_none() || kept(set).is_none()) {
        return None;
    }
    let mut changes = Map::new();
    changes.extend(summary.map(|summary| ("rollout".to_owned(), summary)));
    changes.extend((!told).then(|| ("conditions".to_owned(), json!(conditions))));
    Some(json!({ "status": changes }))
}

/// What is in the way of the whole set, one line each. What is said of one Application stands in its own entry; these
/// would be told nowhere but in `status.rollout`, which Argo CD's definitions do not keep.
fn notes(blockers: &[Blocker]) -> Vec<String> {
    let of_one = |blocker: &&Blocker| {
        let object = blocker.object.as_str();
        let of_source = blocker.reason == Reason::RevisionUnresolved.as_str();
        !object.is_empty() && !object.starts_with("step ") && !of_source
    };
    let whole = blockers.iter().filter(|blocker| !of_one(blocker));
    whole.map(|blocker| shortened(format!("{}: {}", blocker.reason, blocker.message))).collect()
}

/// A condition whose message ends with these notes.
fn noted(condition: ApplicationSetCondition, notes: &[String]) -> ApplicationSetCondition {
    let parts = std::iter::once(&condition.message).chain(notes).map(String::as_str).collect::<Vec<_>>();
    ApplicationSetCondition { message: parts.join("; "), ..condition }
}

fn without_notes(message: &str) -> String {
    message.split("; ").next().unwrap_or_default().to_owned()
}

/// Whether something of a rollout is left in the status of a set.
pub(super) fn has_remains(set: &ApplicationSet) -> bool {
    !set.status.application_status.is_empty() || kept(set).is_some()
}

/// The patch that takes what is left of a rollout out of a set's status.
pub(super) fn cleared(set: &ApplicationSet) -> Value {
    let rollout = match is_all(set) {
        true => Value::Null,
        false => summary_patch(set, &RolloutStatus::default()).unwrap_or_default(),
    };
    json!({"status": {"applicationStatus": null, "rollout": rollout}})
}

/// Whether nothing would be left without the rollout.
fn is_all(set: &ApplicationSet) -> bool {
    set.status.rollout.as_ref().is_none_or(|rollout| rollout.deletion.is_none())
}

/// The summary that is stored, if anything is. What is said of a deletion is not part of it.
fn kept(set: &ApplicationSet) -> Option<RolloutStatus> {
    let summary = set.status.rollout.as_ref()?;
    Some(RolloutStatus { deletion: None, ..summary.clone() }).filter(|kept| *kept != RolloutStatus::default())
}

/// The merge patch that makes the summary in a set's status another one. What is said of a deletion is not part of it.
fn summary_patch(set: &ApplicationSet, summary: &RolloutStatus) -> Option<Value> {
    let without = |rollout: &RolloutStatus| json!(RolloutStatus { deletion: None, ..rollout.clone() });
    let stored = set.status.rollout.as_ref().map(without).unwrap_or_else(|| json!({}));
    patch_between(&stored, &stored, &without(summary))
}

fn entry(name: &str, progress: Progress) -> ApplicationSetApplicationStatus {
    let status = match progress.status {
        Status::Waiting => ProgressiveSyncCode::Waiting,
        Status::Pending => ProgressiveSyncCode::Pending,
        Status::Progressing => ProgressiveSyncCode::Progressing,
        Status::Healthy => ProgressiveSyncCode::Healthy,
    };
    ApplicationSetApplicationStatus {
        application: name.to_owned(),
        message: shortened(progress.message),
        status,
        step: progress.step.map_or_else(|| "-1".to_owned(), |step| (step + 1).to_string()),
        target_revisions: progress.revisions.iter().map(|revision| revision.to_string()).collect(),
        last_transition_time: Timestamp::from_second(progress.since.as_second()).ok().map(Time),
        resource_version: match progress.version {
            0 => String::new(),
            version => version.to_string(),
        },
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE {
        message.truncate(message.floor_char_boundary(MESSAGE));
        message.push('…');
    }
    message
}

/// What an entry takes, at most as a rule: quotation marks in its message may make it a little more.
fn bytes_of(entry: &ApplicationSetApplicationStatus) -> usize {
    let revisions: usize = entry.target_revisions.iter().map(|revision| revision.len() + 3).sum();
    ENTRY_BYTES + entry.application.len() + entry.message.len() * 11 / 10 + revisions
}

/// How many bytes the list of Applications may take.
fn budget(set: &Whole, rollout: &RolloutStatus, name: usize) -> usize {
    let bytes = |value: serde_json::Result<String>| value.map_or(0, |text| text.len());
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let resources = set.listed.count * (RESOURCE_BYTES + namespace.len() + name);
    let fixed = bytes(serde_json::to_string(&set.spec)) * 2
        + bytes(serde_json::to_string(&set.metadata))
        + bytes(serde_json::to_string(&set.status.conditions))
        + bytes(serde_json::to_string(rollout));
    BYTES.saturating_sub(resources + fixed)
}

/// As it comes back from the API, which keeps no parts of seconds.
fn as_stored(rollout: &RolloutStatus) -> RolloutStatus {
    let stored = serde_json::to_value(rollout).and_then(serde_json::from_value);
    stored.unwrap_or_else(|_| rollout.clone())
}

fn progressing(
    step: Option<usize>,
    phases: Option<&PhaseStanding>,
    state: &RolloutState,
) -> ApplicationSetCondition {
    let kind = kind::ROLLOUT_PROGRESSING;
    let open = matches!(phases, Some(PhaseStanding::UnderWay | PhaseStanding::Unknown));
    let failed = match phases {
        Some(PhaseStanding::Failed(_)) => true,
        Some(PhaseStanding::Unknown) => *state == RolloutState::Failed,
        Some(PhaseStanding::Done | PhaseStanding::UnderWay) | None => false,
    };
    match step {
        // Nothing goes on by itself, and it is not done.
        _ if failed => {
            let message = "ApplicationSet Rollout has failed";
            condition(kind, ConditionStatus::False, reason::ROLLOUT_ERROR, message)
        }
        Some(step) => {
            let message = format!("ApplicationSet is performing rollout of step {}", step + 1);
            condition(kind, ConditionStatus::True, reason::MODIFIED, &message)
        }
        None if open && *state != RolloutState::Complete => {
            let message = "ApplicationSet is performing rollout of its phases";
            condition(kind, ConditionStatus::True, reason::MODIFIED, message)
        }
        None => {
            let message = "ApplicationSet Rollout has completed";
            condition(kind, ConditionStatus::False, reason::ROLLOUT_COMPLETE, message)
        }
    }
}

/// What people should know of phases.
fn invalid(notices: &[Notice]) -> Option<ApplicationSetCondition> {
    let first = notices.iter().find(|notice| notice.severity == Severity::Error).or(notices.first())?;
    let status = match first.severity {
        Severity::Error => ConditionStatus::True,
        Severity::Warning => ConditionStatus::False,
    };
    let lines: Vec<&str> = notices.iter().map(|notice| notice.message.as_str()).collect();
    let message = shortened(lines.join("; "));
    Some(condition(kind::INVALID_PHASE_CONFIG, status, first.reason, &message))
}

/// The conditions of a set with others of the rollout.
fn conditions(
    set: &ApplicationSet,
    fresh: impl IntoIterator<Item = ApplicationSetCondition>,
    now: Timestamp,
) -> Vec<ApplicationSetCondition> {
    let ours = [kind::ROLLOUT_PROGRESSING, kind::INVALID_PHASE_CONFIG];
    let replaced = |condition: &ApplicationSetCondition| ours.contains(&condition.kind.as_str());
    merged(&set.status.conditions, replaced, fresh, now)
}

fn lists_the_same(a: &[ApplicationSetApplicationStatus], b: &[ApplicationSetApplicationStatus]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| says_the_same(a, b))
}

/// How many entries are new, or another than before.
fn differing(a: &[ApplicationSetApplicationStatus], b: &[ApplicationSetApplicationStatus]) -> usize {
    let mut b = b.iter().peekable();
    let mut count = 0;
    for entry in a {
        while b.next_if(|known| known.application < entry.application).is_some() {
            count += 1;
        }
        let same = b.next_if(|known| known.application == entry.application);
        count += usize::from(!same.is_some_and(|known| says_the_same(known, entry)));
    }
    count + b.count()
}

fn says_the_same(a: &ApplicationSetApplicationStatus, b: &ApplicationSetApplicationStatus) -> bool {
    (&a.application, &a.status, &a.step, &a.message, &a.target_revisions)
        == (&b.application, &b.status, &b.step, &b.message, &b.target_revisions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::written;
    use baton_api::application_status::{HealthCode, SyncCode};
    use baton_rollout::machine::{Control, Member, Wanted};
    use baton_rollout::steps::Steps;

    fn name(number: usize) -> String {
        format!("an-application-with-a-usual-name-{number:05}")
    }

    fn machine(count: usize, missing: usize) -> Machine {
        let steps = serde_json::from_value::<Vec<_>>(json!([{}])).expect("steps");
        let member = Member {
            step: Some(0),
            spec: None,
            sources: Vec::new(),
            self_heal: false,
            fault: None,
            back: None,
        };
        let wanted = Wanted {
            set: "uid".into(),
            generation: 1,
            steps: Steps::read(&steps).0,
            members: (missing..count).map(|number| (name(number).into(), member.clone())).collect(),
            frozen: None,
            fuse: None,
            keeps_leavers: false,
            control: Control::default(),
        };
        let mut machine = Machine::new(None);
        machine.wants(wanted, Timestamp::UNIX_EPOCH);
        machine.decide(Timestamp::UNIX_EPOCH);
        machine
    }

    fn set(resources: usize) -> ApplicationSet {
        let mut set = ApplicationSet::default();
        (set.metadata.name, set.metadata.namespace) = (Some("fleet".into()), Some("argocd".into()));
        set.status.resources = (0..resources)
            .map(|number| written(&name(number), "argocd", SyncCode::OutOfSync, HealthCode::Progressing))
            .collect();
        set
    }

    #[test]
    fn a_set_of_ten_thousand_stays_under_a_mebibyte() {
        let mut object =
            set(listable((0..10_000).map(name).collect::<Vec<_>>().iter().map(String::as_str), "argocd"));
        let shown = shown(&machine(10_000, 0), &Whole::new(object.clone()), 1, &[], Timestamp::UNIX_EPOCH);
        assert!(!shown.entries.is_empty() && shown.entries.len() < 10_000);
        let left = format!("{} of 10000 Applications are not listed", 10_000 - shown.entries.len());
        assert!(shown.rollout.message.contains(&left), "{}", shown.rollout.message);
        object.status.application_status = shown.entries;
        object.status.rollout = Some(shown.rollout);
        let bytes = serde_json::to_string(&object).expect("JSON").len();
        assert!(bytes < 1 << 20, "{bytes} bytes");
    }

    /// Writes a view as often as there is something to write, to an API that keeps so much of a summary; tells how often.
    async fn writes(machines: &[&Machine], keep: fn(RolloutStatus) -> Option<RolloutStatus>) -> usize {
        let (now, mut view, mut object, mut count) = (Timestamp::UNIX_EPOCH, View::default(), set(0), 0);
        for machine in machines {
            tokio::time::advance(PAUSE).await;
            let before = Whole::new(object.clone());
            let shown = shown(machine, &before, 1, &[], now);
            let Some(patch) = view.plan(&shown, &before, now).patch else { continue };
            count += 1;
            assert!(
                patch["status"].get("rollout").is_some(),
                "what an API may come to know is sent: {patch}"
            );
            object.status.application_status = shown.entries.clone();
            object.status.conditions = conditions(&before, [shown.progressing.clone()], now);
            object.status.rollout = keep(shown.rollout.clone());
            view.written(&shown, &object);
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_summary_that_the_api_does_not_keep_is_not_sent_for_ever() {
        let (one, other) = (machine(3, 0), machine(3, 1));
        let in_part = |sent: RolloutStatus| Some(RolloutStatus { steps: Vec::new(), ..sent });
        for keep in [Some, |_| None, in_part] {
            assert_eq!(writes(&[&one; 5], keep).await, 1);
            assert_eq!(writes(&[&one, &one, &other, &other, &one], keep).await, 3);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_summary_that_somebody_took_away_is_sent_again() {
        let (now, mut view, mut object) = (Timestamp::UNIX_EPOCH, View::default(), set(0));
        let machine = machine(3, 0);
        let shown = shown(&machine, &Whole::new(object.clone()), 1, &[], now);
        object.status.application_status = shown.entries.clone();
        object.status.conditions = conditions(&object, [shown.progressing.clone()], now);
        object.status.rollout = Some(shown.rollout.clone());
        view.written(&shown, &object);
        assert!(view.plan(&shown, &Whole::new(object.clone()), now).patch.is_none());
        object.status.rollout = None;
        assert!(view.plan(&shown, &Whole::new(object), now).patch.is_some());
    }

    #[test]
    fn an_error_is_told_once_in_summary_and_condition() {
        let now = Timestamp::UNIX_EPOCH;
        let mut object = set(0);
        let paused = Blocker { reason: "Paused".into(), message: "held".into(), ..Blocker::default() };
        let sent = RolloutStatus { blockers: vec![paused], ..RolloutStatus::default() };
        let patch = troubled(&object, Some(&sent), "no; never", now, now).expect("news");
        assert_eq!(patch["status"]["rollout"]["message"], "ApiError: no; never");
        let told =
            serde_json::from_value::<Vec<ApplicationSetCondition>>(patch["status"]["conditions"].clone());
        object.status.conditions = told.expect("conditions");
        let message = "ApplicationSet Rollout has not begun; ApiError: no; never; Paused: held";
        assert_eq!(object.status.conditions[0].message, message);
        assert_eq!(troubled(&object, Some(&sent), "no; never", now, now), None, "nothing else is kept");
        let patch = troubled(&object, Some(&sent), "another", now, now).expect("news");
        let message = "ApplicationSet Rollout has not begun; ApiError: another; Paused: held";
        assert_eq!(patch["status"]["conditions"][0]["message"], message);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_list_is_not_written_for_every_change_in_it() {
        let now = Timestamp::UNIX_EPOCH;
        let mut view = View::default();
        let mut object = set(0);
        let mut write = |machine: &Machine, object: &mut ApplicationSet| {
            let set = Whole::new(object.clone());
            let shown = shown(machine, &set, 1, &[], now);
            let plan = view.plan(&shown, &set, now);
            let patch = plan.patch.unwrap_or_default();
            if patch["status"].get("applicationStatus").is_some() {
                object.status.application_status = shown.entries;
                return (true, plan.wait);
            }
            (false, plan.wait)
        };
        assert!(write(&machine(1000, 0), &mut object).0);
        tokio::time::advance(PAUSE).await;
        let (listed, wait) = write(&machine(1000, 3), &mut object);
        assert_eq!((listed, wait), (false, Some(PATIENCE * 997)));
        tokio::time::advance(PAUSE).await;
        assert!(write(&machine(1000, 100), &mut object).0, "many changes are worth it");
        tokio::time::advance(PAUSE).await;
        assert!(!write(&machine(1000, 101), &mut object).0);
        tokio::time::advance(PATIENCE * 1000).await;
        assert!(write(&machine(1000, 101), &mut object).0, "it does not wait for ever");
    }
}
