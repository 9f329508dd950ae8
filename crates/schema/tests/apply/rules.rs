//! The rules of server-side apply, one by one.

use std::sync::Arc;

use baton_schema::apply::{ApplyError, Writer, apply, track_update};
use baton_schema::{Reader, Schema};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:01:00Z";

fn schema() -> Arc<Schema> {
    let document = json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": {
                "replicas": { "type": "integer" },
                "name": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": { "type": "object", "properties": {
                        "port": { "type": "integer" },
                        "protocol": { "type": "string", "default": "TCP" },
                        "name": { "type": "string" }
                    } }
                },
                "args": { "type": "array", "items": { "type": "string" } },
                "selector": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": { "type": "string" }
                },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }
            } },
            "status": { "type": "object", "properties": { "seen": { "type": "integer" } } }
        }
    });
    Reader::standalone().read(&document).expect("the schema is readable")
}

fn object(spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "x" }, "spec": spec })
}

fn writer(manager: &str) -> Writer<'_> {
    Writer { manager, api_version: "v1", time: NOW, ..Writer::default() }
}

fn created(spec: Value, manager: &str) -> Value {
    let mut new = object(spec);
    track_update(&schema(), None, &mut new, &writer(manager));
    new["metadata"]["uid"] = json!("u");
    new
}

fn updated(before: &Value, spec: Value, by: &Writer<'_>) -> Value {
    let mut after = before.clone();
    after["spec"] = spec;
    after["metadata"].as_object_mut().expect("metadata is an object").remove("managedFields");
    track_update(&schema(), Some(before), &mut after, by);
    after
}

fn applied(live: &Value, spec: Value, manager: &str) -> Value {
    apply(&schema(), Some(live), &object(spec), &writer(manager), false).expect("no conflicts")
}

/// What a manager owns, or null.
fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = entries.into_iter().find(|entry| entry["manager"] == manager);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[test]
fn a_create_owns_every_field_and_the_objects_that_hold_them() {
    let new =
        created(json!({ "replicas": 1, "ports": [{ "port": 80, "name": "web" }], "args": ["a"] }), "me");
    let expected = json!([{
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": {
            ".": {},
            "f:args": {},
            "f:ports": {
                ".": {},
                "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:name": {}, "f:port": {} }
            },
            "f:replicas": {}
        } }
    }]);
    assert_eq!(new["metadata"]["managedFields"], expected);
}

#[test]
fn objects_that_are_always_there_are_nobodys_in_built_in_kinds() {
    let document = |metadata: Value| {
        json!({ "type": "object", "properties": { "metadata": metadata, "spec": {
        "type": "object", "default": {}, "required": ["items"], "properties": {
            "items": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" },
            "inner": { "type": "object", "default": {}, "properties": { "a": { "type": "integer" } } },
            "pointer": { "type": "object", "properties": { "a": { "type": "integer" } } }
        }
    } } })
    };
    let built_in = json!({ "f:spec": {
        "f:inner": { "f:a": {} },
        "f:items": { "v:\"x\"": {} },
        "f:pointer": { ".": {}, "f:a": {} }
    } });
    let custom = json!({ "f:spec": {
        ".": {},
        "f:inner": { ".": {}, "f:a": {} },
        "f:items": { ".": {}, "v:\"x\"": {} },
        "f:pointer": { ".": {}, "f:a": {} }
    } });
    let cases =
        [(json!({ "type": "object", "default": {} }), built_in), (json!({ "type": "object" }), custom)];
    for (metadata, expected) in cases {
        let schema = Reader::standalone().read(&document(metadata)).expect("the schema is readable");
        let mut new = object(json!({ "items": ["x"], "inner": { "a": 1 }, "pointer": { "a": 1 } }));
        let unmanaged = new.clone();
        track_update(&schema, None, &mut new, &writer("me"));
        assert_eq!(owned(&new, "me"), expected);

        let config = json!({ "apiVersion": "v1", "kind": "Thing", "metadata": { "name": "x" } });
        let applied = apply(&schema, Some(&unmanaged), &config, &writer("me"), false).expect("no conflicts");
        assert_eq!(owned(&applied, "before-first-apply"), expected);
    }
}

#[test]
fn a_changed_field_goes_to_whoever_changed_it() {
    let before = created(json!({ "replicas": 1, "name": "a" }), "first");
    let after = updated(&before, json!({ "replicas": 2, "name": "a" }), &writer("second"));
    assert_eq!(owned(&after, "first"), json!({ "f:spec": { ".": {}, "f:name": {} } }));
    assert_eq!(owned(&after, "second"), json!({ "f:spec": { "f:replicas": {} } }));
}

#[test]
fn an_update_that_changes_nothing_leaves_the_bookkeeping_alone() {
    let before = created(json!({ "replicas": 1 }), "first");
    let idle = Writer { time: LATER, ..writer("first") };
    assert_eq!(updated(&before, before["spec"].clone(), &idle), before);
}

#[test]
fn a_manager_with_nothing_left_is_forgotten() {
    let before = applied(&created(json!({ "name": "a" }), "first"), json!({ "replicas": 1 }), "second");
    let after = updated(&before, json!({ "name": "a" }), &writer("third"));
    assert_eq!(owned(&after, "second"), Value::Null);
    assert_eq!(owned(&after, "third"), Value::Null, "taking a field away leaves nothing to own");
}

#[test]
fn what_names_an_object_is_never_owned() {
    let mut new = object(json!({}));
    new["metadata"] = json!({
        "name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1,
        "creationTimestamp": NOW, "selfLink": "/", "labels": { "a": "b" }
    });
    track_update(&schema(), None, &mut new, &writer("me"));
    let expected = json!({ "f:metadata": { "f:labels": { ".": {}, "f:a": {} } }, "f:spec": {} });
    assert_eq!(owned(&new, "me"), expected);
}

#[test]
fn an_endpoint_gives_nobody_the_fields_it_resets() {
    let by = |subresource, ignored| Writer { subresource, ignored, ..writer("me") };
    let mut new = object(json!({ "replicas": 1 }));
    new["status"] = json!({ "seen": 1 });
    let mut main = new.clone();
    track_update(&schema(), None, &mut main, &by("", &["status"]));
    assert_eq!(owned(&main, "me"), json!({ "f:spec": { ".": {}, "f:replicas": {} } }));

    let mut status = main.clone();
    status["metadata"]["uid"] = json!("u");
    let before = status.clone();
    status["status"]["seen"] = json!(2);
    status["spec"]["replicas"] = json!(9);
    track_update(&schema(), Some(&before), &mut status, &by("status", &["spec", "metadata"]));
    let entries = status["metadata"]["managedFields"].as_array().expect("entries");
    let entry = entries.iter().find(|entry| entry["subresource"] == "status").expect("an entry of its own");
    assert_eq!(entry["fieldsV1"], json!({ "f:status": { "f:seen": {} } }));
}

#[test]
fn clients_may_reset_keep_or_edit_the_bookkeeping_but_not_break_it() {
    let before = created(json!({ "replicas": 1 }), "first");
    let kept = before["metadata"]["managedFields"].clone();
    let edited = json!([{
        "manager": "edited", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:replicas": {} } }
    }]);
    let bad_fields = json!([{
        "manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "nonsense": {} } }
    }]);
    let cases = [
        ("absent", None, Some(&kept)),
        ("null", Some(Value::Null), Some(&kept)),
        ("an empty list", Some(json!([])), None),
        ("one empty entry", Some(json!([{}])), None),
        ("valid", Some(edited.clone()), Some(&edited)),
        ("of no known operation", Some(json!([{ "operation": "Guess" }])), Some(&kept)),
        ("unreadable fields", Some(bad_fields), Some(&kept)),
        ("no list", Some(json!("x")), Some(&kept)),
    ];
    for (case, sent, expected) in cases {
        let mut after = before.clone();
        let metadata = after["metadata"].as_object_mut().expect("metadata is an object");
        metadata.remove("managedFields");
        metadata.extend(sent.map(|sent| ("managedFields".to_owned(), sent)));
        track_update(&schema(), Some(&before), &mut after, &writer("me"));
        assert_eq!(after["metadata"].get("managedFields"), expected, "{case}");
    }
}

#[test]
fn applying_sets_fields_and_applying_without_them_removes_them() {
    let live = created(json!({ "name": "a" }), "first");
    let one = applied(&live, json!({ "replicas": 1, "tags": ["t"], "free": { "a": { "b": 1 } } }), "me");
    assert_eq!(
        one["spec"],
        json!({ "name": "a", "replicas": 1, "tags": ["t"], "free": { "a": { "b": 1 } } })
    );
    let two = applied(&one, json!({ "free": { "c": 1 } }), "me");
    assert_eq!(two["spec"], json!({ "name": "a", "free": { "c": 1 } }));
    let three = applied(&two, json!({}), "me");
    assert_eq!(three["spec"], json!({ "name": "a" }));
}

#[test]
fn a_field_somebody_else_owns_too_stays() {
    let live = created(json!({}), "first");
    let both = applied(&applied(&live, json!({ "tags": ["a", "b"] }), "me"), json!({ "tags": ["b"] }), "you");
    let left = applied(&both, json!({}), "me");
    assert_eq!(left["spec"], json!({ "tags": ["b"] }));
    assert_eq!(owned(&left, "me"), json!({ "f:spec": {} }));
}

#[test]
fn a_list_element_goes_with_its_last_owner_whatever_others_put_into_it() {
    let one = applied(&created(json!({}), "first"), json!({ "ports": [{ "port": 1 }] }), "me");
    let named = updated(&one, json!({ "ports": [{ "port": 1, "name": "n" }] }), &writer("you"));
    assert_eq!(applied(&named, json!({}), "me")["spec"], json!({}));
}

#[test]
fn a_list_element_that_stays_keeps_what_nobody_owns() {
    let config = json!({ "ports": [{ "port": 1 }] });
    let mut both = applied(&applied(&created(json!({}), "first"), config.clone(), "me"), config, "you");
    both["spec"]["ports"][0]["name"] = json!("defaulted");
    let left = applied(&both, json!({}), "me");
    assert_eq!(left["spec"]["ports"], json!([{ "port": 1, "name": "defaulted" }]));
}

#[test]
fn lists_merge_in_the_order_applied_around_what_the_server_has() {
    let cases = [
        (json!(["a", "b", "c"]), json!(["x"]), json!(["a", "b", "c", "x"])),
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "b", "c", "d"]), json!(["d", "b", "x"]), json!(["a", "c", "d", "b", "x"])),
        (json!(["a", "b"]), json!(["x", "a"]), json!(["x", "a", "b"])),
        (json!([]), json!(["x"]), json!(["x"])),
        (json!(["a"]), json!([]), json!(["a"])),
    ];
    for (live, config, expected) in cases {
        let before = created(json!({ "tags": live }), "first");
        let after = applied(&before, json!({ "tags": config }), "me");
        assert_eq!(after["spec"]["tags"], expected, "{live} with {config}");
    }
}

#[test]
fn an_unset_key_field_is_its_default() {
    let before = created(json!({ "ports": [{ "port": 80, "protocol": "TCP", "name": "web" }] }), "first");
    let after =
        applied(&before, json!({ "ports": [{ "port": 80 }, { "port": 80, "protocol": "UDP" }] }), "me");
    let expected =
        json!([{ "port": 80, "protocol": "TCP", "name": "web" }, { "port": 80, "protocol": "UDP" }]);
    assert_eq!(after["spec"]["ports"], expected);
}

#[test]
fn what_is_atomic_is_replaced_and_owned_as_one() {
    let before = created(json!({ "args": ["a", "b"], "selector": { "a": "b" } }), "first");
    let config = object(json!({ "args": ["c"], "selector": { "c": "d" } }));
    let after = apply(&schema(), Some(&before), &config, &writer("me"), true).expect("forced");
    assert_eq!(after["spec"], json!({ "args": ["c"], "selector": { "c": "d" } }));
    assert_eq!(owned(&after, "me"), json!({ "f:spec": { "f:args": {}, "f:selector": {} } }));
    assert_eq!(owned(&after, "first"), json!({ "f:spec": {} }));
}

#[test]
fn only_differing_values_conflict_and_the_message_names_each() {
    let live =
        created(json!({ "replicas": 1, "name": "a", "ports": [{ "port": 80, "name": "web" }] }), "kubectl");
    let shared = applied(&live, json!({ "replicas": 1 }), "me");
    assert_eq!(owned(&shared, "me"), json!({ "f:spec": { "f:replicas": {} } }));

    let refused = |live: &Value, spec: Value| {
        apply(&schema(), Some(live), &object(spec), &writer("you"), false).expect_err("must conflict")
    };
    let error = refused(&live, json!({ "replicas": 2, "name": "a" }));
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .spec.replicas"
    );
    assert_eq!(error.status(), 409);

    let error =
        refused(&shared, json!({ "replicas": 2, "name": "b", "ports": [{ "port": 80, "name": "x" }] }));
    assert_eq!(
        error.to_string(),
        "Apply failed with 4 conflicts: conflicts with \"kubectl\" using v1:\n\
         - .spec.name\n\
         - .spec.replicas\n\
         - .spec.ports[port=80,protocol=\"TCP\"].name\n\
         conflicts with \"me\":\n\
         - .spec.replicas"
    );
    let ApplyError::Conflicts(conflicts) = error else { panic!("not a conflict") };
    let cause = json!({
        "reason": "FieldManagerConflict",
        "message": "conflict with \"kubectl\" using v1",
        "field": ".spec.name"
    });
    assert_eq!(conflicts[0].to_cause(), cause);
}

#[test]
fn force_takes_the_field_from_everybody_else() {
    let live = applied(&created(json!({ "replicas": 1 }), "first"), json!({ "replicas": 1 }), "second");
    let forced = apply(&schema(), Some(&live), &object(json!({ "replicas": 2 })), &writer("me"), true)
        .expect("forced");
    assert_eq!(forced["spec"]["replicas"], 2);
    assert_eq!(owned(&forced, "first"), json!({ "f:spec": {} }));
    assert_eq!(owned(&forced, "second"), Value::Null);
}

#[test]
fn applying_the_same_again_changes_nothing_at_all() {
    let config = object(json!({ "replicas": 1, "tags": ["a"], "ports": [{ "port": 1 }] }));
    let once = apply(&schema(), None, &config, &writer("me"), false).expect("a new object has no conflicts");
    let later = Writer { time: LATER, ..writer("me") };
    let twice = apply(&schema(), Some(&once), &config, &later, false).expect("no conflicts with oneself");
    assert_eq!(once, twice);
}

#[test]
fn time_tells_when_the_object_changed_last() {
    let time = |object: &Value| object["metadata"]["managedFields"][0]["time"].clone();
    let later = Writer { time: LATER, ..writer("me") };
    let run = |live: Option<&Value>, spec: Value, by: &Writer<'_>| {
        apply(&schema(), live, &object(spec), by, false).expect("no conflicts")
    };
    let one = run(None, json!({ "replicas": 1 }), &writer("me"));
    assert_eq!(time(&one), NOW);
    assert_eq!(time(&run(Some(&one), json!({ "replicas": 1 }), &later)), NOW);
    assert_eq!(time(&run(Some(&one), json!({ "replicas": 2 }), &later)), LATER);
}

#[test]
fn an_object_nobody_manages_belongs_to_before_first_apply() {
    let after = applied(&object(json!({ "replicas": 1 })), json!({ "name": "a" }), "me");
    assert_eq!(owned(&after, "before-first-apply"), json!({ "f:spec": { ".": {}, "f:replicas": {} } }));
    assert_eq!(owned(&after, "me"), json!({ "f:spec": { "f:name": {} } }));
}

#[test]
fn ten_updaters_are_remembered_and_the_oldest_merged() {
    let mut live = created(json!({ "free": {} }), "m0");
    for number in 1..14 {
        let time = format!("2026-01-01T00:00:{number:02}Z");
        let manager = format!("m{number}");
        let mut spec = live["spec"].clone();
        spec["free"][format!("k{number}")] = json!(1);
        live = updated(&live, spec, &Writer { time: &time, ..writer(&manager) });
    }
    let entries = live["metadata"]["managedFields"].as_array().expect("entries");
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry["manager"].as_str()).collect();
    assert_eq!(names, ["ancient-changes", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13"]);
    assert_eq!(entries[0]["time"], "2026-01-01T00:00:04Z");
}

#[test]
fn a_list_that_became_atomic_is_owned_as_one_by_those_who_owned_its_elements() {
    let mut live = created(json!({}), "first");
    live["spec"] = json!({ "args": ["a"] });
    live["metadata"]["managedFields"] = json!([{
        "manager": "me", "operation": "Apply", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": { "f:args": { ".": {}, "v:\"a\"": {} } } }
    }]);
    let after = updated(&live, json!({ "args": ["a"], "replicas": 1 }), &writer("you"));
    assert_eq!(owned(&after, "me"), json!({ "f:spec": { "f:args": {} } }));
}

#[test]
fn configurations_that_cannot_be_merged_are_refused_with_their_place() {
    let cases = [
        (json!({ "tags": ["a", "a"] }), ".spec.tags: duplicate entries for key [=\"a\"]"),
        (
            json!({ "ports": [{ "port": 1 }, { "port": 1, "protocol": "TCP" }] }),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (json!({ "bogus": 1 }), ".spec.bogus: field not declared in schema"),
        (json!({ "replicas": "x" }), ".spec.replicas: expected numeric (int or float), got string"),
        (json!({ "ports": {} }), ".spec.ports: expected list, got &{map[]}"),
        (
            json!({ "ports": [1] }),
            ".spec.ports: element 0: associative list with keys may not have non-map elements",
        ),
    ];
    for (spec, expected) in cases {
        let error = apply(&schema(), None, &object(spec), &writer("me"), true).expect_err("must be refused");
        assert_eq!(
            error.to_string(),
            format!("failed to create typed patch object (/x; /v1, Kind=Thing): {expected}")
        );
    }
}

#[test]
fn list_elements_without_any_key_are_refused() {
    let document = json!({ "type": "object", "properties": { "l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": { "type": "object", "properties": { "a": { "type": "string" }, "c": { "type": "string" } } }
    } } });
    let schema = Reader::standalone().read(&document).expect("the schema is readable");
    let config = json!({ "apiVersion": "v1", "kind": "T", "metadata": {}, "l": [{ "c": "x" }] });
    let error = apply(&schema, None, &config, &writer("me"), false).expect_err("must be refused");
    assert!(error.to_string().contains("omits all key fields [\"a\" \"b\"]"), "{error}");
}

#[test]
fn configurations_for_something_else_are_bad_requests() {
    let mut versioned = object(json!({}));
    versioned["apiVersion"] = json!("v2");
    let mut managed = object(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let cases = [
        (versioned, "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1"),
        (managed, "metadata.managedFields must be nil"),
        (json!([]), "error decoding patch: the configuration is not an object"),
    ];
    for (config, expected) in cases {
        let error = apply(&schema(), None, &config, &writer("me"), false).expect_err("must be refused");
        assert_eq!((error.to_string().as_str(), error.status()), (expected, 400));
    }
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = created(json!({ "replicas": 1, "name": "a" }), "kubectl-client-side-apply");
    live["metadata"]["annotations"] = json!({ annotation: object(json!({ "replicas": 1 })).to_string() });
    let config = |spec| object(spec);
    let taken = apply(&schema(), Some(&live), &config(json!({ "replicas": 2 })), &writer("kubectl"), false)
        .expect("ours");
    assert_eq!(taken["spec"]["replicas"], 2);
    let recorded = taken["metadata"]["annotations"][annotation].as_str().expect("the annotation stays");
    assert!(recorded.contains("\"replicas\":2"), "{recorded}");

    let error = apply(&schema(), Some(&live), &config(json!({ "name": "b" })), &writer("kubectl"), false);
    assert!(error.is_err(), "the annotation says nothing about the name");
    let error = apply(&schema(), Some(&live), &config(json!({ "replicas": 2 })), &writer("other"), false);
    assert!(error.is_err(), "the rule is kubectl's alone");
}
