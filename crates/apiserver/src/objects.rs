//! Requests on one object and on its subresources.

use baton_grammar::labels::Selector;
use baton_kinds::Subresource;
use baton_schema::{FieldError, patch, strategic};
use baton_store::Record;
use serde_json::{Value, json};

use crate::authorization::may_create;
use crate::catalog::{Resource, ScalePaths};
use crate::decode::{self, FieldValidation};
use crate::delete::{DeleteOptions, Deleted};
use crate::failure::{self, Failure};
use crate::request::Shape;
use crate::rest::{Answer, Call};
use crate::table;
use crate::write::{
    Part, Proposal, WriteOptions, Written, check_revision, creates_on_update, needs_revision,
};
use crate::{evictions, object, tokens};

pub(crate) fn get(call: &Call, resource: &Resource, namespace: &str, name: &str) -> Result<Answer, Failure> {
    let record = call.core.get(resource, namespace, name, &call.query)?;
    Ok(shown_record(call, resource, &record))
}

pub(crate) async fn create(call: &Call, resource: &Resource, namespace: &str) -> Result<Answer, Failure> {
    let (object, warnings) = incoming(call, resource, namespace, None)?;
    if !object::meta_text(&object, "resourceVersion").is_empty() {
        return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let written = call.core.create(resource, namespace, object, &options(call)?).await?;
    Ok(shown(call, resource, &written).created().warning(warnings))
}

/// A namespace as written through `finalize`, which leaves its status alone.
fn finalized(mut namespace: Value, current: &Value) -> Value {
    namespace["status"] = current["status"].clone();
    if namespace["spec"].is_null() {
        namespace["spec"] = json!({});
    }
    namespace
}

pub(crate) async fn replace(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
    part: Option<Part>,
) -> Result<Answer, Failure> {
    let part = part.unwrap_or(Part::Main);
    let (object, warnings) = incoming(call, resource, namespace, Some(name))?;
    let options = options(call)?;
    let unconditional = object::meta_text(&object, "resourceVersion").is_empty();
    let outcome = call
        .core
        .modify(resource, namespace, name, part, &options, |current| {
            if unconditional && needs_revision(resource) {
                let error = FieldError {
                    path: "metadata.resourceVersion".into(),
                    problem: baton_schema::Problem::Invalid(0.into()),
                    detail: "must be specified for an update".into(),
                };
                return Err(Failure::invalid(resource.kind_subject(name), &[error]));
            }
            check_revision(resource, &object, current)?;
            Ok(Proposal::Object(match part {
                Part::Other("finalize") => finalized(object.clone(), current),
                _ => object.clone(),
            }))
        })
        .await;
    let written = match outcome {
        Err(failure) if failure.reason == "NotFound" && part == Part::Main && creates_on_update(resource) => {
            may_create(call, resource, namespace, name)?;
            let written = call.core.create(resource, namespace, object, &options).await?;
            return Ok(shown(call, resource, &written).created().warning(warnings));
        }
        outcome => outcome?,
    };
    Ok(shown(call, resource, &written).warning(warnings))
}

/// The ways to say what should change.
enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Patch {
    fn read(call: &Call, resource: &Resource) -> Result<(Patch, Vec<String>), Failure> {
        const JSON: &str = "application/json-patch+json";
        const MERGE: &str = "application/merge-patch+json";
        const STRATEGIC: &str = "application/strategic-merge-patch+json";
        const APPLY: &str = "application/apply-patch+yaml";
        let body = &call.body;
        let accepted: &[&str] = match resource.custom() {
            None => &[JSON, MERGE, STRATEGIC, APPLY],
            Some(_) => &[JSON, MERGE, APPLY],
        };
        let media_type = decode::media_type(call.content_type());
        if !accepted.contains(&media_type) {
            return Err(Failure::unsupported_media_type(accepted));
        }
        let document = if media_type == APPLY { decode::yaml(body)? } else { decode::json(body)? };
        let value = document.value;
        let patch = match media_type {
            JSON => Patch::Json(value),
            APPLY if value.is_null() => return Err(Failure::bad_request("invalid object type: /, Kind=")),
            APPLY if !value.is_object() => {
                let kind = json_kind(&value);
                return Err(Failure::bad_request(format!(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into \
                     Go value of type map[string]interface {{}}"
                )));
            }
            _ if !value.is_object() => {
                return Err(Failure::bad_request("the patch is not a JSON object"));
            }
            MERGE => Patch::Merge(value),
            STRATEGIC => Patch::Strategic(value),
            _ => Patch::Apply(value),
        };
        Ok((patch, document.complaints))
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(crate) async fn patch(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
    part: Option<Part>,
) -> Result<Answer, Failure> {
    let part = part.unwrap_or(Part::Main);
    let (patch, duplicates) = Patch::read(call, resource)?;
    let validation = FieldValidation::read(&call.query)?;
    let options = options(call)?;
    if call.query.has("force") && !matches!(patch, Patch::Apply(_)) {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        let subject = failure::Subject { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
        return Err(Failure::invalid(subject, &[error]));
    }
    match patch {
        Patch::Apply(config) => {
            apply(call, resource, namespace, name, part, config, duplicates, validation, &options).await
        }
        other => {
            let mut warnings = Vec::new();
            let written = call
                .core
                .modify(resource, namespace, name, part, &options, |current| {
                    let mut next = patched(resource, current, &other)?;
                    check_type(&next, current)?;
                    check_uid(resource, &next, current)?;
                    check_revision(resource, &next, current)?;
                    let mut complaints = duplicates.clone();
                    let settled = decode::settle(resource, &mut next);
                    complaints.extend(settled.map_err(|failure| misfit(&failure.message))?);
                    warnings = judge(validation, complaints)
                        .map_err(|text| misfit(&format!("strict decoding error: {text}")))?;
                    check_identity(resource, namespace, name, &next)?;
                    Ok(Proposal::Object(next))
                })
                .await?;
            Ok(shown(call, resource, &written).warning(warnings))
        }
    }
}

/// A patch whose outcome is not an object of the kind.
fn misfit(why: &str) -> Failure {
    Failure::unprocessable(format!(" \"\" is invalid: patch: Invalid value: {why}"))
}

/// A patch says what should become of the object; a uid it cannot become.
fn check_uid(resource: &Resource, next: &Value, current: &Value) -> Result<(), Failure> {
    let uid = object::uid(next);
    if uid.is_empty() || uid == object::uid(current) {
        return Ok(());
    }
    let error = FieldError::invalid("metadata.uid", uid, "field is immutable");
    Err(Failure::invalid(resource.kind_subject(object::name(current)), &[error]))
}

fn check_type(next: &Value, current: &Value) -> Result<(), Failure> {
    match ["apiVersion", "kind"].into_iter().find(|field| next[field] != current[field]) {
        Some(field) => {
            Err(misfit(&format!("{field} may not change from {} to {}", current[field], next[field])))
        }
        None => Ok(()),
    }
}

fn patched(resource: &Resource, current: &Value, how: &Patch) -> Result<Value, Failure> {
    let outcome = match how {
        Patch::Json(operations) => patch::json(current, operations),
        Patch::Merge(changes) => Ok(patch::merge(current, changes)),
        Patch::Strategic(changes) => strategic::merge(&resource.schema(), current, changes),
        Patch::Apply(_) => unreachable!("apply is handled before"),
    };
    outcome.map_err(|error| match error.status() {
        413 => Failure::too_large(0).saying(error.answer()),
        422 => Failure::unprocessable(error.answer()),
        500 => Failure::internal(error.answer()),
        _ => Failure::bad_request(error.answer()),
    })
}

#[allow(clippy::too_many_arguments, reason = "the parts of one request, each of its own type")]
async fn apply(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
    part: Part,
    config: Value,
    duplicates: Vec<String>,
    validation: FieldValidation,
    options: &WriteOptions,
) -> Result<Answer, Failure> {
    if call.query.get("fieldManager").is_none() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        let subject = failure::Subject { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
        return Err(Failure::invalid(subject, &[error]));
    }
    let mut config = config;
    for field in ["apiVersion", "kind"] {
        if config[field].as_str().unwrap_or_default().is_empty() {
            return Err(Failure::bad_request(format!("{field} must be set in an apply patch")));
        }
    }
    let document = decode::Document { value: config, complaints: duplicates };
    let complaints;
    (config, complaints) = decode::accept_config(resource, document)?;
    let warnings = judge(validation, complaints)
        .map_err(|text| Failure::bad_request(format!("strict decoding error: {text}")))?;
    if !object::meta(&config, "managedFields").is_null() {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    if resource.namespaced && object::namespace(&config).is_empty() {
        object::set_meta(&mut config, "namespace", namespace);
    }
    check_identity(resource, namespace, name, &config)?;
    let force = call.query.flag("force");
    let outcome = call
        .core
        .modify(resource, namespace, name, part, options, |current| {
            check_revision(resource, &config, current)?;
            let next = call.core.applied(resource, Some(current), &config, part, options, force)?;
            Ok(Proposal::Applied(next))
        })
        .await;
    match outcome {
        Err(failure) if failure.reason == "NotFound" && part == Part::Main => {
            if !object::uid(&config).is_empty() {
                let why = format!(
                    "Precondition failed: UID in precondition: {}, UID in object meta: ",
                    object::uid(&config)
                );
                return Err(Failure::conflict(resource.subject(name), why));
            }
            may_create(call, resource, namespace, name)?;
            let object = call.core.applied(resource, None, &config, part, options, force)?;
            let written =
                call.core.create_from(resource, namespace, Proposal::Applied(object), options).await?;
            Ok(shown(call, resource, &written).created().warning(warnings))
        }
        outcome => Ok(shown(call, resource, &outcome?).warning(warnings)),
    }
}

pub(crate) async fn delete(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Answer, Failure> {
    let options = DeleteOptions::of(call)?;
    let deleted = call.core.delete(resource, namespace, name, &options).await?;
    Ok(match deleted {
        Deleted::Gone(object) if !returns_deleted(resource) => {
            Answer::ok(failure::deleted(resource.subject(name), object::uid(&object)))
        }
        Deleted::Gone(mut object) | Deleted::Pending(mut object) => {
            call.core.convert(resource, &mut object);
            shape(call, resource, object)
        }
    })
}

/// Some kinds answer a deletion with the object rather than with a Status.
fn returns_deleted(resource: &Resource) -> bool {
    resource.custom().is_none()
        && match resource.group.as_str() {
            "" => matches!(
                resource.plural.as_str(),
                "namespaces"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "pods"
                    | "podtemplates"
                    | "resourcequotas"
                    | "services"
                    | "serviceaccounts"
            ),
            "storage.k8s.io" => true,
            _ => false,
        }
}

pub(crate) async fn subresource(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
    subresource: &str,
) -> Result<Answer, Failure> {
    if subresource == "scale"
        && let Some(paths) = resource.scale()
    {
        return scale(call, resource, namespace, name, &paths).await;
    }
    match resource.subresource(subresource) {
        Some(Subresource::Status) => match call.method.as_str() {
            "GET" => get(call, resource, namespace, name),
            "PUT" => replace(call, resource, namespace, name, Some(Part::Status)).await,
            "PATCH" => patch(call, resource, namespace, name, Some(Part::Status)).await,
            _ => Err(Failure::method_not_allowed()),
        },
        Some(Subresource::Own { name: own, .. }) => match (own, call.method.as_str()) {
            ("finalize", "PUT") => {
                replace(call, resource, namespace, name, Some(Part::Other("finalize"))).await
            }
            ("eviction", "POST") => evictions::evict(call, resource, namespace, name).await,
            ("log", "GET") => crate::logs::answer(call, resource, namespace, name),
            ("binding", "POST") => bind(call, resource, namespace, name).await,
            ("ephemeralcontainers" | "resize", "GET") => get(call, resource, namespace, name),
            ("ephemeralcontainers" | "resize", "PUT") => {
                replace(call, resource, namespace, name, Some(Part::Main)).await
            }
            ("ephemeralcontainers" | "resize", "PATCH") => {
                patch(call, resource, namespace, name, Some(Part::Main)).await
            }
            ("token", "POST") => tokens::issue(call, resource, namespace, name),
            _ => Err(Failure::method_not_allowed()),
        },
        _ => Err(Failure::no_such_path()),
    }
}

/// Puts a Pod on a node, as a scheduler does.
async fn bind(call: &Call, resource: &Resource, namespace: &str, name: &str) -> Result<Answer, Failure> {
    let binding = decode::document(call.content_type(), &call.body, "Binding")?.value;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    if node.is_empty() {
        let subject = failure::Subject { group: "", resource: "Binding", name };
        return Err(Failure::invalid(subject, &[FieldError::required("target.name", "")]));
    }
    let options = options(call)?;
    call.core
        .modify(resource, namespace, name, Part::Other("binding"), &options, |current| {
            let taken = current["spec"]["nodeName"].as_str().unwrap_or_default();
            if !taken.is_empty() {
                let why = format!("pod {name} is already assigned to node {taken:?}");
                return Err(Failure::conflict(
                    failure::Subject { group: "", resource: "pods/binding", name },
                    why,
                ));
            }
            let mut next = current.clone();
            next["spec"]["nodeName"] = node.as_str().into();
            Ok(Proposal::Object(next))
        })
        .await?;
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(Answer::ok(status).created())
}

/// What a request makes of the present `Scale`.
type Change<'a> = Box<dyn Fn(&Value) -> Result<Value, Failure> + Send + Sync + 'a>;

async fn scale(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: &str,
    paths: &ScalePaths,
) -> Result<Answer, Failure> {
    let view = |object: &Value| scale_view(resource, object, paths);
    let method = call.method.as_str();
    if method == "GET" {
        let record = call.core.get(resource, namespace, name, &call.query)?;
        return Ok(Answer::ok(view(&call.core.present(resource, &record))));
    }
    let wanted: Change<'_> = match method {
        "PUT" => {
            let scale = decode::document(call.content_type(), &call.body, "Scale")?.value;
            Box::new(move |_| Ok(scale.clone()))
        }
        "PATCH" => {
            let (how, _) = Patch::read(call, resource)?;
            Box::new(move |current| match &how {
                Patch::Apply(config) => Ok(patch::merge(current, config)),
                Patch::Strategic(changes) => Ok(patch::merge(current, changes)),
                other => patched(resource, current, other),
            })
        }
        _ => return Err(Failure::method_not_allowed()),
    };
    let options = options(call)?;
    let written = call
        .core
        .modify(resource, namespace, name, Part::Main, &options, |current| {
            let scale = wanted(&view(current))?;
            check_revision(resource, &scale, current)?;
            let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            if replicas < 0 {
                let error =
                    FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
                let subject = failure::Subject { group: "autoscaling", resource: "Scale", name };
                return Err(Failure::invalid(subject, &[error]));
            }
            let mut next = current.clone();
            set_path(&mut next, &paths.spec, replicas.into());
            Ok(Proposal::Object(next))
        })
        .await?;
    Ok(Answer::ok(view(&written.object())))
}

fn scale_view(resource: &Resource, object: &Value, paths: &ScalePaths) -> Value {
    let number = |path: &str| at_path(object, path).as_i64().unwrap_or(0);
    let selector = paths.selector.as_deref().map(|path| at_path(object, path)).unwrap_or(&Value::Null);
    let selector = match selector {
        Value::String(text) => text.clone(),
        Value::Object(fields)
            if fields.contains_key("matchLabels") || fields.contains_key("matchExpressions") =>
        {
            Selector::from_object(selector).map(|selector| selector.to_string()).unwrap_or_default()
        }
        // A ReplicationController's selector is a plain map.
        Value::Object(fields) => {
            let pairs: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            pairs.join(",")
        }
        _ => String::new(),
    };
    let mut status = json!({"replicas": number(&paths.status)});
    if !selector.is_empty() || resource.custom().is_none() {
        status["selector"] = selector.into();
    }
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object::meta(object, field).is_null() {
            metadata[field] = object::meta(object, field).clone();
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": number(&paths.spec)},
        "status": status,
    })
}

fn at_path<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|part| !part.is_empty()).fold(object, |value, part| &value[part])
}

fn set_path(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = value;
}

fn options(call: &Call) -> Result<WriteOptions, Failure> {
    // Nobody asks for rights where there are none.
    let author = call.core.authority.is_some().then(|| call.user.clone());
    Ok(WriteOptions { manager: call.field_manager()?, dry_run: call.dry_run()?, author })
}

/// Reads, checks and settles the object in a request's body.
fn incoming(
    call: &Call,
    resource: &Resource,
    namespace: &str,
    name: Option<&str>,
) -> Result<(Value, Vec<String>), Failure> {
    let validation = FieldValidation::read(&call.query)?;
    let document = decode::document(call.content_type(), &call.body, &resource.kind)?;
    let (mut object, complaints) = decode::accept(resource, document)?;
    let warnings = judge(validation, complaints).map_err(|text| {
        Failure::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {text}",
            resource.kind, resource.version, resource.kind
        ))
    })?;
    if resource.namespaced && object::namespace(&object).is_empty() {
        object::set_meta(&mut object, "namespace", namespace);
    }
    if !resource.namespaced && !object::namespace(&object).is_empty() && name.is_none() {
        return Err(Failure::bad_request(NAMESPACE_MISMATCH));
    }
    match name {
        Some(name) => check_identity(resource, namespace, name, &object)?,
        None if resource.namespaced && object::namespace(&object) != namespace => {
            return Err(Failure::bad_request(NAMESPACE_MISMATCH));
        }
        None => {}
    }
    Ok((object, warnings))
}

const NAMESPACE_MISMATCH: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

fn check_identity(resource: &Resource, namespace: &str, name: &str, object: &Value) -> Result<(), Failure> {
    let said = object::name(object);
    if said.is_empty() {
        return Err(Failure::bad_request("name must be provided"));
    }
    if said != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    if resource.namespaced && object::namespace(object) != namespace {
        return Err(Failure::bad_request(NAMESPACE_MISMATCH));
    }
    Ok(())
}

/// Complaints are errors under `Strict`, warnings under `Warn`, nothing under `Ignore`.
fn judge(validation: FieldValidation, complaints: Vec<String>) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(complaints),
        FieldValidation::Strict if complaints.is_empty() => Ok(complaints),
        FieldValidation::Strict => Err(complaints.join(", ")),
    }
}

fn shown(call: &Call, resource: &Resource, written: &Written) -> Answer {
    match written {
        Written::Stored(record) => shown_record(call, resource, record),
        Written::Dry(object) => shape(call, resource, object.clone()),
    }
}

fn shown_record(call: &Call, resource: &Resource, record: &Record) -> Answer {
    if call.representation.shape == Shape::Whole && resource.is_served_as_stored() {
        return Answer::json(record.json());
    }
    shape(call, resource, call.core.present(resource, record))
}

fn shape(call: &Call, resource: &Resource, object: Value) -> Answer {
    Answer::ok(match call.representation.shape {
        Shape::Table => {
            let meta = json!({"resourceVersion": object::meta(&object, "resourceVersion")});
            let include = call.query.get("includeObject");
            table::table(resource, vec![object], meta, include, call.core.clock.now(), true)
        }
        Shape::Metadata => table::partial(&object),
        _ => object,
    })
}
