//! The side doors: objects that would be deleted on the way to being applied.

use serde_json::json;

use super::trial::{APPROVED, OPTIONS, Trial, by_hand, guarded, plain, with_options};
use crate::scene::{Scene, config_map, text};

fn uid(scene: &Scene, resource: &str, name: &str) -> String {
    let found = scene.object("east", resource, name).unwrap_or_else(|| panic!("no {name}"));
    text(&found, "/metadata/uid")
}

#[tokio::test(start_paused = true)]
async fn replacing_by_force_asks_first() {
    for options in ["Prune=confirm", "Delete=confirm"] {
        let with_value = |value: &str| {
            let annotations = format!("{OPTIONS}: \"{options},Replace=true,Force=true\"");
            config_map("precious", "a", value, &annotations)
        };
        let trial =
            Trial::deployed(&[("app/precious.yaml", &with_value("1")), ("app/plain.yaml", &plain("plain"))])
                .await;
        let before = uid(&trial.scene, "configmaps", "precious");
        trial.scene.commit(&[("app/precious.yaml", &with_value("2"))]);
        trial.drop_files(&["app/plain.yaml"]);
        trial.prune(json!({})).await;
        trial.asks_for("/ConfigMap/precious").await;
        assert_eq!(uid(&trial.scene, "configmaps", "precious"), before, "{options}");
        assert!(trial.has("plain"), "nothing of the operation goes before: {options}");
        trial.approve_all_now().await;
        trial.succeeds().await;
        assert_ne!(uid(&trial.scene, "configmaps", "precious"), before, "{options}");
        let live = trial.scene.object("east", "configmaps", "precious").expect("made anew");
        assert_eq!(text(&live, "/data/a"), "2");
        trial.judge().await;
    }
}

#[tokio::test(start_paused = true)]
async fn replacing_by_force_asks_where_the_application_says_so() {
    let trial = Trial::new().await;
    let with_value =
        |value: &str| config_map("a", "a", value, &format!("{OPTIONS}: \"Replace=true,Force=true\""));
    let options = ["CreateNamespace=true", "Delete=confirm"];
    trial.deploy(with_options(by_hand("app"), &options), &[("app/a.yaml", &with_value("1"))]).await;
    let before = uid(&trial.scene, "configmaps", "a");
    trial.scene.commit(&[("app/a.yaml", &with_value("2"))]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/a").await;
    assert_eq!(uid(&trial.scene, "configmaps", "a"), before);
    trial.approve("a").await;
    trial.succeeds().await;
    assert_ne!(uid(&trial.scene, "configmaps", "a"), before);
    trial.judge().await;
}

/// An immutable ConfigMap can only be changed by deleting it, which `Force` allows.
#[tokio::test(start_paused = true)]
async fn force_on_what_cannot_be_changed_asks_first() {
    let with_value = |value: &str| {
        let map = config_map("precious", "a", value, &format!("{OPTIONS}: \"Prune=confirm,Force=true\""));
        format!("{map}immutable: true\n")
    };
    let trial = Trial::deployed(&[("app/precious.yaml", &with_value("1"))]).await;
    let before = uid(&trial.scene, "configmaps", "precious");
    trial.scene.commit(&[("app/precious.yaml", &with_value("2"))]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(uid(&trial.scene, "configmaps", "precious"), before);
    trial.approve_all_now().await;
    trial.succeeds().await;
    assert_ne!(uid(&trial.scene, "configmaps", "precious"), before);
    trial.judge().await;
}

#[tokio::test(start_paused = true)]
async fn a_role_binding_that_binds_another_role_asks_first() {
    let binding = |role: &str, options: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata:\n  name: binding\n  annotations: {{{OPTIONS}: \"{options}\"}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role}}}\nsubjects: []\n"
        )
    };
    let resource = "rolebindings.rbac.authorization.k8s.io";
    let trial = Trial::deployed(&[("app/binding.yaml", &binding("reader", "Prune=confirm"))]).await;
    let before = uid(&trial.scene, resource, "binding");
    trial.scene.commit(&[("app/binding.yaml", &binding("writer", "Prune=confirm"))]);
    trial.prune(json!({})).await;
    trial.asks_for("rbac.authorization.k8s.io/RoleBinding/binding").await;
    assert_eq!(uid(&trial.scene, resource, "binding"), before);
    let word = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "binding", "namespace": "demo", "annotations": {APPROVED: "true"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    });
    trial.scene.member("east").apply("person", &word).await.expect("an approval");
    trial.succeeds().await;
    let live = trial.scene.object("east", resource, "binding").expect("made anew");
    assert_eq!(text(&live, "/roleRef/name"), "writer");
    trial.judge().await;
}

/// A recreation of something unguarded is a deletion too, and waits with the rest.
#[tokio::test(start_paused = true)]
async fn a_recreation_waits_for_the_approval_of_what_is_pruned() {
    let with_value =
        |value: &str| config_map("a", "a", value, &format!("{OPTIONS}: \"Replace=true,Force=true\""));
    let trial =
        Trial::deployed(&[("app/a.yaml", &with_value("1")), ("app/precious.yaml", &guarded("precious"))])
            .await;
    let before = uid(&trial.scene, "configmaps", "a");
    trial.scene.commit(&[("app/a.yaml", &with_value("2"))]);
    trial.drop_files(&["app/precious.yaml"]);
    trial.prune(json!({})).await;
    trial.asks_for("/ConfigMap/precious").await;
    assert_eq!(uid(&trial.scene, "configmaps", "a"), before);
    trial.approve("precious").await;
    trial.succeeds().await;
    assert_ne!(uid(&trial.scene, "configmaps", "a"), before);
    trial.judge().await;
}
