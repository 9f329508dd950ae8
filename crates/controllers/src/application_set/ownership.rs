//! Whose an Application is.

use baton_api::ApplicationSet;
use baton_api::names::API_VERSION;
use baton_api::names::baton::GUARD_SUFFIX;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::cache::{Record, is_guard_of};

/// An Application that another controller has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Object {namespace}/{name} is already owned by another {owner_kind} controller {owner_name}")]
pub(crate) struct AlreadyOwned {
    namespace: String,
    name: String,
    owner_kind: String,
    owner_name: String,
}

/// What becomes of the guard among an Application's owners.
///
/// The guard is a ConfigMap that only this controller deletes. While an Application has two owners, the garbage
/// collector deletes it only when both are gone: so a set deleted in the foreground does not take its Applications with
/// it out of order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Guarding {
    /// It is there.
    With(OwnerReference),
    /// It stays as it is.
    AsItIs,
    /// It goes.
    Without,
}

/// What an ordered set puts on its Applications beside its own reference.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Marks {
    /// Value of the label that names the set.
    pub(crate) label: Option<String>,
    pub(crate) guard: Guarding,
}

// === impl Marks ===

impl Marks {
    /// Whether an Application is to have something of this and has not.
    pub(crate) fn are_missing_on(&self, application: &Record) -> bool {
        let label = self.label.is_some() && !application.marked;
        let guard = matches!(self.guard, Guarding::With(_)) && !application.guarded;
        application.deleting.is_none() && (label || guard)
    }
}

/// The reference to the guard of a set.
pub(crate) fn guard_reference(set: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: format!("{set}{GUARD_SUFFIX}"),
        uid: uid.to_owned(),
        controller: Some(false),
        block_owner_deletion: Some(false),
    }
}

/// The reference that makes an Application the set's.
pub(crate) fn reference(set: &ApplicationSet) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "ApplicationSet".to_owned(),
        name: set.metadata.name.clone().unwrap_or_default(),
        uid: set.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The owners with the set as the one that controls. Uids do not tell sets apart: one made anew takes over.
///
/// # Errors
/// If another object controls it.
pub(crate) fn controlled(
    metadata: &ObjectMeta,
    mut owners: Vec<OwnerReference>,
    set: &OwnerReference,
) -> Result<Vec<OwnerReference>, AlreadyOwned> {
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    if let Some(other) = controller.filter(|owner| !is_same(owner, set)) {
        return Err(AlreadyOwned {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            owner_kind: other.kind.clone(),
            owner_name: other.name.clone(),
        });
    }
    match owners.iter_mut().find(|owner| is_same(owner, set)) {
        Some(owner) => *owner = set.clone(),
        None => owners.push(set.clone()),
    }
    Ok(owners)
}

/// Whether both name the same object; the version of its API does not count.
fn is_same(a: &OwnerReference, b: &OwnerReference) -> bool {
    let group = |owner: &OwnerReference| {
        owner.api_version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned())
    };
    group(a) == group(b) && a.kind == b.kind && a.name == b.name
}

// === impl Guarding ===

impl Guarding {
    /// The owners with the set's guard among them, or without.
    pub(crate) fn applied(&self, set: &str, mut owners: Vec<OwnerReference>) -> Vec<OwnerReference> {
        match self {
            Guarding::AsItIs => {}
            Guarding::Without => owners.retain(|owner| !is_guard_of(set, owner)),
            Guarding::With(guard) => match owners.iter_mut().find(|owner| is_guard_of(set, owner)) {
                Some(owner) => *owner = guard.clone(),
                None => owners.push(guard.clone()),
            },
        }
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(kind: &str, name: &str, uid: &str, controller: Option<bool>) -> OwnerReference {
        OwnerReference {
            api_version: API_VERSION.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller,
            block_owner_deletion: controller,
        }
    }

    #[test]
    fn a_set_takes_what_nobody_controls_and_what_was_its_own() {
        let set = owner("ApplicationSet", "set", "new", Some(true));
        let metadata =
            ObjectMeta { name: Some("app".into()), namespace: Some("ns".into()), ..ObjectMeta::default() };
        let bystander = owner("ConfigMap", "x", "1", None);
        for (owners, expected) in [
            (vec![], Some(vec![set.clone()])),
            (vec![bystander.clone()], Some(vec![bystander.clone(), set.clone()])),
            (vec![owner("ApplicationSet", "set", "old", Some(true))], Some(vec![set.clone()])),
            (vec![owner("ApplicationSet", "other", "1", Some(true))], None),
        ] {
            assert_eq!(controlled(&metadata, owners, &set).ok(), expected);
        }
        let refused = controlled(&metadata, vec![owner("ApplicationSet", "other", "1", Some(true))], &set);
        assert_eq!(
            refused.expect_err("owned").to_string(),
            "Object ns/app is already owned by another ApplicationSet controller other"
        );
    }
}
