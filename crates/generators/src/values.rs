//! `values`: parameters rendered with the others.

use std::collections::BTreeMap;

use baton_render::{Engine, Params, Text};
use baton_template::{Map, Value};

/// The `values` of one generator.
pub(crate) struct Values<'a> {
    engine: &'a Engine,
    sources: &'a BTreeMap<String, String>,
    /// Compiled with the first set: without one, a mistake in a template goes unseen, as it does in Argo CD.
    texts: Option<Vec<(&'a str, Text)>>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(engine: &'a Engine, sources: &'a BTreeMap<String, String>) -> Values<'a> {
        Values { engine, sources, texts: None }
    }

    /// Renders every value with `params` and adds them all. No value sees another.
    ///
    /// # Errors
    /// A value that is no template, or cannot be rendered.
    pub(crate) fn append(&mut self, params: &Params) -> Result<(), String> {
        if self.sources.is_empty() {
            return Ok(());
        }
        let mut rendered = Vec::with_capacity(self.sources.len());
        for (key, text) in self.texts()? {
            let value = text.render(params).map_err(|error| failed(&error))?;
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
