//! Webhooks that come to the server: sets and Applications that an event concerns are asked to look again, wherever their
//! controllers run.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use baton_api::names::application::REFRESH as COMPARE;
use baton_api::names::application_set::REFRESH;
use baton_api::{Application, ApplicationSet};
use baton_controllers::Controller;
use baton_controllers::webhook::{Candidate, Deployed, Refresh, WebhookSecrets};
use baton_server::Server;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use parking_lot::RwLock;
use serde_json::json;

/// The Secret with what webhooks are signed with.
const SECRET: &str = "argocd-secret";
/// Whose Secrets it may refer to.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "argocd");

/// Knows the sets and the secrets of webhooks.
pub(crate) struct Bell {
    client: Client,
    namespace: String,
    /// None before the Secret was read.
    secrets: RwLock<Option<Arc<WebhookSecrets>>>,
    /// Whose sets they are; the server is made after this.
    server: OnceLock<Server>,
}

/// Where the controller of the sets runs beside the server, it looks after them, and knows what webhooks are signed with.
pub(crate) struct Both {
    pub(crate) sets: Controller,
    pub(crate) applications: Bell,
}

// === impl Bell ===

impl Bell {
    pub(crate) fn new(client: Client, namespace: &str) -> Bell {
        let namespace = namespace.to_owned();
        Bell { client, namespace, secrets: RwLock::default(), server: OnceLock::new() }
    }

    /// Takes the sets from this server from now on.
    pub(crate) fn hang(&self, server: Server) {
        let _ = self.server.set(server);
    }

    /// Follows what webhooks are signed with, until dropped.
    pub(crate) async fn run(&self) {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let only = watcher::Config::default().fields(&format!("metadata.name={SECRET}"));
        let mut events = watcher::watcher(api, only).default_backoff().boxed();
        let mut listed = None;
        while let Some(event) = events.next().await {
            let secret = match event {
                Ok(Event::Init) => {
                    listed = None;
                    continue;
                }
                Ok(Event::InitApply(secret)) => {
                    listed = Some(secret);
                    continue;
                }
                Ok(Event::InitDone) => listed.take(),
                Ok(Event::Apply(secret)) => Some(secret),
                Ok(Event::Delete(_)) => None,
                Err(error) => {
                    tracing::warn!(%error, "the watch of {SECRET} failed and is tried again");
                    continue;
                }
            };
            let read = self.read(secret.map(data).unwrap_or_default()).await;
            *self.secrets.write() = Some(Arc::new(read));
        }
    }

    async fn read(&self, own: BTreeMap<String, Vec<u8>>) -> WebhookSecrets {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut others = BTreeMap::new();
        let referred = own.iter().filter(|(key, _)| key.starts_with("webhook."));
        let referred =
            referred.filter_map(|(_, value)| std::str::from_utf8(value).ok()?.trim().strip_prefix('$'));
        for name in referred.filter_map(|reference| reference.split_once(':')).map(|(name, _)| name) {
            let found = api.get_opt(name).await.ok().flatten();
            let ours = |secret: &Secret| {
                let labels = secret.metadata.labels.as_ref();
                labels.and_then(|labels| labels.get(PART_OF.0)).is_some_and(|value| value == PART_OF.1)
            };
            others.extend(found.filter(ours).map(|secret| (name.to_owned(), data(secret))));
        }
        WebhookSecrets::read(&own, |name, key| others.get(name)?.get(key).cloned())
    }
}

fn data(secret: Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
}

impl Refresh for Bell {
    fn secrets(&self) -> Arc<WebhookSecrets> {
        self.secrets.read().clone().unwrap_or_default()
    }

    async fn sets(&self) -> Result<Vec<Candidate>, String> {
        if self.secrets.read().is_none() {
            return Err(format!("{SECRET} was not read yet, so nobody can be believed"));
        }
        let server = self.server.get().ok_or("ApplicationSets are not known yet")?;
        server.ready().await.map_err(|error| error.to_string())?;
        let sets = server.known_sets().into_iter();
        Ok(sets.map(|set| Candidate { set: Arc::new(set), read: None }).collect())
    }

    async fn refresh(&self, namespace: &str, name: &str) -> Result<(), String> {
        let sets: Api<ApplicationSet> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({"metadata": {"annotations": {REFRESH: "true"}}});
        taken(sets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    async fn applications(&self) -> Result<Vec<Deployed>, String> {
        let server = self.server.get().ok_or("Applications are not known yet")?;
        server.ready().await.map_err(|error| error.to_string())?;
        let all = server.known_applications().into_iter();
        Ok(all.map(|(namespace, name, spec)| Deployed { namespace, name, spec }).collect())
    }

    async fn compare(&self, namespace: &str, name: &str) -> Result<(), String> {
        let applications: Api<Application> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({"metadata": {"annotations": {COMPARE: "normal"}}});
        taken(applications.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }
}

/// One that is gone has nothing to look at.
fn taken<T>(answer: kube::Result<T>) -> Result<(), String> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).map_err(|error| error.to_string()),
    }
}

impl Refresh for Both {
    fn secrets(&self) -> Arc<WebhookSecrets> {
        self.sets.secrets()
    }

    async fn sets(&self) -> Result<Vec<Candidate>, String> {
        self.sets.sets().await
    }

    async fn refresh(&self, namespace: &str, name: &str) -> Result<(), String> {
        self.sets.refresh(namespace, name).await
    }

    async fn applications(&self) -> Result<Vec<Deployed>, String> {
        self.applications.applications().await
    }

    async fn compare(&self, namespace: &str, name: &str) -> Result<(), String> {
        self.applications.compare(namespace, name).await
    }
}

#[cfg(test)]
mod tests {
    use baton_apiserver::{Cluster, Options};

    use super::*;

    async fn world() -> (Cluster, Bell) {
        let control = Cluster::memory(Options::default());
        for definition in baton_api::crds() {
            control.apply("test", &definition).await.expect("a definition");
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
        control.apply("test", &namespace).await.expect("a namespace");
        let bell = Bell::new(Client::new(control.service(), "argocd"), "argocd");
        (control, bell)
    }

    #[tokio::test]
    async fn a_set_is_asked_to_look_again_and_one_that_is_gone_is_not_missed() {
        let (control, bell) = world().await;
        let set = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "web", "namespace": "argocd"},
            "spec": {"generators": [], "template": {"metadata": {"name": "x"}, "spec": {"project": "default",
                "destination": {}, "source": {"repoURL": "https://git.example.com"}}}}});
        control.apply("test", &set).await.expect("a set");
        assert_eq!(bell.refresh("argocd", "web").await, Ok(()));
        let sets: Api<ApplicationSet> = Api::namespaced(bell.client.clone(), "argocd");
        let found = sets.get("web").await.expect("a set").metadata.annotations.unwrap_or_default();
        assert_eq!(found.get(REFRESH).map(String::as_str), Some("true"));
        assert_eq!(bell.refresh("argocd", "gone").await, Ok(()));
    }

    #[tokio::test]
    async fn an_application_is_asked_to_be_compared_and_one_that_is_gone_is_not_missed() {
        let (control, bell) = world().await;
        let application = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://git.example.com"}}});
        control.apply("test", &application).await.expect("an Application");
        assert_eq!(bell.compare("argocd", "web").await, Ok(()));
        let applications: Api<Application> = Api::namespaced(bell.client.clone(), "argocd");
        let found = applications.get("web").await.expect("one").metadata.annotations.unwrap_or_default();
        assert_eq!(found.get(COMPARE).map(String::as_str), Some("normal"));
        assert_eq!(bell.compare("argocd", "gone").await, Ok(()));
    }

    #[tokio::test]
    async fn secrets_are_followed_with_those_they_refer_to() {
        let (control, bell) = world().await;
        assert!(bell.sets().await.is_err(), "nobody is believed before the secrets are known");
        let secret = |name: &str, labels: serde_json::Value, data: serde_json::Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "argocd", "labels": labels},
                "stringData": data})
        };
        let other = secret("hooks", json!({PART_OF.0: PART_OF.1}), json!({"github": "hush"}));
        control.apply("test", &other).await.expect("a Secret");
        let own = secret(SECRET, json!({}), json!({"webhook.github.secret": "$hooks:github"}));
        control.apply("test", &own).await.expect("a Secret");
        let plain = [("webhook.github.secret".to_owned(), b"hush".to_vec())].into();
        let expected = WebhookSecrets::read(&plain, |_, _| None);
        let seen = async {
            while *bell.secrets() != expected {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = bell.run() => panic!("the watch ended"),
            () = seen => {}
        }
    }
}
