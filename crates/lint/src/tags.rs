//! The parameters a text names.

use baton_template::Template;

/// Parameters named by `{{…}}`.
pub(crate) fn named(text: &str, go: bool) -> Vec<String> {
    if !text.contains("{{") {
        return Vec::new();
    }
    if go {
        return Template::parse("", text).map(|template| template.root_fields()).unwrap_or_default();
    }
    let mut names = Vec::new();
    for line in text.split('\n') {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("{{") {
            let Some((name, next)) = after.split_once("}}") else { break };
            names.push(name.trim().to_owned());
            rest = next;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn names_are_found_in_both_languages() {
        assert_eq!(named("{{a}}-{{ b.c }} }} {{", false), ["a", "b.c"]);
        assert_eq!(
            named("{{.a.b}}{{range .c}}{{.d}}{{$.e}}{{end}}{{with .f}}{{.g}}{{end}}", true),
            ["a", "c", "e", "f"]
        );
        assert!(named("plain", true).is_empty());
    }
}
