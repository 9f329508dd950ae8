//! Whether a set's Applications change and go in an order, and what is wrong with it. The one place where the ordered rollout
//! comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::ApplicationSet;
use baton_api::rollout_status::RolloutState;
use baton_api::strategy::{DeletionOrder, RolloutStep, StrategyType};
use baton_generators::{Group, flatten};
use baton_phases::Target;
use baton_rollout::control;
use baton_rollout::deletion::{self, Invalid};
use baton_rollout::machine::{Control, Member, Wanted};
use baton_rollout::pin::Fingerprint;
use baton_rollout::steps::{Issue, Steps};

use super::conditions;
use super::desired::Desired;
use super::ignore::IgnoreRules;
use super::validate::Faults;
use crate::phases::phased;
use crate::rollout::{Offer, Phased, Template, Typed, has_room, label_value};
use crate::settings::{Policy, Settings};

/// Why a rollout without steps cannot be.
pub(crate) const NO_STEPS: &str = "No steps defined for rollout";

/// Why a set cannot have what an order keeps beside it.
pub(crate) const NO_ROOM: &str = "the name of the ApplicationSet is longer than 239 characters, which leaves no room for those of \
     the ConfigMaps that an order needs";
/// Why steps are asked for in vain.
const NO_ROLLING_SYNC: &str = "strategy.type is RollingSync and strategy.rollingSync is missing: all Applications change \
    at once until it has steps";
/// Longest line on why an Application is not there.
const LONGEST_LINE: usize = 300;

/// Why Applications could not be created or adopted, by name.
pub(crate) type Refused = BTreeMap<Arc<str>, String>;

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
    } else if conditions::has_steps(set) && steps(set).is_empty() {
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
    refused: &Refused,
    ignored: &Arc<IgnoreRules>,
    policy: Policy,
    fuse: Option<&str>,
) -> Result<Offer, String> {
    let may_update = policy.allows_update();
    let steps = steps_of(set);
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
            fault: faults
                .by_name
                .get(&application.name)
                .or(refused.get(&application.name))
                .map(|why| line(why)),
            back: None,
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
        phases: None,
    })
}

/// The steps that a set is rolled out by: where it has phases and no steps, one for all.
fn steps_of(set: &ApplicationSet) -> Steps {
    match conditions::has_steps(set) {
        true => Steps::read(steps(set)).0,
        false => Steps::read(&[RolloutStep::default()]).0,
    }
}

/// The Applications that phases have a say in.
pub(crate) fn phases(set: &ApplicationSet, desired: &[Desired], groups: &[Group]) -> Option<Arc<Phased>> {
    let generators = phased(set);
    if generators.is_empty() {
        return None;
    }
    let mut targets: BTreeMap<usize, Vec<Target>> =
        generators.into_iter().map(|generator| (generator, Vec::new())).collect();
    let mut typed = BTreeMap::new();
    for application in desired.iter().filter(|application| !application.name.is_empty()) {
        let Some(group) = groups.get(application.group) else { continue };
        if let Some(all) = targets.get_mut(&group.generator)
            && let Some(params) = group.params.get(application.params)
        {
            all.push(Target { name: application.name.clone(), params: flatten(params) });
            if set.spec.go_template {
                typed.insert(application.name.clone(), Typed::new(params));
            }
        }
    }
    Some(Arc::new(Phased { targets, params: typed }))
}

/// What is wrong with how a set asks for its order, if anything; for a set that has none, what is wrong with its wish
/// for one. What is wrong with the steps is told first, and of that the gravest alone.
pub(crate) fn fault(
    set: &ApplicationSet,
    desired: &[Desired],
    ignored: Option<&IgnoreRules>,
) -> Option<String> {
    let steps = match ignored {
        Some(ignored) => step_fault(set, desired, ignored),
        None => asks_in_vain(set).then(|| NO_ROLLING_SYNC.to_owned()),
    };
    let done = set.status.rollout.as_ref().is_none_or(|rollout| rollout.state == RolloutState::Complete);
    let has = |name: &str| desired.iter().any(|application| &*application.name == name);
    // Whom an old request names may have left since.
    let has = (!done).then_some(&has as &dyn Fn(&str) -> bool);
    let words = control::misunderstood(set.metadata.annotations.as_ref(), has);
    let lines: Vec<String> = steps.into_iter().chain(words.iter().map(ToString::to_string)).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Whether a set asks for steps and has no place for any.
fn asks_in_vain(set: &ApplicationSet) -> bool {
    let strategy = set.spec.strategy.as_ref();
    strategy
        .is_some_and(|strategy| strategy.kind == StrategyType::RollingSync && strategy.rolling_sync.is_none())
}

fn step_fault(set: &ApplicationSet, desired: &[Desired], ignored: &IgnoreRules) -> Option<String> {
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
    let told = |wanted: fn(&Issue) -> bool| issues.iter().find(|issue| wanted(issue)).map(Issue::to_string);
    let twice = || {
        let (name, steps) = places.iter().find(|(_, steps)| steps.len() > 1)?;
        let steps: Vec<String> = steps.iter().map(|step| (step + 1).to_string()).collect();
        let more = places.iter().filter(|(_, steps)| steps.len() > 1).count() - 1;
        let more = if more == 0 { String::new() } else { format!(" (and {more} more Applications)") };
        Some(format!("Application {name} is selected by steps {}: the first counts{more}", steps.join(", ")))
    };
    let room = || {
        let why = format!(
            "{NO_ROOM}: the head of the rollout is kept in an annotation of the set, which may not be large"
        );
        (!has_room(set.metadata.name.as_deref().unwrap_or_default())).then_some(why)
    };
    told(Issue::closes)
        .or_else(|| told(|issue| matches!(issue, Issue::Operator { .. })))
        .or_else(twice)
        .or_else(|| told(|_| true))
        .or_else(room)
}

/// Why an Application is not there, in one line of bounded length.
fn line(why: &str) -> Arc<str> {
    // The first words tell of Argo CD's code, not of the Application.
    let why = why.trim_start_matches("error while wrapping using MutateFn: ");
    let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(LONGEST_LINE)].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(annotations: Value, strategy: Value) -> ApplicationSet {
        let spec = json!({"generators": [], "template": {}, "strategy": strategy});
        serde_json::from_value(json!({"metadata": {"annotations": annotations}, "spec": spec}))
            .expect("a set")
    }

    #[test]
    fn a_rollout_that_is_asked_for_in_vain_is_told() {
        let bare = json!({"type": "RollingSync"});
        assert_eq!(fault(&set(json!({}), bare), &[], None).as_deref(), Some(NO_ROLLING_SYNC));
        assert_eq!(fault(&set(json!({}), json!({"type": "AllAtOnce"})), &[], None), None);
    }

    #[test]
    fn words_that_nobody_understands_are_told_beside_the_steps() {
        let steps = json!({"type": "RollingSync", "rollingSync": {"steps": [{"waitDuration": "soon"}, {}]}});
        let set = set(json!({"baton.dev/supersede": "maybe"}), steps);
        let told = fault(&set, &[], Some(&IgnoreRules::default())).expect("a fault");
        let (steps, words) = told.split_once("; ").expect("two");
        assert!(steps.starts_with("step 1: waitDuration \"soon\" is no duration"), "{told}");
        assert!(words.starts_with("baton.dev/supersede: \"maybe\" is not understood"), "{told}");
    }

    #[test]
    fn a_step_without_applications_is_no_fault() {
        let steps = json!({"type": "RollingSync", "rollingSync": {"steps": [{}, {}]}});
        assert_eq!(fault(&set(json!({}), steps), &[], Some(&IgnoreRules::default())), None);
    }
}
