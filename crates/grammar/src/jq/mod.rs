//! jq path expressions: which parts of a document an expression points at, and taking them out.
//!
//! This is the part of jq that points and selects (`.spec.sources[] | select(.name == "x").path`), written anew so that
//! every expression ends: there are no definitions, no variables and no loops but over what a document holds, and each
//! evaluation has a budget of steps. A construct outside of that part is refused when an expression is read.

mod evaluate;
mod parse;

use serde_json::Value;

use evaluate::Item;
use parse::Expression;

/// Longest expression that is read.
const LONGEST: usize = 4096;

/// An expression that points at parts of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct PathExpression {
    root: Expression,
}

/// One step on the way from a document to a part of it. Elements of a list are ordered as they stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// An element of a list.
    Element(usize),
    /// A field of an object.
    Field(String),
}

/// An expression that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("jq expression {text:?}, character {at}: {why}")]
pub struct SyntaxError {
    text: String,
    at: usize,
    why: String,
}

/// Why an expression cannot be applied to a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// The document does not have the shape the expression assumes.
    #[error("{0}")]
    Shape(String),
    /// The expression does not point at anything: it makes new values.
    #[error("the expression is no path: it makes a new value")]
    NoPath,
    /// It would take too long.
    #[error("the expression takes too many steps")]
    TooLong,
}

impl PathExpression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Syntax jq does not have, or the part of it that is not read here.
    pub fn parse(text: &str) -> Result<PathExpression, SyntaxError> {
        if text.len() > LONGEST {
            let why = format!("is longer than {LONGEST} bytes");
            return Err(SyntaxError { text: text.chars().take(40).collect(), at: 0, why });
        }
        parse::parse(text).map(|root| PathExpression { root }).map_err(|(at, why)| SyntaxError {
            text: text.to_owned(),
            at,
            why,
        })
    }

    /// Takes everything out of the document that the expression points at, as jq's `del` does.
    ///
    /// # Errors
    /// If the expression cannot be evaluated; then nothing is taken out.
    pub fn delete_from(&self, document: &mut Value) -> Result<(), EvaluationError> {
        let paths = self.paths(document)?;
        // Later elements of a list go first, so that the places of earlier ones stay what they are.
        for path in paths.iter().rev() {
            remove(document, path);
        }
        Ok(())
    }

    /// The paths the expression points at, in order and without repetition; not all need to lead anywhere.
    ///
    /// # Errors
    /// If the expression cannot be evaluated.
    pub fn paths(&self, document: &Value) -> Result<Vec<Vec<Step>>, EvaluationError> {
        let items = evaluate::evaluate(&self.root, Item::whole(document))?;
        let mut paths: Vec<Vec<Step>> = Vec::with_capacity(items.len());
        for item in items {
            paths.push(item.into_path().ok_or(EvaluationError::NoPath)?);
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// Takes what a path leads to out of a document; the empty path leaves `null`.
pub fn remove(document: &mut Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else {
        *document = Value::Null;
        return;
    };
    let mut place = document;
    for step in parents {
        let next = match (step, place) {
            (Step::Field(name), Value::Object(fields)) => fields.get_mut(name),
            (Step::Element(index), Value::Array(items)) => items.get_mut(*index),
            _ => None,
        };
        let Some(next) = next else { return };
        place = next;
    }
    match (last, place) {
        (Step::Field(name), Value::Object(fields)) => drop(fields.remove(name)),
        (Step::Element(index), Value::Array(items)) if *index < items.len() => drop(items.remove(*index)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "metadata": {"name": "a", "labels": {"x": "1", "y.z/w": "2"}},
            "spec": {
                "source": {"helm": {"parameters": [
                    {"name": "image", "value": "one"}, {"name": "tag", "value": "two"}, {"name": "image", "value": "three"},
                ]}},
                "numbers": [1, 2, 3, 4],
            },
        })
    }

    /// Each line was compared with gojq, which Argo CD uses.
    #[test]
    fn expressions_take_out_what_jq_takes_out() {
        for (expression, places) in [
            (".spec.source", vec!["/spec/source"]),
            (".spec[\"source\"]", vec!["/spec/source"]),
            (".spec.\"source\".helm", vec!["/spec/source/helm"]),
            (".metadata.labels[\"y.z/w\"]", vec!["/metadata/labels/y.z~1w"]),
            (".nothing.there", vec![]),
            (".spec.numbers[1]", vec!["/spec/numbers/1"]),
            (".spec.numbers[-1]", vec!["/spec/numbers/3"]),
            (".spec.numbers[1:3]", vec!["/spec/numbers/2", "/spec/numbers/1"]),
            (".spec.numbers[:-2]", vec!["/spec/numbers/1", "/spec/numbers/0"]),
            (".spec.numbers[] | select(. > 2)", vec!["/spec/numbers/3", "/spec/numbers/2"]),
            (
                ".spec.source.helm.parameters[] | select(.name == \"image\")",
                vec!["/spec/source/helm/parameters/2", "/spec/source/helm/parameters/0"],
            ),
            (
                ".spec.source.helm.parameters[] | select(.name == \"image\" and (.value | startswith(\"o\"))).value",
                vec!["/spec/source/helm/parameters/0/value"],
            ),
            (
                ".spec.source.helm.parameters[] | select(.name | test(\"^t.g$\")) | .value, .name",
                vec!["/spec/source/helm/parameters/1/value", "/spec/source/helm/parameters/1/name"],
            ),
            (
                ".spec.source.helm.parameters[1], .metadata.labels.x",
                vec!["/spec/source/helm/parameters/1", "/metadata/labels/x"],
            ),
            (
                ".. | .value?",
                vec![
                    "/spec/source/helm/parameters/0/value",
                    "/spec/source/helm/parameters/1/value",
                    "/spec/source/helm/parameters/2/value",
                ],
            ),
            (".metadata.name[]?", vec![]),
            (".metadata | .labels | select(has(\"x\") and (has(\"q\") | not))", vec!["/metadata/labels"]),
            (".metadata.labels[\"x\", \"q\"]", vec!["/metadata/labels/x"]),
            ("first(.spec.numbers[])", vec!["/spec/numbers/0"]),
            (".spec.numbers | last", vec!["/spec/numbers/3"]),
            ("empty", vec![]),
            (".spec.numbers[] | select(IN(2, 3))", vec!["/spec/numbers/2", "/spec/numbers/1"]),
            (".spec.numbers | select(length == 4) | .[0]", vec!["/spec/numbers/0"]),
            (".spec.numbers | select(any(. == 9) | not)", vec!["/spec/numbers"]),
            ("if .metadata.name == \"a\" then .spec else empty end", vec!["/spec"]),
            (".missing // .spec.numbers", vec!["/spec/numbers"]),
        ] {
            let mut expected = document();
            for place in &places {
                let (parent, last) = place.rsplit_once('/').expect("a pointer");
                let last = last.replace("~1", "/");
                match expected.pointer_mut(parent).expect("a place") {
                    Value::Object(fields) => drop(fields.remove(&last)),
                    Value::Array(items) => drop(items.remove(last.parse::<usize>().expect("a number"))),
                    other => panic!("{other} has no parts"),
                }
            }
            let mut found = document();
            let parsed = PathExpression::parse(expression).unwrap_or_else(|error| panic!("{error}"));
            parsed.delete_from(&mut found).unwrap_or_else(|error| panic!("{expression}: {error}"));
            assert_eq!(found, expected, "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_applied_leaves_the_document_alone() {
        for (expression, why) in [
            (".metadata.name.x", "cannot index a string with \"x\""),
            (".nothing[]", "cannot iterate over null"),
            (".metadata.name[0]", "cannot index a string with a number"),
            ("\"text\"", "the expression is no path: it makes a new value"),
            (".spec.numbers | length", "the expression is no path: it makes a new value"),
        ] {
            let mut found = document();
            let parsed = PathExpression::parse(expression).unwrap_or_else(|error| panic!("{error}"));
            let error = parsed.delete_from(&mut found).expect_err(expression);
            assert_eq!((error.to_string().as_str(), found), (why, document()), "{expression}");
        }
    }

    #[test]
    fn what_is_not_read_is_named() {
        for (expression, why) in [
            (".spec[", "jq expression \".spec[\", character 6: the expression ends too soon"),
            ("", "jq expression \"\", character 0: the expression ends too soon"),
            (".a | def f: 1; f", "jq expression \".a | def f: 1; f\", character 5: def is not supported"),
            (".a as $x | $x", "jq expression \".a as $x | $x\", character 6: variables are not supported"),
            (".a | nope", "jq expression \".a | nope\", character 5: nope/0 is not a known function"),
            (".a)", "jq expression \".a)\", character 2: unexpected \")\""),
            ("\"abc", "jq expression \"\\\"abc\", character 0: a string has no end"),
        ] {
            assert_eq!(PathExpression::parse(expression).expect_err(expression).to_string(), why);
        }
    }

    #[test]
    fn nesting_and_steps_are_bounded() {
        let deep = format!("{}.{}", "(".repeat(1000), ")".repeat(1000));
        assert!(
            PathExpression::parse(&deep).expect_err("too deep").to_string().contains("nested too deeply")
        );
        let wide = format!(".{}", "[0,0,0,0,0,0,0,0,0,0]".repeat(9));
        let mut document = json!(null);
        let parsed = PathExpression::parse(&wide).expect("an expression");
        assert_eq!(parsed.delete_from(&mut document), Err(EvaluationError::TooLong));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[.a\\[\\]()|,\"0-9: =<>!?/+*-]{0,40}|(\\.a|\\[\\]|\\[0\\]|\\|| select\\(|\\)|\\.\\.|\\?|==|1|\"x\"){0,12}") {
            if let Ok(expression) = PathExpression::parse(&text) {
                let _ = expression.delete_from(&mut json!({"a": [{"a": 1}, "x", null]}));
            }
        }
    }
}
