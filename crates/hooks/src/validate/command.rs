//! What is wrong with a command.

use std::collections::BTreeMap;

use baton_api::phases::CommandCall;

use super::{Findings, Item, Policy, validate_credential, validate_no_secrets, validate_text};
use crate::command::{is_automatic, is_dangerous, named};
use crate::credential;

const MOST_ARGUMENTS: usize = 100;

/// Longest argument or variable; the kernel takes four times that.
const LONGEST: usize = 32 << 10;

pub(super) fn validate(
    item: &Item<'_>,
    call: &CommandCall,
    path: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    if let Err(why) = &policy.commands {
        findings.error(path, why.as_str());
    }
    validate_command(item, &call.command, &format!("{path}.command"), policy, findings);
    validate_environment(item, &call.env, &format!("{path}.env"), policy, findings);
}

fn validate_command(
    item: &Item<'_>,
    command: &[String],
    path: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    let Some((program, arguments)) = command.split_first() else {
        return findings.error(path, "a program is needed, for example [\"./check.sh\"]");
    };
    if let Err(bad) = named(program) {
        findings.error(format!("{path}[0]"), bad.to_string());
    }
    if command.len() > MOST_ARGUMENTS {
        let message =
            format!("{} arguments are more than the {MOST_ARGUMENTS} that are allowed", command.len());
        findings.error(path, message);
    }
    for (index, argument) in arguments.iter().enumerate() {
        let path = format!("{path}[{}]", index + 1);
        if argument.contains('\0') {
            findings.error(&path, "holds a NUL character");
        }
        if argument.len() > LONGEST {
            findings
                .error(&path, format!("an argument may have {LONGEST} bytes, this has {}", argument.len()));
        }
        validate_text(item, argument, &path, policy, findings);
        if !policy.filled {
            validate_no_secrets(argument, &path, "give it as an environment variable", findings);
        }
    }
}

fn validate_environment(
    item: &Item<'_>,
    environment: &BTreeMap<String, String>,
    path: &str,
    policy: &Policy,
    findings: &mut Findings,
) {
    let most = policy.limits.environment;
    if environment.len() > most {
        let message =
            format!("{} environment variables are more than the {most} that are allowed", environment.len());
        findings.error(path, message);
    }
    for (name, value) in environment {
        let path = format!("{path}[{}]", name.escape_debug());
        let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !first || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let rule = "letters, digits and underscores, and does not begin with a digit";
            findings.error(path, format!("the name of a variable is made of {rule}"));
            continue;
        }
        if is_automatic(name) {
            findings.error(path, "is set automatically and cannot be given; remove it");
            continue;
        }
        if is_dangerous(name) {
            let message =
                "would change which programs or files are used, or means the controller; it cannot be given";
            findings.error(path, message);
            continue;
        }
        if value.contains(['\0', '\n', '\r']) {
            findings.error(&path, "the value holds a NUL character or a line end");
        }
        if value.len() > LONGEST {
            findings.error(&path, format!("a value may have {LONGEST} bytes, this has {}", value.len()));
        }
        match credential::is_variable(name) {
            true => validate_credential(item, value, &path, policy, findings),
            false => validate_text(item, value, &path, policy, findings),
        }
    }
}
