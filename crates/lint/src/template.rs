//! Mistakes in the template, and in the names it gives.

use std::collections::BTreeMap;

use baton_api::ApplicationSet;
use baton_schema::names::dns1123_subdomain;
use baton_template::{MissingKey, Template};
use serde_json::Value;

use crate::known::{self, Known};
use crate::{Report, tags};

/// Functions whose value changes from one rendering to the next.
const RESTLESS: [&str; 16] = [
    "now",
    "ago",
    "uuidv4",
    "randAlphaNum",
    "randAlpha",
    "randAscii",
    "randNumeric",
    "randInt",
    "randBytes",
    "shuffle",
    "genPrivateKey",
    "genCA",
    "genSelfSignedCert",
    "genSignedCert",
    "bcrypt",
    "htpasswd",
];

pub(crate) fn judge(set: &ApplicationSet, document: &Value, report: &mut Report<'_>) {
    let go = set.spec.go_template;
    options(set, report);
    let generators: Vec<(usize, Known)> = document
        .pointer("/spec/generators")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|entry| known::of_entry(entry, go))
        .enumerate()
        .collect();
    let mut judge = Strings { go, generators, report };
    judge.walk(&document["spec"]["template"], "spec.template");
    if let Some(patch) = &set.spec.template_patch {
        judge.text(patch, "spec.templatePatch");
    }
    fixed_parts(set, document, report);
}

fn options(set: &ApplicationSet, report: &mut Report<'_>) {
    for (index, option) in set.spec.go_template_options.iter().enumerate() {
        let path = format!("spec.goTemplateOptions[{index}]");
        if let Err(error) = option.parse::<MissingKey>() {
            let known = "missingkey=default, missingkey=invalid, missingkey=zero and missingkey=error";
            report.error("template-option", &*path, format!("{error}; there are {known}"));
        }
        if !set.spec.go_template {
            report.warning("template-option", &*path, "without goTemplate: true options have no effect");
        }
    }
}

/// Every string of the template.
struct Strings<'a, 'b> {
    go: bool,
    generators: Vec<(usize, Known)>,
    report: &'a mut Report<'b>,
}

impl Strings<'_, '_> {
    fn walk(&mut self, value: &Value, path: &str) {
        match value {
            Value::String(text) => self.text(text, path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &format!("{path}[{index}]"));
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{path}.{key}");
                    self.text(key, &path);
                    self.walk(value, &path);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, path: &str) {
        if !text.contains("{{") {
            return;
        }
        if self.go {
            match Template::parse(path, text) {
                Ok(template) => self.restless(&template, path),
                Err(error) => return self.report.error("template", path, error.to_string()),
            }
        }
        for name in tags::named(text, self.go) {
            self.parameter(&name, path);
        }
    }

    fn parameter(&mut self, name: &str, path: &str) {
        let shown = if self.go { format!(".{name}") } else { format!("{{{{{name}}}}}") };
        for (index, known) in self.generators.iter().filter(|(_, known)| !known.has(name)) {
            let hint = if !self.go && name.starts_with('.') {
                "this is how Go templates are written: set goTemplate: true".to_owned()
            } else {
                format!("it has {}", known.listed())
            };
            let message = format!("spec.generators[{index}] gives no parameter for {shown}; {hint}");
            self.report.error("unknown-parameter", path, message);
        }
    }

    fn restless(&mut self, template: &Template, path: &str) {
        for function in template.functions() {
            if RESTLESS.contains(&function) {
                let message = format!(
                    "{function} gives another value each time, so the Application changes again and again"
                );
                self.report.warning("restless-function", path, message);
            }
        }
    }
}

/// What the template says whatever the parameters are.
fn fixed_parts(set: &ApplicationSet, document: &Value, report: &mut Report<'_>) {
    let template = &set.spec.template;
    if template.spec.project.contains("{{") {
        report.warning(
            "templated-project",
            "spec.template.spec.project",
            "a templated project lets whoever controls the parameters choose it, and commit signatures are not \
             checked; name the project",
        );
    }
    let name = &template.metadata.name;
    let elsewhere =
        document.pointer("/spec/generators").is_some_and(|all| all.to_string().contains("\"template\""))
            || set.spec.template_patch.is_some();
    if name.is_empty() && !elsewhere {
        report.error("name", "spec.template.metadata.name", "Applications need a name");
    }
    if !name.is_empty() && !name.contains("{{") && !elsewhere && !at_most_one(&document["spec"]["generators"])
    {
        report.warning(
            "fixed-name",
            "spec.template.metadata.name",
            "the name holds no parameter, so two sets of parameters give the same Application and neither is made",
        );
    }
    let destination = &document["spec"]["template"]["spec"]["destination"];
    let given = |field: &str| destination[field].as_str().is_some_and(|text| !text.is_empty());
    if given("name") && given("server") {
        report.error(
            "destination",
            "spec.template.spec.destination",
            "a destination has either a name or a server, not both",
        );
    } else if !given("name") && !given("server") && !elsewhere {
        report.error(
            "destination",
            "spec.template.spec.destination",
            "a destination needs a name or a server",
        );
    }
    if set
        .spec
        .template_patch
        .as_ref()
        .is_some_and(|patch| patch.lines().any(|line| line.trim_start().starts_with("project:")))
    {
        report.warning(
            "patched-project",
            "spec.templatePatch",
            "a patch cannot change the project: it is put back to the template's",
        );
    }
}

/// Whether the generators surely give no more than one set of parameters.
fn at_most_one(generators: &Value) -> bool {
    let single = |entry: &Value| {
        let listed = entry["list"]["elements"].as_array().is_some_and(|elements| elements.len() <= 1)
            && entry["list"].get("elementsYaml").is_none();
        (listed || entry["clusters"]["flatList"] == true)
            && entry.as_object().is_some_and(|entry| entry.len() == 1)
    };
    matches!(generators.as_array().map(Vec::as_slice), Some([entry]) if single(entry))
}

/// Names of rendered Applications.
pub(crate) fn names(applications: &[Value], report: &mut Report<'_>) {
    const PATH: &str = "spec.template.metadata.name";
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for application in applications {
        *seen.entry(application["metadata"]["name"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (name, count) in seen {
        if name.is_empty() {
            report.error("name", PATH, format!("{count} Applications have an empty name"));
            continue;
        }
        if count > 1 {
            let message =
                format!("{count} Applications are named {name:?}: none of them is created or updated");
            report.error("duplicate-name", PATH, message);
        }
        if let Some(why) = dns1123_subdomain(name).first() {
            report.error("name", PATH, format!("{name:?} is not a name for an Application: {why}"));
        }
    }
}
