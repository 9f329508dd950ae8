//! Watches: the store's history as a stream of frames, one JSON document a line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_schema::FieldError;
use baton_store::{Change, Compacted, Event, Record, Watch};
use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::catalog::Resource;
use crate::cluster::Core;
use crate::failure::Failure;
use crate::read::{Filter, Freshness, LIST_OPTIONS};
use crate::request::{Query, Representation, Shape};
use crate::table;

/// How often a watch that allows bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts at least when the client does not say.
const DEFAULT_TIMEOUT: u64 = 1800;

/// What a client asked of a watch.
pub(crate) struct WatchRequest {
    resource: Arc<Resource>,
    namespace: Option<String>,
    filter: Filter,
    representation: Representation,
    bookmarks: bool,
    send_initial: Option<bool>,
    freshness: Freshness,
    timeout: Duration,
    include_object: Option<String>,
}

impl WatchRequest {
    pub(crate) fn read(
        core: &Core,
        resource: Arc<Resource>,
        namespace: Option<String>,
        name: Option<&str>,
        query: &Query,
        representation: Representation,
    ) -> Result<WatchRequest, Failure> {
        let filter = Filter::read(&resource, query, name)?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let send_initial = query.get("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let freshness = Freshness::read(query, true)?;
        let forbid = |field: &str, detail: &str| {
            Failure::invalid(LIST_OPTIONS, &[FieldError::forbidden(field, detail)])
        };
        match (send_initial, query.get("resourceVersionMatch")) {
            (Some(_), Some("NotOlderThan")) | (None, None) => {}
            (Some(_), _) => {
                return Err(forbid(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            (None, Some(_)) => {
                return Err(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
        }
        let asked = query.number::<u64>("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let timeout =
            asked.unwrap_or_else(|| DEFAULT_TIMEOUT + core.identities.below(DEFAULT_TIMEOUT)).min(24 * 3600);
        Ok(WatchRequest {
            resource,
            namespace,
            filter,
            representation,
            bookmarks,
            send_initial,
            freshness,
            timeout: Duration::from_secs(timeout),
            include_object: query.get("includeObject").map(str::to_owned),
        })
    }

    /// Opens the stream. What is wrong with the revision is said in the stream, as Kubernetes does.
    pub(crate) fn open(self, core: Arc<Core>) -> impl Stream<Item = Bytes> + Send + 'static {
        let mut opening = VecDeque::new();
        let watch = self.start(&core, &mut opening);
        let now = Instant::now();
        let stream = Frames {
            deadline: now + self.timeout,
            next_bookmark: now + BOOKMARK_EVERY,
            request: self,
            core,
            opening,
            watch,
            sent_columns: false,
        };
        futures::stream::unfold(stream, |mut stream| async move {
            let frame = stream.next().await?;
            Some((frame, stream))
        })
    }

    /// The frames before the live ones, and where those begin.
    fn start(&self, core: &Core, opening: &mut VecDeque<Opening>) -> Option<Watch> {
        let current = core.store.revision();
        let with_state = match (self.send_initial, self.freshness) {
            (Some(wanted), _) => wanted,
            (None, Freshness::Latest | Freshness::NotOlderThan(0)) => true,
            (None, _) => false,
        };
        let from = match self.freshness {
            Freshness::NotOlderThan(revision) | Freshness::Exact(revision) if revision > 0 => revision,
            _ => current,
        };
        if with_state && from > current {
            opening.push_back(Opening::Error(Failure::future_revision(from, current)));
            return None;
        }
        let from = if with_state {
            let listing = core
                .store
                .list(&self.resource.storage, self.namespace.as_deref(), baton_store::Page::default())
                .expect("the present revision can always be listed");
            let passing =
                listing.records.into_iter().filter(|record| self.filter.passes(&self.resource, record));
            opening.extend(passing.map(Opening::Existing));
            if self.send_initial == Some(true) && self.bookmarks {
                opening.push_back(Opening::EndOfInitial(listing.revision));
            }
            listing.revision
        } else {
            from
        };
        match core.store.watch(&self.resource.storage, self.namespace.as_deref(), from) {
            Ok(watch) => Some(watch),
            Err(compacted) => {
                opening.clear();
                opening.push_back(Opening::Error(too_old(from, &compacted)));
                None
            }
        }
    }

    /// The event as this watch sees it: an object that stops matching is deleted from its view.
    fn seen(&self, event: &Event) -> Option<&'static str> {
        let matches = |record: &Record| self.filter.passes(&self.resource, record);
        if self.filter.is_empty() {
            return Some(match event.change {
                Change::Added => "ADDED",
                Change::Modified => "MODIFIED",
                Change::Deleted => "DELETED",
            });
        }
        let before = event.previous.as_deref().is_some_and(matches);
        match event.change {
            Change::Deleted => before.then_some("DELETED"),
            _ => match (before, matches(&event.record)) {
                (false, true) => Some("ADDED"),
                (true, true) => Some("MODIFIED"),
                (true, false) => Some("DELETED"),
                (false, false) => None,
            },
        }
    }
}

enum Opening {
    Existing(Arc<Record>),
    EndOfInitial(u64),
    Error(Failure),
}

struct Frames {
    request: WatchRequest,
    core: Arc<Core>,
    opening: VecDeque<Opening>,
    /// `None` once the stream has nothing more to say.
    watch: Option<Watch>,
    deadline: Instant,
    next_bookmark: Instant,
    /// Column headers stand only in the first Table of a stream.
    sent_columns: bool,
}

impl Frames {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(opening) = self.opening.pop_front() {
            return Some(match opening {
                Opening::Existing(record) => self.frame("ADDED", &record),
                Opening::EndOfInitial(revision) => self.bookmark(revision, true),
                Opening::Error(failure) => error(&failure),
            });
        }
        loop {
            let watch = self.watch.as_mut()?;
            let bookmark_at = if self.request.bookmarks { self.next_bookmark } else { self.deadline };
            tokio::select! {
                biased;
                event = watch.next() => match event {
                    Ok(event) => {
                        if let Some(type_) = self.request.seen(&event) {
                            return Some(self.event(type_, &event));
                        }
                    }
                    Err(compacted) => {
                        let at = watch.position();
                        self.watch = None;
                        return Some(error(&too_old(at, &compacted)));
                    }
                },
                () = tokio::time::sleep_until(self.deadline) => {
                    // The last word of a watch is how far it got.
                    let revision = watch.position();
                    self.watch = None;
                    return self.request.bookmarks.then(|| self.bookmark(revision, false));
                }
                () = tokio::time::sleep_until(bookmark_at), if self.request.bookmarks => {
                    let revision = watch.position();
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    return Some(self.bookmark(revision, false));
                }
            }
        }
    }

    /// Whole objects seen without a selector look the same to every watcher, so their frame is encoded once.
    fn event(&mut self, type_: &'static str, event: &Event) -> Bytes {
        let shared = self.request.filter.is_empty()
            && self.request.representation.shape == Shape::Whole
            && self.request.resource.is_served_as_stored();
        if shared {
            event.frame.get_or_init(|| whole_frame(type_, &event.record))
        } else {
            self.frame_at(type_, event)
        }
    }

    /// An object that leaves the view carries the revision of the change that made it leave, which its record has.
    fn frame_at(&mut self, type_: &'static str, event: &Event) -> Bytes {
        if type_ == "DELETED" && event.change != Change::Deleted {
            // The client is shown the last state it knew, at the revision of the change.
            if let Some(previous) = &event.previous {
                let mut object = self.core.present(&self.request.resource, previous);
                crate::object::set_meta(&mut object, "resourceVersion", event.revision.to_string());
                return self.shaped(type_, object);
            }
        }
        self.frame(type_, &event.record)
    }

    fn frame(&mut self, type_: &'static str, record: &Record) -> Bytes {
        if self.request.representation.shape == Shape::Whole && self.request.resource.is_served_as_stored() {
            return whole_frame(type_, record);
        }
        let object = self.core.present(&self.request.resource, record);
        self.shaped(type_, object)
    }

    fn shaped(&mut self, type_: &'static str, object: Value) -> Bytes {
        let now = self.core.clock.now();
        let object = match self.request.representation.shape {
            Shape::Table => {
                let include = self.request.include_object.as_deref();
                let revision = crate::object::meta_text(&object, "resourceVersion").to_owned();
                let columns = !std::mem::replace(&mut self.sent_columns, true);
                table::table(
                    &self.request.resource,
                    vec![object],
                    json!({"resourceVersion": revision}),
                    include,
                    now,
                    columns,
                )
            }
            Shape::Metadata => table::partial(&object),
            _ => object,
        };
        frame(type_, &object)
    }

    fn bookmark(&self, revision: u64, end_of_initial: bool) -> Bytes {
        let resource = &self.request.resource;
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.request.representation.shape {
            Shape::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": null,
                "rows": [{"cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                }}],
            }),
            Shape::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            _ => json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata}),
        };
        frame("BOOKMARK", &object)
    }
}

fn whole_frame(type_: &str, record: &Record) -> Bytes {
    let mut frame = Vec::with_capacity(record.size() + 80);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(type_.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    record.write_json(&mut frame);
    frame.extend_from_slice(b"}\n");
    frame.into()
}

/// The type comes first, as a real API server writes it: whoever reads frames piece by piece knows what the object is.
fn frame(type_: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n").into()
}

fn error(failure: &Failure) -> Bytes {
    frame("ERROR", &json!(failure.to_status()))
}

fn too_old(asked: u64, compacted: &Compacted) -> Failure {
    Failure::expired(format!("too old resource version: {asked} ({})", compacted.oldest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_first_of_what_type_it_is() {
        let text = frame("BOOKMARK", &json!({"kind": "Pod", "apiVersion": "v1"}));
        assert!(text.starts_with(b"{\"type\":\"BOOKMARK\",\"object\":{"), "{text:?}");
        let read: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(read, json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1"}}));
        assert_eq!(text.last(), Some(&b'\n'));
    }
}
