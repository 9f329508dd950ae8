//! The merge generator: one generator with values overridden by others.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::generators::MergeGenerator;
use baton_render::{Engine, Params};
use baton_template::Value;

use crate::combine;
use crate::error::Fault;
use crate::kind;
use crate::outside::Outside;
use crate::pass::Pass;
use crate::world::World;

impl<W: World, O: Outside> Pass<'_, W, O> {
    /// Sets of the first child, each overlaid by the sets of the others that have its key; in the order of the keys.
    pub(crate) async fn merge(&self, merge: &MergeGenerator, place: &str) -> Result<Vec<Params>, Fault> {
        let fail = |message: String| Fault::at(place, message);
        if merge.generators.len() < 2 {
            return Err(fail("found less than two generators, Merge requires two or more".to_owned()));
        }
        if merge.merge_keys.is_empty() {
            return Err(fail("no merge keys were specified, Merge requires at least one".to_owned()));
        }
        let mut base: Option<BTreeMap<String, Params>> = None;
        for (index, child) in merge.generators.iter().enumerate() {
            let place = format!("{place}.generators[{index}]");
            let entry = kind::entry(child).map_err(|message| Fault::at(&place, message))?;
            let sets = self.child(&entry, &place).await?;
            let sets = by_key(&merge.merge_keys, sets).map_err(|message| Fault::at(&place, message))?;
            match &mut base {
                None => base = Some(sets),
                Some(base) => override_with(base, &sets, &self.engine),
            }
        }
        let sets: Vec<Params> = base.into_iter().flat_map(BTreeMap::into_values).collect();
        for set in &sets {
            self.budget.pay(set).map_err(fail)?;
        }
        Ok(sets)
    }
}

fn override_with(base: &mut BTreeMap<String, Params>, over: &BTreeMap<String, Params>, engine: &Engine) {
    for (key, set) in base {
        let Some(over) = over.get(key) else { continue };
        match engine {
            Engine::Go(_) => *set = combine::lay_over(set, over),
            Engine::Fast => {
                *set = combine::copy(set);
                over.snapshot().into_iter().for_each(|(key, value)| set.insert(key, value));
            }
        }
    }
}

/// Sets by the JSON of what they have under the merge keys; what they lack is null.
fn by_key(merge_keys: &[String], sets: Vec<Params>) -> Result<BTreeMap<String, Params>, String> {
    let merge_keys: BTreeSet<&String> = merge_keys.iter().collect();
    let mut keyed = BTreeMap::new();
    for set in sets {
        let mut key = String::from("{");
        for (place, name) in merge_keys.iter().enumerate() {
            key.push_str(if place == 0 { "" } else { "," });
            write_text(name, &mut key);
            key.push(':');
            write_json(&set.get(name).unwrap_or_default(), &mut key);
        }
        key.push('}');
        if keyed.contains_key(&key) {
            return Err(format!(
                "the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets \
                 to be unique. Duplicate key was {key}"
            ));
        }
        keyed.insert(key, set);
    }
    Ok(keyed)
}

/// Equal values, and only they, have equal texts; scalars are written as Go writes JSON.
fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Float(value) => out.push_str(&value.to_string()),
        Value::Str(text) => write_text(text, out),
        Value::List(list) => {
            out.push('[');
            for (place, item) in list.items().iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (place, (key, item)) in map.snapshot().iter().enumerate() {
                out.push_str(if place == 0 { "" } else { "," });
                write_text(key, out);
                out.push(':');
                write_json(item, out);
            }
            out.push('}');
        }
        // Whole numbers; no generator makes anything else.
        other => out.push_str(&other.to_string()),
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
