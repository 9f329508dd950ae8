//! Values grown out of a schema, so that every served kind gets input that decodes.

use baton_schema::{Additional, Kind, Schema};
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::values;

/// A value whose types mostly fit the schema, at most `depth` levels deep.
pub(crate) fn grow(schema: &Schema, dice: &mut Dice<'_>, depth: usize) -> Value {
    if dice.one_in(40) {
        return values::value(dice, 2);
    }
    if !schema.limits.enumeration.is_empty() && !dice.one_in(8) {
        return dice.pick(&schema.limits.enumeration).clone();
    }
    match schema.kind {
        Some(Kind::Object) if depth > 0 => object(schema, dice, depth),
        Some(Kind::Object) => json!({}),
        Some(Kind::Array) => match &schema.items {
            Some(items) if depth > 0 => (0..dice.below(3)).map(|_| grow(items, dice, depth - 1)).collect(),
            _ => json!([]),
        },
        Some(Kind::Integer) => json!(dice.below(4)),
        Some(Kind::Boolean) => dice.one_in(2).into(),
        Some(Kind::String) => values::text(dice).into(),
        _ => values::value(dice, depth.min(2)),
    }
}

fn object(schema: &Schema, dice: &mut Dice<'_>, depth: usize) -> Value {
    let mut fields = Map::new();
    for name in &schema.limits.required {
        if let Some(field) = schema.properties.get(name) {
            fields.insert(name.clone(), grow(field, dice, depth - 1));
        }
    }
    let known: Vec<_> = schema.properties.iter().collect();
    for _ in 0..dice.below(4) {
        if let Additional::Typed(values) = &schema.additional {
            fields.insert(values::text(dice), grow(values, dice, depth - 1));
        } else if !known.is_empty() {
            let (name, field) = *dice.pick(&known);
            fields.insert(name.clone(), grow(field, dice, depth - 1));
        }
    }
    Value::Object(fields)
}
