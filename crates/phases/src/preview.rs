//! What the phases of a whole set will do, generator by generator, before anything does.

use std::collections::BTreeMap;

use baton_api::phase_status::{GeneratorPhases, PhaseApplication, PhaseApplicationState, PhaseState};
use baton_api::phases::DeploymentStrategy;
use baton_api::{ApplicationSet, ApplicationSetSpec};
use baton_rollout::plan::rolling_steps;
use baton_rollout::shift::Setting;
use baton_rollout::steps::Steps;
use serde::Serialize;

use crate::anywhere::{compile_anywhere, language};
use crate::compile::misplaced;
use crate::forecast::{Forecast, Removal, removal, told};
use crate::lint::contradictions;
use crate::machine::{is_back, is_frozen};
use crate::targets::{Target, assign_on, entry};

/// A set whose phases are to be told of.
pub struct Proposal<'a> {
    /// As it is to be.
    pub set: &'a ApplicationSet,
    /// As it is now, where it is known.
    pub before: Option<&'a ApplicationSet>,
    /// What its generators give, by their place.
    pub targets: &'a BTreeMap<usize, Vec<Target>>,
    /// The labels of a rendered Application, which choose its step.
    pub labels: &'a dyn Fn(&str) -> BTreeMap<String, String>,
    /// Which kind of generator is at a place.
    pub kinds: &'a dyn Fn(usize) -> String,
}

/// What will happen to the Applications of one generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Place of the generator in the set, counted from 0.
    pub generator: usize,
    /// Which kind of generator it is, for example `clusters`.
    pub generator_type: String,
    /// How many Applications it gives.
    pub applications: usize,
    /// Phase by phase; none where they cannot be followed, or are removed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// What keeps the rollout from beginning or from ending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Who would be neither created nor changed, since the phases cannot be followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// What a controller without flags for hooks refuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator: Vec<String>,
    /// What becomes of those that phases held, where the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

/// Tells it of every generator that has phases, or had them.
pub fn preview(proposal: &Proposal<'_>) -> Vec<Preview> {
    let generators = 0..proposal.set.spec.generators.len();
    generators.filter_map(|generator| of_generator(proposal, generator)).collect()
}

fn of_generator(proposal: &Proposal<'_>, generator: usize) -> Option<Preview> {
    let it = proposal.set.spec.generators.get(generator)?;
    let targets = proposal.targets.get(&generator).map(Vec::as_slice).unwrap_or_default();
    let path = format!("spec.generators[{generator}]");
    let misplaced = misplaced(it, &path);
    let mut preview = Preview {
        generator,
        generator_type: (proposal.kinds)(generator),
        applications: targets.len(),
        forecast: None,
        problems: misplaced.iter().map(ToString::to_string).collect(),
        held: Vec::new(),
        operator: Vec::new(),
        removal: None,
    };
    let all = || targets.iter().map(|target| target.name.to_string()).collect();
    if !preview.problems.is_empty() {
        preview.held = all();
    }
    let Some(strategy) = &it.deployment_strategy else {
        let had = proposal.before.and_then(|before| had(before, generator));
        preview.removal = had.map(|stored| removal(stored, targets));
        return (preview.removal.is_some() || !preview.problems.is_empty()).then_some(preview);
    };
    let path = format!("{path}.deploymentStrategy");
    let read = compile_anywhere(strategy, &path, language(proposal.set));
    preview.operator = read.operator.iter().map(ToString::to_string).collect();
    preview.problems.extend(read.compiled.errors().map(ToString::to_string));
    let Some(plan) = &read.compiled.plan else { return Some(Preview { held: all(), ..preview }) };
    let on_its_way = proposal.before.and_then(|before| on_its_way(before, proposal.set, generator));
    let phases = on_its_way.map(|stored| stored.phases.as_slice()).unwrap_or_default();
    let begun = |name: &str| {
        let held = |entry: &PhaseApplication| entry.state == PhaseApplicationState::Held;
        phases.iter().any(|phase| entry(phase, name).is_some_and(|entry| !held(entry)))
    };
    let roster = match assign_on(plan, targets, phases, &begun) {
        Ok(roster) => roster,
        Err(findings) => {
            preview.problems.extend(findings.iter().map(ToString::to_string));
            preview.held = all();
            return Some(preview);
        }
    };
    let mut told = told(plan, &roster, targets);
    let steps = Steps::read(rolling_steps(proposal.set.spec.strategy.as_ref()).unwrap_or_default()).0;
    preview.problems.append(&mut told.problems);
    if steps.len() > 1 {
        let clashes = contradictions(plan, &roster, &steps, proposal.labels);
        preview.problems.extend(clashes.iter().map(ToString::to_string));
    }
    if !preview.problems.is_empty() {
        preview.held = all();
    }
    let doubtful = read.compiled.findings.iter().filter(|finding| !finding.is_error());
    told.warnings.extend(doubtful.map(ToString::to_string));
    told.warnings.extend(on_its_way.and_then(stands_still));
    preview.forecast = Some(told);
    Some(preview)
}

/// How far the rollout is that goes on where the set is as it is now but for whom its generators give; nothing where none is on
/// its way, or another begins. What does not fit into the status is not known here.
fn on_its_way<'s>(
    before: &'s ApplicationSet,
    after: &ApplicationSet,
    generator: usize,
) -> Option<&'s GeneratorPhases> {
    let strategy = |set: &ApplicationSet| {
        set.spec.generators.get(generator).and_then(|it| it.deployment_strategy.clone())
    };
    let rest = |set: &ApplicationSet| ApplicationSetSpec { generators: Vec::new(), ..set.spec.clone() };
    let goes_on = strategy(before) == strategy(after) && rest(before) == rest(after);
    let stored = had(before, generator).flatten().filter(|_| goes_on);
    stored.filter(|stored| stored.current_phase < stored.total_phases)
}

/// Why nothing of what is forecast happens by itself, where the rollout that goes on has come to a stand.
fn stands_still(stored: &GeneratorPhases) -> Option<String> {
    let open = stored.phases.get(usize::try_from(stored.current_phase).ok()?)?;
    let remedy = &open.failure.as_ref()?.remedy;
    let goes_back = open.state == PhaseState::RollingBack;
    (goes_back || is_frozen(open)).then(|| {
        let entries = stored.phases.iter().flat_map(|phase| &phase.applications);
        let stays = match entries.filter(|entry| is_back(&entry.state)).count() {
            0 => String::new(),
            1 => "1 Application stays put back, and ".to_owned(),
            count => format!("{count} Applications stay put back, and "),
        };
        format!("phase {:?} is {}: {stays}nobody else changes; it needs {remedy}", open.name, open.state)
    })
}

/// Which phases are others than before.
pub fn changes(before: &ApplicationSet, after: &ApplicationSet) -> Vec<Setting> {
    let strategy = |set: &ApplicationSet, at: usize| {
        set.spec.generators.get(at).and_then(|generator| generator.deployment_strategy.clone())
    };
    let most = before.spec.generators.len().max(after.spec.generators.len());
    let mut found = Vec::new();
    for at in 0..most {
        let (old, new) = (strategy(before, at), strategy(after, at));
        if old == new {
            continue;
        }
        let names = |strategy: Option<DeploymentStrategy>| match strategy {
            None => "none".to_owned(),
            Some(it) => it.phases.iter().map(|phase| phase.name.as_str()).collect::<Vec<_>>().join(", "),
        };
        let (from, mut to) = (names(old), names(new));
        if from == to {
            to = "the same, set up otherwise".to_owned();
        }
        found.push(Setting { name: format!("phases of generator {at}"), from, to });
    }
    found
}

/// How far the phases are that a generator has, or had; none where it never had any.
fn had(before: &ApplicationSet, generator: usize) -> Option<Option<&GeneratorPhases>> {
    let place = i64::try_from(generator).ok()?;
    let stored = before.status.phases.iter().find(|phases| phases.generator == place);
    let written = before.spec.generators.get(generator).is_some_and(|it| it.deployment_strategy.is_some());
    (written || stored.is_some()).then_some(stored)
}
