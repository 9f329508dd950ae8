//! What a person should know of a set's rollout though nothing waits for it.

use baton_api::ApplicationSet;
use baton_api::application_set::ConditionStatus;
use baton_api::conditions::application_set::INVALID_ROLLOUT_CONFIG;

use super::Standing;
use crate::control;

/// What is wrong with how the rollout is asked for, or surprising.
pub(super) fn of(set: &ApplicationSet, standing: &Standing) -> Vec<String> {
    let mut conditions = set.status.conditions.iter();
    let invalid =
        conditions.find(|one| one.kind == INVALID_ROLLOUT_CONFIG && one.status == ConditionStatus::True);
    let mut remarks: Vec<String> = invalid.map(|one| one.message.clone()).into_iter().collect();
    // The annotations are the set's own: what is wrong with them is known before a controller tells of it.
    for word in control::misunderstood(set.metadata.annotations.as_ref(), None) {
        let word = word.to_string();
        if !remarks.iter().any(|remark| remark.contains(&word)) {
            remarks.push(word);
        }
    }
    remarks.extend(empty(standing));
    remarks
}

fn empty(standing: &Standing) -> Option<String> {
    if standing.counts().1 == 0 {
        return None;
    }
    let steps = standing.steps.iter().filter(|step| step.step > 0 && step.total == 0);
    let steps: Vec<String> = steps.map(|step| step.step.to_string()).collect();
    match &steps[..] {
        [] => None,
        [step] => Some(format!("step {step} holds no Application and is passed over")),
        [steps @ .., last] => {
            Some(format!("steps {} and {last} hold no Application and are passed over", steps.join(", ")))
        }
    }
}
