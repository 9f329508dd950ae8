//! A search of all kinds for tracked objects that no Application asks for any more.
//!
//! Only metadata is read, page by page, a few kinds at a time. A kind is left as soon as one object of it counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_api::object::{Object, group_version};
use futures::{FutureExt, StreamExt};
use serde_json::Value;

use crate::catalog::{GroupKind, Served};
use crate::error::ClusterError;
use crate::live::is_guarded;
use crate::paths;
use crate::requests::{METADATA_LIST, Requests};
use crate::shared::Shared;
use crate::watch::PAGE;

/// Kinds read at a time.
const AT_A_TIME: usize = 4;

/// What a sweep found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Kinds with tracked or guarded objects.
    pub(crate) kinds: BTreeSet<GroupKind>,
    /// Parents and children by kind.
    pub(crate) families: BTreeSet<(GroupKind, GroupKind)>,
    /// Kinds that could not be read.
    pub(crate) unread: Vec<(GroupKind, ClusterError)>,
}

/// Searches all visible kinds that are not watched.
pub(crate) async fn sweep(shared: &Arc<Shared>, requests: &Requests) -> Findings {
    let (catalog, watched) = {
        let situation = shared.situation.lock();
        let watched: BTreeSet<GroupKind> = situation.watches.keys().map(|(kind, _)| kind.clone()).collect();
        (situation.catalog.clone(), watched)
    };
    let kinds = catalog.watchable().filter(|(kind, served)| shared.is_visible(kind, served));
    let kinds: Vec<(GroupKind, Served)> = kinds
        .filter(|(kind, _)| !watched.contains(*kind))
        .map(|(kind, served)| (kind.clone(), served.clone()))
        .collect();
    let reads = kinds.into_iter().map(|(kind, served)| async move {
        let mut found = Findings::default();
        let read = search(shared, requests, &kind, &served, &mut found).await;
        (kind, found, read)
    });
    let mut reads = futures::stream::iter(reads).buffer_unordered(AT_A_TIME);
    let mut all = Findings::default();
    while let Some((kind, found, read)) = reads.next().await {
        all.kinds.extend(found.kinds);
        all.families.extend(found.families);
        if let Err(error) = read {
            all.unread.push((kind, error));
        }
    }
    all
}

async fn search(
    shared: &Shared,
    requests: &Requests,
    kind: &GroupKind,
    served: &Served,
    found: &mut Findings,
) -> Result<(), ClusterError> {
    let instance_of = shared.settings().instance_of.clone();
    for namespace in shared.scopes(served) {
        let path = paths::collection(&served.api_version, &served.info.plural, namespace.as_deref());
        let mut pages = Pages::new(requests, path);
        while let Some(items) = pages.next().await? {
            for mut item in items {
                name(&mut item, kind, served);
                learn(&item, kind, found);
                if is_guarded(&item) || (item.owners().is_empty() && instance_of(&item).is_some()) {
                    found.kinds.insert(kind.clone());
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The metadata of every visible object of a namespace that `keep` wants, and the kinds that could not be read.
pub(crate) async fn read_namespace(
    shared: &Arc<Shared>,
    requests: &Requests,
    namespace: &str,
    keep: impl Fn(&Value) -> bool + Send + Sync,
) -> (Vec<Value>, Vec<(GroupKind, ClusterError)>) {
    let catalog = shared.situation.lock().catalog.clone();
    let mut reads = Vec::new();
    for (kind, served) in catalog.watchable() {
        if served.info.namespaced && shared.is_visible(kind, served) {
            reads.push(read_kind(requests, namespace, kind, served, &keep).boxed());
        }
    }
    let mut reads = futures::stream::iter(reads).buffered(AT_A_TIME);
    let (mut objects, mut unread) = (Vec::new(), Vec::new());
    while let Some((kept, failed)) = reads.next().await {
        objects.extend(kept);
        unread.extend(failed);
    }
    (objects, unread)
}

/// The same for one kind.
async fn read_kind(
    requests: &Requests,
    namespace: &str,
    kind: &GroupKind,
    served: &Served,
    keep: &(dyn Fn(&Value) -> bool + Send + Sync),
) -> (Vec<Value>, Option<(GroupKind, ClusterError)>) {
    let mut kept = Vec::new();
    let path = paths::collection(&served.api_version, &served.info.plural, Some(namespace));
    let mut pages = Pages::new(requests, path);
    loop {
        match pages.next().await {
            Ok(Some(items)) => {
                for mut item in items {
                    name(&mut item, kind, served);
                    if keep(&item) {
                        kept.push(item);
                    }
                }
            }
            Ok(None) => return (kept, None),
            Err(error) => return (kept, Some((kind.clone(), error))),
        }
    }
}

fn learn(item: &Value, kind: &GroupKind, found: &mut Findings) {
    let owners = item["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    for owner in owners {
        let group = group_version(owner["apiVersion"].as_str().unwrap_or_default()).0;
        let owner = GroupKind::new(group, owner["kind"].as_str().unwrap_or_default());
        found.families.insert((owner, kind.clone()));
    }
}

fn name(item: &mut Value, kind: &GroupKind, served: &Served) {
    if let Some(fields) = item.as_object_mut() {
        fields.insert("apiVersion".to_owned(), (*served.api_version).into());
        fields.insert("kind".to_owned(), kind.kind.as_str().into());
    }
}

/// The pages of a list of metadata.
struct Pages<'a> {
    requests: &'a Requests,
    path: String,
    more: Option<String>,
}

impl<'a> Pages<'a> {
    fn new(requests: &'a Requests, path: String) -> Pages<'a> {
        Pages { requests, path, more: Some(String::new()) }
    }

    async fn next(&mut self) -> Result<Option<Vec<Value>>, ClusterError> {
        let Some(more) = self.more.take() else { return Ok(None) };
        let path = match more.is_empty() {
            true => format!("{}?limit={PAGE}", self.path),
            false => format!("{}?limit={PAGE}&continue={}", self.path, paths::segment(&more)),
        };
        let mut page = self.requests.get_as(&path, METADATA_LIST).await?;
        self.more = page["metadata"]["continue"].as_str().filter(|more| !more.is_empty()).map(str::to_owned);
        match page.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(Some(items)),
            _ => Err(ClusterError::NoAnswer("a list without items".to_owned())),
        }
    }
}
