//! Every path, for everybody.

use serde_json::{Value, json};

use crate::canary::{READS, furnish};
use crate::scene::{Scene, Who};

const EVERYBODY: [Who; 4] = [Who::Nobody, Who::Reader, Who::Role, Who::Admin];

#[tokio::test]
async fn reading_is_for_whoever_may_see_it() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let open = [
        "/healthz",
        "/api/version",
        "/api/v1/settings",
        "/api/v1/session/userinfo",
        "/api/v1/openapi.json",
        "/swagger.json",
        "/api/badge",
        "/api/badge?name=web-dev&revision=true&showAppName=true",
    ];
    let beyond_projects = [
        "/api/v1/clusters/",
        "/api/v1/repositories/",
        "/api/v1/write-repositories/",
        "/api/v1/certificates",
        "/api/v1/gpgkeys",
    ];
    for path in READS {
        let mut statuses = Vec::new();
        for who in EVERYBODY {
            statuses.push(scene.get(who, path).await.status.as_u16());
        }
        let expected = match path {
            path if open.contains(&path) => [200, 200, 200, 200],
            "/api/v1/account/admin" => [401, 200, 403, 200],
            path if beyond_projects.iter().any(|prefix| path.starts_with(prefix)) => [401, 200, 403, 200],
            _ => [401, 200, 200, 200],
        };
        assert_eq!(statuses, expected, "{path}");
    }
}

#[tokio::test]
async fn lists_hold_what_the_caller_may_see() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let names = |list: Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned())).collect()
    };
    let path = "/api/v1/applications";
    assert_eq!(names(scene.get(Who::Reader, path).await.json()), ["other", "web-dev", "web-prod"]);
    assert_eq!(
        names(scene.get(Who::Role, path).await.json()),
        ["web-dev", "web-prod"],
        "a role sees its project"
    );
    assert_eq!(names(scene.get(Who::Role, "/api/v1/projects").await.json()), ["shop"]);
    let fields = scene
        .get(Who::Role, "/api/v1/applications?fields=items.metadata.name&selector=env%3Ddev")
        .await
        .json();
    assert_eq!(fields, json!({"items": [{"metadata": {"name": "web-dev"}}]}));
    let of_project = scene.get(Who::Admin, "/api/v1/applications?projects=default").await.json();
    assert_eq!(names(of_project), ["other"]);
    assert_eq!(scene.get(Who::Admin, "/api/v1/applications?selector=a+in+(").await.status, 400);
}

#[tokio::test]
async fn what_may_not_be_seen_looks_as_if_it_were_not_there() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for (there, gone) in [
        ("/api/v1/applications/other", "/api/v1/applications/no-such"),
        ("/api/v1/applications/other/resource-tree", "/api/v1/applications/no-such/resource-tree"),
        ("/api/v1/projects/default", "/api/v1/projects/no-such"),
        (
            "/api/v1/applications/web-dev?appNamespace=default",
            "/api/v1/applications/no-such?appNamespace=default",
        ),
    ] {
        let (there, gone) = (scene.get(Who::Role, there).await, scene.get(Who::Role, gone).await);
        assert_eq!((there.status.as_u16(), there.message().as_str()), (403, "permission denied"));
        assert_eq!((gone.status, gone.text), (there.status, there.text));
    }
    // Whoever names the project learns of that project alone.
    assert_eq!(scene.get(Who::Role, "/api/v1/applications/no-such?project=shop").await.status, 404);
    assert_eq!(scene.get(Who::Role, "/api/v1/applications/other?project=shop").await.status, 404);
    assert_eq!(scene.get(Who::Role, "/api/v1/applications/other?project=default").await.status, 403);
}

#[tokio::test]
async fn changing_is_for_whoever_may() {
    let on = |collection: &str, url: &str| {
        format!("/api/v1/{collection}/{}", url.replace(':', "%3A").replace('/', "%2F"))
    };
    let new = crate::scene::application("new", "shop", None, json!({}));
    let repository = json!({"repo": "https://git.example.com/new"});
    let credentials = json!({"url": "https://git.example.com/new"});
    let cluster = json!({"server": "https://new.example.com"});
    let writes: [(&str, &str, Value, [u16; 4]); 40] = [
        ("POST", "/api/v1/applications", new, [401, 403, 200, 200]),
        ("POST", "/api/v1/account/ci/token", json!({}), [401, 403, 403, 200]),
        ("POST", "/api/v1/clusters", cluster.clone(), [401, 403, 403, 200]),
        ("PUT", &on("clusters", "https://new.example.com"), cluster, [401, 403, 403, 200]),
        ("POST", "/api/v1/clusters/member/invalidate-cache?id.type=name", json!(null), [401, 403, 403, 200]),
        ("DELETE", &on("clusters", "https://new.example.com"), json!(null), [401, 403, 403, 200]),
        ("DELETE", "/api/v1/clusters/none?id.type=name", json!(null), [401, 403, 403, 404]),
        ("POST", "/api/v1/repositories", repository.clone(), [401, 403, 403, 200]),
        ("PUT", &on("repositories", "https://git.example.com/new"), repository.clone(), [401, 403, 403, 200]),
        ("DELETE", &on("repositories", "https://git.example.com/new"), json!(null), [401, 403, 403, 200]),
        ("POST", "/api/v1/repocreds", credentials.clone(), [401, 403, 403, 200]),
        ("PUT", &on("repocreds", "https://git.example.com/new"), credentials.clone(), [401, 403, 403, 200]),
        ("DELETE", &on("repocreds", "https://git.example.com/new"), json!(null), [401, 403, 403, 200]),
        ("POST", "/api/v1/write-repositories", repository.clone(), [401, 403, 403, 200]),
        ("PUT", &on("write-repositories", "https://git.example.com/new"), repository, [401, 403, 403, 200]),
        (
            "DELETE",
            &on("write-repositories", "https://git.example.com/new"),
            json!(null),
            [401, 403, 403, 200],
        ),
        ("POST", "/api/v1/write-repocreds", credentials.clone(), [401, 403, 403, 200]),
        ("PUT", &on("write-repocreds", "https://git.example.com/new"), credentials, [401, 403, 403, 200]),
        ("DELETE", &on("write-repocreds", "https://git.example.com/new"), json!(null), [401, 403, 403, 200]),
        ("POST", "/api/v1/certificates", json!({}), [401, 403, 403, 400]),
        ("DELETE", "/api/v1/certificates?hostNamePattern=none", json!(null), [401, 403, 403, 200]),
        ("POST", "/api/v1/gpgkeys", json!({}), [401, 403, 403, 400]),
        ("DELETE", "/api/v1/gpgkeys?keyID=4AEE18F83AFDEB23", json!(null), [401, 403, 403, 200]),
        ("DELETE", "/api/v1/gpgkeys?keyID=none", json!(null), [401, 403, 403, 404]),
        ("DELETE", "/api/v1/account/ci/token/x", json!(null), [401, 403, 403, 404]),
        ("POST", "/api/v1/projects/shop/roles/ci/token", json!({}), [401, 403, 403, 200]),
        ("DELETE", "/api/v1/projects/shop/roles/ci/token/7", json!(null), [401, 403, 403, 404]),
        ("PUT", "/api/v1/account/password", json!({}), [401, 400, 400, 400]),
        (
            "PATCH",
            "/api/v1/applications/web-prod",
            json!({"patch": "{}", "patchType": "merge"}),
            [401, 403, 200, 200],
        ),
        ("PUT", "/api/v1/applications/web-prod", json!({"metadata": {"name": "else"}}), [401, 400, 400, 400]),
        ("POST", "/api/v1/applications/web-prod/sync", json!({"dryRun": true}), [401, 403, 200, 400]),
        ("DELETE", "/api/v1/applications/web-dev/operation", json!(null), [401, 403, 200, 200]),
        ("POST", "/api/v1/applications/web-prod/rollback", json!({"id": 9}), [401, 403, 400, 400]),
        ("POST", "/api/v1/applicationsets/web/actions", json!({"action": "pause"}), [401, 403, 200, 400]),
        (
            "POST",
            "/api/v1/applicationsets/generate",
            json!({"applicationSet": {"metadata": {"name": "x"},
            "spec": {"template": {"spec": {"project": "shop"}}}}}),
            [401, 403, 200, 200],
        ),
        ("POST", "/api/v1/approvals/approve", json!({"items": []}), [401, 400, 400, 400]),
        ("POST", "/api/v1/approvals/reject", json!({"items": [], "reason": ""}), [401, 400, 400, 400]),
        ("DELETE", "/api/v1/applications/other", json!(null), [401, 403, 403, 200]),
        ("DELETE", "/api/v1/applications/web-prod?cascade=false", json!(null), [401, 403, 200, 403]),
        ("DELETE", "/api/v1/applicationsets/web", json!(null), [401, 403, 200, 403]),
    ];
    let scene = Scene::new().await;
    furnish(&scene).await;
    for (method, path, body, expected) in writes {
        let mut statuses = Vec::new();
        for who in EVERYBODY {
            let answer = scene.call(who, method, path, body.clone()).await;
            statuses.push(answer.status.as_u16());
        }
        assert_eq!(statuses, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn can_i_answers_in_the_words_of_policies() {
    let scene = Scene::new().await;
    for (who, path, expected) in [
        (Who::Admin, "applications/sync/shop/web", "yes"),
        (Who::Reader, "applications/sync/shop/web", "no"),
        (Who::Role, "applications/sync/shop/web", "yes"),
        (Who::Role, "applications/sync/default/web", "no"),
        (Who::Role, "applicationsets/action/argoproj.io/ApplicationSet/pause/shop/web", "yes"),
        (Who::Reader, "applicationsets/action/argoproj.io/ApplicationSet/pause/shop/web", "no"),
    ] {
        let answer = scene.get(who, &format!("/api/v1/account/can-i/{path}")).await;
        assert_eq!(answer.json(), json!({"value": expected}), "{path} for {who:?}");
    }
    assert_eq!(scene.get(Who::Admin, "/api/v1/account/can-i/pods/get/x").await.status, 400);
    assert_eq!(scene.get(Who::Admin, "/api/v1/account/can-i/applications/fly/x").await.status, 400);
}
