//! What a comparison says of each resource, and of the whole.

use baton_api::health::Health;
use baton_api::object::Object;
use baton_sync::app_health::aggregate;
use baton_sync::resource_status::{Comparison, judge};
use baton_sync::targets::Pair;
use serde_json::{Value, json};

use crate::cluster::health;
use crate::decisions::application;
use crate::play::{Compared, Play, look_up};
use crate::table::{compare, field, optional};

#[test]
fn health_of_applications() {
    compare("app_health", |case| {
        let resources: Vec<Value> = field(case, "resources");
        let pairs: Vec<Pair> = resources
            .iter()
            .map(|resource| {
                let side = |name: &str| Some(resource[name].clone()).filter(|side| !side.is_null());
                let (target, live) = (side("target"), side("live"));
                let object = live.as_ref().or(target.as_ref()).expect("an object on either side");
                let key = object.key();
                Pair { key, target: target.map(Into::into), live: live.map(Into::into), modified: false }
            })
            .collect();
        let found = aggregate(&application(&Value::Null), &pairs, &|object| Ok(annotated_health(object)));
        let rows: Vec<Value> = found
            .parts
            .iter()
            .map(|part| part.as_ref().map_or(Value::Null, |health| json!(health.code)))
            .collect();
        json!({
            "status": found.whole.code,
            "message": found.whole.message,
            "error": found.error,
            "rows": rows,
        })
    });
}

/// Health as an annotation tells it.
fn annotated_health(object: &Value) -> Option<Health> {
    let kind = if object.kind() == "Application" { "Widget" } else { object.kind() };
    let mut judged = object.clone();
    judged["kind"] = json!(kind);
    let told = object.annotation("story/health").map(|code| format!("{code}: m"));
    let name = format!("{kind}/{}", object.name());
    health(&judged, &told.into_iter().map(|told| (name.clone(), told)).collect())
}

#[test]
fn rows_of_comparisons() {
    compare("rows", |case| {
        let play = Play::new(case, application(&case["application"]), "2026-01-02T03:04:05Z");
        let served = play.cluster.served();
        let Compared { targets, pairs } = play.compared(&served);
        let told = optional(case, "health");
        let found = judge(&Comparison {
            application: &play.application,
            pairs: &pairs,
            hooks: &targets.hooks,
            kinds: &|api_version, kind| look_up(&served, api_version, kind),
            project: &play.rules,
            tracking: &play.settings.tracking,
            health: &|object| Ok(health(object, &told)),
            failed: false,
            now: play.now,
        });
        let rows: Vec<Value> = found
            .resources
            .iter()
            .map(|row| {
                let mut row = json!(row);
                // A field of our own.
                row.as_object_mut().expect("a map").remove("requiresDeletionApproval");
                row
            })
            .collect();
        let of_targets = targets.conditions.iter().map(|found| format!("{}: {}", found.kind, found.message));
        let of_rows = found.found.iter().map(|found| format!("{}: {}", found.kind, found.message));
        json!({
            "sync": found.sync,
            "health": found.health.code,
            "healthMessage": found.health.message,
            "rows": rows,
            "conditions": of_targets.chain(of_rows).collect::<Vec<_>>(),
            "preDelete": !targets.pre_delete.is_empty(),
            "postDelete": !targets.post_delete.is_empty(),
        })
    });
}
