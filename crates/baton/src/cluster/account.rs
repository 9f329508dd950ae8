//! The account that controllers have in a cluster: made there, with a token that does not end.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::objects::MANAGER;

/// Name of the account, as Argo CD makes it.
pub(super) const ACCOUNT: &str = "argocd-manager";
const ROLE: &str = "argocd-manager-role";
const BINDING: &str = "argocd-manager-role-binding";
/// How long a cluster may take to give a token.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

/// Makes the account, with every right in the cluster, or in these namespaces alone.
pub(super) async fn make(client: &Client, namespace: &str, only: &[String]) -> Result<(), Failure> {
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace});
    let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let rbac = "rbac.authorization.k8s.io/v1";
    apply(client, "v1", "ServiceAccount", Some(namespace), ACCOUNT, json!({})).await?;
    if only.is_empty() {
        let rules = json!([everything, {"nonResourceURLs": ["*"], "verbs": ["*"]}]);
        apply(client, rbac, "ClusterRole", None, ROLE, json!({"rules": rules})).await?;
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE});
        let binding = json!({"roleRef": role, "subjects": [account]});
        return apply(client, rbac, "ClusterRoleBinding", None, BINDING, binding).await;
    }
    for namespace in only {
        apply(client, rbac, "Role", Some(namespace), ROLE, json!({"rules": [everything]})).await?;
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE});
        let binding = json!({"roleRef": role, "subjects": [account]});
        apply(client, rbac, "RoleBinding", Some(namespace), BINDING, binding).await?;
    }
    Ok(())
}

/// A token of an account that does not end.
pub(super) async fn token(client: &Client, namespace: &str, account: &str) -> Result<String, Failure> {
    let name = format!("{account}-long-lived-token");
    let annotations = json!({"kubernetes.io/service-account.name": account});
    let secret = json!({
        "metadata": {"annotations": annotations}, "type": "kubernetes.io/service-account-token",
    });
    apply(client, "v1", "Secret", Some(namespace), &name, secret).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let look = async {
        loop {
            let data = secrets.get(&name).await?.data.unwrap_or_default();
            if let Some(token) = data.get("token").filter(|token| !token.0.is_empty()) {
                return Ok(String::from_utf8_lossy(&token.0).into_owned());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| {
        Err(Failure::failed(format!(
            "the cluster gives no token to account {account} in namespace {namespace}: does its controller manager run? \
             --own-credentials registers what the context itself has"
        )))
    })
}

async fn apply(
    client: &Client,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    mut object: Value,
) -> Result<(), Failure> {
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    object["metadata"]["name"] = name.into();
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, number, kind));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let how = PatchParams::apply(MANAGER).force();
    let told =
        |error: kube::Error| Failure::api(format!("cannot make {kind} {name}: {}", Failure::from(error)));
    api.patch(name, &how, &Patch::Apply(&object)).await.map(drop).map_err(told)
}
