//! Functions Kubernetes adds to CEL that rules of custom resources use and the evaluator lacks.

use cel::common::types::CelString;
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

/// Adds the functions to an environment.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    Ok(())
}

/// The first match of a pattern, or nothing.
fn find(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let pattern = compile("find", pattern.inner())?;
    Ok(pattern.find(text.inner()).map_or(String::new(), |found| found.as_str().to_owned()).into())
}

fn compile(function: &str, pattern: &str) -> Result<Regex, ExecutionError> {
    Regex::new(pattern).map_err(|error| ExecutionError::function_error(function, error))
}
