//! Ownership recorded under an older schema.
//!
//! When a list or map becomes atomic, managers that own something inside it own all of it from then on.

use super::managers::Managers;
use super::set::Set;
use super::typed::Type;

/// Brings every manager's fields in line with the schema.
pub(crate) fn with_schema(ty: Type<'_>, managers: &mut Managers) {
    for owned in managers.all.values_mut() {
        if splits_atomic(ty, &owned.fields) {
            owned.fields = joined(ty, std::mem::take(&mut owned.fields));
        }
    }
}

fn splits_atomic(ty: Type<'_>, set: &Set) -> bool {
    set.nodes().iter().any(|node| {
        let below = match node.element.name() {
            Some(name) => ty.field(name).ty,
            None => ty.item(),
        };
        !node.children.is_empty() && (below.is_atomic() || splits_atomic(below, &node.children))
    })
}

fn joined(ty: Type<'_>, set: Set) -> Set {
    let mut result = Set::default();
    for node in set.into_nodes() {
        let below = match node.element.name() {
            Some(name) => ty.field(name).ty,
            None => ty.item(),
        };
        if !node.children.is_empty() && below.is_atomic() {
            result.add(node.element, true, Set::default());
        } else {
            result.add(node.element, node.member, joined(below, node.children));
        }
    }
    result
}
