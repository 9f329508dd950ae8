//! `baton appset lint`.

use std::path::PathBuf;

use baton_lint::{Finding, Severity};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::manifests;
use super::offline::Offline;
use crate::failure::Failure;
use crate::print;

/// What to look at.
#[derive(Debug, Args)]
#[command(
    after_help = "Findings are printed as FILE:LINE:COLUMN: severity: PATH: message [rule]. Exit code 4 if there is any.
What only shows with real parameters (names used twice, empty steps and phases, steps and phases that contradict each
other) is judged when all parameters are known: from the file itself, or from --clusters and --repo.
What an operator must allow with a flag (--hooks-…) is a warning of the rule hook-operator.

Examples:
  baton appset lint -f web.yaml
  baton appset lint -f sets/ --clusters clusters.yaml --repo https://git.example.com/config.git=../config
  baton appset lint -f web.yaml -o json"
)]
pub(crate) struct Arguments {
    /// Files or directories with ApplicationSets; - is standard input.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    offline: Offline,
    /// Namespace of Argo CD's objects.
    #[arg(short, long, default_value = "argocd", value_name = "NAMESPACE")]
    namespace: String,
    /// How to print findings.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut all: Vec<(String, Finding)> = Vec::new();
    for manifest in manifests::read(&arguments.files)? {
        let (sets, mut findings) = baton_lint::read(&manifest.text);
        for read in &sets {
            if !read.is_sound || !arguments.offline.suffices(&read.set) {
                continue;
            }
            match arguments.offline.generated(&read.set, &arguments.namespace).await {
                Ok(given) => {
                    findings.extend(baton_lint::rendered(read, &given.applications, &given.targets));
                }
                Err(error) => {
                    let place = read.places.nearest("spec");
                    findings.push(Finding {
                        line: place.line,
                        column: place.column,
                        severity: Severity::Error,
                        rule: "generate",
                        path: "spec".to_owned(),
                        message: error.to_string(),
                    });
                }
            }
        }
        all.extend(findings.into_iter().map(|finding| (manifest.name.clone(), finding)));
    }
    print::out(&match arguments.output {
        Output::Text => all.iter().map(|(file, finding)| line(file, finding)).collect(),
        Output::Json => {
            let findings: Vec<_> = all
                .iter()
                .map(|(file, finding)| json!({"file": file, "finding": finding}))
                .map(flat)
                .collect();
            serde_json::to_string_pretty(&findings).map_err(|error| Failure::failed(error.to_string()))?
                + "\n"
        }
    })?;
    match counted(&all) {
        None => Ok(()),
        Some(count) => Err(Failure::finding(count)),
    }
}

/// How many findings there are of each kind; none if there is none.
fn counted(findings: &[(String, Finding)]) -> Option<String> {
    let of = |severity: Severity| findings.iter().filter(|(_, finding)| finding.severity == severity).count();
    let told = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let parts = [told(of(Severity::Error), "error"), told(of(Severity::Warning), "warning")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn line(file: &str, finding: &Finding) -> String {
    let Finding { line, column, severity, rule, path, message } = finding;
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{file}:{line}:{column}: {severity}: {path}{message} [{rule}]\n")
}

/// The file beside the finding's own fields.
fn flat(mut entry: serde_json::Value) -> serde_json::Value {
    let file = entry["file"].take();
    let mut finding = entry["finding"].take();
    finding["file"] = file;
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_how_bad_they_are() {
        let finding = |severity: Severity| {
            let (line, column, rule, path, message) = (1, 1, "hook-operator", String::new(), String::new());
            (String::new(), Finding { line, column, severity, rule, path, message })
        };
        assert_eq!(counted(&[]), None);
        assert_eq!(counted(&[finding(Severity::Warning)]).as_deref(), Some("1 warning"));
        let all = [Severity::Error, Severity::Warning, Severity::Error].map(finding);
        assert_eq!(counted(&all).as_deref(), Some("2 errors, 1 warning"));
    }
}
