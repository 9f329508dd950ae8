//! What there is of an Argo CD, read once.

use baton_controllers::AllowedNamespaces;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::controller;
use crate::failure::Failure;

/// The objects of an Argo CD, each as the API shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Installation {
    pub(super) namespace: String,
    pub(super) definitions: Vec<Value>,
    pub(super) deployments: Vec<Value>,
    pub(super) config_maps: Vec<Value>,
    /// Those of its namespaces alone: others belong to somebody else.
    pub(super) sets: Vec<Value>,
    pub(super) applications: Vec<Value>,
    /// Roles and bindings, those of the whole cluster too; none where they may not be read.
    pub(super) rights: Option<Vec<Value>>,
    /// What could not be read, and why.
    pub(super) unread: Vec<(String, String)>,
}

/// What [`Installation::unread`] says where only one of several namespaces may be looked at.
pub(super) const ELSEWHERE: &str = "ApplicationSets of other namespaces";

const ARGO: (&str, &str) = ("argoproj.io", "v1alpha1");
const RBAC: &str = "rbac.authorization.k8s.io";

impl Installation {
    /// Reads what may be read.
    ///
    /// # Errors
    /// If there is no such namespace, or if not even its ApplicationSets can be listed: then nothing can be said.
    pub(super) async fn read(client: &Client, namespace: &str) -> Result<Installation, Failure> {
        let reader = Reader { client, namespace };
        reader.exists().await?;
        let mut all = Installation { namespace: namespace.to_owned(), ..Installation::default() };
        let mut unread = Vec::new();
        let mut kept = |what: &str, answer: Result<Vec<Value>, kube::Error>| {
            answer.map_err(|error| unread.push((what.to_owned(), error.to_string()))).ok()
        };
        let definitions = reader.everywhere("apiextensions.k8s.io", "v1", "CustomResourceDefinition").await;
        all.definitions = kept("CustomResourceDefinitions", definitions).unwrap_or_default();
        all.definitions.retain(|definition| definition["spec"]["group"] == ARGO.0);
        let deployments = reader.within("apps", "v1", "Deployment").await;
        all.deployments = kept("Deployments", deployments).unwrap_or_default();
        let maps = reader.within("", "v1", "ConfigMap").await;
        all.config_maps = kept("ConfigMaps", maps).unwrap_or_default();

        let allowed = AllowedNamespaces::new(namespace, &controller::namespaces(&all))
            .map_err(|error| Failure::failed(format!("applicationsetcontroller.namespaces: {error}")))?;
        let (sets, refused) = reader.allowed(&allowed, "ApplicationSet").await.map_err(|error| {
            Failure::api(format!("the ApplicationSets of {namespace} cannot be listed: {error}"))
        })?;
        all.sets = sets;
        if let Some(error) = refused {
            kept(ELSEWHERE, Err(error));
        }
        // Who may not look at sets elsewhere may not look at Applications there either, which is told once.
        let applications =
            reader.allowed(&allowed, "Application").await.map(|(applications, _)| applications);
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

    /// Its own namespace, and those its sets are in.
    pub(super) fn namespaces(&self) -> Vec<&str> {
        let sets = self.sets.iter().filter_map(|set| set["metadata"]["namespace"].as_str());
        let mut namespaces: Vec<&str> = sets.chain([self.namespace.as_str()]).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        namespaces
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
    /// Whoever may not look at namespaces has been given rights in this one, so it is taken to be there.
    async fn exists(&self) -> Result<(), Failure> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        match api.get_opt(self.namespace).await {
            Ok(None) => Err(Failure::failed(format!(
                "there is no namespace {}: name that of Argo CD's objects with --namespace",
                self.namespace
            ))),
            Err(error) if !is_refused(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Every object of a kind of Argo CD's in the namespaces it may have them in; those of the one namespace alone, and why, for
    /// whoever may not look further.
    async fn allowed(
        &self,
        allowed: &AllowedNamespaces,
        kind: &str,
    ) -> Result<(Vec<Value>, Option<kube::Error>), kube::Error> {
        let (group, version) = ARGO;
        if allowed.only().is_some() {
            return Ok((self.within(group, version, kind).await?, None));
        }
        match self.everywhere(group, version, kind).await {
            Ok(mut found) => {
                found.retain(|one| {
                    one["metadata"]["namespace"].as_str().is_some_and(|namespace| allowed.contains(namespace))
                });
                Ok((found, None))
            }
            Err(error) if is_refused(&error) => Ok((self.within(group, version, kind).await?, Some(error))),
            Err(error) => Err(error),
        }
    }

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

fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
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
