//! How often a hook or a check runs, and how long an attempt may take.

use std::time::Duration;

use baton_api::phases::{Check, CommandCall, Hook, HookScope, HttpCall};

use crate::text::names_target;
use crate::validate::{Findings, Item, Policy, timeout};

/// Whether a hook runs once for each target: where it says so, or says nothing and its text names the target.
pub fn is_hook_per_target(hook: &Hook, policy: &Policy) -> bool {
    is_per_target(&hook.scope, hook.http.as_ref(), hook.command.as_ref(), policy)
}

/// Whether a check runs once for each target, as for [`is_hook_per_target`].
pub fn is_check_per_target(check: &Check, policy: &Policy) -> bool {
    is_per_target(&check.scope, check.http.as_ref(), check.command.as_ref(), policy)
}

/// How long one attempt at a hook may take.
pub fn hook_timeout(hook: &Hook, policy: &Policy) -> Duration {
    timeout(&Item::from(hook), "", policy, &mut Findings::default())
}

/// How long a check may take to pass, and so an attempt at it.
pub fn check_timeout(check: &Check, policy: &Policy) -> Duration {
    timeout(&Item::from(check), "", policy, &mut Findings::default())
}

fn is_per_target(
    scope: &HookScope,
    http: Option<&HttpCall>,
    command: Option<&CommandCall>,
    policy: &Policy,
) -> bool {
    match scope {
        HookScope::Target => true,
        HookScope::Phase => false,
        HookScope::Other(_) => texts(http, command).any(|text| names_target(policy.language, text)),
    }
}

fn texts<'a>(
    http: Option<&'a HttpCall>,
    command: Option<&'a CommandCall>,
) -> impl Iterator<Item = &'a String> {
    let call =
        http.into_iter().flat_map(|call| [&call.url, &call.body].into_iter().chain(call.headers.values()));
    call.chain(command.into_iter().flat_map(|call| call.command.iter().chain(call.env.values())))
}
