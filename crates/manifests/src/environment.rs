//! The build environment: what a source may know of the Application it is rendered for.

/// Names and values of the `ARGOCD_APP_*` variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Environment(Vec<(&'static str, String)>);

/// What the variables are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) instance: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) project: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) repo_url: &'a str,
    pub(crate) path: &'a str,
    pub(crate) target_revision: &'a str,
}

impl Environment {
    pub(crate) fn new(facts: Facts<'_>) -> Environment {
        let short = |length: usize| facts.revision.get(..length).unwrap_or(facts.revision);
        let value = |name, value: &str| (name, value.to_owned());
        Environment(vec![
            value("ARGOCD_APP_NAME", facts.instance),
            value("ARGOCD_APP_NAMESPACE", facts.namespace),
            value("ARGOCD_APP_PROJECT_NAME", facts.project),
            value("ARGOCD_APP_REVISION", facts.revision),
            value("ARGOCD_APP_REVISION_SHORT", short(7)),
            value("ARGOCD_APP_REVISION_SHORT_8", short(8)),
            value("ARGOCD_APP_SOURCE_REPO_URL", facts.repo_url),
            value("ARGOCD_APP_SOURCE_PATH", facts.path),
            value("ARGOCD_APP_SOURCE_TARGET_REVISION", facts.target_revision),
        ])
    }

    /// The variables, for a process.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The text with `$NAME` and `${NAME}` replaced, as Go's `os.Expand` does it: an unknown name gives nothing, `$$`
    /// gives `$`, a `$` before what can be no name stays.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (name, taken) = variable(after);
            match name {
                "" if taken == 0 => expanded.push('$'),
                "$" => expanded.push('$'),
                name => expanded.push_str(self.get(name)),
            }
            rest = &after[taken..];
        }
        expanded.push_str(rest);
        expanded
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// The variable's name after a `$`, and how many bytes it takes. Braces that hold no name are taken away.
fn variable(text: &str) -> (&str, usize) {
    let is_special = |byte: u8| b"*#$@!?-0123456789".contains(&byte);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    match bytes {
        [] => ("", 0),
        [b'{', special, b'}', ..] if is_special(*special) => (&text[1..2], 3),
        [b'{', ..] => match text.find('}') {
            Some(end) => (&text[1..end], end + 1),
            None => ("", 1),
        },
        [special, ..] if is_special(*special) => (&text[..1], 1),
        _ => {
            let length = bytes.iter().take_while(|byte| is_name(**byte)).count();
            (&text[..length], length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_go_replaces_them() {
        let environment = Environment::new(Facts {
            instance: "shop",
            namespace: "prod",
            project: "team",
            revision: "0123456789abcdef",
            repo_url: "https://host/r",
            path: "a/b",
            target_revision: "main",
        });
        let cases = [
            ("plain", "plain"),
            ("${ARGOCD_APP_NAME}-$ARGOCD_APP_NAMESPACE", "shop-prod"),
            ("$ARGOCD_APP_REVISION_SHORT.$ARGOCD_APP_REVISION_SHORT_8", "0123456.01234567"),
            ("$ARGOCD_APP_NAMEX|", "|"),
            ("${ARGOCD_APP_SOURCE_PATH}", "a/b"),
            ("$$ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("${$}x", "$x"),
            ("100$", "100$"),
            ("a$/b", "a$/b"),
            ("a${}b", "ab"),
            ("a${b", "ab"),
            ("$1x$UNKNOWN!", "x!"),
            ("é$é", "é$é"),
        ];
        for (text, expected) in cases {
            assert_eq!(environment.expand(text), expected, "{text}");
        }
    }
}
