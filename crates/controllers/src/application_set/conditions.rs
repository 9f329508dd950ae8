//! Conditions and health of an ApplicationSet.

use baton_api::ApplicationSet;
use baton_api::application_set::{ApplicationSetCondition, ConditionStatus};
use baton_api::application_status::{HealthCode, HealthStatus};
use baton_api::conditions::{application_set as kind, reason};
use baton_api::strategy::StrategyType;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use baton_phases::{Outlook, outlook};

use crate::phases::phased;

const ALL_GENERATED: &str = "All applications have been generated successfully";
const CONFIGURED: &str = "Rolling Sync Configured correctly";
const PARAMETERS_GENERATED: &str = "Successfully generated parameters for all Applications";

/// What a pass came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every Application is as the set wants it.
    UpToDate,
    /// Something failed.
    Failed {
        /// In one word.
        reason: &'static str,
        /// In words.
        message: String,
        /// Whether generators had worked.
        generated: bool,
    },
}

/// What stands in the way of deletions, or is under way of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Why the order of deletion makes no sense.
    pub(crate) invalid: Option<String>,
    /// What is wrong with the steps of a rollout, if anything; the outer none leaves what is said of them.
    pub(crate) steps: Option<Option<String>>,
    /// What waits for approval.
    pub(crate) held: Option<String>,
    /// How far an ordered deletion is: reason and message.
    pub(crate) deleting: Option<(&'static str, String)>,
}

/// The conditions after a verdict and with what is known of deletions; none of either leaves what it would say as it
/// is. Unchanged ones keep their time; those of a rollout stay only where the set has one.
pub(crate) fn after(
    set: &ApplicationSet,
    verdict: Option<&Verdict>,
    standing: Option<&Standing>,
    now: Timestamp,
) -> Vec<ApplicationSetCondition> {
    let known = &set.status.conditions;
    let settled = [kind::PARAMETERS_GENERATED, kind::ERROR_OCCURRED, kind::RESOURCES_UP_TO_DATE];
    let of_deletion = [kind::DELETION_PROGRESSING, kind::DELETION_HELD];
    let replaced = |condition: &ApplicationSetCondition| match condition.kind.as_str() {
        kind if settled.contains(&kind) => verdict.is_some(),
        kind if of_deletion.contains(&kind) => standing.is_some(),
        kind::ROLLOUT_PROGRESSING | kind::INVALID_PHASE_CONFIG => !rolls(set),
        // The steps of a rollout have their say too; only what was said about the deletion is taken back.
        kind::INVALID_ROLLOUT_CONFIG => match standing {
            Some(standing) => {
                standing.invalid.is_some()
                    || standing.steps.is_some()
                    || !rolls(set)
                    || condition.message.starts_with("deletionOrder ")
            }
            None => false,
        },
        _ => false,
    };
    let stopped = verdict.filter(|verdict| **verdict == Verdict::UpToDate).and_then(|_| stopped(set));
    let verdict = stopped.as_ref().or(verdict);
    let fresh = verdict.map(told).into_iter().flatten().chain(standing.map(stood).into_iter().flatten());
    merged(known, replaced, fresh, now)
}

/// That phases have failed and wait for people, where they do. Whoever knows no phases sees it all the same.
fn stopped(set: &ApplicationSet) -> Option<Verdict> {
    if phased(set).is_empty() || set.metadata.deletion_timestamp.is_some() {
        return None;
    }
    // What cannot be followed holds everybody, whatever is stored of it.
    let refused = set.status.conditions.iter().find(|condition| {
        condition.kind == kind::INVALID_PHASE_CONFIG && condition.status == ConditionStatus::True
    });
    let message = match (refused, outlook(&set.status.phases)) {
        (Some(refused), _) => refused.message.clone(),
        (None, Outlook::Failed(message)) => message,
        (None, Outlook::Done | Outlook::UnderWay(_)) => return None,
    };
    Some(Verdict::Failed { reason: reason::ROLLOUT_ERROR, message, generated: true })
}

/// The known conditions without those that are replaced, and the fresh ones. What says the same as before keeps its time.
pub(crate) fn merged(
    known: &[ApplicationSetCondition],
    replaced: impl Fn(&ApplicationSetCondition) -> bool,
    fresh: impl IntoIterator<Item = ApplicationSetCondition>,
    now: Timestamp,
) -> Vec<ApplicationSetCondition> {
    let time = Some(Time(now));
    let mut conditions: Vec<ApplicationSetCondition> = Vec::new();
    for condition in known.iter().filter(|condition| !replaced(condition)) {
        let last_transition_time = condition.last_transition_time.clone().or_else(|| time.clone());
        conditions.push(ApplicationSetCondition { last_transition_time, ..condition.clone() });
    }
    for condition in fresh {
        let same = known.iter().find(|known| {
            known.kind == condition.kind
                && known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message
        });
        let last_transition_time =
            same.and_then(|known| known.last_transition_time.clone()).or_else(|| time.clone());
        conditions.push(ApplicationSetCondition { last_transition_time, ..condition });
    }
    conditions.sort_by(|a, b| {
        (&a.kind, a.status.as_str(), &a.reason, &a.message).cmp(&(
            &b.kind,
            b.status.as_str(),
            &b.reason,
            &b.message,
        ))
    });
    conditions
}

/// Whether two lists of conditions say the same, whenever they began to.
pub(crate) fn say_the_same(a: &[ApplicationSetCondition], b: &[ApplicationSetCondition]) -> bool {
    let same = |(a, b): (&ApplicationSetCondition, &ApplicationSetCondition)| {
        a.kind == b.kind && a.status == b.status && a.reason == b.reason && a.message == b.message
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The health that conditions add up to.
pub(crate) fn health(conditions: &[ApplicationSetCondition]) -> HealthStatus {
    let holds = |kind: &str| {
        conditions
            .iter()
            .find(|condition| condition.kind == kind && condition.status == ConditionStatus::True)
    };
    let verdicts = [
        (kind::ERROR_OCCURRED, HealthCode::Degraded),
        (kind::DELETION_HELD, HealthCode::Suspended),
        (kind::ROLLOUT_PROGRESSING, HealthCode::Progressing),
        (kind::RESOURCES_UP_TO_DATE, HealthCode::Healthy),
    ];
    let found = verdicts.into_iter().find_map(|(kind, status)| Some((status, holds(kind)?.message.clone())));
    let (status, message) = found.unwrap_or_else(|| {
        let why = match conditions {
            [] => "No status conditions found for ApplicationSet",
            _ => "Waiting for health status to be determined",
        };
        (HealthCode::Unknown, why.to_owned())
    });
    HealthStatus { status, message, last_transition_time: None }
}

/// Whether the set is to be rolled out: in steps, or in phases.
pub(crate) fn rolls(set: &ApplicationSet) -> bool {
    has_steps(set) || !phased(set).is_empty()
}

/// Whether the set's strategy is to roll out in steps, with or without any.
pub(crate) fn has_steps(set: &ApplicationSet) -> bool {
    set.spec
        .strategy
        .as_ref()
        .is_some_and(|strategy| strategy.kind == StrategyType::RollingSync && strategy.rolling_sync.is_some())
}

/// A condition whose time is not known yet.
pub(crate) fn condition(
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
) -> ApplicationSetCondition {
    ApplicationSetCondition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: None,
    }
}

fn stood(standing: &Standing) -> Vec<ApplicationSetCondition> {
    use ConditionStatus::{False, True};
    let fault = match (&standing.invalid, &standing.steps) {
        (Some(fault), _) | (None, Some(Some(fault))) => Some(Some(fault)),
        (None, Some(None)) => Some(None),
        (None, None) => None,
    };
    let invalid = fault.map(|fault| match fault {
        Some(fault) => condition(kind::INVALID_ROLLOUT_CONFIG, True, reason::INVALID_ROLLOUT_CONFIG, fault),
        None => condition(kind::INVALID_ROLLOUT_CONFIG, False, reason::VALID_ROLLOUT_CONFIG, CONFIGURED),
    });
    let held = standing
        .held
        .as_deref()
        .map(|message| condition(kind::DELETION_HELD, True, reason::DELETION_FUSE, message));
    let deleting = standing
        .deleting
        .as_ref()
        .map(|(reason, message)| condition(kind::DELETION_PROGRESSING, True, reason, message));
    invalid.into_iter().chain(held).chain(deleting).collect()
}

fn told(verdict: &Verdict) -> Vec<ApplicationSetCondition> {
    use ConditionStatus::{False, True};
    let generated =
        condition(kind::PARAMETERS_GENERATED, True, reason::PARAMETERS_GENERATED, PARAMETERS_GENERATED);
    match verdict {
        Verdict::UpToDate => vec![
            generated,
            condition(kind::RESOURCES_UP_TO_DATE, True, reason::UP_TO_DATE, ALL_GENERATED),
            condition(kind::ERROR_OCCURRED, False, reason::UP_TO_DATE, ALL_GENERATED),
        ],
        Verdict::Failed { reason: why, message, generated: worked } => vec![
            match worked {
                true => generated,
                false => condition(kind::PARAMETERS_GENERATED, False, reason::ERROR_OCCURRED, message),
            },
            condition(kind::ERROR_OCCURRED, True, why, message),
            condition(kind::RESOURCES_UP_TO_DATE, False, reason::ERROR_OCCURRED, message),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn with(conditions: Vec<ApplicationSetCondition>) -> ApplicationSet {
        let mut set = ApplicationSet::default();
        set.status.conditions = conditions;
        set
    }

    fn failed(message: &str) -> Verdict {
        Verdict::Failed {
            reason: reason::RENDER_TEMPLATE_PARAMS_ERROR,
            message: message.into(),
            generated: false,
        }
    }

    fn shown(conditions: &[ApplicationSetCondition]) -> Value {
        serde_json::to_value(conditions).expect("JSON")
    }

    #[test]
    fn success_is_three_conditions_sorted_by_type() {
        let all = "All applications have been generated successfully";
        let time = "1970-01-01T00:00:10Z";
        let conditions = after(&with(vec![]), Some(&Verdict::UpToDate), None, at(10));
        let expected = json!([
            {"type": "ErrorOccurred", "status": "False", "reason": "ApplicationSetUpToDate", "message": all,
             "lastTransitionTime": time},
            {"type": "ParametersGenerated", "status": "True", "reason": "ParametersGenerated",
             "message": "Successfully generated parameters for all Applications", "lastTransitionTime": time},
            {"type": "ResourcesUpToDate", "status": "True", "reason": "ApplicationSetUpToDate", "message": all,
             "lastTransitionTime": time},
        ]);
        assert_eq!(shown(&conditions), expected);
        assert_eq!(health(&conditions).status, HealthCode::Healthy);
    }

    #[test]
    fn an_error_of_the_generators_is_in_all_three() {
        let conditions =
            after(&with(vec![]), Some(&failed("no such key")), Some(&Standing::default()), at(10));
        let told: Vec<_> = conditions
            .iter()
            .map(|c| (c.kind.as_str(), c.status.as_str(), c.reason.as_str(), c.message.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("ErrorOccurred", "True", "RenderTemplateParamsError", "no such key"),
                ("ParametersGenerated", "False", "ErrorOccurred", "no such key"),
                ("ResourcesUpToDate", "False", "ErrorOccurred", "no such key"),
            ]
        );
        let health = health(&conditions);
        assert_eq!((health.status, health.message.as_str()), (HealthCode::Degraded, "no such key"));
    }

    #[test]
    fn what_did_not_change_keeps_its_time() {
        let first = after(&with(vec![]), Some(&failed("a")), Some(&Standing::default()), at(10));
        let again = after(&with(first.clone()), Some(&failed("a")), Some(&Standing::default()), at(20));
        assert_eq!(first, again);
        let changed = after(&with(first.clone()), Some(&failed("b")), Some(&Standing::default()), at(20));
        assert!(changed.iter().all(|condition| condition.last_transition_time == Some(Time(at(20)))));
        assert!(!say_the_same(&first, &changed));
    }

    #[test]
    fn conditions_of_a_rollout_go_when_the_set_has_none() {
        let progressing = ApplicationSetCondition {
            kind: kind::ROLLOUT_PROGRESSING.into(),
            status: ConditionStatus::True,
            ..ApplicationSetCondition::default()
        };
        let mut set = with(vec![progressing]);
        assert_eq!(after(&set, Some(&Verdict::UpToDate), Some(&Standing::default()), at(1)).len(), 3);
        set.spec.strategy = Some(
            serde_json::from_value(json!({"type": "RollingSync", "rollingSync": {"steps": []}}))
                .expect("a strategy"),
        );
        let kept = after(&set, Some(&Verdict::UpToDate), Some(&Standing::default()), at(1));
        assert_eq!(kept.len(), 4);
        assert_eq!(health(&kept).status, HealthCode::Progressing);
    }

    #[test]
    fn unknown_health_says_why() {
        assert_eq!(health(&[]).message, "No status conditions found for ApplicationSet");
        let waiting =
            [ApplicationSetCondition { kind: "Other".into(), ..ApplicationSetCondition::default() }];
        assert_eq!(health(&waiting).message, "Waiting for health status to be determined");
    }
}
