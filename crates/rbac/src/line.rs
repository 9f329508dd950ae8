//! One line of a policy, and where it stands.

use std::fmt;
use std::sync::Arc;

use crate::csv::{CsvFault, fields};
use crate::finding::shown;
use crate::pattern::{Match, Pattern};
use crate::request::Resource;

/// Longest line, in bytes.
pub(crate) const LONGEST_LINE: usize = 8 << 10;

/// Longest name or pattern, in bytes.
pub(crate) const LONGEST_FIELD: usize = 2 << 10;

/// A line that gives or takes a right.
#[derive(Debug)]
pub struct Line {
    origin: Origin,
    text: Box<str>,
    subject: Arc<str>,
    effect: Effect,
    /// Its place among all lines of the policy.
    pub(crate) number: usize,
    pub(crate) resource: Arc<Pattern>,
    pub(crate) action: Arc<Pattern>,
    pub(crate) object: Arc<Pattern>,
}

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In the policy that is always there.
    BuiltIn,
    /// In the ConfigMap.
    Config {
        /// The key.
        key: Arc<str>,
        /// The line, from 1.
        line: usize,
    },
    /// In an AppProject.
    Project {
        /// The project.
        project: Arc<str>,
        /// The path of the field.
        field: String,
    },
}

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It gives a right.
    Allow,
    /// It takes a right away.
    Deny,
    /// Another word, which does nothing.
    None,
}

/// Why a line is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// It is no CSV.
    #[error(transparent)]
    Csv(#[from] CsvFault),
    /// It begins with another word than `p` or `g`.
    #[error("a line begins with p or g, not with {0}; a comment begins with #")]
    Key(String),
    /// A `p` line that has not six fields.
    #[error("{0} fields instead of six: p, <subject>, <resource>, <action>, <object>, <allow or deny>")]
    Right(usize),
    /// A `g` line that has not three fields.
    #[error("{0} fields instead of three: g, <user or group>, <role>; quote a name that has a comma in it")]
    Link(usize),
    /// The line is too long.
    #[error("the line is longer than {LONGEST_LINE} bytes: write shorter lines")]
    LineTooLong,
    /// A field is too long.
    #[error("a field is longer than {LONGEST_FIELD} bytes: write a shorter name or pattern")]
    FieldTooLong,
    /// A pattern cannot be read, where that is not tolerated.
    #[error("{0}; correct the pattern, for under policy.strictDeny a deny that cannot match is refused")]
    Pattern(String),
    /// The text of a project's policy has more than one line.
    #[error("a policy is one line: make a policy of each")]
    Lines,
}

/// A line as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// `p`
    Right(Right),
    /// `g`
    Link { member: String, role: String },
}

/// The fields of a `p` line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) subject: String,
    pub(crate) resource: String,
    pub(crate) action: String,
    pub(crate) object: String,
    pub(crate) effect: String,
}

/// The patterns of a `p` line.
pub(crate) struct Compiled {
    pub(crate) resource: Arc<Pattern>,
    pub(crate) action: Arc<Pattern>,
    pub(crate) object: Arc<Pattern>,
}

/// Reads a line; `None` for a comment or an empty one.
pub(crate) fn parse(line: &str) -> Result<Option<Entry>, LineFault> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.len() > LONGEST_LINE {
        return Err(LineFault::LineTooLong);
    }
    let fields = fields(line)?;
    if fields.iter().any(|field| field.len() > LONGEST_FIELD) {
        return Err(LineFault::FieldTooLong);
    }
    let count = fields.len();
    let key = fields.first().cloned().unwrap_or_default();
    match (key.as_str(), <[String; 6]>::try_from(fields)) {
        ("p", Ok([_, subject, resource, action, object, effect])) => {
            Ok(Some(Entry::Right(Right { subject, resource, action, object, effect })))
        }
        ("p", Err(_)) => Err(LineFault::Right(count)),
        ("g", Err(fields)) => match <[String; 3]>::try_from(fields) {
            Ok([_, member, role]) => Ok(Some(Entry::Link { member, role })),
            Err(_) => Err(LineFault::Link(count)),
        },
        ("g", Ok(_)) => Err(LineFault::Link(count)),
        _ => Err(LineFault::Key(shown(&key))),
    }
}

// === impl Line ===

impl Line {
    pub(crate) fn new(
        origin: Origin,
        text: &str,
        subject: Arc<str>,
        effect: &str,
        compiled: Compiled,
        number: usize,
    ) -> Line {
        let effect = match effect {
            "allow" => Effect::Allow,
            "deny" => Effect::Deny,
            _ => Effect::None,
        };
        let Compiled { resource, action, object } = compiled;
        Line { origin, text: text.trim().into(), subject, effect, number, resource, action, object }
    }

    /// Where it stands.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whom it speaks of: a role, a person or a group.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// What it does.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Whether it can have a say in requests over the resource.
    pub(crate) fn speaks_of(&self, resource: Resource) -> bool {
        self.resource.compare(resource.word()) != Match::No
    }

    pub(crate) fn patterns(&self) -> [(&'static str, &Pattern); 3] {
        [("resource", &*self.resource), ("action", &*self.action), ("object", &*self.object)]
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.origin, self.text)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("the built-in policy"),
            Origin::Config { key, line } => write!(f, "line {line} of {key}"),
            Origin::Project { project, field } => write!(f, "{field} of project {project}"),
        }
    }
}
