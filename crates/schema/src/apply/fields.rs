//! The field paths of one object.

use serde_json::Value;

use super::element::Element;
use super::set::{Node, Set};
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
    let mut nodes = Vec::new();
    match (ty.shape(value), value) {
        (Shape::Map, Value::Object(fields)) => {
            nodes.reserve(fields.len());
            for (name, value) in fields {
                let field = ty.field(name);
                let children = of(field.ty, value, which);
                let member = which == Which::All || !field.named || ends_here(field.ty, value);
                nodes.push(Node { element: Element::field(name), member, children });
            }
        }
        (shape @ (Shape::Set | Shape::List(_)), Value::Array(items)) => {
            nodes.reserve(items.len());
            let mut elements = elements(ty, shape, items).into_iter().peekable();
            while let Some((element, item)) = elements.next() {
                // Elements that share a key cannot be owned apart.
                let mut alone = true;
                while elements.next_if(|(next, _)| *next == element).is_some() {
                    alone = false;
                }
                let children = if alone { of(ty.item(), item, which) } else { Set::default() };
                nodes.push(Node { element, member: true, children });
            }
        }
        _ => {}
    }
    Set::from_nodes(nodes)
}

/// Whether a named field is claimed itself, because nothing below it could be.
fn ends_here(ty: Type<'_>, value: &Value) -> bool {
    match ty.shape(value) {
        Shape::Leaf => true,
        Shape::Map => value.as_object().is_some_and(|fields| fields.is_empty()),
        Shape::Set | Shape::List(_) => false,
    }
}

/// The elements of a list, ordered by what tells them apart; those nothing tells apart are left out.
pub(crate) fn elements<'v>(ty: Type<'_>, shape: Shape<'_>, items: &'v [Value]) -> Vec<(Element, &'v Value)> {
    let mut elements: Vec<_> =
        items.iter().filter_map(|item| Some((ty.element(shape, item).ok()?, item))).collect();
    elements.sort_by(|a, b| a.0.cmp(&b.0));
    elements
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
