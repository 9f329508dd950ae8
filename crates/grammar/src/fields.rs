//! Field selectors: `metadata.name=a,status.phase!=Running`.

/// A conjunction of equality tests on field paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// All must hold.
    pub terms: Vec<Term>,
}

/// One equality test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// Dotted path of the field.
    pub path: String,
    /// The value compared with; an absent field reads as empty.
    pub value: String,
    /// Whether the two must be equal, or must differ.
    pub equal: bool,
}

/// A field selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector: '{selector}'; can't understand '{term}'")]
pub struct FieldSelectorError {
    /// The whole text.
    pub selector: String,
    /// The part that has no operator.
    pub term: String,
}

impl FieldSelector {
    /// Reads the text form. `\,`, `\=` and `\\` stand for themselves inside a value.
    pub fn parse(text: &str) -> Result<FieldSelector, FieldSelectorError> {
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let bad = || FieldSelectorError { selector: text.to_owned(), term: term.to_owned() };
            let at = term.find(['=', '!']).ok_or_else(bad)?;
            let (path, rest) = term.split_at(at);
            let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
                (false, value)
            } else if let Some(value) = rest.strip_prefix("==") {
                (true, value)
            } else if let Some(value) = rest.strip_prefix('=') {
                (true, value)
            } else {
                return Err(bad());
            };
            terms.push(Term { path: path.to_owned(), value: unescape(value), equal });
        }
        Ok(FieldSelector { terms })
    }

    /// Whether the fields that `lookup` finds satisfy every term.
    pub fn matches(&self, lookup: impl Fn(&str) -> Option<String>) -> bool {
        self.terms.iter().all(|term| (lookup(&term.path).unwrap_or_default() == term.value) == term.equal)
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The one value `path` must have, if the selector pins it.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.path == path).map(|term| term.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_and_matched() {
        let selector = FieldSelector::parse("metadata.name=a,status.phase!=Running,x==b\\,c").expect("valid");
        let lookup = |path: &str| match path {
            "metadata.name" => Some("a".to_owned()),
            "x" => Some("b,c".to_owned()),
            _ => None,
        };
        assert!(selector.matches(lookup));
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert_eq!(selector.exact("status.phase"), None);
        assert!(FieldSelector::parse("").expect("empty matches all").is_empty());
    }

    #[test]
    fn a_term_without_operator_is_refused() {
        let error = FieldSelector::parse("metadata.name").expect_err("no operator");
        assert_eq!(error.to_string(), "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
        assert!(FieldSelector::parse("a!b").is_err());
    }
}
