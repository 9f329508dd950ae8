//! Feeding a cache from kube's watcher.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// What a watch is told to.
pub(crate) trait Follower<K>: Send {
    /// A new list begins.
    fn begin(&mut self);
    /// The new list holds this object.
    fn listed(&mut self, object: K);
    /// The new list is complete.
    fn complete(&mut self);
    /// An object was added or changed.
    fn applied(&mut self, object: K);
    /// An object was deleted.
    fn deleted(&mut self, object: K);
}

/// Whether a cache has been filled once.
#[derive(Debug, Clone)]
pub(crate) struct Synced(watch::Sender<bool>);

impl Synced {
    pub(crate) fn new() -> Synced {
        Synced(watch::Sender::new(false))
    }

    pub(crate) fn is_synced(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn wait(&self) {
        // The sender lives in `self`, so the channel cannot close while waiting.
        let _ = self.0.subscribe().wait_for(|synced| *synced).await;
    }

    fn set(&self) {
        self.0.send_replace(true);
    }
}

/// Feeds the follower until dropped. Failures are logged and tried again, ever more slowly.
pub(crate) async fn follow<K>(
    what: &'static str,
    api: Api<K>,
    config: watcher::Config,
    synced: Synced,
    mut follower: impl Follower<K>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    const FIRST_PAUSE: Duration = Duration::from_millis(500);
    const LONGEST_PAUSE: Duration = Duration::from_secs(30);
    let mut pause = FIRST_PAUSE;
    let mut events = watcher(api, config).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // The start of a list is no success yet: it is said before the request is made.
                if !matches!(event, Event::Init) {
                    pause = FIRST_PAUSE;
                }
                match event {
                    Event::Init => follower.begin(),
                    Event::InitApply(object) => follower.listed(object),
                    Event::InitDone => {
                        follower.complete();
                        synced.set();
                    }
                    Event::Apply(object) => follower.applied(object),
                    Event::Delete(object) => follower.deleted(object),
                }
            }
            Err(error) => {
                tracing::warn!(what, %error, pause_ms = pause.as_millis() as u64, "watch failed; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
