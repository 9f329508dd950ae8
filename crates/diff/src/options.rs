//! The annotation `argocd.argoproj.io/compare-options`.

use baton_api::names::resource::COMPARE_OPTIONS;
use baton_api::object::Object as _;
use serde_json::Value;

/// How an object, or the objects of an Application, are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompareOptions {
    /// `ServerSideDiff=true|false` of an Application; `None` where neither is said.
    pub server_side_diff: Option<bool>,
    /// `IncludeMutationWebhook=true` of an Application: what webhooks change counts.
    pub include_mutations: bool,
    /// `IgnoreExtraneous` of an object: it does not make its Application OutOfSync where it is in no source.
    pub ignore_extraneous: bool,
}

impl CompareOptions {
    /// The options an object states.
    pub fn of(object: &Value) -> CompareOptions {
        CompareOptions::parse(object.annotation(COMPARE_OPTIONS).unwrap_or_default())
    }

    /// Reads options separated by commas; unknown ones are passed over. `ServerSideDiff=false` beats its opposite.
    pub fn parse(text: &str) -> CompareOptions {
        let says = |option: &str| text.split(',').any(|item| item.trim() == option);
        let refused = says("ServerSideDiff=false").then_some(false);
        CompareOptions {
            server_side_diff: refused.or_else(|| says("ServerSideDiff=true").then_some(true)),
            include_mutations: says("IncludeMutationWebhook=true"),
            ignore_extraneous: says("IgnoreExtraneous"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_exact_words() {
        let object = json!({"metadata": {"annotations": {
            "argocd.argoproj.io/compare-options": " IgnoreExtraneous,ServerSideDiff=false , ServerSideDiff=true,x"}}});
        let expected = CompareOptions {
            server_side_diff: Some(false),
            include_mutations: false,
            ignore_extraneous: true,
        };
        assert_eq!(CompareOptions::of(&object), expected);
        assert_eq!(
            CompareOptions::parse("ignoreExtraneous,ServerSideDiff,IncludeMutationWebhook=1"),
            CompareOptions::default()
        );
        assert!(CompareOptions::parse("IncludeMutationWebhook=true").include_mutations);
    }
}
