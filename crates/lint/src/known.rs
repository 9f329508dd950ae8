//! Which parameters a generator is known to give.

use std::collections::BTreeSet;

use serde_json::Value;

/// Names of parameters, as templates write them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Known {
    /// There may be any others: files, plugins and the like decide.
    pub(crate) open: bool,
    names: BTreeSet<String>,
    /// Any name that begins so.
    prefixes: BTreeSet<String>,
}

impl Known {
    /// Whether `{{name}}` can be anything.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.open || self.names.contains(name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// What there is, for a message.
    pub(crate) fn listed(&self) -> String {
        let prefixes = self.prefixes.iter().map(|prefix| format!("{prefix}…"));
        let mut all: Vec<String> = self.names.iter().cloned().chain(prefixes).collect();
        all.sort();
        if all.len() > 12 {
            all.truncate(12);
            all.push("…".to_owned());
        }
        all.join(", ")
    }

    fn add(&mut self, names: &[&str]) {
        self.names.extend(names.iter().map(|name| (*name).to_owned()));
    }

    fn join(&mut self, other: Known) {
        self.open |= other.open;
        self.names.extend(other.names);
        self.prefixes.extend(other.prefixes);
    }

    fn values(&mut self, body: &Value, go: bool) {
        let Some(values) = body["values"].as_object().filter(|values| !values.is_empty()) else { return };
        if go {
            self.add(&["values"]);
        } else {
            self.names.extend(values.keys().map(|key| format!("values.{key}")));
        }
    }
}

/// What one entry of `generators` gives.
pub(crate) fn of_entry(entry: &Value, go: bool) -> Known {
    let mut known = Known::default();
    for (kind, body) in entry.as_object().into_iter().flatten() {
        match kind.as_str() {
            "list" => list(&mut known, body, go),
            "clusters" => clusters(&mut known, body, go),
            "git" => git(&mut known, body, go),
            "scmProvider" => {
                known.add(&[
                    "organization",
                    "repository",
                    "repository_id",
                    "url",
                    "branch",
                    "branchNormalized",
                    "sha",
                    "short_sha",
                    "short_sha_7",
                    "labels",
                ]);
                known.values(body, go);
            }
            "pullRequest" => {
                known.add(&[
                    "number",
                    "title",
                    "branch",
                    "branch_slug",
                    "target_branch",
                    "target_branch_slug",
                    "head_sha",
                    "head_short_sha",
                    "head_short_sha_7",
                    "author",
                ]);
                if go {
                    known.add(&["labels"]);
                }
                known.values(body, go);
            }
            "matrix" | "merge" => {
                for child in body["generators"].as_array().into_iter().flatten() {
                    known.join(of_entry(child, go));
                }
            }
            "clusterDecisionResource" | "plugin" => known.open = true,
            _ => {}
        }
    }
    known
}

fn list(known: &mut Known, body: &Value, go: bool) {
    known.open |= body["elementsYaml"].as_str().is_some_and(|text| !text.is_empty());
    for (key, value) in
        body["elements"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten()
    {
        match value.as_object() {
            Some(values) if !go && key == "values" => {
                known.names.extend(values.keys().map(|name| format!("values.{name}")));
            }
            _ => {
                known.names.insert(key.clone());
            }
        }
    }
}

fn clusters(known: &mut Known, body: &Value, go: bool) {
    if body["flatList"] == true {
        known.add(&["clusters"]);
        return;
    }
    known.add(&["name", "nameNormalized", "server", "project"]);
    if go {
        known.add(&["metadata"]);
    } else {
        known.prefixes.extend(["metadata.labels.".to_owned(), "metadata.annotations.".to_owned()]);
    }
    known.values(body, go);
}

fn git(known: &mut Known, body: &Value, go: bool) {
    if body["directories"].as_array().is_none_or(Vec::is_empty) {
        known.open = true;
        return;
    }
    let prefix = body["pathParamPrefix"].as_str().unwrap_or_default();
    let path = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
    if go {
        known.add(&[if prefix.is_empty() { "path" } else { prefix }]);
    } else {
        known.names.extend([path.clone(), format!("{path}.basename"), format!("{path}.basenameNormalized")]);
        known.prefixes.insert(format!("{path}["));
    }
    known.values(body, go);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_generator_gives_what_the_other_language_calls_by_another_name() {
        let clusters = json!({"clusters": {"values": {"a": "1"}}});
        let fast = of_entry(&clusters, false);
        assert!(
            fast.has("values.a")
                && fast.has("metadata.labels.env")
                && !fast.has("values")
                && !fast.has("path")
        );
        let go = of_entry(&clusters, true);
        assert!(go.has("values") && go.has("metadata") && !go.has("values.a"));

        let git = json!({"git": {"directories": [{"path": "*"}], "pathParamPrefix": "app"}});
        assert!(of_entry(&git, false).has("app.path[0]") && !of_entry(&git, false).has("path"));
        assert!(of_entry(&git, true).has("app") && !of_entry(&git, true).has("path"));
    }

    #[test]
    fn a_matrix_gives_what_its_children_give() {
        let matrix = json!({"matrix": {"generators": [
            {"list": {"elements": [{"x": "1"}, {"y": "2"}]}},
            {"merge": {"generators": [{"pullRequest": {}}, {"clusters": {}}]}},
        ]}});
        let known = of_entry(&matrix, true);
        assert!(
            known.has("x") && known.has("y") && known.has("number") && known.has("server") && !known.open
        );
        assert!(of_entry(&json!({"plugin": {}}), true).has("anything"));
    }
}
