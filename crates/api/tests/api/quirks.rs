//! Where reading and writing differ from what a Rust type would do by itself.

use std::collections::BTreeMap;

use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use baton_api::generators::{ClusterGenerator, Generator, NestedMatrixGenerator};
use baton_api::operation::SyncOperation;
use baton_api::phases::{ExpectedStatus, FailurePolicy, Hook};
use baton_api::source::{PluginParameter, Source};
use baton_api::strategy::{DeletionOrder, Strategy};
use baton_api::{AppProject, Application, ApplicationSet};
use kube::core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn write<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("every type can be written")
}

#[test]
fn objects_carry_their_kind_and_only_what_is_set() {
    let metadata = json!({ "name": "a" });
    let cases = [
        (write(&read::<Application>(json!({ "metadata": metadata }))), "Application"),
        (write(&read::<ApplicationSet>(json!({ "metadata": metadata }))), "ApplicationSet"),
        (write(&read::<AppProject>(json!({ "metadata": metadata }))), "AppProject"),
    ];
    let specs = [
        json!({ "destination": {}, "project": "" }),
        json!({
            "generators": [],
            "template": { "metadata": {}, "spec": { "destination": {}, "project": "" } },
        }),
        json!({}),
    ];
    for ((object, kind), spec) in cases.into_iter().zip(specs) {
        let expected =
            json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec });
        assert_eq!(object, expected);
    }
}

#[test]
fn resources_have_the_paths_argo_cd_has() {
    let in_argocd = Some("argocd");
    let root = "/apis/argoproj.io/v1alpha1/namespaces/argocd";
    assert_eq!(Application::url_path(&(), in_argocd), format!("{root}/applications"));
    assert_eq!(ApplicationSet::url_path(&(), in_argocd), format!("{root}/applicationsets"));
    assert_eq!(AppProject::url_path(&(), in_argocd), format!("{root}/appprojects"));
}

#[test]
fn null_is_the_zero_value_everywhere() {
    let app: Application = read(json!({
        "metadata": null,
        "operation": null,
        "spec": {
            "project": null,
            "destination": null,
            "source": null,
            "sources": null,
            "info": null,
            "revisionHistoryLimit": null,
            "syncPolicy": {
                "automated": { "prune": null, "enabled": null },
                "syncOptions": null,
                "retry": { "limit": null, "refresh": null, "backoff": { "duration": null, "factor": null } },
                "managedNamespaceMetadata": { "labels": null },
            },
        },
        "status": {
            "sync": null,
            "health": { "status": null, "lastTransitionTime": null },
            "resources": null,
            "history": [{ "id": null, "deployedAt": null, "source": null }],
            "sourceType": null,
        },
    }));
    assert!(app.spec.auto_syncs());
    assert_eq!(app.status.history.len(), 1);
    assert_eq!(app.status.sync.status, SyncCode::default());
    let retry = json!({ "backoff": {} });
    assert_eq!(
        write(&app.spec.sync_policy),
        json!({
            "automated": {}, "retry": retry, "managedNamespaceMetadata": {},
        })
    );
}

#[test]
fn unknown_fields_are_ignored_at_every_level() {
    let app: Application = read(json!({
        "future": 1,
        "spec": { "project": "p", "destination": { "server": "s", "future": [] }, "future": {} },
        "status": { "future": {}, "sync": { "status": "Synced", "future": true } },
    }));
    assert_eq!(app.spec.destination.server, "s");
    assert_eq!(app.status.sync.status, SyncCode::Synced);
}

#[test]
fn an_empty_block_differs_from_an_absent_one() {
    for present in
        [json!({ "clusters": {} }), json!({ "clusters": {}, "selector": {} }), json!({ "list": {} })]
    {
        assert_eq!(write(&read::<Generator>(present.clone())), present);
    }
    assert_eq!(
        write(&Generator { clusters: Some(ClusterGenerator::default()), ..Default::default() }),
        json!({
            "clusters": {},
        })
    );
    assert_eq!(write(&Generator::default()), json!({}));
}

#[test]
fn plugin_parameters_keep_empty_maps_and_lists() {
    for parameter in [
        json!({ "name": "m", "map": {} }),
        json!({ "name": "a", "array": [] }),
        json!({ "name": "s", "string": "" }),
        json!({ "name": "n" }),
        json!({ "name": "all", "string": "x", "map": { "k": "v" }, "array": ["e"] }),
    ] {
        assert_eq!(write(&read::<PluginParameter>(parameter.clone())), parameter);
    }
    let null = read::<PluginParameter>(json!({ "name": "n", "map": null, "array": null, "string": null }));
    assert_eq!(write(&null), json!({ "name": "n" }));
    assert_eq!(null.map, None::<BTreeMap<_, _>>);
}

#[test]
fn names_that_do_not_follow_from_their_fields_are_right() {
    let operation = SyncOperation { self_heal_attempts_count: 3, ..Default::default() };
    assert_eq!(write(&operation), json!({ "autoHealAttemptsCount": 3 }));
    let source = Source { repo_url: "u".into(), reference: "values".into(), ..Default::default() };
    assert_eq!(write(&source), json!({ "repoURL": "u", "ref": "values" }));
    let window = json!({ "syncWindows": [{ "andOperator": true }], "signatureKeys": [{ "keyID": "k" }] });
    assert_eq!(write(&read::<AppProject>(json!({ "spec": window })).spec), window);
}

#[test]
fn a_namespaced_whitelist_that_is_empty_differs_from_one_that_is_absent() {
    let empty: AppProject = read(json!({ "spec": { "namespaceResourceWhitelist": [] } }));
    assert_eq!(empty.spec.namespace_resource_whitelist.as_deref(), Some(&[][..]));
    let absent: AppProject = read(json!({ "spec": { "namespaceResourceWhitelist": null } }));
    assert_eq!(absent.spec.namespace_resource_whitelist, None);
}

#[test]
fn words_that_are_not_known_are_kept() {
    assert_eq!(read::<HealthCode>(json!("Healthy")), HealthCode::Healthy);
    let later = read::<HealthCode>(json!("Hibernating"));
    assert_eq!(later, HealthCode::Other("Hibernating".into()));
    assert_eq!(write(&later), json!("Hibernating"));
    assert!(read::<HealthCode>(json!("")).is_unset());
    assert_eq!(read::<FailurePolicy>(json!("Fail")), FailurePolicy::Other("Fail".into()));
    assert!(!read::<OperationPhase>(json!("Paused")).is_completed());
}

#[test]
fn an_expected_status_is_a_number_or_a_list() {
    let hook = |status: Value| {
        let hook = json!({ "name": "h", "type": "http", "http": { "url": "u", "expectedStatus": status } });
        read::<Hook>(hook).http.unwrap_or_default().expected_status
    };
    assert_eq!(hook(json!(201)), Some(ExpectedStatus::One(201)));
    assert_eq!(hook(json!([200, 204])), Some(ExpectedStatus::AnyOf(vec![200, 204])));
    assert_eq!(hook(Value::Null), None);
    for wrong in [json!(""), json!({}), json!(200.5), json!(["200"])] {
        assert_eq!(hook(wrong.clone()), Some(ExpectedStatus::Other(wrong)));
    }
    assert!(!ExpectedStatus::Other(json!("200")).accepts(200));
    assert!(ExpectedStatus::AnyOf(vec![200, 204]).accepts(204));
    assert!(!ExpectedStatus::One(200).accepts(204));
}

#[test]
fn free_form_values_keep_every_byte_of_meaning() {
    let values = json!({ "a": null, "b": [1, 2.5, "x", { "c": false }], "": "" });
    let helm = json!({ "repoURL": "u", "helm": { "valuesObject": values } });
    assert_eq!(write(&read::<Source>(helm.clone())), helm);
    let nested = json!({ "matrix": { "generators": [
        { "list": { "elements": [{ "n": 1, "deep": { "x": null } }] } },
        { "matrix": { "generators": [{ "clusters": {} }], "future": 1 } },
    ] } });
    let generator: Generator = read(nested.clone());
    assert_eq!(write(&generator), nested);
    let inner = generator.matrix.unwrap_or_default().generators[1].matrix.clone().unwrap_or_default();
    assert_eq!(read::<NestedMatrixGenerator>(inner).generators.len(), 1);
}

#[test]
fn times_are_written_in_whole_seconds() {
    let history = json!({ "id": 0, "deployedAt": "2026-01-02T03:04:05.999+01:00" });
    let written = write(&read::<baton_api::application_status::RevisionHistory>(history));
    assert_eq!(written, json!({ "id": 0, "deployedAt": "2026-01-02T02:04:05Z" }));
}

#[test]
fn automatic_sync_is_on_unless_switched_off() {
    let on =
        |policy: Value| read::<Application>(json!({ "spec": { "syncPolicy": policy } })).spec.auto_syncs();
    assert!(!on(json!(null)));
    assert!(!on(json!({})));
    assert!(on(json!({ "automated": {} })));
    assert!(on(json!({ "automated": { "enabled": true } })));
    assert!(!on(json!({ "automated": { "enabled": false, "prune": true } })));
}

#[test]
fn several_sources_win_over_one() {
    let spec = |spec: Value| read::<Application>(json!({ "spec": spec })).spec;
    assert!(spec(json!({})).effective_sources().is_empty());
    let one = spec(json!({ "source": { "repoURL": "one" }, "sources": [] }));
    assert_eq!(one.effective_sources()[0].repo_url, "one");
    let many =
        spec(json!({ "source": { "repoURL": "one" }, "sources": [{ "repoURL": "a" }, { "repoURL": "b" }] }));
    assert_eq!(many.effective_sources().len(), 2);
}

#[test]
fn deletion_order_is_read_in_any_case_and_unknown_words_are_told() {
    let order = |word: &str| {
        let strategy = Strategy { deletion_order: word.into(), ..Default::default() };
        strategy.deletion_order().map_err(str::to_owned)
    };
    assert_eq!(order(""), Ok(DeletionOrder::AllAtOnce));
    assert_eq!(order("AllAtOnce"), Ok(DeletionOrder::AllAtOnce));
    assert_eq!(order("reverse"), Ok(DeletionOrder::Reverse));
    assert_eq!(order("Custom"), Ok(DeletionOrder::Custom));
    assert_eq!(order("Backwards"), Err("Backwards".to_owned()));
}
