//! All roles and bindings of a cluster, read once, and what follows from them.

use std::collections::BTreeMap;

use baton_grammar::labels::Selector;
use serde_json::Value;

use crate::binding::Binding;
use crate::request::{Caller, Request};
use crate::rule::Rule;
use crate::{GROUP, MASTERS};

/// The roles and bindings of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    roles: BTreeMap<RoleRef, Vec<Rule>>,
    /// Bindings by namespace; those of the whole cluster are under the empty one.
    bindings: BTreeMap<String, Vec<Binding>>,
}

/// Which role is meant. The namespace of a ClusterRole is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleRef {
    namespace: String,
    name: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes, and by what.
    Allowed(String),
    /// No. The text says which roles were bound and not found; it is mostly empty.
    Refused(String),
}

// === impl RoleRef ===

impl RoleRef {
    /// A reference out of a namespace, or out of none; `None` where it leads nowhere from there.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Option<RoleRef> {
        let namespace = match kind {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        Some(RoleRef { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Plural name of its kind.
    pub fn resource(&self) -> &'static str {
        if self.namespace.is_empty() { "clusterroles" } else { "roles" }
    }

    /// Its namespace; a ClusterRole has none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn told(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("ClusterRole {:?}", self.name),
            namespace => format!("Role {:?}", format!("{}/{namespace}", self.name)),
        }
    }

    fn missing(&self) -> String {
        let kind = if self.namespace.is_empty() { "clusterrole" } else { "role" };
        format!("{kind}.{GROUP} {:?} not found", self.name)
    }
}

// === impl Decision ===

impl Decision {
    /// Whether it is a yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allowed(_))
    }

    /// Why.
    pub fn reason(&self) -> &str {
        match self {
            Decision::Allowed(reason) | Decision::Refused(reason) => reason,
        }
    }
}

// === impl Policy ===

impl Policy {
    /// What these objects say; of another kind than the four they say nothing.
    pub fn read<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Policy {
        let mut policy = Policy::default();
        let (mut parts, mut wholes) = (Vec::new(), Vec::new());
        for object in objects {
            let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            match kind {
                "Role" | "ClusterRole" => {
                    let Some(role) = RoleRef::new(kind, meta("namespace"), meta("name")) else { continue };
                    if kind == "ClusterRole" {
                        parts.push((object, role.clone()));
                        if !object["aggregationRule"].is_null() {
                            wholes.push((object, role.clone()));
                        }
                    }
                    policy.roles.insert(role, Rule::all(object));
                }
                "RoleBinding" | "ClusterRoleBinding" => {
                    let namespace = if kind == "RoleBinding" { meta("namespace") } else { "" };
                    let Some(binding) = Binding::read(object, namespace) else { continue };
                    policy.bindings.entry(namespace.to_owned()).or_default().push(binding);
                }
                _ => {}
            }
        }
        policy.aggregate(&parts, wholes);
        policy
    }

    /// An aggregated role has the rules of all that its selectors choose, and none of its own. In a cluster a controller
    /// writes them down; here they follow from what is there. A role that is made of others adds what they wrote, not what
    /// they have become, so no chain is followed.
    fn aggregate(&mut self, parts: &[(&Value, RoleRef)], wholes: Vec<(&Value, RoleRef)>) {
        let own = self.roles.clone();
        for (whole, role) in wholes {
            let selectors = whole["aggregationRule"]["clusterRoleSelectors"].as_array();
            let selectors: Vec<Selector> =
                selectors.into_iter().flatten().filter_map(|one| Selector::from_object(one).ok()).collect();
            let chosen = parts.iter().filter(|(part, name)| {
                *name != role && selectors.iter().any(|selector| selector.matches_object(part))
            });
            let mut rules: Vec<Rule> = Vec::new();
            for rule in chosen.filter_map(|(_, name)| own.get(name)).flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
            self.roles.insert(role, rules);
        }
    }

    /// Whether the caller may do this, and why.
    pub fn decide(&self, caller: &Caller<'_>, request: &Request<'_>) -> Decision {
        if caller.groups.iter().any(|group| group == MASTERS) {
            return Decision::Allowed(String::new());
        }
        let namespace = match request {
            Request::Resource(asked) => asked.namespace,
            Request::Path { .. } => "",
        };
        let mut missing = Vec::new();
        for (place, binding, subject) in self.bound(caller, namespace) {
            let Some(rules) = self.roles.get(&binding.role) else {
                missing.push(binding.role.missing());
                continue;
            };
            if rules.iter().any(|rule| rule.allows(request)) {
                let by = match place {
                    "" => format!("ClusterRoleBinding {:?}", binding.name),
                    namespace => format!("RoleBinding {:?}", format!("{}/{namespace}", binding.name)),
                };
                let role = binding.role.told();
                return Decision::Allowed(format!("RBAC: allowed by {by} of {role} to {}", subject.told()));
            }
        }
        missing.sort();
        missing.dedup();
        Decision::Refused(match missing.as_slice() {
            [] => String::new(),
            [only] => format!("RBAC: {only}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        })
    }

    /// The rules the caller has in a namespace, those of the whole cluster among them; without a namespace only these.
    pub fn rules(&self, caller: &Caller<'_>, namespace: &str) -> Vec<&Rule> {
        let all = self.bound(caller, namespace);
        all.filter_map(|(place, binding, _)| Some((place, self.roles.get(&binding.role)?)))
            .flat_map(|(place, rules)| {
                rules.iter().filter(move |rule| place.is_empty() || !rule.is_of_paths())
            })
            .collect()
    }

    /// The rules of a role, if it is there.
    pub fn role(&self, role: &RoleRef) -> Option<&[Rule]> {
        self.roles.get(role).map(Vec::as_slice)
    }

    fn bound<'p>(
        &'p self,
        caller: &'p Caller<'p>,
        namespace: &str,
    ) -> impl Iterator<Item = (&'p str, &'p Binding, &'p crate::binding::Subject)> {
        let places = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        let found: Vec<_> =
            places.into_iter().filter_map(|place| self.bindings.get_key_value(place)).collect();
        found.into_iter().flat_map(move |(place, bindings)| {
            bindings
                .iter()
                .filter_map(move |binding| Some((place.as_str(), binding, binding.subject(caller)?)))
        })
    }
}
