//! What is asked to be done: the words of policies for it.

use std::borrow::Cow;
use std::fmt;

use baton_api::verbs::{APPROVE_DELETION, SetVerb};

use crate::finding::shown;
use crate::request::RequestError;

/// Longest action, in bytes.
const LONGEST: usize = 2 << 10;

/// What is asked to be done, in the words of policies: `sync`, `action/apps/Deployment/restart`, …
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Action(Cow<'static, str>);

/// The actions that are one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// To read.
    Get,
    /// To create.
    Create,
    /// To change.
    Update,
    /// To delete.
    Delete,
    /// To sync an Application.
    Sync,
    /// To go back to an earlier sync.
    Rollback,
    /// To sync with local manifests.
    Override,
    /// The bare word, which Argo CD's `can-i` takes; nothing asks for it.
    Action,
    /// To call an extension.
    Invoke,
}

// === impl Verb ===

impl Verb {
    /// All of them, in the order Argo CD lists them.
    pub const ALL: [Verb; 9] = [
        Verb::Get,
        Verb::Create,
        Verb::Update,
        Verb::Delete,
        Verb::Sync,
        Verb::Rollback,
        Verb::Override,
        Verb::Action,
        Verb::Invoke,
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::Sync => "sync",
            Verb::Rollback => "rollback",
            Verb::Override => "override",
            Verb::Action => "action",
            Verb::Invoke => "invoke",
        }
    }
}

// === impl Action ===

impl Action {
    /// Reads an action: a word, `action/<group>/<Kind>/<name>`, or `update` or `delete` with
    /// `/<group>/<Kind>/<namespace>/<name>`. The core group and the namespace of what has none are empty.
    ///
    /// # Errors
    /// Any other text, and one that is too long.
    pub fn parse(text: &str) -> Result<Action, RequestError> {
        if let Some(verb) = Verb::ALL.into_iter().find(|verb| verb.word() == text) {
            return Ok(Action::from(verb));
        }
        let parts: Vec<&str> = text.splitn(5, '/').collect();
        match parts[..] {
            ["action", group, kind, name] => Action::run(group, kind, name),
            ["action", group, kind, name, more] => Action::run(group, kind, &format!("{name}/{more}")),
            ["update", group, kind, namespace, name] => {
                Action::on_resource(Verb::Update, group, kind, namespace, name)
            }
            ["delete", group, kind, namespace, name] => {
                Action::on_resource(Verb::Delete, group, kind, namespace, name)
            }
            _ => Err(RequestError::Action { action: shown(text) }),
        }
    }

    /// To run a resource's action.
    ///
    /// # Errors
    /// A group or kind with a `/` in it, no kind, no name, too long a text.
    pub fn run(group: &str, kind: &str, name: &str) -> Result<Action, RequestError> {
        let text = format!("action/{group}/{kind}/{name}");
        Action::of_parts(text, &[("group", group)], kind, name)
    }

    /// To change or delete one resource of an Application.
    ///
    /// # Errors
    /// A verb that is neither, a group, kind or namespace with a `/` in it, no kind, no name, too long a text.
    pub fn on_resource(
        verb: Verb,
        group: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Action, RequestError> {
        let text = format!("{}/{group}/{kind}/{namespace}/{name}", verb.word());
        if !matches!(verb, Verb::Update | Verb::Delete) {
            return Err(RequestError::Action { action: shown(&text) });
        }
        Action::of_parts(text, &[("group", group), ("namespace", namespace)], kind, name)
    }

    /// To approve the deletion of a resource, or of an Application as a whole by its own group and kind.
    ///
    /// # Errors
    /// As [`Action::run`].
    pub fn approve_deletion(group: &str, kind: &str) -> Result<Action, RequestError> {
        Action::run(group, kind, APPROVE_DELETION)
    }

    /// To do something to the rollout of an ApplicationSet.
    pub fn on_set(verb: SetVerb) -> Action {
        Action(Cow::Owned(verb.right()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it approves a deletion, of whichever kind.
    pub fn approves_deletion(&self) -> bool {
        let parts = self.0.strip_prefix("action/").and_then(|rest| rest.rsplit_once('/'));
        parts.is_some_and(|(_, name)| name == APPROVE_DELETION)
    }

    /// The right over the whole Application that would cover it: `update` for `update/…`, `delete` for `delete/…`.
    pub(crate) fn over_the_whole(&self) -> Option<Action> {
        match self.0.split_once('/')?.0 {
            "update" => Some(Action::from(Verb::Update)),
            "delete" => Some(Action::from(Verb::Delete)),
            _ => None,
        }
    }

    /// A text whose parts are told apart again by their slashes.
    fn of_parts(
        text: String,
        others: &[(&'static str, &str)],
        kind: &str,
        name: &str,
    ) -> Result<Action, RequestError> {
        if text.len() > LONGEST {
            return Err(RequestError::TooLong { what: "action", most: LONGEST });
        }
        for (what, part) in others.iter().chain(&[("kind", kind)]) {
            if part.contains('/') {
                return Err(RequestError::Slash { what, text: shown(part) });
            }
        }
        if name.is_empty() || kind.is_empty() {
            return Err(RequestError::Action { action: shown(&text) });
        }
        Ok(Action(Cow::Owned(text)))
    }
}

impl From<Verb> for Action {
    fn from(verb: Verb) -> Action {
        Action(Cow::Borrowed(verb.word()))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
