//! The schema of an object, as the rest of the crate reads it.
//!
//! One tree serves built-in kinds (from their OpenAPI definitions, `$ref`s resolved) and custom resources (from
//! `openAPIV3Schema`). Nodes are shared by `Arc`, so a Pod template that stands in ten kinds is held once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value};

/// One node of a structural schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// The JSON type; `None` accepts any.
    pub kind: Option<Kind>,
    /// Whether `null` is a value of its own here.
    pub nullable: bool,
    /// Known fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// What fields outside `properties` are.
    pub additional: Additional,
    /// The schema of each list element.
    pub items: Option<Arc<Schema>>,
    /// `x-kubernetes-preserve-unknown-fields`: nothing below is pruned unless `properties` says more.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`: the value is a whole object with apiVersion, kind and metadata.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// Filled in where the field is absent.
    pub default: Option<Value>,
    /// How elements of a list are told apart when two versions are merged.
    pub list: ListKind,
    /// `x-kubernetes-map-type: atomic` (or `granular` when false): the object is replaced as a whole by server-side apply.
    pub atomic_map: bool,
    /// How strategic merge patch treats the field.
    pub patch: PatchStrategy,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// Value constraints.
    pub limits: Limits,
    /// Value constraints that must all hold.
    pub all_of: Vec<Arc<Schema>>,
    /// Value constraints of which one must hold.
    pub any_of: Vec<Arc<Schema>>,
    /// Value constraints of which exactly one must hold.
    pub one_of: Vec<Arc<Schema>>,
    /// A value constraint that must not hold.
    pub not: Option<Arc<Schema>>,
}

/// A JSON type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// What an object's fields outside `properties` are.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Additional {
    /// Unknown: pruned, or an error under strict validation.
    #[default]
    Closed,
    /// Anything (`additionalProperties: true`).
    Any,
    /// A map whose values have this schema.
    Typed(Arc<Schema>),
}

/// How elements of a list are told apart (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListKind {
    /// The list has one owner and is replaced as a whole.
    #[default]
    Atomic,
    /// Elements are scalars, each owned on its own.
    Set,
    /// Elements are objects told apart by these fields (`x-kubernetes-list-map-keys`).
    Map(Vec<String>),
}

/// Strategic merge patch behaviour of a field (`x-kubernetes-patch-strategy`, `-merge-key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged (by `merge_key` for objects, by value for scalars) instead of replaced.
    pub merge: bool,
    /// Keys absent from the patch are dropped (`retainKeys`).
    pub retain_keys: bool,
    /// The field that identifies a list element.
    pub merge_key: Option<String>,
}

/// One `x-kubernetes-validations` entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// What to tell the user when it is false.
    pub message: Option<String>,
    /// A CEL expression that yields the message.
    pub message_expression: Option<String>,
    /// `FieldValueInvalid` and the like; the first is the default.
    pub reason: Option<String>,
    /// Where under this node the error is reported.
    pub field_path: Option<String>,
    /// Whether a rule over `oldSelf` also runs on creation.
    pub optional_old_self: bool,
}

/// Value constraints of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Fields that must be present.
    pub required: Vec<String>,
    /// The permitted values.
    pub enumeration: Vec<Value>,
    /// `format`, for example `date-time`, `int32`, `byte`.
    pub format: Option<String>,
    /// A regular expression the string must match somewhere.
    pub pattern: Option<String>,
    /// Inclusive (or exclusive) lower bound.
    pub minimum: Option<f64>,
    /// Inclusive (or exclusive) upper bound.
    pub maximum: Option<f64>,
    /// Makes `minimum` exclusive.
    pub exclusive_minimum: bool,
    /// Makes `maximum` exclusive.
    pub exclusive_maximum: bool,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
    /// In characters.
    pub min_length: Option<u64>,
    /// In characters.
    pub max_length: Option<u64>,
    /// Least number of list elements.
    pub min_items: Option<u64>,
    /// Greatest number of list elements.
    pub max_items: Option<u64>,
    /// No two list elements are equal.
    pub unique_items: bool,
    /// Least number of fields.
    pub min_properties: Option<u64>,
    /// Greatest number of fields.
    pub max_properties: Option<u64>,
}

/// A schema document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A keyword has a value of the wrong type.
    #[error("{path}: {keyword} has an unexpected value")]
    Keyword {
        /// Where in the schema.
        path: String,
        /// Which keyword.
        keyword: String,
    },
    /// A `$ref` names nothing.
    #[error("{path}: reference {name} is not defined")]
    MissingReference {
        /// Where in the schema.
        path: String,
        /// The name referred to.
        name: String,
    },
    /// Nesting beyond [`MAX_DEPTH`].
    #[error("{path}: schema is nested too deeply")]
    TooDeep {
        /// Where in the schema.
        path: String,
    },
}

/// Deepest nesting of a schema document that is read.
pub const MAX_DEPTH: usize = 96;

/// Reads schema documents, resolving `$ref`s against a set of definitions and sharing what they name.
pub struct Reader<'a> {
    definitions: Option<&'a Map<String, Value>>,
    read: HashMap<String, Arc<Schema>>,
    open: Vec<String>,
    /// Nodes by [`fingerprint`].
    shared: HashMap<u64, Vec<Arc<Schema>>>,
}

impl<'a> Reader<'a> {
    /// A reader for documents without references (custom resources).
    pub fn standalone() -> Reader<'static> {
        Reader { definitions: None, read: HashMap::new(), open: Vec::new(), shared: HashMap::new() }
    }

    /// A reader that looks `$ref`s up by their last path segment.
    pub fn with_definitions(definitions: &'a Map<String, Value>) -> Self {
        Reader {
            definitions: Some(definitions),
            read: HashMap::new(),
            open: Vec::new(),
            shared: HashMap::new(),
        }
    }

    /// Reads one schema document.
    pub fn read(&mut self, document: &Value) -> Result<Arc<Schema>, SchemaError> {
        self.node(document, "", 0)
    }

    /// Reads a definition by name.
    pub fn definition(&mut self, name: &str) -> Result<Arc<Schema>, SchemaError> {
        self.reference(name, "", 0)
    }

    fn reference(&mut self, name: &str, path: &str, depth: usize) -> Result<Arc<Schema>, SchemaError> {
        if let Some(known) = self.read.get(name) {
            return Ok(known.clone());
        }
        // A type that contains itself (JSONSchemaProps) is opaque below its first recursion.
        if self.open.iter().any(|open| open == name) {
            return Ok(Arc::new(Schema { preserve_unknown: true, ..Schema::default() }));
        }
        let missing = || SchemaError::MissingReference { path: path.to_owned(), name: name.to_owned() };
        let document = self.definitions.and_then(|all| all.get(name)).ok_or_else(missing)?;
        self.open.push(name.to_owned());
        let schema = self.node(document, path, depth + 1);
        self.open.pop();
        let schema = schema?;
        self.read.insert(name.to_owned(), schema.clone());
        Ok(schema)
    }

    fn node(&mut self, document: &Value, path: &str, depth: usize) -> Result<Arc<Schema>, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(SchemaError::TooDeep { path: path.to_owned() });
        }
        let fields = match document {
            Value::Object(fields) => fields,
            // JSON Schema's `true`: anything goes.
            Value::Bool(true) => return Ok(Arc::new(Schema { preserve_unknown: true, ..Schema::default() })),
            _ => return Err(SchemaError::Keyword { path: path.to_owned(), keyword: "schema".into() }),
        };
        let mut schema = match reference_name(fields) {
            Some(name) => (*self.reference(name, path, depth)?).clone(),
            None => Schema::default(),
        };
        for (keyword, value) in fields {
            self.keyword(&mut schema, keyword, value, path, depth)?;
        }
        if schema.int_or_string {
            schema.kind = None;
        }
        Ok(self.share(schema))
    }

    /// Nodes that say the same are held once: a custom kind may repeat a whole template a dozen times.
    fn share(&mut self, schema: Schema) -> Arc<Schema> {
        let alike = self.shared.entry(fingerprint(&schema)).or_default();
        if let Some(known) = alike.iter().find(|known| ***known == schema) {
            return known.clone();
        }
        let schema = Arc::new(schema);
        alike.push(schema.clone());
        schema
    }

    fn keyword(
        &mut self,
        schema: &mut Schema,
        keyword: &str,
        value: &Value,
        path: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        let bad = || SchemaError::Keyword { path: path.to_owned(), keyword: keyword.to_owned() };
        let text = || value.as_str().map(str::to_owned).ok_or_else(bad);
        let flag = || value.as_bool().ok_or_else(bad);
        let count = || value.as_u64().ok_or_else(bad);
        let number = || value.as_f64().ok_or_else(bad);
        let limits = &mut schema.limits;
        match keyword {
            "type" => read_type(schema, value).ok_or_else(bad)?,
            "nullable" => schema.nullable |= flag()?,
            "properties" => {
                for (name, document) in value.as_object().ok_or_else(bad)? {
                    let child = self.node(document, &format!("{path}.{name}"), depth + 1)?;
                    schema.properties.insert(name.clone(), child);
                }
            }
            "additionalProperties" => {
                schema.additional = match value {
                    Value::Bool(false) => Additional::Closed,
                    Value::Bool(true) => Additional::Any,
                    document => Additional::Typed(self.node(document, &format!("{path}.*"), depth + 1)?),
                }
            }
            "items" => schema.items = Some(self.node(value, &format!("{path}[*]"), depth + 1)?),
            "default" => schema.default = Some(value.clone()),
            "allOf" => self.all_of(schema, value.as_array().ok_or_else(bad)?, path, depth)?,
            "anyOf" => schema.any_of = self.nodes(value.as_array().ok_or_else(bad)?, path, depth)?,
            "oneOf" => schema.one_of = self.nodes(value.as_array().ok_or_else(bad)?, path, depth)?,
            "not" => schema.not = Some(self.node(value, path, depth + 1)?),
            "x-kubernetes-preserve-unknown-fields" => schema.preserve_unknown = flag()?,
            "x-kubernetes-embedded-resource" => schema.embedded_resource = flag()?,
            "x-kubernetes-int-or-string" => schema.int_or_string = flag()?,
            "x-kubernetes-list-type" => match value.as_str() {
                Some("atomic") => schema.list = ListKind::Atomic,
                Some("set") => schema.list = ListKind::Set,
                // The keys stand in their own keyword, which may have come first.
                Some("map") => {
                    if !matches!(schema.list, ListKind::Map(_)) {
                        schema.list = ListKind::Map(Vec::new());
                    }
                }
                _ => return Err(bad()),
            },
            "x-kubernetes-list-map-keys" => schema.list = ListKind::Map(strings(value).ok_or_else(bad)?),
            "x-kubernetes-map-type" => schema.atomic_map = value == "atomic",
            "x-kubernetes-patch-strategy" => {
                for strategy in value.as_str().ok_or_else(bad)?.split(',') {
                    match strategy.trim() {
                        "merge" => schema.patch.merge = true,
                        "retainKeys" => schema.patch.retain_keys = true,
                        _ => {}
                    }
                }
            }
            "x-kubernetes-patch-merge-key" => schema.patch.merge_key = Some(text()?),
            "x-kubernetes-validations" => {
                schema.rules = value.as_array().ok_or_else(bad)?.iter().map(read_rule).collect();
            }
            "required" => limits.required = strings(value).ok_or_else(bad)?,
            "enum" => limits.enumeration = value.as_array().ok_or_else(bad)?.clone(),
            "const" => limits.enumeration = vec![value.clone()],
            "format" => limits.format = Some(text()?),
            "pattern" => limits.pattern = Some(text()?),
            "minimum" => limits.minimum = Some(number()?),
            "maximum" => limits.maximum = Some(number()?),
            "exclusiveMinimum" => limits.exclusive_minimum = flag()?,
            "exclusiveMaximum" => limits.exclusive_maximum = flag()?,
            "multipleOf" => limits.multiple_of = Some(number()?),
            "minLength" => limits.min_length = Some(count()?),
            "maxLength" => limits.max_length = Some(count()?),
            "minItems" => limits.min_items = Some(count()?),
            "maxItems" => limits.max_items = Some(count()?),
            "uniqueItems" => limits.unique_items = flag()?,
            "minProperties" => limits.min_properties = Some(count()?),
            "maxProperties" => limits.max_properties = Some(count()?),
            _ => {}
        }
        Ok(())
    }

    /// OpenAPI cannot put text beside a `$ref`, so a lone reference inside `allOf` stands for the node itself.
    fn all_of(
        &mut self,
        schema: &mut Schema,
        parts: &[Value],
        path: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if let [Value::Object(only)] = parts
            && let Some(name) = reference_name(only)
        {
            let named = self.reference(name, path, depth)?;
            let outer = std::mem::replace(schema, (*named).clone());

            schema.default = outer.default.or(schema.default.take());
            schema.nullable |= outer.nullable;
            if outer.patch != PatchStrategy::default() {
                schema.patch = outer.patch;
            }
            return Ok(());
        }
        schema.all_of = self.nodes(parts, path, depth)?;
        Ok(())
    }

    fn nodes(&mut self, parts: &[Value], path: &str, depth: usize) -> Result<Vec<Arc<Schema>>, SchemaError> {
        parts.iter().map(|part| self.node(part, path, depth + 1)).collect()
    }
}

/// A number that nodes which say the same share. Children have been shared before, so their addresses stand for them.
fn fingerprint(schema: &Schema) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, node) in &schema.properties {
        (name, Arc::as_ptr(node)).hash(&mut hasher);
    }
    let additional = match &schema.additional {
        Additional::Typed(node) => Some(node),
        Additional::Closed | Additional::Any => None,
    };
    let children = additional.into_iter().chain(&schema.items).chain(&schema.not);
    let parts = schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of);
    children.chain(parts).for_each(|node| Arc::as_ptr(node).hash(&mut hasher));
    let limits = &schema.limits;
    (&limits.required, &limits.format, &limits.pattern, limits.max_length, limits.max_items)
        .hash(&mut hasher);
    (schema.nullable, schema.preserve_unknown, schema.int_or_string, schema.kind).hash(&mut hasher);
    hasher.finish()
}

fn reference_name(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("$ref")?.as_str()?.rsplit('/').next()
}

/// `type` is a name, or (JSON Schema) a list of names in which `null` means nullable.
fn read_type(schema: &mut Schema, value: &Value) -> Option<()> {
    match value {
        Value::String(name) => schema.kind = Some(kind(name)?),
        Value::Array(names) => {
            for name in names {
                match name.as_str()? {
                    "null" => schema.nullable = true,
                    name => schema.kind = Some(kind(name)?),
                }
            }
        }
        _ => return None,
    }
    Some(())
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => return None,
    })
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn read_rule(value: &Value) -> Rule {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    Rule {
        rule: text("rule").unwrap_or_default(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: text("reason"),
        field_path: text("fieldPath"),
        optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false),
    }
}
