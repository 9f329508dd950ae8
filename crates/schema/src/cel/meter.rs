//! Functions put into expressions to keep evaluation within its budget.

use std::sync::Arc;

use cel::common::types::{CelBytes, CelInt, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, DeclarationError, ExecutionError, FunctionContext};

use super::budget::Budget;

/// Hands its argument through and charges for its size.
pub(super) const METER: &str = "@metered";
/// `replace` that charges before it builds.
pub(super) const REPLACE: &str = "@replace";
/// `join` that charges before it builds.
pub(super) const JOIN: &str = "@join";

type Function = Box<
    dyn for<'context, 'call> Fn(
            &mut FunctionContext<'context, 'call>,
        ) -> Result<CowVal<'context, 'call>, ExecutionError>
        + Send
        + Sync,
>;

/// Makes the functions available to an evaluation.
pub(super) fn install(context: &mut Context<'_, '_>, budget: &Arc<Budget>) -> Result<(), DeclarationError> {
    let (first, second, third) = (budget.clone(), budget.clone(), budget.clone());
    let meter: Function = Box::new(move |call| {
        let value = call.args.pop().ok_or_else(ExecutionError::missing_argument_or_target)?;
        charge(&first, METER, size(value.as_ref()))?;
        Ok(value)
    });
    context.add_function(METER, meter)?;
    let replace: Function = Box::new(move |call| replace(call, &second));
    context.add_function(REPLACE, replace)?;
    let join: Function = Box::new(move |call| join(call, &third));
    context.add_function(JOIN, join)
}

fn charge(budget: &Budget, function: &str, units: usize) -> Result<(), ExecutionError> {
    if budget.take(units.saturating_add(1)) {
        Ok(())
    } else {
        Err(ExecutionError::function_error(function, "operation cancelled: actual cost limit exceeded"))
    }
}

/// Elements of a list or map, or tens of bytes.
fn size(value: &(dyn Val + '_)) -> usize {
    if let Some(text) = value.downcast_ref::<CelString>() {
        text.inner().len() / 10
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        bytes.inner().len() / 10
    } else {
        value.as_sizer().map_or(0, |sizer| usize::try_from(*sizer.size().inner()).unwrap_or(0))
    }
}

fn text<'a>(value: Option<&'a CowVal<'_, '_>>) -> Result<&'a str, ExecutionError> {
    let found = value.and_then(|value| value.as_ref().downcast_ref::<CelString>());
    found.map(|text| text.inner()).ok_or_else(|| ExecutionError::UnexpectedType {
        got: "another type".to_owned(),
        want: "string".to_owned(),
    })
}

fn replace<'context, 'call>(
    call: &mut FunctionContext<'context, 'call>,
    budget: &Budget,
) -> Result<CowVal<'context, 'call>, ExecutionError> {
    let this = text(call.this.as_ref())?;
    let (from, to) = (text(call.args.first())?, text(call.args.get(1))?);
    let most = match call.args.get(2).and_then(|most| most.as_ref().downcast_ref::<CelInt>()) {
        Some(most) => usize::try_from(*most.inner()).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let times = this.matches(from).take(most).count();
    charge(budget, REPLACE, times.saturating_mul(to.len()).saturating_add(this.len()) / 10)?;
    Ok(CowVal::owned(CelString::from(this.replacen(from, to, most))))
}

fn join<'context, 'call>(
    call: &mut FunctionContext<'context, 'call>,
    budget: &Budget,
) -> Result<CowVal<'context, 'call>, ExecutionError> {
    let separator = if call.args.is_empty() { "" } else { text(call.args.first())? };
    let list = call.this.as_ref().and_then(|list| list.as_ref().as_iterable());
    let list = list.ok_or_else(|| ExecutionError::UnexpectedType {
        got: "another type".to_owned(),
        want: "list".to_owned(),
    })?;
    let mut joined = String::new();
    let mut items = list.iter();
    let mut first = true;
    while let Some(item) = items.next() {
        let item = item.downcast_ref::<CelString>().ok_or_else(|| ExecutionError::UnexpectedType {
            got: "another type".to_owned(),
            want: "string".to_owned(),
        })?;
        charge(budget, JOIN, (separator.len() + item.inner().len()) / 10)?;
        if !first {
            joined.push_str(separator);
        }
        first = false;
        joined.push_str(item.inner());
    }
    Ok(CowVal::owned(CelString::from(joined)))
}
