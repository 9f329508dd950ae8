//! Reading settings from environment variables.

use std::time::Duration;

use crate::settings::SettingsError;

/// Whether something is on, by a word that Go reads so.
pub fn switch(word: &str) -> Option<bool> {
    match word {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Reads variables with a common prefix. An empty one is as good as unset, as with Argo CD.
pub(crate) struct Environment<F> {
    prefix: &'static str,
    variable: F,
}

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    pub(crate) fn new(prefix: &'static str, variable: F) -> Environment<F> {
        Environment { prefix, variable }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.variable)(&format!("{}{name}", self.prefix)).filter(|value| !value.is_empty())
    }

    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    pub(crate) fn switch(&self, name: &str) -> Result<Option<bool>, SettingsError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match switch(&value) {
            Some(on) => Ok(Some(on)),
            None => Err(self.refused(name, value, "must be true or false".to_owned())),
        }
    }

    pub(crate) fn number(
        &self,
        name: &str,
        default: usize,
        least: usize,
        most: usize,
    ) -> Result<usize, SettingsError> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let number = value.parse().ok().filter(|number| (least..=most).contains(number));
        let expected = match most {
            usize::MAX => format!("must be a whole number of at least {least}"),
            _ => format!("must be a whole number from {least} to {most}"),
        };
        number.ok_or_else(|| self.refused(name, value, expected))
    }

    pub(crate) fn duration(
        &self,
        name: &str,
        default: Duration,
        least: Duration,
        most: Duration,
    ) -> Result<Duration, SettingsError> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let read = match value.parse::<baton_grammar::duration::Duration>() {
            Ok(duration) => duration.to_std(),
            Err(error) => return Err(self.refused(name, value, error.to_string())),
        };
        let expected = format!("must be a duration from {} s to {} s", least.as_secs(), most.as_secs());
        read.filter(|duration| (least..=most).contains(duration))
            .ok_or_else(|| self.refused(name, value, expected))
    }

    pub(crate) fn refused(&self, name: &str, value: String, expected: String) -> SettingsError {
        SettingsError::Value { name: format!("{}{name}", self.prefix), value, expected }
    }
}
