//! ControllerRevisions: the template history of StatefulSets and DaemonSets.

use crate::Kind;
use crate::decision::{Decision, Removal};
use crate::family::Family;
use crate::naming::template_hash;
use crate::object::{at, count, deleting, int, label, map, name, namespace, owner_reference};
use crate::ownership::claim;
use serde_json::{Value, json};
use std::collections::HashSet;

/// On a ControllerRevision and on pods: which revision this is.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// The stored revisions of one owner and the hash of its current template.
pub(crate) struct Revisions<'a> {
    pub(crate) update_hash: String,
    stored: Vec<&'a Value>,
}

// === impl Revisions ===

impl<'a> Revisions<'a> {
    /// Reads the history and makes sure that the current template is its newest entry.
    pub(crate) fn sync(decision: &mut Decision, owner: &Value, family: &Family<'a>) -> Self {
        let mut stored = claim(decision, owner, family, Kind::ControllerRevision);
        stored.retain(|revision| !deleting(revision));
        stored.sort_by_key(|revision| (number(revision), name(revision)));
        let update_hash = template_hash(&owner["spec"]["template"]);
        let newest = stored.last().map_or(0, |revision| number(revision));
        match stored.iter().find(|revision| label(revision, REVISION_HASH) == update_hash) {
            None => decision.create(make(owner, &update_hash, newest.saturating_add(1))),
            Some(current) if number(current) < newest => {
                decision.patch(current, json!({"revision": newest.saturating_add(1)}));
            }
            Some(_) => {}
        }
        Self { update_hash, stored }
    }

    /// The template stored under the revision called `revision_name`.
    pub(crate) fn template(&self, revision_name: &str) -> Option<&'a Value> {
        let revision = self.stored.iter().find(|revision| name(revision) == revision_name)?;
        Some(at(revision, &["data", "spec", "template"])).filter(|template| template.is_object())
    }

    /// Deletes the oldest revisions beyond the owner's limit, never one whose hash is in `live`.
    pub(crate) fn trim(&self, decision: &mut Decision, owner: &Value, live: &HashSet<&str>) {
        let limit = int(owner, &["spec", "revisionHistoryLimit"]).unwrap_or(10).max(0);
        let spare: Vec<_> =
            self.stored.iter().filter(|revision| !live.contains(label(revision, REVISION_HASH))).collect();
        let surplus = spare.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for revision in spare.into_iter().take(surplus) {
            decision.delete(revision, Removal::Graceful);
        }
    }
}

fn number(revision: &Value) -> i64 {
    count(revision, &["revision"])
}

fn make(owner: &Value, hash: &str, number: i64) -> Value {
    let mut labels = map(owner, &["spec", "template", "metadata", "labels"]);
    labels.insert(REVISION_HASH.into(), hash.into());
    let mut template = map(owner, &["spec", "template"]);
    // `kubectl rollout undo` applies the data as a strategic merge patch.
    template.insert("$patch".into(), "replace".into());
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{}-{hash}", name(owner)),
            "namespace": namespace(owner),
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "revision": number,
        "data": {"spec": {"template": template}},
    })
}
