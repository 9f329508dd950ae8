//! Whatever JSON a client sends, looking at it must not panic.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that occur in real objects, so that random objects reach the code behind them.
const NAMES: &[&str] = &[
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "spec",
    "status",
    "template",
    "containers",
    "initContainers",
    "image",
    "ports",
    "containerPort",
    "protocol",
    "env",
    "valueFrom",
    "fieldRef",
    "resources",
    "limits",
    "requests",
    "cpu",
    "storage",
    "volumes",
    "volumeMounts",
    "emptyDir",
    "configMap",
    "secret",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "replicas",
    "strategy",
    "updateStrategy",
    "rollingUpdate",
    "maxSurge",
    "maxUnavailable",
    "type",
    "data",
    "stringData",
    "binaryData",
    "rules",
    "subjects",
    "roleRef",
    "kind",
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "waiting",
    "terminated",
    "reason",
    "restartCount",
    "lastState",
    "finishedAt",
    "jobTemplate",
    "schedule",
    "metrics",
    "target",
    "endpoints",
    "addresses",
    "subsets",
    "http",
    "paths",
    "backend",
    "service",
    "port",
    "livenessProbe",
    "httpGet",
    "clusterIP",
    "clusterIPs",
    "taints",
    "tolerations",
    "hard",
    "used",
    "capacity",
    "accessModes",
    "limits",
    "max",
    "min",
    "default",
    "loadBalancer",
    "ingress",
    "podIPs",
    "ip",
    "volumeClaimTemplates",
    "deletionTimestamp",
    "generation",
    "finalizers",
    "lifecycle",
    "preStop",
    "exec",
    "command",
    "minAvailable",
    "behavior",
    "scaleUp",
    "policies",
    "timeZone",
    "completions",
    "parallelism",
    "series",
    "count",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "",
            "a",
            "1",
            "25%",
            "100Mi",
            "-1",
            "2026-01-02T03:04:05Z",
            "RollingUpdate",
            "NodePort",
            "LoadBalancer",
            "In",
            "*/5 * * * *",
            "None",
            "Always",
            "kubernetes.io/tls",
            "ExternalName",
            "Container",
            "é",
            "9e9999",
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..90_000).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 96, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..7).prop_map(|fields| {
                let fields: Map<String, Value> =
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                Value::Object(fields)
            }),
        ]
    })
}

/// A case of the real kind with some part replaced, so that deep code sees nonsense in an otherwise sensible object.
fn damaged() -> impl Strategy<Value = Value> {
    let lines: Vec<&str> = include_str!("../src/columns/cases.txt").lines().step_by(2).collect();
    (prop::sample::select(lines), prop::collection::vec(0usize..8, 1..8), value()).prop_map(
        |(line, path, replacement)| {
            let mut object: Value = serde_json::from_str(line).expect("JSON");
            let mut place = &mut object;
            for step in path {
                if !matches!(place, Value::Object(fields) if !fields.is_empty())
                    && !matches!(place, Value::Array(items) if !items.is_empty())
                {
                    break;
                }
                place = match place {
                    Value::Object(fields) => {
                        let count = fields.len();
                        fields.values_mut().nth(step % count).expect("within bounds")
                    }
                    Value::Array(items) => {
                        let count = items.len();
                        &mut items[step % count]
                    }
                    _ => unreachable!("the loop has ended at a leaf"),
                };
            }
            *place = replacement;
            object
        },
    )
}

fn look_at(kind: &baton_kinds::Kind, object: &Value, old: &Value) {
    let now = Timestamp::UNIX_EPOCH;
    let mut created = object.clone();
    kind.default(&mut created);
    kind.prepare_create(&mut created);
    kind.validate(&created, None);
    assert_eq!(kind.cells(&created, now).len(), kind.columns().len());
    let mut updated = object.clone();
    kind.default(&mut updated);
    kind.prepare_update(&mut updated, old);
    kind.validate(&updated, Some(old));
    let mut status = object.clone();
    kind.prepare_status(&mut status, old);
    kind.validate(object, Some(old));
    for path in kind.field_selectors() {
        assert!(kind.field_value(object, path).is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn arbitrary_objects_are_looked_at_without_panic(object in value(), old in value()) {
        for kind in baton_kinds::all() {
            look_at(kind, &object, &old);
        }
        let _ = baton_kinds::event_to_core(&baton_kinds::event_to_new(&object));
    }

    #[test]
    fn damaged_objects_are_looked_at_without_panic(object in damaged(), old in damaged()) {
        for kind in baton_kinds::all() {
            look_at(kind, &object, &old);
        }
    }

    #[test]
    fn defaults_settle(object in damaged()) {
        for kind in baton_kinds::all() {
            let mut once = object.clone();
            kind.default(&mut once);
            let mut twice = once.clone();
            kind.default(&mut twice);
            prop_assert_eq!(&once, &twice, "{}", kind.kind);
        }
    }
}
