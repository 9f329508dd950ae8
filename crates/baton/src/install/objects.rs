//! The objects of an installation, put together from the file that the chart reads too.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// Each component with its command line, environment and rights.
const COMPONENTS: &str = include_str!("../../../../deploy/helm/baton/files/components.yaml");
const RBAC: &str = "rbac.authorization.k8s.io";

static FILE: LazyLock<Value> =
    LazyLock::new(|| baton_grammar::yaml::first(COMPONENTS).expect("the file is tested to be YAML"));

/// What differs from one installation to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) namespace: &'a str,
    /// The only part to install.
    pub(super) only: Option<&'a str>,
    pub(super) replicas: u8,
    pub(super) image: &'a str,
    /// Name of a ConfigMap of programs.
    pub(super) hooks: Option<&'a str>,
    /// Name of a Secret with the server's certificate.
    pub(super) tls: Option<&'a str>,
    /// Whether the cluster itself is deployed to.
    pub(super) in_cluster: bool,
    /// Whether the ConfigMaps that people change are among it.
    pub(super) settings: bool,
    /// Variables of every component besides, by name.
    pub(super) environment: &'a BTreeMap<String, String>,
}

/// The namespace, which admits nothing that is not restricted.
pub(super) fn namespace(name: &str) -> Value {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

impl Plan<'_> {
    /// Everything but the namespace and the definitions.
    pub(super) fn objects(&self) -> Vec<Value> {
        let components: Vec<&Value> = list(&FILE["components"])
            .filter(|component| self.only.is_none_or(|part| component["part"] == part))
            .collect();
        let mut objects = Vec::new();
        if self.settings {
            objects.extend(self.settings());
        }
        for component in &components {
            objects.extend(self.rights(component));
        }
        for component in components {
            objects.push(self.service(component));
            objects.push(self.deployment(component));
            objects.push(self.budget(component));
            objects.push(self.network_policy(component));
        }
        objects
    }

    /// The ConfigMaps that people change.
    fn settings(&self) -> Vec<Value> {
        let map = |(name, data): (&String, &Value)| {
            let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"});
            let metadata = json!({"name": name, "namespace": self.namespace, "labels": labels});
            let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            // Without data nothing of it is ours to overwrite.
            if data.as_object().is_some_and(|data| !data.is_empty()) {
                map["data"] = data.clone();
            }
            map
        };
        let settings = FILE["settings"].as_object().into_iter().flatten().map(map);
        settings.chain([baton_notifications::catalog::object(self.namespace)]).collect()
    }

    fn metadata(&self, component: &Value) -> Value {
        json!({"name": component["name"], "namespace": self.namespace, "labels": labels(component)})
    }

    /// The account of a component, and one role with the rights it needs.
    fn rights(&self, component: &Value) -> Vec<Value> {
        let (name, metadata) = (&component["name"], self.metadata(component));
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}]);
        let version = format!("{RBAC}/v1");
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
            json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": component["rules"]}),
            json!({
                "apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": subjects,
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            }),
        ];
        if self.in_cluster && !component["inCluster"].is_null() {
            // Installations in several namespaces have one each.
            let name = format!("{}-{}", self.namespace, text(name));
            let metadata = json!({"name": name, "labels": labels(component)});
            objects.push(json!({
                "apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": component["inCluster"],
            }));
            objects.push(json!({
                "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata, "subjects": subjects,
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            }));
        }
        objects
    }

    fn secured(&self, component: &Value) -> Option<&str> {
        self.tls.filter(|_| component["tls"] == true)
    }

    fn service(&self, component: &Value) -> Value {
        let ports: Vec<Value> = list(&component["ports"])
            .map(|port| {
                let outside = match (component["tls"] == true, self.tls) {
                    (true, Some(_)) => json!(443),
                    (true, None) => json!(80),
                    _ => port["port"].clone(),
                };
                json!({"name": port["name"], "port": outside, "targetPort": port["name"], "protocol": "TCP"})
            })
            .collect();
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(component),
            "spec": {"selector": selector(component), "ports": ports},
        })
    }

    fn deployment(&self, component: &Value) -> Value {
        let mut pod = json!({
            "serviceAccountName": component["name"],
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "containers": [self.container(component)],
            "volumes": self.volumes(component).iter().map(|(name, _, source)| {
                let mut volume = source.clone();
                volume["name"] = json!(name);
                volume
            }).collect::<Vec<_>>(),
        });
        if self.replicas > 1 {
            pod["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(component)},
            }]);
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.metadata(component),
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": selector(component)},
                "template": {"metadata": {"labels": labels(component)}, "spec": pod},
            },
        })
    }

    fn container(&self, component: &Value) -> Value {
        let mut args: Vec<Value> = list(&component["args"]).cloned().collect();
        args.push(format!("--namespace={}", self.namespace).into());
        if component["tls"] == true {
            args.extend(match self.tls {
                Some(_) => vec!["--tls-cert=/tls/tls.crt".into(), "--tls-key=/tls/tls.key".into()],
                None => vec![Value::from("--insecure")],
            });
        }
        if self.hooks.is_some() && component["hooks"] == true {
            args.push("--hooks-dir=/hooks".into());
        }
        let ports: Vec<Value> = list(&component["ports"])
            .map(|port| json!({"name": port["name"], "containerPort": port["port"], "protocol": "TCP"}))
            .collect();
        let probes = &component["probes"];
        let probe = |path: &Value, failures: u8| {
            let mut get = json!({"path": path, "port": probes["port"]});
            if self.secured(component).is_some() {
                get["scheme"] = "HTTPS".into();
            }
            json!({"httpGet": get, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": failures})
        };
        json!({
            "name": component["part"],
            "image": self.image,
            "args": args,
            "env": self.variables(component),
            "ports": ports,
            "livenessProbe": probe(&probes["live"], 6),
            "readinessProbe": probe(&probes["ready"], 3),
            "resources": component["resources"],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumeMounts": self.volumes(component).iter().map(|(name, path, source)| {
                let mut mount = json!({"name": name, "mountPath": path});
                if source["emptyDir"].is_null() {
                    mount["readOnly"] = true.into();
                }
                mount
            }).collect::<Vec<_>>(),
        })
    }

    /// What is given wins over what is usual.
    fn variables(&self, component: &Value) -> Vec<Value> {
        let of = |value: &'static Value| value.as_object().into_iter().flatten();
        let usual = of(&FILE["variables"]).map(|(name, value)| (name, json!({"name": name, "value": value})));
        let keyed = component["environment"].as_object().into_iter().flatten().map(|(name, key)| {
            let source = json!({"name": "argocd-cmd-params-cm", "key": key, "optional": true});
            (name, json!({"name": name, "valueFrom": {"configMapKeyRef": source}}))
        });
        let given = self.environment.iter().map(|(name, value)| json!({"name": name, "value": value}));
        let other = usual.chain(keyed).filter(|(name, _)| !self.environment.contains_key(*name));
        other.map(|(_, variable)| variable).chain(given).collect()
    }

    /// Name, path and source of each.
    fn volumes(&self, component: &Value) -> Vec<(&'static str, &'static str, Value)> {
        let empty = || json!({"emptyDir": {}});
        let mut volumes = vec![("tmp", "/tmp", empty()), ("cache", "/cache", empty())];
        if let Some(name) = self.hooks.filter(|_| component["hooks"] == true) {
            // Programs that everybody may run and nobody may change.
            volumes.push(("hooks", "/hooks", json!({"configMap": {"name": name, "defaultMode": 0o555}})));
        }
        if let Some(name) = self.secured(component) {
            volumes.push(("tls", "/tls", json!({"secret": {"secretName": name}})));
        }
        volumes
    }

    /// One at a time may go.
    fn budget(&self, component: &Value) -> Value {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": self.metadata(component),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(component)}},
        })
    }

    /// Only what is served is reached. Where the component goes itself (the API, git, clusters, hooks) is not for us to say.
    fn network_policy(&self, component: &Value) -> Value {
        let ports: Vec<Value> =
            list(&component["ports"]).map(|port| json!({"port": port["name"], "protocol": "TCP"})).collect();
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": self.metadata(component),
            "spec": {
                "podSelector": {"matchLabels": selector(component)},
                "policyTypes": ["Ingress"],
                "ingress": [{"ports": ports}],
            },
        })
    }
}

/// The rules of a component.
pub(super) fn rules(part: &str) -> Vec<Value> {
    let component = list(&FILE["components"]).find(|component| component["part"] == part);
    component.into_iter().flat_map(|component| list(&component["rules"])).cloned().collect()
}

/// Whether a component has something, as `hooks`.
pub(super) fn has(part: &str, field: &str) -> bool {
    list(&FILE["components"]).any(|component| component["part"] == part && component[field] == true)
}

/// The variables of a component, and the keys they come from.
pub(super) fn keys(part: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let component = list(&FILE["components"]).find(|component| component["part"] == part);
    let environment = component.and_then(|component| component["environment"].as_object());
    environment.into_iter().flatten().map(|(name, key)| (name.as_str(), text(key)))
}

/// Every component, as the file has it.
#[cfg(test)]
pub(super) fn components() -> impl Iterator<Item = &'static Value> {
    list(&FILE["components"])
}

/// The keys of a ConfigMap that is installed.
#[cfg(test)]
pub(super) fn settings(name: &str) -> Vec<String> {
    FILE["settings"][name].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn selector(component: &Value) -> Value {
    json!({"app.kubernetes.io/name": component["name"]})
}

fn labels(component: &Value) -> Value {
    let mut labels = Map::new();
    for (key, value) in [("name", &component["name"]), ("component", &component["part"])] {
        labels.insert(format!("app.kubernetes.io/{key}"), value.clone());
    }
    labels.insert("app.kubernetes.io/part-of".to_owned(), "baton".into());
    Value::Object(labels)
}
