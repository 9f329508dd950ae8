//! What people see of a rollout: the shapes of the API.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// How many Applications stand how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Counts {
    /// All.
    pub total: usize,
    /// Those that are done.
    pub done: usize,
    /// Those under way.
    pub updating: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those whose turn has not come.
    pub waiting: usize,
}

/// A rollout in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RolloutSummary")]
pub struct Summary {
    /// Name of the set.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its project.
    pub project: String,
    /// `AllAtOnce`, `RollingSync`, `Phases` or `RollingSync+Phases`.
    pub strategy: &'static str,
    /// How far it is.
    pub state: State,
    /// In one sentence: what it waits for, or what is well.
    pub reason: String,
    /// Number of the run; 0 where nobody counts them.
    pub run: i64,
    /// Short form of the first revision.
    pub revision: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub finished_at: Option<Timestamp>,
    /// How many Applications stand how.
    pub counts: Counts,
    /// How many approvals it waits for.
    pub approvals: usize,
    /// Health of the whole.
    pub health: String,
}

/// How far a rollout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[schemars(rename = "RolloutState")]
pub enum State {
    /// Nothing to do.
    Idle,
    /// It goes on by itself.
    Progressing,
    /// A person holds it.
    Paused,
    /// It waits for a person.
    Waiting,
    /// It failed.
    Failed,
    /// A person ended it.
    Aborted,
    /// Applications are put back.
    RollingBack,
    /// It is done.
    Complete,
    /// The set is being deleted.
    Deleting,
    /// The set cannot be acted upon.
    Invalid,
    /// Of a run that is over: another began before all had what it brought.
    Superseded,
}

/// A rollout with all that is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// In a line.
    #[serde(flatten)]
    pub summary: Summary,
    /// Uid of the set.
    pub uid: String,
    /// Version of the set.
    pub resource_version: String,
    /// What the controller says of it.
    pub message: String,
    /// What revisions were resolved to.
    pub revisions: Vec<Revision>,
    /// How often it was begun anew.
    pub restarts: i64,
    /// When it is looked at again without an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub next_check_at: Option<Timestamp>,
    /// When it was paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub paused_at: Option<Timestamp>,
    /// Steps and phases, in order.
    pub lanes: Vec<Lane>,
    /// What it waits for, the first first.
    pub blockers: Vec<Blocker>,
    /// Conditions of the set.
    pub conditions: Vec<Condition>,
    /// What people can do, and what they cannot and why.
    pub actions: Vec<Offer>,
    /// The command that shows the same.
    pub command: String,
    /// The present run and those before it, as far as the set and its Applications tell of them; the newest first.
    pub history: Vec<Run>,
}

/// A run, as far as the set and its Applications still tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its number; 0 where it is not known, as in phases and of runs that are long over.
    pub run: i64,
    /// The place of the generator whose phases it went through, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<i64>,
    /// Short form of the first revision, where it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub finished_at: Option<Timestamp>,
    /// How far it is.
    pub state: State,
    /// How many Applications had what it brought in the end, where only they tell of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<usize>,
    /// Of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

/// What a revision was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResolvedRevisionOfRollout")]
pub struct Revision {
    /// URL of the repository.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// The revision asked for.
    pub target_revision: String,
    /// What it is.
    pub revision: String,
}

/// A step or a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// `step-1`, `phase-0-1` or `unmatched`.
    pub id: String,
    /// `step`, `phase` or `unmatched`.
    pub kind: &'static str,
    /// For people.
    pub title: String,
    /// Whom it takes, in words.
    pub selector: String,
    /// How far it is.
    pub state: LaneState,
    /// How many Applications stand how.
    pub counts: Counts,
    /// How many may be under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_update: Option<i64>,
    /// When it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub opened_at: Option<Timestamp>,
    /// Until when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub wait_until: Option<Timestamp>,
    /// What it waits for, or why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What stands before, in and after it.
    pub gates: Vec<Gate>,
    /// Its Applications, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<Target>>,
}

/// How far a step or a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub enum LaneState {
    /// Not open yet.
    Pending,
    /// Open.
    Open,
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Its Applications are put back.
    RollingBack,
    /// They were put back.
    RolledBack,
    /// There is nothing to do in it.
    Skipped,
}

/// A hook, a check or a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// `preHook`, `check`, `postHook`, `wait` or `previous`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// `Pending`, `Running`, `Passed`, `Failed` or `Skipped`.
    pub state: &'static str,
    /// How often it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// How long the last attempt took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// An Application on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The cluster it lives in.
    pub cluster: String,
    /// How far it is.
    pub state: TargetState,
    /// How it fares.
    pub health: String,
    /// Whether it is as its source says.
    pub sync: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// The revision it has, short.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The revision it is to have, short.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// In words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How far an Application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub enum TargetState {
    /// Its turn has not come.
    Waiting,
    /// It may start.
    Pending,
    /// It changes.
    Progressing,
    /// It is done.
    Healthy,
    /// It failed.
    Failed,
    /// It is being deleted.
    Deleting,
}

/// Something that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// In one word.
    pub reason: String,
    /// What it is about.
    pub object: String,
    /// In words.
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// What ends it.
    pub unblocks: String,
    /// When it is looked at again without an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub next_check_at: Option<Timestamp>,
}

/// A condition of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RolloutCondition")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: String,
    /// In one word.
    pub reason: String,
    /// In words.
    pub message: String,
    /// When it changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_transition_time: Option<Timestamp>,
}

/// Something people can ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Offer {
    /// What.
    pub action: &'static str,
    /// Whether the caller may.
    pub allowed: bool,
    /// Whether it makes sense now.
    pub sensible: bool,
    /// Which right is missing, or why it makes no sense.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The lanes it would act on, where it is about phases: one word is for every generator that it makes sense for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
}

// === impl Counts ===

impl Counts {
    /// Counts Applications.
    pub fn of<'t>(targets: impl IntoIterator<Item = &'t Target>) -> Counts {
        let mut counts = Counts::default();
        for target in targets {
            counts.total += 1;
            match target.state {
                TargetState::Healthy => counts.done += 1,
                TargetState::Pending | TargetState::Progressing | TargetState::Deleting => {
                    counts.updating += 1
                }
                TargetState::Failed => counts.failed += 1,
                TargetState::Waiting => counts.waiting += 1,
            }
        }
        counts
    }
}

// === impl State ===

impl State {
    /// The order of a fleet: who needs a person first.
    pub fn urgency(self) -> u8 {
        match self {
            State::Failed | State::Invalid => 0,
            State::Waiting | State::Paused => 1,
            State::Progressing | State::RollingBack | State::Deleting => 2,
            State::Idle | State::Aborted | State::Complete | State::Superseded => 3,
        }
    }
}
