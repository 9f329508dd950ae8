//! The course of a rollout as its people would tell it: runs, steps, Applications, what struck and what is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use baton_api::phase_status::GeneratorPhases;
use baton_phases::standing;
use baton_rollout::pin::Fingerprint;
use jiff::Timestamp;
use serde_json::Value;

use crate::checker::{Change, Entry};
use crate::tally::Head;
use crate::wire::Struck;

/// How long a wait must last to be told.
const BRIEF: Duration = Duration::from_secs(1);

/// For how long what strikes all the time is gathered into one line.
const GATHERED: Duration = Duration::from_secs(10);

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How long after the world began.
    pub at: Duration,
    /// What it is about.
    pub about: About,
    /// In words.
    pub text: String,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// What people did.
    People,
    /// A run of the rollout.
    Run,
    /// A step of it.
    Step,
    /// A phase of it.
    Phase,
    /// A hook or a check of a phase.
    Call,
    /// An Application.
    Application,
    /// What is waited for.
    Waiting,
    /// What went wrong in the world.
    Fault,
}

/// What there is to tell from.
pub(crate) struct Witness<'w> {
    pub(crate) entries: &'w [Entry],
    pub(crate) notes: &'w [(Timestamp, About, String)],
    pub(crate) struck: &'w [Struck],
    /// What commits are called.
    pub(crate) commits: &'w BTreeMap<String, String>,
    pub(crate) set: &'w str,
    pub(crate) began: Timestamp,
}

/// Tells it, in order.
pub(crate) fn tell(witness: &Witness<'_>) -> Vec<Line> {
    let mut teller = Teller::new(witness.commits);
    let head = format!("{}.baton-rollout", witness.set);
    for entry in witness.entries.iter().filter(|entry| &*entry.cluster == "control") {
        teller.now = since(witness.began, entry.at);
        match &*entry.resource {
            "applications.argoproj.io" => teller.application(entry),
            "applicationsets.argoproj.io" if *entry.name == *witness.set => teller.set(entry),
            "configmaps" if *entry.name == *head => teller.head(entry),
            _ => {}
        }
    }
    let people = witness.notes.iter().map(|(at, about, text)| Line {
        at: since(witness.began, *at),
        about: *about,
        text: text.clone(),
    });
    // What people did comes before what came of it at the same moment.
    between(people.chain(teller.lines).collect(), witness.struck)
}

fn since(began: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(began)).unwrap_or_default()
}

/// Puts what struck into lines of its own. What strikes all the time is gathered, and what people see as an event of its own
/// is told already.
fn between(mut lines: Vec<Line>, struck: &[Struck]) -> Vec<Line> {
    let mut gathered: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut since = None;
    let mut untold = struck.iter().filter(|struck| !struck.fault.is_event()).peekable();
    while let Some(Struck { after: at, fault, .. }) = untold.next() {
        let first = *since.get_or_insert(*at);
        *gathered.entry(fault.words()).or_default() += 1;
        if fault.is_frequent() && untold.peek().is_some_and(|next| next.after < first + GATHERED) {
            continue;
        }
        let words = |(words, count): (&'static str, u64)| match count {
            1 => words.to_owned(),
            count => format!("{words} ({count} times)"),
        };
        let told: Vec<String> = std::mem::take(&mut gathered).into_iter().map(words).collect();
        lines.push(Line { at: *at, about: About::Fault, text: told.join(", ") });
        since = None;
    }
    lines.sort_by_key(|line| line.at);
    lines
}

struct Teller<'w> {
    now: Duration,
    commits: &'w BTreeMap<String, String>,
    lines: Vec<Line>,
    /// Names of Applications by their ids in the head.
    names: BTreeMap<String, String>,
    apps: BTreeMap<&'w str, &'w Value>,
    head: Head,
    done: BTreeMap<String, &'static str>,
    /// Whether the set goes by phases alone.
    stepless: bool,
    phases: Vec<GeneratorPhases>,
    waits: Vec<String>,
    /// The line that told them.
    waiting: Option<usize>,
    error: &'w str,
}

impl<'w> Teller<'w> {
    fn new(commits: &'w BTreeMap<String, String>) -> Teller<'w> {
        Teller {
            now: Duration::ZERO,
            commits,
            lines: Vec::new(),
            names: BTreeMap::new(),
            apps: BTreeMap::new(),
            head: Head::default(),
            done: BTreeMap::new(),
            stepless: false,
            phases: Vec::new(),
            waits: Vec::new(),
            waiting: None,
            error: "",
        }
    }

    fn say(&mut self, about: About, text: String) {
        self.lines.push(Line { at: self.now, about, text });
    }

    fn application(&mut self, entry: &'w Entry) {
        let (name, app) = (&*entry.name, &entry.object);
        let mut said = Vec::new();
        if entry.change == Change::Deleted {
            self.apps.remove(name);
            return self.say(About::Application, format!("{name} is gone"));
        }
        let nothing = &Value::Null;
        let before = self.apps.insert(name, app).unwrap_or(nothing);
        if before.is_null() {
            self.names.insert(Fingerprint::of([text(app, "/metadata/uid")]).to_string(), name.to_owned());
            said.push("is created".to_owned());
        }
        let changed = |pointer: &str| text(before, pointer) != text(app, pointer);
        if changed("/metadata/deletionTimestamp") && !text(app, "/metadata/deletionTimestamp").is_empty() {
            said.push("is being deleted".to_owned());
        }
        let operation = &app["operation"];
        if !operation.is_null() && before["operation"] != *operation {
            said.push(format!("is to be synced{}{}", self.revisions(&operation["sync"]), by(operation)));
        }
        let phase = "/status/operationState/phase";
        if changed(phase) || changed("/status/operationState/startedAt") {
            let result = &app["status"]["operationState"]["syncResult"];
            match text(app, phase) {
                "Succeeded" => said.push(format!("is synced{}", self.revisions(result))),
                "Failed" | "Error" => {
                    said.push(format!("failed to sync: {}", text(app, "/status/operationState/message")));
                }
                _ => {}
            }
        }
        let health = "/status/health/status";
        if changed(health) && matches!(text(app, health), "Healthy" | "Degraded" | "Suspended") {
            said.push(format!("is {}", text(app, health)));
        }
        for words in said {
            self.say(About::Application, format!("{name} {words}"));
        }
    }

    /// What a sync is for.
    fn revisions(&self, sync: &Value) -> String {
        let several = sync["revisions"].as_array().filter(|all| !all.is_empty());
        let all: Vec<&str> = match several {
            Some(all) => all.iter().filter_map(Value::as_str).collect(),
            None => vec![text(sync, "/revision")],
        };
        let title = |revision: &&str| self.commits.get(*revision).cloned();
        let mut known: Vec<String> = all.iter().filter_map(title).collect();
        known.dedup();
        if known.is_empty() { String::new() } else { format!(" to {}", known.join(" and ")) }
    }

    fn head(&mut self, entry: &Entry) {
        if entry.change == Change::Deleted {
            return;
        }
        // A head that cannot be read tells nothing; the controller begins a new one.
        let Some(next) = Head::read(&entry.object) else { return };
        if next.seq != self.head.seq {
            self.done.clear();
            self.say(About::Run, format!("run {} begins", next.seq));
        }
        let open = if next.seq == self.head.seq { self.head.open } else { 0 };
        // Where there are phases alone, one step holds everybody, and nobody has written it.
        let steps = if self.stepless { 0 } else { next.open };
        for step in open + 1..=steps {
            self.say(About::Step, format!("step {step} opens"));
        }
        if next.open < open && !self.stepless {
            self.say(About::Step, format!("steps after {} close again", next.open));
        }
        let new: Vec<(String, &'static str)> = next
            .done()
            .filter(|(id, how)| self.done.get(*id) != Some(how))
            .map(|(id, how)| (id.to_owned(), how))
            .collect();
        for (id, how) in new {
            let name = self.names.get(&id).cloned().unwrap_or_else(|| id.clone());
            let how = match how {
                "Synced" => String::new(),
                how => format!(" ({})", how.to_lowercase()),
            };
            self.say(About::Application, format!("{name} is done{how}"));
        }
        self.done = next.done().map(|(id, how)| (id.to_owned(), how)).collect();
        let same = next.seq == self.head.seq;
        if next.finished && !(same && self.head.finished) {
            self.say(About::Run, format!("run {} is finished", next.seq));
        }
        if next.aborted && !(same && self.head.aborted) {
            self.say(About::Run, format!("run {} is aborted", next.seq));
        }
        self.head = next;
    }

    fn phases(&mut self, entry: &Entry) {
        let generators = entry.object.pointer("/spec/generators").and_then(Value::as_array);
        let phased = |generator: &Value| !generator["deploymentStrategy"].is_null();
        self.stepless = text(&entry.object, "/spec/strategy/type") != "RollingSync"
            && generators.into_iter().flatten().any(phased);
        let phases = &entry.object["status"]["phases"];
        let next: Vec<GeneratorPhases> = serde_json::from_value(phases.clone()).unwrap_or_default();
        for one in standing::news(&self.phases, &next, entry.at) {
            let about = match one.about {
                standing::About::Rollout => About::Run,
                standing::About::Phase => About::Phase,
                standing::About::Call => About::Call,
            };
            self.say(about, one.text);
        }
        self.phases = next;
    }

    fn set(&mut self, entry: &'w Entry) {
        self.phases(entry);
        let waits = waits(&entry.object);
        // Whoever is under way, or waits for its turn, is where it should be.
        let worth = waits.iter().filter(|(reason, _)| !is_usual(reason));
        let told: Vec<String> = worth.map(|(reason, objects)| told_in_short(reason, objects)).collect();
        if told != self.waits {
            // What is over at once is not worth a line.
            let line = self.waiting.take().filter(|line| self.now - self.lines[*line].at < BRIEF);
            line.into_iter().for_each(|line| drop(self.lines.remove(line)));
            if !told.is_empty() {
                self.waiting = Some(self.lines.len());
                self.say(About::Waiting, format!("waiting: {}", told.join("; ")));
            }
        }
        self.waits = told;
        let error = error(&entry.object);
        if error != self.error && !error.is_empty() {
            self.say(About::Waiting, format!("error: {error}"));
        }
        self.error = error;
    }
}

fn is_usual(reason: &str) -> bool {
    // What a phase waits for has lines of its own.
    const USUAL: [&str; 6] =
        ["WaitingForStep", "WaitingForSlot", "WaitingForRefresh", "Progressing", "Arming", "PhaseGate"];
    USUAL.contains(&reason)
}

/// What a set says that it waits for, by reason.
pub(crate) fn waits(set: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let mut waits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pointer in ["/status/rollout/blockers", "/status/rollout/deletion/blockers"] {
        for blocker in set.pointer(pointer).and_then(Value::as_array).into_iter().flatten() {
            let objects = waits.entry(text(blocker, "/reason").to_owned()).or_default();
            objects.insert(text(blocker, "/object").to_owned());
        }
    }
    waits
}

/// A reason and those it is the reason of.
pub(crate) fn told_in_short(reason: &str, objects: &BTreeSet<String>) -> String {
    format!("{reason} {}", some(objects)).trim_end().to_owned()
}

/// The first few of many.
fn some(objects: &BTreeSet<String>) -> String {
    const FEW: usize = 4;
    let first: Vec<&str> = objects.iter().take(FEW).map(String::as_str).collect();
    match objects.len().saturating_sub(FEW) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn error(set: &Value) -> &str {
    let conditions = set.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut errors = conditions.filter(|condition| {
        text(condition, "/type") == "ErrorOccurred" && text(condition, "/status") == "True"
    });
    errors.next().map(|condition| text(condition, "/message")).unwrap_or_default()
}

/// Who starts a sync, where it is not the rollout.
fn by(operation: &Value) -> &'static str {
    let rolls = operation["info"].as_array().into_iter().flatten();
    let rolls = rolls.into_iter().any(|item| text(item, "/name") == "baton.dev/pin");
    match (rolls, operation["initiatedBy"]["automated"] == true) {
        (true, _) => "",
        (false, true) => ", by itself",
        (false, false) => ", by a person",
    }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
