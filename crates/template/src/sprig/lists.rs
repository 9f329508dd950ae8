//! Lists: made, cut, searched.

use super::math::integer;
use super::{Outcome, int_of, metered};
use crate::budget::Budget;
use crate::deep;
use crate::function::Param::{Any, Int};
use crate::function::{Context, Function};
use crate::print;
use crate::value::{Items, List, Value};

pub(super) static FUNCTIONS: &[Function] = &[
    metered("list", &[], Some(Any), made),
    metered("tuple", &[], Some(Any), made),
    metered("append", &[Any, Any], None, push),
    metered("push", &[Any, Any], None, push),
    metered("mustAppend", &[Any, Any], None, push),
    metered("mustPush", &[Any, Any], None, push),
    metered("prepend", &[Any, Any], None, prepend),
    metered("mustPrepend", &[Any, Any], None, prepend),
    metered("concat", &[], Some(Any), concat),
    metered("first", &[Any], None, first),
    metered("mustFirst", &[Any], None, first),
    metered("last", &[Any], None, last),
    metered("mustLast", &[Any], None, last),
    metered("rest", &[Any], None, rest),
    metered("mustRest", &[Any], None, rest),
    metered("initial", &[Any], None, initial),
    metered("mustInitial", &[Any], None, initial),
    metered("reverse", &[Any], None, reverse),
    metered("mustReverse", &[Any], None, reverse),
    metered("compact", &[Any], None, compact),
    metered("mustCompact", &[Any], None, compact),
    metered("uniq", &[Any], None, uniq),
    metered("mustUniq", &[Any], None, uniq),
    metered("without", &[Any], Some(Any), without),
    metered("mustWithout", &[Any], Some(Any), without),
    metered("has", &[Any, Any], None, has),
    metered("mustHas", &[Any, Any], None, has),
    metered("slice", &[Any], Some(Any), slice),
    metered("mustSlice", &[Any], Some(Any), slice),
    metered("chunk", &[Int, Any], None, chunk),
    metered("mustChunk", &[Int, Any], None, chunk),
    metered("sortAlpha", &[Any], None, sort_alpha),
    metered("until", &[Int], None, |context, args| {
        let end = int_of(&args[0]);
        Ok(integers(count(0, end, end.signum(), context.budget)?))
    }),
    metered("untilStep", &[Int, Int, Int], None, |context, args| {
        Ok(integers(count(int_of(&args[0]), int_of(&args[1]), int_of(&args[2]), context.budget)?))
    }),
    metered("seq", &[], Some(Int), seq),
];

/// The items of a list, paid for as if all were looked at or copied.
fn items<'a>(what: &str, value: &'a Value, budget: &mut Budget) -> Result<&'a [Value], String> {
    match value {
        Value::List(list) => {
            budget.copies(list.items().len())?;
            Ok(list.items())
        }
        Value::Nil => Err(format!("Cannot {what} a missing value")),
        other => Err(format!("Cannot {what} type {}", other.kind_name())),
    }
}

fn list<'a>(items: impl Iterator<Item = &'a Value>) -> Value {
    Value::List(List::new(items.cloned()))
}

fn made(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    context.budget.values(args.len())?;
    Ok(list(args.iter()))
}

fn push(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(list(items("push on", &args[0], context.budget)?.iter().chain([&args[1]])))
}

fn prepend(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let items = items("prepend on", &args[0], context.budget)?;
    Ok(list([&args[1]].into_iter().chain(items)))
}

fn concat(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let mut all = Vec::new();
    for arg in args {
        let more = match arg {
            Value::List(list) => list.items(),
            Value::Nil => return Err("Cannot concat a missing value as list".to_owned()),
            other => return Err(format!("Cannot concat type {} as list", other.kind_name())),
        };
        context.budget.copies(more.len())?;
        all.extend_from_slice(more);
    }
    Ok(Value::List(if all.is_empty() { List::nil(Items::Any) } else { List::new(all) }))
}

fn first(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(items("find first on", &args[0], context.budget)?.first().cloned().unwrap_or_default())
}

fn last(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(items("find last on", &args[0], context.budget)?.last().cloned().unwrap_or_default())
}

fn rest(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(match items("find rest on", &args[0], context.budget)? {
        [] => Value::List(List::nil(Items::Any)),
        [_, rest @ ..] => list(rest.iter()),
    })
}

fn initial(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(match items("find initial on", &args[0], context.budget)? {
        [] => Value::List(List::nil(Items::Any)),
        [initial @ .., _] => list(initial.iter()),
    })
}

fn reverse(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(list(items("find reverse on", &args[0], context.budget)?.iter().rev()))
}

fn compact(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    Ok(list(items("compact on", &args[0], context.budget)?.iter().filter(|item| item.truth())))
}

fn uniq(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let mut unique: Vec<Value> = Vec::new();
    for item in items("find uniq on", &args[0], context.budget)? {
        if !among(item, &unique, context.budget)? {
            unique.push(item.clone());
        }
    }
    Ok(Value::List(List::new(unique)))
}

fn without(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let mut left: Vec<Value> = Vec::new();
    for item in items("find without on", &args[0], context.budget)? {
        if !among(item, &args[1..], context.budget)? {
            left.push(item.clone());
        }
    }
    Ok(Value::List(List::new(left)))
}

fn has(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    if matches!(args[1], Value::Nil) {
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(among(&args[0], items("find has on", &args[1], context.budget)?, context.budget)?))
}

fn among(item: &Value, others: &[Value], budget: &mut Budget) -> Result<bool, String> {
    budget.values(others.len())?;
    for other in others {
        if deep::equal(item, other, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// sprig's, which knows lists only and takes text and floats for numbers.
fn slice(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let list = match &args[0] {
        Value::List(list) => list,
        Value::Nil => return Err("list should be type of slice or array but is missing".to_owned()),
        other => return Err(format!("list should be type of slice or array but {}", other.kind_name())),
    };
    let length = list.items().len();
    if length == 0 {
        return Ok(Value::Nil);
    }
    let start = args.get(1).map_or(0, integer);
    let end = args.get(2).map_or(length as i64, integer);
    let cut = match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => list.items().get(start..end),
        _ => None,
    };
    let cut = cut.ok_or_else(|| format!("slice index out of bounds: [{start}:{end}] of {length}"))?;
    context.budget.copies(cut.len())?;
    Ok(Value::List(List::of(list.holds(), cut.into())))
}

/// Lists of `size` items, the last one of what is left.
fn chunk(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let size = int_of(&args[0]);
    let items = items("chunk", &args[1], context.budget)?;
    // Go computes how many there are in floats; a size below one is not refused, it fails for want of sense.
    let count = ((items.len() as f64 - 1.0) / size as f64).floor() + 1.0;
    if !count.is_finite() || count < 0.0 {
        return Err(format!("cannot make chunks of {size}"));
    }
    if count == 0.0 {
        return Ok(Value::List(List::of(Items::Lists, [].into())));
    }
    context.budget.values(items.len())?;
    let size = usize::try_from(size).unwrap_or(1);
    let chunks = items.chunks(size.max(1)).map(|chunk| list(chunk.iter()));
    Ok(Value::List(List::of(Items::Lists, chunks.collect())))
}

fn sort_alpha(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let mut texts = match &args[0] {
        Value::Nil => vec![print::text(&Value::Nil, context.budget)?],
        value => texts(value, context.budget)?,
    };
    texts.sort_unstable();
    Ok(Value::List(List::strings(texts)))
}

/// A list's items that are not nil as texts; any other value is a list of itself.
pub(super) fn texts(value: &Value, budget: &mut Budget) -> Result<Vec<String>, String> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            budget.values(list.items().len())?;
            let present = list.items().iter().filter(|item| !matches!(item, Value::Nil));
            present.map(|item| print::text(item, budget)).collect()
        }
        other => Ok(vec![print::text(other, budget)?]),
    }
}

fn integers(numbers: impl Iterator<Item = i64>) -> Value {
    Value::List(List::of(Items::Int, numbers.map(Value::Int).collect()))
}

/// From a number on until another is reached, which is not among them. Nothing where the step leads away.
fn count(start: i64, stop: i64, step: i64, budget: &mut Budget) -> Result<impl Iterator<Item = i64>, String> {
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    let count = match (stop - start).signum() * step.signum() {
        1 => ((stop - start).abs() + step.abs() - 1) / step.abs(),
        _ => 0,
    };
    budget.values(usize::try_from(count).unwrap_or(usize::MAX))?;
    // Every number lies between two that fit.
    Ok((0..count).map(move |index| (start + index * step) as i64))
}

/// Numbers as the shell command has them: `seq end`, `seq start end`, `seq start step end`.
fn seq(context: &mut Context<'_>, args: &[Value]) -> Outcome {
    let args: Vec<i64> = args.iter().map(int_of).collect();
    let toward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, step, end) = match args.as_slice() {
        [end] => (1, toward(1, *end), *end),
        [start, end] => (*start, toward(*start, *end), *end),
        [start, step, end] if end < start && *step > 0 => (*start, 0, *start),
        [start, step, end] => (*start, *step, *end),
        _ => return Ok("".into()),
    };
    // The end is among the numbers here.
    let beyond = end.wrapping_add(toward(start, end));
    let numbers = count(start, beyond, step, context.budget)?;
    Ok(numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ").into())
}
