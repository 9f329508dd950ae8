//! Which template language a set is written in.

use baton_api::ApplicationSetSpec;
use baton_template::MissingKey;

use crate::error::{RenderError, Subject};

/// The template language of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// `{{param}}` substitution.
    Fast,
    /// Go templates, with what a missing key means.
    Go(MissingKey),
}

impl Engine {
    /// The language a spec asks for. Of several `missingkey` options the last counts; without `goTemplate` options are
    /// not looked at.
    ///
    /// # Errors
    /// An option Go does not know; there it would end the program.
    pub fn of(spec: &ApplicationSetSpec) -> Result<Engine, RenderError> {
        if !spec.go_template {
            return Ok(Engine::Fast);
        }
        let mut missing_key = MissingKey::Default;
        for (index, option) in spec.go_template_options.iter().enumerate() {
            missing_key = option.parse().map_err(|unknown: baton_template::UnknownOption| {
                RenderError::new(
                    Subject::Options,
                    format!("spec.goTemplateOptions[{index}]"),
                    unknown.to_string(),
                )
            })?;
        }
        Ok(Engine::Go(missing_key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(go_template: bool, options: &[&str]) -> Result<Engine, String> {
        let go_template_options = options.iter().map(|&option| option.to_owned()).collect();
        let spec = ApplicationSetSpec { go_template, go_template_options, ..ApplicationSetSpec::default() };
        Engine::of(&spec).map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_missingkey_option_counts_and_unknown_ones_are_refused() {
        assert_eq!(engine(false, &["nonsense"]), Ok(Engine::Fast));
        assert_eq!(engine(true, &[]), Ok(Engine::Go(MissingKey::Default)));
        assert_eq!(engine(true, &["missingkey=error", "missingkey=zero"]), Ok(Engine::Go(MissingKey::Zero)));
        assert_eq!(
            engine(true, &["missingkey=error", "x=y"]),
            Err("spec.goTemplateOptions[1]: unrecognized option: x=y".to_owned())
        );
    }
}
