//! What values are.

use super::{fixed, metered, str_of};
use crate::deep;
use crate::function::Function;
use crate::function::Param::{Any, Str};
use crate::value::Value;

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("typeOf", &[Any], |args| Ok(type_of(&args[0]).into())),
    fixed("typeIs", &[Str, Any], |args| Ok(Value::Bool(str_of(&args[0]) == type_of(&args[1])))),
    fixed("typeIsLike", &[Str, Any], |args| {
        let (wanted, found) = (str_of(&args[0]), type_of(&args[1]));
        Ok(Value::Bool(found == wanted || found.strip_prefix('*') == Some(wanted)))
    }),
    fixed("kindOf", &[Any], |args| Ok(args[0].kind_name().into())),
    fixed("kindIs", &[Str, Any], |args| Ok(Value::Bool(str_of(&args[0]) == args[1].kind_name()))),
    metered("deepEqual", &[Any, Any], None, |context, args| {
        Ok(Value::Bool(deep::equal(&args[0], &args[1], context.budget)?))
    }),
];

fn type_of(value: &Value) -> &'static str {
    if matches!(value, Value::Nil) { "<nil>" } else { value.type_name() }
}
