//! One template of the catalog, written out for every kind of service.

use serde_json::{Map, Value as Json, json};

/// What a message says, and how it looks.
pub(super) struct Template {
    pub(super) name: &'static str,
    /// One line: what happened.
    pub(super) title: &'static str,
    /// What follows it, if anything.
    pub(super) detail: &'static str,
    /// Facts beside it: a name, and the template of a value.
    pub(super) facts: &'static [(&'static str, &'static str)],
    pub(super) mood: Mood,
    /// What follows the address of the user interface in links.
    pub(super) link: &'static str,
    /// Name of the link.
    pub(super) link_name: &'static str,
    /// What a webhook by the name of `webhook` is sent; nothing if empty.
    pub(super) webhook: &'static str,
}

/// How it looks.
#[derive(Clone, Copy)]
pub(super) enum Mood {
    Good,
    Underway,
    Bad,
    /// Somebody has to do something.
    Urgent,
}

// === impl Template ===

impl Template {
    pub(super) fn to_json(&self) -> Json {
        let mut template = Map::new();
        let mut set = |name: &str, value: Json| template.insert(name.to_owned(), value);
        set("message", self.message().into());
        set("email", json!({"subject": self.title}));
        set("slack", json!({"attachments": self.slack_attachments()}));
        set("teams", self.teams(self.mood.color()));
        set("teams-workflows", self.teams(self.mood.word()));
        if !self.webhook.is_empty() {
            set("webhook", json!({"webhook": {"method": "POST", "body": self.webhook}}));
        }
        Json::Object(template)
    }

    fn message(&self) -> String {
        let Template { title, detail, link, .. } = self;
        let emoji = self.mood.emoji();
        let detail = if detail.is_empty() { String::new() } else { format!("\n{detail}") };
        let link = format!("{{{{ with .context.argocdUrl }}}}\n{{{{ . }}}}{link}{{{{ end }}}}");
        format!("{{{{ if eq .serviceType \"slack\" }}}}{emoji} {{{{ end }}}}{title}{detail}{link}")
    }

    fn slack_attachments(&self) -> String {
        let fields: Vec<String> = self
            .facts
            .iter()
            .map(|(name, value)| {
                let name = Json::from(*name);
                format!(
                    r#"{{"title": {name}, "value": {{{{ {value} | toString | toJson }}}}, "short": true}}"#
                )
            })
            .collect();
        let (color, fields, link, name) = (self.mood.color(), fields.join(", "), self.link, self.link_name);
        format!(
            r#"[{{"color": "{color}", {{{{ with .context.argocdUrl }}}}"title": "{name}", "title_link": "{{{{ . }}}}{link}", {{{{ end }}}}"fields": [{fields}]}}]"#
        )
    }

    fn teams(&self, color: &str) -> Json {
        let facts: Vec<String> = self
            .facts
            .iter()
            .map(|(name, value)| {
                let name = Json::from(*name);
                format!(r#"{{"name": {name}, "value": {{{{ {value} | toString | toJson }}}}}}"#)
            })
            .collect();
        let (facts, link, name) = (facts.join(", "), self.link, self.link_name);
        let action = format!(
            r#"[{{{{ with .context.argocdUrl }}}}{{"@type": "OpenUri", "name": "{name}", "targets": [{{"os": "default", "uri": "{{{{ . }}}}{link}"}}]}}{{{{ end }}}}]"#
        );
        json!({
            "themeColor": color,
            "title": self.title,
            "text": if self.detail.is_empty() { self.title } else { self.detail },
            "facts": format!("[{facts}]"),
            "potentialAction": action,
        })
    }
}

// === impl Mood ===

impl Mood {
    fn emoji(self) -> &'static str {
        match self {
            Mood::Good => ":white_check_mark:",
            Mood::Underway => ":arrow_forward:",
            Mood::Bad => ":x:",
            Mood::Urgent => ":raised_hand:",
        }
    }

    fn color(self) -> &'static str {
        match self {
            Mood::Good => "#2e9e5b",
            Mood::Underway => "#2f6fd0",
            Mood::Bad => "#d43a2f",
            Mood::Urgent => "#d98a00",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Mood::Good => "Good",
            Mood::Underway => "Accent",
            Mood::Bad => "Attention",
            Mood::Urgent => "Warning",
        }
    }
}
