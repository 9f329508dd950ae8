//! Deletion of an Application, step by step.

use std::collections::BTreeMap;

use baton_api::object::Object;
use baton_sync::action::{Action, Outcome};
use baton_sync::deletion::{self, Cluster, Decision, DeletionSettings, Observation, Rendered};
use baton_sync::hooks::HookType;
use baton_sync::normalize::Project;
use serde_json::{Value, json};

use crate::cluster::health;
use crate::decisions::application;
use crate::play::{Compared, DESTINATION, Play, look_up};
use crate::table::{compare, field, optional};

const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// Decisions within which every step settles.
const TURNS: usize = 30;

#[test]
fn deletions_of_applications() {
    compare("deletion", |case| {
        let mut play = Play::new(case, application(&case["application"]), "2026-01-02T04:00:00Z");
        let passes: Vec<Value> = field(case, "passes");
        json!(passes.iter().map(|pass| go(&mut play, pass)).collect::<Vec<_>>())
    });
}

/// Lets happen what happens before a step, then decides until nothing more comes of it.
fn go(play: &mut Play, step: &Value) -> Value {
    play.cluster.health.extend(optional::<BTreeMap<String, String>>(step, "health"));
    for name in optional::<Vec<String>>(step, "gone") {
        play.cluster.forget(&name);
    }
    if let Some(time) = step["approve"].as_str() {
        let annotations = play.application.metadata.annotations.get_or_insert_default();
        annotations.insert(APPROVED.to_owned(), time.to_owned());
    }
    play.cluster.failures = optional(step, "fail");
    play.cluster.calls.clear();
    for _ in 0..TURNS {
        let before = (play.cluster.left(), play.application.metadata.finalizers.clone());
        let decision = decide(play);
        let found = decision.found.iter().find(|found| found.kind == "DeletionError");
        let found = found.map(|found| found.message.clone());
        let error = found.or(perform(play, &decision));
        let after = (play.cluster.left(), play.application.metadata.finalizers.clone());
        if error.is_some() {
            return told(play, error);
        }
        if before == after {
            return told(play, None);
        }
    }
    panic!("does not settle: {:?}", play.cluster.left());
}

fn decide(play: &Play) -> Decision {
    let served = play.cluster.served();
    let kinds = |api_version: &str, kind: &str| look_up(&served, api_version, kind);
    let Compared { targets, .. } = play.compared(&served);
    let live = play.managed();
    let hooks = match deletion::stage(&play.application).needs_hooks() {
        None => Rendered::Not,
        Some(HookType::PreDelete) => Rendered::Hooks(&targets.pre_delete),
        Some(_) => Rendered::Hooks(&targets.post_delete),
    };
    deletion::decide(&Observation {
        application: &play.application,
        project: Project::Found(&play.rules),
        own_namespace: "fake-argocd-ns",
        cluster: Cluster::Ready(DESTINATION),
        live: &live,
        kinds: &kinds,
        hooks,
        health: &|object| Ok(health(object, &play.cluster.health)),
        guarded_in_namespace: &|_| Vec::new(),
        settings: &DeletionSettings::default(),
        now: play.now,
    })
}

/// Carries a decision out: what went wrong, if anything did.
fn perform(play: &mut Play, decision: &Decision) -> Option<String> {
    let actions: Vec<Action> =
        decision.verbs.iter().enumerate().map(|(id, verb)| Action { id, verb: verb.clone() }).collect();
    let outcomes: Vec<(usize, Outcome)> = play.cluster.perform(vec![actions]);
    let mut failures =
        outcomes.iter().filter_map(|(id, outcome)| deletion::failure(&decision.verbs[*id], outcome));
    if let Some(failure) = failures.next() {
        return Some(failure.message);
    }
    if let Some(finalizers) = &decision.finalizers {
        play.application.metadata.finalizers = Some(finalizers.clone());
    }
    None
}

fn told(play: &Play, error: Option<String>) -> Value {
    let hooks: Vec<String> =
        play.manifests.iter().map(|hook| format!("{}/shop/{}", hook.kind(), hook.name())).collect();
    // How dependants of hooks go is not told, nor that hooks are held until their outcome is recorded.
    let mut calls: Vec<String> = play
        .cluster
        .calls
        .iter()
        .filter(|call| !call.starts_with("release "))
        .map(|call| match hooks.iter().any(|hook| call.contains(hook.as_str())) {
            true => call.replace(" Background", "").replace("apply ", "create "),
            false => call.clone(),
        })
        .map(|call| call.replace("/shop/", "/").replace("/other/", "/").replace("/fake-argocd-ns/", "/"))
        .collect();
    calls.sort();
    let left: Vec<String> = play
        .cluster
        .left()
        .iter()
        .map(|left| left.replace(" held", "").replace("/shop/", "/").replace("/other/", "/"))
        .map(|left| left.replace("/fake-argocd-ns/", "/"))
        .collect();
    let mut finalizers = play.application.metadata.finalizers.clone().unwrap_or_default();
    finalizers.sort();
    let mut told = json!({
        "calls": calls,
        "left": left,
        "finalizers": finalizers,
    });
    if let Some(error) = error {
        told["error"] = json!(error);
    }
    told
}
