//! The JSONPath dialect of kubectl and of CRD printer columns: `.spec.a`, `.a['b.c']`, `.a[0]`, `.a[-1:]`, `.a[*]`,
//! `.*`, `..name`, `.a[?(@.type=="Ready")].status`, with or without enclosing braces and `$`.

use serde_json::Value;

/// A compiled path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Every,
    Deep(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Filter { path: Vec<Step>, test: Option<(Comparison, Value)> },
    Union(Vec<Step>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A path that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON path {path:?}: {problem} at byte {at}")]
pub struct PathError {
    /// The whole path.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// Where.
    pub at: usize,
}

/// Longest path that is read, in bytes.
const LONGEST: usize = 4096;

/// How deep `..name` looks.
const DEEPEST: usize = 128;

impl Path {
    /// Compiles a path.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let mut parser = Parser { text, at: 0 };
        if text.len() > LONGEST {
            return Err(parser.error("path is too long"));
        }
        let braced = parser.eat("{");
        parser.eat("$");
        let steps = parser.steps(0)?;
        if braced && !parser.eat("}") {
            return Err(parser.error("unclosed action"));
        }
        if parser.at < text.len() {
            return Err(parser.error("unexpected character"));
        }
        Ok(Path { steps })
    }

    /// Every value the path leads to, in document order.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        walk(&self.steps, root)
    }

    /// The field names, if the path is nothing but field names.
    pub fn plain_fields(&self) -> Option<Vec<&str>> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                _ => None,
            })
            .collect()
    }
}

fn walk<'a>(steps: &[Step], root: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            follow(step, value, &mut next);
        }
        found = next;
    }
    found
}

fn follow<'a>(step: &Step, value: &'a Value, out: &mut Vec<&'a Value>) {
    match step {
        Step::Field(name) => out.extend(value.get(name)),
        Step::Every => out.extend(children(value)),
        Step::Deep(name) => deep(name, value, 0, out),
        Step::Index(index) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            out.extend(position(*index, items.len()).and_then(|at| items.get(at)));
        }
        Step::Slice(from, to) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let bound = |edge: &Option<i64>, default: usize| match edge {
                None => default,
                Some(edge) if *edge < 0 => items.len().saturating_sub(edge.unsigned_abs() as usize),
                Some(edge) => (*edge as usize).min(items.len()),
            };
            let (from, to) = (bound(from, 0), bound(to, items.len()));
            out.extend(items.get(from..to).unwrap_or_default());
        }
        Step::Filter { path, test } => out.extend(children(value).filter(|item| {
            let found = walk(path, item);
            match test {
                None => !found.is_empty(),
                Some((comparison, wanted)) => found.iter().any(|value| compare(value, *comparison, wanted)),
            }
        })),
        Step::Union(steps) => steps.iter().for_each(|step| follow(step, value, out)),
    }
}

fn children<'a>(value: &'a Value) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn deep<'a>(name: &str, value: &'a Value, depth: usize, out: &mut Vec<&'a Value>) {
    if depth > DEEPEST {
        return;
    }
    out.extend(value.get(name));
    for child in children(value) {
        deep(name, child, depth + 1, out);
    }
}

fn position(index: i64, length: usize) -> Option<usize> {
    if index >= 0 { Some(index as usize) } else { length.checked_sub(index.unsigned_abs() as usize) }
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> bool {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) if a == b => Some(Ordering::Equal),
        _ => return comparison == Comparison::NotEqual,
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn steps(&mut self, depth: usize) -> Result<Vec<Step>, PathError> {
        if depth > 8 {
            return Err(self.error("filters are nested too deeply"));
        }
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                let name = self.name()?;
                steps.push(Step::Deep(name));
            } else if self.eat(".") {
                if self.eat("*") {
                    steps.push(Step::Every);
                } else if self.rest().starts_with('[')
                    || self.rest().is_empty()
                    || self.rest().starts_with('}')
                {
                    // `.` alone is the root, `.[0]` indexes it.
                } else {
                    steps.push(Step::Field(self.name()?));
                }
            } else if self.eat("[") {
                steps.push(self.bracket(depth)?);
            } else if steps.is_empty() && self.rest().starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                steps.push(Step::Field(self.name()?));
            } else {
                return Ok(steps);
            }
        }
    }

    fn bracket(&mut self, depth: usize) -> Result<Step, PathError> {
        self.blanks();
        if self.eat("?(") {
            return self.filter(depth);
        }
        let mut parts = Vec::new();
        loop {
            self.blanks();
            parts.push(self.subscript()?);
            self.blanks();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(self.error("unterminated array"));
            }
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Step::Union(parts) })
    }

    fn subscript(&mut self) -> Result<Step, PathError> {
        if self.eat("*") {
            return Ok(Step::Every);
        }
        if self.rest().starts_with(['\'', '"']) {
            return Ok(Step::Field(self.quoted()?));
        }
        let from = self.integer();
        if self.eat(":") {
            return Ok(Step::Slice(from, self.integer()));
        }
        from.map(Step::Index).ok_or_else(|| self.error("invalid array index"))
    }

    fn filter(&mut self, depth: usize) -> Result<Step, PathError> {
        self.blanks();
        if !self.eat("@") {
            return Err(self.error("a filter must start with @"));
        }
        let path = self.steps(depth + 1)?;
        self.blanks();
        const OPERATORS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let operator = OPERATORS.into_iter().find(|(sign, _)| self.eat(sign));
        let test = match operator {
            None => None,
            Some((_, comparison)) => {
                self.blanks();
                Some((comparison, self.literal()?))
            }
        };
        self.blanks();
        if !self.eat(")") {
            return Err(self.error("unterminated filter"));
        }
        self.blanks();
        if !self.eat("]") {
            return Err(self.error("unterminated array"));
        }
        Ok(Step::Filter { path, test })
    }

    fn literal(&mut self) -> Result<Value, PathError> {
        if self.rest().starts_with(['\'', '"']) {
            return Ok(Value::String(self.quoted()?));
        }
        let end = self.rest().find([')', ' ']).unwrap_or(self.rest().len());
        let word = &self.rest()[..end];
        let value = serde_json::from_str(word).map_err(|_| self.error("unrecognised value"))?;
        self.at += end;
        Ok(value)
    }

    fn quoted(&mut self) -> Result<String, PathError> {
        let quote = self.rest().chars().next().unwrap_or('"');
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => out.extend(chars.next().map(|(_, escaped)| escaped)),
                c if c == quote => {
                    self.at += at + c.len_utf8();
                    return Ok(out);
                }
                c => out.push(c),
            }
        }
        Err(self.error("unterminated quoted string"))
    }

    /// A field name after a dot; `\.` stands for a dot inside it.
    fn name(&mut self) -> Result<String, PathError> {
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        let mut end = self.rest().len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => out.extend(chars.next().map(|(_, escaped)| escaped)),
                '.' | '[' | ']' | '{' | '}' | '(' | ')' | '=' | '!' | '<' | '>' | ' ' | ',' | '@' | '$'
                | '*' => {
                    end = at;
                    break;
                }
                c => out.push(c),
            }
        }
        self.at += end;
        if out.is_empty() { Err(self.error("expected a field name")) } else { Ok(out) }
    }

    fn integer(&mut self) -> Option<i64> {
        let rest = self.rest();
        let end = rest
            .char_indices()
            .find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')))
            .map_or(rest.len(), |(at, _)| at);
        let number = rest[..end].parse().ok()?;
        self.at += end;
        Some(number)
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, problem: &str) -> PathError {
        PathError { path: self.text.chars().take(120).collect(), problem: problem.to_owned(), at: self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn paths_find_what_kubectl_finds() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
            "spec": {"list": [1, 2, 3], "replicas": 3},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "Synced", "status": "False"},
            ]},
        });
        for (path, expected) in [
            (".metadata.name", json!(["a"])),
            ("{.metadata.name}", json!(["a"])),
            ("{$.metadata.name}", json!(["a"])),
            ("metadata.name", json!(["a"])),
            (".metadata.labels['app.kubernetes.io/name']", json!(["x"])),
            (".metadata.labels.app\\.kubernetes\\.io/name", json!(["x"])),
            (".spec.list[0]", json!([1])),
            (".spec.list[-1]", json!([3])),
            (".spec.list[-1:]", json!([3])),
            (".spec.list[0:2]", json!([1, 2])),
            (".spec.list[*]", json!([1, 2, 3])),
            (".spec.list[0,2]", json!([1, 3])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
            (".status.conditions[*].type", json!(["Ready", "Synced"])),
            ("..status", json!([object["status"], "True", "False"])),
            (".missing.name", json!([])),
            (".spec.list[7]", json!([])),
        ] {
            let found = Path::parse(path).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(json!(found.find(&object)), expected, "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_refused_with_a_place() {
        for path in ["{.a", ".a[", ".a[?(@.b==", ".a[?(b)]", ".a['b", ".a[x]", ".a..", ".a b"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(text in "[.\\[\\]{}()?@='\"a-c0-9:*,$ \\\\-]{0,40}") {
            if let Ok(path) = Path::parse(&text) {
                path.find(&json!({"a": [{"b": 1}, {"c": {"a": [1, 2]}}]}));
            }
        }
    }
}
