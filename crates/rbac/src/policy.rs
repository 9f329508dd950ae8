//! The policy of the installation, as the ConfigMap `argocd-rbac-cm` holds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_grammar::yaml;
use serde_json::{Map, Value};

use crate::builtin;
use crate::finding::{Finding, shown};
use crate::line::{LineFault, Origin};
use crate::pattern::MatchMode;
use crate::rules::{BadPatterns, Bounds, Builder, MOST_ROLES, Rules};

/// Largest policy, in bytes. A ConfigMap holds less.
const LARGEST: usize = 2 << 20;

/// How much it may be besides.
const BOUNDS: Bounds = Bounds { lines: 20_000, expressions: 1_000_000 };

/// Most claims that groups are read from.
const MOST_SCOPES: usize = 20;

/// The key of the main policy.
const MAIN_KEY: &str = "policy.csv";

/// A compiled policy. It does not change: a new version of the ConfigMap makes a new one.
#[derive(Debug)]
pub struct Policy {
    pub(crate) rules: Rules,
    default_role: Option<Arc<str>>,
    scopes: Vec<String>,
    mode: MatchMode,
    denies: DenyScope,
    warnings: Vec<Finding>,
}

/// Whom a line that denies something holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DenyScope {
    /// Only for the subject it is found by: a right that another group, the default role or the person gives stays.
    /// Argo CD's way.
    #[default]
    Subject,
    /// For the caller, by whichever of their subjects it is found (`policy.strictDeny: "true"`).
    Caller,
}

/// Why a policy is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A line cannot be read.
    #[error("{origin}: {fault}, in {text}")]
    Line {
        /// Where it stands.
        origin: Origin,
        /// Its text, quoted.
        text: String,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// Too much text.
    #[error("the policy is larger than {most} bytes: give rights to roles instead of people")]
    Size {
        /// How large it may be.
        most: usize,
    },
    /// Too many lines.
    #[error("the policy has more than {most} lines: write patterns instead of names")]
    Lines {
        /// How many it may have.
        most: usize,
    },
    /// Somebody holds too many roles.
    #[error("{name} holds more than {MOST_ROLES} roles: join some of them")]
    Roles {
        /// Who.
        name: String,
    },
    /// Regular expressions that are too large together.
    #[error("the regular expressions of the policy take too much to compile: write shorter ones")]
    Expressions,
    /// `scopes` is no list of texts.
    #[error("scopes: {why}: write a list of claims, for example [groups, email]")]
    Scopes {
        /// What is wrong.
        why: String,
    },
    /// `policy.strictDeny` is another word.
    #[error("policy.strictDeny: {value} is neither true nor false")]
    StrictDeny {
        /// What it is.
        value: String,
    },
}

// === impl Policy ===

impl Policy {
    /// Reads the data of the ConfigMap: `policy.csv`, then every other `policy.*.csv` in the order of keys, after the
    /// built-in policy; `policy.default`, `policy.matchMode`, `policy.strictDeny` and `scopes`.
    ///
    /// # Errors
    /// One line that cannot be read, or anything beyond the bounds, refuses the whole.
    pub fn load(data: &BTreeMap<String, String>) -> Result<Policy, LoadError> {
        let text = |key: &str| data.get(key).map_or("", String::as_str);
        let denies = match text("policy.strictDeny").trim() {
            "" | "false" => DenyScope::Subject,
            "true" => DenyScope::Caller,
            other => return Err(LoadError::StrictDeny { value: shown(other) }),
        };
        let mode = if text("policy.matchMode") == "regex" { MatchMode::Regex } else { MatchMode::Glob };
        let parts: Vec<(&str, &str)> = policies(data).collect();
        if parts.iter().map(|(_, text)| text.len()).sum::<usize>() > LARGEST {
            return Err(LoadError::Size { most: LARGEST });
        }
        let mut builder = Builder::new(mode, bad_patterns(denies), BOUNDS, 0);
        builtin::add_to(&mut builder)?;
        for (key, text) in parts {
            let key: Arc<str> = key.into();
            for (at, line) in text.split('\n').enumerate() {
                builder.add(line, Origin::Config { key: key.clone(), line: at + 1 })?;
            }
        }
        let (rules, mut warnings) = builder.finish(None)?;
        let default_role = Some(text("policy.default")).filter(|role| !role.is_empty()).map(Arc::from);
        if let Some(role) = default_role.as_deref().filter(|role| !rules.knows(role)) {
            let message = format!("no line gives {} a right: correct the name or add one", shown(role));
            warnings.push(Finding::new("policy.default", message));
        }
        if !matches!(text("policy.matchMode"), "" | "glob" | "regex") {
            let message =
                format!("{} is taken for glob: write glob or regex", shown(text("policy.matchMode")));
            warnings.push(Finding::new("policy.matchMode", message));
        }
        Ok(Policy { rules, default_role, scopes: scopes(text("scopes"))?, mode, denies, warnings })
    }

    /// The policy of an empty ConfigMap, or of none.
    pub fn built_in() -> Policy {
        Policy::load(&BTreeMap::new())
            .expect("the built-in policy is within the bounds, and nothing else is read")
    }

    /// The role that everybody has.
    pub fn default_role(&self) -> Option<&Arc<str>> {
        self.default_role.as_ref()
    }

    /// The claims whose values are groups.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// How patterns are read.
    pub fn match_mode(&self) -> MatchMode {
        self.mode
    }

    /// Whom a deny holds for.
    pub fn deny_scope(&self) -> DenyScope {
        self.denies
    }

    /// Lines and settings that do not do what they seem to. They are no error, for Argo CD takes them.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// The groups that claims name: texts and lists of texts under the scopes. Other values are passed over.
    pub fn groups(&self, claims: &Map<String, Value>) -> Vec<Arc<str>> {
        let values = self.scopes.iter().filter_map(|scope| claims.get(scope));
        let texts = values.flat_map(|value| match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            value => Vec::from_iter(value.as_str()),
        });
        texts.map(Arc::from).collect()
    }

    pub(crate) fn bad_patterns(&self) -> BadPatterns {
        bad_patterns(self.denies)
    }
}

/// A deny that can never match would be no deny at all.
fn bad_patterns(denies: DenyScope) -> BadPatterns {
    match denies {
        DenyScope::Subject => BadPatterns::Tolerated,
        DenyScope::Caller => BadPatterns::Refused,
    }
}

/// The keys that hold policies, and their texts.
fn policies(data: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    let is_other = |key: &str| key.starts_with("policy.") && key.ends_with(".csv") && key != MAIN_KEY;
    let main = data.get_key_value(MAIN_KEY).into_iter();
    let others = data.iter().filter(move |(key, _)| is_other(key));
    main.chain(others).map(|(key, text)| (key.as_str(), text.as_str()))
}

fn scopes(text: &str) -> Result<Vec<String>, LoadError> {
    let fault = |why: String| LoadError::Scopes { why };
    match yaml::first(text).map_err(|error| fault(error.to_string()))? {
        Value::Null => Ok(vec!["groups".to_owned()]),
        Value::Array(values) if values.len() > MOST_SCOPES => {
            Err(fault(format!("{} claims are more than {MOST_SCOPES}", values.len())))
        }
        Value::Array(values) => values
            .into_iter()
            .map(|value| match value {
                Value::String(scope) => Ok(scope),
                other => Err(fault(format!("{} is no text", kind_of(&other)))),
            })
            .collect(),
        other => Err(fault(format!("{} is no list", kind_of(&other)))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
