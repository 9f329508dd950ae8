//! The clusters that Applications live in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application::Destination;
use baton_api::names::IN_CLUSTER_SERVER;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_api::object::{Object as _, ResourceKey, group_version};
use baton_clusters::{Cluster, ClusterAccess, ClusterError, Clusters, Connect};
use baton_diff::{Rules, SystemRules};
use baton_health::Customizations;
use baton_sync::tracking::{Method, Tracking};
use futures::AsyncBufRead;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::configuration::Configuration;
use crate::error::{Code, Error};
use crate::objects::{Objects, SECRETS, encoded, segment};

/// Who owns what actions write: never the controller's manager, which would take it for a part of git.
const MANAGER: &str = "baton-actions";
/// How long a cluster may take to begin to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Every cluster there is.
pub(crate) struct Fleet {
    control: Client,
    connect: Arc<dyn Connect>,
    clusters: Clusters,
    namespace: String,
    /// What the clusters were set up with: watches begin anew where it changes.
    applied: Mutex<Option<BTreeMap<String, String>>>,
}

/// An Application and the cluster it lives in.
pub(crate) struct Place {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) customizations: Customizations,
    pub(crate) rules: Rules,
    client: Client,
}

impl Fleet {
    pub(crate) fn new(control: Client, connect: Arc<dyn Connect>, namespace: &str) -> Fleet {
        let settings = baton_clusters::Settings::default();
        let clusters = Clusters::new(connect.clone(), control.clone(), settings, Arc::new(|_| {}));
        Fleet { control, connect, clusters, namespace: namespace.to_owned(), applied: Mutex::default() }
    }

    fn configure(&self, configuration: &Configuration, customizations: &Customizations) {
        let mut applied = self.applied.lock();
        if applied.as_ref() == Some(&configuration.settings) {
            return;
        }
        *applied = Some(configuration.settings.clone());
        let tracked = tracking(configuration);
        let health = customizations.clone();
        self.clusters.configure(baton_clusters::Settings {
            instance_of: Arc::new(move |object| tracked.owner_of(object)),
            health: Arc::new(move |object| baton_health::assess(object, &health).ok().flatten()),
            ..baton_clusters::Settings::default()
        });
    }

    /// The cluster of an Application, connected.
    ///
    /// # Errors
    /// There is none, or it cannot be reached.
    pub(crate) async fn place(
        &self,
        configuration: &Configuration,
        application: &Application,
    ) -> Result<Place, Error> {
        let unreadable =
            |error: &dyn std::fmt::Display| Error::internal(format!("argocd-cm cannot be used: {error}"));
        let settings = &configuration.settings;
        let customizations = Customizations::from_config_map(settings).map_err(|error| unreadable(&error))?;
        let system = SystemRules::from_config_map(settings).map_err(|error| unreadable(&error))?;
        let rules = Rules::compile(&application.spec.ignore_differences, &system)
            .map_err(|error| Error::precondition(error.to_string()))?;
        self.configure(configuration, &customizations);
        self.register().await?;
        let destination = &application.spec.destination;
        let cluster = self.clusters.resolve(destination).map_err(Error::precondition)?;
        let client = match cluster.server().as_ref() {
            IN_CLUSTER_SERVER => self.control.clone(),
            _ => self.connect.connect(cluster.access()).map_err(|why| Error::new(Code::Unavailable, why))?,
        };
        cluster.ready(&[]).await.map_err(unavailable)?;
        Ok(Place { cluster, customizations, rules, client })
    }

    /// Every cluster that is registered, and the one this runs in. None is connected for that.
    ///
    /// # Errors
    /// The Secrets cannot be read.
    pub(crate) async fn registered(&self) -> Result<Vec<Arc<Cluster>>, Error> {
        self.register().await?;
        // The local cluster needs no Secret; where it is switched off, it is none.
        let local = Destination { server: IN_CLUSTER_SERVER.to_owned(), ..Destination::default() };
        let _ = self.clusters.resolve(&local);
        Ok(self.clusters.all())
    }

    /// Has a cluster read anew: what is known of it is forgotten.
    ///
    /// # Errors
    /// The Secrets cannot be read.
    pub(crate) async fn forget(&self, server: &str) -> Result<(), Error> {
        self.clusters.forget(server);
        self.register().await
    }

    async fn register(&self) -> Result<(), Error> {
        let secrets = Objects::new(&self.control, SECRETS, &self.namespace);
        let query = format!("labelSelector={}", encoded(&format!("{TYPE_LABEL}={TYPE_CLUSTER}")));
        let secrets = secrets.list(&query).await?.into_iter();
        let secrets = secrets.filter_map(|secret| serde_json::from_value::<Secret>(secret).ok());
        // One whose Secret cannot be read is as if it were not registered: what is wrong with it may hold a part of it.
        self.clusters.set(secrets.filter_map(|secret| ClusterAccess::read(&secret)?.ok()).collect());
        Ok(())
    }
}

impl Place {
    /// An object as it is now, past every cache.
    pub(crate) async fn fetch(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<Option<Arc<Value>>, Error> {
        self.cluster.fetch(api_version, key).await.map_err(unavailable)
    }

    /// Writes to an object of the cluster.
    pub(crate) async fn send(
        &self,
        method: http::Method,
        api_version: &str,
        key: &ResourceKey,
        body: &Value,
        content: &str,
    ) -> Result<Value, Error> {
        let kind = self.cluster.kind(api_version, &key.kind).map_err(unavailable)?;
        let kind = kind.ok_or_else(|| {
            Error::not_found(format!("the cluster does not know {api_version} {}", key.kind))
        })?;
        let root = if group_version(api_version).0.is_empty() { "api" } else { "apis" };
        let namespace = match kind.namespaced {
            true => format!("/namespaces/{}", segment(&key.namespace)?),
            false => String::new(),
        };
        let name = match method {
            http::Method::POST => String::new(),
            _ => format!("/{}", segment(&key.name)?),
        };
        let manager =
            if method == http::Method::DELETE { String::new() } else { format!("?fieldManager={MANAGER}") };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/{root}/{api_version}{namespace}/{}{name}{manager}", kind.plural))
            .header(http::header::CONTENT_TYPE, content)
            .body(body.to_string().into_bytes())
            .map_err(|_| Error::invalid("this cannot be the name of an object"))?;
        Ok(self.client.request(request).await?)
    }

    /// What a Pod's container has written, as it comes.
    ///
    /// # Errors
    /// Why there is nothing to read.
    pub(crate) async fn log(
        &self,
        pod: &ResourceKey,
        asked: &[(&str, String)],
    ) -> Result<impl AsyncBufRead + Send + use<>, Error> {
        let query: Vec<String> =
            asked.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let (namespace, name) = (segment(&pod.namespace)?, segment(&pod.name)?);
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{name}/log?{}", query.join("&"));
        let request = http::Request::get(uri).body(Vec::new());
        let request = request.map_err(|_| Error::invalid("this cannot be the name of a Pod"))?;
        match tokio::time::timeout(PATIENCE, self.client.request_stream(request)).await {
            Ok(stream) => Ok(stream?),
            Err(_) => Err(Error::new(Code::DeadlineExceeded, "the cluster has not answered in time")),
        }
    }

    /// The object with Secret values hidden.
    pub(crate) fn shown(&self, object: &Value) -> Value {
        let mut shown = baton_diff::masked(object, object, &self.rules).1;
        if let Some(metadata) = shown["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        shown
    }

    /// Whether an object belongs to the Application, or to something that does.
    pub(crate) fn owns(&self, object: &Value, keys: &[ResourceKey]) -> bool {
        let key = object.key();
        keys.contains(&key) || self.cluster.tree(keys).iter().any(|node| node.key == key)
    }
}

/// What the cluster said is the answer; that it said nothing is another.
fn unavailable(error: ClusterError) -> Error {
    let code = match &error {
        ClusterError::Forbidden(_) | ClusterError::Api { code: 401 | 403, .. } => Code::PermissionDenied,
        ClusterError::Api { code: 400 | 422, .. } => Code::InvalidArgument,
        ClusterError::Api { code: 404, .. } => Code::NotFound,
        ClusterError::Api { code: 409, .. } => Code::Aborted,
        ClusterError::Api { code: 429, .. } => Code::ResourceExhausted,
        _ => Code::Unavailable,
    };
    Error::new(code, error.to_string())
}

fn tracking(configuration: &Configuration) -> Tracking {
    let text = |key: &str| configuration.setting(key).unwrap_or_default();
    let mut tracking = Tracking {
        method: Method::read(text("application.resourceTrackingMethod")),
        installation: text("installationID").to_owned(),
        ..Tracking::default()
    };
    if let Some(label) = configuration.setting("application.instanceLabelKey") {
        tracking.label = label.to_owned();
    }
    tracking
}
