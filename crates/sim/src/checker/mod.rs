//! Judges a history: the control plane's writes, the members' own state, and what is in git. Nothing else.
//!
//! The rules are written here a second time on purpose; nothing of the product is asked, and nothing a controller says of
//! itself is believed but what the API stored. A controller cannot know of a change the moment it is made: where it
//! matters which version of the set it went by, every version that was in force within [`Case::slack`] is tried, and only
//! what none of them allows is a violation.

mod approval;
mod budget;
mod deletion;
mod done;
mod failures;
mod gated;
mod held;
mod history;
mod hooks;
mod openings;
mod order;
mod passed;
mod progress;
mod rollback;
mod roster;
mod sources;
mod starts;
mod told;
mod wanted;

#[cfg(test)]
mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub use self::hooks::HookCall;
pub use self::starts::starts;

/// Under which name the phase of an Application stands among its labels, where somebody else's set is made up. Whoever is in
/// no phase has an empty one, and whom phases have no say in has none.
pub(crate) const PHASE: &str = "sim-phase";
/// Says of a set that some of its hooks and checks do not pass.
pub(crate) const FAILING: &str = "sim.baton.dev/failing-hooks";

/// What a write did to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was not there before.
    Added,
    /// It was there before and still is.
    Modified,
    /// It is no longer there.
    Deleted,
}

/// One write.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When it was made.
    pub at: Timestamp,
    /// Where: `control`, or the name of a member.
    pub cluster: Arc<str>,
    /// Plural name of the kind with its group.
    pub resource: Arc<str>,
    /// Name of the object.
    pub name: Arc<str>,
    /// What it did.
    pub change: Change,
    /// The object after it; its last state where it was deleted.
    pub object: Value,
}

/// A branch: URL of its repository, and its name.
pub type Branch = (String, String);

/// What is in git.
#[derive(Debug, Clone, Default)]
pub struct Git {
    /// By commit and directory: what a member shows once it has it.
    pub contents: BTreeMap<String, BTreeMap<String, Shown>>,
    /// Commits and directories whose workloads never become ready.
    pub broken: BTreeSet<(String, String)>,
    /// What each branch came to point to, and when; in order.
    pub pushes: Vec<(Timestamp, Branch, String)>,
    /// What else a commit may be called: the ids of its tags, the beginning of its own.
    pub aliases: BTreeMap<String, String>,
}

/// What a member shows once it has a directory of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Name of the ConfigMap that shows it.
    pub object: String,
    /// What it shows.
    pub text: String,
    /// Whether there is a Deployment of the same name that runs it.
    pub workload: bool,
}

/// A history to judge.
#[derive(Debug)]
pub struct Case<'h> {
    /// Every write, in order.
    pub entries: &'h [Entry],
    /// What is in git.
    pub git: &'h Git,
    /// By URL of their API: the names of members.
    pub members: BTreeMap<String, String>,
    /// Name of the set.
    pub set: &'h str,
    /// By name, the Applications that the set asks for at all times, where its generators are not lists that the judge
    /// can read itself.
    pub wanted: Option<&'h BTreeMap<String, Value>>,
    /// What people deleted themselves: when, where, and the object's name.
    pub by_people: &'h [(Timestamp, String, String)],
    /// How late a controller may know of a change, or carry out what it decided on.
    pub slack: SignedDuration,
    /// How long a controller may take from what it read to what it writes.
    pub moment: SignedDuration,
    /// How far the clocks of two leaders are apart: a wait that one began and the other ends is so much shorter, or longer.
    pub apart: SignedDuration,
    /// Whether nothing was written for a while in the end, so that what is not done now never will be.
    pub ended: bool,
    /// The calls of hooks and checks, in the order they came.
    pub calls: &'h [HookCall],
    /// Every write to the record of good states, in order.
    pub good: &'h [Entry],
    /// Whether people leave a phase that has failed as it is, to the end.
    pub left: bool,
    /// Whether the API refuses what is shown of a rollout: what it waits for is then told nowhere.
    pub blind: bool,
}

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant: `I1` to `I7`.
    pub invariant: &'static str,
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}: {}", self.invariant, self.at.strftime("%H:%M:%S%.3f"), self.text)
    }
}

/// Everything that went against I1 to I6.
pub fn violations(case: &Case<'_>) -> Vec<Violation> {
    let history = history::History::new(case.entries);
    let sets = wanted::Sets::read(case, &history);
    let phasing = told::Phasing::read(case, &history);
    let starts = starts::starts(case.entries);
    let runs = order::Runs::read(case, &history, &starts);
    let mut found = order::violations(case, &history, (&sets, &phasing), &starts, &runs);
    found.extend(openings::violations(case, &history, (&sets, &phasing), &runs));
    found.extend(budget::violations(case, &history, (&sets, &phasing), (&starts, &runs)));
    found.extend(deletion::violations(case, &history, &sets));
    found.extend(approval::violations(case, &history));
    found.extend(hooks::violations(case, &history));
    found.extend(gated::violations(case, &history, (&sets, &phasing), &starts));
    found.extend(failures::violations(case, &history, (&sets, &phasing), &starts));
    found.extend(rollback::violations(case, &history, &phasing, &starts));
    found.extend(progress::violations(case, &history, &sets, &phasing));
    found.extend(held::violations(case, &history, &starts));
    found.sort_by_key(|violation| violation.at);
    found
}

/// I7: nothing is written once inputs are frozen. `last` is the last write there was, `since` when it had to be quiet.
pub fn is_quiet(last: Option<(Timestamp, String)>, since: Timestamp) -> Option<Violation> {
    let (at, what) = last.filter(|(at, _)| *at > since)?;
    let text = match since == Timestamp::MIN {
        true => format!("it never came to rest; written last: {what}"),
        false => format!("written though everything had come to rest at {since}: {what}"),
    };
    Some(Violation { invariant: "I7", at, text })
}

impl Case<'_> {
    /// Whether it was people who deleted this.
    fn is_by_people(&self, entry: &Entry) -> bool {
        self.by_people.iter().any(|(at, cluster, name)| {
            *at == entry.at && **cluster == *entry.cluster && **name == *entry.name
        })
    }
}

/// A text in an object; empty where there is none.
fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is_null(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_none_or(Value::is_null)
}

/// Whether an operation waits or runs.
fn is_busy(app: &Value) -> bool {
    !is_null(app, "/operation")
        || matches!(text(app, "/status/operationState/phase"), "Running" | "Terminating")
}

fn annotation<'v>(object: &'v Value, name: &str) -> &'v str {
    object["metadata"]["annotations"][name].as_str().unwrap_or_default()
}
