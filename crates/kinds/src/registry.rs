//! The built-in kinds by name: what discovery lists and what paths lead to.

mod table;

/// A built-in kind.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version within the group.
    pub version: &'static str,
    /// CamelCase name.
    pub kind: &'static str,
    /// Name in paths.
    pub plural: &'static str,
    /// Name for one object, as `kubectl` accepts it.
    pub singular: &'static str,
    /// Abbreviations `kubectl` accepts.
    pub short_names: &'static [&'static str],
    /// Groups of kinds such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What may be done to it.
    pub verbs: Verbs,
    /// What stands below an object's path.
    pub subresources: &'static [Subresource],
    resource: &'static str,
}

/// What may be done to objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbs {
    /// Every verb.
    All,
    /// Every verb but `deletecollection` (namespaces).
    NoDeleteCollection,
    /// Only `create`: the answer is computed, nothing is stored.
    CreateOnly,
}

impl Verbs {
    /// The names discovery lists, in its order.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Verbs::All => {
                &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            }
            Verbs::NoDeleteCollection => &["create", "delete", "get", "list", "patch", "update", "watch"],
            Verbs::CreateOnly => &["create"],
        }
    }
}

/// A path below an object's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `status`: the same object, of which only the status is written.
    Status,
    /// `scale`: an `autoscaling/v1 Scale` over three fields of the object.
    Scale {
        /// Path of the wanted count.
        spec: &'static str,
        /// Path of the observed count.
        status: &'static str,
        /// Path of the selector, as an object.
        selector: &'static str,
    },
    /// A path that takes or gives a kind of its own.
    Own {
        /// Last path segment.
        name: &'static str,
        /// Group of the kind that is sent.
        group: &'static str,
        /// Version of the kind that is sent.
        version: &'static str,
        /// The kind that is sent.
        kind: &'static str,
        /// What may be done.
        verbs: &'static [&'static str],
    },
}

impl Subresource {
    /// Last path segment.
    pub fn name(&self) -> &'static str {
        match self {
            Subresource::Status => "status",
            Subresource::Scale { .. } => "scale",
            Subresource::Own { name, .. } => name,
        }
    }

    /// The names discovery lists.
    pub fn verbs(&self) -> &'static [&'static str] {
        match self {
            Subresource::Status | Subresource::Scale { .. } => &["get", "patch", "update"],
            Subresource::Own { verbs, .. } => verbs,
        }
    }
}

/// Every built-in kind, in the order discovery lists groups and, within a group, resources.
pub fn all() -> &'static [Kind] {
    table::KINDS
}

/// The kind served under a group, version and plural.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
}

/// The kind with a group, version and CamelCase name.
pub fn find_kind(group: &str, version: &str, name: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.kind == name && kind.group == group && kind.version == version)
}

impl Kind {
    /// `group/version`, or only the version in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The name objects are stored under. `events.k8s.io` and core Events share one.
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// Whether `status` is written through its own path.
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }

    /// The name of the kind's OpenAPI definition, for example `io.k8s.api.apps.v1.Deployment`.
    pub fn definition(&self) -> String {
        definition_name(self.group, self.version, self.kind)
    }
}

/// The name of the OpenAPI definition of a kind in one of the groups served here.
pub(crate) fn definition_name(group: &str, version: &str, kind: &str) -> String {
    match group {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        group => {
            let short = group.split('.').next().unwrap_or(group);
            format!("io.k8s.api.{short}.{version}.{kind}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_lead_to_one_kind_each() {
        let mut seen = HashSet::new();
        for kind in all() {
            assert!(seen.insert((kind.group, kind.version, kind.plural)), "{kind:?}");
            let named = |found: &Kind| (found.group, found.version, found.kind, found.plural);
            let found = find(kind.group, kind.version, kind.plural).expect("listed");
            assert_eq!(named(found), named(kind));
            let found = find_kind(kind.group, kind.version, kind.kind).expect("listed");
            assert_eq!(named(found), named(kind));
        }
        assert!(find("apps", "v1", "pods").is_none());
    }

    #[test]
    fn storage_names_carry_the_group_except_for_core_and_shared_events() {
        for kind in all() {
            let expected = match kind.group {
                "" | "events.k8s.io" => kind.plural.to_owned(),
                group => format!("{}.{group}", kind.plural),
            };
            assert_eq!(kind.resource(), expected);
        }
    }

    #[test]
    fn api_versions_read_as_clients_write_them() {
        assert_eq!(find("", "v1", "pods").expect("pods").api_version(), "v1");
        assert_eq!(find("apps", "v1", "deployments").expect("deployments").api_version(), "apps/v1");
    }
}
