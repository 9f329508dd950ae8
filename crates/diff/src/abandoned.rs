//! Fields that the next sync removes by taking them over from client-side applies.
//!
//! A dry run cannot show that, for entries are moved only in earnest. What was stated is what the last client-side apply
//! noted down: an `Update` entry alone does not tell it from what was set by default.

use std::collections::{BTreeMap, HashSet};

use baton_api::names::resource::LAST_APPLIED;
use baton_api::object::Object as _;
use serde_json::{Map, Value};

use crate::fields::{Entry, Fields, Part, entries};
use crate::items::{Identity, Items};
use crate::takeover::{TAKEN_OVER, is_due, is_taken, joined};

/// What client-side applies left in an object.
pub(crate) struct Abandoned {
    /// What will be taken over.
    taken: Fields,
    /// The same, with what is ours already.
    was: Fields,
    /// What the last client-side apply stated.
    stated: Value,
    /// What everybody else owns.
    others: Vec<Fields>,
}

impl Abandoned {
    /// `None` where nothing is taken over, or nobody knows what was stated.
    pub(crate) fn find(live: &Value) -> Option<Abandoned> {
        if !is_due(live) {
            return None;
        }
        let stated = serde_json::from_str(live.annotation(LAST_APPLIED)?).ok()?;
        let is_taken = |entry: &Entry<'_>| is_taken(*entry, &TAKEN_OVER);
        let others = entries(live).filter(|entry| !is_taken(entry) && !entry.is_ours());
        Some(Abandoned {
            taken: Fields::of_object(&joined(entries(live).filter(is_taken)))?,
            was: Fields::of_object(&joined(
                entries(live).filter(|entry| is_taken(entry) || entry.is_ours()),
            ))?,
            stated,
            others: others.filter_map(Entry::fields).collect(),
        })
    }

    /// All that was ours, by whichever way of applying.
    pub(crate) fn was(&self) -> &Fields {
        &self.was
    }

    /// Takes out of what a dry run predicts what was stated once and is owned by nobody any more; `ours` is what we own
    /// after the apply.
    pub(crate) fn remove_from(&self, predicted: &mut Value, ours: &Fields) {
        let keepers: Vec<&Fields> = self.others.iter().chain([ours]).collect();
        remove(&self.taken, &self.stated, &keepers, predicted);
    }
}

fn remove(taken: &Fields, stated: &Value, keepers: &[&Fields], predicted: &mut Value) {
    match (stated, predicted) {
        (Value::Object(stated), Value::Object(predicted)) => remove_fields(taken, stated, keepers, predicted),
        (Value::Array(stated), Value::Array(predicted)) => remove_items(taken, stated, keepers, predicted),
        _ => {}
    }
}

fn remove_fields(
    taken: &Fields,
    stated: &Map<String, Value>,
    keepers: &[&Fields],
    predicted: &mut Map<String, Value>,
) {
    let Some(taken) = taken.named() else { return };
    let keepers: Vec<_> = keepers.iter().filter_map(|keeper| keeper.named()).collect();
    for (name, below) in taken {
        let Some(stated) = stated.get(name) else { continue };
        let keepers: Vec<&Fields> = keepers.iter().filter_map(|keeper| keeper.get(name).copied()).collect();
        if keepers.is_empty() && below.itself {
            predicted.remove(name);
        } else if let Some(predicted) = predicted.get_mut(name) {
            remove(below, stated, &keepers, predicted);
        }
    }
}

fn remove_items(taken: &Fields, stated: &[Value], keepers: &[&Fields], predicted: &mut Vec<Value>) {
    let kept = keepers.iter().flat_map(|keeper| &keeper.parts);
    let Some(identity) = Identity::of(taken.parts.iter().chain(kept.clone())) else { return };
    let mut keepers: BTreeMap<String, Vec<&Fields>> = BTreeMap::new();
    for (part, below) in kept {
        keepers.entry(identity.of_part(part)).or_default().push(below);
    }
    let known = Items::new(stated, &identity);
    let places: BTreeMap<String, usize> =
        predicted.iter().enumerate().map(|(place, item)| (identity.of_item(item), place)).collect();

    let mut gone = HashSet::new();
    for (part, below) in &taken.parts {
        let id = identity.of_part(part);
        let (Some(stated), Some(place)) = (stated_item(&known, part, &id), places.get(&id)) else { continue };
        match keepers.get(&id) {
            None => drop(gone.insert(*place)),
            Some(keepers) => remove(below, stated, keepers, &mut predicted[*place]),
        }
    }
    let mut place = 0;
    predicted.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
}

/// The item of a stated list that a part leads to. One of its keys may be left to its default, as `protocol` of a port.
fn stated_item<'a>(known: &Items<'a>, part: &Part, id: &str) -> Option<&'a Value> {
    let without = |left_out: &str| {
        let Part::Item(key) = part else { return String::new() };
        let values = key.iter().map(|(name, value)| if name == left_out { &Value::Null } else { value });
        values.map(|value| value.to_string() + "\n").collect()
    };
    let names = if let Part::Item(key) = part { key.keys().collect() } else { Vec::new() };
    known.only(id).or_else(|| names.into_iter().find_map(|name| known.only(&without(name))))
}
