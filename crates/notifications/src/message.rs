//! A message: what is told, ready for a service.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The text for every service.
    Message,
    /// Subject of an e-mail.
    EmailSubject,
    /// Body of an e-mail, in the place of the text.
    EmailBody,
    /// Who it seems to come from.
    SlackUsername,
    /// The picture beside it: an emoji or a URL.
    SlackIcon,
    /// Attachments, a JSON list.
    SlackAttachments,
    /// Blocks, a JSON list.
    SlackBlocks,
    /// Method of the call.
    WebhookMethod,
    /// What follows the service's URL.
    WebhookPath,
    /// Body of the call, in the place of the text.
    WebhookBody,
    /// Title of a card.
    TeamsTitle,
    /// Text of a card, in the place of the text.
    TeamsText,
    /// What stands in lists of notifications.
    TeamsSummary,
    /// Colour of a card.
    TeamsThemeColor,
    /// Facts, a JSON list of name and value.
    TeamsFacts,
    /// Sections, a JSON list.
    TeamsSections,
    /// Buttons, a JSON list.
    TeamsPotentialAction,
    /// The whole card as JSON, in the place of everything else.
    TeamsTemplate,
    /// Title of an adaptive card.
    WorkflowsTitle,
    /// Text of an adaptive card, in the place of the text.
    WorkflowsText,
    /// Colour of an adaptive card's title.
    WorkflowsThemeColor,
    /// Facts, a JSON list of name and value.
    WorkflowsFacts,
    /// Sections, a JSON list, of which the facts are shown.
    WorkflowsSections,
    /// Buttons, a JSON list, of which those that open a URL are shown.
    WorkflowsPotentialAction,
    /// The whole adaptive card as JSON, in the place of everything else.
    WorkflowsAdaptiveCard,
}

/// What is told, ready for a service.
///
/// # Guarantees
/// `Debug` shows which texts there are and none of them: templates may write secrets into messages.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message {
    parts: BTreeMap<Part, String>,
}

// === impl Part ===

impl Part {
    /// All of them.
    pub(crate) const ALL: [Part; 25] = [
        Part::Message,
        Part::EmailSubject,
        Part::EmailBody,
        Part::SlackUsername,
        Part::SlackIcon,
        Part::SlackAttachments,
        Part::SlackBlocks,
        Part::WebhookMethod,
        Part::WebhookPath,
        Part::WebhookBody,
        Part::TeamsTitle,
        Part::TeamsText,
        Part::TeamsSummary,
        Part::TeamsThemeColor,
        Part::TeamsFacts,
        Part::TeamsSections,
        Part::TeamsPotentialAction,
        Part::TeamsTemplate,
        Part::WorkflowsTitle,
        Part::WorkflowsText,
        Part::WorkflowsThemeColor,
        Part::WorkflowsFacts,
        Part::WorkflowsSections,
        Part::WorkflowsPotentialAction,
        Part::WorkflowsAdaptiveCard,
    ];

    /// The block of a template it stands in, and its name there. The block is the type of the service.
    pub(crate) fn place(self) -> (&'static str, &'static str) {
        match self {
            Part::Message => ("", "message"),
            Part::EmailSubject => ("email", "subject"),
            Part::EmailBody => ("email", "body"),
            Part::SlackUsername => ("slack", "username"),
            Part::SlackIcon => ("slack", "icon"),
            Part::SlackAttachments => ("slack", "attachments"),
            Part::SlackBlocks => ("slack", "blocks"),
            Part::WebhookMethod => ("webhook", "method"),
            Part::WebhookPath => ("webhook", "path"),
            Part::WebhookBody => ("webhook", "body"),
            Part::TeamsTitle => ("teams", "title"),
            Part::TeamsText => ("teams", "text"),
            Part::TeamsSummary => ("teams", "summary"),
            Part::TeamsThemeColor => ("teams", "themeColor"),
            Part::TeamsFacts => ("teams", "facts"),
            Part::TeamsSections => ("teams", "sections"),
            Part::TeamsPotentialAction => ("teams", "potentialAction"),
            Part::TeamsTemplate => ("teams", "template"),
            Part::WorkflowsTitle => ("teams-workflows", "title"),
            Part::WorkflowsText => ("teams-workflows", "text"),
            Part::WorkflowsThemeColor => ("teams-workflows", "themeColor"),
            Part::WorkflowsFacts => ("teams-workflows", "facts"),
            Part::WorkflowsSections => ("teams-workflows", "sections"),
            Part::WorkflowsPotentialAction => ("teams-workflows", "potentialAction"),
            Part::WorkflowsAdaptiveCard => ("teams-workflows", "adaptiveCard"),
        }
    }
}

// === impl Message ===

impl Message {
    /// A message of one text.
    pub fn plain(text: impl Into<String>) -> Message {
        Message { parts: BTreeMap::from([(Part::Message, text.into())]) }
    }

    /// A text of it, if it is there and not empty.
    pub fn get(&self, part: Part) -> Option<&str> {
        self.parts.get(&part).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The first of these texts that is there.
    pub fn first(&self, parts: &[Part]) -> &str {
        parts.iter().find_map(|part| self.get(*part)).unwrap_or_default()
    }

    /// Sets a text.
    pub fn set(&mut self, part: Part, text: impl Into<String>) {
        self.parts.insert(part, text.into());
    }

    /// How many bytes it takes where it is stored: as JSON, in which some characters take six.
    pub fn bytes(&self) -> usize {
        let quoted = |text: &String| serde_json::to_string(text).map_or(text.len(), |json| json.len());
        self.parts.values().map(quoted).sum()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.parts.keys()).finish()
    }
}
