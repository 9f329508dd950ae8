//! Lists and watches: what the stand-in knows, and what makes it look.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::core::WatchEvent;
use serde_json::Value;

use super::Foreign;
use super::ground::{Requests, owner, text};

/// How long it waits before it lists again.
const PAUSE: Duration = Duration::from_secs(1);
/// How soon it looks at what has changed in a member.
const SOON: Duration = Duration::from_millis(20);

/// Follows the Applications.
pub(super) async fn applications(foreign: Arc<Foreign>) {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{}/applications", foreign.namespace);
    follow(foreign.control.clone(), path, |seen| match seen {
        Seen::All(items) => {
            let all =
                items.into_iter().map(|item| (text(&item, "/metadata/name").to_owned(), item)).collect();
            *foreign.cache.lock() = all;
            let names: Vec<String> = foreign.cache.lock().keys().cloned().collect();
            names.iter().for_each(|name| foreign.notice(name));
        }
        Seen::One(item) => {
            let name = text(&item, "/metadata/name").to_owned();
            foreign.cache.lock().insert(name.clone(), item);
            foreign.notice(&name);
        }
        Seen::Gone(item) => drop(foreign.cache.lock().remove(text(&item, "/metadata/name"))),
    })
    .await;
}

/// Follows what Applications have in a member.
pub(super) async fn objects(foreign: Arc<Foreign>, server: String, requests: Requests, path: String) {
    follow(requests, path, |seen| {
        let items = match seen {
            Seen::All(items) => items,
            Seen::One(item) | Seen::Gone(item) => vec![item],
        };
        for item in items {
            let Some(app) = owner(&item) else { continue };
            let known = foreign.known(app);
            if known.is_some_and(|known| text(&known, "/spec/destination/server") == server) {
                foreign.queue.look(app, Some(1), SOON.max(foreign.temper.least));
            }
        }
    })
    .await;
}

/// Follows the Pods in a member: they belong to the Application whose name their label is, and tell of its health alone.
pub(super) async fn pods(foreign: Arc<Foreign>, requests: Requests) {
    let path = foreign.ground.pods();
    follow(requests, path, |seen| {
        let (Seen::One(pod) | Seen::Gone(pod)) = seen else { return };
        let app = text(&pod, "/metadata/labels/app");
        if foreign.known(app).is_some() {
            foreign.queue.look(app, Some(0), SOON.max(foreign.temper.least));
        }
    })
    .await;
}

impl Foreign {
    /// An Application has changed, or may have.
    fn notice(&self, name: &str) {
        let Some(app) = self.known(name) else { return };
        self.queue.look(name, None, self.lateness());
        if !app["operation"].is_null() {
            self.queue.operate(name, Duration::from_millis(10));
        }
    }
}

enum Seen {
    All(Vec<Value>),
    One(Value),
    Gone(Value),
}

async fn follow(requests: Requests, path: String, mut see: impl FnMut(Seen)) {
    loop {
        // With a limit, as informers list: what fills a cache may be old.
        let Ok(mut list) = requests.get(&format!("{path}?limit=500")).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut version = text(&list, "/metadata/resourceVersion").to_owned();
        see(Seen::All(match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }));
        while let Some(next) = watch(&requests, &path, &version, &mut see).await {
            version = next;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Watches from a version on until the watch ends, and tells from where it may go on.
async fn watch(requests: &Requests, path: &str, version: &str, see: &mut impl FnMut(Seen)) -> Option<String> {
    let mut version = version.to_owned();
    let uri = format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let mut events = Box::pin(requests.events(&uri).await.ok()?);
    loop {
        let item = match events.next().await {
            Some(Ok(WatchEvent::Added(item) | WatchEvent::Modified(item))) => item,
            Some(Ok(WatchEvent::Deleted(item))) => {
                version = text(&item, "/metadata/resourceVersion").to_owned();
                see(Seen::Gone(item));
                continue;
            }
            Some(Ok(WatchEvent::Bookmark(_))) => continue,
            Some(Ok(WatchEvent::Error(_))) => return None,
            None | Some(Err(_)) => return Some(version),
        };
        version = text(&item, "/metadata/resourceVersion").to_owned();
        see(Seen::One(item));
    }
}
