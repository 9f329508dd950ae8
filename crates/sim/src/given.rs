//! A world around somebody's own ApplicationSet: its Applications, steps and policies as they are, and everything that
//! they deploy from and to made up.

mod phases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use baton_phases::Target;
use serde_json::{Map, Value, json};

use self::phases::Phased;
use crate::action::{Action, Edit};
use crate::checker::{FAILING, PHASE};
use crate::dice::Dice;
use crate::fleet::{Content, EXTRA, Element, Fleet, Home, Mood, NAMESPACE, SET, TARGET_NAMESPACE};
use crate::fleet::{VARIANTS, server};
use crate::receiver::Manner;
use crate::repository::Branch;
use crate::run::{self, Report};
use crate::scenario::{self, Ending, Kind, Process, Scenario};
use crate::wire::{Blow, Doom, Fault, Moment, Pattern, Weather};
use crate::world::CONTROL;

/// How many Applications a world has room for.
const MOST_APPLICATIONS: usize = 200;
/// How many commits one run of a world may see.
const MOST_COMMITS: usize = 50;
/// Longest name of an Application: it becomes a label.
const LONGEST_NAME: usize = 63;
/// After how long what could not be shown is shown at the latest.
const SHOWN_AGAIN: Duration = Duration::from_secs(310);
/// Longest time that a step waits; virtual time is quick, but not for nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A set and its Applications as a world knows them.
#[derive(Debug, Clone)]
pub struct Given {
    object: Value,
    apps: BTreeMap<String, Value>,
    elements: BTreeMap<String, Element>,
    members: Vec<String>,
    branches: Vec<Branch>,
    /// What each branch is in truth.
    titles: Vec<String>,
    automated: bool,
    /// Names of hooks and checks.
    calls: Vec<String>,
    /// The longest wait of its phases; none where it has none.
    phased: Option<Duration>,
    notes: Vec<String>,
}

/// What is to happen to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How many commits come to every branch that is followed.
    pub commits: usize,
    /// What goes wrong.
    pub faults: Faults,
    /// Applications whose workloads do not become ready from the first of these commits on.
    pub failing: BTreeSet<String>,
    /// Hooks and checks that do not pass from the first of these commits on.
    pub failing_calls: BTreeSet<String>,
    /// Whether people delete the set in the end.
    pub deletes: bool,
}

/// Kinds of faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(BTreeSet<Fault>);

/// Why a set cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

// === impl Plan ===

impl Plan {
    fn fails(&self) -> bool {
        !self.failing.is_empty() || !self.failing_calls.is_empty()
    }
}

// === impl Faults ===

impl Faults {
    /// Every kind that a rollout gets over by itself. What a webhook rewrites takes people to go on.
    pub fn all() -> Faults {
        Faults(Fault::ALL.into_iter().filter(|fault| *fault != Fault::Rewritten).collect())
    }

    /// Reads `none`, `all`, or names with commas between them. The first word of a name stands for all that begin with
    /// it.
    ///
    /// # Errors
    /// If there is no such kind: the word, and every name there is.
    pub fn read(text: &str) -> Result<Faults, String> {
        let mut faults = BTreeSet::new();
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.len() > 1 && words.contains(&"none") {
            return Err("none goes with nothing else".to_owned());
        }
        for word in words {
            let named = |fault: &Fault| {
                let name = fault.name();
                name == word
                    || name.strip_prefix(word).is_some_and(|rest| rest.starts_with('-'))
                    || fault.pattern().is_some_and(|pattern| pattern.name().0 == word)
            };
            match word {
                "none" => {}
                "all" => faults.extend(Faults::all().0),
                _ => {
                    let before = faults.len();
                    let meant: Vec<Fault> = Fault::ALL.into_iter().filter(named).collect();
                    faults.extend(&meant);
                    if faults.len() == before && meant.is_empty() {
                        let names: Vec<String> = Faults::known().into_iter().map(|(name, _)| name).collect();
                        return Err(format!("no fault is named {word:?}: none, all, {}", names.join(", ")));
                    }
                }
            }
        }
        Ok(Faults(faults))
    }

    /// Every name with what it means, those of patterns after those of faults.
    pub fn known() -> Vec<(String, &'static str)> {
        let patterns =
            Pattern::ALL.into_iter().map(Pattern::name).map(|(name, words)| (name.to_owned(), words));
        Fault::ALL.iter().map(|fault| (fault.name(), fault.words())).chain(patterns).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }
}

// === impl Given ===

impl Given {
    /// A world for a set and the Applications it gives. `targets` are the same with their parameters, by the place of
    /// their generator; those of generators with phases are needed.
    ///
    /// # Errors
    /// If something of it has no place in a world.
    pub fn new(
        set: &Value,
        applications: &[Value],
        targets: &BTreeMap<usize, Vec<Target>>,
    ) -> Result<Given, Unfit> {
        if applications.is_empty() {
            return Err(Unfit("the set gives no Application: there is nothing to roll out".to_owned()));
        }
        if applications.len() > MOST_APPLICATIONS {
            let number = applications.len();
            return Err(Unfit(format!("{number} Applications: a world has room for {MOST_APPLICATIONS}")));
        }
        let mut maker = Maker::default();
        let mut given = Given {
            object: Value::Null,
            apps: BTreeMap::new(),
            elements: BTreeMap::new(),
            members: Vec::new(),
            branches: Vec::new(),
            titles: Vec::new(),
            automated: false,
            calls: Vec::new(),
            phased: None,
            notes: Vec::new(),
        };
        for application in applications {
            let name = text(application, "/metadata/name");
            if name.is_empty() || name.len() > LONGEST_NAME {
                let why = format!("the name of an Application has 1 to {LONGEST_NAME} characters here");
                return Err(Unfit(format!("{name:?}: {why}")));
            }
            let (app, element) = maker.application(name, application)?;
            given.automated |= !app["spec"]["syncPolicy"]["automated"].is_null();
            given.elements.insert(name.to_owned(), element);
            if given.apps.insert(name.to_owned(), app).is_some() {
                return Err(Unfit(format!("several Applications are named {name:?}")));
            }
        }
        let phased = phases::of(set, targets, &mut maker)?;
        if let Some(phased) = &phased {
            given.apps.iter_mut().for_each(|(name, app)| phased.mark(name, app));
            given.calls.clone_from(&phased.calls);
            given.phased = Some(phased.wait);
        }
        given.object = object(set, &given.apps, phased.as_ref(), &mut maker)?;
        if !is_rolling(set) && !given.automated && phased.is_none() {
            maker.note("nothing is synced: there is no RollingSync, and no automatic sync".to_owned());
        }
        (given.members, given.branches) = (maker.members, maker.branches);
        (given.titles, given.notes) = (maker.titles, maker.notes);
        Ok(given)
    }

    /// What was made up, and what was left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Names of its Applications.
    pub fn applications(&self) -> impl Iterator<Item = &str> {
        self.apps.keys().map(String::as_str)
    }

    /// Runs the world of a seed.
    ///
    /// # Errors
    /// If the plan asks for too much, or for an Application that is not there.
    ///
    /// # Panics
    /// If the machine gives no threads, no temporary directory or no git.
    pub fn simulate(&self, plan: &Plan, seed: u64) -> Result<Report, Unfit> {
        if plan.commits > MOST_COMMITS {
            return Err(Unfit(format!("{} commits: {MOST_COMMITS} at most", plan.commits)));
        }
        if let Some(name) = plan.failing.iter().find(|name| !self.apps.contains_key(*name)) {
            return Err(Unfit(format!("the set gives no Application {name:?}")));
        }
        if let Some(name) = plan.failing_calls.iter().find(|name| !self.calls.contains(name)) {
            let known = self.calls.join(", ");
            let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {known}") };
            return Err(Unfit(format!("no hook or check of its phases is named {name:?}: {known}")));
        }
        Ok(run::given(self.scenario(plan, seed), &self.apps, &self.titles))
    }

    fn scenario(&self, plan: &Plan, seed: u64) -> Scenario {
        let apps = u32::try_from(self.apps.len()).unwrap_or(u32::MAX);
        let (mut dice, mut calling) = (Dice::new(seed, "blows"), Dice::new(seed, "calls"));
        let dooms = [Process::Sets, Process::Applications]
            .map(|process| (process, blows((&mut dice, &mut calling), process, &plan.faults)))
            .into_iter()
            .collect();
        // Clocks that differ belong to two.
        let apart = plan.faults.has(Fault::ApartClocks);
        let second = (apart || plan.faults.has(Fault::SecondLeader))
            .then(|| (Duration::from_secs(dice.between(5, 60)), Duration::from_secs(dice.between(60, 300))));
        let mut moods = Dice::new(seed, "commits");
        let commits = (0..self.branches.len()).map(|branch| self.commits(&mut moods, branch, plan)).collect();
        Scenario {
            seed,
            kind: Kind::Usual,
            members: self.members.clone(),
            branches: self.branches.clone(),
            fleet: self.fleet(plan),
            commits,
            actions: self.actions(&mut Dice::new(seed, "actions"), plan),
            weather: Weather::of(&plan.faults.0),
            dooms,
            behind: Duration::from_secs(if plan.faults.has(Fault::GitBehind) { 20 } else { 0 }),
            tagged: false,
            slow_git: Duration::from_secs(if plan.faults.has(Fault::GitSlow) { 5 } else { 0 }),
            skew: scenario::skew(&mut Dice::new(seed, "skew"), apart || plan.faults.has(Fault::Skew)),
            second,
            foreign: None,
            before: Duration::from_secs(900) + Duration::from_secs(60) * apps,
            after: if plan.faults.is_empty() { Duration::ZERO } else { Duration::from_secs(120) },
            waits: self.waits().max(if plan.faults.has(Fault::ViewRefused) {
                SHOWN_AGAIN
            } else {
                Duration::ZERO
            }),
            still: scenario::STILL + self.phased.unwrap_or_default(),
            receiver: Manner::Steady(plan.failing_calls.clone()),
            // Whoever asks for a failure wants to see what becomes of it, and not how people try again.
            ending: if plan.fails() { Ending::Leave } else { Ending::Usual },
        }
    }

    /// The longest time in which nothing need be written though a step waits.
    fn waits(&self) -> Duration {
        if self.phased.is_some() {
            // An Application that does not get well fails its phase in the end.
            return scenario::PROGRESS;
        }
        let steps = self.object.pointer("/spec/strategy/rollingSync/steps").and_then(Value::as_array);
        let waits = |step: &Value| !step["waitDuration"].is_null() || !step["progressDeadline"].is_null();
        if steps.into_iter().flatten().any(waits) { LONGEST_WAIT } else { Duration::ZERO }
    }

    fn fleet(&self, plan: &Plan) -> Fleet {
        let mut object = self.object.clone();
        if !plan.failing_calls.is_empty() {
            // The judge must know that somebody does not answer well.
            object["metadata"]["annotations"][FAILING] = "true".into();
        }
        Fleet {
            elements: self.elements.clone(),
            automated: self.automated,
            given: Some(object),
            ..Fleet::default()
        }
    }

    fn commits(&self, dice: &mut Dice, branch: usize, plan: &Plan) -> Vec<BTreeMap<String, Content>> {
        let mut content = |number: usize, name: &String| {
            let mood = match number > 0 && plan.failing.contains(name) {
                true => Mood::Failing,
                false if dice.chance(30) => Mood::Slow,
                false => Mood::Good,
            };
            (name.clone(), Content { version: format!("b{branch}c{number}"), mood, guarded: false })
        };
        let mut commit = |number| self.apps.keys().map(|name| content(number, name)).collect();
        (0..=plan.commits).map(&mut commit).collect()
    }

    fn actions(&self, dice: &mut Dice, plan: &Plan) -> Vec<(Duration, Action)> {
        let mut actions = Vec::new();
        for number in 0..plan.commits {
            // The next comes in the middle of the rollout, or when it is over.
            let wait = match (number, dice.chance(50)) {
                (0, _) => 1,
                (_, true) => dice.between(5, 40),
                (_, false) => dice.between(200, 400),
            };
            let mut wait = Duration::from_secs(wait);
            for branch in 0..self.branches.len() {
                let part = *dice.pick(&[0, 20, 50, 100]);
                let noticed = self.apps.keys().filter(|_| dice.chance(part)).cloned().collect();
                actions.push((wait, Action::Push { branch, noticed }));
                wait = Duration::ZERO;
            }
        }
        for action in self.mishaps(dice) {
            if action.fault().is_some_and(|fault| plan.faults.has(fault)) {
                let place = usize::try_from(dice.below(actions.len() as u64)).unwrap_or(0) + 1;
                let wait = Duration::from_millis(dice.between(500, 20_000));
                actions.insert(place.min(actions.len()), (wait, action));
            }
        }
        if plan.deletes {
            actions.push((
                Duration::from_secs(dice.between(5, 120)),
                Action::DeleteSet { cascade: "Background" },
            ));
        }
        actions
    }

    fn mishaps(&self, dice: &mut Dice) -> [Action; 5] {
        let time = Duration::from_secs(dice.between(5, 40));
        let member = dice.pick(&self.members).clone();
        let branch = usize::try_from(dice.below(self.branches.len() as u64)).unwrap_or(0);
        [
            Action::MemberAway { member, time },
            Action::GitAway { branch, time },
            Action::Head(Edit::Delete),
            Action::Head(Edit::Reset),
            Action::Head(Edit::Garble),
        ]
    }
}

/// The blows to one controller: one of each kind, a life each.
fn blows(
    (dice, calling): (&mut Dice, &mut Dice),
    process: Process,
    faults: &Faults,
) -> Vec<(Doom, Duration)> {
    let mut dooms = Vec::new();
    if process == Process::Sets && faults.has(Fault::FrozenLeader) {
        let blow = Blow::Freeze(Duration::from_millis(dice.between(500, 20_000)));
        let moment = Moment::Recorded(dice.between(1, 5));
        dooms.push((Doom { moment, blow }, Duration::from_millis(dice.between(0, 60_000))));
    }
    for (fault, blow) in [(Fault::CrashBefore, Blow::Before), (Fault::CrashAfter, Blow::After)] {
        if faults.has(fault) {
            let moment = Moment::Write(dice.between(1, 20));
            dooms.push((Doom { moment, blow }, Duration::from_millis(dice.between(100, 20_000))));
        }
    }
    if faults.has(Fault::CrashAtRead) {
        let doom = Doom { moment: Moment::Read(calling.between(5, 40)), blow: Blow::Before };
        dooms.push((doom, Duration::from_millis(calling.between(100, 20_000))));
    }
    let calls = [(Fault::CallCrashBefore, Blow::Before), (Fault::CallCrashAfter, Blow::After)];
    for (_, blow) in calls.into_iter().filter(|(fault, _)| process == Process::Sets && faults.has(*fault)) {
        let moment = Moment::Call(calling.between(1, 3));
        dooms.push((Doom { moment, blow }, Duration::from_millis(calling.between(100, 20_000))));
    }
    dooms
}

fn is_rolling(set: &Value) -> bool {
    text(set, "/spec/strategy/type") == "RollingSync"
}

/// The set with its Applications as a list, so that it needs nothing but itself.
fn object(
    set: &Value,
    apps: &BTreeMap<String, Value>,
    phased: Option<&Phased>,
    maker: &mut Maker,
) -> Result<Value, Unfit> {
    let mut strategy = set["spec"]["strategy"].clone();
    if is_rolling(set) {
        steps(&mut strategy, maker)?;
    }
    let element = |(name, app): (&String, &Value)| {
        let mut element = json!({"name": name, "patch": app.to_string()});
        if let Some(phase) = phased.and_then(|phased| phased.places.get(name)) {
            element[PHASE] = phase.as_str().into();
        }
        element
    };
    // The judge looks for phases in the first generator.
    let of_phases = |(name, _): &(&String, &Value)| phased.is_some_and(|it| it.places.contains_key(*name));
    let (own, rest): (Vec<_>, Vec<_>) = apps.iter().partition(of_phases);
    let list = |apps: Vec<(&String, &Value)>| json!({"list": {"elements": apps.into_iter().map(element).collect::<Vec<_>>()}});
    let mut generators: Vec<Value> = phased
        .map(|phased| {
            let mut first = list(own);
            first["deploymentStrategy"] = phased.strategy.clone();
            first
        })
        .into_iter()
        .collect();
    if generators.is_empty() || !rest.is_empty() {
        generators.push(list(rest));
    }
    let annotations = set["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let ours = |name: &String| name.starts_with("baton.dev/");
    let annotations: Map<String, Value> = annotations.into_iter().filter(|(name, _)| ours(name)).collect();
    let mut spec = json!({
        "goTemplate": true,
        "generators": generators,
        "template": {"metadata": {"name": "{{ .name }}"}, "spec": {"project": "default", "destination": {}}},
        "templatePatch": "{{ .patch }}",
    });
    for kept in ["syncPolicy", "ignoreApplicationDifferences", "preservedFields"] {
        if !set["spec"][kept].is_null() {
            spec[kept] = set["spec"][kept].clone();
        }
    }
    if !strategy.is_null() {
        spec["strategy"] = strategy;
    }
    Ok(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": SET, "namespace": NAMESPACE, "annotations": annotations},
        "spec": spec,
    }))
}

fn steps(strategy: &mut Value, maker: &mut Maker) -> Result<(), Unfit> {
    let steps = strategy.pointer_mut("/rollingSync/steps").and_then(Value::as_array_mut);
    let Some(steps) = steps.filter(|steps| !steps.is_empty()) else {
        return Err(Unfit("a RollingSync without steps rolls nothing out".to_owned()));
    };
    for (number, step) in steps.iter_mut().enumerate() {
        let number = number + 1;
        let expressions = step["matchExpressions"].as_array().into_iter().flatten();
        let operators: Vec<&str> = expressions.map(|expression| text(expression, "/operator")).collect();
        if let Some(other) = operators.iter().find(|operator| !matches!(**operator, "In" | "NotIn")) {
            let why = format!("{other:?} is no operator of steps, which are In and NotIn");
            return Err(Unfit(format!("step {number}: {why}")));
        }
        if !step["maxFailures"].is_null() {
            return Err(Unfit(format!("step {number}: maxFailures is not simulated yet")));
        }
        for field in ["waitDuration", "progressDeadline"] {
            let Some(written) = step[field].as_str() else { continue };
            let read: Option<baton_grammar::duration::Duration> = written.parse().ok();
            if read.and_then(|wait| wait.to_std()).is_some_and(|wait| wait > LONGEST_WAIT) {
                maker.note(format!("{field} {written} of step {number} is cut to 5m"));
                step[field] = "5m".into();
            }
        }
    }
    Ok(())
}

/// Makes up what a world needs.
#[derive(Default)]
struct Maker {
    members: Vec<String>,
    destinations: BTreeMap<(String, String), usize>,
    branches: Vec<Branch>,
    titles: Vec<String>,
    notes: Vec<String>,
}

impl Maker {
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The Application as it is in the world.
    fn application(&mut self, name: &str, application: &Value) -> Result<(Value, Element), Unfit> {
        let mut spec = application["spec"].clone();
        if !spec["sourceHydrator"].is_null() {
            return Err(Unfit(format!("{name}: sourceHydrator is not simulated")));
        }
        let (sources, home) = self.sources(name, &spec)?;
        let member = self.member(&spec["destination"]);
        let Some(fields) = spec.as_object_mut() else { return Err(Unfit(format!("{name} has no spec"))) };
        fields.remove("source");
        fields.remove("sources");
        fields.extend(sources);
        fields.insert("project".to_owned(), "default".into());
        let destination = json!({"server": server(&member), "namespace": TARGET_NAMESPACE});
        fields.insert("destination".to_owned(), destination);
        let mut metadata = json!({"name": name});
        for kept in ["labels", "annotations", "finalizers"] {
            if !application["metadata"][kept].is_null() {
                metadata[kept] = application["metadata"][kept].clone();
            }
        }
        let app = json!({"metadata": metadata, "spec": spec});
        Ok((app, Element { tier: 0, member, home }))
    }

    fn sources(&mut self, name: &str, spec: &Value) -> Result<(Map<String, Value>, Home), Unfit> {
        let several = spec["sources"].as_array().filter(|all| !all.is_empty()).cloned();
        let is_several = several.is_some();
        let mut all = several.unwrap_or_else(|| vec![spec["source"].clone()]);
        if all.len() > 2 {
            self.note(format!("{name}: only the first two of its {} sources are simulated", all.len()));
            all.truncate(2);
        }
        let mut made = Vec::new();
        let mut first = 0;
        for (number, source) in all.iter().enumerate() {
            if text(source, "/repoURL").is_empty() {
                return Err(Unfit(format!("{name} has a source without a repoURL")));
            }
            let branch = self.branch(source);
            if number == 0 {
                first = branch;
            }
            let directory = if number == 0 { VARIANTS[0] } else { EXTRA };
            let Branch { url, name: target } = &self.branches[branch];
            made.push(
                json!({"repoURL": url, "targetRevision": target, "path": format!("{directory}/{name}")}),
            );
        }
        let mut fields = Map::new();
        match is_several {
            true => fields.insert("sources".to_owned(), made.into()),
            false => fields.insert("source".to_owned(), made.into_iter().next().unwrap_or_default()),
        };
        Ok((fields, Home::Branch(first)))
    }

    /// The branch that stands for what a source follows.
    fn branch(&mut self, source: &Value) -> usize {
        let url = text(source, "/repoURL");
        let target = match text(source, "/targetRevision") {
            "" => "HEAD",
            target => target,
        };
        let what = match text(source, "/chart") {
            "" => format!("{url} {target}"),
            chart => format!("{url} {chart} {target}"),
        };
        if let Some(known) = self.titles.iter().position(|title| *title == what) {
            return known;
        }
        let repository = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let number = self.branches.len();
        let url =
            format!("https://git.example.com/{number}-{}.git", word(repository.trim_end_matches(".git")));
        self.branches.push(Branch { url: url.into(), name: "main".into() });
        self.titles.push(what);
        number
    }

    /// The member that stands for a destination.
    fn member(&mut self, destination: &Value) -> String {
        let (name, url) = (text(destination, "/name"), text(destination, "/server"));
        let known = self.destinations.get(&(name.to_owned(), url.to_owned()));
        if let Some(known) = known {
            return self.members[*known].clone();
        }
        let host = url.split("://").last().unwrap_or_default();
        let plain = match (name, host) {
            ("", "" | "kubernetes.default.svc") => "in-cluster".to_owned(),
            ("", host) => word(host.trim_end_matches(".example.com")),
            (name, _) => word(name),
        };
        let plain = if plain == CONTROL { format!("{plain}-cluster") } else { plain };
        let number = self.members.len();
        let taken = self.members.contains(&plain);
        let member = if taken { format!("{plain}-{number}") } else { plain };
        self.destinations.insert((name.to_owned(), url.to_owned()), number);
        self.members.push(member.clone());
        member
    }
}

/// A text as part of a host's name.
fn word(text: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let word: String = text.chars().take(50).map(letter).collect();
    let word = word.trim_matches('-');
    if word.is_empty() { "x".to_owned() } else { word.to_owned() }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
