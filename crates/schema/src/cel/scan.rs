//! What is checked and changed in an expression before it is kept.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::meter::{JOIN, METER, REPLACE};
use super::names::escape;
use crate::model::{Additional, Kind, Schema};

/// Deepest nesting of an expression tree; evaluation recurses over it.
const DEEPEST: usize = 1000;

/// Names before a dot that are no variables.
const NAMESPACES: [&str; 2] = ["optional", "sets"];

/// Types as values.
const TYPES: [&str; 12] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint", "google"];

/// Functions and methods an expression may call.
const FUNCTIONS: &str = " add asApproximateFloat asInteger bool bytes charAt compareTo contains distinct double duration dyn \
    endsWith equivalent find findAll flatten format getDate getDayOfMonth getDayOfWeek getDayOfYear \
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds hasValue indexOf int \
    intersects isCIDR isGreaterThan isIP isInteger isLessThan isQuantity isSorted isURL join \
    lastIndexOf lowerAscii matches max min none of ofNonZeroValue optFlatMap optMap or orValue \
    quantity replace reverse size slice sort sortBy split startsWith string sub substring sum \
    timestamp trim type uint upperAscii value ";

/// Something an expression may not say, and the node that says it.
pub(super) struct Fault {
    pub(super) node: u64,
    pub(super) message: String,
}

/// What there is to know of an expression.
pub(super) struct Found {
    pub(super) uses_old: bool,
    pub(super) depth: usize,
}

/// Checks that the expression names only what exists, and puts meters in.
pub(super) fn check_and_meter(
    expression: &mut IdedExpr,
    schema: &Schema,
    whole_resource: bool,
) -> Result<Found, Fault> {
    let found = Found { uses_old: false, depth: 0 };
    let mut scan = Scan { schema, whole_resource, bound: Vec::new(), found };
    scan.expression(expression, 0)?;
    Ok(scan.found)
}

struct Scan<'s> {
    schema: &'s Schema,
    whole_resource: bool,
    /// Loop variables in scope, with the schema of what they stand for where it is known.
    bound: Vec<(String, Option<&'s Schema>)>,
    found: Found,
}

impl<'s> Scan<'s> {
    fn expression(&mut self, node: &mut IdedExpr, depth: usize) -> Result<(), Fault> {
        let fault = |message: String| Fault { node: node.id, message };
        if depth > DEEPEST {
            return Err(fault("expression is nested too deeply".to_owned()));
        }
        self.found.depth = self.found.depth.max(depth);
        self.known_field(&node.expr).map_err(fault)?;
        match &mut node.expr {
            Expr::Unspecified => return Err(fault("expression is incomplete".to_owned())),
            Expr::Literal(_) => {}
            Expr::Ident(name) => self.identifier(name).map_err(fault)?,
            Expr::Select(select) => self.expression(&mut select.operand, depth + 1)?,
            Expr::List(list) => {
                for element in &mut list.elements {
                    self.expression(element, depth + 1)?;
                }
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.expression(&mut entry.key, depth + 1)?;
                        self.expression(&mut entry.value, depth + 1)?;
                    }
                }
            }
            Expr::Struct(literal) => return Err(fault(undeclared(&literal.type_name))),
            Expr::Call(call) => {
                known_function(&call.func_name).map_err(fault)?;
                self.comparable(call).map_err(fault)?;
                self.call(call, depth)?;
            }
            Expr::Comprehension(comprehension) => {
                let element = self.schema_of(&comprehension.iter_range.expr).and_then(element_schema);
                self.expression(&mut comprehension.iter_range, depth + 1)?;
                meter(&mut comprehension.iter_range);
                self.expression(&mut comprehension.accu_init, depth + 1)?;
                let outside = self.bound.len();
                self.bound.push((comprehension.accu_var.clone(), None));
                self.bound.push((comprehension.iter_var.clone(), element));
                self.bound.extend(comprehension.iter_var2.clone().map(|name| (name, None)));
                self.expression(&mut comprehension.loop_cond, depth + 1)?;
                self.expression(&mut comprehension.loop_step, depth + 1)?;
                self.expression(&mut comprehension.result, depth + 1)?;
                self.bound.truncate(outside);
            }
        }
        if self.builds(&node.expr) {
            meter(node);
        }
        Ok(())
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<(), Fault> {
        if let Some(target) = &mut call.target {
            let namespace = matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()));
            if !namespace {
                self.expression(target, depth + 1)?;
            }
        }
        for argument in &mut call.args {
            self.expression(argument, depth + 1)?;
        }
        if call.target.is_some() {
            match call.func_name.as_str() {
                "replace" => call.func_name = REPLACE.to_owned(),
                "join" => call.func_name = JOIN.to_owned(),
                _ => {}
            }
        }
        Ok(())
    }

    /// `+` over strings and lists builds a new one each time. What a macro appends to its own result is excepted: its
    /// range has been charged already.
    fn builds(&self, node: &Expr) -> bool {
        let Expr::Call(call) = node else { return false };
        let onto_result = matches!(call.args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if name.starts_with('@'));
        call.func_name == operators::ADD && !onto_result
    }

    fn identifier(&mut self, name: &str) -> Result<(), String> {
        match name {
            "self" => Ok(()),
            "oldSelf" => {
                self.found.uses_old = true;
                Ok(())
            }
            _ if TYPES.contains(&name) || self.bound.iter().any(|(bound, _)| bound == name) => Ok(()),
            _ => Err(undeclared(name)),
        }
    }

    fn known_field(&self, node: &Expr) -> Result<(), String> {
        let Expr::Select(select) = node else { return Ok(()) };
        let Some(schema) = self.schema_of(&select.operand.expr) else { return Ok(()) };
        let described = !schema.properties.is_empty() && schema.additional == Additional::Closed;
        let whole = schema.embedded_resource || (self.whole_resource && std::ptr::eq(schema, self.schema));
        let of_resource = whole && matches!(select.field.as_str(), "apiVersion" | "kind" | "metadata");
        if described && !schema.embedded_resource && !of_resource && property(schema, &select.field).is_none()
        {
            return Err(format!("undefined field '{}'", select.field));
        }
        Ok(())
    }

    /// Comparisons of scalars whose types show and never match. The rest is found when the rule is evaluated.
    fn comparable(&self, call: &CallExpr) -> Result<(), String> {
        let ordering =
            [operators::LESS, operators::LESS_EQUALS, operators::GREATER, operators::GREATER_EQUALS];
        let ordered = ordering.contains(&call.func_name.as_str());
        let equality = [operators::EQUALS, operators::NOT_EQUALS].contains(&call.func_name.as_str());
        let [left, right] = call.args.as_slice() else { return Ok(()) };
        let (Some(left), Some(right)) = (self.scalar(&left.expr), self.scalar(&right.expr)) else {
            return Ok(());
        };
        let numbers = [left, right].iter().all(|name| matches!(*name, "int" | "double"));
        if (!ordered && !equality) || left == right || (ordered && numbers) {
            return Ok(());
        }
        Err(format!("found no matching overload for '{}' applied to '({left}, {right})'", call.func_name))
    }

    /// The CEL type of a literal or a field, where it is a plain scalar.
    fn scalar(&self, node: &Expr) -> Option<&'static str> {
        let schema = self.schema_of(node);
        // Formats make other types of strings.
        let plain = schema.is_none_or(|schema| schema.limits.format.is_none());
        match schema.map_or_else(|| evident_kind(node, &Schema::default()), |schema| schema.kind)? {
            Kind::String if plain => Some("string"),
            Kind::Integer => Some("int"),
            Kind::Number => Some("double"),
            Kind::Boolean => Some("bool"),
            _ => None,
        }
    }

    /// The schema of what a chain of selections from `self` or `oldSelf` stands for.
    fn schema_of(&self, node: &Expr) -> Option<&'s Schema> {
        match node {
            Expr::Ident(name) => {
                if let Some((_, schema)) = self.bound.iter().rev().find(|(bound, _)| bound == name) {
                    return *schema;
                }
                (name == "self").then_some(self.schema)
            }
            Expr::Select(select) if !select.test => {
                let below = self.schema_of(&select.operand.expr)?;
                let whole =
                    below.embedded_resource || (self.whole_resource && std::ptr::eq(below, self.schema));
                if whole && select.field == "metadata" {
                    return None;
                }
                property(below, &select.field)
            }
            Expr::Call(call) if call.func_name == METER => self.schema_of(&call.args.first()?.expr),
            _ => None,
        }
    }
}

fn known_function(name: &str) -> Result<(), String> {
    let operator = !name.starts_with(|first: char| first.is_ascii_alphabetic());
    let last = name.rsplit('.').next().unwrap_or(name);
    if operator || FUNCTIONS.contains(&format!(" {last} ")) { Ok(()) } else { Err(undeclared(name)) }
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

/// The type of an expression's value, where it shows without inference.
pub(super) fn evident_kind(node: &Expr, schema: &Schema) -> Option<Kind> {
    match node {
        Expr::Literal(LiteralValue::Boolean(_)) => Some(Kind::Boolean),
        Expr::Literal(LiteralValue::String(_)) => Some(Kind::String),
        Expr::Literal(LiteralValue::Int(_) | LiteralValue::UInt(_)) => Some(Kind::Integer),
        Expr::Literal(LiteralValue::Double(_)) => Some(Kind::Number),
        Expr::List(_) => Some(Kind::Array),
        Expr::Map(_) => Some(Kind::Object),
        Expr::Call(call) => match call.func_name.as_str() {
            "size" => Some(Kind::Integer),
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_" => evident_kind(&call.args.first()?.expr, schema),
            _ => None,
        },
        _ => selected(node, schema)?.kind,
    }
}

/// The schema of `self` or of a field below it.
fn selected<'s>(node: &Expr, schema: &'s Schema) -> Option<&'s Schema> {
    match node {
        Expr::Ident(name) if name == "self" => Some(schema),
        Expr::Select(select) if !select.test => {
            property(selected(&select.operand.expr, schema)?, &select.field)
        }
        _ => None,
    }
}

fn property<'s>(schema: &'s Schema, identifier: &str) -> Option<&'s Schema> {
    if let Some(property) = schema.properties.get(identifier) {
        return Some(property);
    }
    let escaped = schema.properties.iter().find(|(name, _)| escape(name).as_deref() == Some(identifier));
    escaped.map(|(_, property)| &**property)
}

/// Iterating over a list yields its items; over a map, its keys.
fn element_schema(schema: &Schema) -> Option<&Schema> {
    schema.items.as_deref()
}

fn meter(node: &mut IdedExpr) {
    let inner = std::mem::take(node);
    let id = inner.id;
    node.id = id;
    node.expr = Expr::Call(CallExpr { func_name: METER.to_owned(), target: None, args: vec![inner] });
}
