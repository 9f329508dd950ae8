//! Functions beyond Go's own: sprig's, and those Argo CD adds.

mod base32;
mod certificates;
mod ciphers;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod digests;
mod encodings;
mod json;
mod json_text;
mod letters;
mod lists;
mod math;
pub(crate) mod names;
mod paths;
mod random;
mod regexes;
mod strings;
mod types;
mod urls;
mod versions;
mod words;
mod yaml;

use crate::function::{Body, Context, Function, Param};
use crate::value::Value;

/// What a function here returns: its value, or its complaint.
type Outcome = Result<Value, String>;

/// The longest string a function makes by repetition; limits of an execution are checked afterwards.
const MAX_TEXT: usize = 8 << 20;

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    [
        strings::FUNCTIONS,
        defaults::FUNCTIONS,
        names::FUNCTIONS,
        math::FUNCTIONS,
        lists::FUNCTIONS,
        dicts::FUNCTIONS,
        types::FUNCTIONS,
        yaml::FUNCTIONS,
        encodings::FUNCTIONS,
        json::FUNCTIONS,
        paths::FUNCTIONS,
        words::FUNCTIONS,
        regexes::FUNCTIONS,
        versions::FUNCTIONS,
        dates::FUNCTIONS,
        random::FUNCTIONS,
        digests::FUNCTIONS,
        ciphers::FUNCTIONS,
        base32::FUNCTIONS,
        urls::FUNCTIONS,
        certificates::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}

const fn fixed(name: &'static str, params: &'static [Param], body: fn(&[Value]) -> Outcome) -> Function {
    Function { name, params, variadic: None, body: Body::Call(body) }
}

const fn variadic(
    name: &'static str,
    params: &'static [Param],
    rest: Param,
    body: fn(&[Value]) -> Outcome,
) -> Function {
    Function { name, params, variadic: Some(rest), body: Body::Call(body) }
}

/// A function whose work its arguments' length does not tell: it pays on the way.
const fn metered(
    name: &'static str,
    params: &'static [Param],
    rest: Option<Param>,
    body: fn(&mut Context<'_>, &[Value]) -> Outcome,
) -> Function {
    Function { name, params, variadic: rest, body: Body::With(body) }
}

/// The text of an argument the engine has checked to be a string.
fn str_of(value: &Value) -> &str {
    if let Value::Str(text) = value { text } else { "" }
}

/// The number of an argument the engine has checked to be an integer.
fn int_of(value: &Value) -> i64 {
    if let Value::Int(int) = value { *int } else { 0 }
}

/// Bytes of a text; a cut through a character leaves replacement characters.
fn bytes(text: &str, from: usize, to: usize) -> Value {
    String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned().into()
}
