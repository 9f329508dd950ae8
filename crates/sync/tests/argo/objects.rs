//! What annotations of an object mean, and in which order objects are synced.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_api::application_status::SyncPhase;
use baton_api::object::{Object, ResourceKey};
use baton_sync::approval::{guarded, spec_defaults};
use baton_sync::hooks::{self, DeletePolicy, HookType};
use baton_sync::options::Options;
use baton_sync::order::arrange;
use baton_sync::task::Task;
use baton_sync::tracking::{Method, Tracking, TrackingId};
use baton_sync::wave;
use serde_json::{Map, Value, json};

use crate::decisions::application;
use crate::kinds;
use crate::table::{compare, field, optional};

fn annotated(case: &Value) -> Value {
    object(&case["annotations"], &case["labels"])
}

fn object(annotations: &Value, labels: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    for (name, value) in [("annotations", annotations), ("labels", labels)] {
        if !value.is_null() {
            object["metadata"][name] = value.clone();
        }
    }
    object
}

#[test]
fn waves() {
    compare("waves", |case| json!(wave::of(&annotated(case))));
}

#[test]
fn hook_types_and_policies() {
    compare("hooks", |case| {
        let object = annotated(case);
        let types: Vec<&str> = hooks::types(&object).into_iter().map(type_name).collect();
        let policies: Vec<&str> = hooks::delete_policies(&object).into_iter().map(policy_name).collect();
        json!({
            "hook": hooks::is_hook(&object),
            "skip": hooks::is_skipped(&object),
            "ignored": hooks::is_ignored(&object),
            "types": types,
            "policies": policies,
        })
    });
}

fn type_name(hook: HookType) -> &'static str {
    match hook {
        HookType::PreSync => "PreSync",
        HookType::Sync => "Sync",
        HookType::PostSync => "PostSync",
        HookType::SyncFail => "SyncFail",
        HookType::Skip => "Skip",
        HookType::PreDelete => "PreDelete",
        HookType::PostDelete => "PostDelete",
    }
}

fn policy_name(policy: DeletePolicy) -> &'static str {
    match policy {
        DeletePolicy::HookSucceeded => "HookSucceeded",
        DeletePolicy::HookFailed => "HookFailed",
        DeletePolicy::BeforeHookCreation => "BeforeHookCreation",
    }
}

#[test]
fn sync_options() {
    compare("options", |case| {
        let object = object(&json!({"argocd.argoproj.io/sync-options": case["csv"]}), &Value::Null);
        let options = Options::of(&object);
        let keys: Vec<String> = field(case, "keys");
        let values: Map<String, Value> = keys
            .into_iter()
            .filter_map(|key| options.value(&key).map(|value| (key.clone(), json!(value))))
            .collect();
        let mut flags: Vec<String> = field(case, "flags");
        flags.retain(|flag| options.has(flag));
        json!({"values": values, "flags": flags})
    });
}

#[test]
fn parsed_tracking_ids() {
    compare("tracking_parse", |case| {
        TrackingId::parse(&field::<String>(case, "id")).map_or(Value::Null, |id| {
            json!({"app": id.instance, "group": id.group, "kind": id.kind, "namespace": id.namespace, "name": id.name})
        })
    });
}

fn tracking(case: &Value) -> Tracking {
    Tracking {
        method: Method::read(&optional::<String>(case, "method")),
        installation: optional(case, "installation"),
        ..Tracking::default()
    }
}

#[test]
fn stamped_objects() {
    compare("tracking_stamp", |case| {
        let mut object = case["object"].clone();
        let (instance, namespace): (String, String) = (field(case, "instance"), field(case, "namespace"));
        tracking(case).stamp(&mut object, &instance, &namespace);
        let of = |name: &str| match object["metadata"].get(name) {
            Some(Value::Object(map)) if !map.is_empty() => json!(map),
            _ => Value::Null,
        };
        json!({"annotations": of("annotations"), "labels": of("labels")})
    });
}

#[test]
fn owners_of_objects() {
    compare("tracking_owner", |case| json!(tracking(case).owner_of(&annotated(case)).unwrap_or_default()));
}

#[test]
fn objects_that_speak_of_themselves() {
    compare("self_reference", |case| {
        let side = |name: &str| Some(&case[name]).filter(|value| !value.is_null());
        json!(tracking(case).refers_to_itself(side("live"), side("target")))
    });
}

#[test]
fn deletions_that_ask_for_approval() {
    compare("confirmation", |case| {
        let mut policy = json!({});
        if !case["syncOptions"].is_null() {
            policy["syncOptions"] = case["syncOptions"].clone();
        }
        let application = application(&json!({"spec": {"syncPolicy": policy}}));
        let side = |name: &str| {
            let options = case[name].as_str()?;
            Some(object(&json!({"argocd.argoproj.io/sync-options": options}), &Value::Null))
        };
        let (live, target) = (side("live"), side("target"));
        json!(guarded(live.as_ref(), target.as_ref(), &spec_defaults(&application)))
    });
}

#[test]
fn order_of_tasks() {
    compare("order", |case| {
        let mut tasks = Vec::new();
        let objects: Vec<Value> = field(case, "objects");
        let mut seen = BTreeSet::new();
        for short in &objects {
            let object = Arc::new(expand(short));
            let key = object.key();
            let (target, live) = match short["at"].as_str() {
                Some("live") => (None, Some(object.clone())),
                Some("both") => (Some(object.clone()), Some(object.clone())),
                _ => (Some(object.clone()), None),
            };
            if hooks::is_hook(&object) {
                let phases = if target.is_some() { hooks::phases(&object) } else { Vec::new() };
                tasks.extend(phases.into_iter().map(|phase| task(&key, phase, target.clone(), live.clone())));
            } else {
                tasks.push(task(&key, SyncPhase::Sync, target, live));
            }
            assert!(seen.insert(key), "names are unique");
        }
        arrange(&mut tasks, optional(case, "pruneLast"));
        let told: Vec<String> = tasks
            .iter()
            .map(|task| {
                let prune = if task.is_prune() { " prune" } else { "" };
                format!("{} {} {}/{}{prune}", task.phase, task.wave, task.key.kind, task.key.name)
            })
            .collect();
        json!(told)
    });
}

fn task(key: &ResourceKey, phase: SyncPhase, target: Option<Arc<Value>>, live: Option<Arc<Value>>) -> Task {
    let object = target.as_deref().or(live.as_deref()).expect("an object on either side");
    let mut namespace = object.namespace().to_owned();
    if target.is_some() && namespace.is_empty() {
        namespace = "shop".to_owned();
    }
    Task {
        key: key.clone(),
        phase,
        wave: wave::of(object),
        namespace,
        modified: true,
        skip_dry_run: false,
        status: Default::default(),
        state: Default::default(),
        message: String::new(),
        target,
        live,
    }
}

/// An object of the table of orders in full.
fn expand(short: &Value) -> Value {
    let kind = short["kind"].as_str().expect("a kind");
    let kind = kinds::of(kind).unwrap_or_else(|| panic!("{kind} is a kind"));
    let mut object =
        json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": short["name"]}});
    if kind.namespaced {
        object["metadata"]["namespace"] = short["ns"].clone();
    }
    for (name, annotation) in [("wave", "sync-wave"), ("hook", "hook"), ("opts", "sync-options")] {
        if !short[name].is_null() {
            object["metadata"]["annotations"][format!("argocd.argoproj.io/{annotation}")] =
                short[name].clone();
        }
    }
    if !short["of"].is_null() {
        object["spec"] = json!({"group": "story.test", "names": {"kind": short["of"]}});
    }
    object
}
