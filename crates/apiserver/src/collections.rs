//! Requests on a whole collection: list, watch, deletecollection.

use std::sync::Arc;

use baton_store::Record;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::delete::{DeleteOptions, Deleted};
use crate::failure::Failure;
use crate::object;
use crate::read::{Chunk, Filter};
use crate::request::{Encoding, Shape};
use crate::rest::{Answer, Call};
use crate::table;
use crate::watch::WatchRequest;

/// About how many bytes of a long list are encoded at a time.
const PIECE: usize = 256 * 1024;

pub(crate) fn list(call: &Call, resource: &Resource, namespace: Option<&str>) -> Result<Answer, Failure> {
    let filter = Filter::read(resource, &call.query, None)?;
    let chunk = call.core.list(resource, namespace, &filter, &call.query)?;
    let meta = list_meta(&chunk);
    let objects = |chunk: &Chunk| -> Vec<Value> {
        chunk.records.iter().map(|record| call.core.present(resource, record)).collect()
    };
    let list = |kind: &str, api_version: &str, items: Vec<Value>| {
        Answer::ok(json!({"kind": kind, "apiVersion": api_version, "metadata": meta, "items": items}))
    };
    Ok(match call.representation.shape {
        Shape::Table => {
            let include = call.query.get("includeObject");
            let now = call.core.clock.now();
            Answer::ok(table::table(resource, objects(&chunk), meta, include, now, true))
        }
        Shape::Metadata => {
            let items = objects(&chunk).iter().map(table::partial).collect();
            list("PartialObjectMetadataList", "meta.k8s.io/v1", items)
        }
        _ if resource.is_served_as_stored() && call.representation.encoding == Encoding::Json => {
            Answer::stream(stream(resource, &meta, chunk.records).boxed())
        }
        _ => list(&resource.list_kind, &resource.api_version(), objects(&chunk)),
    })
}

fn list_meta(chunk: &Chunk) -> Value {
    let mut meta = json!({"resourceVersion": chunk.revision.to_string()});
    if let Some(token) = &chunk.continue_token {
        meta["continue"] = token.as_str().into();
    }
    if let Some(remaining) = chunk.remaining {
        meta["remainingItemCount"] = remaining.into();
    }
    meta
}

/// The list in pieces, so that ten thousand objects are never in memory at once.
fn stream(
    resource: &Resource,
    meta: &Value,
    records: Vec<Arc<Record>>,
) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{meta},\"items\":[",
        json!(resource.list_kind),
        json!(resource.api_version()),
    );
    // Items of a list of built-in kinds go without their type, which the list says once.
    let prefix = match resource.custom() {
        None => object::type_prefix(&json!(resource.api_version()), &json!(resource.kind)),
        Some(_) => String::new(),
    };
    let mut records = records.into_iter().peekable();
    let mut piece = Some(head.into_bytes());
    futures::stream::iter(std::iter::from_fn(move || {
        let mut out = piece.take()?;
        while let Some(record) = records.next() {
            let start = out.len();
            record.write_json(&mut out);
            if !prefix.is_empty() && out[start..].starts_with(prefix.as_bytes()) {
                out.drain(start + 1..start + prefix.len());
            }
            if records.peek().is_some() {
                out.push(b',');
            }
            if out.len() >= PIECE {
                break;
            }
        }
        if records.peek().is_some() {
            piece = Some(Vec::with_capacity(PIECE + PIECE / 4));
        } else {
            out.extend_from_slice(b"]}");
        }
        Some(Bytes::from(out))
    }))
}

pub(crate) fn watch(
    call: &Call,
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: Option<&str>,
) -> Result<Answer, Failure> {
    let request =
        WatchRequest::read(&call.core, resource, namespace, name, &call.query, call.representation)?;
    Ok(Answer::stream(request.open(call.core.clone()).boxed()))
}

pub(crate) async fn delete(
    call: &Call,
    resource: &Resource,
    namespace: Option<&str>,
) -> Result<Answer, Failure> {
    let filter = Filter::read(resource, &call.query, None)?;
    let options = DeleteOptions::of(call)?;
    let chunk = call.core.list(resource, namespace, &filter, &call.query)?;
    let mut items = Vec::new();
    for record in &chunk.records {
        match call.core.delete(resource, &record.key.namespace, &record.key.name, &options).await {
            Ok(Deleted::Gone(object) | Deleted::Pending(object)) => items.push(object),
            // Somebody else deleted it meanwhile.
            Err(failure) if failure.reason == "NotFound" => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(Answer::ok(json!({
        "kind": resource.list_kind,
        "apiVersion": resource.api_version(),
        "metadata": list_meta(&chunk),
        "items": items,
    })))
}
