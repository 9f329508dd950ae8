//! Functions Kubernetes adds to CEL that rules of custom resources use and the evaluator lacks.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use baton_grammar::quantity::{MALFORMED, Quantity};
use cel::common::types::{DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value};
use regex::Regex;

use super::quantity::{self, Amount};
use crate::formats;

type Outcome = Result<Value, ExecutionError>;

/// Adds the functions to an environment.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let (text, list, int) = (|| STRING_TYPE, || LIST_TYPE, || INT_TYPE);
    env.add_member_overload("find", "string_find", text(), vec![text()], |args| call(args, find))?;
    env.add_member_overload("findAll", "string_find_all", text(), vec![text()], |args| call(args, find_all))?;
    env.add_member_overload("findAll", "string_find_all_int", text(), vec![text(), int()], |args| {
        call(args, find_all)
    })?;
    env.add_member_overload("isSorted", "list_is_sorted", list(), vec![], |args| call(args, is_sorted))?;
    env.add_member_overload("sum", "list_sum", list(), vec![], |args| call(args, sum))?;
    env.add_member_overload("min", "list_min", list(), vec![], |args| {
        call(args, |args| extreme("min", args))
    })?;
    env.add_member_overload("max", "list_max", list(), vec![], |args| {
        call(args, |args| extreme("max", args))
    })?;
    env.add_member_overload("indexOf", "list_index_of", list(), vec![DYN_TYPE], |args| call(args, index_of))?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", list(), vec![DYN_TYPE], |args| {
        call(args, last_index_of)
    })?;
    env.add_overload("sets.contains", "list_sets_contains_list", vec![list(), list()], |args| {
        call(args, |args| Ok(Value::Bool(contains_all(items(args, 0)?, items(args, 1)?))))
    })?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", vec![list(), list()], |args| {
        call(args, |args| {
            let (left, right) = (items(args, 0)?, items(args, 1)?);
            Ok(Value::Bool(contains_all(left, right) && contains_all(right, left)))
        })
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", vec![list(), list()], |args| {
        call(args, |args| {
            let right = items(args, 1)?;
            Ok(Value::Bool(items(args, 0)?.iter().any(|item| right.contains(item))))
        })
    })?;
    predicates(env)?;
    quantities(env)
}

fn predicates(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("isURL", "is_url_string", vec![STRING_TYPE], |args| {
        call(args, |args| Ok(Value::Bool(formats::check("uri", string(args, 0)?) == Some(true))))
    })?;
    env.add_overload("isIP", "is_ip", vec![STRING_TYPE], |args| {
        call(args, |args| Ok(Value::Bool(string(args, 0)?.parse::<IpAddr>().is_ok())))
    })?;
    env.add_overload("isCIDR", "is_cidr", vec![STRING_TYPE], |args| {
        call(args, |args| Ok(Value::Bool(formats::check("cidr", string(args, 0)?) == Some(true))))
    })?;
    env.add_overload("isQuantity", "is_quantity_string", vec![STRING_TYPE], |args| {
        call(args, |args| Ok(Value::Bool(Quantity::parse(string(args, 0)?).is_some())))
    })
}

fn quantities(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |args| {
        call(args, |args| {
            let parsed = Quantity::parse(string(args, 0)?);
            let parsed = parsed.ok_or_else(|| ExecutionError::function_error("quantity", MALFORMED))?;
            Ok(Value::Opaque(Arc::new(Amount(parsed))))
        })
    })?;
    let kind = || Type::new_opaque_type(quantity::TYPE);
    env.add_member_overload("isGreaterThan", "quantity_is_greater_than", kind(), vec![kind()], |args| {
        call(args, |args| Ok(Value::Bool(amount(args, 0)? > amount(args, 1)?)))
    })?;
    env.add_member_overload("isLessThan", "quantity_is_less_than", kind(), vec![kind()], |args| {
        call(args, |args| Ok(Value::Bool(amount(args, 0)? < amount(args, 1)?)))
    })?;
    env.add_member_overload("compareTo", "quantity_compare_to", kind(), vec![kind()], |args| {
        call(args, |args| Ok(Value::Int(amount(args, 0)?.cmp(&amount(args, 1)?) as i64)))
    })?;
    env.add_member_overload("add", "quantity_add", kind(), vec![kind()], |args| call(args, add))?;
    env.add_member_overload("add", "quantity_add_int", kind(), vec![INT_TYPE], |args| call(args, add))?;
    env.add_member_overload("sub", "quantity_sub", kind(), vec![kind()], |args| call(args, sub))?;
    env.add_member_overload("sub", "quantity_sub_int", kind(), vec![INT_TYPE], |args| call(args, sub))?;
    env.add_member_overload("isInteger", "quantity_is_integer", kind(), vec![], |args| {
        call(args, |args| Ok(Value::Bool(amount(args, 0)?.integer().is_some())))
    })?;
    env.add_member_overload("asInteger", "quantity_as_integer", kind(), vec![], |args| {
        call(args, |args| {
            let whole = amount(args, 0)?.integer();
            whole
                .map(Value::Int)
                .ok_or_else(|| ExecutionError::function_error("asInteger", "cannot convert value to integer"))
        })
    })?;
    env.add_member_overload("asApproximateFloat", "quantity_as_float", kind(), vec![], |args| {
        call(args, |args| Ok(Value::Float(amount(args, 0)?.float())))
    })
}

/// Runs a function over owned values.
fn call<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
    function: impl FnOnce(&[Value]) -> Outcome,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let args = args.iter().map(|arg| Value::try_from(arg.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let result: Box<dyn Val> = function(&args)?.try_into()?;
    Ok(CowVal::Owned(result))
}

fn string(args: &[Value], at: usize) -> Result<&str, ExecutionError> {
    match args.get(at) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(mismatch("string")),
    }
}

fn items(args: &[Value], at: usize) -> Result<&[Value], ExecutionError> {
    match args.get(at) {
        Some(Value::List(items)) => Ok(items),
        _ => Err(mismatch("list")),
    }
}

/// A quantity, or a whole number in its place.
fn amount(args: &[Value], at: usize) -> Result<Quantity, ExecutionError> {
    let found = match args.get(at) {
        Some(Value::Int(number)) => Some(Quantity::from(*number)),
        Some(Value::Opaque(value)) => value.downcast_ref::<Amount>().map(|amount| amount.0),
        _ => None,
    };
    found.ok_or_else(|| mismatch("quantity"))
}

fn add(args: &[Value]) -> Outcome {
    summed("add", amount(args, 0)?.plus(amount(args, 1)?))
}

fn sub(args: &[Value]) -> Outcome {
    summed("sub", amount(args, 0)?.plus(amount(args, 1)?.negated()))
}

fn summed(function: &str, total: Option<Quantity>) -> Outcome {
    let total = total.ok_or_else(|| ExecutionError::function_error(function, "quantity overflow"))?;
    Ok(Value::Opaque(Arc::new(Amount(total))))
}

fn mismatch(want: &str) -> ExecutionError {
    ExecutionError::UnexpectedType { got: "another type".to_owned(), want: want.to_owned() }
}

fn compile(function: &str, pattern: &str) -> Result<Regex, ExecutionError> {
    Regex::new(pattern).map_err(|error| ExecutionError::function_error(function, error))
}

/// The first match of a pattern, or nothing.
fn find(args: &[Value]) -> Outcome {
    let found =
        compile("find", string(args, 1)?)?.find(string(args, 0)?).map(|found| found.as_str().to_owned());
    Ok(found.unwrap_or_default().into())
}

/// All matches, or the first so many.
fn find_all(args: &[Value]) -> Outcome {
    let pattern = compile("findAll", string(args, 1)?)?;
    let most = match args.get(2) {
        Some(Value::Int(most)) if *most >= 0 => usize::try_from(*most).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let found = pattern.find_iter(string(args, 0)?).take(most);
    Ok(Value::List(Arc::new(found.map(|found| found.as_str().into()).collect())))
}

fn is_sorted(args: &[Value]) -> Outcome {
    let items = items(args, 0)?;
    Ok(Value::Bool(
        items
            .windows(2)
            .all(|pair| matches!(compare(&pair[0], &pair[1]), Some(Ordering::Less | Ordering::Equal))),
    ))
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    left.partial_cmp(right)
}

fn sum(args: &[Value]) -> Outcome {
    let mut items = items(args, 0)?.iter().cloned();
    let Some(first) = items.next() else { return Ok(Value::Int(0)) };
    items.try_fold(first, |total, item| total + item)
}

fn extreme(name: &str, args: &[Value]) -> Outcome {
    let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
    let mut items = items(args, 0)?.iter();
    let empty = || ExecutionError::function_error(name, format!("{name} called on empty list"));
    let first = items.next().ok_or_else(empty)?;
    let best = items.fold(first, |best, item| if compare(item, best) == Some(wanted) { item } else { best });
    Ok(best.clone())
}

fn index_of(args: &[Value]) -> Outcome {
    let wanted = args.get(1).ok_or_else(|| mismatch("any"))?;
    Ok(Value::Int(position(items(args, 0)?.iter().position(|item| item == wanted))))
}

fn last_index_of(args: &[Value]) -> Outcome {
    let wanted = args.get(1).ok_or_else(|| mismatch("any"))?;
    Ok(Value::Int(position(items(args, 0)?.iter().rposition(|item| item == wanted))))
}

fn position(found: Option<usize>) -> i64 {
    found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

fn contains_all(all: &[Value], some: &[Value]) -> bool {
    some.iter().all(|item| all.contains(item))
}
