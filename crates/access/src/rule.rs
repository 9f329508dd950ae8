//! One rule of a role.

use serde_json::{Map, Value};

use crate::request::{Attributes, Request};

/// Stands for any verb, group, resource or path.
pub(crate) const ALL: &str = "*";

/// What a rule grants: some verbs on some resources, or on some paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) paths: Vec<String>,
}

/// The field a rule keeps its texts in.
const FIELDS: [&str; 5] = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];

// === impl Rule ===

impl Rule {
    /// As it stands in a role.
    pub fn read(rule: &Value) -> Rule {
        let [verbs, groups, resources, names, paths] = FIELDS.map(|field| texts(&rule[field]));
        Rule { verbs, groups, resources, names, paths }
    }

    /// The rules of a role, in order.
    pub fn all(role: &Value) -> Vec<Rule> {
        role["rules"].as_array().into_iter().flatten().map(Rule::read).collect()
    }

    /// As it would stand in a role.
    pub fn to_value(&self) -> Value {
        let parts = [&self.verbs, &self.groups, &self.resources, &self.names, &self.paths];
        let said = FIELDS.into_iter().zip(parts).filter(|(_, texts)| !texts.is_empty());
        let said: Map<String, Value> =
            said.map(|(field, texts)| (field.to_owned(), texts.clone().into())).collect();
        Value::Object(said)
    }

    /// Whether the rule is about paths, which only count where they are granted for the whole cluster.
    pub fn is_of_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(crate) fn allows(&self, request: &Request<'_>) -> bool {
        match request {
            Request::Path { verb, path } => {
                names(&self.verbs, verb) && self.paths.iter().any(|rule| covers_path(rule, path))
            }
            Request::Resource(asked) => {
                names(&self.verbs, asked.verb)
                    && names(&self.groups, asked.group)
                    && self.names_resource(asked)
                    && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
            }
        }
    }

    /// `*` is any resource with any subresource, `*/scale` that subresource of any resource.
    fn names_resource(&self, asked: &Attributes<'_>) -> bool {
        self.resources.iter().any(|resource| {
            if resource == ALL {
                return true;
            }
            match (resource.split_once('/'), asked.subresource) {
                (None, "") => resource == asked.resource,
                (Some((ALL, subresource)), of) => !of.is_empty() && subresource == of,
                (Some((resource, subresource)), of) => {
                    !of.is_empty() && resource == asked.resource && subresource == of
                }
                (None, _) => false,
            }
        })
    }
}

pub(crate) fn names(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == ALL || text == wanted)
}

/// A path is named as it is, or with everything that begins like it.
pub(crate) fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.strip_suffix('*').is_some_and(|begin| path.starts_with(begin.trim_end_matches('*')))
}

/// The texts of a list. What is no text says nothing.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
