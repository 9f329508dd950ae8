//! Label selectors, in the text form of `?labelSelector=` and the object form of `spec.selector`.
//!
//! Key and value *syntax* (lengths, characters) is the caller's business: the API server checks it, a generator's
//! post-selector does not.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A conjunction of requirements; the empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// All must hold.
    pub requirements: Vec<Requirement>,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The label's name.
    pub key: String,
    /// What is asked of it.
    pub test: Test,
}

/// What a requirement asks of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// Present, with this value.
    Equals(String),
    /// Absent, or with another value.
    NotEquals(String),
    /// Present, with one of these values.
    In(BTreeSet<String>),
    /// Absent, or with none of these values.
    NotIn(BTreeSet<String>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Present and a whole number greater than this.
    GreaterThan(i64),
    /// Present and a whole number less than this.
    LessThan(i64),
}

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text form is malformed.
    #[error("unable to parse requirement: {0}")]
    Syntax(String),
    /// An operator that does not exist.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// `In` and `NotIn` need values, `Exists` and `DoesNotExist` take none.
    #[error("values: Invalid value: for 'in', 'notin' operators, values set can't be empty")]
    EmptyValues,
    /// See [`SelectorError::EmptyValues`].
    #[error("values set must be empty for exists and does not exist")]
    UnexpectedValues,
}

impl Selector {
    /// Whether the labels that `lookup` finds satisfy every requirement.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(lookup(&requirement.key)))
    }

    /// Whether an object's `metadata.labels` satisfy the selector.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.matches(|key| labels.and_then(|all| all.get(key)).and_then(Value::as_str))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Reads the text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        Parser { tokens: tokens(text), at: 0 }.selector()
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`); `null` matches everything.
    pub fn from_object(selector: &Value) -> Result<Selector, SelectorError> {
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(Requirement { key: key.clone(), test: Test::Equals(value) });
            }
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let values: BTreeSet<String> = expression
                .get("values")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|value| value.as_str().map(str::to_owned))
                .collect();
            let test = Test::new(text("operator"), values)?;
            requirements.push(Requirement { key: text("key").to_owned(), test });
        }
        Ok(Selector { requirements })
    }
}

/// The text form, by key, as Kubernetes prints it: what [`Selector::parse`] reads.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut requirements: Vec<&Requirement> = self.requirements.iter().collect();
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        for (place, requirement) in requirements.into_iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let joined =
            |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match &self.test {
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", joined(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", joined(values)),
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

impl Test {
    /// A test from the operator names of `matchExpressions`.
    pub fn new(operator: &str, values: BTreeSet<String>) -> Result<Test, SelectorError> {
        match operator {
            "In" | "NotIn" if values.is_empty() => Err(SelectorError::EmptyValues),
            "Exists" | "DoesNotExist" if !values.is_empty() => Err(SelectorError::UnexpectedValues),
            "In" => Ok(Test::In(values)),
            "NotIn" => Ok(Test::NotIn(values)),
            "Exists" => Ok(Test::Exists),
            "DoesNotExist" => Ok(Test::DoesNotExist),
            other => Err(SelectorError::Operator(other.to_owned())),
        }
    }

    /// Whether a label with this value (or no label) passes.
    pub fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match self {
            Test::Equals(wanted) => value == Some(wanted.as_str()),
            Test::NotEquals(unwanted) => value != Some(unwanted.as_str()),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
}

fn tokens(text: &str) -> Vec<Token> {
    const SIGNS: [&str; 9] = ["!=", "==", "=", "!", ",", "(", ")", ">", "<"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = rest[sign.len()..].trim_start();
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || "!=,()><".contains(c)).unwrap_or(rest.len());
        tokens.push(Token::Word(rest[..end].to_owned()));
        rest = rest[end..].trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn selector(mut self) -> Result<Selector, SelectorError> {
        let mut requirements = Vec::new();
        if self.tokens.is_empty() {
            return Ok(Selector::default());
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                None => return Ok(Selector { requirements }),
                Some(Token::Sign(",")) => {}
                Some(other) => return Err(unexpected(Some(other), "',' or end of string")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Some(&Token::Sign("!")) {
            self.at += 1;
            return Ok(Requirement { key: self.word("identifier")?, test: Test::DoesNotExist });
        }
        let key = self.word("identifier")?;
        let test = match self.peek() {
            None | Some(Token::Sign(",")) => Test::Exists,
            Some(Token::Sign("=" | "==")) => {
                self.at += 1;
                Test::Equals(self.value()?)
            }
            Some(Token::Sign("!=")) => {
                self.at += 1;
                Test::NotEquals(self.value()?)
            }
            Some(Token::Sign(">")) => {
                self.at += 1;
                Test::GreaterThan(self.number()?)
            }
            Some(Token::Sign("<")) => {
                self.at += 1;
                Test::LessThan(self.number()?)
            }
            Some(Token::Word(word)) if word == "in" => {
                self.at += 1;
                Test::In(self.values()?)
            }
            Some(Token::Word(word)) if word == "notin" => {
                self.at += 1;
                Test::NotIn(self.values()?)
            }
            other => {
                return Err(unexpected(other.cloned(), "in, notin, =, ==, !=, gt, lt"));
            }
        };
        Ok(Requirement { key, test })
    }

    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        match self.next() {
            Some(Token::Sign("(")) => {}
            other => return Err(unexpected(other, "'('")),
        }
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value()?);
            match self.next() {
                Some(Token::Sign(",")) => {}
                Some(Token::Sign(")")) => return Ok(values),
                other => return Err(unexpected(other, "',' or ')'")),
            }
        }
    }

    /// A value may be empty: `a=`, `a in (,b)`.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            None | Some(Token::Sign("," | ")")) => Ok(String::new()),
            _ => self.word("identifier"),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let word = self.word("number")?;
        word.parse().map_err(|_| {
            SelectorError::Syntax(format!(
                "for 'Gt', 'Lt' operators, the value must be an integer, got {word:?}"
            ))
        })
    }

    fn word(&mut self, wanted: &str) -> Result<String, SelectorError> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            other => Err(unexpected(other, wanted)),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }
}

fn unexpected(found: Option<Token>, wanted: &str) -> SelectorError {
    let found = match found {
        None => String::new(),
        Some(Token::Word(word)) => word,
        Some(Token::Sign(sign)) => sign.to_owned(),
    };
    SelectorError::Syntax(format!("found '{found}', expected: {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn picks(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector = Selector::parse(selector).expect("the table holds valid selectors");
        selector.matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value))
    }

    #[test]
    fn text_selectors_match_as_kubernetes_matches() {
        let labels = [("env", "prod"), ("tier", "1"), ("empty", "")];
        for (selector, expected) in [
            ("", true),
            ("env", true),
            ("!env", false),
            ("env=prod", true),
            ("env==prod,tier=1", true),
            ("env!=prod", false),
            ("missing!=prod", true),
            ("env in (dev, prod)", true),
            ("env notin (dev,prod)", false),
            ("missing notin (a)", true),
            ("tier>0,tier<2", true),
            ("tier>1", false),
            ("env>1", false),
            ("empty=", true),
            ("empty in (,x)", true),
            ("example.com/key=x", false),
            (" env = prod , tier in ( 1 ) ", true),
        ] {
            assert_eq!(picks(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn selectors_print_in_the_order_of_their_keys_and_read_back() {
        let text = "a=1,b!=2,c in (x),d notin (y,z),e,!f,g>1,h<2";
        let selector = Selector::parse(text).expect("valid");
        assert_eq!(selector.to_string(), text);
        let backwards: Vec<Requirement> = selector.requirements.into_iter().rev().collect();
        assert_eq!(Selector { requirements: backwards }.to_string(), text);
        assert_eq!(Selector::default().to_string(), "");
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in
            ["=", "a in", "a in (", "a in (b", "a b", "a,,b", ",", "a>x", "!", "a=b=c", "a in b", "(a)"]
        {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn object_selectors_join_labels_and_expressions() {
        let selector = Selector::from_object(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}],
        }))
        .expect("valid");
        assert!(selector.matches_object(&json!({"metadata": {"labels": {"app": "web"}}})));
        assert!(!selector.matches_object(&json!({"metadata": {"labels": {"app": "web", "env": "dev"}}})));
        assert!(!selector.matches_object(&json!({"metadata": {}})));
        for (operator, values) in [("In", json!([])), ("Exists", json!(["x"])), ("Near", json!(["x"]))] {
            let object = json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
            assert!(Selector::from_object(&object).is_err(), "{operator}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = Selector::parse(&text);
        }
    }
}
