//! Which parameters of its target a text needs, as far as that shows before it is filled in.

use std::collections::BTreeMap;
use std::ops::Bound;

use baton_api::phases::{Check, CommandCall, Hook, HttpCall};

use crate::text::{self, Language};
use crate::validate::Policy;

/// A parameter without which a text cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The field of the hook or check, such as `http.url`.
    pub field: String,
    /// The parameter under its dotted path.
    pub parameter: String,
    /// The language it is written in.
    pub language: Language,
}

/// The parameters that the texts of a hook need.
pub fn hook_needs(hook: &Hook, policy: &Policy) -> Vec<Need> {
    needs(hook.http.as_ref(), hook.command.as_ref(), policy.language)
}

/// The parameters that the texts of a check need.
pub fn check_needs(check: &Check, policy: &Policy) -> Vec<Need> {
    needs(check.http.as_ref(), check.command.as_ref(), policy.language)
}

fn needs(http: Option<&HttpCall>, command: Option<&CommandCall>, language: Language) -> Vec<Need> {
    let mut found = Vec::new();
    let mut add = |field: String, written: &str| {
        let parameters = text::parameters(language, written).into_iter();
        found.extend(parameters.map(|parameter| Need { field: field.clone(), parameter, language }));
    };
    if let Some(call) = http {
        add("http.url".to_owned(), &call.url);
        add("http.body".to_owned(), &call.body);
        for (name, value) in &call.headers {
            add(format!("http.headers[{name}]"), value);
        }
    }
    if let Some(call) = command {
        for (index, argument) in call.command.iter().enumerate().skip(1) {
            add(format!("command.command[{index}]"), argument);
        }
        for (name, value) in &call.env {
            add(format!("command.env[{name}]"), value);
        }
    }
    found
}

// === impl Need ===

impl Need {
    /// Whether these parameters, flat, have it. In Go templates it may be a map or a list as well.
    pub fn is_met(&self, params: &BTreeMap<String, String>) -> bool {
        let within = || {
            let begin = format!("{}.", self.parameter);
            let from = (Bound::Included(begin.as_str()), Bound::Unbounded);
            params.range::<str, _>(from).next().is_some_and(|(key, _)| key.starts_with(&begin))
        };
        params.contains_key(&self.parameter) || (self.language == Language::Go && within())
    }

    /// The name that a generator must give: in Go templates the first of the path.
    pub fn given_as(&self) -> &str {
        match self.language {
            Language::Params => &self.parameter,
            Language::Go => self.parameter.split('.').next().unwrap_or_default(),
        }
    }

    /// As it is written.
    pub fn shown(&self) -> String {
        match self.language {
            Language::Params => format!("{{{{{}}}}}", self.parameter),
            Language::Go => format!(".{}", self.parameter),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(language: Language, url: &str, body: &str) -> Vec<String> {
        let hook = json!({"name": "h", "type": "http", "http": {"url": url, "body": body, "headers": {"A": "{{.a}}"}}});
        let hook = serde_json::from_value(hook).expect("the JSON of a hook");
        let found = hook_needs(&hook, &Policy::widest(language));
        found.iter().map(|need| format!("{} {}", need.field, need.parameter)).collect()
    }

    #[test]
    fn what_a_text_needs_of_its_target_is_known_beforehand() {
        let expected = ["http.url name", "http.body metadata.labels.env", "http.headers[A] a"];
        let body = "{{.appset.name}} {{.phase.name}} {{.secrets.s.t}} {{ .target.metadata.labels.env }}";
        for language in [Language::Params, Language::Go] {
            assert_eq!(of(language, "https://{{.name}}/", body), expected, "{language:?}");
        }
        assert_eq!(
            of(Language::Go, "https://x/", "{{ if .b }}{{ .c }}{{ end }}{{ toJson .d }}"),
            ["http.headers[A] a"]
        );
        assert!(of(Language::Params, "https://x/", "{{b").len() == 1);
    }

    #[test]
    fn a_need_is_met_by_a_parameter_and_in_go_by_what_holds_one() {
        let params = BTreeMap::from([("a.b".to_owned(), "1".to_owned()), ("ab".to_owned(), "2".to_owned())]);
        let need = |language: Language, parameter: &str| {
            let need = Need { field: String::new(), parameter: parameter.to_owned(), language };
            need.is_met(&params)
        };
        assert!(need(Language::Params, "a.b") && !need(Language::Params, "a"));
        assert!(need(Language::Go, "a.b") && need(Language::Go, "a") && !need(Language::Go, "b"));
    }
}
