//! The steps of a strategy, as they are meant: which Applications each holds, and how many may be under way at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_api::strategy::{MatchExpression, MatchOperator, RolloutStep};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pin::Fingerprint;

/// So much of a text that cannot be read is shown.
const SHOWN: usize = 60;

/// Steps, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    steps: Vec<Step>,
    /// Tells these steps from others.
    pub hash: Fingerprint,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    expressions: Vec<MatchExpression>,
    /// How many may be under way at once; none is all.
    pub max_update: Option<Share>,
    /// How long it must stay healthy before the next opens.
    pub wait: Option<Duration>,
    /// How long an Application may take before it counts as failed.
    pub deadline: Option<Duration>,
    /// How many failed Applications do not stop the step.
    pub max_failures: Option<Share>,
    /// What cannot be read of how the step ends, where something cannot: the next one does not open before it is
    /// mended.
    pub misstated: Option<Arc<str>>,
}

/// A number of Applications, or a part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// So many.
    Count(u32),
    /// So many of a hundred.
    Percent(u32),
}

/// Something wrong with the steps. What says how a step ends keeps the next one shut; the rest is borne.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issue {
    /// A step, counted from 0, uses an operator that steps do not know: the step then takes no Application that has the label.
    Operator {
        /// The step.
        step: usize,
        /// The operator.
        operator: String,
    },
    /// A text that is no number or percentage; 1 is used.
    MaxUpdate {
        /// The step.
        step: usize,
        /// The text.
        text: String,
    },
    /// A duration that is none: the next step stays shut.
    Duration {
        /// The step.
        step: usize,
        /// The field.
        field: &'static str,
        /// The text.
        text: String,
    },
    /// No number or percentage: none is borne, and the next step stays shut.
    MaxFailures {
        /// The step.
        step: usize,
        /// The text.
        text: String,
    },
}

// === impl Steps ===

impl Steps {
    /// Reads steps, with what is wrong about them.
    pub fn read(steps: &[RolloutStep]) -> (Steps, Vec<Issue>) {
        let mut issues = Vec::new();
        let read = steps.iter().enumerate().map(|(at, step)| Step::read(at, step, &mut issues)).collect();
        let hash = Fingerprint::of_json(&serde_json::to_value(steps).unwrap_or_default());
        (Steps { steps: read, hash }, issues)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    /// The step at a place, counted from 0.
    pub fn get(&self, at: usize) -> Option<&Step> {
        self.steps.get(at)
    }

    /// The step an Application with these labels belongs to, counted from 0: the first that matches.
    pub fn place(&self, labels: &BTreeMap<String, String>) -> Option<usize> {
        self.steps.iter().position(|step| step.holds(labels))
    }

    /// Every step that matches.
    pub fn places(&self, labels: &BTreeMap<String, String>) -> Vec<usize> {
        (0..self.steps.len()).filter(|&at| self.steps[at].holds(labels)).collect()
    }
}

// === impl Step ===

impl Step {
    fn read(at: usize, step: &RolloutStep, issues: &mut Vec<Issue>) -> Step {
        for expression in &step.match_expressions {
            let operator = expression.operator.as_str().to_owned();
            let issue = Issue::Operator { step: at, operator };
            if !matches!(expression.operator, MatchOperator::In | MatchOperator::NotIn)
                && !issues.contains(&issue)
            {
                issues.push(issue);
            }
        }
        let max_update = step.max_update.as_ref().map(|limit| {
            Share::read(limit).unwrap_or_else(|text| {
                issues.push(Issue::MaxUpdate { step: at, text });
                Share::Count(1)
            })
        });
        let before = issues.len();
        let mut duration = |field: &'static str, text: &Option<String>, least: Duration| {
            let text = text.as_deref().filter(|text| !text.is_empty())?;
            let read = text.parse::<baton_grammar::duration::Duration>().ok().and_then(|read| read.to_std());
            let read = read.filter(|read| *read >= least);
            if read.is_none() {
                issues.push(Issue::Duration { step: at, field, text: text.to_owned() });
            }
            read.filter(|read| !read.is_zero())
        };
        let wait = duration("waitDuration", &step.wait_duration, Duration::ZERO);
        let deadline = duration("progressDeadline", &step.progress_deadline, Duration::from_nanos(1));
        let max_failures = step.max_failures.as_ref().and_then(|limit| match Share::read_whole(limit) {
            Ok(share) => Some(share),
            Err(text) => {
                issues.push(Issue::MaxFailures { step: at, text });
                None
            }
        });
        let misstated = issues[before..].first().map(|issue| issue.to_string().into());
        Step {
            expressions: step.match_expressions.clone(),
            wait,
            deadline,
            max_update,
            max_failures,
            misstated,
        }
    }

    /// Whether an Application with these labels is in the step: all expressions match. No expression takes everything.
    pub fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        self.expressions.iter().all(|expression| {
            let value = labels.get(&expression.key);
            match (&expression.operator, value) {
                (MatchOperator::In, Some(value)) => expression.values.contains(value),
                (MatchOperator::In, None) => false,
                (MatchOperator::NotIn, Some(value)) => !expression.values.contains(value),
                (MatchOperator::NotIn, None) => true,
                // An operator steps do not know: nothing that has the label, as Argo CD has it.
                (_, value) => value.is_none(),
            }
        })
    }

    /// How many of `total` Applications may be under way at once.
    pub fn limit(&self, total: usize) -> usize {
        self.max_update.map_or(usize::MAX, |share| share.of(total))
    }

    /// Whether people sync the step by hand.
    pub fn is_held(&self) -> bool {
        matches!(self.max_update, Some(Share::Count(0) | Share::Percent(0)))
    }
}

// === impl Share ===

impl Share {
    /// Reads a number or a percentage; a text that is neither comes back. Less than nothing is nothing.
    pub fn read(limit: &IntOrString) -> Result<Share, String> {
        match limit {
            IntOrString::Int(count) => Ok(Share::Count(u32::try_from(*count).unwrap_or(0))),
            IntOrString::String(text) => {
                let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok());
                percent.map(Share::Percent).ok_or_else(|| text.clone())
            }
        }
    }

    /// Reads a number or a percentage, neither less than nothing nor more than all; any other text comes back.
    pub fn read_whole(limit: &IntOrString) -> Result<Share, String> {
        match (limit, Share::read(limit)?) {
            (IntOrString::Int(count), _) if *count < 0 => Err(count.to_string()),
            (_, Share::Percent(101..)) => Err(written(limit)),
            (_, share) => Ok(share),
        }
    }

    /// So many of `total`: percentages are rounded down, but to no less than one unless they are 0.
    pub fn of(self, total: usize) -> usize {
        match self {
            Share::Count(count) => count as usize,
            Share::Percent(0) => 0,
            Share::Percent(percent) => (percent as usize * total / 100).max(1),
        }
    }
}

// === impl Issue ===

impl Issue {
    /// The field it is about.
    pub fn field(&self) -> &'static str {
        match self {
            Issue::Operator { .. } => "matchExpressions",
            Issue::MaxUpdate { .. } => "maxUpdate",
            Issue::Duration { field, .. } => field,
            Issue::MaxFailures { .. } => "maxFailures",
        }
    }

    /// Whether the step after it stays shut.
    pub fn closes(&self) -> bool {
        matches!(self, Issue::Duration { .. } | Issue::MaxFailures { .. })
    }

    /// What is wrong, without the step.
    pub fn what(&self) -> String {
        match self {
            Issue::Operator { operator, .. } if operator.is_empty() => {
                "an operator is missing: steps know In and NotIn".to_owned()
            }
            Issue::Operator { operator, .. } => {
                format!("{:?} is no operator of steps, which are In and NotIn", clipped(operator))
            }
            Issue::MaxUpdate { text, .. } => {
                format!("maxUpdate {:?} is neither a number nor a percentage: 1 is used", clipped(text))
            }
            Issue::Duration { field, text, .. } => format!(
                "{field} {:?} is no duration such as 10m: no later step opens before it is one",
                clipped(text)
            ),
            Issue::MaxFailures { text, .. } => format!(
                "maxFailures {:?} is neither a number nor a percentage up to 100%: no later step opens before it is one",
                clipped(text)
            ),
        }
    }

    fn step(&self) -> usize {
        match self {
            Issue::Operator { step, .. }
            | Issue::MaxUpdate { step, .. }
            | Issue::Duration { step, .. }
            | Issue::MaxFailures { step, .. } => *step,
        }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step() + 1, self.what())
    }
}

fn written(limit: &IntOrString) -> String {
    match limit {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

/// As much of a text as a line has room for.
pub fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn steps(value: Value) -> (Steps, Vec<Issue>) {
        Steps::read(&serde_json::from_value::<Vec<RolloutStep>>(value).expect("steps"))
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_application_is_in_the_first_step_that_matches() {
        let (steps, issues) = steps(json!([
            {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev"]}]},
            {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev", "prod"]}]},
            {"matchExpressions": [
                {"key": "env", "operator": "In", "values": ["prod"]}, {"key": "late", "operator": "NotIn", "values": ["yes"]},
            ]},
        ]));
        assert!(issues.is_empty());
        assert_eq!(steps.place(&labels(&[("env", "dev")])), Some(0));
        assert_eq!(steps.place(&labels(&[("env", "test")])), Some(1));
        assert_eq!(steps.place(&labels(&[])), Some(1), "an absent label is not in");
        assert_eq!(steps.place(&labels(&[("env", "prod")])), Some(2));
        assert_eq!(steps.place(&labels(&[("env", "prod"), ("late", "yes")])), None);
    }

    #[test]
    fn shares_are_rounded_as_argo_cd_does() {
        for (limit, total, expected) in [
            (json!(3), 10, 3),
            (json!(0), 10, 0),
            (json!(-1), 10, 0),
            (json!("50%"), 5, 2),
            (json!("10%"), 5, 1),
            (json!("0%"), 5, 0),
            (json!("100%"), 5, 5),
            (json!("abc%"), 5, 1),
            (json!("5"), 5, 1),
        ] {
            let (steps, issues) = steps(json!([{"maxUpdate": limit}]));
            assert_eq!(steps.get(0).expect("a step").limit(total), expected, "{limit} of {total}");
            assert_eq!(issues.is_empty(), !matches!(limit.as_str(), Some("abc%" | "5")), "{limit}");
        }
        assert_eq!(steps(json!([{}])).0.get(0).expect("a step").limit(5), usize::MAX);
    }

    #[test]
    fn what_is_wrong_is_told_once() {
        let (read, issues) = steps(json!([{
            "matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
            "waitDuration": "soon", "progressDeadline": "10m",
        }]));
        let operator = Issue::Operator { step: 0, operator: "Exists".into() };
        let wait = Issue::Duration { step: 0, field: "waitDuration", text: "soon".into() };
        assert_eq!(issues, [operator, wait]);
        let step = read.get(0).expect("a step");
        assert_eq!((step.wait, step.deadline), (None, Some(Duration::from_secs(600))));
        assert!(step.holds(&labels(&[])) && !step.holds(&labels(&[("a", "x")])));
    }

    #[test]
    fn what_says_how_a_step_ends_must_be_read_or_the_next_stays_shut() {
        let fields = [
            ("waitDuration", json!("soon"), false),
            ("waitDuration", json!("-5s"), false),
            ("waitDuration", json!("1d"), false),
            ("waitDuration", json!("99999999h"), false),
            ("waitDuration", json!("0s"), true),
            ("waitDuration", json!(""), true),
            ("waitDuration", json!("1h30m"), true),
            ("progressDeadline", json!("nope"), false),
            ("progressDeadline", json!("0s"), false),
            ("progressDeadline", json!("30m"), true),
            ("maxFailures", json!(-1), false),
            ("maxFailures", json!("200%"), false),
            ("maxFailures", json!("lots"), false),
            ("maxFailures", json!(0), true),
            ("maxFailures", json!("100%"), true),
        ];
        for (field, value, sound) in fields {
            let (read, issues) = steps(json!([{}, {field: value}]));
            let step = read.get(1).expect("a step");
            assert_eq!((step.misstated.is_none(), issues.is_empty()), (sound, sound), "{field} {value}");
            assert_eq!(read.get(0).and_then(|step| step.misstated.clone()), None);
            if let Some(why) = &step.misstated {
                assert!(why.starts_with(&format!("step 2: {field} ")), "{why}");
                assert!(issues[0].closes() && issues[0].field() == field);
            }
        }
        let (_, issues) = steps(json!([{"waitDuration": "x".repeat(10_000)}]));
        assert!(issues[0].to_string().len() < 300);
    }
}
