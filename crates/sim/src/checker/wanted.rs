//! What each version of the set asks for: its Applications, their steps and the order of their deletion.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::history::History;
use super::{Case, Change, FAILING, PHASE, is_null, text};

/// Resource name of ApplicationSets.
pub(super) const SETS: &str = "applicationsets.argoproj.io";
/// Phases of a set's only generator.
const PHASES: &str = "/spec/generators/0/deploymentStrategy/phases";
/// What people ask of phases.
const REQUESTS: [&str; 3] = ["baton.dev/advance", "baton.dev/rollback", "baton.dev/rollback-all"];
/// Resource name of Applications.
pub(super) const APPS: &str = "applications.argoproj.io";

/// Every version of the set that differs in what it asks for.
pub(super) struct Sets<'h> {
    versions: Vec<Wanted<'h>>,
    /// When it was gone.
    pub(super) gone: Option<Timestamp>,
}

/// What one version asks for, and while it was in force.
pub(super) struct Wanted<'h> {
    pub(super) place: usize,
    /// When the next came.
    until: Timestamp,
    pub(super) set: &'h Value,
    pub(super) steps: Vec<Step<'h>>,
    pub(super) deletion: Deletion<'h>,
    pub(super) apps: BTreeMap<String, App>,
    pub(super) terminating: bool,
    pub(super) paused: bool,
    /// What people say counts as done.
    skipped: &'h str,
    /// Whether people asked to end a run.
    pub(super) aborted: &'h str,
}

/// One Application as it is wanted.
pub(super) struct App {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) spec: Value,
}

/// One step.
#[derive(Clone, Copy)]
pub(super) struct Step<'h>(&'h Value);

/// The order of deletion.
pub(super) enum Deletion<'h> {
    /// In no order.
    AllAtOnce,
    /// By these steps, in this order.
    Steps(Vec<Step<'h>>),
    /// In an order that cannot be known: nothing may be deleted.
    Invalid,
}

impl<'h> Sets<'h> {
    pub(super) fn read(case: &Case<'h>, history: &History<'h>) -> Sets<'h> {
        let mut versions: Vec<Wanted<'h>> = Vec::new();
        let mut gone = None;
        for write in history.writes("control", SETS, case.set, usize::MAX) {
            let entry = write.entry;
            if entry.change == Change::Deleted {
                gone = Some(entry.at);
            }
            let terminating =
                entry.change == Change::Deleted || !is_null(&entry.object, "/metadata/deletionTimestamp");
            if let Some(last) = versions.last_mut() {
                if last.set["spec"] == entry.object["spec"]
                    && last.terminating == terminating
                    && last.paused == is_paused(&entry.object)
                    && last.skipped == super::annotation(&entry.object, "baton.dev/skip")
                    && last.aborted == super::annotation(&entry.object, "baton.dev/abort")
                    && REQUESTS.iter().all(|name| {
                        super::annotation(last.set, name) == super::annotation(&entry.object, name)
                    })
                {
                    continue;
                }
                last.until = entry.at;
            }
            versions.push(Wanted::read(case, write.place, &entry.object, terminating));
        }
        Sets { versions, gone }
    }

    /// The versions a controller may have gone by at a place, newest first.
    pub(super) fn in_force(&self, place: usize, from: Timestamp) -> impl Iterator<Item = &Wanted<'h>> {
        let before = self.versions.iter().rev().filter(move |wanted| wanted.place < place);
        before.take_while(move |wanted| wanted.until >= from)
    }

    /// Whether people have said, between a time and a place, that an Application counts as done at a pin.
    pub(super) fn have_skipped(&self, (app, pin): (&str, &str), place: usize, from: Timestamp) -> bool {
        self.in_force(place, from).any(|wanted| wanted.skips_of(app).any(|named| named == pin))
    }

    /// The last version before a place that has phases.
    pub(super) fn phased_before(&self, place: usize) -> Option<&Wanted<'h>> {
        self.versions.iter().rev().find(|wanted| wanted.place < place && wanted.is_phased())
    }

    pub(super) fn last(&self) -> Option<&Wanted<'h>> {
        self.versions.last()
    }
}

fn is_paused(set: &Value) -> bool {
    super::annotation(set, "baton.dev/paused") == "true"
}

impl<'h> Wanted<'h> {
    /// Whether it cannot be generated: what is not known to be wanted is not begun, nor kept from anything.
    pub(super) fn is_broken(&self) -> bool {
        let generators = self.set.pointer("/spec/generators").and_then(Value::as_array);
        generators.into_iter().flatten().any(|generator| {
            generator["matrix"]["generators"].as_array().is_some_and(|parts| parts.len() < 2)
        })
    }

    fn read(case: &Case<'h>, place: usize, set: &'h Value, terminating: bool) -> Wanted<'h> {
        let strategy = &set["spec"]["strategy"];
        let rolling = text(strategy, "/type") == "RollingSync";
        let steps = |pointer: &str| -> Vec<Step<'h>> {
            strategy.pointer(pointer).and_then(Value::as_array).into_iter().flatten().map(Step).collect()
        };
        let rollout = if rolling { steps("/rollingSync/steps") } else { phases_of(set) };
        let order = text(strategy, "/deletionOrder").to_ascii_lowercase();
        let deletion = match order.as_str() {
            "" | "allatonce" => Deletion::AllAtOnce,
            "reverse" if !rollout.is_empty() => Deletion::Steps(rollout.iter().rev().copied().collect()),
            "custom" if !steps("/deletionSync/steps").is_empty() => {
                Deletion::Steps(steps("/deletionSync/steps"))
            }
            _ => Deletion::Invalid,
        };
        Wanted {
            place,
            until: Timestamp::MAX,
            set,
            steps: rollout,
            deletion,
            apps: case.wanted.map_or_else(|| listed(set), known),
            terminating,
            paused: is_paused(set),
            skipped: super::annotation(set, "baton.dev/skip"),
            aborted: super::annotation(set, "baton.dev/abort"),
        }
    }

    /// Whether it has phases in the place of steps.
    pub(super) fn is_phased(&self) -> bool {
        self.set.pointer(PHASES).is_some()
    }

    /// Whether phases have no say in an Application, nor steps. Of sets that are made up they have one in all.
    pub(super) fn is_free(&self, app: &str) -> bool {
        let marks = |key: &Value| key == PHASE;
        let key = format!("{PHASES}/0/targets/0/matchExpressions/0/key");
        self.set.pointer(&key).is_some_and(marks)
            && self.apps.get(app).is_some_and(|app| !app.labels.contains_key(PHASE))
    }

    /// A phase as it is written; null where there is none.
    pub(super) fn phase(&self, phase: usize) -> &'h Value {
        self.set.pointer(&format!("{PHASES}/{phase}")).unwrap_or(&Value::Null)
    }

    /// Whether a phase puts back what it has changed when it fails, or people asked for that.
    pub(super) fn puts_back(&self) -> bool {
        let phases = self.set.pointer(PHASES).and_then(Value::as_array);
        let asked = |name: &str| !super::annotation(self.set, name).is_empty();
        phases.into_iter().flatten().any(|phase| text(phase, "/onFailure/action") == "rollback")
            || asked("baton.dev/rollback")
            || asked("baton.dev/rollback-all")
    }

    /// The hooks of a list of a phase, or its checks, that have to pass.
    pub(super) fn calls(&self, phase: usize, list: &str) -> impl Iterator<Item = &'h Value> {
        let calls = self.phase(phase)[list].as_array().into_iter().flatten();
        calls.filter(|call| text(call, "/failurePolicy") != "ignore")
    }

    /// Whether some hooks and checks do not pass.
    pub(super) fn has_failing_hooks(&self) -> bool {
        !super::annotation(self.set, FAILING).is_empty()
    }

    /// The Applications that a step or a phase matches, those of earlier ones included.
    pub(super) fn matched(&self, step: usize) -> impl Iterator<Item = &str> {
        let step = self.steps[step];
        let matched = self.apps.iter().filter(move |(_, app)| step.holds(&app.labels));
        matched.map(|(name, _)| name.as_str())
    }

    /// Whether people said that an Application counts as done in the run there was at a place: they named what that run
    /// asks of it.
    pub(super) fn skips(&self, history: &History<'_>, app: &str, place: usize) -> bool {
        let mut pins = self.skips_of(app);
        let name = format!("{}.baton-rollout", text(self.set, "/metadata/name"));
        let Some(head) = history.state("control", "configmaps", &name, place) else { return false };
        let rows = head.entry.object["data"].as_object().into_iter().flatten();
        let rows: Vec<&str> =
            rows.filter(|(key, _)| key.starts_with("apps.")).filter_map(|(_, v)| v.as_str()).collect();
        pins.any(|pin| rows.iter().any(|text| text.split_whitespace().any(|word| word == pin)))
    }

    /// The pins at which people say that an Application counts as done.
    fn skips_of(&self, app: &str) -> impl Iterator<Item = &'h str> {
        let named = self.skipped.split(',').filter_map(|pair| pair.split_once('='));
        named.filter(move |(name, _)| *name == app).map(|(_, pin)| pin)
    }
}

/// The phases of a set's only generator, each as a step: who belongs to it, and nothing of its limits.
fn phases_of(set: &Value) -> Vec<Step<'_>> {
    let phases = set.pointer(PHASES).and_then(Value::as_array);
    phases.into_iter().flatten().map(|phase| Step(&phase["targets"][0])).collect()
}

/// The first step that holds something with these labels.
pub(super) fn place(steps: &[Step<'_>], labels: &BTreeMap<String, String>) -> Option<usize> {
    steps.iter().position(|step| step.holds(labels))
}

impl Step<'_> {
    fn holds(self, labels: &BTreeMap<String, String>) -> bool {
        let mut expressions = self.0["matchExpressions"].as_array().into_iter().flatten();
        expressions.all(|expression| {
            let value = labels.get(text(expression, "/key"));
            let values = expression["values"].as_array();
            let listed =
                value.is_some_and(|value| values.is_some_and(|all| all.contains(&value.as_str().into())));
            match text(expression, "/operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
    }

    /// How long it must have been well before the next may open.
    pub(super) fn wait(self) -> SignedDuration {
        let seconds = self.0["waitDuration"].as_str().and_then(|text| text.strip_suffix('s')?.parse().ok());
        SignedDuration::from_secs(seconds.unwrap_or(0))
    }

    /// How many of `total` may fail.
    pub(super) fn failures(self, total: usize) -> usize {
        let share = |text: &str| Some(text.strip_suffix('%')?.parse::<usize>().ok()? * total / 100);
        match &self.0["maxFailures"] {
            Value::String(text) => share(text).unwrap_or(0),
            other => other.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0),
        }
    }

    /// How many of `total` may be under way at once; none is all.
    pub(super) fn limit(self, total: usize) -> Option<usize> {
        match &self.0["maxUpdate"] {
            Value::Null => None,
            Value::Number(number) => Some(number.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)),
            other => {
                let percent: usize =
                    other.as_str().and_then(|text| text.strip_suffix('%')?.parse().ok()).unwrap_or(100);
                Some(if percent == 0 { 0 } else { (percent * total / 100).max(1) })
            }
        }
    }
}

/// Applications that are known beforehand.
fn known(apps: &BTreeMap<String, Value>) -> BTreeMap<String, App> {
    apps.iter().map(|(name, app)| (name.clone(), App::read(app))).collect()
}

impl App {
    fn read(app: &Value) -> App {
        App { labels: labels(app), spec: app["spec"].clone() }
    }
}

/// The Applications a set's lists ask for, by substitution of `{{name}}` and the like in the list's own template over
/// that of the set.
fn listed(set: &Value) -> BTreeMap<String, App> {
    let mut apps = BTreeMap::new();
    for generator in set["spec"]["generators"].as_array().into_iter().flatten() {
        let mut template = set["spec"]["template"].clone();
        merge(&mut template, &generator["list"]["template"]);
        let template = template.to_string();
        for element in generator["list"]["elements"].as_array().into_iter().flatten() {
            let mut filled = template.clone();
            for (key, value) in element.as_object().into_iter().flatten() {
                filled = filled.replace(&format!("{{{{{key}}}}}"), value.as_str().unwrap_or_default());
            }
            let filled: Value = serde_json::from_str(&filled).unwrap_or(Value::Null);
            apps.insert(text(&filled, "/metadata/name").to_owned(), App::read(&filled));
        }
    }
    apps
}

fn merge(base: &mut Value, over: &Value) {
    for (key, value) in over.as_object().into_iter().flatten() {
        match value.is_object() && base[key].is_object() {
            true => merge(&mut base[key], value),
            false => base[key] = value.clone(),
        }
    }
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
