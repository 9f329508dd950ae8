//! Regular expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_grammar::regexp::{self, Regexp, Work};
use parking_lot::Mutex;

use super::{MAX_TEXT, Outcome, fixed, int_of, metered, str_of};
use crate::function::Param::{Int, Str};
use crate::function::{Context, Function};
use crate::quote;
use crate::value::{Items, List, Value};

/// Steps that compiling any expression takes. They are paid too where it was compiled before: what a template may do
/// must not depend on what others did.
const COMPILE_STEPS: u64 = 200;

/// Expressions remembered, and what one may cost to compile to be: a loop, or ten thousand Applications, use the same
/// ones again and again.
const REMEMBERED: usize = 32;
const REMEMBERED_COST: u64 = 1_000;

/// Text searched for a step.
const BYTES_PER_STEP: u64 = 512;

pub(super) static FUNCTIONS: &[Function] = &[
    metered("regexMatch", &[Str, Str], None, |context, args| {
        // What is no expression matches nothing, as sprig has it.
        if regexp::compile_cost(str_of(&args[0])).is_err() {
            return Ok(Value::Bool(false));
        }
        matched(context, args, Must::Return)
    }),
    metered("mustRegexMatch", &[Str, Str], None, |context, args| matched(context, args, Must::Return)),
    metered("regexFind", &[Str, Str], None, |context, args| find(context, args, Must::Panic)),
    metered("mustRegexFind", &[Str, Str], None, |context, args| find(context, args, Must::Return)),
    metered("regexFindAll", &[Str, Str, Int], None, |context, args| find_all(context, args, Must::Panic)),
    metered("mustRegexFindAll", &[Str, Str, Int], None, |context, args| {
        find_all(context, args, Must::Return)
    }),
    metered("regexReplaceAll", &[Str, Str, Str], None, |context, args| {
        replace(context, args, Must::Panic, Regexp::replace_all)
    }),
    metered("mustRegexReplaceAll", &[Str, Str, Str], None, |context, args| {
        replace(context, args, Must::Return, Regexp::replace_all)
    }),
    metered("regexReplaceAllLiteral", &[Str, Str, Str], None, |context, args| {
        replace(context, args, Must::Panic, Regexp::replace_all_literal)
    }),
    metered("mustRegexReplaceAllLiteral", &[Str, Str, Str], None, |context, args| {
        replace(context, args, Must::Return, Regexp::replace_all_literal)
    }),
    metered("regexSplit", &[Str, Str, Int], None, |context, args| split(context, args, Must::Panic)),
    metered("mustRegexSplit", &[Str, Str, Int], None, |context, args| split(context, args, Must::Return)),
    fixed("regexQuoteMeta", &[Str], |args| Ok(regexp::quote_meta(str_of(&args[0])).into())),
];

/// How Go complains about an expression that is none: by an error, or by a panic, whose message differs.
#[derive(Clone, Copy)]
enum Must {
    Return,
    Panic,
}

/// The expression of the first argument, paid for, and what may be done with it.
fn compiled(context: &mut Context<'_>, args: &[Value], must: Must) -> Result<(Arc<Regexp>, Work), String> {
    let text = str_of(&args[0]);
    let refused = |error: regexp::Error| match must {
        Must::Return => error.to_string(),
        Must::Panic => format!("regexp: Compile({}): {error}", quoted(text)),
    };
    let cost = regexp::compile_cost(text).map_err(refused)?;
    context.budget.pay(cost.saturating_add(COMPILE_STEPS))?;
    let regexp = remembered(text, cost).map_err(refused)?;
    let work = Work { bytes: context.budget.left().saturating_mul(BYTES_PER_STEP), longest: MAX_TEXT };
    Ok((regexp, work))
}

fn remembered(text: &str, cost: u64) -> Result<Arc<Regexp>, regexp::Error> {
    static EXPRESSIONS: Mutex<BTreeMap<String, Arc<Regexp>>> = Mutex::new(BTreeMap::new());
    if let Some(known) = EXPRESSIONS.lock().get(text) {
        return Ok(known.clone());
    }
    let regexp = Arc::new(Regexp::parse(text)?);
    if cost <= REMEMBERED_COST {
        let mut expressions = EXPRESSIONS.lock();
        if expressions.len() >= REMEMBERED {
            expressions.clear();
        }
        expressions.insert(text.to_owned(), regexp.clone());
    }
    Ok(regexp)
}

/// The expression as Go's panic shows it.
fn quoted(text: &str) -> String {
    let raw = text.chars().all(|c| c == '\t' || !(c.is_control() || c == '`' || c == '\u{feff}'));
    if raw { format!("`{text}`") } else { quote::quoted(text) }
}

/// Pays for the text searched.
fn pay(context: &mut Context<'_>, work: &Work) -> Result<(), String> {
    let used = context.budget.left().saturating_sub(work.bytes / BYTES_PER_STEP);
    context.budget.pay(used)
}

fn matched(context: &mut Context<'_>, args: &[Value], must: Must) -> Outcome {
    let (regexp, mut work) = compiled(context, args, must)?;
    let found = regexp.find_all(str_of(&args[1]), 1, &mut work).map_err(|error| error.to_string())?;
    pay(context, &work)?;
    Ok(Value::Bool(!found.is_empty()))
}

fn find(context: &mut Context<'_>, args: &[Value], must: Must) -> Outcome {
    let (regexp, mut work) = compiled(context, args, must)?;
    let found = regexp.find_all(str_of(&args[1]), 1, &mut work).map_err(|error| error.to_string())?;
    pay(context, &work)?;
    Ok(found.first().copied().unwrap_or_default().into())
}

/// A negative limit is none.
fn limit(value: &Value) -> usize {
    usize::try_from(int_of(value)).unwrap_or(usize::MAX)
}

fn find_all(context: &mut Context<'_>, args: &[Value], must: Must) -> Outcome {
    let (regexp, mut work) = compiled(context, args, must)?;
    let found = regexp.find_all(str_of(&args[1]), limit(&args[2]), &mut work);
    let found = found.map_err(|error| error.to_string())?;
    pay(context, &work)?;
    context.budget.values(found.len())?;
    Ok(texts(&found))
}

fn split(context: &mut Context<'_>, args: &[Value], must: Must) -> Outcome {
    let (regexp, mut work) = compiled(context, args, must)?;
    let parts = regexp.split(str_of(&args[1]), limit(&args[2]), &mut work);
    let parts = parts.map_err(|error| error.to_string())?;
    pay(context, &work)?;
    context.budget.values(parts.len())?;
    if int_of(&args[2]) != 0 {
        return Ok(Value::List(List::strings(parts)));
    }
    Ok(texts(&parts))
}

/// Texts in a list; Go has no list at all where there are none.
fn texts(texts: &[&str]) -> Value {
    Value::List(if texts.is_empty() { List::nil(Items::Str) } else { List::strings(texts.iter().copied()) })
}

fn replace(
    context: &mut Context<'_>,
    args: &[Value],
    must: Must,
    replace: fn(&Regexp, &str, &str, &mut Work) -> Result<String, regexp::Exhausted>,
) -> Outcome {
    let (regexp, mut work) = compiled(context, args, must)?;
    let replaced = replace(&regexp, str_of(&args[1]), str_of(&args[2]), &mut work);
    let replaced = replaced.map_err(|error| error.to_string())?;
    pay(context, &work)?;
    Ok(replaced.into())
}
