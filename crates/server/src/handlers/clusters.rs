//! The clusters that are registered, without what opens them.

use baton_api::names::IN_CLUSTER_SERVER;
use baton_clusters::{Cluster, Connection};
use serde_json::{Value, json};

use super::cluster_changes::ClusterId;
use crate::error::Error;
use crate::objects::text;
use crate::server::{Context, Server};

/// Which cluster is meant.
#[derive(Debug, Clone, Default)]
pub struct ClusterQuery {
    /// By this URL; any where it is empty.
    pub server: String,
    /// By this name; any where it is empty.
    pub name: String,
}

impl Server {
    /// The clusters that the caller may see.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn clusters(&self, context: &Context, query: &ClusterQuery) -> Result<Value, Error> {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let mut items = Vec::new();
        for cluster in self.0.fleet.registered().await? {
            let access = cluster.access();
            let meant = is(&query.server, &access.server) && is(&query.name, &access.name);
            if meant && self.sees_cluster(context, &cluster) {
                items.push(self.shown_cluster(&cluster));
            }
        }
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One cluster, by its URL, or by its name where `kind` says so.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn cluster(&self, context: &Context, id: &str, kind: &str) -> Result<Value, Error> {
        let query = match ClusterId::read(id, kind)? {
            ClusterId { id, by_name: false } => {
                ClusterQuery { server: id.trim_end_matches('/').to_owned(), name: String::new() }
            }
            ClusterId { id, by_name: true } => ClusterQuery { name: id.to_owned(), server: String::new() },
        };
        let mut found = self.clusters(context, &query).await?;
        match found["items"].as_array_mut().and_then(Vec::pop) {
            Some(cluster) if !id.is_empty() => Ok(cluster),
            _ => Err(Error::hidden()),
        }
    }

    pub(crate) fn sees_cluster(&self, context: &Context, cluster: &Cluster) -> bool {
        let access = cluster.access();
        self.may(context, "clusters", "get", &scoped(&access.project, &access.server))
    }

    /// What is told of a cluster: a list of its own, so that nothing is told because it is in the Secret.
    fn shown_cluster(&self, cluster: &Cluster) -> Value {
        let access = cluster.access();
        let (status, message) = match cluster.connection() {
            Connection::Connected => ("Successful", String::new()),
            Connection::Lost { reason, .. } => ("Failed", reason),
            Connection::Idle | Connection::Connecting => ("Unknown", String::new()),
        };
        let state = json!({"status": status, "message": message});
        let applications = self.0.applications.all();
        let lives = |application: &Value| {
            let destination = &application["spec"]["destination"];
            match text(destination, "/server") {
                "" => !access.name.is_empty() && text(destination, "/name") == access.name,
                server => server.trim_end_matches('/') == &*access.server,
            }
        };
        let count = applications.iter().filter(|application| lives(application)).count();
        let version = cluster.version();
        json!({
            "server": &*access.server,
            "name": if access.name.is_empty() { &*access.server } else { &access.name },
            "namespaces": access.namespaces,
            "clusterResources": access.cluster_resources,
            "project": access.project,
            "labels": access.labels,
            "config": {"tlsClientConfig": {"insecure": access.config.tls_client_config.insecure}},
            "connectionState": state,
            "serverVersion": version,
            "info": {
                "applicationsCount": count,
                "serverVersion": version,
                "connectionState": state,
                "cacheInfo": {"resourcesCount": cluster.object_count()},
            },
            "inCluster": &*access.server == IN_CLUSTER_SERVER,
        })
    }
}

/// How policies name what may belong to a project: with the project before it, where it does.
pub(crate) fn scoped(project: &str, name: &str) -> String {
    if project.is_empty() { name.to_owned() } else { format!("{project}/{name}") }
}
