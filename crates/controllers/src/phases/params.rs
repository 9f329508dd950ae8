//! A target's parameters in the form that the set's template language wants.

use std::collections::BTreeMap;

use baton_hooks::Language;
use baton_template::{Map, Value};

/// Maps whose keys may hold dots: what follows their path is one key.
const WITH_DOTS: [&str; 3] = ["metadata.labels.", "metadata.annotations.", "values."];

/// Parameters for a template: dotted keys for `{{param}}` substitution, nested ones for Go. `nested` are the generator's
/// own, where they are known; otherwise they are made of the flat ones, in which all values are texts.
pub(super) fn for_template(
    language: Language,
    flat: &BTreeMap<String, String>,
    nested: impl FnOnce() -> Option<Map>,
) -> Map {
    match language {
        Language::Params => Map::strings(flat.iter().map(|(key, value)| (key.as_str(), value.as_str()))),
        Language::Go => nested().map_or_else(|| unfolded(flat), |map| map.detached()),
    }
}

fn unfolded(flat: &BTreeMap<String, String>) -> Map {
    let root = Map::new([]);
    for (path, value) in flat {
        let prefix = WITH_DOTS.into_iter().find(|prefix| path.starts_with(prefix)).unwrap_or("");
        let (above, key) = match prefix {
            "" => path.rsplit_once('.').unwrap_or(("", path)),
            prefix => (prefix.trim_end_matches('.'), &path[prefix.len()..]),
        };
        let mut map = root.clone();
        for part in above.split('.').filter(|part| !part.is_empty()) {
            map = match map.get(part) {
                Some(Value::Map(inner)) => inner,
                _ => {
                    let inner = Map::new([]);
                    map.insert(part, Value::Map(inner.clone()));
                    inner
                }
            };
        }
        map.insert(key, Value::from(value.as_str()));
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_parameters_unfold_with_labels_whole() {
        let flat =
            [("name", "eu"), ("a.b.c", "1"), ("metadata.labels.k8s.io/env", "prod"), ("values.x.y", "2")];
        let flat = flat.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let map = for_template(Language::Go, &flat, || None);
        let text = "{{.name}} {{.a.b.c}} {{index .metadata.labels \"k8s.io/env\"}} {{index .values \"x.y\"}}";
        let template = baton_template::Template::parse("t", text).expect("a template");
        let dot = Value::Map(map);
        let filled = template.execute_in(&dot, &baton_template::Execution::default());
        assert_eq!(filled.expect("filled in"), "eu 1 prod 2");
        let plain = for_template(Language::Params, &flat, || None);
        assert_eq!(plain.get("a.b.c").map(|value| value.to_string()).as_deref(), Some("1"));
    }
}
