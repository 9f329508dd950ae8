//! What is wrong with hooks and checks, found before anything runs.
//!
//! Texts are judged as they are written, templates and all, and once more when they are filled in
//! ([`crate::prepare`]): a parameter can hold what its author would not have been allowed to write.

mod command;
mod finding;
mod http;
mod policy;

use std::collections::BTreeSet;
use std::time::Duration;

use baton_api::phases::{
    Check, CommandCall, DeploymentStrategy, Hook, HookRetry, HookScope, HookSecretRef, HookType, HttpCall,
    Phase,
};

pub(crate) use finding::Findings;
pub use finding::{Finding, Severity};
pub use policy::{Namespace, Policy};

use crate::outcome::shown;
use crate::text;

/// Longest name of a hook or a check.
const LONGEST_NAME: usize = 63;

/// Most Secrets one hook may use.
const MOST_SECRETS: usize = 20;
/// Longest name of an object.
const LONGEST_OBJECT_NAME: usize = 253;
/// Characters of a wrong name that are shown.
const MOST_SHOWN: usize = 60;

/// What hooks and checks have in common.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a HookType,
    pub(crate) timeout: Option<&'a str>,
    pub(crate) http: Option<&'a HttpCall>,
    pub(crate) command: Option<&'a CommandCall>,
    pub(crate) secret_refs: &'a [HookSecretRef],
    pub(crate) scope: &'a HookScope,
}

/// Everything that is wrong or doubtful with the hooks and checks of a generator's phases. `path` is the path of its
/// `deploymentStrategy`, for example `spec.generators[0].deploymentStrategy`.
pub fn validate(strategy: &DeploymentStrategy, path: &str, policy: &Policy) -> Vec<Finding> {
    let mut findings = Findings::default();
    for (index, phase) in strategy.phases.iter().enumerate() {
        validate_phase(phase, &format!("{path}.phases[{index}]"), policy, &mut findings);
    }
    findings.into_vec()
}

fn validate_phase(phase: &Phase, path: &str, policy: &Policy, findings: &mut Findings) {
    let hooks = phase.pre_hooks.len() + phase.post_hooks.len();
    let most = policy.limits.hooks_of_a_phase;
    if hooks > most {
        let message = format!("{hooks} hooks in one phase: more than {most} make it slow; join some of them");
        findings.warning(path, message);
    }
    for (field, hooks) in [("preHooks", &phase.pre_hooks), ("postHooks", &phase.post_hooks)] {
        let path = format!("{path}.{field}");
        unique_names(hooks.iter().map(|hook| hook.name.as_str()), &path, findings);
        for (index, hook) in hooks.iter().enumerate() {
            validate_hook(hook, &format!("{path}[{index}]"), policy, findings);
        }
    }
    let path = format!("{path}.checks");
    unique_names(phase.checks.iter().map(|check| check.name.as_str()), &path, findings);
    for (index, check) in phase.checks.iter().enumerate() {
        validate_check(check, &format!("{path}[{index}]"), policy, findings);
    }
}

fn unique_names<'a>(names: impl Iterator<Item = &'a str>, path: &str, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !name.is_empty() && !seen.insert(name) {
            findings.error(format!("{path}[{index}].name"), format!("{name:?} is taken; names must differ"));
        }
    }
}

pub(crate) fn validate_hook(hook: &Hook, path: &str, policy: &Policy, findings: &mut Findings) {
    validate_item(&Item::from(hook), path, policy, findings);
    word(&hook.failure_policy, "fail, ignore or abort", &format!("{path}.failurePolicy"), findings);
    word(&hook.scope, "phase or target", &format!("{path}.scope"), findings);
    if let Some(retry) = &hook.retry {
        validate_retry(retry, &format!("{path}.retry"), policy, findings);
    }
}

pub(crate) fn validate_check(check: &Check, path: &str, policy: &Policy, findings: &mut Findings) {
    validate_item(&Item::from(check), path, policy, findings);
    word(&check.scope, "phase or target", &format!("{path}.scope"), findings);
}

fn validate_item(item: &Item<'_>, path: &str, policy: &Policy, findings: &mut Findings) {
    validate_name(item.name, &format!("{path}.name"), findings);
    timeout(item, &format!("{path}.timeout"), policy, findings);
    validate_secret_refs(item.secret_refs, &format!("{path}.secretRefs"), findings);
    match item.kind {
        HookType::Http => {
            if item.command.is_some() {
                findings
                    .error(format!("{path}.command"), "type http excludes it; remove it or change the type");
            }
            match item.http {
                Some(call) => http::validate(item, call, &format!("{path}.http"), policy, findings),
                None => findings.error(format!("{path}.http"), "type http needs it"),
            }
        }
        HookType::Command => {
            if item.http.is_some() {
                findings
                    .error(format!("{path}.http"), "type command excludes it; remove it or change the type");
            }
            match item.command {
                Some(call) => command::validate(item, call, &format!("{path}.command"), policy, findings),
                None => findings.error(format!("{path}.command"), "type command needs it"),
            }
        }
        HookType::Other(word) => {
            findings.error(format!("{path}.type"), format!("must be http or command, not {word:?}"));
        }
    }
}

/// Names go into headers and environment variables as they are.
fn validate_name(name: &str, path: &str, findings: &mut Findings) {
    if name.is_empty() {
        findings.error(path, "a name is needed");
    } else if name.len() > LONGEST_NAME {
        findings.error(path, format!("a name may have {LONGEST_NAME} characters, this has {}", name.len()));
    } else if !name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) || name.trim() != name {
        findings.error(
            path,
            "a name is made of printable ASCII characters and neither begins nor ends with a blank",
        );
    }
}

/// The timeout of a hook or a check, the default if it gives none. What is wrong with it goes to `findings`.
pub(crate) fn timeout(item: &Item<'_>, path: &str, policy: &Policy, findings: &mut Findings) -> Duration {
    let (most, what) = match item.kind {
        HookType::Command => (policy.limits.command_timeout, "a command"),
        _ => (policy.limits.http_timeout, "an HTTP call"),
    };
    let default = policy.limits.timeout.min(most);
    let Some(written) = item.timeout.filter(|written| !written.is_empty()) else { return default };
    let Some(timeout) = duration(written, path, findings) else { return default };
    if timeout > most {
        let hint = "; for something that takes longer, let each attempt be short and repeat it with retry";
        let message = format!("{written} is more than {what} may take, which is {}{hint}", shown(most));
        findings.error(path, message);
        return most;
    }
    timeout
}

fn validate_retry(retry: &HookRetry, path: &str, policy: &Policy, findings: &mut Findings) {
    let interval = duration(&retry.interval, &format!("{path}.interval"), findings);
    let deadline = duration(&retry.deadline, &format!("{path}.deadline"), findings);
    if interval.is_some_and(|interval| interval < Duration::from_secs(1)) {
        findings.error(format!("{path}.interval"), "must be at least 1s");
    }
    let most = policy.limits.retry_deadline;
    if deadline.is_some_and(|deadline| deadline > most) {
        let message = format!("{} is more than the longest, which is {}", retry.deadline, shown(most));
        findings.error(format!("{path}.deadline"), message);
    }
    if let (Some(interval), Some(deadline)) = (interval, deadline)
        && interval > deadline
    {
        findings.error(
            format!("{path}.interval"),
            "is longer than the deadline: there would be no second attempt",
        );
    }
}

fn validate_secret_refs(refs: &[HookSecretRef], path: &str, findings: &mut Findings) {
    if refs.len() > MOST_SECRETS {
        findings
            .error(path, format!("{} Secrets are more than the {MOST_SECRETS} that are allowed", refs.len()));
    }
    let mut seen = BTreeSet::new();
    for (index, reference) in refs.iter().enumerate() {
        let path = format!("{path}[{index}].name");
        if reference.name.is_empty() {
            findings.error(path, "a name is needed");
        } else if !seen.insert(&reference.name) {
            findings.error(path, format!("{:?} is taken; names must differ", reference.name));
        }
    }
    for (index, reference) in refs.iter().enumerate().filter(|(_, reference)| !reference.name.is_empty()) {
        let (field, name) = match reference.secret_name.is_empty() {
            true => ("name", &reference.name),
            false => ("secretName", &reference.secret_name),
        };
        // What is no name would become another path of the API.
        if !is_object_name(name) {
            let message = format!(
                "{:?} is no name of a Secret; use lower-case letters, digits, '-' and '.'",
                name.chars().take(MOST_SHOWN).collect::<String>()
            );
            findings.error(format!("{path}[{index}].{field}"), message);
        }
    }
    for (index, reference) in refs.iter().enumerate() {
        if reference.keys.as_ref().is_some_and(Vec::is_empty) {
            let message = "an empty list would let no key be used; name some, or leave it out for all";
            findings.error(format!("{path}[{index}].keys"), message);
        }
    }
}

/// Whether Kubernetes takes it for the name of an object.
fn is_object_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|first| plain(*first))
            && bytes.last().is_some_and(|last| plain(*last))
    };
    name.len() <= LONGEST_OBJECT_NAME && name.split('.').all(label)
}

/// A duration that is longer than nothing.
fn duration(written: &str, path: &str, findings: &mut Findings) -> Option<Duration> {
    let parsed = written.parse::<baton_grammar::duration::Duration>().ok();
    let Some(parsed) = parsed else {
        findings.error(path, format!("{written:?} is no duration; write for example 30s, 5m or 1h30m"));
        return None;
    };
    let duration = parsed.to_std().filter(|duration| !duration.is_zero());
    if duration.is_none() {
        findings.error(path, "must be longer than nothing");
    }
    duration
}

/// One of a list of words, or nothing.
fn word<W: Words>(word: &W, words: &str, path: &str, findings: &mut Findings) {
    if let Some(unknown) = word.unknown() {
        findings.error(path, format!("must be {words}, not {unknown:?}"));
    }
}

trait Words {
    /// The word, if it is none of those there are.
    fn unknown(&self) -> Option<&str>;
}

impl Words for baton_api::phases::FailurePolicy {
    fn unknown(&self) -> Option<&str> {
        match self {
            Self::Other(word) if !word.is_empty() => Some(word),
            _ => None,
        }
    }
}

impl Words for baton_api::phases::HookScope {
    fn unknown(&self) -> Option<&str> {
        match self {
            Self::Other(word) if !word.is_empty() => Some(word),
            _ => None,
        }
    }
}

/// A text that may hold templates: whether it is one, and whether the Secrets it uses are declared.
fn validate_text(item: &Item<'_>, written: &str, path: &str, policy: &Policy, findings: &mut Findings) {
    // A text that is filled in already may hold anything, braces included.
    if policy.filled {
        return;
    }
    if let Err(complaint) = text::read(policy.language, written) {
        findings.error(path, format!("is no template: {complaint}"));
    }
    validate_names(item, written, path, policy, findings);
}

/// A text that holds a credential: as any other, but that nothing is said that would quote it.
fn validate_credential(item: &Item<'_>, written: &str, path: &str, policy: &Policy, findings: &mut Findings) {
    if policy.filled {
        return;
    }
    if text::read(policy.language, written).is_err() {
        let message = "is no template; what is wrong with it is withheld, since it may quote the credential";
        findings.error(path, message);
    }
    validate_names(item, written, path, policy, findings);
    if !written.trim().is_empty() && !text::is_template(written) {
        let hint = "declare it in secretRefs and write {{.secrets.NAME.KEY}}";
        findings
            .warning(path, format!("a credential is written out here, for every reader of the set; {hint}"));
    }
}

/// Whether there can be what a text names: its Secrets are declared, and the set and the phase have it.
fn validate_names(item: &Item<'_>, written: &str, path: &str, policy: &Policy, findings: &mut Findings) {
    for name in text::unknown(policy.language, written) {
        let message =
            format!("nothing is known as .{name}; there are .appset.name, .appset.namespace and .phase.name");
        findings.error(path, message);
    }
    for (secret, key) in text::keys_used(policy.language, written) {
        let reference = item.secret_refs.iter().find(|reference| reference.name == secret);
        let keys = reference.and_then(|reference| reference.keys.as_ref());
        if keys.is_some_and(|keys| !keys.contains(&key)) {
            let message =
                format!("uses the key {key:?} of the Secret {secret:?}, which its keys do not list; add it");
            findings.error(path, message);
        }
    }
    if *item.scope == HookScope::Phase
        && let Some(name) = text::parameters(policy.language, written).first()
    {
        let message =
            format!("names {name:?} of a target, and with scope: phase there is none; use scope: target");
        findings.error(path, message);
    }
    for name in text::secrets_used(written) {
        if !item.secret_refs.iter().any(|reference| reference.name == name) {
            let message = format!(
                "uses the Secret {name:?}, which secretRefs does not declare; add `secretRefs: [{{name: \
                 {name}}}]` and label the Secret for use by hooks"
            );
            findings.error(path, message);
        }
    }
}

/// A text that others can see, and where secrets do not belong.
fn validate_no_secrets(written: &str, path: &str, hint: &str, findings: &mut Findings) {
    if text::mentions_secrets(written) {
        findings.error(path, format!("a secret does not belong here, where others can see it; {hint}"));
    }
}

// === impl Item ===

impl<'a> From<&'a Hook> for Item<'a> {
    fn from(hook: &'a Hook) -> Item<'a> {
        Item {
            name: &hook.name,
            kind: &hook.kind,
            timeout: hook.timeout.as_deref(),
            http: hook.http.as_ref(),
            command: hook.command.as_ref(),
            secret_refs: &hook.secret_refs,
            scope: &hook.scope,
        }
    }
}

impl<'a> From<&'a Check> for Item<'a> {
    fn from(check: &'a Check) -> Item<'a> {
        Item {
            name: &check.name,
            kind: &check.kind,
            timeout: check.timeout.as_deref(),
            http: check.http.as_ref(),
            command: check.command.as_ref(),
            secret_refs: &check.secret_refs,
            scope: &check.scope,
        }
    }
}
