//! What the stand-in stands on: requests to APIs, what is in git, and what members have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use http::{Method, Request};
use kube::Client;
use kube::core::WatchEvent;
use serde_json::{Value, json};

/// On objects of members: whose they are.
const TRACKING: &str = "argocd.argoproj.io/tracking-id";
/// Who writes to members.
const MANAGER: &str = "argocd-controller";

/// What is in git.
pub trait Git: Send + Sync {
    /// What a branch, a tag or the beginning of a commit's id names, in the words of the repository: of an annotated tag
    /// its own id, of an id what was written.
    ///
    /// # Errors
    /// If it cannot be told.
    fn resolve(&self, url: &str, target: &str) -> Result<String, String>;

    /// The commit behind what was resolved.
    fn peel(&self, revision: &str) -> String {
        revision.to_owned()
    }

    /// The text of a file of a commit.
    ///
    /// # Errors
    /// If there is none, or it cannot be told.
    fn file(&self, url: &str, commit: &str, path: &str) -> Result<String, String>;
}

/// Git as far as it is known ahead: by commit, the texts of all files.
pub type Memory = BTreeMap<String, BTreeMap<String, String>>;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests to one API.
#[derive(Clone)]
pub(super) struct Requests(Client);

/// Why a request has no answer that is of use.
#[derive(Debug)]
pub(super) struct Failure {
    /// What the API said, if it did.
    pub(super) code: Option<u16>,
    message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Failure {
        let code = match &error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        };
        Failure { code, message: error.to_string() }
    }
}

impl Failure {
    /// Whether what it is about is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.code == Some(404)
    }
}

impl Requests {
    pub(super) fn new(client: Client) -> Requests {
        Requests(client)
    }

    async fn send(&self, method: Method, uri: &str, kind: &str, body: &Value) -> Result<Value, Failure> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(uri).header("content-type", kind).body(body);
        let request = request.map_err(kube::Error::HttpError)?;
        match tokio::time::timeout(PATIENCE, self.0.request(request)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure { code: None, message: "no answer".to_owned() }),
        }
    }

    pub(super) async fn get(&self, uri: &str) -> Result<Value, Failure> {
        self.send(Method::GET, uri, "application/json", &Value::Null).await
    }

    pub(super) async fn delete(&self, uri: &str) -> Result<Value, Failure> {
        self.send(Method::DELETE, uri, "application/json", &Value::Null).await
    }

    /// Merges into an object.
    pub(super) async fn merge(&self, uri: &str, patch: &Value) -> Result<Value, Failure> {
        let uri = format!("{uri}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &uri, "application/merge-patch+json", patch).await
    }

    /// Changes an object step by step, tests among them.
    pub(super) async fn steps(&self, uri: &str, patch: &Value) -> Result<Value, Failure> {
        let uri = format!("{uri}?fieldManager={MANAGER}");
        self.send(Method::PATCH, &uri, "application/json-patch+json", patch).await
    }

    pub(super) async fn apply(&self, uri: &str, object: &Value) -> Result<Value, Failure> {
        let uri = format!("{uri}?fieldManager={MANAGER}&force=true");
        self.send(Method::PATCH, &uri, "application/apply-patch+yaml", object).await
    }

    pub(super) async fn events(
        &self,
        uri: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, kube::Error>> + use<>, Failure> {
        let request = Request::get(uri).body(Vec::new()).map_err(kube::Error::HttpError)?;
        Ok(self.0.request_events::<Value>(request).await?)
    }
}

/// Members and git.
pub(super) struct Ground {
    members: BTreeMap<String, Requests>,
    namespace: String,
    git: Arc<dyn Git>,
}

/// An object of a member, as git has it and as it is.
pub(super) struct Pair {
    pub(super) kind: String,
    pub(super) group: String,
    pub(super) name: String,
    pub(super) wanted: Option<Value>,
    pub(super) live: Option<Value>,
}

/// Kinds that the stand-in manages.
const KINDS: [(&str, &str, &str); 2] =
    [("", "ConfigMap", "configmaps"), ("apps", "Deployment", "deployments")];

impl Ground {
    pub(super) fn new(members: BTreeMap<String, Client>, namespace: String, git: Arc<dyn Git>) -> Ground {
        let members = members.into_iter().map(|(server, client)| (server, Requests::new(client))).collect();
        Ground { members, namespace, git }
    }

    pub(super) fn git(&self) -> &dyn Git {
        &*self.git
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&String, &Requests)> {
        self.members.iter()
    }

    /// Paths of the kinds that are watched in members.
    pub(super) fn watched(&self) -> impl Iterator<Item = String> {
        KINDS.iter().map(|(group, _, plural)| self.path(group, plural))
    }

    /// Path of the Pods of members.
    pub(super) fn pods(&self) -> String {
        self.path("", "pods")
    }

    fn path(&self, group: &str, plural: &str) -> String {
        let namespace = &self.namespace;
        match group {
            "" => format!("/api/v1/namespaces/{namespace}/{plural}"),
            group => format!("/apis/{group}/v1/namespaces/{namespace}/{plural}"),
        }
    }

    pub(super) fn member(&self, app: &Value) -> Result<&Requests, String> {
        let server = text(app, "/spec/destination/server");
        self.members.get(server).ok_or_else(|| format!("cluster {server:?} is not configured"))
    }

    /// What git has for an Application at these commits, one per source.
    pub(super) fn wanted(&self, sources: &[&Value], commits: &[String]) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        for (source, commit) in sources.iter().zip(commits) {
            let file = format!("{}/all.yaml", text(source, "/path"));
            let content = self.git.file(text(source, "/repoURL"), commit, &file)?;
            let documents = baton_grammar::yaml::documents(&content);
            all.extend(documents.map_err(|error| error.to_string())?);
        }
        Ok(all)
    }

    /// Everything an Application has or is to have.
    pub(super) async fn pairs(
        &self,
        name: &str,
        member: &Requests,
        wanted: Vec<Value>,
    ) -> Result<Vec<Pair>, String> {
        let mut live = Vec::new();
        for (group, kind, plural) in KINDS {
            let listed = member.get(&self.path(group, plural)).await.map_err(|error| error.to_string())?;
            let items = listed["items"].as_array().cloned().unwrap_or_default();
            live.extend(items.into_iter().map(|item| (group, kind, item)));
        }
        let mut pairs: Vec<Pair> = wanted.into_iter().map(Pair::wanted).collect();
        for (group, kind, item) in live {
            let own = text(&item, "/metadata/name").to_owned();
            match pairs.iter_mut().find(|pair| pair.kind == kind && pair.name == own) {
                Some(pair) => pair.live = Some(item),
                None if owner(&item) == Some(name) => {
                    let (kind, group) = (kind.to_owned(), group.to_owned());
                    pairs.push(Pair { kind, group, name: own, wanted: None, live: Some(item) });
                }
                None => {}
            }
        }
        Ok(pairs)
    }

    /// Brings an object to what git has, or away where git has none.
    pub(super) async fn bring(&self, name: &str, member: &Requests, pair: &Pair) -> Result<(), String> {
        let Some((_, _, plural)) = KINDS.iter().find(|(_, kind, _)| *kind == pair.kind) else {
            return Err(format!("the server could not find the requested resource {}", pair.kind));
        };
        let uri = format!("{}/{}", self.path(&pair.group, plural), pair.name);
        let outcome = match &pair.wanted {
            Some(wanted) => {
                let mut object = wanted.clone();
                let id = format!("{name}:{}/{}:{}/{}", pair.group, pair.kind, self.namespace, pair.name);
                if object["metadata"]["annotations"].is_null() {
                    object["metadata"]["annotations"] = json!({});
                }
                object["metadata"]["annotations"][TRACKING] = id.into();
                object["metadata"]["namespace"] = self.namespace.clone().into();
                member.apply(&uri, &object).await.map(drop)
            }
            None => match member.delete(&uri).await {
                Err(error) if error.is_missing() => Ok(()),
                other => other.map(drop),
            },
        };
        outcome.map_err(|error| error.to_string())
    }
}

impl Pair {
    fn wanted(object: Value) -> Pair {
        let group = text(&object, "/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        Pair {
            group: group.to_owned(),
            kind: text(&object, "/kind").to_owned(),
            name: text(&object, "/metadata/name").to_owned(),
            wanted: Some(object),
            live: None,
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        match (&self.wanted, &self.live) {
            // What is listed is of one kind, and does not say which.
            (Some(Value::Object(wanted)), Some(live)) => wanted
                .iter()
                .filter(|(key, _)| !["apiVersion", "kind"].contains(&key.as_str()))
                .all(|(key, value)| is_within(value, &live[key])),
            _ => false,
        }
    }
}

/// Whether all of a value is in another; what says nothing is in everything.
fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), live) => {
            live.is_object() && wanted.iter().all(|(key, value)| is_within(value, &live[key]))
                || wanted.is_empty() && live.is_null()
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len()
                && wanted.iter().zip(live).all(|(wanted, live)| is_within(wanted, live))
        }
        (Value::Bool(false), Value::Null) => true,
        (wanted, live) => wanted == live,
    }
}

/// The Application that an object belongs to.
pub(super) fn owner(object: &Value) -> Option<&str> {
    let id = object["metadata"]["annotations"][TRACKING].as_str()?;
    id.split(':').next().filter(|name| !name.is_empty())
}

/// A text in an object; empty where there is none.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
