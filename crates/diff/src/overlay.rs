//! What an apply would change of what it owns, laid over the live object.
//!
//! The API says in a dry run what an object would become and which fields our applies would own in it. All else that it
//! would become, by defaults or by webhooks, is not ours to judge.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::items::{Identity, Items};
use crate::prepare::is_void;

/// The live value, changed to what is predicted wherever we own it (`ours`) or owned it before (`was`).
///
/// Equals `live` where our apply changes nothing that is ours.
pub(crate) fn overlay(
    live: Option<&Value>,
    predicted: Option<&Value>,
    ours: &Fields,
    was: &Fields,
) -> Option<Value> {
    if ours.is_empty() && was.is_empty() {
        return live.cloned();
    }
    let (Some(before), Some(after)) = (present(live), present(predicted)) else {
        let stays = match (live, present(predicted)) {
            (None | Some(Value::Null), None) => true,
            // Servers write null for a map that has lost its last field, and an empty map the next time.
            (Some(Value::Null), Some(predicted)) if is_void(predicted) => true,
            // What others removed and we no longer want does not come back by our doing.
            (None | Some(Value::Null), Some(_)) => ours.is_empty(),
            (Some(_), _) => false,
        };
        return if stays { live.cloned() } else { predicted.cloned() };
    };
    if ours.is_leaf() || (ours.is_empty() && was.is_leaf()) {
        return predicted.cloned();
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            overlay_fields(before, after, ours, was).map(Value::Object)
        }
        (Value::Array(before), Value::Array(after)) => {
            overlay_items(before, after, ours, was).map(Value::Array)
        }
        _ => None,
    }
    .or_else(|| predicted.cloned())
}

/// `None` where the parts are not parts of an object.
fn overlay_fields(
    live: &Map<String, Value>,
    predicted: &Map<String, Value>,
    ours: &Fields,
    was: &Fields,
) -> Option<Map<String, Value>> {
    let nothing = Fields::default();
    let mut result = live.clone();
    for (name, (ours, was)) in by_name(ours, was, &nothing)? {
        match overlay(live.get(name), predicted.get(name), ours, was) {
            Some(value) => drop(result.insert(name.to_owned(), value)),
            None => drop(result.remove(name)),
        }
    }
    Some(result)
}

type Both<'f> = (&'f Fields, &'f Fields);

fn by_name<'f>(
    ours: &'f Fields,
    was: &'f Fields,
    nothing: &'f Fields,
) -> Option<BTreeMap<&'f str, Both<'f>>> {
    let ours = ours.named()?.into_iter().map(|(name, below)| (name, (below, nothing)));
    let mut all: BTreeMap<&str, Both<'f>> = ours.collect();
    for (name, below) in was.named()? {
        all.entry(name).or_insert((nothing, nothing)).1 = below;
    }
    Some(all)
}

/// `None` where the parts do not tell items apart.
fn overlay_items(live: &[Value], predicted: &[Value], ours: &Fields, was: &Fields) -> Option<Vec<Value>> {
    let identity = Identity::of(ours.parts.iter().chain(&was.parts))?;
    let (before, after) = (Items::new(live, &identity), Items::new(predicted, &identity));

    let nothing = Fields::default();
    let mut owned: BTreeMap<String, Both<'_>> = BTreeMap::new();
    for (part, below) in &ours.parts {
        owned.insert(identity.of_part(part), (below, &nothing));
    }
    for (part, below) in &was.parts {
        owned.entry(identity.of_part(part)).or_insert((&nothing, &nothing)).1 = below;
    }

    let mut added = false;
    let mut result: BTreeMap<&str, VecDeque<Value>> = BTreeMap::new();
    for (id, (ours, was)) in &owned {
        let (old, new) = (before.all(id), after.all(id));
        let items = match (old.as_slice(), new.as_slice()) {
            ([], _) if ours.is_empty() => VecDeque::new(),
            ([], new) => {
                added |= !new.is_empty();
                new.iter().map(|item| (*item).clone()).collect()
            }
            ([old], [new]) => overlay(Some(old), Some(new), ours, was).into_iter().collect(),
            (_, new) => new.iter().map(|item| (*item).clone()).collect(),
        };
        result.insert(id, items);
    }

    let is_ours = |id: &&String| owned.get(*id).is_some_and(|(ours, _)| !ours.is_empty());
    let reordered = identity != Identity::Value && order_differs(&before, &after, is_ours);
    let mut order: Vec<&String> = Vec::new();
    if added || reordered {
        order.extend(&after.order);
    }
    order.extend(&before.order);

    let mut left: BTreeMap<&str, VecDeque<Value>> =
        before.order.iter().map(|id| (id.as_str(), before.all(id).into_iter().cloned().collect())).collect();
    left.extend(result);
    let mut items: Vec<Value> =
        order.into_iter().filter_map(|id| left.get_mut(id.as_str())?.pop_front()).collect();
    items.extend(left.into_values().flatten());
    Some(items)
}

fn order_differs(before: &Items<'_>, after: &Items<'_>, is_ours: impl Fn(&&String) -> bool) -> bool {
    let both = |id: &&String| is_ours(id) && !before.places(id).is_empty() && !after.places(id).is_empty();
    let old = before.order.iter().filter(&both);
    let new = after.order.iter().filter(&both);
    // Doubled items are compared above; here only the first of each counts.
    let (mut met_old, mut met_new) = (HashSet::new(), HashSet::new());
    old.filter(|id| met_old.insert(id.as_str())).ne(new.filter(|id| met_new.insert(id.as_str())))
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
