use serde_json::json;

use super::*;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn subdomains() {
    for good in ["a", "a-b", "a.b-c.d1", "1", &"a".repeat(253)] {
        assert!(dns1123_subdomain(good).is_empty(), "{good}");
    }
    for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a.-b", "ä", "a b"] {
        assert_eq!(dns1123_subdomain(bad), [SUBDOMAIN], "{bad}");
    }
    assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
}

#[test]
fn subdomains_behind_a_star() {
    assert!(wildcard_dns1123_subdomain("*.example.com").is_empty());
    for bad in ["*", "*.", "example.com", "a.*.com", "*.*.com", "*.A"] {
        let wrong = wildcard_dns1123_subdomain(bad);
        assert_eq!(wrong.len(), 1, "{bad}");
        assert!(wrong[0].contains(r"regex used for validation is '\*\.[a-z0-9]("), "{wrong:?}");
    }
}

#[test]
fn labels_of_domains() {
    assert!(dns1123_label("1-a").is_empty());
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
    let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    assert_eq!(dns1123_label("A"), [text]);
    assert!(dns1035_label("a-1").is_empty());
    let text = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    for bad in ["1a", "", "a-", "A"] {
        assert_eq!(dns1035_label(bad), [text], "{bad}");
    }
}

#[test]
fn qualified_names() {
    for good in ["a", "A_b.c-D", "example.com/A", "a/b", &format!("{}/x", "a".repeat(253))] {
        assert!(qualified_name(good).is_empty(), "{good}");
    }
    assert_eq!(
        qualified_name("a/b/c"),
        [format!(
            "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )]
    );
    assert_eq!(qualified_name("/b"), ["prefix part must be non-empty"]);
    assert_eq!(qualified_name("a b"), [format!("name part {KEY}")]);
    assert_eq!(
        qualified_name("UP/"),
        [
            format!("prefix part {SUBDOMAIN}"),
            "name part must be non-empty".to_owned(),
            format!("name part {KEY}"),
        ]
    );
    assert_eq!(qualified_name(&"a".repeat(64)), ["name part must be no more than 63 characters"]);
}

#[test]
fn path_segments() {
    for good in ["system:node", "A b", "", "..."] {
        assert!(path_segment_name(good).is_empty(), "{good}");
    }
    assert_eq!(path_segment_name("."), ["may not be '.'"]);
    assert_eq!(path_segment_name(".."), ["may not be '..'"]);
    assert_eq!(path_segment_name("a%/b"), ["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn labels_and_annotations() {
    let labels = json!({"a b": "c d", "ok": ""});
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    assert_eq!(
        shown(&validate_labels(labels.as_object().expect("an object"), "metadata.labels")),
        [
            format!("metadata.labels: Invalid value: \"a b\": name part {KEY}"),
            format!("metadata.labels: Invalid value: \"c d\": {value}"),
        ]
    );
    let fits = json!({"A": "b".repeat(ANNOTATIONS_LARGEST - 1)});
    assert!(validate_annotations(fits.as_object().expect("an object"), "x").is_empty());
    let large = json!({"A": "b".repeat(ANNOTATIONS_LARGEST)});
    assert_eq!(
        shown(&validate_annotations(large.as_object().expect("an object"), "metadata.annotations")),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
}

#[test]
fn metadata_of_a_new_object() {
    let check = |meta: Value, namespaced| {
        shown(&validate_object_meta(&meta, namespaced, dns1123_subdomain, "metadata"))
    };
    let none: [&str; 0] = [];
    assert_eq!(check(json!({"name": "a", "namespace": "b"}), true), none);
    assert_eq!(check(json!({"generateName": "a-", "name": "a-x1"}), false), none);
    for (meta, namespaced, expected) in [
        (json!({}), false, vec!["metadata.name: Required value: name or generateName is required".to_owned()]),
        (json!({"name": "a"}), true, vec!["metadata.namespace: Required value".to_owned()]),
        (
            json!({"name": "a", "namespace": "b"}),
            false,
            vec!["metadata.namespace: Forbidden: not allowed on this type".to_owned()],
        ),
        (
            json!({"generateName": "Bad_", "name": "Bad_x"}),
            false,
            vec![
                format!("metadata.generateName: Invalid value: \"Bad_\": {SUBDOMAIN}"),
                format!("metadata.name: Invalid value: \"Bad_x\": {SUBDOMAIN}"),
            ],
        ),
        (
            json!({"name": "a", "finalizers": ["a b"]}),
            false,
            vec![format!("metadata.finalizers: Invalid value: \"a b\": name part {KEY}")],
        ),
        (
            json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
            false,
            vec![
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set".to_owned(),
            ],
        ),
        (
            json!({"name": "a", "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
            false,
            vec![
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty".to_owned(),
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty".to_owned(),
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty".to_owned(),
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty".to_owned(),
            ],
        ),
        (
            json!({"name": "a", "generation": -1}),
            false,
            vec!["metadata.generation: Invalid value: -1: must be greater than or equal to 0".to_owned()],
        ),
    ] {
        assert_eq!(check(meta.clone(), namespaced), expected, "{meta}");
    }
}

#[test]
fn one_owner_may_be_the_controller() {
    let owner =
        |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": "u", "controller": true});
    let meta = |owners: Value| json!({"name": "a", "ownerReferences": owners});
    let one = validate_object_meta(&meta(json!([owner("A")])), false, dns1123_subdomain, "metadata");
    assert!(one.is_empty());
    let two =
        validate_object_meta(&meta(json!([owner("A"), owner("B")])), false, dns1123_subdomain, "metadata");
    let [error] = two.as_slice() else { panic!("{two:?}") };
    assert_eq!(error.path, "metadata.ownerReferences");
    assert_eq!(
        error.detail,
        "Only one reference can have Controller set to true. Found \"true\" in references for A/n and B/n"
    );
}

#[test]
fn built_in_kinds_want_a_domain_in_finalizers() {
    let meta = json!({"finalizers": ["kubernetes", "orphan", "a/b", "nodomain"]});
    assert_eq!(
        shown(&validate_finalizers_qualified(&meta, "metadata")),
        [
            "metadata.finalizers[3]: Invalid value: \"nodomain\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn metadata_that_may_not_change() {
    let old = json!({
        "name": "a", "namespace": "b", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 2,
        "finalizers": ["a/b"], "deletionTimestamp": "2026-01-01T00:00:01Z", "deletionGracePeriodSeconds": 0,
    });
    assert!(validate_object_meta_update(&old, &old).is_empty());
    for (field, value, expected) in [
        ("name", json!("x"), "metadata.name: Invalid value: \"x\": field is immutable"),
        ("namespace", json!("x"), "metadata.namespace: Invalid value: \"x\": field is immutable"),
        ("uid", json!("x"), "metadata.uid: Invalid value: \"x\": field is immutable"),
        (
            "creationTimestamp",
            json!("2027-01-01T00:00:00Z"),
            "metadata.creationTimestamp: Invalid value: \"2027-01-01T00:00:00Z\": field is immutable",
        ),
        (
            "deletionTimestamp",
            Value::Null,
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
        ),
        ("generation", json!(1), "metadata.generation: Invalid value: 1: must not be decremented"),
        (
            "finalizers",
            json!(["a/b", "c/d", "a/c"]),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/c\", \"c/d\"}",
        ),
    ] {
        let mut new = old.clone();
        new[field] = value;
        assert_eq!(shown(&validate_object_meta_update(&new, &old)), [expected], "{field}");
    }
    let mut fewer = old.clone();
    fewer["finalizers"] = json!([]);
    assert!(validate_object_meta_update(&fewer, &old).is_empty());
}

#[test]
fn metadata_of_any_shape_is_survived() {
    for meta in [
        json!(null),
        json!([]),
        json!("x"),
        json!({"labels": [], "ownerReferences": [1, null], "finalizers": {}}),
    ] {
        let _ = validate_object_meta(&meta, true, path_segment_name, "");
        let _ = validate_object_meta_update(&meta, &meta);
    }
}
