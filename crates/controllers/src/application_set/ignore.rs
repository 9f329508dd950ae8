//! Fields of Applications that a set is told to leave alone.

use baton_api::application_set::IgnoreApplicationDifferences;
use baton_grammar::jq::{PathExpression, SyntaxError};
use serde_json::{Value, json};

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.ignoreApplicationDifferences[{index}].jqPathExpressions: {why}")]
pub struct IgnoreError {
    index: usize,
    #[source]
    why: SyntaxError,
}

/// Which fields are left alone in which Applications.
#[derive(Debug, Default)]
pub struct IgnoreRules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    /// Name of the Application; empty is every one.
    name: String,
    pointers: Vec<Vec<String>>,
    expressions: Vec<PathExpression>,
}

impl IgnoreRules {
    /// Reads the rules of a set.
    ///
    /// # Errors
    /// A jq expression that cannot be read.
    pub fn read(rules: &[IgnoreApplicationDifferences]) -> Result<IgnoreRules, IgnoreError> {
        let rules = rules.iter().enumerate().map(|(index, rule)| read(index, rule));
        Ok(IgnoreRules { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule takes the switch of automatic sync out of sight.
    pub(crate) fn cover_automation(&self) -> bool {
        let automated = json!({"enabled": false, "prune": true, "selfHeal": true, "allowEmpty": true});
        self.rules.iter().any(|rule| {
            let mut sample = json!({"spec": {"syncPolicy": {"automated": automated}}});
            self.apply_if(&mut sample, |one| std::ptr::eq(one, rule), "");
            sample.pointer("/spec/syncPolicy/automated/enabled").is_none()
        })
    }

    /// Removes the fields from an Application of this name. What is not there, and an expression that does not fit
    /// this Application, is passed over.
    pub fn apply(&self, name: &str, application: &mut Value) {
        self.apply_if(application, |rule| rule.name.is_empty() || rule.name == name, name);
    }

    fn apply_if(&self, application: &mut Value, counts: impl Fn(&Rule) -> bool, name: &str) {
        for rule in self.rules.iter().filter(|rule| counts(rule)) {
            rule.pointers.iter().for_each(|pointer| remove(application, pointer));
            for expression in &rule.expressions {
                if let Err(error) = expression.delete_from(application) {
                    tracing::debug!(application = name, %error, "a difference could not be ignored");
                }
            }
        }
    }
}

fn read(index: usize, rule: &IgnoreApplicationDifferences) -> Result<Rule, IgnoreError> {
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    // A pointer without a slash points at nothing.
    let pointers = rule.json_pointers.iter().filter_map(|pointer| pointer.strip_prefix('/'));
    let expressions = rule.jq_path_expressions.iter().map(|text| PathExpression::parse(text));
    Ok(Rule {
        name: rule.name.clone(),
        pointers: pointers.map(|pointer| pointer.split('/').map(unescaped).collect()).collect(),
        expressions: expressions.collect::<Result<_, _>>().map_err(|why| IgnoreError { index, why })?,
    })
}

/// Removes what a path leads to, if it leads anywhere.
fn remove(value: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = value;
    for part in parents {
        let next = match place {
            Value::Object(fields) => fields.get_mut(part),
            Value::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        place = next;
    }
    match place {
        Value::Object(fields) => drop(fields.remove(last)),
        Value::Array(items) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}
