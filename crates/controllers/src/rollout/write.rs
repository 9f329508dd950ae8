//! The one patch that each decided write becomes.

use baton_api::application::{ApplicationSpec, Info, RetryStrategy};
use baton_api::application_status::OperationPhase;
use baton_api::names::application::{REFRESH, REFRESH_TIMESTAMP};
use baton_api::names::baton::{COMPARED, PIN};
use baton_api::operation::{Operation, OperationInitiator, SyncOperation};
use baton_rollout::head::Intent;
use baton_rollout::machine::Write;
use baton_rules::{Rule, holds};
use baton_sync::normalize;
use serde_json::{Value, json};

use super::board::Template;
use crate::application_set::{Automation, CompareError, IgnoreRules, ordered_patch};

/// Who asks for the operations of rollouts, as with Argo CD.
const ASKS: &str = "applicationset-controller";
/// How often an operation is tried where the Application does not say.
const ATTEMPTS: i64 = 5;

/// What a patch is made of, beside the write itself.
pub(crate) struct Ground<'a> {
    /// Name of the set.
    pub(crate) set: &'a str,
    /// The live specification at the version the write was decided on.
    pub(crate) live: &'a Value,
    /// What is wanted; none for an Application that is no longer, or may not be changed.
    pub(crate) template: Option<&'a Template>,
    /// Fields that are left alone.
    pub(crate) ignored: &'a IgnoreRules,
    /// How automatic sync is switched off.
    pub(crate) automation: Automation,
}

/// The merge patch of a write.
///
/// # Errors
/// If the live specification, or the wanted one, cannot be read.
pub(crate) fn patch(write: &Write, ground: &Ground<'_>) -> Result<Value, CompareError> {
    let read = |text: &str| serde_json::from_str::<ApplicationSpec>(text).map_err(CompareError::Desired);
    let template = ground.template.map(|template| read(&template.spec)).transpose()?;
    let mut annotations = json!({PIN: write.stamp.to_string()});
    if let Some(nonce) = &write.nonce {
        let level = if write.what == Intent::HardRefresh { "hard" } else { "normal" };
        annotations[REFRESH] = level.into();
        annotations[REFRESH_TIMESTAMP] = (&**nonce).into();
        // What answered a request of this name before is no answer to this one.
        annotations[COMPARED] = Value::Null;
    }
    let mut patch = json!({"metadata": {"annotations": annotations}});
    if write.spec || write.what == Intent::Arm {
        let wanted = template.as_ref().filter(|_| write.spec);
        let changes = ordered_patch(&write.name, ground.live, wanted, ground.ignored, ground.automation)?;
        if let Some(changes) = changes {
            patch["spec"] = changes;
        }
    }
    match write.what {
        Intent::Start | Intent::Heal => {
            let live: ApplicationSpec =
                serde::Deserialize::deserialize(ground.live).map_err(CompareError::Live)?;
            let after = if write.spec { template.as_ref().unwrap_or(&live) } else { &live };
            let operation = operation(write, ground.set, after, template.as_ref().unwrap_or(&live));
            patch["operation"] = json!(operation);
            // Application controllers merge how far an operation is into what is told of the one before: what of that
            // one is not in this one, a selection of resources say, would seem to be of this one.
            patch["status"] = json!({"operationState": null});
        }
        Intent::Terminate => {
            patch["status"] = json!({"operationState": {"phase": OperationPhase::Terminating.as_str()}});
        }
        Intent::Arm | Intent::Refresh | Intent::HardRefresh | Intent::Spec | Intent::Fence => {}
    }
    Ok(patch)
}

/// The operation of a write: full, at its revisions, never at newer ones.
fn operation(write: &Write, set: &str, spec: &ApplicationSpec, template: &ApplicationSpec) -> Operation {
    let policy = spec.sync_policy.clone().unwrap_or_default();
    let automated = template.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    let prunes = template.auto_syncs() && automated.is_some_and(|automated| automated.prune == Some(true));
    let revisions = || write.revisions.iter().map(|revision| revision.to_string());
    let mut sync =
        SyncOperation { prune: prunes, sync_options: policy.sync_options, ..SyncOperation::default() };
    match normalize::has_several_sources(spec) {
        true => sync.revisions = revisions().collect(),
        false => sync.revision = revisions().next().unwrap_or_default(),
    }
    let retry = policy.retry.unwrap_or_else(|| RetryStrategy { limit: ATTEMPTS, ..RetryStrategy::default() });
    let verb = if write.what == Intent::Heal { "heals" } else { "syncs" };
    let reason =
        format!("Run {} of the rollout of ApplicationSet {set} {verb} this Application", write.stamp.run);
    let note = |name: &str, value: String| Info { name: name.to_owned(), value };
    Operation {
        initiated_by: OperationInitiator { username: ASKS.to_owned(), automated: true },
        info: vec![note("Reason", reason), note(PIN, write.stamp.to_string())],
        retry: RetryStrategy { refresh: retry.refresh && !holds(Rule::PinnedOperations), ..retry },
        sync: Some(sync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_rollout::pin::Fingerprint;
    use baton_rollout::stamp::Stamp;

    fn write(what: Intent, spec: bool, revisions: &[&str]) -> Write {
        Write {
            name: "web".into(),
            uid: "u".into(),
            version: 7,
            what,
            stamp: Stamp { set: "s".into(), run: 2, n: 3, pin: Fingerprint::of(["p"]) },
            spec,
            revisions: revisions.iter().map(|revision| (*revision).into()).collect(),
            nonce: what.asks_for_comparison().then(|| "2-3".into()),
        }
    }

    fn live() -> Value {
        json!({
            "project": "default", "destination": {"name": "east"},
            "source": {"repoURL": "r", "path": "old", "targetRevision": "main"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["Old=true"]},
            "fromTheFuture": 1,
        })
    }

    fn wanted() -> Value {
        let mut wanted = live();
        wanted["source"]["path"] = "new".into();
        wanted["syncPolicy"]["syncOptions"] = json!(["New=true"]);
        wanted
    }

    fn made(write: &Write, ignored: Value) -> Value {
        let application = json!({"metadata": {"name": "web"}, "spec": wanted()});
        let rules: Vec<_> = serde_json::from_value(ignored).expect("rules");
        let ignored = IgnoreRules::read(&rules).expect("readable rules");
        let template = Template::read(&application, &ignored).expect("an Application");
        let ground = Ground {
            set: "fleet",
            live: &live(),
            template: Some(&template),
            ignored: &ignored,
            automation: Automation::Disabled,
        };
        patch(write, &ground).expect("a patch")
    }

    #[test]
    fn arming_switches_automatic_sync_off_and_asks_for_a_comparison() {
        let pin = write(Intent::Arm, false, &[]).stamp.to_string();
        assert_eq!(
            made(&write(Intent::Arm, false, &[]), json!([])),
            json!({
                "metadata": {"annotations": {PIN: pin, REFRESH: "normal", REFRESH_TIMESTAMP: "2-3", COMPARED: null}},
                "spec": {"syncPolicy": {"automated": {"enabled": false}}},
            })
        );
    }

    #[test]
    fn a_start_is_specification_stamp_and_operation_together() {
        let made =
            made(&write(Intent::Start, true, &["abc"]), json!([{"jsonPointers": ["/spec/source/path"]}]));
        let expected = json!({"syncPolicy": {"automated": {"enabled": false}, "syncOptions": ["New=true"]}});
        assert_eq!(made["spec"], expected, "ignored fields stay as they are");
        assert_eq!(
            made["operation"]["sync"],
            json!({"revision": "abc", "prune": true, "syncOptions": ["New=true"]})
        );
        assert_eq!(made["operation"]["retry"], json!({"limit": 5}));
        assert_eq!(made["operation"]["initiatedBy"], json!({"username": ASKS, "automated": true}));
        let stamp = write(Intent::Start, true, &[]).stamp.to_string();
        assert_eq!(made["operation"]["info"][1], json!({"name": PIN, "value": stamp}));
        assert_eq!(made["metadata"]["annotations"], json!({PIN: stamp}), "no comparison is asked for");
    }

    #[test]
    fn healing_where_it_is_leaves_the_specification_alone() {
        let made = made(&write(Intent::Heal, false, &["old"]), json!([]));
        assert_eq!(made.get("spec"), None);
        assert_eq!(
            made["operation"]["sync"],
            json!({"revision": "old", "prune": true, "syncOptions": ["Old=true"]})
        );
    }

    #[test]
    fn a_fence_is_nothing_but_the_stamp() {
        let fence = write(Intent::Fence, false, &[]);
        let expected = json!({"metadata": {"annotations": {PIN: fence.stamp.to_string()}}});
        assert_eq!(made(&fence, json!([])), expected);
    }
}
