//! Reviews, events and leases: the small kinds that clients use about themselves.

use crate::world::{World, names, text, version};
use serde_json::json;

pub(crate) async fn a_client_may_ask_what_it_may_do(world: &World) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": world.namespace(), "verb": "get", "resource": "pods"}},
    });
    let answer =
        world.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await.created();
    assert_eq!(answer["status"]["allowed"], true);
    assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    let rules = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": world.namespace()},
    });
    let answer = world.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &rules).await.created();
    assert!(answer["status"]["resourceRules"].is_array());
    let neither =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}});
    world
        .post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &neither)
        .await
        .fails(422, "Invalid");
}

pub(crate) async fn a_client_may_ask_who_it_is(world: &World) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = world.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.created();
    assert!(!text(&answer, "/status/userInfo/username").is_empty());
    let groups = answer["status"]["userInfo"]["groups"].as_array().expect("groups");
    assert!(groups.contains(&json!("system:authenticated")), "{groups:?}");
}

pub(crate) async fn events_are_selected_by_their_subject(world: &World) {
    for name in ["one", "two"] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.1")},
            "involvedObject": {"kind": "ConfigMap", "name": name, "namespace": world.namespace(), "uid": "u"},
            "reason": "Tested", "message": "a test", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
            "source": {"component": "behaviour"},
        });
        world.post(&world.core("events"), &event).await.created();
    }
    let path = world.core("events");
    let selector = "involvedObject.name%3Done%2CinvolvedObject.kind%3DConfigMap%2CinvolvedObject.uid%3Du";
    let list = world.get(&format!("{path}?fieldSelector={selector}")).await.ok();
    assert_eq!(names(&list), ["one.1"]);
    let list = world.get(&format!("{path}?fieldSelector=reason%3DTested%2Ctype%3DNormal")).await.ok();
    assert_eq!(names(&list).len(), 2);
}

pub(crate) async fn the_two_event_apis_share_their_objects(world: &World) {
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "shared.1"},
        "regarding": {"kind": "ConfigMap", "name": "one", "namespace": world.namespace()},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/behaviour",
        "reportingInstance": "behaviour-1", "action": "Test", "reason": "Tested", "type": "Normal", "note": "a note",
    });
    world.post(&world.in_group("/apis/events.k8s.io/v1", "events"), &event).await.created();
    let core = world.get(&world.core("events/shared.1")).await.ok();
    assert_eq!(core["involvedObject"]["name"], "one");
    assert_eq!(core["message"], "a note");
    assert_eq!(core["apiVersion"], "v1");
}

pub(crate) async fn leases_keep_micro_seconds_and_compare_versions(world: &World) {
    let leases = world.in_group("/apis/coordination.k8s.io/v1", "leases");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lock"},
        "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.123456Z", "renewTime": "2026-01-01T00:00:00.123456Z",
        },
    });
    let made = world.post(&leases, &lease).await.created();
    assert_eq!(made["spec"]["renewTime"], "2026-01-01T00:00:00.123456Z");
    let path = format!("{leases}/lock");
    let mut first = made.clone();
    first["spec"]["holderIdentity"] = json!("b");
    let won = world.put(&path, &first).await.ok();
    assert_ne!(version(&won), version(&made));
    let mut second = made;
    second["spec"]["holderIdentity"] = json!("c");
    world.put(&path, &second).await.fails(409, "Conflict");
    assert_eq!(world.get(&path).await.ok()["spec"]["holderIdentity"], "b");
}

pub(crate) async fn a_token_review_knows_no_stranger(world: &World) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "stranger"}});
    let answer = world.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.created();
    assert!(answer["status"]["authenticated"].as_bool() != Some(true), "{answer}");
}
