//! The list generator: parameters written in the set itself.

use baton_api::generators::ListGenerator;
use baton_grammar::yaml;
use baton_render::{Engine, Params};
use baton_template::{Map, Value};
use serde_json::Value as Json;

use crate::budget::Budget;

/// Parameters of `elements`, then of `elementsYaml`.
pub(crate) fn generate(
    list: &ListGenerator,
    engine: &Engine,
    budget: &Budget,
) -> Result<Vec<Params>, String> {
    let mut sets = Vec::with_capacity(list.elements.len());
    for (index, element) in list.elements.iter().enumerate() {
        let set = match engine {
            // Unlike in `elementsYaml` and files, nothing is not an empty object here.
            _ if element.is_null() => Err("error unmarshling list element: it is null".to_owned()),
            Engine::Go(_) => object(element),
            Engine::Fast => texts(element),
        };
        sets.push(set.map_err(|message| format!("elements[{index}]: {message}"))?);
    }
    if !list.elements_yaml.is_empty() {
        sets.extend(from_yaml(&list.elements_yaml, budget)?);
    }
    Ok(sets)
}

/// An object, or the empty set for `null`.
pub(crate) fn object(json: &Json) -> Result<Params, String> {
    match Value::from(json) {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Map::new([])),
        other => Err(format!("error unmarshling list element: {} is no object", other.type_name())),
    }
}

/// An object of texts, with a `values` object of texts.
fn texts(element: &Json) -> Result<Params, String> {
    let params = object(element)?;
    let text = |key: &str, value: &Value| match value {
        Value::Str(_) => Ok(value.clone()),
        _ => Err(format!("error parsing value as string: {key} is none, which goTemplate would allow")),
    };
    let flat = Map::new([]);
    for (key, value) in params.snapshot() {
        match (&*key, value) {
            ("values", Value::Map(values)) => {
                for (name, value) in values.snapshot() {
                    let name = format!("values.{name}");
                    let value = text(&name, &value)?;
                    flat.insert(name, value);
                }
            }
            ("values", _) => return Err("error parsing values map".to_owned()),
            (name, value) => flat.insert(name, text(name, &value)?),
        }
    }
    Ok(flat)
}

/// `elementsYaml` is neither checked nor flattened, whatever the engine.
fn from_yaml(text: &str, budget: &Budget) -> Result<Vec<Params>, String> {
    let failed = |message: String| format!("error unmarshling decoded ElementsYaml: {message}");
    match yaml::first(text).map_err(|error| failed(error.to_string()))? {
        Json::Null => Ok(Vec::new()),
        Json::Array(elements) => {
            budget.sets(elements.len())?;
            elements.iter().map(|element| object(element).map_err(failed)).collect()
        }
        _ => Err(failed("a list of objects is wanted".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use baton_template::MissingKey;
    use serde_json::json;

    use super::*;
    use crate::settings::Limits;

    fn run(list: Json, engine: &Engine) -> Result<Vec<String>, String> {
        let list: ListGenerator = serde_json::from_value(list).expect("a list generator");
        let sets = generate(&list, engine, &Budget::new(Limits::default()))?;
        Ok(sets.into_iter().map(|set| Value::Map(set).to_string()).collect())
    }

    #[test]
    fn go_mode_takes_elements_as_they_are() {
        let list = json!({"elements": [{"a": {"b": [1, true]}, "n": 1_000_000}, {}]});
        let sets = run(list, &Engine::Go(MissingKey::Default));
        assert_eq!(sets, Ok(vec!["map[a:map[b:[1 true]] n:1e+06]".into(), "map[]".into()]));
    }

    #[test]
    fn fast_mode_wants_texts_and_flattens_values() {
        let list = json!({"elements": [{"a": "x", "values": {"b": "y"}}, {}]});
        assert_eq!(run(list, &Engine::Fast), Ok(vec!["map[a:x values.b:y]".into(), "map[]".into()]));
        for (element, part) in [
            (json!({"a": 1}), "error parsing value as string"),
            (json!({"a": null}), "error parsing value as string"),
            (json!({"values": "x"}), "error parsing values map"),
            (json!({"values": {"a": 1}}), "error parsing value as string"),
            (json!([]), "error unmarshling list element"),
            (json!(null), "error unmarshling list element"),
        ] {
            let error = run(json!({"elements": [{"a": "x"}, element]}), &Engine::Fast);
            assert!(
                error.as_ref().is_err_and(|text| text.contains(part) && text.contains("elements[1]")),
                "{error:?}"
            );
        }
    }

    #[test]
    fn yaml_elements_follow_unchecked() {
        let list = json!({"elements": [{"a": "x"}], "elementsYaml": "- {k: 1, on: {x: z}}\n- null\n"});
        let sets = run(list, &Engine::Fast);
        assert_eq!(sets, Ok(vec!["map[a:x]".into(), "map[k:1 true:map[x:z]]".into(), "map[]".into()]));
        assert_eq!(run(json!({"elementsYaml": "# nothing"}), &Engine::Fast), Ok(vec![]));
        for text in ["a: b", "- x", "[", "x"] {
            let error = run(json!({"elementsYaml": text}), &Engine::Fast);
            assert!(error.is_err_and(|text| text.contains("ElementsYaml")), "{text}");
        }
    }
}
