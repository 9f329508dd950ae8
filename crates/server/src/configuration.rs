//! What the operator has set, as far as every call needs it: read anew when it is older than a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_api::AppProject;
use kube::Client;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::auth::accounts::Accounts;
use crate::auth::oidc::Provider;
use crate::auth::token::SigningKey;
use crate::error::Error;
use crate::objects::{CONFIG_MAPS, Objects, PROJECTS, SECRETS};

/// The ConfigMap with settings.
pub(crate) const CONFIG: &str = "argocd-cm";
/// The ConfigMap with rights.
const RIGHTS: &str = "argocd-rbac-cm";
/// The Secret with the key, passwords and tokens.
pub(crate) const SECRET: &str = "argocd-secret";
/// The ConfigMap with sessions that were ended before their time, by the names of their tokens.
pub(crate) const REVOKED: &str = "baton-revoked-sessions";

/// What the operator has set.
pub(crate) struct Configuration {
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) accounts: Accounts,
    pub(crate) key: Option<SigningKey>,
    /// Who else vouches for people, or why that cannot be read.
    pub(crate) provider: Option<Result<Provider, String>>,
    /// Claims of the issuer's tokens that hold groups.
    pub(crate) group_claims: Vec<String>,
    pub(crate) projects: BTreeMap<String, Arc<AppProject>>,
    pub(crate) revoked: BTreeSet<String>,
}

/// Reads it, at most once in a while.
pub(crate) struct Configured {
    client: Client,
    namespace: String,
    fresh: Duration,
    held: Mutex<Option<(Instant, Arc<Configuration>)>>,
}

// === impl Configured ===

impl Configured {
    pub(crate) fn new(client: Client, namespace: &str, fresh: Duration) -> Configured {
        Configured { client, namespace: namespace.to_owned(), fresh, held: Mutex::new(None) }
    }

    /// What is set, no older than it may be. Many that ask at once share one reading.
    ///
    /// # Errors
    /// The API cannot be asked: nobody is let in on what may have been revoked.
    pub(crate) async fn get(&self) -> Result<Arc<Configuration>, Error> {
        let mut held = self.held.lock().await;
        if let Some((_, configuration)) = held.as_ref().filter(|(at, _)| at.elapsed() < self.fresh) {
            return Ok(configuration.clone());
        }
        let read = Arc::new(self.read().await?);
        *held = Some((Instant::now(), read.clone()));
        Ok(read)
    }

    /// Something of it was written: the next reading is a new one.
    pub(crate) async fn forget(&self) {
        *self.held.lock().await = None;
    }

    async fn read(&self) -> Result<Configuration, Error> {
        let maps = Objects::new(&self.client, CONFIG_MAPS, &self.namespace);
        let secrets = Objects::new(&self.client, SECRETS, &self.namespace);
        let projects = Objects::new(&self.client, PROJECTS, &self.namespace);
        let (settings, rights, secret, revoked, projects) = futures::try_join!(
            maps.find(CONFIG),
            maps.find(RIGHTS),
            secrets.find(SECRET),
            maps.find(REVOKED),
            projects.list(""),
        )?;
        let settings = texts(settings.as_ref());
        let secret = bytes(secret.as_ref());
        let key = secret.get("server.secretkey").and_then(|key| SigningKey::new(key));
        let written = settings.get("oidc.config").filter(|text| !text.trim().is_empty());
        let typed = |value: Value| serde_json::from_value::<AppProject>(value).ok();
        let named = |project: AppProject| Some((project.metadata.name.clone()?, Arc::new(project)));
        Ok(Configuration {
            accounts: Accounts::read(&settings, &secret),
            key,
            provider: written.map(|text| Provider::read(text, &secret)),
            group_claims: group_claims(&texts(rights.as_ref())),
            projects: projects.into_iter().filter_map(typed).filter_map(named).collect(),
            revoked: texts(revoked.as_ref()).into_keys().collect(),
            settings,
        })
    }
}

// === impl Configuration ===

impl Configuration {
    /// A setting, where it says something.
    pub(crate) fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    /// Whether a setting is on.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.setting(key) == Some("true")
    }
}

/// `scopes` of the rights: which claims of a token hold groups.
fn group_claims(rights: &BTreeMap<String, String>) -> Vec<String> {
    let written = rights.get("scopes").and_then(|text| baton_grammar::yaml::documents(text).ok());
    let listed = written.and_then(|documents| serde_json::from_value(documents.into_iter().next()?).ok());
    listed.unwrap_or_else(|| vec!["groups".to_owned()])
}

/// `data` of a ConfigMap.
pub(crate) fn texts(map: Option<&Value>) -> BTreeMap<String, String> {
    let data = map.and_then(|map| map["data"].as_object());
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    data.into_iter().flatten().filter_map(text).collect()
}

/// `data` of a Secret, decoded.
pub(crate) fn bytes(secret: Option<&Value>) -> BTreeMap<String, Vec<u8>> {
    let texts = texts(secret).into_iter();
    texts.filter_map(|(key, value)| Some((key, STANDARD.decode(value).ok()?))).collect()
}
