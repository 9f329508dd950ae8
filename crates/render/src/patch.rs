//! `templatePatch`: a strategic merge patch rendered from one template.

use std::sync::{Arc, LazyLock};

use baton_api::Application;
use baton_api::application_status::ApplicationStatus;
use baton_grammar::yaml;
use baton_schema::{PatchStrategy, Reader, Schema, strategic, type_errors};
use baton_template::Map as Params;
use serde::Deserialize;
use serde_json::Value;

use crate::engine::Engine;
use crate::error::{Place, RenderError, Subject};
use crate::limits::{Budget, MAX_DEPTH};
use crate::text::{Scope, Text};

const PATH: &str = "spec.templatePatch";

/// A compiled patch.
#[derive(Debug)]
pub(crate) struct Patch {
    text: Text,
}

impl Patch {
    pub(crate) fn compile(engine: &Engine, text: &str) -> Result<Patch, RenderError> {
        let text = Text::compile_for(engine, Subject::Patch, PATH, text).map_err(unrendered)?;
        Ok(Patch { text })
    }

    /// Renders the patch and merges it into an Application. The project cannot be changed.
    pub(crate) fn apply(
        &self,
        application: Value,
        params: &Params,
        budget: &mut Budget,
    ) -> Result<Value, RenderError> {
        let rendered = self.text.render_in(&Scope::new(params, 1)).map_err(unrendered)?;
        budget.take(rendered.len(), Subject::Patch, PATH)?;
        let patch = read(&rendered)?;
        if patch.is_null() {
            return Ok(application);
        }
        check(&patch)?;
        let merged = strategic::merge(&MERGING, &application, &patch)
            .map_err(|error| trouble(format!("error while applying templatePatch: {error}")))?;
        let mut patched: Application = serde_json::from_value(merged)
            .map_err(|error| trouble(format!("the patched Application cannot be read: {error}")))?;
        patched.spec.project =
            application.pointer("/spec/project").and_then(Value::as_str).unwrap_or_default().to_owned();
        // A patch may not make up what was seen of an Application.
        patched.status = ApplicationStatus::default();
        let mut written = serde_json::to_value(patched)
            .map_err(|error| trouble(format!("the patched Application cannot be written: {error}")))?;
        drop_empty_metadata(&mut written);
        Ok(written)
    }
}

/// Reads a rendered patch: JSON if it starts like it, otherwise YAML.
fn read(text: &str) -> Result<Value, RenderError> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| {
            let place = Place { line: error.line(), column: error.column() };
            trouble(format!("invalid templatePatch: {error}")).at(Some(place))
        });
    }
    yaml::first(text).map_err(|error| {
        let place = usize::try_from(error.line).ok().zip(usize::try_from(error.column).ok());
        trouble(format!(
            "error while converting template to json: rendered templatePatch is no YAML: {}",
            error.message
        ))
        .at(place.map(|(line, column)| Place { line, column }))
    })
}

/// Kubernetes' metadata leaves out what is empty.
fn drop_empty_metadata(application: &mut Value) {
    if let Some(Value::Object(metadata)) = application.get_mut("metadata") {
        metadata.retain(|_, field| match field {
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
}

/// A patch must have the types of an Application, though it need not be a whole one.
fn check(patch: &Value) -> Result<(), RenderError> {
    let mut plain = patch.clone();
    drop_nulls(&mut plain, 0);
    let complaint = match &mut plain {
        Value::Object(fields) => {
            // The schema names its complaint after the kind.
            fields.insert("kind".into(), "Application".into());
            // The types alone would take a list for an object, its elements for the fields in their order.
            type_errors(&APPLICATION, &plain)
                .or_else(|| Application::deserialize(&plain).err().map(|error| error.to_string()))
        }
        other => {
            let found = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Some(format!("json: cannot unmarshal {found} into Go value of type v1alpha1.Application"))
        }
    };
    match complaint {
        Some(complaint) => Err(trouble(format!("invalid templatePatch: {complaint}"))),
        None => Ok(()),
    }
}

/// Nulls have every type: in a patch they delete.
fn drop_nulls(value: &mut Value, depth: usize) {
    match value {
        _ if depth > MAX_DEPTH => {}
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(|item| drop_nulls(item, depth + 1));
        }
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(|field| drop_nulls(field, depth + 1));
        }
        _ => {}
    }
}

fn unrendered(error: RenderError) -> RenderError {
    error.while_doing("error replacing values in templatePatch")
}

fn trouble(message: String) -> RenderError {
    RenderError::new(Subject::Patch, PATH, message)
}

/// Which lists merge. Argo CD's own types mark none, those of Kubernetes' metadata two.
static MERGING: LazyLock<Schema> = LazyLock::new(|| {
    let list = |merge_key: Option<&str>| {
        let merge_key = merge_key.map(str::to_owned);
        Arc::new(Schema {
            patch: PatchStrategy { merge: true, merge_key, ..PatchStrategy::default() },
            ..Schema::default()
        })
    };
    let metadata = [("finalizers".to_owned(), list(None)), ("ownerReferences".to_owned(), list(Some("uid")))];
    let metadata = Schema { properties: metadata.into(), ..Schema::default() };
    Schema { properties: [("metadata".to_owned(), Arc::new(metadata))].into(), ..Schema::default() }
});

/// The schema of Applications, to tell which field of a patch has the wrong type.
static APPLICATION: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let definition = baton_api::crd::application();
    let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
    schema.and_then(|schema| Reader::standalone().read(schema).ok()).unwrap_or_default()
});
