//! The second child of a matrix, filled in with parameters of the first.

use serde_json::{Map, Value};

use crate::Params;
use crate::engine::Engine;
use crate::error::{RenderError, Subject};
use crate::limits::Budget;
use crate::skeleton::{Compiler, Node, Skeleton};

/// Generators whose `values` are rendered again by the generator itself.
const WITH_VALUES: [&str; 6] =
    ["git", "clusters", "scmProvider", "pullRequest", "plugin", "clusterDecisionResource"];

/// A generator, compiled to be filled in for many sets of parameters.
///
/// Everything in it is rendered, keys of maps and free-form elements included, except what is decided on the text as
/// written: its own `selector` (selectors inside nested generators are rendered) and `template`s, which generators
/// inside a matrix do not use. Entries of `values` that lack a key keep their text, for they may name parameters that
/// the generator is about to make.
#[derive(Debug)]
pub struct Interpolation {
    skeleton: Skeleton,
    generator: Value,
}

/// Fills in one generator, given as JSON.
///
/// # Errors
/// When a string in it is no template of the language, or cannot be rendered.
pub fn interpolate(engine: &Engine, generator: &Value, params: &Params) -> Result<Value, RenderError> {
    if params.is_empty() {
        return Ok(generator.clone());
    }
    Interpolation::compile(engine, generator)?.render(params)
}

// === impl Interpolation ===

impl Interpolation {
    /// Compiles a generator given as JSON.
    ///
    /// # Errors
    /// When a string in it is no template of the language.
    pub fn compile(engine: &Engine, generator: &Value) -> Result<Interpolation, RenderError> {
        let mut compiler = Compiler::new(engine, Subject::Generator);
        let root = node(&mut compiler, generator, true, 0)?;
        Ok(Interpolation { skeleton: compiler.finish(root), generator: generator.clone() })
    }

    /// The generator for one set of parameters; an empty set leaves it as it is.
    ///
    /// # Errors
    /// When an expression cannot be evaluated or a limit is reached.
    pub fn render(&self, params: &Params) -> Result<Value, RenderError> {
        if params.is_empty() {
            return Ok(self.generator.clone());
        }
        self.skeleton.render(params, &mut Budget::new())
    }
}

fn node(
    compiler: &mut Compiler,
    generator: &Value,
    outermost: bool,
    depth: usize,
) -> Result<Node, RenderError> {
    let Value::Object(fields) = generator else { return compiler.value(generator, None, depth) };
    compiler.fields(fields, depth, |compiler, name, value| match (name, value) {
        ("selector", selector) if outermost => Ok(Node::Copy(selector.clone())),
        ("matrix" | "merge", Value::Object(fields)) => combination(compiler, fields, depth + 1),
        (name, Value::Object(fields)) if name == "list" || WITH_VALUES.contains(&name) => {
            kind(compiler, name, fields, depth + 1)
        }
        (_, value) => compiler.value(value, None, depth + 1),
    })
}

fn combination(
    compiler: &mut Compiler,
    fields: &Map<String, Value>,
    depth: usize,
) -> Result<Node, RenderError> {
    compiler.fields(fields, depth, |compiler, name, value| match (name, value) {
        ("generators", Value::Array(generators)) => {
            let child = |(index, generator): (usize, &Value)| {
                compiler.in_element(index, |compiler| node(compiler, generator, false, depth + 2))
            };
            Ok(Node::List(generators.iter().enumerate().map(child).collect::<Result<_, _>>()?))
        }
        ("template", template) => Ok(Node::Copy(template.clone())),
        (_, value) => compiler.value(value, None, depth + 1),
    })
}

fn kind(
    compiler: &mut Compiler,
    kind: &str,
    fields: &Map<String, Value>,
    depth: usize,
) -> Result<Node, RenderError> {
    compiler.fields(fields, depth, |compiler, name, value| match (name, value) {
        ("template", template) => Ok(Node::Copy(template.clone())),
        ("values", Value::Object(values)) if kind != "list" => compiler.deferred(values, depth + 1),
        (_, value) => compiler.value(value, None, depth + 1),
    })
}
