//! Which parts of an object are owned as one, and what tells list elements apart.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::element::Element;
use crate::model::{Additional, Kind, ListKind, Schema};

/// Deepest nesting that is told apart; below it values are owned as one.
const DEEPEST: usize = 120;

/// The type of a value: a schema node, or nothing at all, where the value itself must tell.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    schema: Option<&'a Schema>,
    /// An ancestor preserves unknown fields, so none is undeclared.
    open: bool,
    root: bool,
    depth: usize,
}

/// How a value is taken apart.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// Not at all: a scalar, or something owned as one.
    Leaf,
    /// Field by field.
    Map,
    /// A list of scalars, by value.
    Set,
    /// A list of objects, by these fields.
    List(&'a [String]),
}

impl Shape<'_> {
    pub(crate) fn alike(&self, other: &Shape<'_>) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A field's type, and how the schema came to know it.
pub(crate) struct Field<'a> {
    pub(crate) ty: Type<'a>,
    /// Named in the schema, rather than one entry of a map.
    pub(crate) named: bool,
    /// Neither named nor admitted.
    pub(crate) undeclared: bool,
}

impl<'a> Type<'a> {
    /// The type of a whole object.
    pub(crate) fn root(schema: &'a Schema) -> Self {
        Type { schema: Some(schema), open: schema.preserve_unknown, root: true, depth: 0 }
    }

    /// How the value is taken apart.
    pub(crate) fn shape(&self, value: &Value) -> Shape<'a> {
        if self.depth > DEEPEST {
            return Shape::Leaf;
        }
        let Some(schema) = self.schema else {
            // Without a schema objects are granular and lists are not.
            return if value.is_object() { Shape::Map } else { Shape::Leaf };
        };
        match value {
            Value::Object(_) if schema.atomic_map => Shape::Leaf,
            Value::Object(_) if matches!(schema.kind, None | Some(Kind::Object)) => Shape::Map,
            Value::Array(_) if matches!(schema.kind, None | Some(Kind::Array)) => match &schema.list {
                ListKind::Map(keys) if !keys.is_empty() => Shape::List(keys),
                ListKind::Set => Shape::Set,
                _ => Shape::Leaf,
            },
            _ => Shape::Leaf,
        }
    }

    /// Whether the schema says outright that the value is owned as one.
    pub(crate) fn is_atomic(&self) -> bool {
        let Some(schema) = self.schema else { return false };
        match schema.kind {
            Some(Kind::Object) => schema.atomic_map,
            Some(Kind::Array) => match &schema.list {
                ListKind::Atomic => true,
                ListKind::Set => false,
                ListKind::Map(keys) => keys.is_empty(),
            },
            _ => false,
        }
    }

    /// Whether `null` is a value here.
    pub(crate) fn admits_null(&self) -> bool {
        self.schema.is_none_or(|schema| schema.nullable)
    }

    /// The JSON type the schema asks for.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.schema.filter(|schema| !schema.int_or_string).and_then(|schema| schema.kind)
    }

    /// Whether any scalar will do where the kind says string: formats such as `int-or-string` and quantities.
    pub(crate) fn loose(&self) -> bool {
        self.schema.is_some_and(|schema| {
            schema.int_or_string || schema.limits.format.as_deref().is_some_and(|format| format != "byte")
        })
    }

    /// The type of a field.
    pub(crate) fn field(&self, name: &str) -> Field<'a> {
        if self.root {
            match name {
                "metadata" => {
                    return Field { ty: self.below(Some(&METADATA), false), named: true, undeclared: false };
                }
                "apiVersion" | "kind" => {
                    return Field { ty: self.below(Some(&TEXT), false), named: true, undeclared: false };
                }
                _ => {}
            }
        }
        let Some(schema) = self.schema else {
            return Field { ty: self.below(None, false), named: false, undeclared: false };
        };
        if let Some(known) = schema.properties.get(name) {
            return Field { ty: self.below(Some(known), false), named: true, undeclared: false };
        }
        match &schema.additional {
            Additional::Typed(values) => {
                Field { ty: self.below(Some(values), false), named: false, undeclared: false }
            }
            Additional::Any => Field { ty: self.below(None, false), named: false, undeclared: false },
            Additional::Closed => {
                let admitted = self.open || schema.properties.is_empty();
                Field { ty: self.below(None, false), named: false, undeclared: !admitted }
            }
        }
    }

    /// The type of a list's elements.
    pub(crate) fn item(&self) -> Type<'a> {
        self.below(self.schema.and_then(|schema| schema.items.as_deref()), false)
    }

    fn below(&self, schema: Option<&'a Schema>, open: bool) -> Type<'a> {
        let open = open || self.open || schema.is_some_and(|schema| schema.preserve_unknown);
        Type { schema, open, root: false, depth: self.depth + 1 }
    }

    /// What tells a list element apart; the type is the list's.
    pub(crate) fn element(&self, shape: Shape<'a>, item: &Value) -> Result<Element, String> {
        match shape {
            Shape::List(keys) => self.keyed(keys, item),
            Shape::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(Element::Value(scalar.clone())),
            },
            Shape::Leaf | Shape::Map => Err("invalid indexing of non-associative list".into()),
        }
    }

    fn keyed(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let properties = self.schema.and_then(|schema| schema.items.as_deref()).map(|item| &item.properties);
        let default = |key: &String| properties?.get(key)?.default.as_ref();
        let mut found: Vec<(String, Value)> = keys
            .iter()
            .filter_map(|key| Some((key.clone(), fields.get(key).or_else(|| default(key))?.clone())))
            .collect();
        if found.is_empty() {
            let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(found))
    }
}

static TEXT: LazyLock<Schema> = LazyLock::new(|| scalar(Kind::String));

/// Object metadata has one type everywhere, and custom resources' schemas do not spell it out.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let text_map = || Schema {
        kind: Some(Kind::Object),
        additional: Additional::Typed(Arc::new(scalar(Kind::String))),
        ..Schema::default()
    };
    let list = |list: ListKind, item: Schema| Schema {
        kind: Some(Kind::Array),
        list,
        items: Some(Arc::new(item)),
        ..Schema::default()
    };
    let owner = Schema {
        kind: Some(Kind::Object),
        atomic_map: true,
        properties: ["apiVersion", "kind", "name", "uid"]
            .map(|name| (name.to_owned(), Arc::new(scalar(Kind::String))))
            .into_iter()
            .chain(
                ["blockOwnerDeletion", "controller"]
                    .map(|name| (name.to_owned(), Arc::new(scalar(Kind::Boolean)))),
            )
            .collect(),
        ..Schema::default()
    };
    let texts = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let mut properties: std::collections::BTreeMap<String, Arc<Schema>> =
        texts.map(|name| (name.to_owned(), Arc::new(scalar(Kind::String)))).into_iter().collect();
    let whole = Arc::new(scalar(Kind::Integer));
    properties.insert("generation".into(), whole.clone());
    properties.insert("deletionGracePeriodSeconds".into(), whole);
    properties.insert("labels".into(), Arc::new(text_map()));
    properties.insert("annotations".into(), Arc::new(text_map()));
    properties.insert("finalizers".into(), Arc::new(list(ListKind::Set, scalar(Kind::String))));
    properties.insert("ownerReferences".into(), Arc::new(list(ListKind::Map(vec!["uid".into()]), owner)));
    let opaque = Schema { preserve_unknown: true, ..Schema::default() };
    properties.insert("managedFields".into(), Arc::new(list(ListKind::Atomic, opaque)));
    Schema { kind: Some(Kind::Object), properties, ..Schema::default() }
});

fn scalar(kind: Kind) -> Schema {
    Schema { kind: Some(kind), ..Schema::default() }
}
