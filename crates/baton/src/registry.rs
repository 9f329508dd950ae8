//! Secrets of the control plane that register something: a cluster, a repository, credentials of repositories.

use std::collections::BTreeMap;

use baton_api::names::secret::{MANAGED_BY, MANAGED_BY_ARGOCD, TYPE_LABEL};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};

use crate::failure::Failure;
use crate::objects::MANAGER;

/// Texts of a Secret, by their keys.
pub(crate) type Texts = BTreeMap<String, String>;

/// The Secrets of one type.
pub(crate) struct Registry {
    api: Api<Secret>,
    kind: &'static str,
}

/// What a Secret is to say.
pub(crate) struct Entry {
    /// Name of the Secret, where it is made.
    pub(crate) name: String,
    pub(crate) texts: Texts,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

// === impl Registry ===

impl Registry {
    pub(crate) fn new(client: &Client, namespace: &str, kind: &'static str) -> Registry {
        Registry { api: Api::namespaced(client.clone(), namespace), kind }
    }

    /// All of them.
    pub(crate) async fn all(&self) -> Result<Vec<Secret>, Failure> {
        let parameters = ListParams::default().labels(&format!("{TYPE_LABEL}={}", self.kind));
        Ok(self.api.list(&parameters).await?.items)
    }

    /// Makes one.
    pub(crate) async fn create(&self, entry: Entry) -> Result<(), Failure> {
        let mut secret = Secret::default();
        secret.metadata.name = Some(entry.name);
        secret.type_ = Some("Opaque".to_owned());
        secret.data = Some(bytes(entry.texts));
        let mut labels = entry.labels;
        labels.insert(TYPE_LABEL.to_owned(), self.kind.to_owned());
        let mut annotations = entry.annotations;
        annotations.insert(MANAGED_BY.to_owned(), MANAGED_BY_ARGOCD.to_owned());
        secret.metadata.labels = Some(labels);
        secret.metadata.annotations = Some(annotations);
        self.api.create(&parameters(), &secret).await?;
        Ok(())
    }

    /// Puts `entry` in the place of what one said. Labels and annotations of others stay; what is written is bound to the
    /// version that was read.
    pub(crate) async fn replace(&self, mut secret: Secret, entry: Entry) -> Result<(), Failure> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        secret.data = Some(bytes(entry.texts));
        secret.string_data = None;
        secret.metadata.labels.get_or_insert_default().extend(entry.labels);
        secret.metadata.annotations.get_or_insert_default().extend(entry.annotations);
        match self.api.replace(&name, &parameters(), &secret).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                Err(Failure::api(format!("Secret {name} was changed by somebody else meanwhile: try again")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes exactly the one that was read.
    pub(crate) async fn delete(&self, secret: &Secret) -> Result<(), Failure> {
        let uid = secret.metadata.uid.clone();
        let only = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        self.api.delete(secret.metadata.name.as_deref().unwrap_or_default(), &only).await?;
        Ok(())
    }
}

/// What a Secret says; what is no text is left out.
pub(crate) fn texts(secret: &Secret) -> Texts {
    let data = secret.data.iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), String::from_utf8(value.0.clone()).ok()?))).collect()
}

/// The name of a Secret, by a text that it is about: as Argo CD names them, so that either finds what the other made.
pub(crate) fn named(prefix: &str, about: &[&str]) -> String {
    let hash = about
        .iter()
        .flat_map(|text| text.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{prefix}-{hash}")
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

fn bytes(texts: Texts) -> BTreeMap<String, ByteString> {
    texts.into_iter().map(|(key, text)| (key, ByteString(text.into_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_named_by_what_they_are_about() {
        // FNV-1a of 32 bits: the empty text and "a" are its published examples.
        assert_eq!(named("repo", &[""]), format!("repo-{}", 0x811c_9dc5_u32));
        assert_eq!(named("repo", &["a"]), format!("repo-{}", 0xe40c_292c_u32));
        assert_eq!(named("repo", &["a", "b"]), named("repo", &["ab"]));
    }
}
