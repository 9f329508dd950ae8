//! One thing that will be different, or that has to be known.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weight {
    /// It will not work until something is done.
    Blocks,
    /// It works, and otherwise than before.
    Differs,
    /// Nothing differs, and somebody may want to know.
    Note,
}

/// What was found at one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Finding {
    pub(super) weight: Weight,
    /// As `ApplicationSet argocd/web`.
    pub(super) object: String,
    /// Short name of the rule, for people who search for it.
    pub(super) rule: &'static str,
    /// What will be, and what to do.
    pub(super) message: String,
}

impl Finding {
    pub(super) fn new(
        weight: Weight,
        object: impl Into<String>,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        Finding { weight, object: object.into(), rule, message: message.into() }
    }
}

impl Weight {
    pub(super) fn word(self) -> &'static str {
        match self {
            Weight::Blocks => "blocks",
            Weight::Differs => "differs",
            Weight::Note => "note",
        }
    }
}
