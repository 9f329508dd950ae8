//! `x-kubernetes-validations`: compiling the rules of a schema once and evaluating them per object.

mod budget;
mod library;
mod meter;
mod names;
mod program;
mod quantity;
mod scan;
mod stack;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::error::{FieldError, Problem};
use crate::model::{Additional, Kind, ListKind, Rule, Schema};
use crate::path::Path;
use crate::validate::{MOST_ERRORS, kind_name};
use budget::Budget;
use program::Program;

/// The compiled rules of a schema.
///
/// # Guarantees
/// Evaluation is bounded whatever the rules and the object: it stops with an error when its budget is used up.
#[derive(Debug)]
pub struct Rules {
    root: Option<Node>,
}

/// Rules at one node and below; nodes without any are left out.
#[derive(Debug)]
struct Node {
    schema: Arc<Schema>,
    /// Rules see `apiVersion`, `kind` and the name in `metadata` here.
    whole_resource: bool,
    rules: Vec<Compiled>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    all_of: Vec<Node>,
}

#[derive(Debug)]
struct Compiled {
    rule: Rule,
    program: Program,
    message: Option<Program>,
    uses_old: bool,
}

impl Rules {
    /// Compiles every rule of the schema.
    ///
    /// # Errors
    /// One error for each rule or message expression that does not compile, with its path in the schema.
    pub fn compile(schema: &Arc<Schema>) -> Result<Rules, Vec<FieldError>> {
        let mut builder = Builder { errors: Vec::new(), has_rules: HashMap::new() };
        let root = builder.node(schema, schema, true, "");
        if builder.errors.is_empty() { Ok(Rules { root }) } else { Err(builder.errors) }
    }

    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The errors of the rules that do not hold. Transition rules run where `old` has a counterpart.
    pub fn evaluate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut run = Run { errors: Vec::new(), budget: Arc::new(Budget::default()) };
        if let Some(root) = &self.root {
            run.node(root, object, old, old, &Path::Root);
        }
        run.errors
    }
}

/// Whether an expression reads `oldSelf`; `false` for one that does not compile.
pub(crate) fn uses_old_self(rule: &str) -> bool {
    Program::compile(rule, &Schema::default(), true).is_ok_and(|program| program.uses_old_self())
}

struct Builder {
    errors: Vec<FieldError>,
    has_rules: HashMap<*const Schema, bool>,
}

impl Builder {
    /// `from` carries the rules, `node` says what the value looks like; they differ inside `allOf`.
    fn node(&mut self, from: &Schema, node: &Arc<Schema>, whole: bool, path: &str) -> Option<Node> {
        if !self.any_rules(from) {
            return None;
        }
        let at = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
        let mut built = Node {
            schema: node.clone(),
            whole_resource: whole,
            rules: Vec::new(),
            properties: BTreeMap::new(),
            additional: None,
            items: None,
            all_of: Vec::new(),
        };
        for (index, rule) in from.rules.iter().enumerate() {
            let path = at(&format!("x-kubernetes-validations[{index}]"));
            built.rules.extend(self.rule(rule, node, whole, &path));
        }
        for (name, below) in &from.properties {
            if let Some(spine) = node.properties.get(name)
                && let Some(child) =
                    self.node(below, spine, spine.embedded_resource, &at(&format!("properties[{name}]")))
            {
                built.properties.insert(name.clone(), child);
            }
        }
        if let (Additional::Typed(below), Additional::Typed(spine)) = (&from.additional, &node.additional) {
            let path = at("additionalProperties");
            built.additional = self.node(below, spine, spine.embedded_resource, &path).map(Box::new);
        }
        if let (Some(below), Some(spine)) = (&from.items, &node.items) {
            built.items = self.node(below, spine, spine.embedded_resource, &at("items")).map(Box::new);
        }
        for (index, part) in from.all_of.iter().enumerate() {
            built.all_of.extend(self.node(part, node, whole, &at(&format!("allOf[{index}]"))));
        }
        Some(built)
    }

    fn rule(&mut self, rule: &Rule, schema: &Schema, whole: bool, path: &str) -> Option<Compiled> {
        if rule.rule.trim().is_empty() {
            self.errors.push(FieldError::required(format!("{path}.rule"), "rule is not specified"));
            return None;
        }
        let program = self.program(&rule.rule, schema, whole, &format!("{path}.rule"));
        let message = match rule.message_expression.as_deref().map(str::trim) {
            None => None,
            Some("") => {
                let path = format!("{path}.messageExpression");
                self.errors
                    .push(FieldError::required(path, "messageExpression must be non-empty if specified"));
                None
            }
            Some(text) => self.program(text, schema, whole, &format!("{path}.messageExpression")),
        };
        let program = program?;
        if !program.may_be(Kind::Boolean) {
            let detail = "cel expression must evaluate to a bool";
            self.errors.push(FieldError::invalid(format!("{path}.rule"), rule.rule.as_str(), detail));
        }
        if message.as_ref().is_some_and(|message| !message.may_be(Kind::String)) {
            let text = rule.message_expression.as_deref().unwrap_or_default();
            let detail = "messageExpression must evaluate to a string";
            self.errors.push(FieldError::invalid(format!("{path}.messageExpression"), text, detail));
        }
        let uses_old = program.uses_old_self();
        Some(Compiled { rule: rule.clone(), program, message, uses_old })
    }

    fn program(&mut self, text: &str, schema: &Schema, whole: bool, path: &str) -> Option<Program> {
        match Program::compile(text, schema, whole) {
            Ok(program) => Some(program),
            Err(error) => {
                self.errors.push(FieldError::invalid(path, text, error));
                None
            }
        }
    }

    fn any_rules(&mut self, schema: &Schema) -> bool {
        let key = std::ptr::from_ref(schema);
        if let Some(known) = self.has_rules.get(&key) {
            return *known;
        }
        let typed = match &schema.additional {
            Additional::Typed(values) => Some(values),
            _ => None,
        };
        let below = schema.properties.values().chain(&schema.items).chain(typed).chain(&schema.all_of);
        let any = !schema.rules.is_empty() || below.into_iter().any(|child| self.any_rules(child));
        self.has_rules.insert(key, any);
        any
    }
}

struct Run {
    errors: Vec<FieldError>,
    budget: Arc<Budget>,
}

impl Run {
    /// `old` is what `oldSelf` is; `before` is what the value is compared with to tolerate what has not changed. They
    /// differ in lists that cannot tell their elements apart.
    fn node(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        before: Option<&Value>,
        path: &Path<'_>,
    ) {
        if value.is_null() || self.budget.is_spent() || self.errors.len() >= MOST_ERRORS {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(node, value, old, before, path);
        for part in &node.all_of {
            self.node(part, value, old, None, path);
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    let before = before.and_then(|before| before.get(name));
                    if let Some(child) = node.properties.get(name) {
                        self.node(child, value, old, before, &path.field(name));
                    } else if let Some(child) = &node.additional
                        && !node.schema.properties.contains_key(name)
                    {
                        self.node(child, value, old, before, &path.key(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &node.items else { return };
                let old_items = old.and_then(Value::as_array);
                let unchanged = before == Some(value);
                for (at, item) in items.iter().enumerate() {
                    let old = old_items.and_then(|old| counterpart(&node.schema.list, old, item));
                    let before = if unchanged { Some(item) } else { old };
                    self.node(child, item, old, before, &path.index(at));
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        before: Option<&Value>,
        path: &Path<'_>,
    ) {
        if node.rules.is_empty() {
            return;
        }
        let whole = node.whole_resource;
        let this = values::to_cel(&node.schema, value, whole);
        let before_this = node
            .rules
            .iter()
            .any(|rule| rule.uses_old)
            .then(|| old.map(|old| values::to_cel(&node.schema, old, whole)))
            .flatten();
        for rule in &node.rules {
            let optional = rule.rule.optional_old_self;
            if rule.uses_old && old.is_none() && !optional {
                continue;
            }
            let old_value =
                if optional { Some(values::optional(before_this.clone())) } else { before_this.clone() };
            match rule.program.evaluate(&self.budget, &this, old_value.as_ref()) {
                Ok(cel::Value::Bool(true)) => {}
                Ok(_) => {
                    // What has not changed was accepted once; only rules about the change itself speak up.
                    if rule.uses_old || before != Some(value) {
                        let message = self.message(rule, &this, old_value.as_ref());
                        self.errors.push(failure(node, &rule.rule, value, message, path));
                    }
                }
                Err(error) => {
                    let text = source(&rule.rule);
                    let detail = if self.budget.is_spent() {
                        format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {text}"
                        )
                    } else {
                        format!("{error} evaluating rule: {text}")
                    };
                    self.errors.push(FieldError::invalid(path.bracketed(), type_name(&node.schema), detail));
                }
            }
            if self.budget.is_spent() {
                return;
            }
        }
    }

    /// What the message expression yields, where it yields something fit to show.
    fn message(&self, rule: &Compiled, this: &cel::Value, old: Option<&cel::Value>) -> String {
        const LONGEST: usize = 5 * 1024;
        let default = || match rule.rule.message.as_deref().map(str::trim) {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("failed rule: {}", source(&rule.rule)),
        };
        let Some(program) = &rule.message else { return default() };
        match program.evaluate(&self.budget, this, old) {
            Ok(cel::Value::String(text)) => {
                let text = text.trim();
                let fit = !text.is_empty() && text.len() <= LONGEST && !text.contains('\n');
                if fit { text.to_owned() } else { default() }
            }
            _ => default(),
        }
    }
}

fn source(rule: &Rule) -> &str {
    match rule.message.as_deref().map(str::trim) {
        Some(message) if !message.is_empty() => message,
        _ => rule.rule.trim(),
    }
}

fn failure(node: &Node, rule: &Rule, value: &Value, detail: String, path: &Path<'_>) -> FieldError {
    let mut at = path.bracketed();
    if let Some(below) = &rule.field_path {
        at.push_str(below.trim());
        at = at.trim_start_matches('.').to_owned();
    }
    let composite = matches!(node.schema.kind, Some(Kind::Object | Kind::Array));
    let problem = match rule.reason.as_deref() {
        Some("FieldValueForbidden") => Problem::Forbidden,
        Some("FieldValueRequired") => Problem::Required,
        Some("FieldValueDuplicate") if composite => Problem::DuplicateUnshown,
        Some("FieldValueDuplicate") => Problem::Duplicate(value.clone()),
        _ if composite => Problem::InvalidUnshown,
        _ => Problem::Invalid(value.clone()),
    };
    // A duplicate speaks for itself: upstream drops the rule's message.
    let duplicate = matches!(problem, Problem::Duplicate(_) | Problem::DuplicateUnshown);
    let detail = if duplicate { String::new() } else { detail };
    FieldError { path: at, problem, detail }
}

fn type_name(schema: &Schema) -> &'static str {
    schema.kind.map_or("", kind_name)
}

/// The old element this one stands for: only keyed lists can tell.
fn counterpart<'o>(list: &ListKind, old: &'o [Value], item: &Value) -> Option<&'o Value> {
    match list {
        ListKind::Map(keys) if !keys.is_empty() => {
            old.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
        }
        _ => None,
    }
}
