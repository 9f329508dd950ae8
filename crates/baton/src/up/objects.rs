//! The objects `baton up` puts into its clusters.

use baton_api::names;
use baton_apiserver::{Cluster, Credentials, Rejected, Server};
use serde_json::{Value, json};

use super::fleet::Member;
use super::{MANAGER, NAMESPACE};
use crate::failure::Failure;

/// CRDs, the namespace and the default project.
pub(crate) async fn install(control: &Cluster) -> Result<(), Rejected> {
    for crd in baton_api::crds() {
        control.apply(MANAGER, &crd).await?;
    }
    control
        .apply(MANAGER, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
        .await?;
    let project = json!({
        "apiVersion": names::API_VERSION,
        "kind": "AppProject",
        "metadata": {"name": names::DEFAULT_PROJECT, "namespace": NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    });
    control.apply(MANAGER, &project).await?;
    Ok(())
}

/// The configuration of notifications, with the catalog in it. One that is there is its owner's and stays as it is.
pub(crate) async fn provide_notifications(control: &Cluster) -> Result<(), Failure> {
    let place = control.store().list("configmaps", Some(NAMESPACE), baton_apiserver::store::Page::default());
    let found = place.map_err(|error| Failure::failed(error.to_string()))?;
    if found.records.iter().any(|record| &*record.key.name == baton_notifications::CONFIG_MAP) {
        return Ok(());
    }
    control.apply(MANAGER, &baton_notifications::catalog::object(NAMESPACE)).await?;
    Ok(())
}

/// The password of `admin`, where Argo CD keeps it.
pub(crate) fn admin_secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "argocd-initial-admin-secret", "namespace": NAMESPACE},
        "type": "Opaque",
        "stringData": {"password": password},
    })
}

/// A member as Argo CD knows clusters.
pub(crate) fn cluster_secret(member: &Member, server: &Server) -> Value {
    use base64::Engine;
    let credentials = server.credentials();
    let mut config = json!({
        "bearerToken": credentials.token().reveal(),
        "tlsClientConfig": {
            "caData": base64::engine::general_purpose::STANDARD.encode(credentials.ca_certificate()),
        },
    });
    if let Some(name) = Credentials::server_name(server.addr()) {
        config["tlsClientConfig"]["serverName"] = name.into();
    }
    let mut labels = json!(member.labels);
    labels[names::secret::TYPE_LABEL] = names::secret::TYPE_CLUSTER.into();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(&member.name), "namespace": NAMESPACE, "labels": labels},
        "type": "Opaque",
        "stringData": {
            "name": member.name,
            "server": format!("https://{}", server.addr()),
            "config": config.to_string(),
        },
    })
}

fn secret_name(cluster: &str) -> String {
    format!("cluster-{cluster}")
}

/// Takes out the Secrets of members that this fleet no longer has.
pub(crate) async fn forget_others(control: &Cluster, members: &[Member]) -> Result<(), Failure> {
    let kept: Vec<String> = members.iter().map(|member| secret_name(&member.name)).collect();
    let listing = control
        .store()
        .list("secrets", Some(NAMESPACE), baton_apiserver::store::Page::default())
        .map_err(|error| Failure::failed(error.to_string()))?;
    for record in listing.records {
        let secret: Value = serde_json::from_slice(&record.json()).unwrap_or_default();
        let ours = secret["metadata"]["labels"][names::secret::TYPE_LABEL] == names::secret::TYPE_CLUSTER
            && secret["metadata"]["managedFields"]
                .as_array()
                .is_some_and(|all| all.iter().any(|entry| entry["manager"] == MANAGER));
        let name = record.key.name.to_string();
        if ours && !kept.contains(&name) {
            control.delete_object("v1", "Secret", NAMESPACE, &name).await?;
        }
    }
    Ok(())
}

/// A workload to look at in each member.
pub(crate) fn demo() -> Vec<Value> {
    let labels = json!({"app": "hello"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hello", "namespace": "demo", "labels": labels},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "hello", "image": "hello:1.0", "ports": [{"containerPort": 8080}]}]},
                },
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hello", "namespace": "demo", "labels": labels},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        }),
    ]
}

/// Sixteen characters that are easy to read out.
pub(crate) fn random_password() -> String {
    const ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    (0..16).map(|_| char::from(ALPHABET[rand::random_range(0..ALPHABET.len())])).collect()
}
