//! Calls as they are made in earnest: Secrets read, templates filled in, a place at the gate, and out.

use std::sync::Arc;

use baton_hooks::{Call, Fault, Gate, Occasion, Outcome, Role, Runner, Verdict, prepare_check, prepare_hook};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::caller::{Caller, Prepared, What};
use super::secrets;
use crate::clock::Clock;
use crate::settings::HookSettings;

/// Makes calls over the network and as processes. Clones share their places: one is enough for a process.
#[derive(Clone)]
pub struct HookCaller {
    client: Client,
    runner: Arc<Runner>,
    gate: Gate,
    clock: Clock,
}

// === impl HookCaller ===

impl HookCaller {
    /// A caller within an operator's settings. `client` reads the Secrets of hooks.
    ///
    /// # Errors
    /// The file of further certificate authorities cannot be used.
    pub fn new(client: Client, settings: &HookSettings, clock: Clock) -> std::io::Result<HookCaller> {
        let gate = Gate::new(&settings.calls.limits);
        let runner = Arc::new(Runner::new(settings.calls.clone())?);
        Ok(HookCaller { client, runner, gate, clock })
    }

    async fn make(self, prepared: Prepared) -> Outcome {
        let set = prepared.set.to_string();
        let role = prepared.call.key.role;
        let _pass = match role {
            Role::Check => self.gate.check(&set).await,
            Role::PreHook | Role::PostHook => self.gate.hook(&set).await,
        };
        let (now, begun) = (self.clock.now(), Instant::now());
        match self.filled(&prepared, now).await {
            Ok(call) => self.runner.run(&call, now, &CancellationToken::new()).await,
            Err(result) => Outcome {
                started: now,
                duration: begun.elapsed(),
                attempt: prepared.call.key.attempt,
                result,
                code: None,
                output: String::new(),
            },
        }
    }

    /// The call with its templates filled in. Waiting for the API counts as time of the call.
    async fn filled(&self, prepared: &Prepared, now: Timestamp) -> Result<Call, Verdict> {
        let (limit, begun) = (prepared.call.limit, Instant::now());
        let reading = secrets::read(&self.client, &prepared.set.namespace, prepared.what.secret_refs());
        let secrets = tokio::time::timeout(limit, reading).await;
        let secrets = secrets.map_err(|_| Verdict::Timeout { after: limit })??;
        let occasion = Occasion {
            set: &prepared.set,
            phase: &prepared.call.phase,
            params: &prepared.params,
            secrets: &secrets,
            now,
            attempt: prepared.call.key.attempt,
            idempotency_key: &prepared.call.idempotency_key,
        };
        let call = match &prepared.what {
            What::Hook(hook) => prepare_hook(hook, prepared.call.key.role, &occasion, &prepared.policy),
            What::Check(check) => prepare_check(check, &occasion, &prepared.policy),
        };
        let refused = |fault: Fault| Verdict::Refused(fault);
        let mut call = call.map_err(refused)?;
        call.timeout = call.timeout.min(limit.saturating_sub(begun.elapsed()));
        Ok(call)
    }
}

impl Caller for HookCaller {
    fn call(&self, call: Prepared) -> BoxFuture<'static, Outcome> {
        self.clone().make(call).boxed()
    }
}
