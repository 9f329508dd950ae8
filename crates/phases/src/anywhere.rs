//! Reading phases where nobody knows what an operator allows: in a file, before there is a controller.

use baton_api::ApplicationSet;
use baton_api::phases::DeploymentStrategy;
use baton_hooks::{Finding, Language, Policy, Severity};

use crate::compile::{Compiled, compile};

/// A strategy as it is read for every operator at once.
#[derive(Debug, Clone)]
pub struct Anywhere {
    /// What comes of it where the operator allows everything: its errors are errors everywhere.
    pub compiled: Compiled,
    /// What a controller without flags for hooks refuses. Its operator may allow it, so these are warnings.
    pub operator: Vec<Finding>,
}

/// Reads the phases of one generator. `path` is the path of its `deploymentStrategy`.
pub fn compile_anywhere(strategy: &DeploymentStrategy, path: &str, language: Language) -> Anywhere {
    let compiled = compile(strategy, path, &Policy::widest(language));
    let usual = compile(strategy, path, &Policy::usual(language));
    let operator = usual.findings.into_iter().filter(|finding| !compiled.findings.contains(finding));
    let operator = operator.map(|finding| Finding { severity: Severity::Warning, ..finding });
    Anywhere { operator: operator.collect(), compiled }
}

/// The language that the texts of a set are written in.
pub fn language(set: &ApplicationSet) -> Language {
    if set.spec.go_template { Language::Go } else { Language::Params }
}
