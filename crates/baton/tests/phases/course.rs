//! The course of a rollout, read off the API's history and the receiver's log, and held against what is expected.
//!
//! The receiver notes where the control plane was when a call came and when it was answered, so calls and writes are in
//! one order. Of commands there is no such witness: theirs is the status, which is written before and after each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::history::{History, Kind, Version};
use crate::stage::Call;

/// What comes one after the other. What one entry names may come in any order.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Calls by the name of their hook or check, and their URL.
    Calls(Vec<(&'static str, String)>),
    /// A command by the name of its hook, and whom it is run for; for the phase, if for nobody.
    Command(&'static str, Vec<String>),
    /// Applications that change.
    Changed(Vec<String>),
    /// A phase that waits until a person advances it.
    Waited(usize),
}

/// One rollout.
pub(crate) struct Rollout<'a> {
    pub(crate) set: &'a str,
    pub(crate) commit: &'a str,
    pub(crate) history: &'a History,
    pub(crate) calls: &'a [Call],
    /// The last version before it.
    pub(crate) after: u64,
    /// Its last version.
    pub(crate) until: u64,
}

/// From when until when, in versions.
type Span = (u64, u64);

// === impl Rollout ===

impl Rollout<'_> {
    /// The calls of it, in the order in which they came.
    pub(crate) fn calls(&self) -> Vec<&Call> {
        let within = |call: &&Call| call.span().0 > self.after && call.span().0 <= self.until;
        self.calls.iter().filter(within).collect()
    }

    /// It came as expected, each step after the end of the one before, and nothing else came.
    #[track_caller]
    pub(crate) fn came(&self, steps: &[Step]) {
        let changed = self.changed();
        let mut expected_changes = BTreeSet::new();
        let mut expected_calls = Vec::new();
        let mut last: (u64, String) = (self.after, "the beginning".to_owned());
        for step in steps {
            let (from, to) = match step {
                Step::Calls(calls) => {
                    assert!(!calls.is_empty(), "a step without calls shows nothing");
                    expected_calls.extend(calls.iter().cloned());
                    around(calls.iter().map(|(name, url)| self.call(name, url)))
                }
                Step::Command(name, targets) if targets.is_empty() => self.command(name, ""),
                Step::Command(name, targets) => {
                    around(targets.iter().map(|target| self.command(name, target)))
                }
                Step::Changed(names) => {
                    assert!(!names.is_empty(), "a phase without targets shows nothing");
                    expected_changes.extend(names.iter().cloned());
                    around(names.iter().map(|name| {
                        *changed.get(name).unwrap_or_else(|| panic!("{name} did not change: {changed:?}"))
                    }))
                }
                Step::Waited(phase) => self.waited(*phase),
            };
            // A write that has the version at which a call was answered was there before the answer.
            let orderly = if matches!(step, Step::Changed(_)) { last.0 < from } else { last.0 <= from };
            assert!(orderly, "{step:?} began at {from}, before the end of {} at {}", last.1, last.0);
            last = (to, format!("{step:?}"));
        }
        let changes: BTreeSet<String> = changed.into_keys().collect();
        assert_eq!(changes, expected_changes, "nobody else changed");
        let mut calls: Vec<(String, String)> =
            expected_calls.into_iter().map(|(a, b)| (a.into(), b)).collect();
        let mut came: Vec<(String, String)> =
            self.calls().into_iter().map(|call| (name_of(call), call.url())).collect();
        calls.sort();
        came.sort();
        assert_eq!(came, calls, "nothing else was called");
    }

    /// From the first call of it to the last answer: a check is asked until it passes.
    fn call(&self, name: &str, url: &str) -> Span {
        let calls = self.calls();
        let its = calls.iter().filter(|call| name_of(call) == name && call.url() == url);
        let spans: Vec<Span> = its.map(|call| call.span()).collect();
        assert!(!spans.is_empty(), "{name} was not called at {url}: {calls:#?}");
        around(spans.into_iter())
    }

    /// From the intent to run a command to its success.
    fn command(&self, name: &str, target: &str) -> Span {
        let states = self.sets().flat_map(|(version, set)| {
            let phases = list(&set["status"]["phases"][0]["phases"]);
            let results = phases
                .iter()
                .flat_map(|phase| ["preHooks", "postHooks", "checks"].map(|role| list(&phase[role])))
                .flatten();
            let is_it = |result: &&Value| {
                result["name"] == name && result["target"].as_str().unwrap_or_default() == target
            };
            results.filter(is_it).map(move |result| (version, result["state"].clone())).collect::<Vec<_>>()
        });
        let states: Vec<(u64, Value)> = states.collect();
        let first = |state: &str| {
            let found = states.iter().find(|(_, found)| found == state);
            found.unwrap_or_else(|| panic!("{name} for {target:?} was never {state}: {states:?}")).0
        };
        (first("Running"), first("Succeeded"))
    }

    /// From the version in which a phase waits to the one in which it is advanced.
    fn waited(&self, phase: usize) -> Span {
        let waits = |set: &Value| set["status"]["phases"][0]["phases"][phase]["state"] == "Waiting";
        let advance = |set: &Value| set["metadata"]["annotations"]["baton.dev/advance"].clone();
        let mut versions = self.sets().skip_while(|(_, set)| !waits(set));
        let (from, first) = versions.next().unwrap_or_else(|| panic!("phase {phase} did not wait"));
        let wait = &first["status"]["phases"][0]["phases"][phase]["waitUntil"];
        assert!(wait.is_string(), "it says until when: {wait}");
        let before = advance(first);
        let end = versions.find(|(_, set)| advance(set) != before);
        (from, end.unwrap_or_else(|| panic!("phase {phase} was not advanced")).0)
    }

    /// Per Application that changed: when that began, and when it was done at the commit.
    fn changed(&self) -> BTreeMap<String, Span> {
        let mut known: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut began: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let mut done: BTreeMap<&str, u64> = BTreeMap::new();
        for (version, Version { name, object, .. }) in self.history.range(..=self.until) {
            let is_application = self.history[version].kind == Kind::Application;
            let Some(now) = object.as_ref().filter(|_| is_application) else { continue };
            let before = known.insert(name, now);
            if *version <= self.after {
                continue;
            }
            let created = before.is_none();
            let starts = !now["operation"].is_null() && before.is_none_or(|was| was["operation"].is_null());
            let other = before.is_some_and(|was| was["spec"] != now["spec"]);
            if created || starts || other {
                began.entry(name).or_default().push(*version);
            }
            if self.is_done(now) {
                done.entry(name).or_insert(*version);
            }
        }
        let span = |(name, began): (&str, Vec<u64>)| {
            let end = *done.get(name).unwrap_or_else(|| panic!("{name} has begun and was never done"));
            let late = began.iter().find(|version| **version > end);
            assert_eq!(late, None, "{name} changed again after it was done at {end}");
            (name.to_owned(), (began[0], end))
        };
        began.into_iter().map(span).collect()
    }

    fn is_done(&self, application: &Value) -> bool {
        let status = &application["status"];
        let operation = &status["operationState"];
        application["operation"].is_null()
            && operation["phase"] == "Succeeded"
            && operation["syncResult"]["revision"] == self.commit
            && status["sync"]["revision"] == self.commit
            && status["sync"]["status"] == "Synced"
            && status["health"]["status"] == "Healthy"
    }

    fn sets(&self) -> impl Iterator<Item = (u64, &Value)> {
        let versions = self.history.range(self.after + 1..=self.until);
        let own = versions.filter(|(_, version)| version.kind == Kind::Set && version.name == self.set);
        own.filter_map(|(version, entry)| Some((*version, entry.object.as_ref()?)))
    }
}

/// The name of the hook or check that made a call.
pub(crate) fn name_of(call: &Call) -> String {
    let name = call.headers.get("x-hook-name").or_else(|| call.headers.get("x-check-name"));
    name.cloned().unwrap_or_default()
}

fn around(spans: impl Iterator<Item = Span>) -> Span {
    spans.fold((u64::MAX, 0), |whole, span| (whole.0.min(span.0), whole.1.max(span.1)))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
