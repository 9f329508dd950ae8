//! What the server serves: built-in kinds and whatever CustomResourceDefinitions add at run time.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use baton_grammar::jsonpath::Path;
use baton_kinds::{Column, Kind, Subresource};
use baton_schema::{FieldError, Schema, Validator, names};
use jiff::Timestamp;
use serde_json::Value;

use crate::object;

/// One kind under one group, version and plural.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The name the store knows it by.
    pub(crate) storage: Arc<str>,
    pub(crate) nature: Nature,
}

/// Where the rules of a kind come from.
#[derive(Debug)]
pub(crate) enum Nature {
    BuiltIn(&'static Kind),
    Custom(Box<Custom>),
}

/// The rules of a custom kind, read off its definition.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The user's schema with `apiVersion`, `kind` and `metadata` put in.
    pub(crate) schema: Arc<Schema>,
    pub(crate) validator: Validator,
    /// Changes with the definition.
    pub(crate) generation: i64,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) columns: Vec<CustomColumn>,
    /// Paths that field selectors may name.
    pub(crate) selectable: Vec<String>,
    /// The apiVersion objects are stored with.
    pub(crate) storage_api_version: String,
    /// The schema of the version objects are stored in.
    pub(crate) storage_schema: Arc<Schema>,
    pub(crate) deprecation: Option<String>,
    /// The definition is going away: nothing new may be created.
    pub(crate) terminating: bool,
}

/// Where a custom kind keeps what `scale` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// An `additionalPrinterColumns` entry.
#[derive(Debug)]
pub(crate) struct CustomColumn {
    pub(crate) name: String,
    pub(crate) type_: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: Path,
}

impl Resource {
    pub(crate) fn built_in(kind: &'static Kind) -> Resource {
        Resource {
            group: kind.group.into(),
            version: kind.version.into(),
            kind: kind.kind.into(),
            list_kind: format!("{}List", kind.kind),
            plural: kind.plural.into(),
            singular: kind.singular.into(),
            short_names: kind.short_names.iter().map(|name| (*name).into()).collect(),
            categories: kind.categories.iter().map(|name| (*name).into()).collect(),
            namespaced: kind.namespaced,
            storage: kind.resource().into(),
            nature: Nature::BuiltIn(kind),
        }
    }

    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    pub(crate) fn subject<'a>(&'a self, name: &'a str) -> crate::failure::Subject<'a> {
        crate::failure::Subject { group: &self.group, resource: &self.plural, name }
    }

    /// Like [`Resource::subject`], but names the kind, as validation errors do.
    pub(crate) fn kind_subject<'a>(&'a self, name: &'a str) -> crate::failure::Subject<'a> {
        crate::failure::Subject { group: &self.group, resource: &self.kind, name }
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    pub(crate) fn schema(&self) -> Arc<Schema> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.schema(),
            Nature::Custom(custom) => custom.schema.clone(),
        }
    }

    pub(crate) fn custom(&self) -> Option<&Custom> {
        match &self.nature {
            Nature::BuiltIn(_) => None,
            Nature::Custom(custom) => Some(custom),
        }
    }

    /// Whether stored bytes can be sent as they are. Objects of a definition that has changed are read by its present
    /// schema, and so are those stored in another version.
    pub(crate) fn is_served_as_stored(&self) -> bool {
        !self.is("events.k8s.io", "events")
            && self.custom().is_none_or(|custom| {
                custom.generation <= 1 && custom.storage_api_version == self.api_version()
            })
    }

    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.verbs.names(),
            Nature::Custom(_) => baton_kinds::Verbs::All.names(),
        }
    }

    pub(crate) fn has_status(&self) -> bool {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.has_status(),
            Nature::Custom(custom) => custom.status,
        }
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<Subresource> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.subresources.iter().find(|sub| sub.name() == name).copied(),
            Nature::Custom(custom) => (name == "status" && custom.status).then_some(Subresource::Status),
        }
    }

    pub(crate) fn scale(&self) -> Option<ScalePaths> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.subresources.iter().find_map(|sub| match sub {
                Subresource::Scale { spec, status, selector } => Some(ScalePaths {
                    spec: (*spec).into(),
                    status: (*status).into(),
                    selector: Some((*selector).into()),
                }),
                _ => None,
            }),
            Nature::Custom(custom) => custom.scale.clone(),
        }
    }

    pub(crate) fn fill_defaults(&self, object: &mut Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.default(object),
            Nature::Custom(custom) => baton_schema::apply_defaults(&custom.schema, object),
        }
    }

    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.prepare_create(object),
            Nature::Custom(custom) => {
                if custom.status {
                    remove(object, "status");
                }
                object::set_meta(object, "generation", 1);
            }
        }
    }

    pub(crate) fn prepare_update(&self, object: &mut Value, old: &Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.prepare_update(object, old),
            Nature::Custom(custom) => {
                if custom.status {
                    replace(object, "status", old.get("status"));
                }
                let generation = object::meta_number(old, "generation").unwrap_or(1);
                let changed = content_differs(object, old, custom.status);
                object::set_meta(object, "generation", generation + i64::from(changed));
            }
        }
    }

    pub(crate) fn prepare_status(&self, object: &mut Value, old: &Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.prepare_status(object, old),
            Nature::Custom(_) => {
                let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
                let managed = object::meta_mut(object).remove("managedFields").unwrap_or_default();
                *object = without(old, &["status", "metadata"]);
                object["metadata"] = without(&old["metadata"], &["managedFields"]);
                if let Some(status) = status {
                    object["status"] = status;
                }
                object::set_meta(object, "managedFields", managed);
            }
        }
    }

    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let meta = &object["metadata"];
        let name_rule = match &self.nature {
            Nature::BuiltIn(kind) => kind.name_rule(),
            Nature::Custom(_) => names::dns1123_subdomain,
        };
        let mut errors = names::validate_object_meta(meta, self.namespaced, name_rule, "metadata");
        if let Some(old) = old {
            errors.extend(names::validate_object_meta_update(meta, &old["metadata"]));
        }
        match &self.nature {
            Nature::BuiltIn(kind) => {
                errors.extend(names::validate_finalizers_qualified(meta, "metadata"));
                errors.extend(kind.validate(object, old));
            }
            Nature::Custom(custom) => errors.extend(custom.validator.validate(object, old)),
        }
        let mut seen = Vec::new();
        errors.retain(|error| {
            let new = !seen.contains(error);
            seen.push(error.clone());
            new
        });
        errors
    }

    /// The value a field selector compares with; an error names a field that cannot be selected by.
    pub(crate) fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        match path {
            "metadata.name" => Some(object::name(object).to_owned()),
            "metadata.namespace" => Some(object::namespace(object).to_owned()),
            _ => match &self.nature {
                Nature::BuiltIn(kind) => kind.field_value(object, path),
                Nature::Custom(_) => {
                    let value = object.pointer(&format!("/{}", path.replace('.', "/")))?;
                    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                }
            },
        }
    }

    pub(crate) fn selectable(&self, path: &str) -> bool {
        matches!(path, "metadata.name" | "metadata.namespace")
            || match &self.nature {
                Nature::BuiltIn(kind) => kind.field_selectors().contains(&path),
                Nature::Custom(custom) => custom.selectable.iter().any(|field| field == path),
            }
    }

    /// Whether no field but name and namespace can be selected by.
    pub(crate) fn selects_by_name_only(&self) -> bool {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.field_selectors().iter().all(|path| path.starts_with("metadata.")),
            Nature::Custom(_) => false,
        }
    }

    /// Column headers of a Table.
    pub(crate) fn columns(&self) -> Vec<Value> {
        let column = |name: &str, type_: &str, format: &str, description: &str, priority: i64| {
            serde_json::json!({
                "name": name, "type": type_, "format": format, "description": description, "priority": priority,
            })
        };
        match &self.nature {
            Nature::BuiltIn(kind) => kind
                .columns()
                .iter()
                .map(|Column { name, type_, format, description, priority, .. }| {
                    column(name, type_, format, description, i64::from(*priority))
                })
                .collect(),
            Nature::Custom(custom) => {
                let name = column("Name", "string", "name", "The object's name, unique in its namespace.", 0);
                std::iter::once(name)
                    .chain(custom.columns.iter().map(|own| {
                        column(&own.name, &own.type_, &own.format, &own.description, own.priority)
                    }))
                    .collect()
            }
        }
    }

    /// One row of a Table.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.cells(object, now),
            Nature::Custom(custom) => std::iter::once(Value::from(object::name(object)))
                .chain(custom.columns.iter().map(|column| column.cell(object, now)))
                .collect(),
        }
    }
}

impl CustomColumn {
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match self.type_.as_str() {
            "integer" => first.as_i64().map_or(Value::Null, Value::from),
            "number" => first.as_f64().map_or(Value::Null, Value::from),
            "boolean" => first.as_bool().map_or(Value::Null, Value::from),
            "date" => first.as_str().map_or(Value::Null, |text| match text.parse::<Timestamp>() {
                Ok(time) => baton_kinds::human_age(time, now).into(),
                Err(_) => "<invalid>".into(),
            }),
            _ if found.len() > 1 => {
                found.iter().map(|value| shown(value)).collect::<Vec<_>>().join(",").into()
            }
            _ => shown(first).into(),
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

fn replace(object: &mut Value, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => object[field] = value.clone(),
        None => remove(object, field),
    }
}

/// An object as it is, but for some of its fields.
fn without(object: &Value, fields: &[&str]) -> Value {
    let all = object.as_object().into_iter().flatten();
    let kept = all.filter(|(field, _)| !fields.contains(&field.as_str()));
    Value::Object(kept.map(|(field, value)| (field.clone(), value.clone())).collect())
}

/// Whether two versions of a custom object differ outside metadata (and status, where that has its own path).
fn content_differs(new: &Value, old: &Value, ignore_status: bool) -> bool {
    let counts = |field: &str| match field {
        "metadata" | "apiVersion" => false,
        "status" => !ignore_status,
        _ => true,
    };
    let content = |object| {
        let fields = Value::as_object(object).into_iter().flatten();
        fields.filter(|(field, _)| counts(field))
    };
    content(new).ne(content(old))
}

/// Every resource served at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Catalog {
    by_path: HashMap<(String, String, String), Arc<Resource>>,
    /// In discovery order.
    resources: Vec<Arc<Resource>>,
}

impl Catalog {
    /// Built-in kinds only.
    pub(crate) fn built_in() -> Catalog {
        static BUILT_IN: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
        let built_in = BUILT_IN.get_or_init(|| {
            baton_kinds::all().iter().map(|kind| Arc::new(Resource::built_in(kind))).collect()
        });
        let mut catalog = Catalog { by_path: HashMap::new(), resources: Vec::new() };
        built_in.iter().for_each(|resource| catalog.insert(resource.clone()));
        catalog
    }

    fn insert(&mut self, resource: Arc<Resource>) {
        let path = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.by_path.insert(path, resource.clone());
        self.resources.push(resource);
    }

    /// Serves exactly these versions of the custom kind stored as `storage`, and none if there are none.
    pub(crate) fn set_custom(&mut self, storage: &str, versions: Vec<Arc<Resource>>) {
        let ours = |resource: &Resource| resource.custom().is_some() && &*resource.storage == storage;
        self.by_path.retain(|_, resource| !ours(resource));
        self.resources.retain(|resource| !ours(resource));
        versions.into_iter().for_each(|version| self.insert(version));
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The resource of an owner reference or a kind seen in an object.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.resources
            .iter()
            .find(|resource| resource.kind == kind && resource.group == group && resource.version == version)
            .cloned()
    }

    /// Any served version of what the store knows by this name.
    pub(crate) fn by_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        self.resources.iter().find(|resource| &*resource.storage == storage).cloned()
    }

    pub(crate) fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// Groups with their versions, preferred first, in discovery order; core is the empty group.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for resource in &self.resources {
            let at = match groups.iter().position(|(group, _)| *group == resource.group) {
                Some(at) => at,
                None => {
                    groups.push((resource.group.clone(), Vec::new()));
                    groups.len() - 1
                }
            };
            if !groups[at].1.contains(&resource.version) {
                groups[at].1.push(resource.version.clone());
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        }
        groups
    }
}

/// Orders `v2` over `v1` over `v1beta2` over `v1alpha1` over anything else.
pub(crate) fn version_rank(version: &str) -> (u8, u64, u64) {
    let other = (0, 0, 0);
    let Some(rest) = version.strip_prefix('v') else { return other };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else { return other };
    let minor = |text: &str| text.parse().unwrap_or(0);
    match &rest[digits..] {
        "" => (3, major, 0),
        stage if stage.starts_with("beta") => (2, major, minor(&stage[4..])),
        stage if stage.starts_with("alpha") => (1, major, minor(&stage[5..])),
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = ["v1alpha1", "v2beta1", "v1", "odd", "v10", "v2"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1alpha1", "odd"]);
    }

    #[test]
    fn built_in_kinds_are_found_by_path_and_by_kind() {
        let catalog = Catalog::built_in();
        assert_eq!(catalog.find("apps", "v1", "deployments").expect("served").kind, "Deployment");
        assert_eq!(catalog.find_kind("v1", "Pod").expect("served").plural, "pods");
        assert!(catalog.find("apps", "v2", "deployments").is_none());
    }
}
