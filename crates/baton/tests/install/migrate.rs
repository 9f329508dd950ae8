//! `baton migrate check` on an Argo CD made by hand: what will be different is told object by object.

use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::process::run;

pub(crate) const CONTROLLER: &str = "argocd-applicationset-controller";

/// The rights of Argo CD's controller: which kinds it may do what to.
pub(crate) fn role() -> Value {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut lease = rule("coordination.k8s.io", &["leases"], &["get", "update", "create"]);
    lease["resourceNames"] = json!(["58ac56fa.applicationsets.argoproj.io"]);
    let kinds = ["applications", "applicationsets", "applicationsets/finalizers"];
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": CONTROLLER, "namespace": NAMESPACE},
        "rules": [
            rule("argoproj.io", &kinds, &all),
            rule("argoproj.io", &["appprojects"], &["get", "list", "watch"]),
            rule("argoproj.io", &["applicationsets/status"], &["get", "patch", "update"]),
            rule("", &["events"], &["create", "get", "list", "patch", "watch"]),
            rule("", &["secrets", "configmaps"], &["get", "list", "watch"]),
            rule("coordination.k8s.io", &["leases"], &["create"]),
            lease,
        ],
    })
}

pub(crate) fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": CONTROLLER, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CONTROLLER},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": NAMESPACE}],
    })
}

/// The controller; its environment comes out of a ConfigMap, as Argo CD's manifests have it.
fn deployment(arguments: &[&str]) -> Value {
    let variable = |name: &str, key: &str| {
        json!({
            "name": format!("ARGOCD_APPLICATIONSET_CONTROLLER_{name}"),
            "valueFrom": {"configMapKeyRef": {"name": "argocd-cmd-params-cm", "key": key, "optional": true}},
        })
    };
    let labels = json!({"app": CONTROLLER});
    let program = format!("/usr/local/bin/{CONTROLLER}");
    let command = [&[program.as_str()], arguments].concat();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": CONTROLLER, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "serviceAccountName": CONTROLLER,
            "containers": [{
                "name": "main", "image": "example.com/argocd:v3",
                "args": command,
                "env": [
                    variable("ENABLE_PROGRESSIVE_SYNCS", "applicationsetcontroller.enable.progressive.syncs"),
                    variable("POLICY", "applicationsetcontroller.policy"),
                    variable("NAMESPACES", "applicationsetcontroller.namespaces"),
                    variable("ALLOWED_SCM_PROVIDERS", "applicationsetcontroller.allowed.scm.providers"),
                ],
            }],
        }}},
    })
}

fn params(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm", "namespace": NAMESPACE}, "data": data})
}

fn set(name: &str, generators: Value, strategy: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "generators": generators, "strategy": strategy,
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}},
                "spec": {
                    "project": "default", "source": {"repoURL": "https://git.example.com/config.git", "targetRevision": "main", "path": "."},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": "work"},
                },
            },
        },
    })
}

fn list() -> Value {
    json!([{"list": {"elements": [{"name": "one", "env": "dev"}]}}])
}

fn rolling() -> Value {
    let by_env = json!([{"key": "env", "operator": "In", "values": ["dev"]}]);
    json!({"type": "RollingSync", "rollingSync": {"steps": [{"matchExpressions": by_env}]}})
}

/// Argo CD's definition of ApplicationSets: ours without what it does not have.
fn definitions() -> Vec<Value> {
    let mut all = baton_api::crds();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let status = all[1].pointer_mut(&format!("{schema}/status/properties")).and_then(Value::as_object_mut);
    let status = status.expect("the status has properties");
    assert!(status.remove("rollout").is_some() && status.remove("phases").is_some());
    all
}

struct Found(Value);

impl Found {
    fn check(cluster: &Cluster, expected: i32) -> Found {
        let kubeconfig = cluster.kubeconfig();
        let kubeconfig = kubeconfig.to_str().expect("UTF-8");
        let outcome = run(["migrate", "check", "--kubeconfig", kubeconfig, "-o", "json"]);
        assert_eq!(outcome.code, Some(expected), "{} {}", outcome.stdout, outcome.stderr);
        Found(serde_json::from_str(&outcome.stdout).expect("JSON"))
    }

    /// Weights and messages of a rule at an object.
    fn at(&self, object: &str, rule: &str) -> Vec<(String, String)> {
        let all = self.0.as_array().expect("a list").iter();
        let chosen = all.filter(|finding| finding["object"] == object && finding["rule"] == rule);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        chosen.map(|finding| (text(&finding["weight"]), text(&finding["message"]))).collect()
    }

    #[track_caller]
    fn has(&self, object: &str, rule: &str, weight: &str, part: &str) {
        let found = self.at(object, rule);
        let fits = |(found, message): &(String, String)| found == weight && message.contains(part);
        assert!(found.iter().any(fits), "{object} {rule}: {found:?} in {:#}", self.0);
    }
}

#[test]
fn what_will_be_different_is_told_object_by_object() {
    let cluster = Cluster::start();
    cluster.kubectl(&["create", "namespace", NAMESPACE]);
    cluster.kubectl(&["create", "serviceaccount", CONTROLLER, "-n", NAMESPACE]);
    for definition in definitions() {
        cluster.kubectl_with(&["apply", "--server-side", "-f", "-"], &definition.to_string());
    }
    for object in [role(), binding(), deployment(&["--argocd-repo-server", "repo:8081"]), params(json!({}))] {
        cluster.apply(&object);
    }
    cluster.apply(&set("plain", list(), Value::Null));
    cluster.apply(&set("rolling", list(), rolling()));
    let provider = json!([{"scmProvider": {"awsCodeCommit": {"region": "eu"}}}]);
    cluster.apply(&set("amazon", provider, Value::Null));
    let mut custom = rolling();
    custom["rollingSync"]["steps"][0]["maxFailures"] = json!(1);
    custom["deletionOrder"] = "Custom".into();
    custom["deletionSync"] = json!({"steps": rolling()["rollingSync"]["steps"]});
    let mut going = set("going", list(), custom);
    going["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    cluster.apply(&going);
    cluster.kubectl(&["delete", "applicationset", "going", "-n", NAMESPACE, "--wait=false"]);

    let found = Found::check(&cluster, 4);
    let controller = format!("Deployment {NAMESPACE}/{CONTROLLER}");
    found.has(&controller, "running", "note", "--replicas=0");
    found.has(&controller, "idle-flag", "differs", "--argocd-repo-server");
    found.has("ApplicationSet argocd/rolling", "progressive-syncs-off", "note", "argocd-cmd-params-cm");
    found.has("ApplicationSet argocd/amazon", "unsupported-generator", "blocks", "CodeCommit");
    found.has("ApplicationSet argocd/going", "own-fields", "note", "uses deletionSync, maxFailures,");
    found.has("ApplicationSet argocd/going", "custom-deletion", "note", "goes at once");
    let definition = "CustomResourceDefinition applicationsets.argoproj.io";
    found.has(definition, "pruned", "differs", "status.phases");
    let account = format!("ServiceAccount {NAMESPACE}/{CONTROLLER}");
    found.has(&account, "missing-right", "differs", "controllerrevisions");
    found.has(&account, "missing-right", "differs", "configmaps");
    let missing = found.at(&account, "missing-right");
    assert_eq!(missing.len(), 2, "{missing:?}");
    found.has(&account, "missing-right", "differs", "may not create, patch, delete configmaps");
    assert_eq!(
        found
            .0
            .as_array()
            .expect("a list")
            .iter()
            .filter(|one| one["object"] == "ApplicationSet argocd/plain")
            .count(),
        0
    );

    // In mid-rollout, with progressive syncs on.
    cluster.apply(&params(json!({"applicationsetcontroller.enable.progressive.syncs": "true"})));
    let entry = |name: &str, status: &str| {
        json!({
            "application": name, "status": status, "step": "1", "message": "m", "targetRevisions": [],
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let all =
        ["Waiting", "Pending", "Progressing", "Healthy"].map(|status| entry(&status.to_lowercase(), status));
    let patch = json!({"status": {"applicationStatus": all}}).to_string();
    cluster.kubectl(&[
        "patch",
        "applicationset",
        "rolling",
        "-n",
        NAMESPACE,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ]);
    let found = Found::check(&cluster, 4);
    found.has("ApplicationSet argocd/rolling", "rolling-sync", "differs", "its own step");
    for name in ["waiting (Waiting, step 1)", "pending (Pending", "progressing (Progressing"] {
        found.has("ApplicationSet argocd/rolling", "under-way", "note", name);
    }
    let told = found.at("ApplicationSet argocd/rolling", "under-way");
    assert!(!told[0].1.contains("healthy"), "{told:?}");

    // Where sets may live is more than what the Role of one namespace allows.
    let namespaces = json!({
        "applicationsetcontroller.namespaces": "team-*",
        "applicationsetcontroller.allowed.scm.providers": "https://git.example.com",
    });
    cluster.apply(&params(namespaces));
    Found::check(&cluster, 4).has(&controller, "namespaces", "blocks", "team-*");

    // A value that Argo CD passes over and Baton does not.
    cluster.apply(&params(json!({"applicationsetcontroller.policy": "everything"})));
    Found::check(&cluster, 4).has(&controller, "bad-setting", "blocks", "POLICY");
}

#[test]
fn what_only_the_deployment_says_is_told_for_the_one_that_comes_does_not_say_it() {
    let cluster = Cluster::start();
    cluster.kubectl(&["create", "namespace", NAMESPACE]);
    cluster.apply_printed(&["crds"]);
    let mut theirs = deployment(&[
        "--policy=create-only",
        "--preserved-labels=a",
        "--preserved-labels=b",
        "--dry-run=false",
        "--as=joe",
        "--token=secret-token",
        "--metrics-addr=0",
        "--loglevel=trace",
        "--scm-root-ca-path=/tls/ca.pem",
        "--totally-unknown=3",
    ]);
    let container = &mut theirs["spec"]["template"]["spec"]["containers"][0];
    container["volumeMounts"] =
        json!([{"name": "tls", "mountPath": "/tls"}, {"name": "ssh", "mountPath": "/app/config/ssh"}]);
    theirs["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "tls", "emptyDir": {}}, {"name": "ssh", "emptyDir": {}}]);
    let container = &mut theirs["spec"]["template"]["spec"]["containers"][0];
    let more = json!([
        {"name": "ARGOCD_APPLICATIONSET_CONTROLLER_GLOBAL_PRESERVED_ANNOTATIONS", "value": "team"},
        {"name": "ARGOCD_APPLICATIONSET_CONTROLLER_SCM_PROXY_URL", "value": "http://me:word@proxy.example.com"},
        {"name": "HTTPS_PROXY", "value": "http://proxy.example.com"},
    ]);
    container["env"].as_array_mut().expect("variables").extend(more.as_array().expect("a list").clone());
    cluster.apply(&theirs);
    let said = json!({
        "applicationsetcontroller.concurrent.reconciliations.max": "7",
        "applicationsetcontroller.enable.progressive.syncs": "true",
    });
    cluster.apply(&params(said));
    let found = Found::check(&cluster, 4);
    let controller = format!("Deployment {NAMESPACE}/{CONTROLLER}");
    for (rule, weight, part) in [
        ("setting", "blocks", "--policy=create-only is said by this Deployment alone"),
        (
            "setting",
            "blocks",
            "applicationsetcontroller.policy, or baton install --env ARGOCD_APPLICATIONSET_CONTROLLER_POLICY=create-only",
        ),
        ("setting", "blocks", "--preserved-labels=a,b "),
        ("setting", "blocks", "GLOBAL_PRESERVED_ANNOTATIONS=team "),
        ("setting", "differs", "--loglevel=trace "),
        ("setting", "differs", "--scm-root-ca-path=/tls/ca.pem "),
        ("setting", "differs", "SCM_PROXY_URL=… "),
        (
            "setting",
            "differs",
            "applicationsetcontroller.concurrent.reconciliations.max=7, which this Deployment does not read",
        ),
        ("client-flag", "blocks", "--as is about the way to the API"),
        ("client-flag", "blocks", "--token is about"),
        ("unknown-flag", "blocks", "--totally-unknown is not known"),
        ("address", "differs", "--metrics-addr=0"),
        ("proxy", "note", "HTTPS_PROXY"),
        ("mount", "note", "/tls is mounted"),
        ("webhooks", "note", "baton-applicationset-controller"),
    ] {
        found.has(&controller, rule, weight, part);
    }
    // What is the default anyway, or said to both, is no difference.
    assert_eq!(found.at(&controller, "setting").len(), 7, "{:#}", found.0);
    assert_eq!(found.at(&controller, "mount").len(), 1);
    let text = found.0.to_string();
    assert!(!text.contains("secret-token") && !text.contains("word@"), "{text}");
}

#[test]
fn where_nothing_differs_the_check_says_so_and_succeeds() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install", "--only", "applicationset", "--crds", "--namespace", "default"]);
    let kubeconfig = cluster.kubeconfig();
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let outcome = run(["migrate", "check", "--kubeconfig", kubeconfig, "--namespace", "default"]);
    assert_eq!(outcome.code, Some(0), "{} {}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("no-controller"), "{}", outcome.stdout);
    // What an installation without Argo CD goes by is in its ConfigMap.
    cluster.apply_printed(&["install"]);
    cluster.apply(&set("rolling", list(), rolling()));
    let found = Found::check(&cluster, 4);
    found.has("ApplicationSet argocd/rolling", "rolling-sync", "differs", "its own step");
    assert!(found.at("ApplicationSet argocd/rolling", "progressive-syncs-off").is_empty());
    // Where nobody may look there is nothing to say.
    let nowhere = run(["migrate", "check", "--kubeconfig", "/nowhere"]);
    assert_eq!(nowhere.code, Some(1), "{}", nowhere.stderr);
}
