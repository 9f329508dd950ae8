//! Templates of Applications.

use baton_api::application_set::ApplicationTemplate;
use baton_api::names::{API_VERSION, finalizer};
use baton_template::{List, Map as Params, Value as Param};
use serde_json::{Map, Value, json};

use crate::engine::Engine;
use crate::error::{RenderError, Subject};
use crate::limits::Budget;
use crate::patch::Patch;
use crate::skeleton::{Compiler, Skeleton};
use crate::text::Text;

/// A template and its patch, compiled.
#[derive(Debug)]
pub struct Renderer {
    skeleton: Skeleton,
    /// What stands for an Application without parameters.
    unrendered: Value,
    patch: Option<Patch>,
    default_finalizer: bool,
    /// A template may change the parameters it is given.
    changes_params: bool,
}

impl Renderer {
    /// Compiles a template and its patch.
    ///
    /// # Errors
    /// When a string is no template of the language, or the template is too large.
    pub fn new(
        engine: &Engine,
        template: &ApplicationTemplate,
        patch: Option<&str>,
        preserve_resources: bool,
    ) -> Result<Renderer, RenderError> {
        let unwritable =
            |error: serde_json::Error| RenderError::new(Subject::Template, "", error.to_string());
        let unrendered = serde_json::to_value(template).map_err(unwritable)?;
        let emptied = emptied(engine, &unrendered);
        let mut compiler = Compiler::new(engine, Subject::Template);
        let root = compiler.value(&unrendered, emptied.as_ref(), 0)?;
        let changes_params =
            may_change_params(&unrendered.to_string()) || patch.is_some_and(may_change_params);
        Ok(Renderer {
            skeleton: compiler.finish(root),
            unrendered,
            patch: patch.map(|patch| Patch::compile(engine, patch)).transpose()?,
            default_finalizer: !preserve_resources,
            changes_params,
        })
    }

    /// The Application for one set of parameters: apiVersion, kind, metadata and spec, and whatever else the patch
    /// sets. Without parameters the template stands as it is, and the default finalizer is not added.
    ///
    /// # Errors
    /// When an expression cannot be evaluated, the patch does not fit an Application, or a limit is reached.
    pub fn render(&self, params: &Params, namespace: &str) -> Result<Value, RenderError> {
        let own;
        let params = if self.changes_params {
            own = copy_of(params, 0);
            &own
        } else {
            params
        };
        let mut budget = Budget::new();
        let mut application = if params.is_empty() {
            self.unrendered.clone()
        } else {
            let mut application = self.skeleton.render(params, &mut budget)?;
            self.add_default_finalizer(&mut application);
            application
        };
        if let Some(patch) = &self.patch {
            application = patch.apply(application, params, &mut budget)?;
        }
        Ok(finished(application, namespace))
    }

    fn add_default_finalizer(&self, application: &mut Value) {
        let Some(metadata) = application.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let some = metadata.get("finalizers").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if self.default_finalizer && !some {
            metadata.insert("finalizers".into(), json!([finalizer::RESOURCES]));
        }
    }
}

/// An Application never leaves the namespace of its set, whatever template and patch say.
fn finished(application: Value, namespace: &str) -> Value {
    let mut fields = match application {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Value::Object(metadata) = fields.entry("metadata").or_insert_with(|| json!({})) {
        metadata.insert("namespace".into(), namespace.into());
    }
    fields.insert("apiVersion".into(), API_VERSION.into());
    fields.insert("kind".into(), "Application".into());
    Value::Object(fields)
}

/// The template as it is written when every string with template text is empty: what is missing there is left out of
/// an Application too when it renders to nothing.
fn emptied(engine: &Engine, template: &Value) -> Option<Value> {
    let mut emptied = template.clone();
    empty(engine, &mut emptied, 0);
    let typed: ApplicationTemplate = serde_json::from_value(emptied).ok()?;
    serde_json::to_value(typed).ok()
}

fn empty(engine: &Engine, value: &mut Value, depth: usize) {
    if depth > crate::limits::MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => {
            let plain = Text::compile_for(engine, Subject::Template, "", text);
            if plain.is_ok_and(|text| !text.is_plain()) {
                text.clear();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| empty(engine, item, depth + 1)),
        Value::Object(fields) => fields.values_mut().for_each(|field| empty(engine, field, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a text may call one of sprig's functions that change a map in place (`set`, `unset`, `merge` and its kin).
fn may_change_params(text: &str) -> bool {
    text.contains("{{") && (text.contains("set") || text.to_ascii_lowercase().contains("merge"))
}

/// A copy that shares no map with the original: what one Application's template changes, no other may see.
fn copy_of(map: &Params, depth: usize) -> Params {
    let entries = map.snapshot().into_iter();
    if Param::Map(map.clone()).type_name() == "map[string]string" {
        return Params::strings(entries.map(|(key, value)| match value {
            Param::Str(text) => (key, text),
            other => (key, other.to_string().into()),
        }));
    }
    Params::new(entries.map(|(key, value)| (key, copy_of_value(value, depth + 1))))
}

fn copy_of_value(value: Param, depth: usize) -> Param {
    match value {
        // Nothing that deep comes from a document; it can only be a map put into itself.
        value if depth > crate::limits::MAX_DEPTH => value,
        Param::Map(map) => Param::Map(copy_of(&map, depth)),
        Param::List(list) if Param::List(list.clone()).type_name() == "[]string" => Param::List(list),
        Param::List(list) => {
            Param::List(List::new(list.items().iter().map(|item| copy_of_value(item.clone(), depth + 1))))
        }
        value => value,
    }
}
