//! Clusters that people register, change and give up.

use baton_api::names::secret::TYPE_CLUSTER;
use serde_json::{Value, json};

use super::clusters::scoped;
use super::registering::{Marks, Registered};
use crate::error::Error;
use crate::registered::cluster::{ClusterRequest, changed, is_meant};
use crate::registered::secret_name_of_host;
use crate::server::{Context, Server};

/// Which cluster is meant: its URL, or its name.
#[derive(Debug, Clone, Copy)]
pub struct ClusterId<'q> {
    /// The URL or the name.
    pub id: &'q str,
    /// Whether it is the name.
    pub by_name: bool,
}

impl Server {
    /// Registers a cluster, or with `upsert` changes the one that is there. Whether it can be reached is not tried: its
    /// state of connection tells.
    ///
    /// # Errors
    /// The caller may not, there is another already, or the request makes no sense.
    pub async fn create_cluster(
        &self,
        context: &Context,
        wanted: &ClusterRequest,
        upsert: bool,
    ) -> Result<Value, Error> {
        let texts = wanted.texts()?;
        let (server, object) = (&texts["server"], scoped(&wanted.project, &texts["server"]));
        self.demand(context, "clusters", "create", &object)?;
        let found = self.registered(TYPE_CLUSTER).await?;
        if let Some(found) = found.iter().find(|one| is_meant(&one.texts, server, false)) {
            let there = scoped(found.text("project"), server);
            self.permit(context, "clusters", "get", &there)?;
            let same = changed(&found.texts, &texts, &[]).is_ok_and(|changed| changed == found.texts);
            if !same {
                if !upsert {
                    return Err(Error::invalid(
                        "existing cluster spec is different; use upsert flag to force update",
                    ));
                }
                self.permit(context, "clusters", "update", &there)?;
                self.write_cluster(context, found, wanted, &[]).await?;
            }
            return self.cluster(context, server, "").await;
        }
        let name = secret_name_of_host("cluster", server);
        let marks = Marks::of(wanted.labels.as_ref(), wanted.annotations.as_ref());
        let result = self.register(TYPE_CLUSTER, &name, &texts, marks).await;
        let deed = self.registry_deed("create cluster", &name, ("clusters", object), server);
        self.audited(context, deed, result).await?;
        self.cluster_again(context, server).await
    }

    /// Changes a cluster: these fields, or all that the request says.
    ///
    /// # Errors
    /// The caller may not, there is none, or the request makes no sense.
    pub async fn update_cluster(
        &self,
        context: &Context,
        which: ClusterId<'_>,
        wanted: &ClusterRequest,
        fields: &[String],
    ) -> Result<Value, Error> {
        let found = self.meant_cluster(context, which, "update").await?;
        let server = found.text("server").trim_end_matches('/').to_owned();
        let mut wanted = wanted.clone();
        let sent = wanted.server.trim_end_matches('/');
        if !sent.is_empty() && sent != server {
            return Err(Error::invalid(
                "server: a cluster keeps its URL: register the other one and delete this",
            ));
        }
        wanted.server.clone_from(&server);
        self.write_cluster(context, &found, &wanted, fields).await?;
        self.cluster_again(context, &server).await
    }

    /// Gives up a cluster.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn delete_cluster(&self, context: &Context, which: ClusterId<'_>) -> Result<Value, Error> {
        let found = self.meant_cluster(context, which, "delete").await?;
        let result = self.unregister(&found).await;
        let object = scoped(found.text("project"), found.text("server"));
        let deed =
            self.registry_deed("delete cluster", found.name(), ("clusters", object), found.text("server"));
        self.audited(context, deed, result.map(|()| json!({}))).await
    }

    /// Has a cluster read anew.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn forget_cluster(&self, context: &Context, which: ClusterId<'_>) -> Result<Value, Error> {
        let known = self.0.fleet.registered().await?;
        let is = |access: &baton_clusters::ClusterAccess| match which.by_name {
            true => access.name == which.id,
            false => &*access.server == which.id.trim_end_matches('/'),
        };
        let found = known.iter().find(|cluster| is(cluster.access()));
        let found = found.ok_or_else(|| self.absent(context, "clusters", "update", which.id))?;
        let access = found.access();
        let object = scoped(&access.project, &access.server);
        self.permit(context, "clusters", "update", &object)?;
        let server = access.server.to_string();
        let result = self.0.fleet.forget(&server).await;
        let deed = self.registry_deed("invalidate cluster cache", "", ("clusters", object), &server);
        self.audited(context, deed, result).await?;
        self.cluster_again(context, &server).await
    }

    async fn write_cluster(
        &self,
        context: &Context,
        found: &Registered,
        wanted: &ClusterRequest,
        fields: &[String],
    ) -> Result<(), Error> {
        let texts = changed(&found.texts, &wanted.texts()?, fields)?;
        let server = found.text("server").trim_end_matches('/');
        let object = scoped(found.text("project"), server);
        let moved = scoped(texts.get("project").map_or("", String::as_str), server);
        if moved != object {
            // Who may change it here need not be allowed to have it there.
            self.demand(context, "clusters", "create", &moved)?;
        }
        let named = |field: &str| fields.is_empty() || fields.iter().any(|one| one == field);
        let labels = wanted.labels.as_ref().filter(|_| named("labels"));
        let annotations = wanted.annotations.as_ref().filter(|_| named("annotations"));
        let marks = Marks::of(labels, annotations);
        let marks = marks.instead_of(&found.raw, labels.is_some(), annotations.is_some());
        let result = self.rewrite_secret(found, &texts, marks).await;
        let deed = self.registry_deed("update cluster", found.name(), ("clusters", object), server);
        self.audited(context, deed, result).await.map(drop)
    }

    /// The cluster that is meant, where the caller may do this to it.
    async fn meant_cluster(
        &self,
        context: &Context,
        which: ClusterId<'_>,
        action: &str,
    ) -> Result<Registered, Error> {
        let found = self.registered(TYPE_CLUSTER).await?;
        let found = found.into_iter().find(|one| is_meant(&one.texts, which.id, which.by_name));
        let found = found.ok_or_else(|| self.absent(context, "clusters", action, which.id))?;
        let object = scoped(found.text("project"), found.text("server").trim_end_matches('/'));
        self.permit(context, "clusters", action, &object)?;
        Ok(found)
    }

    /// A cluster as it is now; who may not look is told nothing of it.
    async fn cluster_again(&self, context: &Context, server: &str) -> Result<Value, Error> {
        match self.cluster(context, server, "").await {
            Err(error) if error == Error::hidden() => Ok(json!({"server": server})),
            shown => shown,
        }
    }
}

// === impl ClusterId ===

impl ClusterId<'_> {
    /// Reads an id as its kind says: a URL, or with `name` a name.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn read<'q>(id: &'q str, kind: &str) -> Result<ClusterId<'q>, Error> {
        match kind {
            "" | "url" | "url_escaped" => Ok(ClusterId { id, by_name: false }),
            "name" | "name_escaped" => Ok(ClusterId { id, by_name: true }),
            other => {
                let other: String = other.chars().take(50).collect();
                Err(Error::invalid(format!("{other:?} is no kind of id: url or name")))
            }
        }
    }
}
