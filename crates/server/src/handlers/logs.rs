//! What the containers of an Application's Pods have written, and write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use baton_api::object::ResourceKey;
use baton_clusters::Node;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Updates;
use super::applications::Named;
use super::resources::Resource;
use crate::error::{Code, Error};
use crate::logs::{Choice, Entry, Merged, last, lines};
use crate::server::{Context, Server};

/// Logs that are read at the same time, of everybody.
pub(crate) const AT_ONCE: usize = 100;
/// Of how many Pods logs are read in one call, where `server.maxPodLogsToRender` says nothing else.
const USUAL_PODS: usize = 10;
/// The most that setting may say.
const MOST_PODS: usize = 100;
/// How often it is asked whether the caller may still read.
const LOOK: Duration = Duration::from_secs(5);

/// Which logs are meant, and which lines of them.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// Of this Pod; of all where it is empty.
    pub pod: String,
    /// Of this container; of the only one, or the usual one, where it is empty.
    pub container: String,
    /// Of the Pods in or beneath this resource: its kind, group and name, and the namespace of the Pods.
    pub within: Resource,
    /// Whether the stream goes on.
    pub follow: bool,
    /// Whether the run before the present one is meant.
    pub previous: bool,
    /// How many lines of each container at most; all where there is none.
    pub tail: Option<i64>,
    /// Only what is not older than this many seconds.
    pub since_seconds: Option<i64>,
    /// Only what is not older than this.
    pub since: Option<Timestamp>,
    /// Only what is not newer than this.
    pub until: Option<Timestamp>,
    /// Only lines with this text, or with a `!` before it those without.
    pub filter: String,
    /// Whether capitals count in it.
    pub match_case: bool,
}

/// Somebody who reads logs.
struct Reader {
    server: Server,
    context: Context,
    /// How policies name the Application.
    object: String,
    merged: Merged,
    choice: Choice,
    asked: Instant,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

impl Server {
    /// What containers of an Application have written, line by line.
    ///
    /// # Errors
    /// The caller may not read it, it is of too many Pods, or the cluster cannot be asked.
    pub async fn pod_logs(&self, context: &Context, at: &Named, query: &LogQuery) -> Result<Updates, Error> {
        query.check()?;
        let found = self.find(context, at, "get").await?;
        self.demand(context, "logs", "get", &found.object)?;
        let place = self.0.logs.clone().try_acquire_owned().map_err(|_| {
            Error::new(Code::ResourceExhausted, "too many logs are read at this moment: try again")
        })?;
        let cluster = self.place(context, &found).await?;
        let nodes = self.nodes(&found, &cluster).await?;
        let pods = query.pods(&nodes);
        let most = context.configuration.setting("server.maxPodLogsToRender");
        let most = most.and_then(|text| text.parse().ok()).unwrap_or(USUAL_PODS).min(MOST_PODS);
        if pods.len() > most {
            return Err(Error::invalid(format!(
                "max pods to view logs are reached ({} of {most}). Please provide more granular query",
                pods.len()
            )));
        }
        let since = query.since.unwrap_or(Timestamp::UNIX_EPOCH);
        let opened = pods.iter().map(|pod| async {
            match cluster.log(pod, &query.asked()).await {
                Ok(from) => lines(pod.name.clone(), from, since),
                // Why a Pod cannot be read belongs among what is read: others may have much to say.
                Err(error) => spoken(&pod.name, self.now(), error.message),
            }
        });
        let merged = Merged::new(futures::future::join_all(opened).await);
        let reader = Reader {
            server: self.clone(),
            context: context.clone(),
            object: found.object,
            merged,
            choice: Choice::new(&query.filter, query.match_case, query.until),
            asked: Instant::now(),
            ended: false,
            _place: place,
        };
        Ok(futures::stream::unfold(reader, |mut reader| async {
            let next = reader.next().await?;
            Some((next, reader))
        })
        .boxed())
    }
}

// === impl LogQuery ===

impl LogQuery {
    fn check(&self) -> Result<(), Error> {
        let below = |number: Option<i64>, least: i64| number.is_some_and(|number| number < least);
        if below(self.tail, 0) || below(self.since_seconds, 0) {
            return Err(Error::invalid(
                "tailLines and sinceSeconds are counts: they cannot be less than nothing",
            ));
        }
        if self.since.is_some() && self.since_seconds.is_some_and(|seconds| seconds > 0) {
            return Err(Error::invalid("at most one of sinceTime or sinceSeconds may be specified"));
        }
        Ok(())
    }

    /// As the cluster is asked for it.
    fn asked(&self) -> Vec<(&'static str, String)> {
        let mut asked = vec![("timestamps", "true".to_owned())];
        let mut add = |name, value: Option<String>| asked.extend(value.map(|value| (name, value)));
        add("container", Some(self.container.clone()).filter(|name| !name.is_empty()));
        add("follow", self.follow.then(|| "true".to_owned()));
        add("previous", self.previous.then(|| "true".to_owned()));
        // Argo CD's clients send nothing as zero.
        add("tailLines", self.tail.filter(|lines| *lines > 0).map(|lines| lines.to_string()));
        add("sinceSeconds", self.since_seconds.filter(|since| *since > 0).map(|since| since.to_string()));
        add("sinceTime", self.since.map(|since| since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
        asked
    }

    /// The Pods that are meant, of an Application's resources and what belongs to them.
    fn pods(&self, nodes: &[Node]) -> Vec<ResourceKey> {
        let is = |asked: &str, found: &str| asked.is_empty() || asked == found;
        let Resource { group, kind, namespace, resource_name, .. } = &self.within;
        let narrow = !kind.is_empty() || !resource_name.is_empty() || !group.is_empty();
        let meant = |key: &ResourceKey| {
            is(kind, &key.kind) && is(resource_name, &key.name) && (kind.is_empty() || *group == key.group)
        };
        let known: BTreeMap<&ResourceKey, &Node> = nodes.iter().map(|node| (&node.key, node)).collect();
        let beneath = |node: &Node| {
            let (mut ahead, mut seen) = (vec![&node.key], BTreeSet::new());
            while let Some(key) = ahead.pop() {
                if meant(key) {
                    return true;
                }
                if seen.insert(key) {
                    ahead.extend(known.get(key).into_iter().flat_map(|node| &node.parents));
                }
            }
            false
        };
        let pods = nodes.iter().filter(|node| node.key.kind == "Pod" && node.key.group.is_empty());
        let pods = pods.filter(|node| is(&self.pod, &node.key.name) && is(namespace, &node.key.namespace));
        pods.filter(|node| !narrow || beneath(node)).map(|node| node.key.clone()).collect()
    }
}

// === impl Reader ===

impl Reader {
    async fn next(&mut self) -> Option<Result<Value, Error>> {
        if self.ended {
            return None;
        }
        loop {
            let next = tokio::time::timeout(LOOK, self.merged.next()).await;
            if let Err(error) = self.still().await {
                self.ended = true;
                return Some(Err(error));
            }
            match next {
                Err(_) => {}
                Ok(Some(entry)) if !self.choice.ends_before(&entry) => {
                    if self.choice.wants(&entry) {
                        return Some(Ok(entry.told()));
                    }
                }
                Ok(_) => {
                    self.ended = true;
                    return Some(Ok(last(self.server.now())));
                }
            }
        }
    }

    /// Whether the caller may still read: tokens end, and rights do.
    async fn still(&mut self) -> Result<(), Error> {
        if self.asked.elapsed() < LOOK {
            return Ok(());
        }
        self.asked = Instant::now();
        self.context = self.server.again(&self.context).await?;
        self.server.demand(&self.context, "logs", "get", &self.object)
    }
}

/// A log of one line.
fn spoken(pod: &str, at: Timestamp, content: String) -> BoxStream<'static, Entry> {
    let entry = Entry { at, time: at.to_string(), pod: pod.to_owned(), content };
    futures::stream::iter([entry]).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, kind: &str, name: &str) -> ResourceKey {
        let [group, kind, namespace, name] = [group, kind, "shop", name].map(str::to_owned);
        ResourceKey { group, kind, namespace, name }
    }

    fn node(key: ResourceKey, parents: &[&ResourceKey]) -> Node {
        let parents = parents.iter().map(|parent| (*parent).clone()).collect();
        let none = String::new;
        Node {
            key,
            version: none(),
            uid: none(),
            resource_version: none(),
            parents,
            health: None,
            created: None,
            images: Vec::new(),
        }
    }

    #[test]
    fn pods_are_chosen_by_name_and_by_what_they_belong_to() {
        let [web, api] = ["web", "api"].map(|name| key("apps", "Deployment", name));
        let set = key("apps", "ReplicaSet", "web-1");
        let nodes = [
            node(web.clone(), &[]),
            node(api.clone(), &[]),
            node(set.clone(), &[&web]),
            node(key("", "Pod", "web-1-a"), &[&set]),
            node(key("", "Pod", "web-1-b"), &[&set]),
            node(key("", "Pod", "api-1-a"), &[&api]),
        ];
        let pods = |pod: &str, kind: &str, group: &str, name: &str| {
            let [kind, group, resource_name] = [kind, group, name].map(str::to_owned);
            let within = Resource { kind, group, resource_name, ..Resource::default() };
            let query = LogQuery { pod: pod.to_owned(), within, ..LogQuery::default() };
            query.pods(&nodes).into_iter().map(|key| key.name).collect::<Vec<_>>()
        };
        assert_eq!(pods("", "", "", "").len(), 3);
        assert_eq!(pods("web-1-b", "", "", ""), ["web-1-b"]);
        assert_eq!(pods("", "Deployment", "apps", "web"), ["web-1-a", "web-1-b"]);
        assert_eq!(pods("", "Pod", "", "api-1-a"), ["api-1-a"]);
        assert!(pods("", "Deployment", "", "web").is_empty(), "of another group");
        assert!(pods("other", "", "", "").is_empty());
    }

    #[test]
    fn what_argo_cds_clients_send_as_zero_is_not_asked_for() {
        let query = LogQuery { tail: Some(0), since_seconds: Some(0), follow: true, ..LogQuery::default() };
        assert!(query.check().is_ok());
        assert_eq!(query.asked(), [("timestamps", "true".to_owned()), ("follow", "true".to_owned())]);
        assert!(LogQuery { tail: Some(-1), ..LogQuery::default() }.check().is_err());
    }
}
