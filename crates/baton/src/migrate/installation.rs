//! What there is of an Argo CD, read once.

use baton_api::names::APPLICATION_SET_LEASE;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::failure::Failure;

/// The objects of an Argo CD, each as the API shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Installation {
    pub(super) namespace: String,
    pub(super) definitions: Vec<Value>,
    pub(super) deployments: Vec<Value>,
    pub(super) config_maps: Vec<Value>,
    pub(super) sets: Vec<Value>,
    pub(super) applications: Vec<Value>,
    /// Roles and bindings, those of the whole cluster too; none where they may not be read.
    pub(super) rights: Option<Vec<Value>>,
    /// The Lease of the ApplicationSet controller.
    pub(super) lease: Option<Value>,
    /// What could not be read, and why.
    pub(super) unread: Vec<(String, String)>,
}

const RBAC: &str = "rbac.authorization.k8s.io";

impl Installation {
    /// Reads what may be read.
    ///
    /// # Errors
    /// If not even the ApplicationSets of the namespace can be listed: then nothing can be said.
    pub(super) async fn read(client: &Client, namespace: &str) -> Result<Installation, Failure> {
        let reader = Reader { client, namespace };
        let sets = match reader.everywhere("argoproj.io", "v1alpha1", "ApplicationSet").await {
            Ok(sets) => sets,
            // Without rights on the whole cluster those of the namespace are looked at.
            Err(_) => reader.within("argoproj.io", "v1alpha1", "ApplicationSet").await.map_err(|error| {
                Failure::api(format!("the ApplicationSets of {namespace} cannot be listed: {error}"))
            })?,
        };
        let mut all = Installation { namespace: namespace.to_owned(), sets, ..Installation::default() };
        let mut unread = Vec::new();
        let mut kept = |what: &str, answer: Result<Vec<Value>, kube::Error>| {
            answer.map_err(|error| unread.push((what.to_owned(), error.to_string()))).ok()
        };
        let definitions = reader.everywhere("apiextensions.k8s.io", "v1", "CustomResourceDefinition").await;
        all.definitions = kept("CustomResourceDefinitions", definitions).unwrap_or_default();
        all.definitions.retain(|definition| definition["spec"]["group"] == "argoproj.io");
        let deployments = reader.within("apps", "v1", "Deployment").await;
        all.deployments = kept("Deployments", deployments).unwrap_or_default();
        let maps = reader.within("", "v1", "ConfigMap").await;
        all.config_maps = kept("ConfigMaps", maps).unwrap_or_default();
        let applications = match reader.everywhere("argoproj.io", "v1alpha1", "Application").await {
            Err(_) => reader.within("argoproj.io", "v1alpha1", "Application").await,
            answer => answer,
        };
        all.applications = kept("Applications", applications).unwrap_or_default();
        let mut rights = Vec::new();
        let mut known = true;
        for kind in ["Role", "RoleBinding"] {
            let found = kept(&format!("{kind}s"), reader.within(RBAC, "v1", kind).await);
            known &= found.is_some();
            rights.extend(found.unwrap_or_default());
        }
        for kind in ["ClusterRole", "ClusterRoleBinding"] {
            let found = kept(&format!("{kind}s"), reader.everywhere(RBAC, "v1", kind).await);
            known &= found.is_some();
            rights.extend(found.unwrap_or_default());
        }
        all.rights = known.then_some(rights);
        let leases = kept("Leases", reader.within("coordination.k8s.io", "v1", "Lease").await);
        all.lease = leases
            .unwrap_or_default()
            .into_iter()
            .find(|lease| lease["metadata"]["name"] == APPLICATION_SET_LEASE);
        all.unread = unread;
        Ok(all)
    }

    /// Every object of a kind in a namespace.
    pub(super) async fn within(
        client: &Client,
        namespace: &str,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Vec<Value>, kube::Error> {
        Reader { client, namespace }.within(group, version, kind).await
    }

    /// A value of a ConfigMap.
    pub(super) fn setting(&self, map: &str, key: &str) -> Option<&str> {
        let map = self.config_maps.iter().find(|one| one["metadata"]["name"] == map)?;
        map["data"][key].as_str()
    }
}

struct Reader<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl Reader<'_> {
    async fn everywhere(&self, group: &str, version: &str, kind: &str) -> Result<Vec<Value>, kube::Error> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        whole(Api::all_with(self.client.clone(), &resource), &resource).await
    }

    async fn within(&self, group: &str, version: &str, kind: &str) -> Result<Vec<Value>, kube::Error> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::namespaced_with(self.client.clone(), self.namespace, &resource);
        whole(api, &resource).await
    }
}

/// Page by page, so that no answer is larger than an API gives.
async fn whole(api: Api<DynamicObject>, resource: &ApiResource) -> Result<Vec<Value>, kube::Error> {
    const PAGE: u32 = 500;
    let mut found = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for object in page.items {
            let mut value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
            // An item of a list does not say what it is.
            value["kind"] = resource.kind.as_str().into();
            value["apiVersion"] = resource.api_version.as_str().into();
            found.push(value);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// `Kind namespace/name`.
pub(super) fn called(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    match text("namespace") {
        "" => format!("{kind} {}", text("name")),
        namespace => format!("{kind} {namespace}/{}", text("name")),
    }
}
