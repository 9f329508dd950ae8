//! Every path, for everybody.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::rows::{BROWSERS, READS, Row, SIGN_IN, STREAMS, reading, rows};
use crate::scene::{Scene, Who};

const EVERYBODY: [Who; 4] = [Who::Nobody, Who::Reader, Who::Role, Who::Admin];

#[tokio::test]
async fn reading_is_for_whoever_may_see_it() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for path in READS {
        let mut statuses = Vec::new();
        for who in EVERYBODY {
            statuses.push(scene.get(who, path).await.status.as_u16());
        }
        assert_eq!(statuses, reading(path), "{path}");
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
    assert_eq!(fields["items"], json!([{"metadata": {"name": "web-dev"}}]));
    assert!(fields["metadata"]["resourceVersion"].is_string(), "by it one goes on watching: {fields}");
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
    let scene = Scene::new().await;
    furnish(&scene).await;
    let waits = scene.get(Who::Admin, "/api/v1/approvals").await.json()["items"][0].clone();
    for Row { method, path, body, expected } in rows(&waits) {
        let (mut statuses, mut last) = (Vec::new(), String::new());
        for who in EVERYBODY {
            let answer = scene.call(who, method, &path, body.clone()).await;
            statuses.push(answer.status.as_u16());
            last = answer.text;
        }
        assert_eq!(statuses, expected, "{method} {path}: {last}");
    }
}

#[tokio::test]
async fn every_operation_has_a_row() {
    let scene = Scene::new().await;
    let document = scene.get(Who::Nobody, "/api/v1/openapi.json").await.json();
    let reads = READS.iter().chain(&STREAMS).chain(&BROWSERS).map(|path| ("GET", (*path).to_owned()));
    let writes = rows(&json!({})).into_iter().map(|row| (row.method, row.path));
    let all: Vec<(&str, String)> =
        reads.chain(writes).chain(SIGN_IN.map(|(method, path)| (method, path.to_owned()))).collect();
    let mut without = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys().map(|method| method.to_uppercase()) {
            if !all.iter().any(|(own, row)| *own == method && is_of(path, row)) {
                without.push(format!("{method} {path}"));
            }
        }
    }
    assert!(without.is_empty(), "nobody says who may: {without:#?}");
}

/// Whether a path is one of a template: words of the template stand for themselves before names do.
fn is_of(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (parts, segments): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    let longer = parts.last().is_some_and(|last| *last == "{object}") && segments.len() >= parts.len();
    (parts.len() == segments.len() || longer)
        && parts.iter().zip(&segments).all(|(part, segment)| part == segment || part.starts_with('{'))
}

#[tokio::test]
async fn streams_are_for_whoever_is_known() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for path in STREAMS {
        let mut statuses = Vec::new();
        for who in EVERYBODY {
            let token = scene.token(who).map(|token| ("authorization", format!("Bearer {token}")));
            let headers: Vec<(&str, String)> = token.into_iter().collect();
            statuses.push(scene.open("GET", path, &headers, String::new()).await.status().as_u16());
        }
        assert_eq!(statuses, [401, 200, 200, 200], "{path}");
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
