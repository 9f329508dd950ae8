//! `values`: parameters rendered with the others.

use std::collections::BTreeMap;

use baton_render::{Engine, Params, Text};
use baton_template::{Map, Value};

use crate::budget::Budget;

/// The `values` of one generator.
pub(crate) struct Values<'a> {
    engine: &'a Engine,
    budget: &'a Budget,
    sources: &'a BTreeMap<String, String>,
    /// Compiled with the first set: without one, a mistake in a template goes unseen, as it does in Argo CD.
    texts: Option<Vec<(&'a str, Text)>>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        sources: &'a BTreeMap<String, String>,
        budget: &'a Budget,
    ) -> Values<'a> {
        Values { engine, budget, sources, texts: None }
    }

    /// Renders every value with `params` and adds them all. No value sees another.
    ///
    /// # Errors
    /// A value that is no template, or cannot be rendered; more text than the pass may make.
    pub(crate) fn append(&mut self, params: &Params) -> Result<(), String> {
        if self.sources.is_empty() {
            return Ok(());
        }
        let budget = self.budget;
        let mut rendered = Vec::with_capacity(self.sources.len());
        for (key, text) in self.texts()? {
            let value = text.render(params).map_err(|error| failed(&error))?;
            // Paid for at once: few sets with large values are as much as many small ones.
            budget.spend(value.len())?;
            rendered.push((*key, value));
        }
        match self.engine {
            Engine::Go(_) => params.insert("values", Value::Map(Map::strings(rendered))),
            Engine::Fast => {
                for (key, value) in rendered {
                    params.insert(format!("values.{key}"), Value::from(value));
                }
            }
        }
        Ok(())
    }

    fn texts(&mut self) -> Result<&[(&'a str, Text)], String> {
        if self.texts.is_none() {
            let texts: Result<Vec<_>, String> = self
                .sources
                .iter()
                .map(|(key, source)| {
                    let text = Text::compile(self.engine, &format!("values.{key}"), source);
                    Ok((key.as_str(), text.map_err(|error| failed(&error))?))
                })
                .collect();
            self.texts = Some(texts?);
        }
        Ok(self.texts.as_deref().unwrap_or_default())
    }
}

fn failed(error: &dyn std::fmt::Display) -> String {
    format!("failed to replace templated string: {error}")
}

#[cfg(test)]
mod tests {
    use baton_template::MissingKey;

    use super::*;
    use crate::settings::Limits;

    fn append(engine: &Engine, values: &[(&str, &str)], limits: Limits) -> Result<String, String> {
        let sources = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let budget = Budget::new(limits);
        let params = Map::new([("name".into(), Value::from("web")), ("values".into(), Value::from("old"))]);
        Values::new(engine, &sources, &budget).append(&params)?;
        Ok(Value::Map(params).to_string())
    }

    #[test]
    fn values_see_the_parameters_and_not_each_other() {
        let go = Engine::Go(MissingKey::Default);
        let values = [("a", "{{ .name }}"), ("b", "{{ .values }}")];
        let expected = "map[name:web values:map[a:web b:old]]";
        assert_eq!(append(&go, &values, Limits::default()).as_deref(), Ok(expected));
        let values = [("a", "{{name}}"), ("b", "{{values.a}}")];
        let expected = "map[name:web values:old values.a:web values.b:{{values.a}}]";
        assert_eq!(append(&Engine::Fast, &values, Limits::default()).as_deref(), Ok(expected));
        assert_eq!(append(&go, &[], Limits::default()).as_deref(), Ok("map[name:web values:old]"));
    }

    #[test]
    fn a_value_that_cannot_be_rendered_or_is_too_long_is_an_error() {
        let go = Engine::Go(MissingKey::Error);
        for (value, part) in
            [("{{ .absent }}", "values.a"), ("{{ .name", "values.a"), ("{{ nothing }}", "values.a")]
        {
            let error = append(&go, &[("a", value)], Limits::default());
            assert!(error.as_ref().is_err_and(|message| message.contains(part)), "{error:?}");
        }
        let limits = Limits { bytes: 100, ..Limits::default() };
        let error = append(&go, &[("a", r#"{{ printf "%200s" .name }}"#)], limits);
        assert!(error.as_ref().is_err_and(|message| message.contains("more than 100 bytes")), "{error:?}");
    }
}
