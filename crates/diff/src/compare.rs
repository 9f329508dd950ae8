//! The verdict: whether applying a target would change an object.

use baton_api::names::resource::{LAST_APPLIED, TRACKING_ID};
use baton_api::object::{Object as _, annotations_mut, labels_mut};
use serde_json::Value;

use crate::abandoned::Abandoned;
use crate::fields::{applied, entries};
use crate::overlay::overlay;
use crate::rules::Rules;
use crate::subset::lay;
use crate::trusted::forgive;

/// What a sync would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Whether it would change anything.
    pub modified: bool,
    /// The object as it is, without what does not count.
    pub live: Value,
    /// The object as it would be, likewise; equal to `live` where nothing would change.
    pub predicted: Value,
}

/// Metadata that is no property of an object but of its being stored.
const BOOKKEEPING: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Compares an object with what a dry run of applying the target says it would become.
///
/// Only fields count that our applies own, or owned: what the API sets by default and what webhooks and other managers
/// add is not ours to judge, unless `include_mutations` is set, where everything counts but status. `target` is as
/// [`prepare`](crate::prepare) made it; `predicted` and `live` must be in the target's API version.
///
/// Where the prediction does not say who owns what, this is [`subset`].
pub fn compare(
    target: &Value,
    predicted: &Value,
    live: &Value,
    rules: &Rules,
    include_mutations: bool,
) -> Difference {
    let Some(ours) = applied(predicted) else { return subset(target, live, rules) };
    let (mut before, mut after) = (without_bookkeeping(live), without_bookkeeping(predicted));
    back_fill_tracking(target, &mut before, Some(&mut after), rules);
    let abandoned = Abandoned::find(live);
    if let Some(abandoned) = &abandoned {
        abandoned.remove_from(&mut after, &ours);
    }
    ignore(live, &mut before, &mut after, rules);

    if include_mutations {
        for object in [&mut before, &mut after] {
            object.as_object_mut().map(|fields| fields.remove("status"));
        }
        return Difference::between(before, after);
    }
    let was = abandoned.as_ref().map(Abandoned::was).cloned().or_else(|| applied(live)).unwrap_or_default();
    let after = overlay(Some(&before), Some(&after), &ours, &was).unwrap_or(after);
    Difference::between(before, after)
}

/// Compares an object with its target alone: every value the target states must be there.
///
/// For where the API cannot be asked. It does not see what a sync would remove, and takes other ways to write a value
/// for differences.
pub fn subset(target: &Value, live: &Value, rules: &Rules) -> Difference {
    let mut before = without_bookkeeping(live);
    back_fill_tracking(target, &mut before, None, rules);
    let mut after = lay(&without_bookkeeping(target), Some(&before));
    ignore(live, &mut before, &mut after, rules);
    Difference::between(before, after)
}

fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    BOOKKEEPING.iter().for_each(|name| drop(metadata.remove(*name)));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        && annotations.remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
    {
        metadata.remove("annotations");
    }
    object
}

/// Objects that were tracked by a label and wait for their annotation are not all out of sync for that. An annotation
/// that says something else is a difference.
fn back_fill_tracking(target: &Value, live: &mut Value, predicted: Option<&mut Value>, rules: &Rules) {
    let Some(label) = rules.system().migrated_label.as_deref() else { return };
    let (Some(wanted), None) = (target.annotation(TRACKING_ID), live.annotation(TRACKING_ID)) else { return };
    let (Some(found), Some((instance, _))) = (live.label(label), wanted.split_once(':')) else { return };
    // A label holds no more than 63 characters, and may end sooner.
    let is_instance =
        found == instance || (instance.len() > 63 && !found.is_empty() && instance.starts_with(found));
    if !is_instance {
        return;
    }
    if let Some(annotations) = annotations_mut(live) {
        annotations.insert(TRACKING_ID.to_owned(), Value::String(wanted.to_owned()));
    }
    if target.label(label).is_none() {
        for object in [Some(live), predicted].into_iter().flatten() {
            if let Some(labels) = labels_mut(object) {
                labels.remove(label);
            }
        }
    }
}

/// Takes out of both objects what does not count.
fn ignore(live: &Value, before: &mut Value, after: &mut Value, rules: &Rules) {
    let concerning = rules.concerning(live);
    for entry in entries(live).filter(|entry| concerning.trusts(entry.manager())) {
        forgive(&entry.fields().unwrap_or_default(), before, after);
    }
    concerning.remove_from(before);
    concerning.remove_from(after);
}

// === impl Difference ===

impl Difference {
    fn between(live: Value, predicted: Value) -> Difference {
        Difference { modified: live != predicted, live, predicted }
    }
}
