//! The inbox: seen, approved, rejected, each once and as it was seen.

use std::sync::Arc;

use baton_rollout::fuse;
use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

async fn inbox(scene: &Scene, who: Who) -> Vec<Value> {
    scene.get(who, "/api/v1/approvals").await.json()["items"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn what_waits_is_shown_to_whoever_may_see_it() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let items = inbox(&scene, Who::Admin).await;
    assert_eq!(items.len(), 1);
    let item = &items[0];
    assert_eq!(
        (item["kind"].as_str(), item["requestedBy"].as_str(), item["allowed"].as_bool()),
        (Some("prune"), Some("alice"), Some(true))
    );
    assert_eq!(item["object"], json!({"kind": "Application", "namespace": "argocd", "name": "web-dev"}));
    assert_eq!(item["resources"].as_array().map(Vec::len), Some(1));
    let denied = inbox(&scene, Who::Reader).await;
    assert_eq!(denied[0]["allowed"], false);
    assert!(denied[0]["whyNot"].as_str().is_some_and(|why| why.contains("approve-deletion")), "{denied:?}");
}

#[tokio::test]
async fn an_approval_is_bound_to_what_was_seen_and_bears_a_name() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let item = inbox(&scene, Who::Admin).await.remove(0);
    let approve = |who: Who, hash: Value| {
        scene.call(
            who,
            "POST",
            "/api/v1/approvals/approve",
            json!({"items": [{"id": item["id"], "setHash": hash}], "reason": "ok"}),
        )
    };
    let stale = approve(Who::Admin, json!("other")).await.json();
    assert_eq!(stale["items"][0]["ok"], false);
    assert_eq!(stale["items"][0]["message"], "what waits has changed since: look at it again");
    for who in [Who::Reader, Who::Role] {
        let denied = approve(who, item["setHash"].clone()).await;
        assert_eq!(denied.status, 403);
        assert!(denied.message().starts_with("permission denied"), "{}", denied.text);
    }
    let path = "/api/v1/namespaces/shop/configmaps/settings";
    assert!(
        scene.stored(path).await["metadata"]["annotations"].get("baton.dev/approval").is_none(),
        "nothing was written"
    );
    let done = approve(Who::Admin, item["setHash"].clone()).await.json();
    assert_eq!(done["items"][0]["ok"], true, "{done}");
    let annotations = scene.stored(path).await["metadata"]["annotations"].clone();
    assert_eq!(annotations["argocd.argoproj.io/deletion-approved"], "true");
    let grant: Value =
        serde_json::from_str(annotations["baton.dev/approval"].as_str().expect("a grant")).expect("JSON");
    assert_eq!(
        (grant["actor"].as_str(), grant["operation"].as_str()),
        (Some("admin"), Some("2026-01-01T00:00:00Z"))
    );
    let secret = scene.stored("/api/v1/namespaces/shop/secrets/keys").await;
    assert!(
        secret["metadata"]["annotations"].get("baton.dev/approval").is_none(),
        "only what waited is approved"
    );
}

#[tokio::test]
async fn a_rejection_needs_a_reason_and_ends_the_sync() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let item = inbox(&scene, Who::Admin).await.remove(0);
    let items = json!([{"id": item["id"], "setHash": item["setHash"]}]);
    let path = "/api/v1/approvals/reject";
    assert_eq!(scene.call(Who::Admin, "POST", path, json!({"items": items})).await.status, 400);
    let answer =
        scene.call(Who::Admin, "POST", path, json!({"items": items, "reason": "not today"})).await.json();
    assert_eq!(answer["items"][0]["ok"], true, "{answer}");
    let stored = scene.stored("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-dev").await;
    assert_eq!(stored["status"]["operationState"]["phase"], "Terminating");
    let nonsense = json!({"items": [{"id": "bm8", "setHash": ""}, items[0]], "reason": "x"});
    let answer = scene.call(Who::Admin, "POST", path, nonsense).await.json();
    assert_eq!(answer["items"][0], json!({"id": "bm8", "ok": false, "message": "permission denied"}));
}

#[tokio::test]
async fn one_resource_is_approved_by_its_action() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let run = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "namespace": "shop", "resourceName": name, "action": "approve-deletion"});
    let path = "/api/v1/applications/web-dev/resource/actions/v2";
    let list = "/api/v1/applications/web-dev/resource/actions?kind=ConfigMap&version=v1&namespace=shop&resourceName=settings";
    assert_eq!(scene.get(Who::Reader, list).await.json()["actions"][0]["name"], "approve-deletion");
    assert_eq!(scene.call(Who::Role, "POST", path, run("settings")).await.status, 403);
    assert_eq!(scene.call(Who::Admin, "POST", path, run("other")).await.status, 400);
    assert_eq!(scene.call(Who::Admin, "POST", path, run("settings")).await.status, 200);
    let stored = scene.stored("/api/v1/namespaces/shop/configmaps/settings").await;
    assert_eq!(stored["metadata"]["annotations"]["argocd.argoproj.io/deletion-approved"], "true");
}

const SET: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/web";
const APPLICATION: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-dev";
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";

/// Has the fuse hold a mass deletion, and a phase stop.
async fn hold(scene: &Scene) {
    let doomed: Vec<(Arc<str>, Arc<str>)> =
        ["a", "b", "c"].map(|name| (name.into(), format!("uid-{name}").into())).to_vec();
    let status = json!({"status": {
        "conditions": [{"type": "DeletionHeld", "status": "True", "reason": "DeletionFuse",
            "message": fuse::message("web", 4, &doomed), "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "phases": [{"generator": 0, "rolloutID": "r1", "state": "Failed", "currentPhase": 0, "phases": [
            {"name": "canary", "state": "Failed", "failure": {"reason": "Hook", "message": "no", "action": "stop"}}]}],
    }});
    scene.patch(&format!("{SET}/status"), &status).await;
    scene
        .until(Who::Admin, "/api/v1/approvals", |list| {
            list["items"].as_array().is_some_and(|items| items.len() == 3)
        })
        .await;
}

async fn of_kind(scene: &Scene, kind: &str) -> Value {
    let items = inbox(scene, Who::Admin).await;
    let found =
        items.into_iter().find(|one| one["kind"] == kind).unwrap_or_else(|| panic!("no {kind} waits"));
    json!({"id": found["id"], "setHash": found["setHash"]})
}

async fn annotations(scene: &Scene, path: &str) -> Value {
    scene.stored(path).await["metadata"]["annotations"].take()
}

#[tokio::test]
async fn a_mass_deletion_and_a_stopped_phase_are_approved_by_whoever_may_act_on_the_set() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    hold(&scene).await;
    let (fuse, phase) = (of_kind(&scene, "fuse").await, of_kind(&scene, "phase").await);
    let path = "/api/v1/approvals/approve";
    for item in [&fuse, &phase] {
        let answer = scene.call(Who::Reader, "POST", path, json!({"items": [item]})).await;
        assert_eq!(answer.status, 403, "{}", answer.text);
    }
    let mut stale = fuse.clone();
    stale["setHash"] = "0000000000000000".into();
    let answer = scene.call(Who::Role, "POST", path, json!({"items": [stale]})).await.json();
    assert_eq!(answer["items"][0]["ok"], false, "{answer}");
    let before = annotations(&scene, SET).await;
    assert!(before.get("baton.dev/deletion-approved").is_none() && before.get("baton.dev/advance").is_none());
    for item in [&fuse, &phase] {
        let answer = scene.call(Who::Role, "POST", path, json!({"items": [item]})).await.json();
        assert_eq!(answer["items"][0]["ok"], true, "{answer}");
    }
    let written = annotations(&scene, SET).await;
    assert_eq!(written["baton.dev/deletion-approved"], fuse["setHash"]);
    assert!(written["baton.dev/advance"].as_str().is_some_and(|word| !word.is_empty()));
}

#[tokio::test]
async fn a_mass_deletion_that_is_rejected_stays_held_and_a_stopped_phase_is_aborted() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    hold(&scene).await;
    let items = json!([of_kind(&scene, "fuse").await, of_kind(&scene, "phase").await]);
    let body = json!({"items": items, "reason": "not now"});
    let answer = scene.call(Who::Role, "POST", "/api/v1/approvals/reject", body).await.json();
    assert!(
        answer["items"].as_array().is_some_and(|all| all.iter().all(|one| one["ok"] == true)),
        "{answer}"
    );
    let written = annotations(&scene, SET).await;
    assert!(written.get("baton.dev/deletion-approved").is_none());
    assert!(written["baton.dev/abort"].as_str().is_some_and(|word| !word.is_empty()));
}

#[tokio::test]
async fn several_are_approved_in_one_request_each_as_it_was_seen() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    hold(&scene).await;
    let (prune, fuse, mut phase) =
        (of_kind(&scene, "prune").await, of_kind(&scene, "fuse").await, of_kind(&scene, "phase").await);
    let sound = phase.clone();
    phase["setHash"] = "another".into();
    let path = "/api/v1/approvals/approve";
    let answer = scene.call(Who::Admin, "POST", path, json!({"items": [prune, phase, fuse]})).await.json();
    let answered: Vec<(&Value, &Value)> =
        answer["items"].as_array().expect("answers").iter().map(|one| (&one["id"], &one["ok"])).collect();
    assert_eq!(
        answered,
        [(&prune["id"], &json!(true)), (&phase["id"], &json!(false)), (&fuse["id"], &json!(true))],
        "{answer}"
    );
    assert!(
        annotations(&scene, SET).await.get("baton.dev/advance").is_none(),
        "what was not seen so waits on"
    );
    // A role that may act on the set and not approve prunes is told of each what became of it.
    let answer = scene.call(Who::Role, "POST", path, json!({"items": [prune, sound]})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        (&answer.json()["items"][0]["ok"], &answer.json()["items"][1]["ok"]),
        (&json!(false), &json!(true))
    );
}

#[tokio::test]
async fn an_application_is_approved_whole_by_the_action_by_put_and_by_patch_with_the_same_word() {
    let patch = |body: Value| json!({"patch": body.to_string(), "patchType": "merge"});
    let given =
        json!({"metadata": {"annotations": {APPROVED: "2099-01-01T00:00:00Z", "baton.dev/approval": "{}"}}});
    for way in ["action", "put", "patch"] {
        let scene = Scene::new().await;
        furnish(&scene).await;
        let path = "/api/v1/applications/web-dev";
        let mut whole = scene.get(Who::Admin, path).await.json();
        for (key, value) in given["metadata"]["annotations"].as_object().expect("annotations") {
            whole["metadata"]["annotations"][key] = value.clone();
        }
        let run = json!({"group": "argoproj.io", "kind": "Application", "version": "v1alpha1", "namespace": "argocd",
            "resourceName": "web-dev", "action": "approve-deletion"});
        let (method, at, body) = match way {
            "action" => ("POST", format!("{path}/resource/actions/v2"), run),
            "put" => ("PUT", path.to_owned(), whole),
            _ => ("PATCH", path.to_owned(), patch(given.clone())),
        };
        for who in [Who::Reader, Who::Role] {
            assert_eq!(scene.call(who, method, &at, body.clone()).await.status, 403, "{way} by {who:?}");
        }
        let before = annotations(&scene, APPLICATION).await;
        assert!(
            before.get(APPROVED).is_none() && before.get("baton.dev/approval").is_none(),
            "{way}: {before}"
        );
        let answer = scene.call(Who::Admin, method, &at, body).await;
        assert_eq!(answer.status, 200, "{way}: {}", answer.text);
        let written = annotations(&scene, APPLICATION).await;
        let time = written[APPROVED].as_str().expect("a time");
        assert!(!time.starts_with("2099"), "{way}: the server's time counts, not {time}");
        let word: Value = written["baton.dev/approval"].as_str().expect("a word").parse().expect("JSON");
        assert_eq!(
            (word["actor"].as_str(), word["operation"].as_str(), word["time"].as_str()),
            (Some("admin"), Some("2026-01-01T00:00:00Z"), Some(time)),
            "{way}"
        );
        let waited = baton_api::object::ResourceKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "settings".to_owned(),
        };
        assert_eq!(word["set"], baton_sync::approval::set_hash([&waited]), "{way}");
        let deeds = scene.get(Who::Admin, "/api/v1/audit").await.json();
        let told = |one: &&Value| one["verb"] == "approve deletion" && one["outcome"] == "done";
        assert_eq!(
            deeds["items"].as_array().expect("deeds").iter().filter(told).count(),
            1,
            "{way}: {deeds}"
        );
    }
}

#[tokio::test]
async fn an_operator_may_let_updates_approve() {
    for (setting, expected) in [("true", 200), ("false", 403)] {
        let scene = Scene::with(json!({"approvals.allowUpdateAsApprove": setting})).await;
        furnish(&scene).await;
        let body = json!({"patch": json!({"metadata": {"annotations": {APPROVED: "2026-01-01T00:00:01Z"}}}).to_string(),
            "patchType": "merge"});
        let path = "/api/v1/applications/web-dev";
        let answer = scene.call(Who::Role, "PATCH", path, body.clone()).await;
        assert_eq!(answer.status, expected, "{setting}: {}", answer.text);
        let written = annotations(&scene, APPLICATION).await;
        assert_eq!(written.get(APPROVED).is_some(), expected == 200, "{setting}");
        if let Some(word) = written["baton.dev/approval"].as_str() {
            assert!(word.contains("\"actor\":\"proj:shop:ci\""), "{word}");
        }
        assert_eq!(
            scene.call(Who::Reader, "PATCH", path, body).await.status,
            403,
            "who may not update may not approve"
        );
    }
}

#[tokio::test]
async fn who_asked_for_a_deletion_is_known_and_of_what_nobody_asked_for_nothing_is_said() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    hold(&scene).await;
    let status =
        json!({"status": {"operationState": {"phase": "Succeeded", "finishedAt": "2026-01-01T00:01:00Z"}}});
    scene.patch(APPLICATION, &status).await;
    scene.patch(APPLICATION, &json!({"operation": null})).await;
    // A person cannot say who it was.
    let forged = json!({"patch": json!({"metadata": {"annotations": {"baton.dev/deletion-asked-by": "somebody"}}}).to_string(),
        "patchType": "merge"});
    let path = "/api/v1/applications/web-dev";
    assert_eq!(scene.call(Who::Role, "PATCH", path, forged).await.status, 200);
    assert!(annotations(&scene, APPLICATION).await.get("baton.dev/deletion-asked-by").is_none());
    assert_eq!(scene.call(Who::Role, "DELETE", path, json!(null)).await.status, 200);
    let list = scene
        .until(Who::Admin, "/api/v1/approvals", |list| {
            list["items"].as_array().is_some_and(|items| items.iter().any(|one| one["kind"] == "delete"))
        })
        .await;
    for item in list["items"].as_array().expect("items") {
        match item["kind"].as_str() {
            Some("delete") => assert_eq!(item["requestedBy"], "proj:shop:ci", "{item}"),
            _ => assert!(item.get("requestedBy").is_none(), "{item}"),
        }
    }
}

#[tokio::test]
async fn adding_or_changing_hooks_takes_a_right_of_its_own() {
    let scene = Scene::new().await;
    let set = |phases: Value| {
        json!({"metadata": {"name": "hooked", "namespace": "argocd"}, "spec": {
            "generators": [{"list": {"elements": []}, "deploymentStrategy": {"type": "phaseDeployment", "phases": phases}}],
            "template": {"metadata": {"name": "x"}, "spec": {"project": "shop", "destination": {},
                "source": {"repoURL": "https://git.example.com/x", "path": "."}}}}})
    };
    let plain = set(json!([{"name": "a", "targets": [{"clusters": ["dev"]}]}]));
    let hooked = |url: &str| {
        set(json!([{"name": "a", "targets": [{"clusters": ["dev"]}],
            "preHooks": [{"name": "tell", "type": "http", "http": {"url": url}}]}]))
    };
    let path = "/api/v1/applicationsets?upsert=true";
    let (one, other) = (hooked("https://a.example.com"), hooked("https://b.example.com"));
    assert_eq!(scene.call(Who::Role, "POST", path, one.clone()).await.status, 403, "not at its creation");
    assert_eq!(scene.call(Who::Role, "POST", path, plain).await.status, 200);
    assert_eq!(scene.call(Who::Role, "POST", path, one.clone()).await.status, 403, "not later");
    assert_eq!(scene.call(Who::Admin, "POST", path, one.clone()).await.status, 200);
    assert_eq!(scene.call(Who::Role, "POST", path, one).await.status, 200, "as they are they may stay");
    assert_eq!(scene.call(Who::Role, "POST", path, other).await.status, 403, "and not be changed");
    let stored = scene.stored("/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/hooked").await;
    let url =
        &stored["spec"]["generators"][0]["deploymentStrategy"]["phases"][0]["preHooks"][0]["http"]["url"];
    assert_eq!(url, "https://a.example.com");
}
