//! Other shapes of an object: a Table for people, metadata alone for controllers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catalog::Resource;

/// A `meta.k8s.io/v1 Table` of the objects. `include` is the `includeObject` parameter.
pub(crate) fn table(
    resource: &Resource,
    objects: Vec<Value>,
    list_meta: Value,
    include: Option<&str>,
    now: Timestamp,
    with_columns: bool,
) -> Value {
    let rows: Vec<Value> = objects
        .into_iter()
        .map(|object| {
            let cells = resource.cells(&object, now);
            match include {
                Some("None") => json!({"cells": cells}),
                Some("Object") => json!({"cells": cells, "object": object}),
                _ => json!({"cells": cells, "object": partial(&object)}),
            }
        })
        .collect();
    let columns = if with_columns { Value::from(resource.columns()) } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// The object's metadata as a `PartialObjectMetadata`.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
