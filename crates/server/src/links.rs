//! Links that the operator has set for Applications, resources and projects: addresses with templates, and when they are
//! shown.

use baton_notifications::expression::{Expression, Variables};
use baton_template::{Limits, MissingKey, Template};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Most links of one list.
const MOST: usize = 50;
/// Longest address.
const LONGEST: usize = 4096;
/// What one template may use.
const LIMITS: Limits = Limits { steps: 20_000, output: 16 << 10, depth: 20 };

/// A link as it is set.
#[derive(Deserialize)]
struct Written {
    url: String,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default, rename = "icon.class")]
    icon: String,
    #[serde(default, rename = "if")]
    condition: String,
}

/// The links of a setting, for these things. One that cannot be read or made is left out, and the operator is told why.
pub(crate) fn links(setting: &str, text: &str, things: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
    let written = baton_grammar::yaml::first(text).map_err(|error| error.to_string());
    let written = written.and_then(|value| match value {
        Value::Null => Ok(Vec::new()),
        value => serde_json::from_value::<Vec<Written>>(value).map_err(|error| error.to_string()),
    });
    let written = written.unwrap_or_else(|error| {
        tracing::warn!(setting, error, "links of argocd-cm cannot be read");
        Vec::new()
    });
    let mut shown = Vec::new();
    for link in written.iter().take(MOST) {
        match link.shown(things, now) {
            Ok(link) => shown.extend(link),
            Err(error) => {
                tracing::warn!(setting, title = link.title, error, "a link of argocd-cm cannot be made")
            }
        }
    }
    shown
}

// === impl Written ===

impl Written {
    fn shown(&self, things: &Map<String, Value>, now: Timestamp) -> Result<Option<Value>, String> {
        if !self.condition.trim().is_empty() {
            let condition = Expression::parse(&self.condition).map_err(|error| error.to_string())?;
            let variables: Variables<'_> =
                things.iter().map(|(name, thing)| (name.as_str(), thing)).collect();
            if !condition.holds(&variables, now).map_err(|error| error.to_string())? {
                return Ok(None);
            }
        }
        let filled = |text: &str| {
            let template = Template::parse("link", text).map_err(|error| error.to_string())?;
            let data = baton_template::Value::from(&Value::Object(things.clone()));
            template.execute(&data, MissingKey::Error, LIMITS).map_err(|error| error.to_string())
        };
        let url = filled(&self.url)?;
        let url = url.trim();
        // A page that shows it must run nothing by it.
        let sound = ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme));
        if !sound || url.len() > LONGEST || url.chars().any(char::is_control) {
            return Err("it leads to no http, https or mail address".to_owned());
        }
        let mut link = json!({"title": filled(&self.title)?, "url": url});
        for (name, text) in [("description", &self.description), ("iconClass", &self.icon)] {
            if !text.is_empty() {
                link[name] = filled(text)?.into();
            }
        }
        Ok(Some(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Value> {
        let things = json!({"app": {"metadata": {"name": "web", "labels": {"env": "dev"}}}});
        links("application.links", text, things.as_object().expect("things"), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_link_is_shown_where_its_condition_holds() {
        let text = "\
- url: https://logs.example.com/?app={{.app.metadata.name}}
  title: Logs
  description: of {{.app.metadata.name}}
  icon.class: fa-book
  if: app.metadata.labels[\"env\"] == \"dev\"
- url: https://prod.example.com
  title: Prod
  if: app.metadata.labels[\"env\"] == \"prod\"
";
        assert_eq!(
            of(text),
            [json!({"title": "Logs", "url": "https://logs.example.com/?app=web", "description": "of web",
                "iconClass": "fa-book"})]
        );
        assert!(of("").is_empty());
    }

    #[test]
    fn what_cannot_be_made_takes_no_other_link_along() {
        let good = "- {url: 'https://a', title: A}\n";
        for bad in [
            "- {url: 'javascript:alert(1)', title: X}\n",
            "- {url: 'https://{{', title: X}\n",
            "- {url: 'https://{{.app.nothing.x}}', title: X}\n",
            "- {url: 'https://b', title: X, if: 'app.('}\n",
            "- {url: \"https://b\\nc\", title: X}\n",
        ] {
            assert_eq!(of(&format!("{good}{bad}")).len(), 1, "{bad}");
        }
        for none in ["a: [", "[3]", "x"] {
            assert!(of(none).is_empty(), "{none}");
        }
    }
}
