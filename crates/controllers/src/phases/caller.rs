//! Who makes calls: the one seam between phases and the world outside.

use std::sync::Arc;

use baton_api::phases::{Check, CommandCall, Hook, HookSecretRef, HttpCall};
use baton_hooks::{Occasion, Outcome, Policy, Secrets, SetName, destination};
use baton_template::Map;
use futures::future::BoxFuture;
use jiff::Timestamp;

/// Makes the calls of hooks and checks.
pub trait Caller: Send + Sync + 'static {
    /// Makes one attempt. Dropping the future ends it, with everything it started. Time is tokio's.
    fn call(&self, call: Prepared) -> BoxFuture<'static, Outcome>;
}

/// One attempt at a hook or a check, with all it is made of. Its intent is stored.
#[derive(Clone)]
pub struct Prepared {
    /// The set.
    pub set: SetName,
    /// Which call it is, its key and its time.
    pub call: baton_phases::Call,
    /// As it is written, templates and all.
    pub what: What,
    /// The target's parameters, in the form the set's language wants; empty for a call made once for the phase.
    pub params: Map,
    /// What the set may do with hooks.
    pub policy: Arc<Policy>,
}

/// What is called.
#[derive(Clone)]
pub enum What {
    /// A hook before or after a phase.
    Hook(Box<Hook>),
    /// A check.
    Check(Box<Check>),
}

// === impl Prepared ===

impl Prepared {
    /// What may be told of its input: see [`What::outline`]. Of an HTTP call it is where it really goes, which a parameter may
    /// decide about.
    pub fn outline(&self, now: Timestamp) -> String {
        let occasion = Occasion {
            set: &self.set,
            phase: &self.call.phase,
            params: &self.params,
            secrets: &Secrets::new(),
            now,
            attempt: self.call.key.attempt,
            idempotency_key: &self.call.idempotency_key,
        };
        let goes = self.what.http().and_then(|call| destination(call, &occasion, &self.policy));
        goes.map_or_else(|| self.what.outline(), |origin| clipped(&origin))
    }
}

// === impl What ===

impl What {
    fn http(&self) -> Option<&HttpCall> {
        match self {
            What::Hook(hook) => hook.http.as_ref(),
            What::Check(check) => check.http.as_ref(),
        }
    }

    fn command(&self) -> Option<&CommandCall> {
        match self {
            What::Hook(hook) => hook.command.as_ref(),
            What::Check(check) => check.command.as_ref(),
        }
    }

    /// The Secrets that its text may use.
    pub fn secret_refs(&self) -> &[HookSecretRef] {
        match self {
            What::Hook(hook) => &hook.secret_refs,
            What::Check(check) => &check.secret_refs,
        }
    }

    /// What may be told of its input: where it goes or which program runs. Paths, queries, headers, bodies, arguments
    /// and variables are often credentials, and are left out.
    pub fn outline(&self) -> String {
        if let Some(call) = self.http() {
            let (scheme, rest) = call.url.split_once("://").unwrap_or(("", &call.url));
            let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
            let host = rest[..end].rsplit('@').next().unwrap_or_default();
            return clipped(&format!("{scheme}://{host}"));
        }
        let program = self.command().and_then(|call| call.command.first());
        program.map(|program| clipped(program)).unwrap_or_default()
    }
}

fn clipped(text: &str) -> String {
    baton_rollout::steps::clipped(text).to_owned()
}

#[cfg(test)]
mod tests {
    use baton_hooks::{Language, Namespace, Role, Settings};

    use super::*;

    #[test]
    fn where_a_parameter_leads_a_call_is_told_and_not_the_parameters_name() {
        let key = baton_phases::CallKey {
            rollout: "r".into(),
            generator: 0,
            phase: 0,
            role: Role::PreHook,
            place: 0,
            target: "dev-1".into(),
            attempt: 1,
        };
        let call = baton_phases::Call {
            key,
            phase: "dev".into(),
            name: "page".into(),
            idempotency_key: "k".to_owned(),
            limit: std::time::Duration::from_secs(1),
        };
        let outline = |url: &str| {
            let http = Some(HttpCall { url: url.to_owned(), ..HttpCall::default() });
            let prepared = Prepared {
                set: SetName { namespace: "argocd".to_owned(), name: "web".to_owned() },
                call: call.clone(),
                what: What::Hook(Box::new(Hook { http, ..Hook::default() })),
                params: Map::strings([("v", "10.0.0.7:8080/path-with-key")]),
                policy: Arc::new(Policy::new(
                    &Settings::default(),
                    Namespace::ControlPlane,
                    Language::Params,
                )),
            };
            prepared.outline(Timestamp::UNIX_EPOCH)
        };
        assert_eq!(outline("http://{{v}}"), "http://10.0.0.7:8080");
        assert_eq!(outline("https://{{unknown}}.example.com/x"), "https://{{unknown}}.example.com");
    }

    #[test]
    fn what_is_told_of_a_call_is_its_host_or_its_program() {
        let http = |url: &str| {
            let http = Some(HttpCall { url: url.to_owned(), ..HttpCall::default() });
            What::Hook(Box::new(Hook { http, ..Hook::default() })).outline()
        };
        assert_eq!(http("https://hooks.example.com/services/T0/secret?token=x"), "https://hooks.example.com");
        assert_eq!(http("https://user:pass@example.com:8443?x"), "https://example.com:8443");
        assert_eq!(http("https://{{name}}.example.com/x"), "https://{{name}}.example.com");
        let command = vec!["./notify".to_owned(), "--token=x".to_owned()];
        let command = Some(CommandCall { command, ..CommandCall::default() });
        assert_eq!(What::Check(Box::new(Check { command, ..Check::default() })).outline(), "./notify");
    }
}
