//! What is wrong or doubtful in the text of an ApplicationSet, with path and line.
//!
//! Pure: [`read`] finds the ApplicationSets in a text and judges what the text alone shows; [`rendered`] judges the
//! Applications a set gives, where they are known. Nothing is asked of a cluster or a repository.

mod generators;
mod known;
mod phases;
mod shape;
mod steps;
mod tags;
mod template;

use std::collections::BTreeMap;
use std::fmt;

use baton_api::ApplicationSet;
use baton_grammar::yaml::{self, Places};
use baton_phases::Target;
use serde::Serialize;
use serde_json::Value;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It will not work.
    Error,
    /// It works, and probably not as meant.
    Warning,
}

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line in the text, from 1.
    pub line: u64,
    /// Column in the text, from 1.
    pub column: u64,
    /// How bad it is.
    pub severity: Severity,
    /// Short name of the rule, for people who search for it.
    pub rule: &'static str,
    /// The field, such as `spec.strategy.rollingSync.steps[1]`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// An ApplicationSet of a text.
#[derive(Debug, Clone)]
pub struct Read {
    /// The set.
    pub set: ApplicationSet,
    /// Where its values stand.
    pub places: Places,
    /// Whether the text alone shows no error of it.
    pub is_sound: bool,
}

/// The ApplicationSets of a text, and what the text alone shows of their mistakes. Documents of other kinds are
/// passed over; a text without any ApplicationSet is a finding.
pub fn read(text: &str) -> (Vec<Read>, Vec<Finding>) {
    let documents = match yaml::located(text) {
        Ok(documents) => documents,
        Err(error) => {
            let finding = Finding {
                line: error.line,
                column: error.column,
                severity: Severity::Error,
                rule: "yaml",
                path: String::new(),
                message: format!("not YAML: {}", error.message),
            };
            return (Vec::new(), vec![finding]);
        }
    };
    let mut sets = Vec::new();
    let mut findings = Vec::new();
    for (document, places) in documents {
        if document["kind"] != "ApplicationSet" {
            continue;
        }
        let mut report = Report::new(&places);
        let set = shape::decode(&document, &mut report);
        if let Some(set) = &set {
            judge(set, &document, &mut report);
        }
        let mut found = report.findings;
        let is_sound = found.iter().all(|finding| finding.severity != Severity::Error);
        findings.append(&mut found);
        sets.extend(set.map(|set| Read { set, places, is_sound }));
    }
    if sets.is_empty() && findings.is_empty() {
        findings.push(Finding {
            line: 1,
            column: 1,
            severity: Severity::Error,
            rule: "no-applicationset",
            path: String::new(),
            message: "no document with `kind: ApplicationSet` in this text".to_owned(),
        });
    }
    sort(&mut findings);
    (sets, findings)
}

/// What the Applications of a set show: names used twice or not allowed, steps and phases without Applications,
/// Applications in several steps, in none, or in no phase, and orders of steps and phases that contradict each other.
/// `targets` are the same Applications with their parameters, by the place of their generator.
pub fn rendered(read: &Read, applications: &[Value], targets: &BTreeMap<usize, Vec<Target>>) -> Vec<Finding> {
    let mut report = Report::new(&read.places);
    template::names(applications, &mut report);
    steps::rendered(&read.set, applications, &mut report);
    phases::rendered(&read.set, applications, targets, &mut report);
    sort(&mut report.findings);
    report.findings
}

fn judge(set: &ApplicationSet, document: &Value, report: &mut Report<'_>) {
    generators::judge(set, document, report);
    template::judge(set, document, report);
    steps::judge(set, report);
    phases::judge(set, document, report);
}

fn sort(findings: &mut Vec<Finding>) {
    findings.sort_by(|a, b| {
        (a.line, a.column, a.severity, a.rule, &a.path, &a.message)
            .cmp(&(b.line, b.column, b.severity, b.rule, &b.path, &b.message))
    });
    findings.dedup();
}

/// Findings of one document.
pub(crate) struct Report<'a> {
    places: &'a Places,
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    fn new(places: &'a Places) -> Report<'a> {
        Report { places, findings: Vec::new() }
    }

    pub(crate) fn error(&mut self, rule: &'static str, path: impl Into<String>, message: impl Into<String>) {
        self.add(Severity::Error, rule, path.into(), message.into());
    }

    pub(crate) fn warning(
        &mut self,
        rule: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.add(Severity::Warning, rule, path.into(), message.into());
    }

    fn add(&mut self, severity: Severity, rule: &'static str, path: String, message: String) {
        let place = self.places.nearest(&path);
        self.findings.push(Finding { line: place.line, column: place.column, severity, rule, path, message });
    }
}
