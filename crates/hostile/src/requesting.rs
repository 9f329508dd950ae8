//! The whole way of a request: path, query, headers and body against a cluster.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::encoding::{self, JSON, PROTOBUF, YAML};
use crate::world::{Reply, Sent, World, run};
use crate::{patching, templates, values};

/// Requests of one case.
const MOST_REQUESTS: usize = 8;

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Every request is answered; a refusal is a `Status` with the code of the answer and a reason, and stores nothing;
/// bad input is never the server's fault; and what is stored can be read and written back.
pub fn request(bytes: &[u8]) {
    run(async {
        let world = World::new().await;
        let mut dice = Dice::new(bytes);
        for _ in 0..MOST_REQUESTS {
            let sent = compose(&mut dice);
            world.settle().await;
            let before = world.revision();
            if let Some(reply) = world.send(&sent).await {
                check(&sent, &reply, world.revision() != before);
            }
            if dice.is_empty() {
                break;
            }
        }
        world.check().await;
    });
}

fn check(sent: &Sent, reply: &Reply, stored: bool) {
    let told = || {
        format!("{sent:?} body {:?}: {} {}", String::from_utf8_lossy(&sent.body), reply.code, reply.text())
    };
    let is_json = reply.content_type.starts_with(JSON);
    if (200..300).contains(&reply.code) {
        let whole = is_json && !sent.uri.contains("watch");
        assert!(!whole || serde_json::from_slice::<Value>(&reply.body).is_ok(), "{}", told());
        return;
    }
    assert!(reply.code >= 400 && is_json, "{}", told());
    // A strategic merge patch at odds with the object is an internal error on a real server too.
    let strategic = sent.headers.iter().any(|(_, value)| value == STRATEGIC);
    assert!(reply.code < 500 || reply.code == 504 || (reply.code == 500 && strategic), "{}", told());
    let status: Value = serde_json::from_slice(&reply.body).unwrap_or_else(|_| panic!("{}", told()));
    assert_eq!((&status["kind"], &status["apiVersion"]), (&json!("Status"), &json!("v1")), "{}", told());
    assert_eq!(status["status"], "Failure", "{}", told());
    assert_eq!(status["code"], reply.code, "{}", told());
    assert!(status["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{}", told());
    assert!(!stored, "refused and yet stored: {}", told());
}

/// Where a request goes.
struct Place {
    /// Up to the version.
    root: String,
    plural: String,
    api_version: String,
    kind: String,
    namespaced: bool,
}

fn compose(dice: &mut Dice<'_>) -> Sent {
    let method = method(dice);
    let place = place(dice, method);
    let name = match dice.one_in(8) {
        true => values::text(dice),
        false => (*dice.pick(&["web", "web", "web", "team", "db"])).to_owned(),
    };
    let namespace = match dice.one_in(12) {
        true => values::text(dice),
        false => (*dice.pick(&["default", "default", "default", "team"])).to_owned(),
    };
    let to_collection = method == "POST" || dice.one_in(12);

    let mut segments = vec![place.root.clone()];
    if place.namespaced && !dice.one_in(16) {
        segments.push(format!("namespaces/{}", escape(&namespace)));
    }
    segments.push(place.plural.clone());
    if !to_collection {
        segments.push(escape(&name));
    }
    if dice.one_in(5) {
        segments
            .push((*dice.pick(&["status", "scale", "eviction", "log", "finalize", "binding"])).to_owned());
    }
    if dice.one_in(20) {
        let at = dice.below(segments.len());
        segments[at] = odd_segment(dice);
    }
    let uri = format!("{}{}", segments.join("/"), query(dice));

    let mut object = templates::object(dice, &place.api_version, &place.kind);
    if object["metadata"].is_object() && !dice.one_in(10) {
        object["metadata"]["name"] = name.as_str().into();
        if place.namespaced {
            object["metadata"]["namespace"] = namespace.into();
        }
    }
    for _ in 0..dice.below(6).saturating_sub(3) {
        values::damage(dice, &mut object);
    }
    let (content_type, body) = body(dice, method, &place, &object);
    let mut headers = vec![("content-type", content_type)];
    if dice.one_in(4) {
        headers.push(("accept", accept(dice)));
    }
    Sent { method, uri, headers, body }
}

fn method(dice: &mut Dice<'_>) -> &'static str {
    match dice.below(20) {
        0..6 => "POST",
        6..9 => "PUT",
        9..15 => "PATCH",
        15..17 => "GET",
        17..19 => "DELETE",
        _ => dice.pick::<&str>(&["HEAD", "OPTIONS", "FOO"]),
    }
}

fn place(dice: &mut Dice<'_>, method: &str) -> Place {
    let custom = |version: &str, kind: &str, plural: &str| Place {
        root: format!("/apis/example.com/{version}"),
        plural: plural.to_owned(),
        api_version: format!("example.com/{version}"),
        kind: kind.to_owned(),
        namespaced: kind == "Gadget",
    };
    let built_in = |kind: &baton_kinds::Kind| Place {
        root: format!("{}/{}", if kind.group.is_empty() { "/api" } else { "/apis" }, kind.api_version()),
        plural: kind.plural.to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        namespaced: kind.namespaced,
    };
    // Most requests about an object are about one that is there.
    let there = [("", "configmaps"), ("apps", "deployments"), ("", "namespaces")];
    match dice.below(12) {
        0..2 => custom("v1", "Gadget", "gadgets"),
        2 => custom("v1beta1", "Gadget", "gadgets"),
        3 if dice.one_in(3) => custom("v1", "Widget", "widgets"),
        3..8 if method != "POST" => {
            let (group, plural) = *dice.pick(&there);
            built_in(baton_kinds::find(group, "v1", plural).expect("a kind every cluster has"))
        }
        8 => {
            let template = dice.pick(&templates::OBJECTS);
            let text = |name: &str| template[name].as_str().unwrap_or_default();
            let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
            let kind = baton_kinds::find_kind(group, version, text("kind"));
            kind.map_or_else(|| custom("v1", "Gadget", "gadgets"), built_in)
        }
        _ => built_in(dice.pick(baton_kinds::all())),
    }
}

fn odd_segment(dice: &mut Dice<'_>) -> String {
    match dice.below(8) {
        0 => String::new(),
        1 => "%ff%fe".to_owned(),
        2 => "%00".to_owned(),
        3 => "%2e%2e".to_owned(),
        4 => "a".repeat(10_000),
        5 => "watch".to_owned(),
        6 => "/openapi/v3".to_owned(),
        _ => escape(&values::text(dice)),
    }
}

fn query(dice: &mut Dice<'_>) -> String {
    const KEYS: [&str; 20] = [
        "fieldManager",
        "force",
        "dryRun",
        "fieldValidation",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "watch",
        "timeoutSeconds",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "propagationPolicy",
        "gracePeriodSeconds",
        "orphanDependents",
        "includeObject",
        "pretty",
        "%00",
    ];
    const VALUES: [&str; 22] = [
        "me",
        "true",
        "All",
        "Strict",
        "Ignore",
        "app=web",
        "!app",
        "a%20in%20(b,c)",
        "metadata.name=web",
        "status.phase!=Running",
        "1",
        "0",
        "-1",
        "18446744073709551615",
        "99999999999999999999",
        "Exact",
        "NotOlderThan",
        "Foreground",
        "Orphan",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvIn0",
        "Metadata",
        "",
    ];
    let mut query = String::new();
    // Apply needs a manager and would otherwise rarely get past its first check.
    if dice.one_in(2) {
        query.push_str(dice.pick::<&str>(&["?fieldManager=me", "?fieldManager=me&force=true"]));
    }
    for _ in 0..dice.below(4) {
        let value =
            if dice.one_in(6) { escape(&values::text(dice)) } else { (*dice.pick(&VALUES)).to_owned() };
        let separator = if query.is_empty() { '?' } else { '&' };
        query.push_str(&format!("{separator}{}={value}", dice.pick(&KEYS)));
    }
    query
}

fn accept(dice: &mut Dice<'_>) -> String {
    let wish = *dice.pick(&[
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/yaml",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        "text/html",
        "*/*;q=0.1",
        ";;;,,,=",
    ]);
    wish.to_owned()
}

fn body(dice: &mut Dice<'_>, method: &str, place: &Place, object: &Value) -> (String, Vec<u8>) {
    if dice.one_in(24) {
        let content_type =
            *dice.pick(&[JSON, YAML, PROTOBUF, APPLY, JSON_PATCH, "text/plain", "", "application/json; x"]);
        return (content_type.to_owned(), dice.take(64).to_vec());
    }
    let any;
    let object = match dice.one_in(24) {
        true => {
            any = values::value(dice, 3);
            &any
        }
        false => object,
    };
    let (content_type, body) = match (method, dice.below(6)) {
        ("PATCH", 0) => (STRATEGIC, encode_changes(dice, object)),
        ("PATCH", 1) => (MERGE, encode_changes(dice, object)),
        ("PATCH", 2) => {
            let operations = patching::operations(dice, object);
            (JSON_PATCH, encoding::json(dice, &operations))
        }
        ("PATCH", 3) => (APPLY, encoding::yaml(dice, object)),
        ("PATCH", _) => (APPLY, encoding::json(dice, object)),
        (_, 0) => (YAML, encoding::yaml(dice, object)),
        (_, 1) => (PROTOBUF, encoding::protobuf(dice, &place.api_version, &place.kind)),
        ("DELETE", 2 | 3) => (JSON, Vec::new()),
        ("DELETE", _) => (JSON, encode_options(dice)),
        _ => (JSON, encoding::json(dice, object)),
    };
    (content_type.to_owned(), body)
}

fn encode_changes(dice: &mut Dice<'_>, object: &Value) -> Vec<u8> {
    let changes = patching::changes(dice, object);
    encoding::json(dice, &changes)
}

fn encode_options(dice: &mut Dice<'_>) -> Vec<u8> {
    let mut options = templates::object(dice, "v1", "DeleteOptions");
    values::damage(dice, &mut options);
    encoding::json(dice, &options)
}

/// What may not stand in a path or query as it is.
const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'/')
    .add(b'&')
    .add(b'{')
    .add(b'}')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'|');

fn escape(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
