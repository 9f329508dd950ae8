//! What is wanted, as sources and generators say: the same machinery that the controllers and commands use.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::{Application, ApplicationSet};
use baton_clusters::{Clusters, Connect};
use baton_generators::Generators;
use baton_manifests::{self as manifests, Manifests};
use baton_server::{Described, Later, References, Sources};
use kube::Client;
use serde_json::Value;

use crate::appset::live::Live;
use crate::appset::offline;
use crate::failure::Failure;
use crate::surroundings::Surroundings;

/// Reads sources and runs generators for whoever asks the server.
pub(crate) struct Workshop {
    client: Client,
    namespace: String,
    clusters: Clusters,
    generators: Generators,
    manifests: Manifests,
}

// === impl Workshop ===

impl Workshop {
    /// One that has read nothing yet.
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        connect: Arc<dyn Connect>,
        generators: Generators,
        manifests: Manifests,
    ) -> Workshop {
        let settings = baton_clusters::Settings::default();
        let clusters = Clusters::new(connect, client.clone(), settings, Arc::new(|_| {}));
        Workshop { client, namespace: namespace.to_owned(), clusters, generators, manifests }
    }

    async fn generated(&self, set: &ApplicationSet) -> Result<Vec<Value>, Failure> {
        let world = Live::new(self.client.clone(), &self.namespace);
        offline::applications(set, &self.generators, &world).await
    }

    async fn wanted(&self, application: &Application) -> Result<Vec<Value>, Failure> {
        let surroundings = Surroundings::read(&self.client, &self.namespace).await?;
        let cluster = surroundings.cluster(&self.clusters, application).await?;
        let rendered = surroundings.rendered(&self.manifests, application, &cluster, &[], false).await;
        let rendered = rendered.map_err(|error| Failure::failed(error.to_string()))?;
        let targets = surroundings.targets(&rendered, application, &cluster);
        let all = [targets.resources, targets.hooks, targets.pre_delete, targets.post_delete];
        Ok(all.into_iter().flatten().map(|object| object.as_ref().clone()).collect())
    }
}

impl Workshop {
    async fn named(
        &self,
        url: &str,
        project: &str,
        fields: Option<&BTreeMap<String, String>>,
    ) -> Result<References, Failure> {
        let surroundings = Surroundings::read(&self.client, &self.namespace).await?;
        let names = surroundings.names(&self.manifests, url, project, fields).await;
        let names = names.map_err(|error| Failure::failed(error.to_string()))?;
        Ok(References { branches: names.branches, tags: names.tags })
    }

    async fn described(&self, application: &Application, revision: &str) -> Result<Described, Failure> {
        let surroundings = Surroundings::read(&self.client, &self.namespace).await?;
        let described = surroundings.described(&self.manifests, application, revision).await;
        Ok(match described.map_err(|error| Failure::failed(error.to_string()))? {
            manifests::Described::Commit(commit) => Described::Commit {
                author: commit.author,
                date: commit.date,
                tags: commit.tags,
                message: commit.message,
            },
            manifests::Described::Chart(chart) => Described::Chart {
                description: chart.description,
                home: chart.home,
                maintainers: chart.maintainers,
            },
        })
    }
}

impl Sources for Workshop {
    fn generate<'a>(&'a self, set: &'a ApplicationSet) -> Later<'a, Vec<Value>> {
        Box::pin(async move { self.generated(set).await.map_err(|failure| failure.to_string()) })
    }

    fn targets<'a>(&'a self, application: &'a Application) -> Later<'a, Vec<Value>> {
        Box::pin(async move { self.wanted(application).await.map_err(|failure| failure.to_string()) })
    }

    fn describe<'a>(&'a self, application: &'a Application, revision: &'a str) -> Later<'a, Described> {
        Box::pin(
            async move { self.described(application, revision).await.map_err(|failure| failure.to_string()) },
        )
    }

    fn references<'a>(
        &'a self,
        url: &'a str,
        project: &'a str,
        fields: Option<&'a BTreeMap<String, String>>,
    ) -> Later<'a, References> {
        Box::pin(async move { self.named(url, project, fields).await.map_err(|failure| failure.to_string()) })
    }
}
