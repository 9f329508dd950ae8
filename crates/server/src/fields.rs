//! `?fields=`: which parts of an answer somebody wants.

use serde_json::{Map, Value};

use crate::error::Error;

/// Most paths of one request.
const MOST: usize = 100;

/// Which parts are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Fields {
    /// All.
    #[default]
    All,
    /// These only.
    Only(Node),
    /// All but these.
    Without(Node),
}

/// A tree of names; a leaf stands for everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Node {
    whole: bool,
    children: std::collections::BTreeMap<String, Node>,
}

// === impl Fields ===

impl Fields {
    /// Reads `a.b,c` or `-a.b,c`.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn read(text: &str) -> Result<Fields, Error> {
        let (without, list) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut root = Node::default();
        let paths = list.split(',').map(str::trim).filter(|path| !path.is_empty());
        for (count, path) in paths.enumerate() {
            if count == MOST {
                return Err(Error::invalid(format!("fields names more than {MOST} paths")));
            }
            let mut node = &mut root;
            for name in path.split('.') {
                node = node.children.entry(name.to_owned()).or_default();
            }
            node.whole = true;
        }
        Ok(match (root.children.is_empty(), without) {
            (true, _) => Fields::All,
            (false, true) => Fields::Without(root),
            (false, false) => Fields::Only(root),
        })
    }

    /// What is wanted of a value.
    pub(crate) fn of(&self, value: Value) -> Value {
        match self {
            Fields::All => value,
            Fields::Only(node) => node.only(value),
            Fields::Without(node) => node.without(value),
        }
    }
}

// === impl Node ===

impl Node {
    fn only(&self, value: Value) -> Value {
        if self.whole {
            return value;
        }
        match value {
            Value::Object(fields) => {
                let wanted = |(name, value): (String, Value)| {
                    let kept = self.children.get(&name)?.only(value);
                    Some((name, kept))
                };
                Value::Object(fields.into_iter().filter_map(wanted).collect::<Map<_, _>>())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.only(item)).collect()),
            // A path that goes on below a text leads nowhere.
            _ => Value::Null,
        }
    }

    fn without(&self, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = |(name, value): (String, Value)| match self.children.get(&name) {
                    Some(node) if node.whole => None,
                    Some(node) => Some((name, node.without(value))),
                    None => Some((name, value)),
                };
                Value::Object(fields.into_iter().filter_map(kept).collect::<Map<_, _>>())
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.without(item)).collect()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_holds_what_is_asked_for() {
        let answer = json!({"metadata": {"resourceVersion": "7"}, "items": [
            {"metadata": {"name": "a", "uid": "1"}, "spec": {"x": 1}, "status": {"resources": [1], "health": "ok"}},
        ]});
        for (fields, expected) in [
            ("", answer.clone()),
            (
                "items.metadata.name,items.spec",
                json!({"items": [{"metadata": {"name": "a"}, "spec": {"x": 1}}]}),
            ),
            ("items.metadata.name.deeper", json!({"items": [{"metadata": {"name": null}}]})),
            ("nothing", json!({})),
            (
                "-items.status.resources,items.metadata",
                json!({"metadata": {"resourceVersion": "7"},
                    "items": [{"spec": {"x": 1}, "status": {"health": "ok"}}]}),
            ),
        ] {
            assert_eq!(Fields::read(fields).expect("fields").of(answer.clone()), expected, "{fields}");
        }
        assert!(Fields::read(&vec!["a"; 101].join(",")).is_err());
    }
}
