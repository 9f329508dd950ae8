//! Targets the tests share.

use serde_json::{Value, json};

pub(crate) fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "initContainers": [{"name": "first", "image": "one:1"}, {"name": "second", "image": "two:1"}],
            "containers": [{
                "name": "main", "image": "web:1", "args": ["--a", "--b"],
                "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP", "name": "dns"}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"limits": {"cpu": "1"}},
            }],
        }}}})
}

pub(crate) fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}})
}

/// A kind whose objects hold anything under `spec`, with a default beside.
pub(crate) fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.diff.example.com"},
    "spec": {"group": "diff.example.com", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "mode": {"type": "string", "default": "plain"},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "port": {"type": "integer", "default": 80},
                        "to": {"type": "string"}, "via": {"type": "string", "default": "tcp"}}}},
                "maybe": {"type": "string", "nullable": true},
            }}}}]}})
}

pub(crate) fn thing(spec: Value) -> Value {
    json!({"apiVersion": "diff.example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": spec})
}
