//! Applications and sets as they change, for whoever keeps listening.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Updates;
use super::applications::project;
use super::filter::{Filter, Test};
use crate::error::Error;
use crate::fields::Fields;
use crate::mirror::{Change, Key, Mirror, key, version};
use crate::objects::text;
use crate::server::{Context, Server};

/// How often it is asked whether the caller's token still counts, though nothing happens.
const LOOK: Duration = Duration::from_secs(5);

/// What is listened to.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    /// Which objects.
    pub filter: Filter,
    /// Only what is newer than this version, where it is one.
    pub since: String,
    /// Which parts of each event.
    pub fields: String,
}

/// What kind of thing is listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Application,
    Set,
}

/// Somebody who listens.
struct Listener {
    server: Server,
    context: Context,
    kind: Kind,
    watch: Watch,
    test: Test,
    fields: Fields,
    changes: broadcast::Receiver<Change>,
    waiting: VecDeque<Value>,
    /// What each object was last told as, so that nothing is told twice.
    told: HashMap<Key, u64>,
    ended: bool,
}

impl Server {
    /// Applications as they change: first those there are, then what happens.
    ///
    /// # Errors
    /// The request makes no sense, or not everything was seen yet.
    pub async fn watch_applications(&self, context: &Context, watch: Watch) -> Result<Updates, Error> {
        // Whoever knows a version has the list already, unless it is one object that is watched.
        let burst = watch.since.is_empty() || !watch.filter.name.is_empty();
        self.listen(context, watch, Kind::Application, burst).await
    }

    /// Sets as they change.
    ///
    /// # Errors
    /// The request makes no sense, or not everything was seen yet.
    pub async fn watch_sets(&self, context: &Context, watch: Watch) -> Result<Updates, Error> {
        self.listen(context, watch, Kind::Set, true).await
    }

    async fn listen(
        &self,
        context: &Context,
        watch: Watch,
        kind: Kind,
        burst: bool,
    ) -> Result<Updates, Error> {
        let mirror = kind.mirror(self);
        mirror.synced().await?;
        let mut listener = Listener {
            // Projects of sets stand elsewhere than those of Applications, and are judged apart.
            test: Test::new(&Filter { projects: Vec::new(), ..watch.filter.clone() })?,
            fields: Fields::read(&watch.fields)?,
            // Listening before looking: nothing falls between.
            changes: mirror.subscribe(),
            server: self.clone(),
            context: context.clone(),
            kind,
            watch,
            waiting: VecDeque::new(),
            told: HashMap::new(),
            ended: false,
        };
        if burst {
            listener.look();
        }
        Ok(futures::stream::unfold(listener, |mut listener| async {
            let next = listener.next().await?;
            Some((next, listener))
        })
        .boxed())
    }
}

// === impl Kind ===

impl Kind {
    fn mirror(self, server: &Server) -> &Mirror {
        match self {
            Kind::Application => &server.0.applications,
            Kind::Set => &server.0.sets,
        }
    }

    fn project(self, object: &Value) -> &str {
        match self {
            Kind::Application => project(object),
            Kind::Set => text(object, "/spec/template/spec/project"),
        }
    }

    fn field(self) -> &'static str {
        match self {
            Kind::Application => "application",
            Kind::Set => "applicationSet",
        }
    }
}

// === impl Listener ===

impl Listener {
    /// The next event; none once it is over.
    async fn next(&mut self) -> Option<Result<Value, Error>> {
        if self.ended {
            return None;
        }
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(event));
            }
            let change = tokio::time::timeout(LOOK, self.changes.recv()).await;
            // Rights and tokens are asked for each time: both end.
            match self.server.again(&self.context).await {
                Ok(context) => self.context = context,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
            match change {
                Err(_) => {}
                Ok(Ok(change)) => self.note(change),
                Ok(Err(RecvError::Lagged(_))) => self.look(),
                Ok(Err(RecvError::Closed)) => return None,
            }
        }
    }

    /// Tells everything that is not told yet, and what is gone.
    fn look(&mut self) {
        let all = self.kind.mirror(&self.server).all();
        let gone: Vec<Key> = {
            let there: std::collections::HashSet<Key> = all.iter().map(|object| key(object)).collect();
            self.told.keys().filter(|key| !there.contains(*key)).cloned().collect()
        };
        for (namespace, name) in gone {
            self.tell("DELETED", &Arc::new(json!({"metadata": {"name": name, "namespace": namespace}})));
        }
        for object in &all {
            if self.wants(object) {
                let word = if self.told.contains_key(&key(object)) { "MODIFIED" } else { "ADDED" };
                self.tell(word, object);
            }
        }
    }

    fn note(&mut self, change: Change) {
        let object = change.object();
        let known = self.told.contains_key(&key(object));
        if !self.wants(object) {
            // One that is no longer the caller's to see is gone for them.
            if known {
                self.tell(
                    "DELETED",
                    &Arc::new(json!({"metadata": {
                    "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"]}})),
                );
            }
            return;
        }
        match &change {
            Change::Deleted(object) => self.tell("DELETED", object),
            Change::Added(object) => self.tell("ADDED", object),
            Change::Modified(object) => self.tell("MODIFIED", object),
        }
    }

    fn wants(&self, object: &Value) -> bool {
        let settings = &self.server.0.settings;
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let newer = match self.watch.since.parse::<u64>() {
            Ok(since) => version(object).parse::<u64>().map_or(true, |version| version >= since),
            Err(_) => true,
        };
        let resource = match self.kind {
            Kind::Application => "applications",
            Kind::Set => "applicationsets",
        };
        let project = self.kind.project(object);
        let named = self.watch.filter.projects.is_empty()
            || self.watch.filter.projects.iter().any(|one| one == project);
        newer
            && named
            && settings.allows(namespace)
            && self.test.holds(object)
            && self.server.may(
                &self.context,
                resource,
                "get",
                &self.server.policy_name(project, namespace, name),
            )
    }

    fn tell(&mut self, word: &str, object: &Arc<Value>) {
        let mut event = json!({"result": {"type": word, self.kind.field(): **object}});
        crate::server::fill(&mut event["result"][self.kind.field()]);
        let event = self.fields.of(event);
        if word == "DELETED" {
            self.told.remove(&key(object));
        } else {
            // The word is no part of what is compared: an object that was added is not told again as modified.
            let mut hasher = DefaultHasher::new();
            let mut body = event.clone();
            body["result"]["type"] = Value::Null;
            body.to_string().hash(&mut hasher);
            if self.told.insert(key(object), hasher.finish()) == Some(hasher.finish()) {
                return;
            }
        }
        self.waiting.push_back(event);
    }
}
