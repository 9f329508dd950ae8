//! Lists: order, pages over one snapshot, and selectors.

use crate::world::{World, config_map, names, text, version};
use serde_json::{Value, json};

pub(crate) async fn items_come_in_name_order_without_their_type(world: &World) {
    for name in ["charlie", "alpha", "bravo"] {
        world.config_map(name, json!({"set": "order"})).await;
    }
    let list = world.get(&format!("{}?labelSelector=set%3Dorder", world.core("configmaps"))).await.ok();
    assert_eq!(names(&list), ["alpha", "bravo", "charlie"]);
    assert_eq!(list["apiVersion"], "v1");
    assert!(list["items"][0].get("kind").is_none(), "items of a built-in list carry no type");
}

pub(crate) async fn an_empty_list_has_an_empty_array(world: &World) {
    let list = world.get(&world.core("secrets")).await.ok();
    assert_eq!(list["items"], json!([]));
    assert_eq!(list["kind"], "SecretList");
    assert!(!version(&list).is_empty());
}

pub(crate) async fn lists_span_namespaces_in_order(world: &World) {
    let label = format!("run%3D{}", world.unique());
    world.config_map("one", json!({"run": world.unique()})).await;
    let list = world.get(&format!("/api/v1/configmaps?labelSelector={label}")).await.ok();
    assert_eq!(names(&list), ["one"]);
    assert_eq!(list["items"][0]["metadata"]["namespace"], world.namespace());
}

pub(crate) async fn pages_are_one_snapshot_while_others_write(world: &World) {
    let path = world.core("secrets");
    make_secrets(world, 0..7).await;
    let first = world.get(&format!("{path}?limit=3")).await.ok();
    assert_eq!(names(&first), ["s00", "s01", "s02"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 4);
    world.delete(&format!("{path}/s04")).await.ok();
    make_secrets(world, 7..9).await;
    let second = world.get(&format!("{path}?limit=3&continue={}", token(&first))).await.ok();
    assert_eq!(names(&second), ["s03", "s04", "s05"]);
    assert_eq!(version(&second), version(&first));
    let third = world.get(&format!("{path}?limit=3&continue={}", token(&second))).await.ok();
    assert_eq!(names(&third), ["s06"]);
    assert_eq!(version(&third), version(&first));
    assert!(third["metadata"].get("continue").is_none_or(|rest| rest == ""));
    assert!(third["metadata"].get("remainingItemCount").is_none());
}

pub(crate) async fn a_limit_above_the_count_gives_all(world: &World) {
    make_secrets(world, 0..3).await;
    let list = world.get(&format!("{}?limit=500", world.core("secrets"))).await.ok();
    assert_eq!(names(&list).len(), 3);
    assert!(list["metadata"].get("continue").is_none_or(|rest| rest == ""));
}

pub(crate) async fn a_selector_hides_the_remaining_count(world: &World) {
    make_secrets(world, 0..5).await;
    let path = format!("{}?limit=2&labelSelector=parity%3Deven", world.core("secrets"));
    let first = world.get(&path).await.ok();
    assert_eq!(names(&first), ["s00", "s02"]);
    assert!(first["metadata"].get("remainingItemCount").is_none());
    let second = world.get(&format!("{path}&continue={}", token(&first))).await.ok();
    assert_eq!(names(&second), ["s04"]);
}

pub(crate) async fn a_continue_token_excludes_a_version(world: &World) {
    make_secrets(world, 0..3).await;
    let path = world.core("secrets");
    let first = world.get(&format!("{path}?limit=1")).await.ok();
    let reply = world.get(&format!("{path}?limit=1&continue={}&resourceVersion=5", token(&first))).await;
    reply.fails_saying(400, "BadRequest", &["resource version", "continue"]);
}

pub(crate) async fn options_that_exclude_each_other_are_refused(world: &World) {
    let path = world.core("secrets");
    for (query, field) in [
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("resourceVersion=1&resourceVersionMatch=Exact&continue=abc", "resourceVersionMatch"),
    ] {
        let status = world.get(&format!("{path}?{query}")).await.fails(422, "Invalid");
        assert!(crate::world::cause_fields(&status).contains(&field), "{status}");
    }
}

pub(crate) async fn label_selectors_of_every_form(world: &World) {
    world.config_map("a", json!({"tier": "web", "env": "dev", "set": "l"})).await;
    world.config_map("b", json!({"tier": "db", "env": "prod", "set": "l"})).await;
    world.config_map("c", json!({"tier": "web", "env": "prod", "set": "l"})).await;
    world.config_map("d", json!({"set": "l"})).await;
    let cases: [(&str, &[&str]); 11] = [
        ("tier=web", &["a", "c"]),
        ("tier==web", &["a", "c"]),
        ("tier!=web", &["b", "d"]),
        ("tier=web,env=prod", &["c"]),
        ("tier in (web, db)", &["a", "b", "c"]),
        ("tier notin (web)", &["b", "d"]),
        ("tier", &["a", "b", "c"]),
        ("!tier", &["d"]),
        ("tier in (db),!nothing", &["b"]),
        ("env notin (dev,prod)", &["d"]),
        ("tier in ()", &[]),
    ];
    for (selector, expected) in cases {
        let selector = encode(&format!("set=l,{selector}"));
        let list = world.get(&format!("{}?labelSelector={selector}", world.core("configmaps"))).await.ok();
        assert_eq!(names(&list), expected, "{selector}");
    }
}

pub(crate) async fn label_selectors_compare_numbers(world: &World) {
    world.config_map("a", json!({"weight": "5"})).await;
    world.config_map("b", json!({"weight": "15"})).await;
    let path = world.core("configmaps");
    let list = world.get(&format!("{path}?labelSelector={}", encode("weight>9"))).await.ok();
    assert_eq!(names(&list), ["b"]);
    let list = world.get(&format!("{path}?labelSelector={}", encode("weight<9"))).await.ok();
    assert_eq!(names(&list), ["a"]);
}

pub(crate) async fn an_unreadable_label_selector_is_a_bad_request(world: &World) {
    for selector in ["tier in web", "=x", "tier in (web", "bad key!=x", "tier=bad value!"] {
        let reply =
            world.get(&format!("{}?labelSelector={}", world.core("configmaps"), encode(selector))).await;
        reply.fails(400, "BadRequest");
    }
}

pub(crate) async fn field_selectors_on_name_and_namespace(world: &World) {
    for name in ["a", "b", "c"] {
        world.config_map(name, json!({"set": "f"})).await;
    }
    let path = format!("{}?labelSelector=set%3Df&fieldSelector=", world.core("configmaps"));
    assert_eq!(names(&world.get(&format!("{path}{}", encode("metadata.name=b"))).await.ok()), ["b"]);
    assert_eq!(names(&world.get(&format!("{path}{}", encode("metadata.name!=b"))).await.ok()), ["a", "c"]);
    let namespaced = encode(&format!("metadata.namespace={},metadata.name==c", world.namespace()));
    assert_eq!(names(&world.get(&format!("{path}{namespaced}")).await.ok()), ["c"]);
}

pub(crate) async fn field_selectors_on_kinds_of_their_own(world: &World) {
    let secret = |name: &str, kind: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind});
    world.post(&world.core("secrets"), &secret("plain", "Opaque")).await.created();
    world.post(&world.core("secrets"), &secret("own", "example.com/own")).await.created();
    let list = world
        .get(&format!("{}?fieldSelector={}", world.core("secrets"), encode("type=example.com/own")))
        .await;
    assert_eq!(names(&list.ok()), ["own"]);
    world.post(&world.core("pods"), &pod("idle")).await.created();
    let path = world.core("pods");
    for (selector, expected) in [
        ("spec.restartPolicy=Always", vec!["idle"]),
        ("spec.restartPolicy=Never", vec![]),
        ("metadata.name=idle", vec!["idle"]),
    ] {
        let list = world.get(&format!("{path}?fieldSelector={}", encode(selector))).await.ok();
        assert_eq!(names(&list), expected, "{selector}");
    }
}

pub(crate) async fn an_unsupported_field_label_is_a_bad_request(world: &World) {
    let reply =
        world.get(&format!("{}?fieldSelector={}", world.core("configmaps"), encode("data.key=value"))).await;
    reply.fails_saying(
        400,
        "BadRequest",
        &["\"data.key\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""],
    );
}

async fn make_secrets(world: &World, range: std::ops::Range<u32>) {
    for index in range {
        let parity = if index % 2 == 0 { "even" } else { "odd" };
        let mut secret = config_map(&format!("s{index:02}"), json!({"parity": parity}));
        secret["kind"] = json!("Secret");
        secret["data"] = json!({});
        world.post(&world.core("secrets"), &secret).await.created();
    }
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
    })
}

fn token(list: &Value) -> String {
    encode(text(list, "/metadata/continue"))
}

fn encode(query: &str) -> String {
    percent_encoding::utf8_percent_encode(query, percent_encoding::NON_ALPHANUMERIC).to_string()
}
