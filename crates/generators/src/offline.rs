//! A world read from files: cluster Secrets, ConfigMaps, AppProjects and anything else, without a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_api::AppProjectSpec;
use baton_grammar::yaml;
use baton_source::RepositorySecret;
use serde_json::Value;

use crate::world::{ClusterSecret, ResourceChoice, SecretData, World, demands_signatures};

/// Objects read from manifests.
///
/// An object without a namespace is found in any. Cluster and repository Secrets count when they are in Argo CD's
/// namespace or in none. A project exists if it was given, and every project exists while none was given.
#[derive(Debug, Default)]
pub struct Offline {
    argocd_namespace: String,
    clusters: Arc<Vec<ClusterSecret>>,
    repository_secrets: Arc<Vec<RepositorySecret>>,
    secrets: Vec<(Name, SecretData)>,
    config_maps: Vec<(Name, BTreeMap<String, String>)>,
    /// By name, whether commits must be signed.
    projects: BTreeMap<String, bool>,
    resources: Vec<Value>,
}

/// A manifest that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfflineError {
    /// The text is not YAML.
    #[error(transparent)]
    Yaml(#[from] yaml::Error),
    /// A document is not a Kubernetes object.
    #[error("document {document} is no Kubernetes object: {why}")]
    Object {
        /// Its place in the text, from 1.
        document: usize,
        /// What is missing.
        why: &'static str,
    },
    /// A Secret or ConfigMap whose data is not what it should be.
    #[error("{kind} {name:?}: {why}")]
    Data {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What is wrong; never a value of it.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    namespace: Option<String>,
    name: String,
}

impl Offline {
    /// A world without objects.
    pub fn new(argocd_namespace: &str) -> Offline {
        Offline { argocd_namespace: argocd_namespace.to_owned(), ..Offline::default() }
    }

    /// Adds the objects of a YAML text: any number of documents, lists taken apart.
    ///
    /// # Errors
    /// Text that is no YAML, a document that is no object, and Secrets whose data is not base64.
    pub fn add_yaml(&mut self, text: &str) -> Result<(), OfflineError> {
        for (index, document) in yaml::documents(text)?.into_iter().enumerate() {
            self.add_document(document, index + 1)?;
        }
        Ok(())
    }

    fn add_document(&mut self, document: Value, place: usize) -> Result<(), OfflineError> {
        let broken = |why| OfflineError::Object { document: place, why };
        if document.is_null() {
            return Ok(());
        }
        let text = |field: &str| document.get(field).and_then(Value::as_str);
        let kind = text("kind").ok_or_else(|| broken("it has no kind"))?;
        let version = text("apiVersion").ok_or_else(|| broken("it has no apiVersion"))?;
        if kind.ends_with("List")
            && let Some(Value::Array(items)) = document.get("items")
        {
            return items.iter().try_for_each(|item| self.add_document(item.clone(), place));
        }
        match (version, kind) {
            ("v1", "Secret") => self.add_secret(&document),
            ("v1", "ConfigMap") => {
                let data = texts(&document, "/data").map_err(|why| wrong("ConfigMap", &document, why))?;
                self.config_maps.push((Name::of(&document), data));
                Ok(())
            }
            (version, "AppProject") if version.starts_with("argoproj.io/") => {
                let spec = document.get("spec").cloned().unwrap_or_default();
                let spec: Option<AppProjectSpec> = serde_json::from_value(spec)
                    .map_err(|_| broken("its spec is not that of an AppProject"))?;
                let signed = spec.is_some_and(|spec| demands_signatures(&spec));
                self.projects.insert(Name::of(&document).name, signed);
                Ok(())
            }
            _ => {
                self.resources.push(document);
                Ok(())
            }
        }
    }

    fn add_secret(&mut self, object: &Value) -> Result<(), OfflineError> {
        let fail = |why| wrong("Secret", object, why);
        let name = Name::of(object);
        let labels = texts(object, "/metadata/labels").map_err(fail)?;
        let annotations = texts(object, "/metadata/annotations").map_err(fail)?;
        let mut data = BTreeMap::new();
        for (key, encoded) in texts(object, "/data").map_err(fail)? {
            let packed: String = encoded.split_ascii_whitespace().collect();
            let decoded = STANDARD.decode(packed).map_err(|_| fail(format!("data.{key} is not base64")))?;
            data.insert(key, decoded);
        }
        for (key, text) in texts(object, "/stringData").map_err(fail)? {
            data.insert(key, text.into_bytes());
        }
        if name.namespace.as_deref().is_none_or(|namespace| namespace == self.argocd_namespace) {
            if let Some(cluster) = ClusterSecret::read(&name.name, &labels, &annotations, &data) {
                Arc::make_mut(&mut self.clusters).push(cluster);
            }
            let repository = RepositorySecret::read(&labels, &data, &name.name);
            Arc::make_mut(&mut self.repository_secrets).extend(repository);
        }
        self.secrets.push((name, SecretData { labels, data }));
        Ok(())
    }
}

impl World for Offline {
    async fn clusters(&self) -> Result<Arc<Vec<ClusterSecret>>, String> {
        Ok(self.clusters.clone())
    }

    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        Ok(find(&self.config_maps, namespace, name))
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        Ok(find(&self.secrets, namespace, name))
    }

    async fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> Result<Vec<Value>, String> {
        let wanted = |object: &&Value| {
            let name = Name::of(object);
            let chosen = match choice {
                ResourceChoice::Name(wanted) => name.name == *wanted,
                ResourceChoice::Labels(selector) => selector.matches_object(object),
            };
            chosen && name.is_in(namespace) && is_kind(object, api_version, plural)
        };
        Ok(self.resources.iter().filter(wanted).cloned().collect())
    }

    async fn project_exists(&self, name: &str) -> Result<bool, String> {
        Ok(self.projects.is_empty() || self.projects.contains_key(name))
    }

    async fn project_demands_signatures(&self, name: &str) -> Result<bool, String> {
        Ok(self.projects.get(name).copied().unwrap_or_default())
    }

    async fn repository_secrets(&self) -> Result<Arc<Vec<RepositorySecret>>, String> {
        Ok(self.repository_secrets.clone())
    }
}

impl Name {
    fn of(object: &Value) -> Name {
        let text = |path| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
        Name {
            namespace: text("/metadata/namespace").filter(|namespace| !namespace.is_empty()),
            name: text("/metadata/name").unwrap_or_default(),
        }
    }

    fn is_in(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

/// The last one given wins, as it would when applied.
fn find<T: Clone>(objects: &[(Name, T)], namespace: &str, name: &str) -> Option<T> {
    let found = objects.iter().rev().find(|(own, _)| own.name == name && own.is_in(namespace));
    found.map(|(_, object)| object.clone())
}

/// Whether an object belongs to a resource. Without a server the plural of a kind is guessed as Kubernetes guesses.
fn is_kind(object: &Value, api_version: &str, plural: &str) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let singular = text("kind").to_lowercase();
    let guess = match singular.as_bytes() {
        [.., b's' | b'x'] => format!("{singular}es"),
        [.., b'c' | b's', b'h'] => format!("{singular}es"),
        [stem @ .., b'y'] if !matches!(stem.last(), Some(b'a' | b'e' | b'i' | b'o' | b'u')) => {
            format!("{}ies", &singular[..singular.len() - 1])
        }
        _ => format!("{singular}s"),
    };
    text("apiVersion") == api_version && (plural == guess || plural.to_lowercase() == singular)
}

fn texts(object: &Value, path: &str) -> Result<BTreeMap<String, String>, String> {
    match object.pointer(path) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries
            .iter()
            .map(|(key, value)| match value {
                Value::String(text) => Ok((key.clone(), text.clone())),
                Value::Null => Ok((key.clone(), String::new())),
                _ => Err(format!("{}.{key} is no text", path.trim_start_matches('/'))),
            })
            .collect(),
        Some(_) => Err(format!("{} is no map", path.trim_start_matches('/'))),
    }
}

fn wrong(kind: &'static str, object: &Value, why: String) -> OfflineError {
    OfflineError::Data { kind, name: Name::of(object).name, why }
}

#[cfg(test)]
mod tests {
    use baton_grammar::labels::Selector;
    use futures::FutureExt;

    use super::*;

    /// Everything here is answered at once.
    fn now<T>(future: impl Future<Output = Result<T, String>>) -> T {
        future.now_or_never().expect("files need no waiting").expect("files do not fail")
    }

    fn world(text: &str) -> Offline {
        let mut world = Offline::new("argocd");
        world.add_yaml(text).expect("usable manifests");
        world
    }

    #[test]
    fn clusters_are_the_labelled_secrets_of_the_namespace() {
        let world = world(
            r"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: one, labels: {argocd.argoproj.io/secret-type: cluster}}
  data: {name: b25l, server: aHR0cHM6Ly9vbmU=}
- apiVersion: v1
  kind: Secret
  metadata: {name: two, namespace: other, labels: {argocd.argoproj.io/secret-type: cluster}}
- apiVersion: v1
  kind: Secret
  metadata: {name: three, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
  stringData: {url: 'https://git.example.com/x'}
---
# nothing
",
        );
        let clusters = now(world.clusters());
        assert_eq!(clusters.len(), 1);
        assert_eq!((clusters[0].name.as_str(), clusters[0].server.as_str()), ("one", "https://one"));
        assert_eq!(now(world.repository_secrets()).len(), 1);
    }

    #[test]
    fn objects_are_found_by_namespace_and_the_last_one_counts() {
        let world = world(
            r"
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {k: first}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}, data: {k: last}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: any}, data: {k: anywhere}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: x}, data: {k: 'aGk='}, stringData: {l: there}}
",
        );
        let value =
            |namespace, name| now(world.config_map(namespace, name)).and_then(|data| data.get("k").cloned());
        assert_eq!(value("x", "a").as_deref(), Some("last"));
        assert_eq!(value("y", "a"), None);
        assert_eq!(value("y", "any").as_deref(), Some("anywhere"));
        let secret = now(world.secret("x", "s")).expect("a Secret");
        assert_eq!((secret.data["k"].as_slice(), secret.data["l"].as_slice()), (&b"hi"[..], &b"there"[..]));
        assert_eq!(now(world.secret("y", "s")), None);
    }

    #[test]
    fn resources_are_found_by_plural_and_choice() {
        let world = world(
            r"
{apiVersion: a.io/v1, kind: Policy, metadata: {name: one, namespace: argocd, labels: {x: z}}}
---
{apiVersion: a.io/v1, kind: Policy, metadata: {name: two}}
---
{apiVersion: a.io/v2, kind: Policy, metadata: {name: three}}
---
{apiVersion: a.io/v1, kind: Mesh, metadata: {name: four}}
",
        );
        let count = |plural, choice| now(world.resources("a.io/v1", plural, "argocd", &choice)).len();
        let all = || ResourceChoice::Labels(Selector::default());
        assert_eq!(count("policies", all()), 2);
        assert_eq!(count("policy", all()), 2);
        assert_eq!(count("meshes", all()), 1);
        assert_eq!(count("meshs", all()), 0);
        assert_eq!(count("policies", ResourceChoice::Name("two".to_owned())), 1);
        let labelled = Selector::parse("x=z").expect("a selector");
        assert_eq!(count("policies", ResourceChoice::Labels(labelled)), 1);
        assert_eq!(now(world.resources("a.io/v1", "policies", "elsewhere", &all())).len(), 1);
    }

    #[test]
    fn every_project_exists_until_one_is_given() {
        assert!(now(world("").project_exists("any")));
        let world = world("{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: a}}");
        assert!(now(world.project_exists("a")));
        assert!(!now(world.project_exists("any")));
        assert!(!now(world.project_demands_signatures("a")));
    }

    #[test]
    fn what_is_no_manifest_is_refused_without_telling_secrets() {
        for text in [
            "a: [",
            "just text",
            "{kind: Secret}",
            "{apiVersion: v1}",
            "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: '%%hunter2'}}",
            "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: [hunter2]}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: s}, data: text}",
        ] {
            let error = Offline::new("argocd").add_yaml(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
