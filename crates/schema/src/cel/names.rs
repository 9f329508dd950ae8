//! Field names as CEL identifiers.

/// Words that CEL keeps for itself; a field of that name is written `__word__`.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The identifier a property is reached by; `None` where no rule can name it.
pub(super) fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            out.push_str("__underscores__");
            rest = after;
            continue;
        }
        match character {
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            'a'..='z' | 'A'..='Z' | '_' => out.push(character),
            '0'..='9' if !out.is_empty() => out.push(character),
            _ => return None,
        }
        rest = &rest[character.len_utf8()..];
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_become_identifiers() {
        for (name, identifier) in [
            ("plain", Some("plain")),
            ("with-dash", Some("with__dash__dash")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("namespace", Some("__namespace__")),
            ("a__b", Some("a__underscores__b")),
            ("1st", None),
            ("ü", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), identifier, "{name}");
        }
    }
}
