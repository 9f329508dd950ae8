//! Mistakes in the phases of generators, their hooks and their checks.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_phases::lint::contradictions;
use baton_phases::{Plan, Roster, Target, assign, compile_anywhere, language};
use baton_rollout::plan::rolling_steps;
use baton_rollout::steps::Steps;
use serde_json::Value;

use crate::known::{self, Known};
use crate::{Report, Severity};

/// Where hooks and checks are.
const CALLS: [&str; 3] = [".preHooks", ".postHooks", ".checks"];

pub(crate) fn judge(set: &ApplicationSet, document: &Value, report: &mut Report<'_>) {
    for (generator, it) in set.spec.generators.iter().enumerate() {
        let Some(strategy) = &it.deployment_strategy else { continue };
        let path = path(generator);
        let known = known::of_entry(&document["spec"]["generators"][generator], set.spec.go_template);
        let read = compile_anywhere(strategy, &path, language(set));
        for finding in &read.compiled.findings {
            let rule = rule(&finding.path);
            match finding.is_error() {
                // The schema has refused it in other words.
                true if is_told(report, &finding.path) => {}
                true => report.error(rule, &*finding.path, &*finding.message),
                false => report.warning(rule, &*finding.path, &*finding.message),
            }
        }
        for finding in &read.operator {
            report.warning("hook-operator", &*finding.path, &*finding.message);
        }
        if let Some(plan) = &read.compiled.plan {
            unknown_parameters(plan, generator, &known, report);
        }
    }
}

fn rule(path: &str) -> &'static str {
    if CALLS.iter().any(|list| path.contains(list)) { "hook" } else { "phase" }
}

/// Names in texts of hooks and checks that the generator surely does not give.
fn unknown_parameters(plan: &Plan, generator: usize, known: &Known, report: &mut Report<'_>) {
    for need in plan.phases.iter().flat_map(|phase| &phase.needs) {
        if !known.has(need.need.given_as()) {
            let (shown, listed) = (need.need.shown(), known.listed());
            let message =
                format!("spec.generators[{generator}] gives no parameter for {shown}; it has {listed}");
            report.error("unknown-parameter", &*need.path, message);
        }
    }
}

/// Phases against the Applications there are.
pub(crate) fn rendered(
    set: &ApplicationSet,
    applications: &[Value],
    targets: &BTreeMap<usize, Vec<Target>>,
    report: &mut Report<'_>,
) {
    let steps = Steps::read(rolling_steps(set.spec.strategy.as_ref()).unwrap_or_default()).0;
    for (generator, it) in set.spec.generators.iter().enumerate() {
        let Some(strategy) = &it.deployment_strategy else { continue };
        let path = path(generator);
        let Some(plan) = compile_anywhere(strategy, &path, language(set)).compiled.plan else { continue };
        let targets = targets.get(&generator).map(Vec::as_slice).unwrap_or_default();
        match assign(&plan, targets) {
            Ok(roster) => {
                membership(&plan, &roster, targets, report);
                let labels = |name: &str| labels(applications, name);
                for clash in contradictions(&plan, &roster, &steps, labels) {
                    let second = plan.phases.iter().position(|phase| phase.name == clash.second_phase);
                    let place = second.map_or_else(|| path.clone(), |at| format!("{path}.phases[{at}]"));
                    report.error("phase-order", place, clash.to_string());
                }
            }
            Err(findings) => {
                for finding in &findings {
                    report.error(rule(&finding.path), &*finding.path, &*finding.message);
                }
            }
        }
    }
}

fn membership(plan: &Plan, roster: &Roster, targets: &[Target], report: &mut Report<'_>) {
    if targets.is_empty() {
        return;
    }
    if roster.is_idle() {
        let message =
            "no phase matches any Application of this generator: nothing would be deployed; mend the targets";
        report.error("no-phase-matches", format!("{}.phases", plan.path), message);
        return;
    }
    for (index, (phase, group)) in plan.phases.iter().zip(&roster.phases).enumerate() {
        if let Some(doubt) = group.doubt(phase) {
            report.warning("empty-phase", format!("{}.phases[{index}]", plan.path), doubt);
        }
    }
    let message = match roster.unassigned.as_slice() {
        [] => return,
        [one] => format!("{one} is in no phase and stays as it is"),
        [first, rest @ ..] => format!("{first} and {} more are in no phase and stay as they are", rest.len()),
    };
    report.warning("unmatched-applications", format!("{}.phases", plan.path), message);
}

fn path(generator: usize) -> String {
    format!("spec.generators[{generator}].deploymentStrategy")
}

fn labels(applications: &[Value], name: &str) -> BTreeMap<String, String> {
    let of_name = applications.iter().find(|application| application["metadata"]["name"] == name);
    let labels = of_name.and_then(|application| application["metadata"]["labels"].as_object());
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}

/// Whether something is wrong with a field, or with what holds it, already.
fn is_told(report: &Report<'_>, path: &str) -> bool {
    report.findings.iter().any(|known| {
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        known.severity == Severity::Error
            && known.rule == "schema"
            && (within(path, &known.path) || within(&known.path, path))
    })
}
