//! Conditions of an Application: who evaluates which, and what becomes of the others.

use std::borrow::Cow;

use baton_api::application_status::ApplicationCondition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use baton_api::conditions::application::*;

/// What a comparison of source and cluster evaluates.
pub const OF_COMPARISON: [&str; 4] =
    [COMPARISON_ERROR, SHARED_RESOURCE_WARNING, REPEATED_RESOURCE_WARNING, EXCLUDED_RESOURCE_WARNING];
/// What the check of spec and project evaluates.
pub const OF_SPEC: [&str; 2] = [INVALID_SPEC_ERROR, UNKNOWN_ERROR];
/// What a look at the destination namespace evaluates.
pub const OF_ORPHANS: [&str; 1] = [ORPHANED_RESOURCE_WARNING];
/// What a decision on automatic sync evaluates.
pub const OF_AUTO_SYNC: [&str; 1] = [SYNC_ERROR];
/// What a step of deletion evaluates.
pub const OF_DELETION: [&str; 3] = [DELETION_ERROR, DELETION_APPROVAL_REQUIRED_INFO, DELETION_WAITING_INFO];
/// What keeps an operation from running.
pub const STOPS_OPERATION: [&str; 2] = [COMPARISON_ERROR, INVALID_SPEC_ERROR];

/// Longest message that is kept, in characters: status must not outgrow the object.
const LONGEST_MESSAGE: usize = 4 << 10;

/// Something found that is worth a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The condition's type.
    pub kind: Cow<'static, str>,
    /// What is wrong.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub fn new(kind: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Finding {
        Finding { kind: kind.into(), message: message.into() }
    }
}

impl From<ApplicationCondition> for Finding {
    /// A condition as it was just found, whatever time it bears.
    fn from(condition: ApplicationCondition) -> Finding {
        Finding::new(condition.kind, condition.message)
    }
}

/// Conditions after one producer has looked.
///
/// # Guarantees
/// Types outside `evaluated` stay as they are. One that was there with the same message keeps its time, so that a
/// state that lasts writes nothing. (Argo CD looks only at the first of a type, and so writes the time of the second
/// of a type anew at each comparison.) The order is Argo CD's, by type and message.
pub fn merge(
    existing: &[ApplicationCondition],
    found: &[Finding],
    evaluated: &[&str],
    now: Timestamp,
) -> Vec<ApplicationCondition> {
    let is_evaluated = |condition: &&ApplicationCondition| evaluated.contains(&condition.kind.as_str());
    let mut conditions: Vec<ApplicationCondition> =
        existing.iter().filter(|condition| !is_evaluated(condition)).cloned().collect();
    for finding in found {
        let message = shortened(&finding.message);
        let same = |condition: &&ApplicationCondition| {
            condition.kind == finding.kind && condition.message == message
        };
        if conditions.iter().any(|condition| same(&condition)) {
            continue;
        }
        conditions.push(existing.iter().find(same).cloned().unwrap_or(ApplicationCondition {
            kind: finding.kind.clone().into_owned(),
            message,
            last_transition_time: None,
        }));
    }
    for condition in &mut conditions {
        condition.last_transition_time.get_or_insert(Time(now));
    }
    conditions.sort_by_cached_key(|condition| format!("{}/{}", condition.kind, condition.message));
    conditions
}

/// Conditions in one line, as an operation reports why it could not run.
pub fn in_words<'a>(conditions: impl IntoIterator<Item = &'a ApplicationCondition>) -> String {
    let words: Vec<String> = conditions
        .into_iter()
        .map(|condition| format!("{}: {}", condition.kind, condition.message))
        .collect();
    words.join(";")
}

/// Conditions of some types.
pub fn of_types<'a>(
    conditions: &'a [ApplicationCondition],
    types: &'a [&str],
) -> impl Iterator<Item = &'a ApplicationCondition> {
    conditions.iter().filter(|condition| types.contains(&condition.kind.as_str()))
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn condition(kind: &str, message: &str, second: i64) -> ApplicationCondition {
        ApplicationCondition {
            kind: kind.to_owned(),
            message: message.to_owned(),
            last_transition_time: Some(Time(at(second))),
        }
    }

    #[test]
    fn a_producer_replaces_only_what_it_evaluates() {
        let existing = [condition(SYNC_ERROR, "s", 1), condition(COMPARISON_ERROR, "old", 1)];
        let found = [Finding::new(COMPARISON_ERROR, "new")];
        let expected = vec![condition(COMPARISON_ERROR, "new", 9), condition(SYNC_ERROR, "s", 1)];
        assert_eq!(merge(&existing, &found, &OF_COMPARISON, at(9)), expected);
        assert_eq!(merge(&existing, &[], &OF_COMPARISON, at(9)), vec![condition(SYNC_ERROR, "s", 1)]);
    }

    #[test]
    fn every_condition_that_lasts_keeps_its_time() {
        let existing =
            [condition(SHARED_RESOURCE_WARNING, "a", 1), condition(SHARED_RESOURCE_WARNING, "b", 2)];
        let found = [
            Finding::new(SHARED_RESOURCE_WARNING, "b"),
            Finding::new(SHARED_RESOURCE_WARNING, "a"),
            Finding::new(SHARED_RESOURCE_WARNING, "a"),
        ];
        assert_eq!(merge(&existing, &found, &OF_COMPARISON, at(9)), existing.to_vec());
    }

    #[test]
    fn a_condition_without_a_time_gets_one() {
        let mut bare = condition(SYNC_ERROR, "s", 0);
        bare.last_transition_time = None;
        let merged = merge(&[bare], &[], &[], at(9));
        assert_eq!(merged, vec![condition(SYNC_ERROR, "s", 9)]);
    }

    #[test]
    fn a_message_has_a_bound() {
        let found = [Finding::new(COMPARISON_ERROR, "ä".repeat(2 * LONGEST_MESSAGE))];
        let merged = merge(&[], &found, &OF_COMPARISON, at(1));
        assert_eq!(merged[0].message.chars().count(), LONGEST_MESSAGE + 1);
        assert_eq!(merge(&merged, &found, &OF_COMPARISON, at(2)), merged);
    }

    #[test]
    fn conditions_are_put_into_one_line() {
        let all = [
            condition(COMPARISON_ERROR, "x", 1),
            condition(INVALID_SPEC_ERROR, "y", 1),
            condition(SYNC_ERROR, "z", 1),
        ];
        let words = in_words(of_types(&all, &STOPS_OPERATION));
        assert_eq!(words, "ComparisonError: x;InvalidSpecError: y");
    }
}
