//! No JSON makes a decision panic, and none makes it without end.

use baton_workloads::{Family, Kind, Settings, affected_by, decide, relatives};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Keys the rules read, so that arbitrary JSON reaches deep into them.
const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "uid",
    "labels",
    "annotations",
    "ownerReferences",
    "controller",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "replicas",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "strategy",
    "rollingUpdate",
    "maxSurge",
    "maxUnavailable",
    "partition",
    "paused",
    "progressDeadlineSeconds",
    "revisionHistoryLimit",
    "minReadySeconds",
    "conditions",
    "type",
    "reason",
    "lastTransitionTime",
    "lastUpdateTime",
    "containers",
    "containerStatuses",
    "state",
    "waiting",
    "terminated",
    "restartCount",
    "nodeName",
    "nodeSelector",
    "tolerations",
    "taints",
    "restartPolicy",
    "phase",
    "observedGeneration",
    "availableReplicas",
    "completions",
    "parallelism",
    "backoffLimit",
    "completionMode",
    "completedIndexes",
    "suspend",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "startTime",
    "claimRef",
    "resources",
    "requests",
    "ordinals",
    "start",
    "volumeClaimTemplates",
    "revision",
    "data",
    "minAvailable",
    "failed",
    "succeeded",
    "pod-template-hash",
    "controller-revision-hash",
    "sim.baton.dev/delay",
    "sim.baton.dev/stuck",
    "sim.baton.dev/fail",
    "sim.baton.dev/deletion-delay",
    "sim.baton.dev/inherited",
    "readinessGates",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..20).prop_map(Value::from),
        Just(json!(i64::MAX)),
        Just(json!(u64::MAX)),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "x",
            "True",
            "Ready",
            "Running",
            "Failed",
            "Succeeded",
            "Never",
            "Recreate",
            "OnDelete",
            "Indexed",
            "Delete",
            "LoadBalancer",
            "25%",
            "9999999999%",
            "0-99999999999,5",
            "2026-01-01T00:00:00Z",
            "-009999-01-01T00:00:00Z",
            "9999-12-30T00:00:00Z",
            "99999999h",
            "x-1",
            "x-9223372036854775807",
            "{\"stuck\":\"true\"}",
            "Exists",
            "NoSchedule",
            "Parallel",
        ])
        .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYS), inner), 0..12).prop_map(|fields| {
                let fields: Map<_, _> =
                    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                Value::Object(fields)
            }),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    let part = || prop_oneof![Just(json!({})), any_json()];
    (prop::sample::select(Kind::WATCHED.to_vec()), part(), part(), part(), any::<bool>()).prop_map(
        |(kind, metadata, spec, status, owned)| {
            let mut metadata = metadata;
            if let Some(fields) = metadata.as_object_mut() {
                let owner =
                    json!([{"controller": true, "uid": "u", "apiVersion": "apps/v1", "kind": "Deployment"}]);
                fields.entry("name").or_insert("x".into());
                fields.entry("uid").or_insert("u".into());
                if owned {
                    fields.insert("ownerReferences".into(), owner);
                    fields.insert("namespace".into(), "".into());
                }
            }
            json!({"apiVersion": kind.api_version(), "kind": kind.kind(),
                "metadata": metadata, "spec": spec, "status": status})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn any_object_with_any_family_gives_a_bounded_decision(
        object in any_object(),
        members in prop::collection::vec(any_object(), 0..6),
        second in -200_000_000_000i64..200_000_000_000,
    ) {
        let now = Timestamp::from_second(second).expect("in the range of timestamps");
        let family = Family { members: members.iter().collect() };
        let decision = decide(&object, &family, &Settings::default(), now);
        prop_assert!(decision.actions.len() < 2000);
        prop_assert!(decision.wake_at.is_none_or(|at| at > now));
        relatives(&object);
        affected_by(&object);
    }

    #[test]
    fn json_that_is_no_object_gives_no_decision(value in any_json()) {
        prop_assume!(Kind::of(&value).is_none());
        let decision = decide(&value, &Family::default(), &Settings::default(), Timestamp::UNIX_EPOCH);
        prop_assert!(decision.actions.is_empty() && decision.wake_at.is_none());
        prop_assert!(relatives(&value).is_empty() && affected_by(&value).is_empty());
    }
}
