//! Whether a set's Applications change and go in an order, and what is wrong with it. The one place where the ordered rollout
//! comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::strategy::{DeletionOrder, RolloutStep};
use baton_rollout::deletion::{self, Invalid};
use baton_rollout::machine::{Control, Member, Wanted};
use baton_rollout::pin::Fingerprint;
use baton_rollout::steps::{Issue, Steps};

use super::conditions;
use super::desired::Desired;
use super::ignore::IgnoreRules;
use super::validate::Faults;
use crate::rollout::{Offer, Template, has_room, label_value};
use crate::settings::{Policy, Settings};

/// Why a rollout without steps cannot be.
pub(crate) const NO_STEPS: &str = "No steps defined for rollout";

/// Why a set cannot have what an order keeps beside it.
pub(crate) const NO_ROOM: &str = "the name of the ApplicationSet is longer than 239 characters, which leaves no room for those of \
     the ConfigMaps that an order needs";

/// In which order a set's Applications change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// All together.
    AllAtOnce,
    /// Step by step.
    Steps,
    /// Step by step, without a step.
    NoSteps,
}

/// The order for a set.
pub(crate) fn of(set: &ApplicationSet, settings: &Settings) -> Order {
    if !settings.progressive_syncs || !conditions::rolls(set) {
        Order::AllAtOnce
    } else if steps(set).is_empty() {
        Order::NoSteps
    } else {
        Order::Steps
    }
}

/// The steps a set is rolled out by.
pub(crate) fn steps(set: &ApplicationSet) -> &[RolloutStep] {
    let rolling = set.spec.strategy.as_ref().and_then(|strategy| strategy.rolling_sync.as_ref());
    rolling.map_or(&[], |rolling| &rolling.steps)
}

/// In which order a set's Applications go.
///
/// # Errors
/// If it asks for one that makes no sense: nothing of it may be deleted.
pub(crate) fn deletion(set: &ApplicationSet) -> Result<deletion::Order, Invalid> {
    deletion::Order::of(set.spec.strategy.as_ref()).map(|(order, _)| order)
}

/// Whether a set's Applications are guarded against going out of order: an order of deletion is asked for, whether it
/// makes sense or not.
pub(crate) fn is_guarded(set: &ApplicationSet) -> bool {
    let strategy = set.spec.strategy.as_ref();
    strategy.is_some_and(|strategy| !matches!(strategy.deletion_order(), Ok(DeletionOrder::AllAtOnce)))
}

/// Whether a set's Applications change in the order of steps.
pub(crate) fn rolls(set: &ApplicationSet, settings: &Settings) -> bool {
    settings.progressive_syncs && conditions::rolls(set)
}

/// The value of the label by which the Applications of a set with an order are found.
pub(crate) fn mark(set: &ApplicationSet, settings: &Settings) -> Option<String> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    (is_guarded(set) || rolls(set, settings)).then(|| label_value(name))
}

/// What the rollout side is to know of a set: its Applications and their steps. One that may not be acted on is a
/// member too, or a later step would not wait for it; its specification stays as it is.
///
/// # Errors
/// Why it is not known what the set wants.
pub(crate) fn offer(
    set: &ApplicationSet,
    desired: &[Desired],
    faults: &Faults,
    ignored: &Arc<IgnoreRules>,
    policy: Policy,
    fuse: Option<&str>,
) -> Result<Offer, String> {
    let may_update = policy.allows_update();
    let steps = Steps::read(steps(set)).0;
    let mut templates: BTreeMap<Arc<str>, Arc<Template>> = BTreeMap::new();
    let mut members = BTreeMap::new();
    for application in desired.iter().filter(|application| !application.name.is_empty()) {
        let Some(template) = &application.template else {
            return Err(format!("the generated Application {:?} cannot be read", application.name));
        };
        let fit = may_update && !faults.by_name.contains_key(&application.name);
        let member = Member {
            step: steps.place(&template.labels),
            spec: fit.then_some(template.print),
            sources: template.sources.clone(),
            self_heal: template.self_heal,
        };
        members.insert(application.name.clone(), member);
        templates.insert(application.name.clone(), template.clone());
    }
    let rules = serde_json::to_value(&set.spec.ignore_application_differences).unwrap_or_default();
    let wanted = Wanted {
        set: set.metadata.uid.as_deref().unwrap_or_default().into(),
        generation: set.metadata.generation.unwrap_or_default(),
        steps,
        members,
        frozen: None,
        fuse: fuse.map(Into::into),
        keeps_leavers: !policy.allows_delete(),
        control: Control::default(),
    };
    Ok(Offer {
        wanted,
        templates,
        ignored: ignored.clone(),
        rules: Fingerprint::of_json(&rules),
        generation: set.metadata.generation.unwrap_or_default(),
        may_update,
    })
}

/// What is wrong with a rollout that goes on nevertheless, the gravest first and alone.
pub(crate) fn fault(set: &ApplicationSet, desired: &[Desired], ignored: &IgnoreRules) -> Option<String> {
    let (steps, issues) = Steps::read(steps(set));
    if ignored.cover_automation() {
        return Some(
            "ignoreApplicationDifferences covers spec.syncPolicy.automated, which a rollout has to switch off: take the \
             field out of the rule"
                .to_owned(),
        );
    }
    let places: Vec<(&Arc<str>, Vec<usize>)> = desired
        .iter()
        .filter_map(|application| Some((&application.name, application.template.as_ref()?)))
        .map(|(name, template)| (name, steps.places(&template.labels)))
        .collect();
    let told = |wanted: fn(&Issue) -> Option<String>| issues.iter().find_map(wanted);
    let operator = told(|issue| match issue {
        Issue::Operator { step, operator } => {
            let (step, empty) = (step + 1, operator.is_empty());
            let shown = if empty { "no operator".to_owned() } else { format!("the operator {operator:?}") };
            Some(format!("step {step} uses {shown}: steps know In and NotIn"))
        }
        _ => None,
    });
    let twice = || {
        let (name, steps) = places.iter().find(|(_, steps)| steps.len() > 1)?;
        let steps: Vec<String> = steps.iter().map(|step| (step + 1).to_string()).collect();
        let more = places.iter().filter(|(_, steps)| steps.len() > 1).count() - 1;
        let more = if more == 0 { String::new() } else { format!(" (and {more} more Applications)") };
        Some(format!("Application {name} is selected by steps {}: the first counts{more}", steps.join(", ")))
    };
    let number = || {
        told(|issue| match issue {
            Issue::MaxUpdate { step, text } => Some(format!(
                "step {}: maxUpdate {text:?} is neither a number nor a percentage: 1 is used",
                step + 1
            )),
            Issue::MaxFailures { step, text } => Some(format!(
                "step {}: maxFailures {text:?} is neither a number nor a percentage: none is tolerated",
                step + 1
            )),
            Issue::Duration { step, field, text } => {
                Some(format!("step {}: {field} {text:?} is no duration: it has no effect", step + 1))
            }
            Issue::Operator { .. } => None,
        })
    };
    let empty = || {
        let taken = |step: &usize| places.iter().any(|(_, steps)| steps.first() == Some(step));
        let empty: Vec<String> =
            (0..steps.len()).filter(|step| !taken(step)).map(|step| (step + 1).to_string()).collect();
        (!empty.is_empty()).then(|| format!("no Application is in step {}", empty.join(", ")))
    };
    let room = || {
        let why = format!(
            "{NO_ROOM}: the head of the rollout is kept in an annotation of the set, which may not be large"
        );
        (!has_room(set.metadata.name.as_deref().unwrap_or_default())).then_some(why)
    };
    operator.or_else(twice).or_else(number).or_else(room).or_else(empty)
}
