//! An Application that nobody has looked at yet.

use baton_api::application_status::{HealthCode, SyncCode};
use baton_rollout::live::Live;
use baton_rollout::pin::Fingerprint;

/// An Application as it was just created.
pub(crate) fn created(name: &str, uid: &str, version: u64, spec: Fingerprint) -> Live {
    Live {
        name: name.into(),
        uid: uid.into(),
        version,
        terminating: false,
        stamp: None,
        spec,
        automatic: false,
        compared: false,
        sync: SyncCode::Unknown,
        prune_only: false,
        health: HealthCode::Missing,
        ailing: None,
        reported: Vec::new(),
        error: None,
        operation: None,
        last: None,
        deployed: Vec::new(),
        refresh: false,
        nonce: None,
        answered: false,
        reconciled: None,
        closed: None,
        heals_in_order: false,
    }
}
