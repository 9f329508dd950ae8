//! Objects that `kubectl apply` managed before it applied on the server.
//!
//! Their last configuration stands in an annotation. Where it still matches the object, `kubectl` may take those
//! fields from its former self without a conflict; as long as the annotation is there it is kept up to date.

use serde_json::Value;

use super::Writer;
use super::compare::compare;
use super::conflict::Conflict;
use super::fields::{self, Which};
use super::typed::Type;
use crate::model::Schema;

/// The one manager these rules are for.
pub(crate) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Largest size of all annotations together; past it the configuration is not recorded.
const LARGEST: usize = 256 * 1024;

/// The conflicts the annotation does not explain.
pub(crate) fn unexplained(
    schema: &Schema,
    live: &Value,
    conflicts: Vec<Conflict>,
    writer: &Writer<'_>,
) -> Vec<Conflict> {
    let Some(last) = last_applied(live, writer) else { return conflicts };
    let ty = Type::root(schema);
    let differing = compare(ty, Some(&last), live);
    let own = fields::of(ty, &last, Which::Claimed)
        .without(&differing.modified)
        .without(&differing.added)
        .without(&differing.removed);
    let own: std::collections::BTreeSet<String> =
        own.paths().iter().map(|path| path.iter().map(ToString::to_string).collect()).collect();
    conflicts.into_iter().filter(|conflict| !own.contains(&conflict.field)).collect()
}

/// Records the configuration in the annotation, if the object has one.
pub(crate) fn refresh_annotation(object: &mut Value, config: &Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(annotations) = annotations else { return };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{config}\n");
    let others = annotations.iter().filter(|(name, _)| *name != ANNOTATION);
    let size: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if size + ANNOTATION.len() + text.len() > LARGEST {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    }
}

fn last_applied(live: &Value, writer: &Writer<'_>) -> Option<Value> {
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    (last.get("apiVersion")?.as_str()? == writer.api_version).then_some(last)
}
