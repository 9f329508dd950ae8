//! What is registered beside Applications, and Applications that people create.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{CANARY, Scene, Who, application};

#[tokio::test]
async fn clusters_are_shown_without_what_opens_them() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let all = scene.get(Who::Admin, "/api/v1/clusters").await.json();
    let row = |at: usize| {
        let item = &all["items"][at];
        (item["name"].as_str(), item["info"]["applicationsCount"].as_i64())
    };
    assert_eq!((row(0), row(1)), ((Some("in-cluster"), Some(3)), (Some("member"), Some(0))), "{all}");
    let member = scene.get(Who::Admin, "/api/v1/clusters/member?id.type=name").await.json();
    assert_eq!(member["config"], json!({"tlsClientConfig": {"insecure": true}}));
    assert_eq!(
        member,
        scene.get(Who::Admin, "/api/v1/clusters/https%3A%2F%2Fmember.example.com").await.json()
    );
    assert_eq!(scene.get(Who::Role, "/api/v1/clusters").await.json()["items"], json!([]));
    for path in ["/api/v1/clusters/member?id.type=name", "/api/v1/clusters/nothing?id.type=name"] {
        let denied = scene.get(Who::Role, path).await;
        assert_eq!((denied.status.as_u16(), denied.message().as_str()), (403, "permission denied"));
    }
    assert_eq!(scene.get(Who::Admin, "/api/v1/clusters/member?id.type=shape").await.status, 400);
}

#[tokio::test]
async fn repositories_are_shown_without_what_opens_them() {
    let scene = Scene::new().await;
    let all = scene.get(Who::Admin, "/api/v1/repositories").await.json();
    assert_eq!(all["items"][0]["repo"], "https://git.example.com");
    assert!(all["items"][0].get("password").is_none() && all["items"][0].get("username").is_none(), "{all}");
    let one = scene.get(Who::Admin, "/api/v1/repositories/https%3A%2F%2Fgit.example.com").await.json();
    assert_eq!(one, all["items"][0]);
    let creds = scene.get(Who::Admin, "/api/v1/repocreds").await.json();
    assert_eq!(creds["items"], json!([{"url": "https://***@git.example.com/team", "type": "git"}]));
    assert_eq!(scene.get(Who::Role, "/api/v1/repositories").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_repository_is_reached_only_for_whoever_may_register_it_or_sees_it_registered() {
    let scene = Scene::new().await;
    let refs =
        |url: &str| format!("/api/v1/repositories/{}/refs", url.replace(':', "%3A").replace('/', "%2F"));
    let known = scene.get(Who::Reader, &refs("https://git.example.com")).await;
    assert_eq!((known.status.as_u16(), known.json()), (200, json!({"branches": ["main", "of-"]})));
    let elsewhere = "https://inside.example.com/a";
    let refused = scene.get(Who::Reader, &refs(elsewhere)).await;
    assert_eq!(refused.status, 403, "nobody has the server ask a host of their choice: {}", refused.text);
    let asked = scene.get(Who::Admin, &format!("{}?appProject=shop", refs(elsewhere))).await.json();
    assert_eq!(asked["branches"], json!(["main", "of-shop"]));
    assert_eq!(scene.get(Who::Admin, &refs("https://git.example.com/gone")).await.status, 400);
    assert_eq!(scene.get(Who::Admin, &refs("https://me:word@git.example.com/a")).await.status, 400);

    let path = refs(elsewhere).replace("/refs", "/validate");
    for (body, status) in [
        (json!(elsewhere), 200),
        (json!({}), 200),
        (json!({"username": "me", "password": CANARY}), 200),
        (json!({"repo": "https://git.example.com", "username": "me"}), 400),
        (json!({"type": "helm", "name": "charts"}), 501),
        (json!({"password": 7}), 400),
    ] {
        let answer = scene.call(Who::Admin, "POST", &path, body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert!(!answer.text.contains(CANARY));
    }
    let gone = refs("https://git.example.com/gone").replace("/refs", "/validate");
    assert_eq!(scene.call(Who::Admin, "POST", &gone, json!({})).await.status, 400);
    assert_eq!(scene.call(Who::Reader, "POST", &path, json!({})).await.status, 403);
}

#[tokio::test]
async fn keys_and_certificates_are_told_by_their_names() {
    let scene = Scene::new().await;
    let all = scene.get(Who::Admin, "/api/v1/certificates").await.json();
    let kinds: Vec<&str> =
        all["items"].as_array().into_iter().flatten().filter_map(|one| one["certType"].as_str()).collect();
    assert_eq!(kinds, ["ssh", "https"], "{all}");
    let ssh = scene.get(Who::Admin, "/api/v1/certificates?certType=ssh&hostNamePattern=git.*").await.json();
    assert_eq!(ssh["items"].as_array().map(Vec::len), Some(1), "{ssh}");
    let keys = scene.get(Who::Admin, "/api/v1/gpgkeys").await.json();
    assert_eq!(keys["items"], json!([{"keyID": "4AEE18F83AFDEB23"}]));
    assert_eq!(scene.get(Who::Admin, "/api/v1/gpgkeys/none").await.status, 404);
}

#[tokio::test]
async fn windows_say_whether_anybody_may_sync() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applications/web-dev/syncwindows";
    let free = scene.get(Who::Role, path).await.json();
    assert_eq!(free, json!({"activeWindows": [], "assignedWindows": [], "canSync": true}));
    let windows = json!([
        {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["web-*"]},
        {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["else"]},
    ]);
    let project = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/shop";
    scene.patch(project, &json!({"spec": {"syncWindows": windows}})).await;
    let held = scene.get(Who::Role, path).await.json();
    let one = json!([{"kind": "deny", "schedule": "* * * * *", "duration": "1h", "manualSync": false}]);
    assert_eq!(held, json!({"activeWindows": one, "assignedWindows": one, "canSync": false}));
    let open = scene.get(Who::Role, "/api/v1/projects/shop/syncwindows").await.json();
    assert_eq!(open["windows"].as_array().map(Vec::len), Some(2), "{open}");
    assert_eq!(scene.get(Who::Role, "/api/v1/projects/default/syncwindows").await.status, 403);
}

#[tokio::test]
async fn an_application_is_created_once_and_only_as_far_as_it_is_a_persons() {
    let scene = Scene::new().await;
    let path = "/api/v1/applications";
    let mut wanted = application("api", "shop", None, json!({"health": {"status": "Healthy"}}));
    wanted["operation"] = json!({"sync": {}});
    wanted["metadata"]["annotations"] =
        json!({"a": "b", "argocd.argoproj.io/deletion-approved": "2026-01-01T00:00:00Z"});
    let made = scene.call(Who::Role, "POST", path, wanted.clone()).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert!(!made.text.contains(CANARY));
    let stored = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/api";
    let object = scene.stored(stored).await;
    assert_eq!(object["metadata"]["annotations"], json!({"a": "b"}), "an approval is not created");
    assert!(
        object.get("operation").is_none() && object.get("status").is_none_or(|status| status == &json!({}))
    );

    assert_eq!(scene.call(Who::Role, "POST", path, wanted.clone()).await.status, 200, "the same again");
    wanted["spec"]["source"]["targetRevision"] = "v2".into();
    let other = scene.call(Who::Role, "POST", path, wanted.clone()).await;
    assert_eq!(
        (other.status.as_u16(), other.message().as_str()),
        (400, "existing application spec is different, use upsert flag to force update")
    );
    let changed = scene.call(Who::Role, "POST", "/api/v1/applications?upsert=true", wanted.clone()).await;
    assert_eq!(changed.json()["spec"]["source"]["targetRevision"], "v2", "{}", changed.text);
    wanted["metadata"]["name"] = "theirs".into();
    wanted["spec"]["project"] = "default".into();
    assert_eq!(scene.call(Who::Role, "POST", path, wanted).await.status, 403, "another project's");
    for body in [json!([{"name": "x"}, {}]), json!({"metadata": {}}), json!("x"), Value::Bool(true)] {
        assert_eq!(scene.call(Who::Admin, "POST", path, body.clone()).await.status, 400, "{body}");
        let path = "/api/v1/applicationsets";
        assert_eq!(scene.call(Who::Admin, "POST", path, body.clone()).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn a_project_is_created_changed_and_deleted_and_leaves_nobody_behind() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/projects";
    let spec = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
        "roles": [{"name": "ci", "jwtTokens": [{"iat": 1, "id": "revoked"}]}]});
    let wanted = json!({"project": {"metadata": {"name": "new"}, "spec": spec}});
    assert_eq!(scene.call(Who::Role, "POST", path, wanted.clone()).await.status, 403);
    let made = scene.call(Who::Admin, "POST", path, wanted.clone()).await;
    assert_eq!(made.status, 200, "{}", made.text);
    assert!(made.json()["spec"]["roles"][0].get("jwtTokens").is_none(), "a revoked token does not come back");
    assert_eq!(scene.call(Who::Admin, "POST", path, wanted).await.status, 200, "the same again");
    let other = json!({"project": {"metadata": {"name": "new"}, "spec": {"description": "x"}}});
    assert_eq!(scene.call(Who::Admin, "POST", path, other.clone()).await.status, 400);
    let changed = scene.call(Who::Admin, "PUT", "/api/v1/projects/new", other.clone()).await;
    assert_eq!(changed.json()["spec"]["description"], "x", "{}", changed.text);
    assert_eq!(scene.call(Who::Admin, "PUT", "/api/v1/projects/shop", other).await.status, 400);
    assert_eq!(scene.call(Who::Admin, "DELETE", "/api/v1/projects/new", Value::Null).await.status, 200);

    let narrow = json!({"project": {"metadata": {"name": "shop"}, "spec": {"sourceRepos": ["https://else"],
        "destinations": [{"server": "*", "namespace": "*"}]}}});
    let refused = scene.call(Who::Admin, "PUT", "/api/v1/projects/shop", narrow).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.message().contains("web-dev among them"), "{}", refused.text);
    for (path, message) in [
        ("/api/v1/projects/shop", "project is referenced by 2 applications"),
        ("/api/v1/projects/default", "name 'default' is reserved and cannot be deleted"),
    ] {
        assert_eq!(scene.call(Who::Admin, "DELETE", path, Value::Null).await.message(), message);
    }
    for body in
        [json!({"project": [{"name": "x"}]}), json!({"project": {"metadata": {"name": "x"}, "spec": []}})]
    {
        assert_eq!(
            scene.call(Who::Admin, "POST", "/api/v1/projects", body.clone()).await.status,
            400,
            "{body}"
        );
    }
}

#[tokio::test]
async fn what_is_wanted_is_shown_with_secrets_hidden() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let shown = scene.get(Who::Role, "/api/v1/applications/web-dev/manifests?revision=main").await.json();
    let manifest = shown["manifests"][0].as_str().expect("a text");
    assert!(manifest.contains("\"kind\":\"Secret\"") && !manifest.contains(CANARY), "{manifest}");
    let other = scene.get(Who::Role, "/api/v1/applications/web-dev/manifests?revision=v9").await;
    assert_eq!(other.status, 400, "{}", other.text);
}
