//! Values of types of their own: times, versions, certificates.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::function::Function;
use crate::value::Value;

/// A value whose inside only some functions and its own members know.
#[derive(Clone)]
pub struct Object(Arc<dyn Thing>);

/// What there is to know about a type of objects.
pub(crate) trait Thing: Any + Send + Sync {
    /// Go's name of the type, such as `time.Time`.
    fn type_name(&self) -> &'static str;

    /// Go's name of the kind of type: `struct`, `ptr` …
    fn kind_name(&self) -> &'static str;

    /// The text `%v` prints.
    fn shown(&self) -> String;

    /// What an `if` makes of it.
    fn truth(&self) -> bool {
        true
    }

    /// The number it is, for types Go makes of an integer.
    fn integer(&self) -> Option<i64> {
        None
    }

    /// The field or method of a name.
    fn member(&self, name: &str) -> Option<Member>;

    /// Whether both are of one type and the same.
    fn equals(&self, other: &Object) -> bool;

    /// The object as a JSON text.
    fn json(&self) -> Result<String, String>;
}

/// What an object has under a name.
pub(crate) enum Member {
    /// A value that is there.
    Field(Value),
    /// A function that is called with the object before its other arguments; its `params` tell the others only.
    Method(&'static Function),
}

impl Object {
    /// An object of any type.
    pub(crate) fn new(thing: impl Thing) -> Object {
        Object(Arc::new(thing))
    }

    /// What is known about the object.
    pub(crate) fn thing(&self) -> &dyn Thing {
        &*self.0
    }

    /// The object if it is of the type.
    pub(crate) fn downcast<T: Thing>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }
}

/// The type only: what is inside may be a private key.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(…)", self.0.type_name())
    }
}
