//! The field paths of one object.

use serde_json::Value;

use super::element::Element;
use super::set::Set;
use super::typed::{Shape, Type};

/// Which paths of an object are meant.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Which {
    /// What applying the object claims: leaves, list elements, map entries and empty objects, but not the named
    /// fields that merely lead there.
    Claimed,
    /// Every path, as when the whole object is new or gone.
    All,
}

/// The paths below a value.
pub(crate) fn of(ty: Type<'_>, value: &Value, which: Which) -> Set {
    let mut set = Set::default();
    match (ty.shape(value), value) {
        (Shape::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let field = ty.field(name);
                let below = of(field.ty, value, which);
                let member = which == Which::All || !field.named || ends_here(field.ty, value);
                set.add(Element::field(name), member, below);
            }
        }
        (shape @ (Shape::Set | Shape::List(_)), Value::Array(items)) => {
            for (element, same) in group(ty, shape, items) {
                // Elements that share a key cannot be owned apart.
                let below = match same.as_slice() {
                    [only] => of(ty.item(), only, which),
                    _ => Set::default(),
                };
                set.add(element, true, below);
            }
        }
        _ => {}
    }
    set
}

/// Whether a named field is claimed itself, because nothing below it could be.
fn ends_here(ty: Type<'_>, value: &Value) -> bool {
    match ty.shape(value) {
        Shape::Leaf => true,
        Shape::Map => value.as_object().is_some_and(|fields| fields.is_empty()),
        Shape::Set | Shape::List(_) => false,
    }
}

/// The elements of a list by what tells them apart, in order of first appearance; those nothing tells apart are left
/// out.
pub(crate) fn group<'v>(
    ty: Type<'_>,
    shape: Shape<'_>,
    items: &'v [Value],
) -> Vec<(Element, Vec<&'v Value>)> {
    let mut keyed: Vec<(Element, usize, &Value)> = items
        .iter()
        .enumerate()
        .filter_map(|(at, item)| Some((ty.element(shape, item).ok()?, at, item)))
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut groups: Vec<(Element, usize, Vec<&Value>)> = Vec::with_capacity(keyed.len());
    for (element, at, item) in keyed {
        match groups.last_mut() {
            Some(last) if last.0 == element => last.2.push(item),
            _ => groups.push((element, at, vec![item])),
        }
    }
    groups.sort_by_key(|group| group.1);
    groups.into_iter().map(|(element, _, items)| (element, items)).collect()
}

/// The set with every named field that leads to a member made a member itself.
pub(crate) fn with_named(ty: Type<'_>, set: Set) -> Set {
    let mut full = Set::default();
    for node in set.into_nodes() {
        let (below, named) = match node.element.name() {
            Some(name) => {
                let field = ty.field(name);
                (field.ty, field.named && !node.children.is_empty())
            }
            None => (ty.item(), false),
        };
        full.add(node.element, node.member || named, with_named(below, node.children));
    }
    full
}
