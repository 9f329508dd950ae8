//! How often things happened in a world, and what is known to happen, so that nothing goes untried unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use baton_rollout::blocker::Reason;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::action::{ACTIONS, PHASE_ACTIONS};
use crate::checker::{self, Change, Entry};
use crate::receiver::Fate;
use crate::wire::{Fault, Pattern};

/// What may become of a run and of its steps.
const COURSES: [&str; 6] =
    ["run begun", "run superseded", "run finished", "run aborted", "step opened", "steps closed again"];
/// Writes that are intended, by the letters the head has for them.
const INTENTS: [(char, &str); 8] = [
    ('a', "Arm"),
    ('r', "Refresh"),
    ('R', "HardRefresh"),
    ('s', "Spec"),
    ('o', "Start"),
    ('h', "Heal"),
    ('t', "Terminate"),
    ('f', "Fence"),
];
/// How Applications come to be done, by the letters the head has for it.
const DONE: [(char, &str); 5] =
    [('d', "Synced"), ('u', "Unchanged"), ('o', "Override"), ('s', "Skipped"), ('t', "Tolerated")];
/// What may become of a phase.
const PHASE_STATES: [&str; 12] = [
    "Pending",
    "PreHooks",
    "Deploying",
    "Checking",
    "PostHooks",
    "Waiting",
    "Complete",
    "Skipped",
    "Failed",
    "Aborted",
    "RollingBack",
    "RolledBack",
];
/// What may become of the phases of a generator as a whole, where no phase is in that state.
const ROLLOUT_STATES: [&str; 1] = ["Paused"];
/// How commits are named where not by themselves.
const NAMES: [&str; 2] = ["tag", "beginning"];
/// How Applications go.
const GOING: [&str; 2] = ["let go", "gone"];
/// What may be done about the failure of a phase.
const FAILURES: [&str; 4] = ["stop", "rollback", "continue", "abort"];
/// Who patterns are counted for: the two controllers, and what each of them does beside.
const SETS: &str = "Sets";
pub(crate) const APPLICATIONS: &str = "Applications";
const APPROVALS: &str = "Approvals";
const PHASES: &str = "Phases";

/// The name a pattern is counted by.
pub(crate) fn pattern(pattern: Pattern, who: &str) -> String {
    format!("pattern: {}, {who}", pattern.words())
}

/// Everything that every build must have tried: each fault, each pattern on each controller, and each action.
pub fn demanded() -> Vec<String> {
    let faults = Fault::ALL.iter().map(|fault| format!("fault: {}", fault.words()));
    let patterns = Pattern::ALL
        .into_iter()
        .flat_map(|each| [SETS, APPLICATIONS, APPROVALS, PHASES].map(|who| pattern(each, who)));
    let actions = ACTIONS.iter().chain(&PHASE_ACTIONS).map(|action| format!("action: {action}"));
    let answers = Fate::ALL.into_iter().map(answered);
    faults.chain(patterns).chain(actions).chain(answers).chain(happens()).collect()
}

/// The name that an answer to a hook or a check is counted by.
pub(crate) fn answered(fate: Fate) -> String {
    format!("answer: {}", fate.words())
}

/// What may happen to a run, and what it may wait for.
fn happens() -> impl Iterator<Item = String> {
    let courses = COURSES.iter().map(|course| format!("transition: {course}"));
    let intents = INTENTS.iter().map(|(_, intent)| format!("transition: intent {intent}"));
    let done = DONE.iter().map(|(_, done)| format!("transition: done {done}"));
    let blockers = Reason::ALL.iter().map(|reason| format!("blocker: {}", reason.as_str()));
    let failures = FAILURES.iter().map(|action| failure(action));
    let phases = PHASE_STATES.iter().chain(&ROLLOUT_STATES).map(|state| phase_state(state));
    let names = NAMES.iter().map(|name| named(name));
    let going = GOING.iter().map(|how| gone(how));
    courses.chain(intents).chain(done).chain(blockers).chain(failures).chain(phases).chain(going).chain(names)
}

/// The name that a commit's being told by another name is counted by.
fn named(how: &str) -> String {
    format!("commit told by its {how}")
}

/// How often Applications told of commits otherwise than by their whole id.
pub(crate) fn names(entries: &[Entry], aliases: &BTreeMap<String, String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    if aliases.is_empty() {
        return counts;
    }
    for entry in entries.iter().filter(|entry| &*entry.resource == "applications.argoproj.io") {
        let told = entry.object.pointer("/status/sync/revisions").and_then(Value::as_array);
        for revision in told.into_iter().flatten().filter_map(Value::as_str) {
            if let Some(commit) = aliases.get(revision) {
                let how = NAMES[usize::from(commit.starts_with(revision))];
                *counts.entry(named(how)).or_default() += 1;
            }
        }
    }
    counts
}

/// The name that what was done about a failed phase is counted by.
fn failure(action: &str) -> String {
    format!("failed phase: {action}")
}

/// The name that a phase's coming into a state is counted by.
fn phase_state(state: &str) -> String {
    format!("transition: phase {state}")
}

/// The name that an Application's going is counted by.
fn gone(how: &str) -> String {
    format!("transition: Application {how}")
}

/// Everything that is counted, whether or not it happened: with it a report tells also what did not.
pub fn known() -> Vec<String> {
    demanded()
}

/// What the history of a set tells to have happened, and how often.
pub(crate) fn happened(entries: &[Entry], set: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |what: String, number: usize| *counts.entry(what).or_default() += number as u64;
    add("starts".to_owned(), checker::starts(entries).len());
    add("writes".to_owned(), entries.len());
    let head_name = format!("{set}.baton-rollout");
    let mut head = Head::default();
    let (mut failures, mut states, mut whole) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut going = BTreeSet::new();
    for entry in entries.iter().filter(|entry| &*entry.cluster == "control") {
        if &*entry.resource == "applications.argoproj.io" {
            let goes = !entry.object["metadata"]["deletionTimestamp"].is_null();
            if goes && going.insert(entry.object["metadata"]["uid"].as_str().unwrap_or_default()) {
                add(gone(GOING[0]), 1);
            }
            if entry.change == Change::Deleted {
                add(gone(GOING[1]), 1);
            }
        }
        if entry.change == Change::Deleted {
            continue;
        }
        match &*entry.resource {
            "applicationsets.argoproj.io" => {
                let blockers = entry.object.pointer("/status/rollout/blockers").and_then(Value::as_array);
                for blocker in blockers.into_iter().flatten() {
                    add(format!("blocker: {}", blocker["reason"].as_str().unwrap_or_default()), 1);
                }
                for (rollout, state) in rollouts(&entry.object) {
                    if whole.insert(rollout, state) != Some(state) && ROLLOUT_STATES.contains(&state) {
                        add(phase_state(state), 1);
                    }
                }
                for (place, state, action) in phases(&entry.object) {
                    if states.insert(place, state) != Some(state) {
                        add(phase_state(state), 1);
                    }
                    if !action.is_empty() && failures.get(&place) != Some(&action) {
                        add(failure(action), 1);
                    }
                    failures.insert(place, action);
                }
            }
            "configmaps" if *entry.name == *head_name => {
                let Some(next) = Head::read(&entry.object) else { continue };
                next.since(&head).into_iter().for_each(|what| add(format!("transition: {what}"), 1));
                head = next;
            }
            _ => {}
        }
    }
    counts
}

/// How long after it was given an approval is acted on.
const ACTED_ON: SignedDuration = SignedDuration::from_secs(60);

/// What a controller sees to now and then.
pub(crate) struct Meanwhile {
    pub(crate) what: &'static str,
    pub(crate) who: &'static str,
    pub(crate) times: Vec<Range<Timestamp>>,
}

/// When an approval was waited for or acted on, and when phases were under way.
pub(crate) fn meanwhile(entries: &[Entry], set: &str) -> [Meanwhile; 2] {
    let awaits = |set: &Value| {
        let blockers = set.pointer("/status/rollout/blockers").and_then(Value::as_array);
        blockers.into_iter().flatten().any(|blocker| blocker["reason"] == "ApprovalRequired")
    };
    let phased = |set: &Value| {
        let generators = set.pointer("/status/phases").and_then(Value::as_array);
        generators.into_iter().flatten().any(|generator| generator["finishedAt"].is_null())
    };
    let mut approvals = times(entries, set, awaits);
    approvals
        .iter_mut()
        .for_each(|time| time.end = time.end.saturating_add(ACTED_ON).unwrap_or(Timestamp::MAX));
    [
        Meanwhile { what: APPROVALS, who: APPLICATIONS, times: approvals },
        Meanwhile { what: PHASES, who: SETS, times: times(entries, set, phased) },
    ]
}

/// From when until when something was so of a set.
fn times(entries: &[Entry], set: &str, is_so: impl Fn(&Value) -> bool) -> Vec<Range<Timestamp>> {
    let mut times: Vec<Range<Timestamp>> = Vec::new();
    let mut since = None;
    let of_set = |entry: &&Entry| {
        &*entry.cluster == "control"
            && &*entry.resource == "applicationsets.argoproj.io"
            && *entry.name == *set
    };
    for entry in entries.iter().filter(of_set) {
        match (since, entry.change != Change::Deleted && is_so(&entry.object)) {
            (None, true) => since = Some(entry.at),
            (Some(begun), false) => {
                times.push(begun..entry.at);
                since = None;
            }
            _ => {}
        }
    }
    times.extend(since.map(|begun| begun..Timestamp::MAX));
    times
}

/// By rollout and place of the phase: its state, and what was done about its failure; nothing where it has not failed.
fn phases(set: &Value) -> Vec<((&str, usize), &str, &str)> {
    let generators = set.pointer("/status/phases").and_then(Value::as_array).into_iter().flatten();
    let phases = generators.flat_map(|generator| {
        let rollout = generator["rolloutID"].as_str().unwrap_or_default();
        let phases = generator["phases"].as_array().into_iter().flatten().enumerate();
        phases.map(move |(place, phase)| {
            ((rollout, place), text_of(&phase["state"]), text_of(&phase["failure"]["action"]))
        })
    });
    phases.collect()
}

/// By rollout of a generator: how it stands as a whole.
fn rollouts(set: &Value) -> impl Iterator<Item = (&str, &str)> {
    let generators = set.pointer("/status/phases").and_then(Value::as_array).into_iter().flatten();
    generators.map(|generator| (text_of(&generator["rolloutID"]), text_of(&generator["state"])))
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A head as it was stored.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) seq: u64,
    pub(crate) open: u64,
    pub(crate) finished: bool,
    pub(crate) aborted: bool,
    /// By Application: number and letters of the last intended write.
    rows: BTreeMap<String, (u64, Vec<char>)>,
}

impl Head {
    pub(crate) fn read(object: &Value) -> Option<Head> {
        let data = object["data"].as_object()?;
        let run: Value = serde_json::from_str(data.get("run")?.as_str()?).ok()?;
        let texts =
            data.iter().filter(|(key, _)| key.starts_with("apps.")).filter_map(|(_, text)| text.as_str());
        let row = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [id, _, n, letters, ..] = words.as_slice() else { return None };
            Some(((*id).to_owned(), (n.parse().ok()?, letters.chars().collect())))
        };
        Some(Head {
            seq: run["seq"].as_u64()?,
            open: run["open"].as_u64().unwrap_or(0),
            finished: !run["finished"].is_null(),
            aborted: run["aborted"].as_bool().unwrap_or(false),
            rows: texts.flat_map(str::lines).filter_map(row).collect(),
        })
    }

    /// How Applications came to be done, by their ids.
    pub(crate) fn done(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.rows.iter().filter_map(|(id, (_, letters))| {
            let (_, how) = DONE.iter().find(|(known, _)| letters.get(2) == Some(known))?;
            Some((id.as_str(), *how))
        })
    }

    /// What happened since another.
    fn since(&self, before: &Head) -> Vec<String> {
        let mut what = Vec::new();
        let same = self.seq == before.seq;
        let courses = [
            (!same, "run begun"),
            (!same && before.seq > 0 && !before.finished && !before.aborted, "run superseded"),
            (self.finished && !(same && before.finished), "run finished"),
            (self.aborted && !(same && before.aborted), "run aborted"),
            (self.open > if same { before.open } else { 0 }, "step opened"),
            (same && self.open < before.open, "steps closed again"),
        ];
        what.extend(courses.into_iter().filter(|(did, _)| *did).map(|(_, course)| course.to_owned()));
        for (id, (n, letters)) in &self.rows {
            let known = before.rows.get(id).filter(|_| same);
            let letter = |place: usize| letters.get(place).copied().unwrap_or('-');
            if known.map(|(n, _)| n) != Some(n) {
                let fence = letter(3) == '+';
                let intent = INTENTS.iter().find(|(known, _)| *known == if fence { 'f' } else { letter(0) });
                what.extend(intent.map(|(_, intent)| format!("intent {intent}")));
            }
            if known.map(|(_, letters)| letters.get(2)) != Some(letters.get(2)) {
                let done = DONE.iter().find(|(known, _)| *known == letter(2));
                what.extend(done.map(|(_, done)| format!("done {done}")));
            }
        }
        what
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head(run: Value, rows: &str) -> Head {
        Head::read(&json!({"data": {"run": run.to_string(), "apps.00000": rows}})).expect("a head")
    }

    #[test]
    fn what_happened_is_told_from_one_head_to_the_next() {
        let first = head(json!({"seq": 1, "open": 1}), "a p 1 o+-- 0 1\nb p 0 ---- 0 0\n");
        assert_eq!(first.since(&Head::default()), ["run begun", "step opened", "intent Start"]);
        let second = head(json!({"seq": 1, "open": 2}), "a p 1 o-d- 0 1\nb p 1 o+-+ 0 0\n");
        assert_eq!(second.since(&first), ["step opened", "done Synced", "intent Fence"]);
        let third = head(json!({"seq": 1, "open": 1, "finished": "x"}), "a p 1 o-d- 0 1\nb p 1 o--- 0 0\n");
        assert_eq!(third.since(&second), ["run finished", "steps closed again"]);
        let fourth = head(json!({"seq": 2, "open": 0, "aborted": true}), "a p 1 ---- 0 1\n");
        assert_eq!(fourth.since(&second), ["run begun", "run superseded", "run aborted"]);
        assert!(fourth.since(&fourth).is_empty());
    }

    #[test]
    fn everything_known_is_told_once() {
        let known = known();
        let distinct: std::collections::BTreeSet<&String> = known.iter().collect();
        assert_eq!(distinct.len(), known.len());
        assert!(demanded().iter().all(|what| distinct.contains(what)));
    }
}
