//! Where the rollout of a set stands, for whoever asks which Applications are at the commit it goes by.

use std::collections::BTreeMap;

use baton_api::Application;
use baton_api::names::baton::{GUARD_SUFFIX, PAUSED, ROLLOUT, SET_LABEL};
use baton_api::source::Source;
use baton_rollout::head::Head;
use baton_rollout::pin::{Fingerprint, SourceKey};
use baton_sync::normalize;
use serde_json::Value;

/// What is known of a rollout.
pub(super) struct Standing {
    paused: bool,
    head: Option<Head>,
}

// === impl Standing ===

impl Standing {
    /// That of a set; its head is among what is kept beside sets, or an annotation.
    pub(super) fn of(set: &Value, kept: &[Value]) -> Standing {
        let metadata = &set["metadata"];
        let name = format!("{}{GUARD_SUFFIX}", metadata["name"].as_str().unwrap_or_default());
        let map = kept.iter().find(|one| {
            one["kind"] == "ConfigMap"
                && one["metadata"]["name"] == *name
                && one["metadata"]["namespace"] == metadata["namespace"]
                && !one["metadata"]["labels"][SET_LABEL].is_null()
        });
        let texts: Option<BTreeMap<String, String>> = match map {
            Some(map) => serde_json::from_value(map["data"].clone()).ok(),
            None => {
                metadata["annotations"][ROLLOUT].as_str().and_then(|text| serde_json::from_str(text).ok())
            }
        };
        // That of an older set of the same name says nothing of this one.
        let head = texts.and_then(|texts| Head::read(&texts).ok());
        let head = head.filter(|head| metadata["uid"] == *head.run.set);
        let paused =
            metadata["annotations"][PAUSED] == "true" || head.as_ref().is_some_and(|head| head.run.paused);
        Standing { paused, head }
    }

    /// Why an Application may not be at the commit that its rollout goes by, or that commit may be an old one.
    pub(super) fn in_the_way(&self, application: &Value) -> Option<String> {
        let Some(head) = &self.head else {
            return Some("nothing tells which commit its rollout goes by".to_owned());
        };
        if self.paused {
            return Some("its rollout is paused, and a newer commit may wait".to_owned());
        }
        let uid = application["metadata"]["uid"].as_str().unwrap_or_default();
        let is_done = head.row(Fingerprint::of([uid])).is_some_and(|row| row.done.is_some());
        if is_done && is_there(head, application) {
            return None;
        }
        Some(format!("run {} of its rollout has not brought it to its commit", head.run.seq))
    }
}

/// Whether the last comparison was with what the run resolved each source to.
fn is_there(head: &Head, application: &Value) -> bool {
    let Ok(application) = serde_json::from_value::<Application>(application.clone()) else { return false };
    // As the controller reads it.
    let spec = normalize::normalized(&application.spec).unwrap_or(application.spec);
    let sync = application.status.sync;
    let sources = normalize::sources(&spec);
    let reported = match sync.revisions.as_slice() {
        [] => std::slice::from_ref(&sync.revision),
        several => several,
    };
    let accepts = |(source, reported): (&Source, &String)| {
        let resolved = head.revisions.get(&key_of(source));
        resolved.is_some_and(|resolution| resolution.accept.contains(reported.as_str()))
    };
    sources.len() == reported.len() && sources.iter().zip(reported).all(accepts)
}

fn key_of(source: &Source) -> SourceKey {
    SourceKey {
        repo: source.repo_url.as_str().into(),
        target: source.target_revision.as_str().into(),
        chart: source.chart.as_str().into(),
        tag_prefix: source.tag_prefix.as_str().into(),
    }
}
