//! The shortcut: objects that need no dry run because they state nothing new.

use std::collections::{BTreeMap, HashSet};

use baton_api::object::Object as _;
use serde_json::{Map, Value};

use crate::fields::{Fields, Part, UNOWNED_METADATA, entries};
use crate::items::{Identity, Items};
use crate::prepare::is_void;
use crate::rules::Rules;
use crate::takeover;

/// What can be said of an object without asking the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quick {
    /// Applying the target would change nothing.
    Same,
    /// Only a dry run can tell.
    Unsure,
}

/// Compares a prepared target with the live object alone.
///
/// # Guarantees
/// [`Quick::Same`] only where our last apply owns exactly the fields the target states, and the live object has exactly
/// their values: then [`compare`](crate::compare) says so too, with the same rules, unless a webhook has come to
/// change what we own since the object was last written.
///
/// # Caveats
/// Says nothing about what webhooks change: do not ask it where that counts.
pub fn quick(target: &Value, live: &Value, rules: &Rules) -> Quick {
    if says_nothing_new(target, live, rules) { Quick::Same } else { Quick::Unsure }
}

fn says_nothing_new(target: &Value, live: &Value, rules: &Rules) -> bool {
    let Some(entry) = entries(live).find(|entry| entry.is_ours()) else { return false };
    let one_version =
        target.api_version() == live.api_version() && target.api_version() == entry.api_version();
    if !one_version || target.kind() != live.kind() || takeover::is_due(live) {
        return false;
    }
    let ignored = Ignored::new(&rules.concerning(target).plain_pointers());
    let (Some(fields), Some(wanted), Some(found)) = (entry.fields(), target.as_object(), live.as_object())
    else {
        return false;
    };
    let Some(mut fields) = fields.named() else { return false };

    // Metadata is always there and never owned as such; the rest of an object may own nothing of it.
    let nothing = Fields::default();
    let metadata = fields.remove("metadata").unwrap_or(&nothing);
    let (Some(metadata), Some(wanted_metadata), Some(found_metadata)) =
        (metadata.named(), target["metadata"].as_object(), live["metadata"].as_object())
    else {
        return false;
    };
    states_fields(&fields, wanted, found, &ignored, &["apiVersion", "kind", "metadata"])
        && states_fields(
            &metadata,
            wanted_metadata,
            found_metadata,
            ignored.below("metadata"),
            &UNOWNED_METADATA,
        )
}

/// Whether a target states exactly these fields, with the values that are live.
fn states(fields: &Fields, target: &Value, live: &Value, ignored: &Ignored) -> bool {
    if fields.is_leaf() {
        return target == live || (is_void(target) && live.is_null());
    }
    match (target, live) {
        (Value::Object(target), Value::Object(live)) => {
            fields.named().is_some_and(|fields| states_fields(&fields, target, live, ignored, &[]))
        }
        (Value::Array(target), Value::Array(live)) => states_items(fields, target, live),
        _ => false,
    }
}

fn states_fields(
    fields: &BTreeMap<&str, &Fields>,
    target: &Map<String, Value>,
    live: &Map<String, Value>,
    ignored: &Ignored,
    unowned: &[&str],
) -> bool {
    let skipped = |name: &str| unowned.contains(&name) || ignored.below(name).whole;
    if fields.keys().any(|name| !skipped(name) && !target.contains_key(*name)) {
        return false;
    }
    target.iter().filter(|(name, _)| !skipped(name)).all(|(name, wanted)| {
        let found = live.get(name).unwrap_or(&Value::Null);
        match fields.get(name.as_str()) {
            Some(fields) => states(fields, wanted, found, ignored.below(name)),
            None => wanted.is_null() && found.is_null(),
        }
    })
}

fn states_items(fields: &Fields, target: &[Value], live: &[Value]) -> bool {
    let Some(identity) = Identity::of(&fields.parts) else { return false };
    if target.len() != fields.parts.len() {
        return false;
    }
    let (wanted, found) = (Items::new(target, &identity), Items::new(live, &identity));
    let mut met = HashSet::new();
    let mut places = Vec::with_capacity(target.len());
    for (part, below) in &fields.parts {
        let id = identity.of_part(part);
        let stated = if wanted.places(&id).is_empty() { without_defaults(part, below) } else { id.clone() };
        let (&[at_target], &[at_live]) = (wanted.places(&stated), found.places(&id)) else { return false };
        let is_same = identity == Identity::Value
            || states(below, &target[at_target], &live[at_live], &Ignored::default());
        if !is_same || !met.insert(at_target) {
            return false;
        }
        places.push((at_target, at_live));
    }
    places.sort_unstable();
    identity == Identity::Value || places.is_sorted_by_key(|(_, at_live)| *at_live)
}

/// What identifies an item that leaves those of its keys to their defaults that our last apply did not state either.
fn without_defaults(part: &Part, below: &Fields) -> String {
    let Part::Item(key) = part else { return String::new() };
    let stated = below.named().unwrap_or_default();
    let values =
        key.iter().map(|(name, value)| if stated.contains_key(name.as_str()) { value } else { &Value::Null });
    values.map(|value| value.to_string() + "\n").collect()
}

/// Fields that do not count, as a tree.
#[derive(Debug, Default)]
struct Ignored {
    whole: bool,
    parts: BTreeMap<String, Ignored>,
}

static NOTHING: Ignored = Ignored { whole: false, parts: BTreeMap::new() };

impl Ignored {
    fn new(pointers: &[Vec<String>]) -> Ignored {
        let mut root = Ignored::default();
        for pointer in pointers {
            let mut place = &mut root;
            for part in pointer {
                place = place.parts.entry(part.clone()).or_default();
            }
            place.whole = true;
        }
        root
    }

    fn below(&self, name: &str) -> &Ignored {
        self.parts.get(name).unwrap_or(&NOTHING)
    }
}
