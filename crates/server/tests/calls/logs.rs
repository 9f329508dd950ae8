//! Logs of Pods, line by line.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::canary::furnish;
use crate::scene::{Scene, Who};

const LOGS: &str = "/api/v1/applications/web-dev/logs";

/// The lines of an answer, each what it tells.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["result"].clone()).collect()
}

/// A scene whose Pods have begun to write.
async fn writing() -> Scene {
    let scene = Scene::new().await;
    furnish(&scene).await;
    loop {
        let told = lines(&scene.get(Who::Admin, LOGS).await.text);
        if told.iter().any(|line| line["content"].as_str().is_some_and(|text| text.starts_with("simulated")))
        {
            return scene;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_containers_wrote_is_told_line_by_line_as_argo_cd_tells_it() {
    let scene = writing().await;
    let answer = scene.get(Who::Role, LOGS).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    let told = lines(&answer.text);
    assert_eq!(told.len(), 4, "{}", answer.text);
    let pod = told[0]["podName"].as_str().expect("a Pod").to_owned();
    assert_eq!(told[0]["content"], format!("simulated container web of pod shop/{pod}"));
    assert!(told[0]["timeStamp"].is_string() && told[0]["timeStampStr"].is_string());
    assert_eq!((told[0]["last"].as_bool(), told[3]["last"].as_bool()), (Some(false), Some(true)));

    let contents = async |query: &str| -> Vec<String> {
        let told = lines(&scene.get(Who::Role, &format!("{LOGS}?{query}")).await.text);
        let own = told.iter().filter(|line| line["last"] == false);
        own.map(|line| line["content"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(contents("tailLines=1").await.len(), 1);
    assert_eq!(contents("tailLines=0&sinceSeconds=0").await.len(), 3, "nothing is all");
    assert_eq!(contents("filter=IMAGE").await.len(), 1);
    assert_eq!(contents("filter=IMAGE&matchCase=true").await.len(), 0);
    assert_eq!(contents("filter=!image").await.len(), 2);
    assert_eq!(contents("untilTime=2020-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(contents("sinceTime=2020-01-01T00:00:00Z&container=web").await.len(), 3);
    assert_eq!(contents("sinceTime.seconds=1").await.len(), 3);
    assert_eq!(contents("kind=Deployment&group=apps&resourceName=web&namespace=shop").await.len(), 3);
    assert_eq!(contents("kind=Deployment&group=apps&resourceName=other").await.len(), 0);
    assert_eq!(contents(&format!("podName={pod}")).await.len(), 3);
    let why = contents("container=other").await;
    assert!(why[0].contains("container other is not valid for pod"), "{why:?}");

    let older =
        scene.get(Who::Role, &format!("/api/v1/applications/web-dev/pods/{pod}/logs?tailLines=1")).await;
    assert_eq!(lines(&older.text).len(), 2);
    let none = scene.get(Who::Role, "/api/v1/applications/web-dev/pods/none/logs").await;
    assert_eq!(lines(&none.text).len(), 1, "of a Pod that is not the Application's nothing is told");
    let file = scene.get(Who::Role, &format!("{LOGS}?download=true&podName={pod}&namespace=shop")).await;
    let kept = format!("attachment;filename=\"log-shop-{pod}.log\"");
    assert_eq!(file.headers["content-disposition"], kept.as_str());
    assert!(file.text.starts_with("simulated container web of pod shop/"), "{}", file.text);
    assert_eq!(file.text.lines().count(), 3);
}

#[tokio::test]
async fn logs_are_for_whoever_may_read_them_and_only_of_what_they_see() {
    let scene = Scene::new().await;
    furnish(&scene).await;
    for (who, status) in [(Who::Nobody, 401), (Who::Reader, 200), (Who::Role, 200), (Who::Admin, 200)] {
        assert_eq!(scene.get(who, LOGS).await.status.as_u16(), status, "{who:?}");
    }
    // Who may do everything to the Application has no right to its logs by that.
    let bearer = [("authorization", format!("Bearer {}", scene.signed("keeper:login", "k")))];
    let refused = scene.send("GET", LOGS, &bearer, String::new()).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.message().starts_with("permission denied: logs, get, shop/web-dev, sub: keeper"),
        "{}",
        refused.text
    );
    let [there, gone] = ["other", "no-such"].map(|name| format!("/api/v1/applications/{name}/logs"));
    let (there, gone) = (scene.get(Who::Role, &there).await, scene.get(Who::Role, &gone).await);
    assert_eq!((there.status, there.text), (gone.status, gone.text));
    for query in [
        "tailLines=-1",
        "tailLines=x",
        "sinceSeconds=-1",
        "sinceTime=soon",
        "untilTime=x",
        "sinceTime.seconds=x",
        "sinceTime=2020-01-01T00:00:00Z&sinceSeconds=3",
    ] {
        assert_eq!(scene.get(Who::Admin, &format!("{LOGS}?{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test]
async fn logs_of_too_many_pods_are_refused() {
    let scene = writing().await;
    let config = "/api/v1/namespaces/argocd/configmaps/argocd-cm";
    scene.patch(config, &json!({"data": {"server.maxPodLogsToRender": "0"}})).await;
    let refused = scene.get(Who::Admin, LOGS).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.message().starts_with("max pods to view logs are reached"), "{}", refused.text);
}

#[tokio::test]
async fn a_log_that_is_followed_goes_on_until_its_pod_goes() {
    let scene = writing().await;
    let token = scene.token(Who::Role).expect("a token");
    let bearer = [("authorization", format!("Bearer {token}"))];
    let response = scene.open("GET", &format!("{LOGS}?follow=true"), &bearer, String::new()).await;
    let mut body = response.into_body();
    let mut text = String::new();
    while text.lines().count() < 3 {
        let frame = body.frame().await.expect("more").expect("a frame");
        text.push_str(std::str::from_utf8(frame.data_ref().expect("data")).expect("a text"));
    }
    let pod = lines(&text)[0]["podName"].as_str().expect("a Pod").to_owned();
    let client = kube::Client::new(scene.control.service(), "shop");
    let gone = http::Request::delete(format!("/api/v1/namespaces/shop/pods/{pod}?gracePeriodSeconds=0"));
    client.request::<Value>(gone.body(Vec::new()).expect("a request")).await.expect("deleted");
    while let Some(frame) = body.frame().await {
        text.push_str(
            std::str::from_utf8(frame.expect("a frame").data_ref().expect("data")).expect("a text"),
        );
    }
    assert_eq!(lines(&text).last().expect("a line")["last"], true, "{text}");
}
