//! Rollouts as they change, for whoever keeps listening.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Updates;
use crate::error::Error;
use crate::mirror::Key;
use crate::rollouts::{Rollout, changes};
use crate::server::{Context, Server};

/// How often it is asked whether the caller's token still counts, though nothing happens.
const LOOK: Duration = Duration::from_secs(5);

impl Server {
    /// Rollouts as they change, at most once a second each; in a line each where they are wanted in `brief`.
    ///
    /// # Errors
    /// Not everything was seen yet.
    pub async fn watch_rollouts(
        &self,
        context: &Context,
        namespace: &str,
        name: &str,
        brief: bool,
    ) -> Result<Updates, Error> {
        if !namespace.is_empty() {
            self.namespace(namespace)?;
        }
        self.ready().await?;
        let listener = Listener {
            rounds: self.0.boards.subscribe(),
            server: self.clone(),
            context: context.clone(),
            // A name without a namespace is one of the control plane's.
            namespace: match (namespace, name) {
                ("", "") => String::new(),
                ("", _) => self.0.settings.namespace.clone(),
                (namespace, _) => namespace.to_owned(),
            },
            name: name.to_owned(),
            brief,
            told: BTreeMap::new(),
            waiting: VecDeque::new(),
            begun: false,
            ended: false,
        };
        Ok(futures::stream::unfold(listener, |mut listener| async {
            let next = listener.next().await?;
            Some((next, listener))
        })
        .boxed())
    }
}

/// Somebody who listens to rollouts.
struct Listener {
    server: Server,
    context: Context,
    namespace: String,
    name: String,
    brief: bool,
    rounds: watch::Receiver<u64>,
    told: BTreeMap<Key, Arc<Rollout>>,
    waiting: VecDeque<Value>,
    begun: bool,
    ended: bool,
}

// === impl Listener ===

impl Listener {
    async fn next(&mut self) -> Option<Result<Value, Error>> {
        if self.ended {
            return None;
        }
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(json!({"result": event})));
            }
            if std::mem::replace(&mut self.begun, true) {
                if let Ok(Err(_)) = tokio::time::timeout(LOOK, self.rounds.changed()).await {
                    return None;
                }
                match self.server.again(&self.context).await {
                    Ok(context) => self.context = context,
                    Err(error) => {
                        self.ended = true;
                        return Some(Err(error));
                    }
                }
            }
            self.look();
        }
    }

    fn look(&mut self) {
        let server = self.server.clone();
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let mut seen = BTreeMap::new();
        for (key, board) in server.0.boards.all() {
            let object = server.policy_name(&board.summary.project, &key.0, &key.1);
            let wanted = is(&self.namespace, &key.0) && is(&self.name, &key.1);
            if !wanted || !server.may(&self.context, "applicationsets", "get", &object) {
                continue;
            }
            if self.brief {
                self.waiting.extend(changes::brief(self.told.get(&key).map(Arc::as_ref), &board));
                seen.insert(key, board);
                continue;
            }
            let mut board = Rollout::clone(&board);
            server.allow(&self.context, &object, &mut board);
            match self.told.get(&key) {
                None => self.waiting.push_back(changes::added(&board)),
                Some(before) => self.waiting.extend(changes::modified(before, &board)),
            }
            seen.insert(key, Arc::new(board));
        }
        for (namespace, name) in self.told.keys().filter(|key| !seen.contains_key(*key)) {
            self.waiting.push_back(changes::deleted(name, namespace));
        }
        self.told = seen;
    }
}
