//! Functions that are values: what `call` calls.

use std::sync::Arc;

use crate::object::{Member, Object, Thing};
use crate::value::Value;

type Body = dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync;

/// A function that whoever executes a template has put among its data.
pub(crate) struct Callable {
    name: &'static str,
    arity: usize,
    body: Arc<Body>,
}

impl Callable {
    pub(crate) fn call(&self, args: &[Value]) -> Result<Value, String> {
        if args.len() != self.arity {
            let (name, want, got) = (self.name, self.arity, args.len());
            return Err(format!("wrong number of args for {name}: got {got} want {want}"));
        }
        (self.body)(args)
    }
}

impl Value {
    /// A function that templates call with `call`. It is paid for by the length of its arguments and its result, so
    /// it must not do much more than read the ones and make the other.
    pub fn function(
        name: &'static str,
        arity: usize,
        body: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Value {
        Value::Object(Object::new(Callable { name, arity, body: Arc::new(body) }))
    }
}

impl Thing for Callable {
    fn type_name(&self) -> &'static str {
        "func"
    }

    fn kind_name(&self) -> &'static str {
        "func"
    }

    fn shown(&self) -> String {
        format!("func {}", self.name)
    }

    fn member(&self, _: &str) -> Option<Member> {
        None
    }

    fn equals(&self, other: &Object) -> bool {
        other.downcast::<Callable>().is_some_and(|other| Arc::ptr_eq(&self.body, &other.body))
    }

    fn json(&self) -> Result<String, String> {
        Err(format!("json: unsupported type: func {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, Map, MissingKey, Template, Value};

    fn executed(text: &str) -> String {
        let shout = Value::function("shout", 1, |args| match &args[0] {
            Value::Str(text) => Ok(text.to_uppercase().into()),
            other => Err(format!("{other} cannot be shouted")),
        });
        let data = Value::Map(Map::new([("shout".into(), shout), ("name".into(), Value::from("web"))]));
        let template = Template::parse("t", text).expect("a template");
        template
            .execute(&data, MissingKey::Default, Limits::default())
            .unwrap_or_else(|fault| fault.to_string())
    }

    #[test]
    fn a_function_among_the_data_can_be_called() {
        assert_eq!(executed("{{ call .shout .name }}"), "WEB");
        assert_eq!(executed("{{ .name | call .shout | lower }}"), "web");
        assert_eq!(executed("{{ len (call .shout \"ab\") }}"), "2");
    }

    #[test]
    fn what_goes_wrong_in_it_is_told_with_the_place() {
        assert!(executed("{{ call .shout }}").contains("wrong number of args for shout: got 0 want 1"));
        assert!(executed("{{ call .shout 1 }}").contains("error calling call: 1 cannot be shouted"));
        assert!(executed("{{ call .name }}").contains("non-function"));
        assert!(executed("{{ toJson .shout }}").is_empty());
    }
}
