//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386), with the limits and answers of a Kubernetes API server.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchErrorKind, PatchOperation};
use serde_json::{Map, Value};

/// Most operations one JSON patch may carry.
pub const MAX_OPERATIONS: usize = 10_000;

/// Deepest nesting a patch may build: what a JSON parser still reads back.
const DEEPEST: usize = 120;

/// Most nodes all `copy` and `move` operations of one patch may carry; without it each copy could double the document.
const MOST_COPIED: usize = 500_000;

/// A patch that cannot be applied.
///
/// The variants follow the HTTP status; [`PatchError::status`] gives its number. `Display` is the whole story and fit
/// for a log; [`PatchError::answer`] is what a Kubernetes client is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself is malformed (400 BadRequest).
    #[error("{0}")]
    Malformed(String),
    /// The patch is larger than permitted (413 RequestEntityTooLarge).
    #[error("{0}")]
    TooLarge(String),
    /// The patch is well formed but does not fit the object, for example a failed `test` (422 Invalid).
    #[error("{0}")]
    Rejected(String),
    /// The patch contradicts the object's structure in a way upstream reports as a plain error (500).
    #[error("{0}")]
    Unmergeable(String),
}

impl PatchError {
    /// The HTTP status code.
    pub fn status(&self) -> u16 {
        match self {
            PatchError::Malformed(_) => 400,
            PatchError::TooLarge(_) => 413,
            PatchError::Rejected(_) => 422,
            PatchError::Unmergeable(_) => 500,
        }
    }

    /// The machine-readable reason of the `Status`; empty where upstream sends none.
    pub fn reason(&self) -> &'static str {
        match self {
            PatchError::Malformed(_) => "BadRequest",
            PatchError::TooLarge(_) => "RequestEntityTooLarge",
            PatchError::Rejected(_) => "Invalid",
            PatchError::Unmergeable(_) => "",
        }
    }

    /// The message of the `Status`. A real server hides why it rejected a patch, and clients match on that text.
    pub fn answer(&self) -> &str {
        match self {
            PatchError::Rejected(_) => "the server rejected our request due to an error in our request",
            PatchError::Malformed(text) | PatchError::TooLarge(text) | PatchError::Unmergeable(text) => text,
        }
    }
}

/// Applies an RFC 6902 patch, as leniently as a Kubernetes API server.
///
/// Beyond the RFC it takes indices counted from the end (`-1`), replaces a field that is not there, copies one that is
/// not there as `null`, and finds `null` where a test looks at nothing.
///
/// # Errors
/// A patch that is not a list of operations, has too many of them, or has one that does not apply; the document is
/// then untouched, for the work is done on a copy.
pub fn json(doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(listed) = patch else {
        return Err(undecodable(patch, "[]handlers.jsonPatchOp"));
    };
    if listed.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            listed.len()
        )));
    }
    let mut result = doc.clone();
    let mut copied = 0;
    for described in listed {
        let Some(operation) = relaxed(&result, read_operation(described)?) else { continue };
        check_growth(&result, &operation, &mut copied)?;
        json_patch::patch(&mut result, std::slice::from_ref(&operation))
            .map_err(|error| PatchError::Rejected(reason(&operation, &error.kind)))?;
    }
    Ok(result)
}

/// Applies an RFC 7386 merge patch: objects merge, `null` deletes, everything else replaces. Like a Kubernetes API
/// server it leaves no `null` field in an object, not even in one inside a list.
pub fn merge(doc: &Value, patch: &Value) -> Value {
    merge_at(doc, patch, 0)
}

fn merge_at(doc: &Value, patch: &Value, depth: usize) -> Value {
    let changes = match patch {
        Value::Object(changes) if depth <= DEEPEST => changes,
        Value::Array(items) if depth <= DEEPEST => {
            return items.iter().map(|item| merge_at(&Value::Null, item, depth + 1)).collect();
        }
        other => return other.clone(),
    };
    let mut merged = doc.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        match (change, merged.get_mut(name)) {
            (Value::Null, _) => {
                merged.remove(name);
            }
            (_, Some(old)) => *old = merge_at(old, change, depth + 1),
            // Merging into nothing still has to drop the nulls inside.
            (_, None) => {
                merged.insert(name.clone(), merge_at(&Value::Null, change, depth + 1));
            }
        }
    }
    Value::Object(merged)
}

/// A body of the wrong type, in the words of the decoder that meets it first.
fn undecodable(value: &Value, wanted: &str) -> PatchError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    PatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
    ))
}

/// Unknown operations and missing members are the patch's fault, but upstream finds them only while applying.
fn read_operation(described: &Value) -> Result<PatchOperation, PatchError> {
    let fields = described.as_object().ok_or_else(|| undecodable(described, "handlers.jsonPatchOp"))?;
    let mut described = described.clone();
    if let (Some("add" | "replace" | "test"), Value::Object(members)) =
        (fields.get("op").and_then(Value::as_str), &mut described)
    {
        members.entry("value").or_insert(Value::Null);
    }
    serde_json::from_value(described).map_err(|error| PatchError::Rejected(unreadable(fields, &error)))
}

fn unreadable(fields: &Map<String, Value>, error: &serde_json::Error) -> String {
    let kind = fields.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let known = ["add", "remove", "replace", "move", "copy", "test"].contains(&kind);
    if !known {
        return format!("Unexpected kind: {kind}");
    }
    if !fields.contains_key("path") {
        return format!("{kind} operation failed to decode path: missing value");
    }
    format!("{kind} operation cannot be read: {error}")
}

/// The operation as the RFC would have to put it to do what a Kubernetes API server does; `None` if that is nothing.
fn relaxed(doc: &Value, operation: PatchOperation) -> Option<PatchOperation> {
    let missing = |path: &Pointer| {
        let parent = path.parent().and_then(|parent| doc.pointer(parent.as_str()));
        parent.is_some_and(Value::is_object) && doc.pointer(path.as_str()).is_none()
    };
    Some(match operation {
        PatchOperation::Add(mut add) => {
            add.path = counted(doc, add.path, 1);
            PatchOperation::Add(add)
        }
        PatchOperation::Replace(replace) if missing(&replace.path) => {
            PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
        }
        PatchOperation::Replace(mut replace) => {
            replace.path = counted(doc, replace.path, 0);
            PatchOperation::Replace(replace)
        }
        PatchOperation::Remove(mut remove) => {
            remove.path = counted(doc, remove.path, 0);
            PatchOperation::Remove(remove)
        }
        PatchOperation::Copy(copy) if missing(&copy.from) => {
            PatchOperation::Add(AddOperation { path: counted(doc, copy.path, 1), value: Value::Null })
        }
        PatchOperation::Copy(mut copy) => {
            copy.from = counted(doc, copy.from, 0);
            copy.path = counted(doc, copy.path, 1);
            PatchOperation::Copy(copy)
        }
        PatchOperation::Move(mut moved) => {
            moved.from = counted(doc, moved.from, 0);
            PatchOperation::Move(moved)
        }
        PatchOperation::Test(test) if test.value.is_null() && missing(&test.path) => return None,
        PatchOperation::Test(mut test) => {
            test.path = counted(doc, test.path, 0);
            PatchOperation::Test(test)
        }
    })
}

/// The path with a last step such as `-1` or `01` in a list turned into a plain index; `beyond` is 1 where the end of
/// the list is a place too.
fn counted(doc: &Value, path: PointerBuf, beyond: usize) -> PointerBuf {
    let Some((parent, last)) = path.split_back() else { return path };
    let Some(Value::Array(items)) = doc.pointer(parent.as_str()) else { return path };
    let Ok(index) = last.encoded().parse::<i64>() else { return path };
    let end = i64::try_from(items.len() + beyond).unwrap_or(i64::MAX);
    let place = if index < 0 { index.saturating_add(end) } else { index };
    if place < 0 {
        return path;
    }
    parent.with_trailing_token(place.to_string())
}

fn check_growth(doc: &Value, operation: &PatchOperation, copied: &mut usize) -> Result<(), PatchError> {
    let placed = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Copy(copy) => doc.pointer(copy.from.as_str()),
        PatchOperation::Move(moved) => doc.pointer(moved.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    };
    let Some(placed) = placed else { return Ok(()) };
    let (nodes, depth) = measure(placed);
    if operation.path().count() + depth > DEEPEST {
        return Err(PatchError::Rejected(format!("{} builds a value nested too deeply", operation.path())));
    }
    if matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_)) {
        *copied += nodes;
        if *copied > MOST_COPIED {
            return Err(PatchError::Rejected(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MOST_COPIED}"
            )));
        }
    }
    Ok(())
}

/// Nodes and nesting of a value; text counts by its length, for that is what a copy costs.
fn measure(value: &Value) -> (usize, usize) {
    fn inner<'a>(children: impl Iterator<Item = &'a Value>) -> (usize, usize) {
        children.map(measure).fold((1, 1), |(nodes, depth), (n, d)| (nodes + n, depth.max(d + 1)))
    }
    match value {
        Value::Array(items) => inner(items.iter()),
        Value::Object(fields) => inner(fields.values()),
        Value::String(text) => (1 + text.len() / 16, 1),
        _ => (1, 1),
    }
}

fn reason(operation: &PatchOperation, kind: &PatchErrorKind) -> String {
    let path = operation.path();
    match (operation, kind) {
        (PatchOperation::Test(_), _) => format!("testing value {path} failed: test failed"),
        (PatchOperation::Move(moved), PatchErrorKind::CannotMoveInsideItself) => {
            format!("move operation does not apply: {path} is inside {}", moved.from)
        }
        (PatchOperation::Move(moved), PatchErrorKind::InvalidFromPointer) => {
            format!("move operation does not apply: doc is missing from path: {}: missing value", moved.from)
        }
        (PatchOperation::Copy(copy), PatchErrorKind::InvalidFromPointer) => {
            format!("copy operation does not apply: doc is missing from path: {}: missing value", copy.from)
        }
        (PatchOperation::Add(_), _) => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        (PatchOperation::Remove(_), _) => {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        (PatchOperation::Replace(_), _) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        (PatchOperation::Move(_), _) => {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        }
        (PatchOperation::Copy(_), _) => {
            format!("copy operation does not apply: doc is missing destination path: {path}: missing value")
        }
    }
}
