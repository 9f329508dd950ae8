//! The `create` family, much of which is sent as protobuf, and what it may complain about.

use crate::{application, assert_has, session::Session};

#[test]
fn create_makes_every_common_kind() {
    let kubectl = Session::new("create");
    for (arguments, said) in [
        ("configmap settings --from-literal=a=1 --from-literal=b=2", "configmap/settings created"),
        ("secret generic token --from-literal=key=hidden", "secret/token created"),
        (
            "secret docker-registry pull --docker-server=registry.example --docker-username=u --docker-password=p",
            "secret/pull created",
        ),
        ("serviceaccount runner", "serviceaccount/runner created"),
        ("deployment web --image=example/web:1 --replicas=0", "deployment.apps/web created"),
        ("service clusterip web --tcp=80:8080", "service/web created"),
        ("service nodeport open --tcp=80:8080", "service/open created"),
        ("job once --image=example/job:1", "job.batch/once created"),
        ("cronjob nightly --image=example/job:1 --schedule=0_0_*_*_*", "cronjob.batch/nightly created"),
        ("role reader --verb=get,list --resource=pods", "role.rbac.authorization.k8s.io/reader created"),
        (
            "rolebinding reader --role=reader --user=someone",
            "rolebinding.rbac.authorization.k8s.io/reader created",
        ),
        ("quota limits --hard=pods=10", "resourcequota/limits created"),
        ("ingress web --rule=web.example/*=web:80", "ingress.networking.k8s.io/web created"),
        (
            "poddisruptionbudget web --selector=app=web --min-available=1",
            "poddisruptionbudget.policy/web created",
        ),
    ] {
        let words: Vec<String> = arguments.split(' ').map(|word| word.replace('_', " ")).collect();
        let mut arguments = vec!["create"];
        arguments.extend(words.iter().map(String::as_str));
        assert_has(&kubectl.run(&arguments), &[said]);
    }
    assert_eq!(
        kubectl.run(&["get", "configmap", "settings", "-o", "jsonpath={.data}"]),
        r#"{"a":"1","b":"2"}"#
    );
    assert_eq!(kubectl.run(&["get", "secret", "token", "-o", "jsonpath={.data.key}"]), "aGlkZGVu");
    assert_eq!(
        kubectl.run(&["get", "secret", "pull", "-o", "jsonpath={.type}"]),
        "kubernetes.io/dockerconfigjson"
    );
    assert_eq!(kubectl.run(&["get", "cronjob", "nightly", "-o", "jsonpath={.spec.schedule}"]), "0 0 * * *");
    let name = format!("made-by-{}", kubectl.namespace());
    assert_has(&kubectl.run(&["create", "namespace", &name]), &["created"]);
    kubectl.run(&["delete", "namespace", &name]);
}

#[test]
fn create_takes_files_and_generated_names() {
    let kubectl = Session::new("create-file");
    let path = kubectl.file("app.yaml", &application("web", 0, "example/web:1"));
    assert_has(&kubectl.run(&["create", "-f", &path]), &["deployment.apps/web created"]);
    let generated = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: made-\n";
    let name = kubectl.run_with(&["create", "-f", "-", "-o", "name"], generated);
    assert!(
        name.starts_with("configmap/made-") && name.trim().len() == "configmap/made-".len() + 5,
        "{name}"
    );
    let said = kubectl.run(&["expose", "deployment", "web", "--name=exposed", "--port=81"]);
    assert_has(&said, &["service/exposed exposed"]);
    let said = kubectl.run(&["run", "single", "--image=example/one:1"]);
    assert_has(&said, &["pod/single created"]);
    let said = kubectl.run(&["autoscale", "deployment", "web", "--max=3"]);
    assert_has(&said, &["horizontalpodautoscaler.autoscaling/web autoscaled"]);
}

/// kubectl validates a List by itself, with the OpenAPI v2 document.
#[test]
fn a_list_is_created_item_by_item() {
    let kubectl = Session::new("list");
    let item =
        |name: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
    let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{},{}]}}"#, item("a"), item("b"));
    let said = kubectl.run_with(&["create", "-f", "-"], &list);
    assert_has(&said, &["configmap/a created", "configmap/b created"]);
    let said = kubectl.run_with(&["apply", "-f", "-"], &list.replace("\"name\":\"a\"", "\"name\":\"c\""));
    assert_has(&said, &["configmap/c created"]);
}

#[test]
fn complaints_have_their_usual_words() {
    let kubectl = Session::new("errors");
    kubectl.run(&["create", "configmap", "settings"]);
    for (arguments, complaint) in [
        (vec!["create", "configmap", "settings"], "configmaps \"settings\" already exists"),
        (vec!["get", "configmap", "absent"], "(NotFound): configmaps \"absent\" not found"),
        (vec!["get", "gadgets"], "the server doesn't have a resource type \"gadgets\""),
        (vec!["get", "configmaps", "--field-selector", "data.a=b"], "not a known field selector"),
        (vec!["get", "configmaps", "-n", "no-such-namespace", "absent"], "(NotFound)"),
        (
            vec!["create", "configmap", "x", "-n", "no-such-namespace"],
            "namespaces \"no-such-namespace\" not found",
        ),
        (vec!["create", "configmap", "Bad_Name"], "is invalid: metadata.name: Invalid value"),
        (
            vec![
                "patch",
                "configmap",
                "settings",
                "--type=json",
                "-p",
                r#"[{"op":"test","path":"/x","value":1}]"#,
            ],
            "rejected",
        ),
    ] {
        assert_has(&kubectl.fails(&arguments), &[complaint]);
    }
}
