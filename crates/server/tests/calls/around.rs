//! What is told around Applications and projects: revisions, links, badges, projects that hold for others, webhooks.

use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{CANARY, Scene, Who};

const CONFIG: &str = "/api/v1/namespaces/argocd/configmaps/argocd-cm";

#[tokio::test]
async fn the_version_is_that_of_argo_cd_which_is_kept_to() {
    let scene = Scene::new().await;
    for who in [Who::Nobody, Who::Admin] {
        let told = scene.get(who, "/api/version").await.json();
        assert_eq!(told["Version"], format!("v{}", baton_api::names::ARGO_CD_VERSION));
        assert_eq!(told["Platform"].is_string(), who == Who::Admin, "{told}");
    }
}

#[tokio::test]
async fn a_revision_is_told_with_its_author_and_message() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/v1/applications/web-dev/revisions/abc/metadata";
    let told = scene.get(Who::Role, path).await;
    assert_eq!(
        told.json(),
        json!({"author": "Ann <ann@example.com>", "date": "1970-01-01T00:00:00Z", "tags": ["v1"], "signatureInfo": "",
            "message": "what abc does, as https://***@git.example.com/web-dev has it"})
    );
    for (path, words) in [
        ("revisions/abc/chartdetails", "this source is no chart"),
        ("revisions/abc/metadata?sourceIndex=1", "there is no source 1: there are 1"),
        ("revisions/abc/metadata?sourceIndex=-1", "sourceIndex"),
        ("revisions/abc/metadata?versionId=7", "the history has no entry 7"),
        ("revisions/a%0Ab/metadata", "this can be no revision"),
        ("revisions/gone/metadata", "no such revision"),
    ] {
        let refused = scene.get(Who::Role, &format!("/api/v1/applications/web-dev/{path}")).await;
        assert_eq!(refused.status, 400, "{path}: {}", refused.text);
        assert!(
            refused.message().contains(words) && !refused.text.contains(CANARY),
            "{path}: {}",
            refused.text
        );
    }
    assert_eq!(scene.get(Who::Role, "/api/v1/applications/other/revisions/abc/metadata").await.status, 403);
    let chart = json!({"spec": {"source": {"chart": "redis", "path": null}},
        "status": {"history": [{"id": 7, "deployedAt": "2026-01-01T00:00:00Z", "revision": "old",
            "source": {"repoURL": "https://git.example.com/before", "path": "."}}], "sync": {"status": "Synced"}}});
    scene.patch("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web-prod", &chart).await;
    let details =
        scene.get(Who::Role, "/api/v1/applications/web-prod/revisions/1.2.3/chartdetails").await.json();
    assert_eq!(
        details,
        json!({"description": "redis 1.2.3", "home": "https://example.com", "maintainers": ["Ann"]})
    );
    let before =
        scene.get(Who::Role, "/api/v1/applications/web-prod/revisions/x/metadata?versionId=7").await.json();
    assert_eq!(before["message"], "what x does, as https://git.example.com/before has it", "{before}");
}

#[tokio::test]
async fn links_that_are_set_are_told_where_they_hold() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let links = "- {url: 'https://x.example.com/{{.app.metadata.name}}', title: Logs}\n\
        - {url: 'javascript:alert(1)', title: Bad}\n- {url: 'https://y', title: Never, if: 'app.spec.project == \"x\"'}\n";
    let of_resource = "- {url: 'https://r/{{.resource.kind}}/{{.resource.data.key}}', title: R}\n";
    let of_project = "- {url: 'https://p/{{.project.metadata.name}}', title: P}\n";
    let data =
        json!({"application.links": links, "resource.links": of_resource, "project.links": of_project});
    scene.patch(CONFIG, &json!({ "data": data })).await;
    let told = scene.get(Who::Role, "/api/v1/applications/web-dev/links").await.json();
    assert_eq!(told, json!({"items": [{"title": "Logs", "url": "https://x.example.com/web-dev"}]}));
    let resource =
        "/api/v1/applications/web-dev/resource/links?kind=Secret&version=v1&namespace=shop&resourceName=keys";
    let told = scene.get(Who::Role, resource).await;
    assert!(
        told.text.contains("https://r/Secret/+++"),
        "a Secret's values are not in its links: {}",
        told.text
    );
    let told = scene.get(Who::Role, "/api/v1/projects/shop/links").await.json();
    assert_eq!(told["items"][0]["url"], "https://p/shop");
    for path in ["/api/v1/projects/default/links", "/api/v1/applications/other/links"] {
        assert_eq!(scene.get(Who::Role, path).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn projects_that_hold_for_others_are_told_as_far_as_they_may_be_seen() {
    let scene = Scene::new().await;
    let setting = "- projectName: default\n  labelSelector: {matchLabels: {tier: prod}}\n";
    scene.patch(CONFIG, &json!({"data": {"globalProjects": setting}})).await;
    let path = "/api/v1/projects/shop/globalprojects";
    assert_eq!(scene.get(Who::Admin, path).await.json(), json!({"items": []}), "no label, no rule");
    let project = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/shop";
    scene.patch(project, &json!({"metadata": {"labels": {"tier": "prod"}}})).await;
    let told = scene.get(Who::Admin, path).await.json();
    assert_eq!(told["items"][0]["metadata"]["name"], "default", "{told}");
    let detailed = scene.get(Who::Admin, "/api/v1/projects/shop/detailed").await.json();
    assert_eq!(detailed["globalProjects"], told["items"]);
    assert_eq!(scene.get(Who::Role, path).await.json(), json!({"items": []}), "it may not see that one");
    assert_eq!(scene.get(Who::Role, "/api/v1/projects/default/globalprojects").await.status, 403);
}

#[tokio::test]
async fn a_badge_says_nothing_until_badges_are_on() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    let path = "/api/badge?name=web-dev&showAppName=true";
    let off = scene.get(Who::Nobody, path).await;
    assert_eq!(off.headers["content-type"], "image/svg+xml");
    assert!(off.text.contains(">Unknown<") && !off.text.contains("web-dev"), "{}", off.text);
    scene.patch(CONFIG, &json!({"data": {"statusbadge.enabled": "true"}})).await;
    let on = scene.get(Who::Nobody, path).await;
    assert!(on.text.contains(">Progressing<") && on.text.contains(">web-dev<"), "{}", on.text);
    assert_eq!(on.headers["cross-origin-resource-policy"], "cross-origin", "pages of others show it");
    for (query, word) in [
        ("name=none", "Not Found"),
        ("name=web-dev&namespace=kube-system", "Not Found"),
        ("project=shop", "Degraded"),
        ("project=none", "Not Found"),
        ("", "Unknown"),
    ] {
        let badge = scene.get(Who::Nobody, &format!("/api/badge?{query}")).await.text;
        assert!(badge.contains(&format!(">{word}<")), "{query}: {badge}");
    }
}

#[tokio::test]
async fn webhooks_are_handed_on_as_they_come() {
    let scene = Scene::new().await;
    let form = |event: Option<&str>| {
        let mut headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
        headers.extend(event.map(|event| ("x-github-event", event.to_owned())));
        headers
    };
    let taken = scene.send("POST", "/api/webhook", &form(Some("push")), "payload=x".to_owned()).await;
    assert_eq!((taken.status.as_u16(), taken.text.as_str()), (200, "taken"));
    assert_eq!(taken.headers["x-content-type-options"], "nosniff");
    assert_eq!(scene.send("POST", "/api/webhook", &form(None), String::new()).await.status, 400);
    assert_eq!(scene.call(Who::Admin, "GET", "/api/webhook", Value::Null).await.status, 405);
}
