//! What a command needs to look past an Application at its sources and its cluster: the settings, Secrets and clients
//! that the controller uses, read once.

use std::sync::Arc;

use baton_api::Application;
use baton_api::object::{Object, ResourceKey};
use baton_clusters::{Cluster, Clusters, Connect, OverNetwork};
use baton_diff::{Rules, SystemRules};
use baton_health::Customizations;
use baton_manifests::{Manifests, Rendered};
use baton_source::Repositories;
use baton_sync::targets::Targets;
use kube::Client;
use serde_json::Value;

use super::applications::InCluster;
use super::typed;
use crate::failure::Failure;
use crate::repositories::MappedRepositories;
use crate::surroundings::Surroundings;

/// An Application and its surroundings.
pub(super) struct Desk {
    pub(super) application: Application,
    pub(super) cluster: Arc<Cluster>,
    /// How the Application is written on its objects.
    pub(super) instance: String,
    /// A client of the Application's cluster.
    pub(super) member: Client,
    pub(super) customizations: Customizations,
    pub(super) rules: Rules,
    surroundings: Surroundings,
}

impl Desk {
    pub(super) async fn open(applications: &InCluster, name: &str) -> Result<Desk, Failure> {
        let control = applications.client.clone();
        let application = typed(&applications.get(name).await?)?;
        let surroundings = Surroundings::read(&control, &applications.namespace).await?;
        let settings = &surroundings.settings;

        let unreadable = |error: String| Failure::failed(format!("argocd-cm cannot be used: {error}"));
        let customizations =
            Customizations::from_config_map(settings).map_err(|error| unreadable(error.to_string()))?;
        let system = SystemRules::from_config_map(settings).map_err(|error| unreadable(error.to_string()))?;
        let rules = Rules::compile(&application.spec.ignore_differences, &system)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let instance = surroundings.instance(&application);

        // A person runs this with their own rights, on their own machine, so programs their Secrets name are theirs.
        let connect = OverNetwork { allow_exec: true };
        let member_access = |cluster: &Cluster| match cluster.server().as_ref() {
            baton_api::names::IN_CLUSTER_SERVER => Ok(control.clone()),
            _ => connect.connect(cluster.access()),
        };
        let health = customizations.clone();
        let tracked = surroundings.tracking();
        let settings = baton_clusters::Settings {
            instance_of: Arc::new(move |object| tracked.owner_of(object)),
            health: Arc::new(move |object| baton_health::assess(object, &health).ok().flatten()),
            ..baton_clusters::Settings::default()
        };
        let registered = Clusters::new(Arc::new(connect), control.clone(), settings, Arc::new(|_| {}));
        let cluster = surroundings.cluster(&registered, &application).await?;
        let member = member_access(&cluster).map_err(Failure::failed)?;
        Ok(Desk { application, cluster, instance, member, customizations, rules, surroundings })
    }

    /// What git describes, at these revisions or those the Application names.
    pub(super) async fn rendered(
        &self,
        repositories: &MappedRepositories,
        revisions: &[String],
    ) -> Result<Arc<Rendered>, Failure> {
        let cache = tempfile::tempdir()
            .map_err(|error| Failure::failed(format!("cannot make a temporary directory: {error}")))?;
        // The command reads what its user can read anyway.
        let settings = repositories.settings(cache.path().join("repositories"), true);
        let manifests = Manifests::new(Repositories::new(settings), baton_manifests::Settings::default());
        let rendered =
            self.surroundings.rendered(&manifests, &self.application, &self.cluster, revisions, true);
        rendered.await.map_err(|error| {
            Failure::failed(format!(
                "{error} (this command reads sources itself: --repo URL=PATH names a directory that stands for one)"
            ))
        })
    }

    /// What is wanted of the cluster.
    pub(super) fn targets(&self, rendered: &Rendered) -> Targets {
        self.surroundings.targets(rendered, &self.application, &self.cluster)
    }

    /// The Application's objects as they are.
    pub(super) async fn live(&self) -> Result<Vec<Arc<Value>>, Failure> {
        let kinds: Vec<(String, String)> = self
            .application
            .status
            .resources
            .iter()
            .map(|row| {
                let version = match row.group.as_str() {
                    "" => row.version.clone(),
                    group => format!("{group}/{}", row.version),
                };
                (version, row.kind.clone())
            })
            .collect();
        self.cluster.ready(&kinds).await.map_err(|error| Failure::api(error.to_string()))?;
        let mut live = self.cluster.managed(&self.instance);
        live.sort_by_key(|object| object.key());
        Ok(live)
    }

    /// One object as it is now, past every cache.
    pub(super) async fn fetch(
        &self,
        api_version: &str,
        key: &ResourceKey,
    ) -> Result<Option<Arc<Value>>, Failure> {
        self.cluster.fetch(api_version, key).await.map_err(|error| Failure::api(error.to_string()))
    }
}
