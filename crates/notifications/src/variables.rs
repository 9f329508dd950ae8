//! What expressions and templates see.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_hooks::Secret;
use baton_template::{List, Map, Value};
use jiff::Zoned;
use serde_json::{Map as JsonMap, Value as Json};

use crate::expression::{Variables, full_name_by_repo_url, query_escape, repo_url_to_https};
use crate::subject::{Kind, Subject};

/// The name of the variable that holds an object of a kind.
pub(crate) fn object_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Application => "app",
        Kind::ApplicationSet => "appset",
    }
}

/// What is the same for everything that is looked at: `context` and `secrets`.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    context: Json,
    secrets: Json,
}

// === impl Surroundings ===

impl Surroundings {
    pub(crate) fn new(context: JsonMap<String, Json>, secrets: &BTreeMap<String, Secret>) -> Surroundings {
        let secrets = secrets.iter().map(|(key, value)| (key.clone(), Json::from(value.expose())));
        Surroundings { context: Json::Object(context), secrets: Json::Object(secrets.collect()) }
    }

    /// The variables of an expression.
    pub(crate) fn of_expressions<'a>(&'a self, subject: &Subject<'a>) -> Variables<'a> {
        let mut variables = Variables::from([("context", &self.context), ("secrets", &self.secrets)]);
        variables.insert(object_name(subject.kind), subject.object);
        if let Some(project) = subject.project {
            variables.insert("appProject", project);
        }
        variables
    }

    /// The dot of a template.
    pub(crate) fn of_templates(
        &self,
        subject: &Subject<'_>,
        service: &str,
        recipient: &str,
        now: &Zoned,
    ) -> Map {
        let dot = Map::new([]);
        dot.insert(object_name(subject.kind), value_of(subject.object));
        dot.insert("appProject", subject.project.map_or(Value::Nil, value_of));
        dot.insert("context", value_of(&self.context));
        dot.insert("secrets", value_of(&self.secrets));
        dot.insert("serviceType", Value::from(service));
        dot.insert("recipient", Value::from(recipient));
        dot.insert("repo", Value::Map(repo_functions()));
        dot.insert("strings", Value::Map(string_functions()));
        dot.insert("time", Value::Map(time_functions(now)));
        dot
    }
}

/// A JSON value as a template sees it: whole numbers are whole, as in an object that Go's client has read.
pub(crate) fn value_of(json: &Json) -> Value {
    match json {
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int64(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::Array(items) => Value::List(List::new(items.iter().map(value_of))),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| (Arc::from(key.as_str()), value_of(value));
            Value::Map(Map::new(entries.iter().map(entry)))
        }
        other => Value::from(other),
    }
}

fn repo_functions() -> Map {
    let function = |name: &'static str, body: fn(&str) -> String| {
        (Arc::from(name), Value::function(name, 1, move |args| Ok(body(text(&args[0])?).into())))
    };
    Map::new([
        function("RepoURLToHTTPS", repo_url_to_https),
        function("FullNameByRepoURL", full_name_by_repo_url),
        function("QueryEscape", query_escape),
    ])
}

fn string_functions() -> Map {
    let upper = Value::function("ToUpper", 1, |args| Ok(text(&args[0])?.to_uppercase().into()));
    let lower = Value::function("ToLower", 1, |args| Ok(text(&args[0])?.to_lowercase().into()));
    let replace = Value::function("ReplaceAll", 3, |args| {
        let [all, from, to] = [text(&args[0])?, text(&args[1])?, text(&args[2])?];
        if all.matches(from).count().saturating_mul(to.len()) > LONGEST_TEXT {
            return Err(format!("the text grows over {LONGEST_TEXT} bytes"));
        }
        Ok(all.replace(from, to).into())
    });
    Map::new([
        (Arc::from("ToUpper"), upper),
        (Arc::from("ToLower"), lower),
        (Arc::from("ReplaceAll"), replace),
    ])
}

/// Longest text a replacement may make, in bytes.
const LONGEST_TEXT: usize = 1 << 20;

fn time_functions(now: &Zoned) -> Map {
    let present = Value::time(now);
    let parse = Value::function("Parse", 1, |args| {
        let time: jiff::Timestamp =
            text(&args[0])?.parse().map_err(|_| "the text is no time such as 2026-01-31T10:00:00Z")?;
        Ok(Value::time(&time.to_zoned(jiff::tz::TimeZone::UTC)))
    });
    Map::new([
        (Arc::from("Now"), Value::function("Now", 0, move |_| Ok(present.clone()))),
        (Arc::from("Parse"), parse),
    ])
}

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::Str(text) => Ok(text),
        other => Err(format!("a string is wanted; got {}", other.type_name())),
    }
}
