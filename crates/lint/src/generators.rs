//! Mistakes in generators.

use baton_api::ApplicationSet;
use baton_grammar::labels::Selector;
use baton_schema::names;
use serde_json::{Map, Value};

use crate::Report;

/// What a generator entry may hold beside the generator itself.
const BESIDE: [&str; 2] = ["selector", "deploymentStrategy"];
const KINDS: [&str; 9] = [
    "list",
    "clusters",
    "git",
    "scmProvider",
    "clusterDecisionResource",
    "pullRequest",
    "matrix",
    "merge",
    "plugin",
];

pub(crate) fn judge(set: &ApplicationSet, document: &Value, report: &mut Report<'_>) {
    let Some(entries) = document.pointer("/spec/generators").and_then(Value::as_array) else { return };
    if entries.is_empty() {
        report.warning(
            "no-generators",
            "spec.generators",
            "without a generator there are no Applications, and those the set owns are deleted",
        );
    }
    for (index, entry) in entries.iter().enumerate() {
        entry_of(entry, &format!("spec.generators[{index}]"), 0, set.spec.go_template, report);
    }
}

fn entry_of(entry: &Value, path: &str, level: usize, go: bool, report: &mut Report<'_>) {
    let Some(entry) = entry.as_object() else { return };
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| present(entry, kind)).collect();
    match kinds[..] {
        [] => report.error(
            "empty-generator",
            path,
            format!("this entry names no generator; one of {} is needed", KINDS.join(", ")),
        ),
        [_] => {}
        _ if level == 0 => report.warning(
            "several-generators",
            path,
            format!(
                "{} in one entry each give Applications of their own; write one entry each",
                kinds.join(" and ")
            ),
        ),
        _ => report.error(
            "several-generators",
            path,
            format!("only one generator is allowed here, found {}", kinds.join(" and ")),
        ),
    }
    if let Some(selector) = entry.get("selector") {
        post_selector(selector, &format!("{path}.selector"), report);
    }
    if level > 0 && entry.keys().any(|key| key == BESIDE[1]) {
        report.error(
            "nested-strategy",
            format!("{path}.{}", BESIDE[1]),
            "phases belong to a generator of the set itself, not to one inside matrix or merge",
        );
    }
    for kind in kinds {
        one(kind, &entry[kind], &format!("{path}.{kind}"), level, go, report);
    }
}

/// A generator that is written down, even with nothing inside.
fn present(entry: &Map<String, Value>, kind: &str) -> bool {
    entry.get(kind).is_some_and(|value| !value.is_null())
}

fn one(kind: &str, body: &Value, path: &str, level: usize, go: bool, report: &mut Report<'_>) {
    if level > 0 && body.get("template").is_some() {
        report.warning(
            "ignored-template",
            format!("{path}.template"),
            "the template of a generator inside matrix or merge is never used",
        );
    }
    match kind {
        "list" => list(body, path, level, go, report),
        "clusters" => {
            label_selector(body.get("selector"), &format!("{path}.selector"), report);
            if body["flatList"] == true && !go {
                report.warning(
                    "flat-list",
                    format!("{path}.flatList"),
                    "a list of clusters can only be used with goTemplate: true",
                );
            }
        }
        "git" => git(body, path, report),
        "clusterDecisionResource" => {
            let named = body["name"].as_str().is_some_and(|name| !name.is_empty());
            let selected =
                body.get("labelSelector").is_some_and(|selector| *selector != serde_json::json!({}));
            if named == selected {
                report.error("decision-resource", path, "exactly one of name and labelSelector is needed");
            }
        }
        "scmProvider" => host(
            body,
            path,
            &["github", "gitlab", "gitea", "bitbucketServer", "azureDevOps", "bitbucket", "awsCodeCommit"],
            report,
        ),
        "pullRequest" => host(
            body,
            path,
            &["github", "gitlab", "gitea", "bitbucketServer", "bitbucket", "azuredevops"],
            report,
        ),
        "matrix" | "merge" => combination(kind, body, path, level, go, report),
        _ => {}
    }
}

fn list(body: &Value, path: &str, level: usize, go: bool, report: &mut Report<'_>) {
    let elements = body["elements"].as_array().map_or(&[][..], Vec::as_slice);
    let yaml = body["elementsYaml"].as_str().unwrap_or_default();
    if elements.is_empty() && yaml.is_empty() && level == 0 {
        report.warning("empty-list", path, "a list without elements gives no Applications");
    }
    for (index, element) in elements.iter().enumerate() {
        let path = format!("{path}.elements[{index}]");
        let Some(element) = element.as_object() else {
            report.error("list-element", path, "an element must be a map of parameters");
            continue;
        };
        if element.is_empty() {
            report.warning(
                "list-element",
                &*path,
                "an element without parameters leaves the template unrendered",
            );
        }
        for (key, value) in element {
            let texts = value.is_string()
                || (key == "values"
                    && value.as_object().is_some_and(|map| map.values().all(Value::is_string)));
            if !go && !texts {
                report.error(
                    "list-element",
                    format!("{path}.{key}"),
                    format!("{value} is not a string: without goTemplate every value must be quoted text"),
                );
            }
        }
    }
}

fn git(body: &Value, path: &str, report: &mut Report<'_>) {
    let some = |field: &str| body[field].as_array().is_some_and(|items| !items.is_empty());
    match (some("directories"), some("files")) {
        (true, true) => report.warning(
            "git-both",
            format!("{path}.files"),
            "directories are given as well, so files are never looked at; use two generators",
        ),
        (false, false) => report.error("git-neither", path, "either directories or files is needed"),
        _ => {}
    }
    for field in ["directories", "files"] {
        let items = body[field].as_array().map_or(&[][..], Vec::as_slice);
        if !items.is_empty() && items.iter().all(|item| item["exclude"] == true) {
            report.warning(
                "git-only-excluded",
                format!("{path}.{field}"),
                "everything is left out and nothing taken",
            );
        }
    }
    for (index, item) in body["directories"].as_array().into_iter().flatten().enumerate() {
        let pattern = item["path"].as_str().unwrap_or_default();
        if pattern.contains("**") {
            report.warning(
                "git-glob",
                format!("{path}.directories[{index}].path"),
                format!("in directories ** is the same as *: {pattern} matches one level only"),
            );
        }
        if pattern.starts_with('/') || pattern.starts_with("./") || (pattern.ends_with('/') && pattern != "/")
        {
            report.warning(
                "git-glob",
                format!("{path}.directories[{index}].path"),
                format!("{pattern} matches nothing: paths are written without ./ or / at their ends"),
            );
        }
    }
}

fn host(body: &Value, path: &str, hosts: &[&str], report: &mut Report<'_>) {
    let named: Vec<&str> =
        hosts.iter().copied().filter(|host| body.get(host).is_some_and(|v| !v.is_null())).collect();
    match named[..] {
        [] => report.error("no-host", path, format!("one of {} is needed", hosts.join(", "))),
        [_] => {}
        _ => report.warning(
            "several-hosts",
            path,
            format!("only {} is used, of {}", named[0], named.join(", ")),
        ),
    }
    for (index, filter) in body["filters"].as_array().into_iter().flatten().enumerate() {
        for (field, pattern) in filter.as_object().into_iter().flatten() {
            if let (true, Some(pattern)) = (field.ends_with("Match"), pattern.as_str())
                && let Err(error) = baton_grammar::regexp::Regexp::parse(pattern)
            {
                report.error("regexp", format!("{path}.filters[{index}].{field}"), error.to_string());
            }
        }
    }
}

fn combination(kind: &str, body: &Value, path: &str, level: usize, go: bool, report: &mut Report<'_>) {
    let children = body["generators"].as_array().map_or(&[][..], Vec::as_slice);
    if level >= 2 {
        report.error(
            "too-deep",
            path,
            format!("a {kind} may hold one more level of matrix or merge, not two"),
        );
        return;
    }
    match (kind, children.len()) {
        ("matrix", 2) | ("merge", 2..) => {}
        ("matrix", count) => {
            report.error(
                "matrix-size",
                format!("{path}.generators"),
                format!("a matrix needs exactly two generators, found {count}"),
            );
        }
        (_, count) => {
            report.error(
                "merge-size",
                format!("{path}.generators"),
                format!("a merge needs two or more generators, found {count}"),
            );
        }
    }
    if kind == "merge" {
        let keys: Vec<&str> =
            body["mergeKeys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if keys.is_empty() {
            report.error("merge-keys", format!("{path}.mergeKeys"), "a merge needs at least one key");
        }
        for (index, key) in keys.iter().enumerate().filter(|(_, key)| go && key.contains('.')) {
            report.error(
                "merge-keys",
                format!("{path}.mergeKeys[{index}]"),
                format!("with goTemplate a merge key is the name of a parameter, not a path into one: {key} is always missing"),
            );
        }
    }
    for (index, child) in children.iter().enumerate() {
        entry_of(child, &format!("{path}.generators[{index}]"), level + 1, go, report);
    }
}

/// Keys are qualified names; values may be anything.
fn post_selector(selector: &Value, path: &str, report: &mut Report<'_>) {
    label_selector(Some(selector), path, report);
    let keys = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flat_map(|labels| labels.keys().map(|key| (format!("{path}.matchLabels.{key}"), key.as_str())));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().enumerate().map(
        |(index, expression)| {
            (format!("{path}.matchExpressions[{index}].key"), expression["key"].as_str().unwrap_or_default())
        },
    );
    for (path, key) in keys.chain(expressions) {
        if let Some(why) = names::qualified_name(key).first() {
            report.error("selector", path, format!("{key:?} cannot be selected by: {why}"));
        }
    }
}

fn label_selector(selector: Option<&Value>, path: &str, report: &mut Report<'_>) {
    if let Some(selector) = selector
        && !selector.to_string().contains("{{")
        && let Err(error) = Selector::from_object(selector)
    {
        report.error("selector", path, error.to_string());
    }
}
