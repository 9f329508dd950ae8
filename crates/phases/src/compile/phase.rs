//! One phase: its name, targets, shares, times, and what its calls are to the machine.

use std::time::Duration;

use baton_api::phases::{Check, FailurePolicy, Hook, Phase, PhaseTarget, TargetExpression, TargetOperator};
use baton_hooks::{Need, Policy};
use baton_rollout::steps::{Share, clipped};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Report, shown};
use crate::config::{Action, Again, CallFailure, CallPlan, DEADLINE, NeedPlan, PhasePlan};

/// Longest name of a phase: it becomes part of the name of an annotation.
const LONGEST_NAME: usize = 40;
/// Most entries of `targets`.
const MOST_ENTRIES: usize = 100;
/// Most hooks or checks of one list.
const MOST_CALLS: usize = 50;
/// How often a check is asked again.
const POLL: Duration = Duration::from_secs(10);

/// Reads a phase. What is wrong with it goes to the report.
pub(super) fn read(phase: &Phase, path: &str, policy: &Policy, report: &mut Report) -> PhasePlan {
    name(&phase.name, &format!("{path}.name"), report);
    targets(&phase.targets, &format!("{path}.targets"), report);
    for (field, count) in [
        ("preHooks", phase.pre_hooks.len()),
        ("postHooks", phase.post_hooks.len()),
        ("checks", phase.checks.len()),
    ] {
        if count > MOST_CALLS {
            let message =
                format!("{count} are more than the {MOST_CALLS} that are allowed; join some of them");
            report.error(format!("{path}.{field}"), message);
        }
    }
    let checks: Vec<CallPlan> = phase.checks.iter().map(|check| of_check(check, policy)).collect();
    let hooks =
        |hooks: &[Hook]| -> Vec<CallPlan> { hooks.iter().map(|hook| of_hook(hook, policy)).collect() };
    let progress = duration(phase.progress_deadline.as_deref(), &format!("{path}.progressDeadline"), report);
    if progress == Some(Duration::ZERO) {
        report.error(format!("{path}.progressDeadline"), "must be longer than nothing; or leave it out");
    }
    let quota = quota(phase, path, report);
    if matches!(quota, Some(Share::Count(0) | Share::Percent(0))) {
        let lists = [
            ("preHooks", hooks(&phase.pre_hooks)),
            ("checks", checks.clone()),
            ("postHooks", hooks(&phase.post_hooks)),
        ];
        for (list, calls) in lists {
            for (at, _) in calls.iter().enumerate().filter(|(_, call)| call.per_target) {
                let message = "is made for each Application of its phase, and this phase selects none, so it would never be \
                               made: use nothing of single Applications in it, or select some";
                report.error(format!("{path}.{list}[{at}]"), message);
            }
        }
    }
    let longest_check = checks.iter().map(|check| check.timeout).max().unwrap_or_default();
    PhasePlan {
        name: phase.name.as_str().into(),
        targets: phase.targets.clone(),
        quota,
        max_concurrent: max_concurrent(phase, path, report),
        pre_hooks: hooks(&phase.pre_hooks),
        post_hooks: hooks(&phase.post_hooks),
        checks,
        wait: duration(phase.wait_duration.as_deref(), &format!("{path}.waitDuration"), report)
            .filter(|wait| !wait.is_zero()),
        deadline: progress.unwrap_or_else(|| longest_check.max(DEADLINE)),
        on_failure: on_failure(phase, path, report),
        needs: needs(phase, path, policy),
    }
}

/// What the texts of a phase need of its targets.
fn needs(phase: &Phase, path: &str, policy: &Policy) -> Vec<NeedPlan> {
    let hooks = |list: &'static str, hooks: &[Hook]| -> Vec<(String, Need)> {
        let each = hooks.iter().enumerate();
        each.flat_map(|(at, hook)| {
            of_call(format!("{path}.{list}[{at}]"), baton_hooks::hook_needs(hook, policy))
        })
        .collect()
    };
    let mut found = hooks("preHooks", &phase.pre_hooks);
    for (at, check) in phase.checks.iter().enumerate() {
        found.extend(of_call(format!("{path}.checks[{at}]"), baton_hooks::check_needs(check, policy)));
    }
    found.extend(hooks("postHooks", &phase.post_hooks));
    found.into_iter().map(|(path, need)| NeedPlan { path, need }).collect()
}

fn of_call(path: String, needs: Vec<Need>) -> impl Iterator<Item = (String, Need)> {
    needs.into_iter().map(move |need| (format!("{path}.{}", need.field), need))
}

fn name(name: &str, path: &str, report: &mut Report) {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() {
        report.error(path, "a phase needs a name");
    } else if name.len() > LONGEST_NAME {
        let message = format!("a name may have {LONGEST_NAME} characters, this has {}", name.len());
        report.error(path, message);
    } else if !name.bytes().all(inside) || name.starts_with('-') || name.ends_with('-') {
        let message = format!(
            "{:?} is no name of a phase: use lower case letters, digits and dashes, and begin and end with a letter or \
             digit",
            clipped(name)
        );
        report.error(path, message);
    }
}

fn targets(targets: &[PhaseTarget], path: &str, report: &mut Report) {
    if targets.is_empty() {
        report.error(path, "a phase needs targets: clusters, values or matchExpressions");
    } else if targets.len() > MOST_ENTRIES {
        let message = format!("{} entries are more than the {MOST_ENTRIES} that are allowed", targets.len());
        report.error(path, message);
    }
    for (index, target) in targets.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if *target == PhaseTarget::default() {
            report.error(&path, "says nothing; name clusters, values or matchExpressions");
        }
        for (at, cluster) in target.clusters.iter().enumerate() {
            if cluster.is_empty() {
                report.error(format!("{path}.clusters[{at}]"), "a name of a cluster is needed");
            }
        }
        if target.values.keys().any(String::is_empty) {
            report.error(format!("{path}.values"), "a value needs the name of a parameter");
        }
        for (at, expression) in target.match_expressions.iter().enumerate() {
            self::expression(expression, &format!("{path}.matchExpressions[{at}]"), report);
        }
    }
}

fn expression(expression: &TargetExpression, path: &str, report: &mut Report) {
    if expression.key.is_empty() {
        report.error(format!("{path}.key"), "the name of a parameter or label is needed");
    }
    let values = format!("{path}.values");
    match (&expression.operator, expression.values.is_empty()) {
        (TargetOperator::Other(word), _) => {
            let word = shown(word, "nothing");
            let message = format!("must be In, NotIn, Exists or DoesNotExist, not {word}");
            report.error(format!("{path}.operator"), message);
        }
        (TargetOperator::In | TargetOperator::NotIn, true) => {
            report.error(values, format!("{} needs at least one value", expression.operator));
        }
        (TargetOperator::Exists | TargetOperator::DoesNotExist, false) => {
            report.error(values, format!("{} takes no values", expression.operator));
        }
        _ => {}
    }
}

fn quota(phase: &Phase, path: &str, report: &mut Report) -> Option<Share> {
    if phase.percentage.is_some() && phase.max_update.is_some() {
        report.error(format!("{path}.maxUpdate"), "excludes percentage; keep one of the two");
    }
    if let Some(percentage) = phase.percentage {
        let share = u32::try_from(percentage).ok().filter(|share| *share <= 100);
        if share.is_none() {
            let message = format!("must be between 0 and 100, not {percentage}");
            report.error(format!("{path}.percentage"), message);
        }
        return share.map(Share::Percent);
    }
    share(phase.max_update.as_ref(), &format!("{path}.maxUpdate"), report)
}

fn max_concurrent(phase: &Phase, path: &str, report: &mut Report) -> Option<Share> {
    let path = format!("{path}.maxConcurrent");
    let share = share(phase.max_concurrent.as_ref(), &path, report)?;
    if matches!(share, Share::Count(0) | Share::Percent(0)) {
        report.error(path, "with 0 nothing would ever be deployed; leave it out for no limit");
    }
    Some(share)
}

fn share(written: Option<&IntOrString>, path: &str, report: &mut Report) -> Option<Share> {
    match Share::read_whole(written?) {
        Ok(share) => Some(share),
        Err(text) if text.parse::<u32>().is_ok() => {
            report.error(path, format!("must be a number: write {text} without quotes"));
            None
        }
        Err(text) => {
            let text = shown(&text, "an empty text");
            report.error(path, format!("must be a number or a percentage up to 100%, not {text}"));
            None
        }
    }
}

/// A duration that is not less than nothing.
fn duration(written: Option<&str>, path: &str, report: &mut Report) -> Option<Duration> {
    let written = written.filter(|written| !written.is_empty())?;
    let read = written.parse::<baton_grammar::duration::Duration>().ok().and_then(|read| read.to_std());
    if read.is_none() {
        let message = format!(
            "{:?} is no duration, or one too long; write for example 30s, 5m or 1h30m",
            clipped(written)
        );
        report.error(path, message);
    }
    read
}

fn on_failure(phase: &Phase, path: &str, report: &mut Report) -> Action {
    let Some(on_failure) = &phase.on_failure else { return Action::Stop };
    Action::read(&on_failure.action).unwrap_or_else(|| {
        let word = shown(on_failure.action.as_str(), "nothing");
        let message = format!("must be stop, rollback, continue or abort, not {word}");
        report.error(format!("{path}.onFailure.action"), message);
        Action::Stop
    })
}

fn of_hook(hook: &Hook, policy: &Policy) -> CallPlan {
    // What cannot be read was found by the validation of hooks, and such a plan is never followed.
    let read = |text: &str| text.parse::<baton_grammar::duration::Duration>().ok()?.to_std();
    let again = hook.retry.as_ref();
    CallPlan {
        name: hook.name.as_str().into(),
        per_target: baton_hooks::is_hook_per_target(hook, policy),
        parallel: hook.parallel,
        on_failure: match hook.failure_policy {
            FailurePolicy::Ignore => CallFailure::Ignored,
            FailurePolicy::Abort => CallFailure::Aborts,
            FailurePolicy::Fail | FailurePolicy::Other(_) => CallFailure::Fails,
        },
        timeout: baton_hooks::hook_timeout(hook, policy),
        again: again.and_then(|retry| {
            Some(Again { interval: read(&retry.interval)?, deadline: read(&retry.deadline)? })
        }),
    }
}

/// Checks run side by side, always count, and are asked again until their time is up.
fn of_check(check: &Check, policy: &Policy) -> CallPlan {
    let timeout = baton_hooks::check_timeout(check, policy);
    CallPlan {
        name: check.name.as_str().into(),
        per_target: baton_hooks::is_check_per_target(check, policy),
        parallel: true,
        on_failure: CallFailure::Fails,
        timeout,
        again: Some(Again { interval: POLL, deadline: timeout }),
    }
}
