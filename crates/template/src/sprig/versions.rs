//! Semantic versions.

use baton_grammar::semver::{Constraint, Version};

use super::{fixed, str_of};
use crate::function::Param::{Object as Typed, Str};
use crate::function::{Function, Param};
use crate::object::{Member, Object, Thing};
use crate::value::Value;

const TYPE: &str = "*semver.Version";
const OTHER: Param = Typed(TYPE);

pub(super) static FUNCTIONS: &[Function] = &[
    fixed("semver", &[Str], |args| parse(&args[0]).map(value)),
    fixed("semverCompare", &[Str, Str], |args| {
        let constraint = Constraint::parse(str_of(&args[0])).map_err(|error| error.to_string())?;
        Ok(Value::Bool(constraint.matches(&parse(&args[1])?)))
    }),
];

fn parse(text: &Value) -> Result<Version, String> {
    Version::parse(str_of(text)).map_err(|error| error.to_string())
}

fn value(version: Version) -> Value {
    Value::Object(Object::new(Held(version)))
}

/// A version as a value.
struct Held(Version);

impl Thing for Held {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn kind_name(&self) -> &'static str {
        "ptr"
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn member(&self, name: &str) -> Option<Member> {
        METHODS.iter().find(|method| method.name == name).map(Member::Method)
    }

    /// Go compares addresses; here versions are the same when they were read from the same text.
    fn equals(&self, other: &Object) -> bool {
        other.downcast::<Held>().is_some_and(|other| self.0.original() == other.0.original())
    }

    fn json(&self) -> Result<String, String> {
        Ok(format!("\"{}\"", self.0))
    }
}

static METHODS: &[Function] = &[
    fixed("Major", &[], |args| Ok(number(of(args, 0)?.major()))),
    fixed("Minor", &[], |args| Ok(number(of(args, 0)?.minor()))),
    fixed("Patch", &[], |args| Ok(number(of(args, 0)?.patch()))),
    fixed("Prerelease", &[], |args| Ok(of(args, 0)?.prerelease().into())),
    fixed("Metadata", &[], |args| Ok(of(args, 0)?.metadata().into())),
    fixed("Original", &[], |args| Ok(of(args, 0)?.original().into())),
    fixed("String", &[], |args| Ok(of(args, 0)?.to_string().into())),
    fixed("IncPatch", &[], |args| Ok(value(of(args, 0)?.next_patch()))),
    fixed("IncMinor", &[], |args| Ok(value(of(args, 0)?.next_minor()))),
    fixed("IncMajor", &[], |args| Ok(value(of(args, 0)?.next_major()))),
    fixed("SetPrerelease", &[Str], |args| {
        let changed = of(args, 0)?.with_prerelease(str_of(&args[1]));
        changed.map(value).map_err(|error| error.to_string())
    }),
    fixed("SetMetadata", &[Str], |args| {
        let changed = of(args, 0)?.with_metadata(str_of(&args[1]));
        changed.map(value).map_err(|error| error.to_string())
    }),
    fixed("Compare", &[OTHER], |args| Ok(Value::Int(order(args)? as i64))),
    fixed("LessThan", &[OTHER], |args| Ok(Value::Bool(order(args)?.is_lt()))),
    fixed("LessThanEqual", &[OTHER], |args| Ok(Value::Bool(order(args)?.is_le()))),
    fixed("GreaterThan", &[OTHER], |args| Ok(Value::Bool(order(args)?.is_gt()))),
    fixed("GreaterThanEqual", &[OTHER], |args| Ok(Value::Bool(order(args)?.is_ge()))),
    fixed("Equal", &[OTHER], |args| Ok(Value::Bool(order(args)?.is_eq()))),
];

/// A number of a version. Go's has one bit more.
fn number(number: u64) -> Value {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The version of an argument; there is none where a template passes nil.
fn of(args: &[Value], index: usize) -> Result<&Version, String> {
    match args.get(index) {
        Some(Value::Object(object)) => object.downcast::<Held>().map(|held| &held.0),
        _ => None,
    }
    .ok_or_else(|| "runtime error: invalid memory address or nil pointer dereference".to_owned())
}

fn order(args: &[Value]) -> Result<std::cmp::Ordering, String> {
    Ok(of(args, 0)?.compare(of(args, 1)?))
}
