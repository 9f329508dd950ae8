//! What generators read of a Kubernetes cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use baton_api::AppProjectSpec;
use baton_api::names::resource::LAST_APPLIED;
use baton_api::names::secret::{TYPE_CLUSTER, TYPE_LABEL};
use baton_grammar::labels::Selector;
use baton_source::RepositorySecret;
use serde_json::Value;

/// The objects generators read: the Kubernetes API, a cache of it, or files.
///
/// # Errors
/// Each call may fail, with a text that tells what could not be read. "There is none" is no error; never answer a
/// failed call with less than there is, or Applications are deleted for it.
pub trait World: Send + Sync {
    /// Every cluster Secret in Argo CD's namespace.
    fn clusters(&self) -> impl Future<Output = Result<Arc<Vec<ClusterSecret>>, String>> + Send;

    /// The data of a ConfigMap.
    fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<BTreeMap<String, String>>, String>> + Send;

    /// A Secret.
    fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<SecretData>, String>> + Send;

    /// Objects of any kind, given the plural name of their resource.
    fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> impl Future<Output = Result<Vec<Value>, String>> + Send;

    /// Whether an AppProject exists in Argo CD's namespace.
    fn project_exists(&self, name: &str) -> impl Future<Output = Result<bool, String>> + Send;

    /// Whether an existing project takes only signed commits ([`demands_signatures`] tells). Signatures cannot be
    /// verified here, so the git generator then refuses to run.
    fn project_demands_signatures(&self, name: &str) -> impl Future<Output = Result<bool, String>> + Send;

    /// Every repository and repo-creds Secret in Argo CD's namespace.
    fn repository_secrets(&self) -> impl Future<Output = Result<Arc<Vec<RepositorySecret>>, String>> + Send;
}

/// Whether a project takes only commits signed with keys it names.
pub fn demands_signatures(project: &AppProjectSpec) -> bool {
    let policies =
        project.source_integrity.iter().flat_map(|integrity| &integrity.git).flat_map(|git| &git.policies);
    let verifies = |mode: &str| !mode.is_empty() && mode != "none";
    !project.signature_keys.is_empty()
        || policies.flat_map(|policy| &policy.gpg).any(|gpg| verifies(&gpg.mode))
}

/// What generators may know of a registered cluster. Its credentials are not among it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterSecret {
    /// Name of the Secret.
    pub secret_name: String,
    /// Name of the cluster.
    pub name: String,
    /// URL of its API server, as written.
    pub server: String,
    /// Project it belongs to; empty is none.
    pub project: String,
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret, without kubectl's copy of it.
    pub annotations: BTreeMap<String, String>,
}

impl ClusterSecret {
    /// Reads a Secret, unless its labels say it is no cluster.
    pub fn read(
        secret_name: &str,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        data: &BTreeMap<String, Vec<u8>>,
    ) -> Option<ClusterSecret> {
        if labels.get(TYPE_LABEL).map(String::as_str) != Some(TYPE_CLUSTER) {
            return None;
        }
        let text = |key: &str| data.get(key).map_or_else(String::new, |bytes| text(bytes));
        let mut annotations = annotations.clone();
        annotations.remove(LAST_APPLIED);
        Some(ClusterSecret {
            secret_name: secret_name.to_owned(),
            name: text("name"),
            server: text("server"),
            project: text("project"),
            labels: labels.clone(),
            annotations,
        })
    }
}

/// A Secret that a generator names. Prints no value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretData {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its values.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretData")
            .field("labels", &self.labels)
            .field("keys", &self.data.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Which objects of a kind are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceChoice {
    /// The one with this name.
    Name(String),
    /// Those whose labels match.
    Labels(Selector),
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_cluster_is_read_without_its_credentials() {
        let labels = map(&[(TYPE_LABEL, TYPE_CLUSTER), ("env", "prod")]);
        let annotations = map(&[(LAST_APPLIED, r#"{"stringData":{"config":"hunter2"}}"#), ("team", "a")]);
        let data = BTreeMap::from([
            ("name".to_owned(), b"east".to_vec()),
            ("server".to_owned(), b"https://east".to_vec()),
            ("config".to_owned(), b"hunter2".to_vec()),
        ]);
        let cluster = ClusterSecret::read("s", &labels, &annotations, &data).expect("a cluster");
        assert_eq!(cluster.name, "east");
        assert_eq!(cluster.annotations, map(&[("team", "a")]));
        assert!(!format!("{cluster:?}").contains("hunter2"));
        assert_eq!(ClusterSecret::read("s", &map(&[(TYPE_LABEL, "repository")]), &annotations, &data), None);
    }

    #[test]
    fn projects_say_whether_commits_are_to_be_signed() {
        let policy = |mode: &str| json!({"sourceIntegrity": {"git": {"policies": [{"repos": [], "gpg": {"mode": mode}}]}}});
        for (project, expected) in [
            (json!({}), false),
            (json!({"signatureKeys": [{"keyID": "4AEE18F83AFDEB23"}]}), true),
            (json!({"sourceIntegrity": {}}), false),
            (policy("none"), false),
            (policy("head"), true),
            (policy("strict"), true),
        ] {
            let read: AppProjectSpec = serde_json::from_value(project.clone()).expect("a project");
            assert_eq!(demands_signatures(&read), expected, "{project}");
        }
    }

    #[test]
    fn a_secret_prints_no_value() {
        let secret = SecretData {
            labels: map(&[]),
            data: BTreeMap::from([("token".to_owned(), b"hunter2".to_vec())]),
        };
        let shown = format!("{secret:?}");
        assert!(shown.contains("token") && !shown.contains("hunter2") && !shown.contains("104"), "{shown}");
    }
}
