//! Differences that do not count.

use std::sync::Arc;

use baton_api::application::ResourceIgnoreDifferences;
use baton_api::object::Object;
use baton_grammar::globs::gobwas::Pattern;
use baton_grammar::jq::{PathExpression, Step, SyntaxError, remove};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::system::{StatusField, SystemRules};

/// Which differences of which objects do not count: those of one Application together with those of the installation.
///
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct Rules {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rules: Vec<Rule>,
    system: SystemRules,
    digest: [u8; 32],
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A jq expression cannot be read.
    #[error("{place}.jqPathExpressions: {why}")]
    Expression {
        /// Where the rule is written.
        place: String,
        /// What is wrong with it.
        #[source]
        why: SyntaxError,
    },
    /// A group or kind is no pattern.
    #[error("{place}: {why}")]
    Pattern {
        /// Where the rule is written.
        place: String,
        /// What is wrong with it.
        #[source]
        why: baton_grammar::globs::Error,
    },
    /// A setting cannot be read.
    #[error("{key} of the ConfigMap argocd-cm: {why}")]
    Setting {
        /// Key of the ConfigMap.
        key: String,
        /// What is wrong with its value.
        why: String,
    },
}

/// One rule, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    group: Pattern,
    kind: Pattern,
    /// Empty is any.
    name: String,
    /// Empty is any.
    namespace: String,
    pointers: Vec<Vec<String>>,
    expressions: Vec<PathExpression>,
    pub(crate) managers: Vec<String>,
}

/// The rules that concern one object.
#[derive(Debug)]
pub(crate) struct Concerning<'r> {
    rules: Vec<&'r Rule>,
    aggregated: bool,
    status: bool,
}

// === impl Rules ===

impl Rules {
    /// Reads the rules of an Application, to be used together with those of the installation.
    ///
    /// # Errors
    /// A pattern or a jq expression that cannot be read.
    pub fn compile(rules: &[ResourceIgnoreDifferences], system: &SystemRules) -> Result<Rules, RuleError> {
        let place = |index| format!("spec.ignoreDifferences[{index}]");
        let compiled = rules.iter().enumerate().map(|(index, rule)| Rule::compile(rule, &place(index)));
        let rules_read = compiled.collect::<Result<_, _>>()?;
        let mut hash = Sha256::new();
        system.hash_into(&mut hash);
        hash.update(serde_json::to_vec(rules).unwrap_or_default());
        let digest = hash.finalize().into();
        Ok(Rules { inner: Arc::new(Inner { rules: rules_read, system: system.clone(), digest }) })
    }

    /// Equal for rules that are written the same.
    pub fn digest(&self) -> [u8; 32] {
        self.inner.digest
    }

    pub(crate) fn system(&self) -> &SystemRules {
        &self.inner.system
    }

    /// The rules that concern an object.
    pub(crate) fn concerning(&self, object: &Value) -> Concerning<'_> {
        let system = self.system();
        let all = system.rules.iter().chain(&self.inner.rules);
        let is_definition =
            object.group() == "apiextensions.k8s.io" && object.kind() == "CustomResourceDefinition";
        Concerning {
            rules: all.filter(|rule| rule.concerns(object)).collect(),
            aggregated: system.ignore_aggregated_roles
                && object.group() == "rbac.authorization.k8s.io"
                && object.kind() == "ClusterRole",
            status: match system.status_field {
                StatusField::All => true,
                StatusField::Definitions => is_definition,
                StatusField::None => false,
            },
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::compile(&[], &SystemRules::default()).expect("no rules, none of which can be wrong")
    }
}

// === impl Rule ===

impl Rule {
    pub(crate) fn compile(rule: &ResourceIgnoreDifferences, place: &str) -> Result<Rule, RuleError> {
        let pattern = |text: &str| {
            Pattern::new(text, &[]).map_err(|why| RuleError::Pattern { place: place.to_owned(), why })
        };
        let expressions = rule.jq_path_expressions.iter().map(|text| PathExpression::parse(text));
        Ok(Rule {
            group: pattern(&rule.group)?,
            kind: pattern(&rule.kind)?,
            name: rule.name.clone(),
            namespace: rule.namespace.clone(),
            pointers: rule.json_pointers.iter().filter_map(|pointer| read_pointer(pointer)).collect(),
            expressions: expressions
                .collect::<Result<_, _>>()
                .map_err(|why| RuleError::Expression { place: place.to_owned(), why })?,
            managers: rule.managed_fields_managers.clone(),
        })
    }

    fn concerns(&self, object: &Value) -> bool {
        let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        self.kind.matches(object.kind())
            && self.group.matches(object.group())
            && fits(&self.name, object.name())
            && fits(&self.namespace, object.namespace())
    }
}

/// A pointer without a leading slash points at nothing.
fn read_pointer(pointer: &str) -> Option<Vec<String>> {
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    pointer.strip_prefix('/').map(|rest| rest.split('/').map(unescaped).collect())
}

// === impl Concerning ===

impl Concerning<'_> {
    /// Takes everything out of an object that does not count. An expression that does not fit the object is passed over,
    /// as jq's errors are in Argo CD.
    pub(crate) fn remove_from(&self, object: &mut Value) {
        let mut pointers = self.status_pointer();
        if self.aggregated && object.get("aggregationRule").is_some() {
            pointers.push(vec!["rules".to_owned()]);
        }
        for pointer in &pointers {
            take_out(object, pointer);
        }
        for rule in &self.rules {
            for pointer in &rule.pointers {
                take_out(object, pointer);
            }
            for expression in &rule.expressions {
                // The object stays as it is where this fails.
                let _ = expression.delete_from(object);
            }
        }
    }

    /// Paths in an object that do not count, except for its status, which is never written.
    pub(crate) fn paths(&self, object: &Value) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        if self.aggregated && object.get("aggregationRule").is_some() {
            paths.push(vec![Step::Field("rules".to_owned())]);
        }
        for rule in &self.rules {
            paths.extend(rule.pointers.iter().filter_map(|pointer| steps(object, pointer)));
            for expression in &rule.expressions {
                paths.extend(expression.paths(object).unwrap_or_default());
            }
        }
        paths.retain(|path| !path.is_empty() && path[0] != Step::Field("status".to_owned()));
        paths.sort();
        paths.dedup();
        paths
    }

    /// Fields that do not count whatever the object holds: those that pointers lead to without passing a list.
    pub(crate) fn plain_pointers(&self) -> Vec<Vec<String>> {
        let pointers = self.rules.iter().flat_map(|rule| rule.pointers.iter().cloned());
        let plain = pointers.filter(|pointer| pointer.iter().all(|part| part.parse::<usize>().is_err()));
        self.status_pointer().into_iter().chain(plain).collect()
    }

    /// Field managers whose changes do not count.
    pub(crate) fn trusts(&self, manager: &str) -> bool {
        self.rules.iter().any(|rule| rule.managers.iter().any(|trusted| trusted == manager))
    }

    fn status_pointer(&self) -> Vec<Vec<String>> {
        if self.status { vec![vec!["status".to_owned()]] } else { Vec::new() }
    }
}

fn take_out(object: &mut Value, pointer: &[String]) {
    if let Some(path) = steps(object, pointer) {
        remove(object, &path);
    }
}

/// A pointer as steps; `None` where it leads nowhere.
fn steps(object: &Value, pointer: &[String]) -> Option<Vec<Step>> {
    let mut place = object;
    let mut path = Vec::with_capacity(pointer.len());
    for part in pointer {
        match place {
            Value::Object(fields) => {
                place = fields.get(part)?;
                path.push(Step::Field(part.clone()));
            }
            Value::Array(items) => {
                let index = part.parse().ok()?;
                place = items.get(index)?;
                path.push(Step::Element(index));
            }
            _ => return None,
        }
    }
    Some(path)
}
