//! What changed between two versions of an object.

use std::iter::Peekable;

use serde_json::Value;

use super::element::{Element, same};
use super::fields::{self, Which};
use super::set::{Node, Set};
use super::typed::{Shape, Type};

/// The paths that changed between two versions.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) removed: Set,
    pub(crate) modified: Set,
    pub(crate) added: Set,
}

/// What happened to a value itself, as opposed to what is below it.
#[derive(Clone, Copy, PartialEq)]
enum Itself {
    Kept,
    Removed,
    Modified,
    Added,
}

impl Changes {
    /// Leaves out the given paths, but not what is below them.
    pub(crate) fn without(self, paths: &Set) -> Changes {
        Changes {
            removed: self.removed.without(paths),
            modified: self.modified.without(paths),
            added: self.added.without(paths),
        }
    }

    /// Leaves out the given paths and all below them.
    pub(crate) fn without_trees(self, ignored: &Set) -> Changes {
        Changes {
            removed: self.removed.without_trees(ignored),
            modified: self.modified.without_trees(ignored),
            added: self.added.without_trees(ignored),
        }
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    fn add(&mut self, element: Element, itself: Itself, below: Changes) {
        if itself == Itself::Kept && below.is_empty() {
            return;
        }
        let Changes { removed, modified, added } = below;
        self.removed.add(element.clone(), itself == Itself::Removed, removed);
        self.modified.add(element.clone(), itself == Itself::Modified, modified);
        self.added.add(element, itself == Itself::Added, added);
    }
}

/// Compares two versions of an object; without a first, everything is added.
pub(crate) fn compare(ty: Type<'_>, before: Option<&Value>, after: &Value) -> Changes {
    match before {
        None => Changes { added: fields::of(ty, after, Which::All), ..Changes::default() },
        Some(before) => both(ty, before, after).0,
    }
}

fn either(ty: Type<'_>, before: Option<&Value>, after: Option<&Value>) -> (Changes, Itself) {
    match (before, after) {
        (None, None) => (Changes::default(), Itself::Kept),
        (None, Some(after)) => {
            let added = fields::of(ty, after, Which::All);
            (Changes { added, ..Changes::default() }, Itself::Added)
        }
        (Some(before), None) => {
            let removed = fields::of(ty, before, Which::All);
            (Changes { removed, ..Changes::default() }, Itself::Removed)
        }
        (Some(before), Some(after)) => both(ty, before, after),
    }
}

fn both(ty: Type<'_>, before: &Value, after: &Value) -> (Changes, Itself) {
    let (old, new) = (ty.shape(before), ty.shape(after));
    // Null takes whatever shape the other side has.
    let (old, new) = match (before.is_null(), after.is_null()) {
        (true, _) => (new, new),
        (_, true) => (old, old),
        _ => (old, new),
    };
    let taken_apart = |shape: Shape<'_>| match shape {
        Shape::Map => true,
        Shape::Set | Shape::List(_) => true,
        Shape::Leaf => false,
    };
    if (!taken_apart(old) && !taken_apart(new)) || (is_hollow(before) && is_hollow(after)) {
        let itself = if same(before, after) { Itself::Kept } else { Itself::Modified };
        return (Changes::default(), itself);
    }
    if old.alike(&new) {
        return (inside(ty, new, Some(before), Some(after)), Itself::Kept);
    }
    // The value changed its nature: what was inside is gone, what is inside is new.
    let gone = inside(ty, old, Some(before), None);
    let come = inside(ty, new, None, Some(after));
    (Changes { removed: gone.removed, modified: Set::default(), added: come.added }, Itself::Modified)
}

/// An empty object or list differs from null, yet has nothing inside that could.
pub(crate) fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn inside(ty: Type<'_>, shape: Shape<'_>, before: Option<&Value>, after: Option<&Value>) -> Changes {
    match shape {
        Shape::Leaf => Changes::default(),
        Shape::Map => in_map(ty, before, after),
        Shape::Set | Shape::List(_) => in_list(ty, shape, before, after),
    }
}

fn in_map(ty: Type<'_>, before: Option<&Value>, after: Option<&Value>) -> Changes {
    let mut changes = Changes::default();
    let old = before.and_then(Value::as_object);
    let new = after.and_then(Value::as_object);
    for (name, after) in new.into_iter().flatten() {
        let before = old.and_then(|old| old.get(name));
        // Most fields of most updates are untouched, and equal values have no differing paths.
        if before == Some(after) {
            continue;
        }
        let (below, itself) = either(ty.field(name).ty, before, Some(after));
        changes.add(Element::field(name), itself, below);
    }
    let gone = old.into_iter().flatten().filter(|(name, _)| new.is_none_or(|new| !new.contains_key(*name)));
    let gone = gone.map(|(name, before)| Node {
        element: Element::field(name),
        member: true,
        children: fields::of(ty.field(name).ty, before, Which::All),
    });
    changes.removed = changes.removed.union(Set::from_nodes(gone.collect()));
    changes
}

fn in_list<'v>(
    ty: Type<'_>,
    shape: Shape<'_>,
    before: Option<&'v Value>,
    after: Option<&'v Value>,
) -> Changes {
    let elements = |value: Option<&'v Value>| -> Vec<(Element, &'v Value)> {
        value.and_then(Value::as_array).map(|items| fields::elements(ty, shape, items)).unwrap_or_default()
    };
    let mut changes = Changes::default();
    let mut old = elements(before).into_iter().peekable();
    let mut new = elements(after).into_iter().peekable();
    loop {
        let element = match (old.peek(), new.peek()) {
            (Some((a, _)), Some((b, _))) => a.min(b).clone(),
            (Some((only, _)), None) | (None, Some((only, _))) => only.clone(),
            (None, None) => return changes,
        };
        let before = run(&mut old, &element);
        let after = run(&mut new, &element);
        if before != after {
            compare_elements(ty, &mut changes, element, &before, &after);
        }
    }
}

/// The elements next in line under one key.
fn run<'v>(
    elements: &mut Peekable<impl Iterator<Item = (Element, &'v Value)>>,
    element: &Element,
) -> Vec<&'v Value> {
    std::iter::from_fn(|| elements.next_if(|(next, _)| next == element)).map(|(_, item)| item).collect()
}

/// Compares the elements under one key. Several under one key are owned together, as if they were one value.
fn compare_elements(ty: Type<'_>, changes: &mut Changes, element: Element, old: &[&Value], new: &[&Value]) {
    let item = ty.item();
    match (old, new) {
        ([_, _, ..], [_, _, ..]) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
            let itself = if equal { Itself::Kept } else { Itself::Modified };
            changes.add(element, itself, Changes::default());
        }
        ([_, _, ..], _) => {
            let (below, itself) = either(item, None, new.first().copied());
            changes.add(element.clone(), itself, below);
            changes.removed.add(element, true, Set::default());
        }
        (_, [_, _, ..]) => {
            let (below, itself) = either(item, old.first().copied(), None);
            changes.add(element.clone(), itself, below);
            changes.added.add(element, true, Set::default());
        }
        _ => {
            let (below, itself) = either(item, old.first().copied(), new.first().copied());
            changes.add(element, itself, below);
        }
    }
}
