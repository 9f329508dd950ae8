//! Mistakes in the steps of a rollout and of a deletion.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_api::application_set::ApplicationsSync;
use baton_api::names::baton::{DELETION_FUSE, GUARD_SUFFIX};
use baton_api::strategy::{
    DeletionOrder, MatchExpression, MatchOperator, RolloutStep, Strategy, StrategyType,
};
use baton_rollout::control;
use baton_rollout::steps::Steps;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use crate::Report;

/// Longest name of a ConfigMap.
const LONGEST_NAME: usize = 253;
const ROLLING: &str = "spec.strategy.rollingSync.steps";
const DELETION: &str = "spec.strategy.deletionSync.steps";

pub(crate) fn judge(set: &ApplicationSet, report: &mut Report<'_>) {
    words(set, report);
    let Some(strategy) = &set.spec.strategy else { return };
    kinds(strategy, report);
    unkept(set, strategy, report);
    for (path, steps) in plans(strategy) {
        for (index, step) in steps.iter().enumerate() {
            one(step, &format!("{path}[{index}]"), path == DELETION, report);
        }
        unreachable(set, path, steps, report);
    }
}

fn plans(strategy: &Strategy) -> Vec<(&'static str, &[RolloutStep])> {
    let rolling = strategy.rolling_sync.as_ref().map(|rolling| (ROLLING, &rolling.steps[..]));
    let deletion = strategy.deletion_sync.as_ref().map(|deletion| (DELETION, &deletion.steps[..]));
    rolling.into_iter().chain(deletion).collect()
}

fn kinds(strategy: &Strategy, report: &mut Report<'_>) {
    let rolls = strategy.kind == StrategyType::RollingSync;
    let steps = strategy.rolling_sync.as_ref().map_or(0, |rolling| rolling.steps.len());
    if let StrategyType::Other(word) = &strategy.kind
        && !word.is_empty()
    {
        report.error(
            "strategy-type",
            "spec.strategy.type",
            format!("{word:?} is no strategy and would act as AllAtOnce; write AllAtOnce or RollingSync"),
        );
    }
    if rolls && steps == 0 {
        report.error("no-steps", "spec.strategy", "RollingSync needs rollingSync.steps");
    }
    if !rolls && steps > 0 {
        report.warning(
            "unused-steps",
            "spec.strategy.rollingSync",
            "the steps are not used: type is not RollingSync",
        );
    }
    match strategy.deletion_order() {
        Err(word) => report.error(
            "deletion-order",
            "spec.strategy.deletionOrder",
            format!("{word:?} is no deletion order; write AllAtOnce, Reverse or Custom"),
        ),
        Ok(DeletionOrder::Reverse) if !rolls || steps == 0 => report.error(
            "deletion-order",
            "spec.strategy.deletionOrder",
            "Reverse needs the steps of a RollingSync: nothing would be deleted",
        ),
        Ok(DeletionOrder::Custom)
            if strategy.deletion_sync.as_ref().is_none_or(|deletion| deletion.steps.is_empty()) =>
        {
            report.error(
                "deletion-order",
                "spec.strategy.deletionOrder",
                "Custom needs deletionSync.steps: nothing would be deleted",
            );
        }
        Ok(order) => {
            if strategy.deletion_sync.is_some() && order != DeletionOrder::Custom {
                report.warning(
                    "unused-steps",
                    "spec.strategy.deletionSync",
                    "the steps are not used: deletionOrder is not Custom",
                );
            }
        }
    }
}

/// Where an order of deletion cannot be kept, or is for nothing.
fn unkept(set: &ApplicationSet, strategy: &Strategy, report: &mut Report<'_>) {
    if matches!(strategy.deletion_order(), Ok(DeletionOrder::AllAtOnce)) {
        return;
    }
    let path = "spec.strategy.deletionOrder";
    let policy = set.spec.sync_policy.as_ref().map(|policy| &policy.applications_sync);
    if let Some(ApplicationsSync::CreateOnly | ApplicationsSync::CreateUpdate) = policy {
        report.warning(
            "deletion-order",
            path,
            "not used: syncPolicy.applicationsSync lets nothing be deleted",
        );
    }
    if set.metadata.name.as_ref().is_some_and(|name| name.len() + GUARD_SUFFIX.len() > LONGEST_NAME) {
        report.warning(
            "deletion-order",
            path,
            "not kept by `kubectl delete --cascade=foreground`: the set's name is too long for that of its guard",
        );
    }
}

/// Annotations that ask for something in words nobody understands.
fn words(set: &ApplicationSet, report: &mut Report<'_>) {
    for word in control::misunderstood(set.metadata.annotations.as_ref(), None) {
        let rule = if word.annotation == DELETION_FUSE { "deletion-fuse" } else { "annotation" };
        report.error(rule, format!("metadata.annotations.{}", word.annotation), word.why);
    }
}

fn one(step: &RolloutStep, path: &str, deletes: bool, report: &mut Report<'_>) {
    for (index, expression) in step.match_expressions.iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        if expression.key.is_empty() {
            report.error("step-expression", format!("{path}.key"), "the label is missing");
        }
        match &expression.operator {
            MatchOperator::In | MatchOperator::NotIn if expression.values.is_empty() => {
                let what = if expression.operator == MatchOperator::In { "nothing" } else { "everything" };
                report.warning("step-expression", &*path, format!("without values it matches {what}"));
            }
            MatchOperator::In | MatchOperator::NotIn => {}
            other => report.error(
                "step-operator",
                format!("{path}.operator"),
                format!("steps know the operators In and NotIn, not {:?}", other.as_str()),
            ),
        }
    }
    for issue in Steps::read(std::slice::from_ref(step)).1.iter().filter(|issue| issue.closes()) {
        report.error("step-end", format!("{path}.{}", issue.field()), issue.what());
    }
    if let Some(limit) = &step.max_update {
        max_update(limit, &format!("{path}.maxUpdate"), deletes, report);
    }
}

fn max_update(limit: &IntOrString, path: &str, deletes: bool, report: &mut Report<'_>) {
    match limit {
        IntOrString::Int(0) if deletes => report.warning("max-update", path, "0 counts as 1 in a deletion"),
        IntOrString::String(text) if deletes && text == "0%" => {
            report.warning("max-update", path, "0% counts as 1 in a deletion");
        }
        IntOrString::Int(0) => {
            report.warning("max-update", path, "0 holds the step until its Applications are synced by hand")
        }
        IntOrString::Int(n) if *n < 0 => {
            report.error("max-update", path, format!("{n} is less than nothing"))
        }
        IntOrString::Int(_) => {}
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok());
            match percent {
                Some(0) => report.warning(
                    "max-update",
                    path,
                    "0% holds the step until its Applications are synced by hand",
                ),
                Some(1..=100) => {}
                _ => report.error(
                    "max-update",
                    path,
                    format!("{text:?} is neither a number nor a percentage such as 25%"),
                ),
            }
        }
    }
}

/// Steps that can hold no Application, whatever the parameters are.
fn unreachable(set: &ApplicationSet, path: &str, steps: &[RolloutStep], report: &mut Report<'_>) {
    let labels = &set.spec.template.metadata.labels;
    // A patch or a generator's own template may add labels that are not seen here.
    let settled = set.spec.template_patch.is_none() && labels.keys().all(|key| !key.contains("{{"));
    let mut taken_by: Option<usize> = None;
    for (index, step) in steps.iter().enumerate() {
        let here = format!("{path}[{index}]");
        if let Some(earlier) = taken_by {
            let message = format!("no Application gets here: step {} takes every one", earlier + 1);
            report.warning("unreachable-step", &*here, message);
            continue;
        }
        if step.match_expressions.is_empty() {
            taken_by = Some(index);
        }
        for expression in step
            .match_expressions
            .iter()
            .filter(|expression| settled && expression.operator == MatchOperator::In)
        {
            match labels.get(&expression.key) {
                None => report.warning(
                    "unreachable-step",
                    &*here,
                    format!("the template gives Applications no label {:?}, so none matches", expression.key),
                ),
                Some(value) if !value.contains("{{") && !expression.values.contains(value) => report.warning(
                    "unreachable-step",
                    &*here,
                    format!("every Application has {}={value}, so none matches", expression.key),
                ),
                Some(_) => {}
            }
        }
        for (before, earlier) in steps[..index].iter().enumerate() {
            if let Some(shared) = shared_value(earlier, step) {
                let message = format!(
                    "overlaps step {}: an Application with {shared} is in both and belongs to the first",
                    before + 1
                );
                report.warning("overlapping-steps", &*here, message);
            }
        }
    }
}

/// A label that surely puts an Application into both steps: both ask for nothing but `In` on the same one label.
fn shared_value(a: &RolloutStep, b: &RolloutStep) -> Option<String> {
    let ([a], [b]) = (&a.match_expressions[..], &b.match_expressions[..]) else { return None };
    if a.key != b.key || a.operator != MatchOperator::In || b.operator != MatchOperator::In {
        return None;
    }
    a.values.iter().find(|value| b.values.contains(value)).map(|value| format!("{}={value}", a.key))
}

/// Steps against the Applications there are.
pub(crate) fn rendered(set: &ApplicationSet, applications: &[Value], report: &mut Report<'_>) {
    let Some(strategy) = &set.spec.strategy else { return };
    for (path, steps) in plans(strategy) {
        if applications.is_empty() || steps.is_empty() {
            continue;
        }
        let mut counts = vec![0_usize; steps.len()];
        let mut several: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
        let mut none = Vec::new();
        for application in applications {
            let name = application["metadata"]["name"].as_str().unwrap_or_default();
            let matching: Vec<usize> =
                (0..steps.len()).filter(|index| matches(&steps[*index], application)).collect();
            match matching[..] {
                [] => none.push(name),
                [first] => counts[first] += 1,
                [first, second, ..] => {
                    counts[first] += 1;
                    several.entry((first, second)).or_default().push(name);
                }
            }
        }
        for (index, _) in counts.iter().enumerate().filter(|(_, count)| **count == 0) {
            report.warning("empty-step", format!("{path}[{index}]"), "no Application is in this step");
        }
        for ((first, second), names) in several {
            let message = format!(
                "overlaps step {}: {} in both and belong to the first",
                first + 1,
                counted(&names, "is", "are")
            );
            report.warning("overlapping-steps", format!("{path}[{second}]"), message);
        }
        if !none.is_empty() {
            let fate = if path == DELETION { "they go last, one by one" } else { "only a person syncs them" };
            let message = format!("{} in no step: {fate}", counted(&none, "is", "are"));
            report.warning("unmatched-applications", path, message);
        }
    }
}

fn matches(step: &RolloutStep, application: &Value) -> bool {
    step.match_expressions.iter().all(|expression| holds(expression, application))
}

fn holds(expression: &MatchExpression, application: &Value) -> bool {
    let label = application["metadata"]["labels"].get(&expression.key).and_then(Value::as_str);
    let listed = label.is_some_and(|label| expression.values.iter().any(|value| value == label));
    match expression.operator {
        MatchOperator::In => listed,
        MatchOperator::NotIn => !listed,
        _ => false,
    }
}

fn counted(names: &[&str], one: &str, many: &str) -> String {
    match names {
        [name] => format!("{name} {one}"),
        [a, b] => format!("{a} and {b} {many}"),
        [first, rest @ ..] => format!("{first} and {} more {many}", rest.len()),
        [] => String::new(),
    }
}
