//! What is wanted, as sources and generators say: given from outside, for it takes git and hosts.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use baton_api::{Application, ApplicationSet};
use jiff::Timestamp;
use serde_json::Value;

/// What becomes of a question, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Reads sources and runs generators. Errors are for people and hold no secret.
pub trait Sources: Send + Sync {
    /// The Applications that a set's generators and template give.
    fn generate<'a>(&'a self, set: &'a ApplicationSet) -> Later<'a, Vec<Value>>;

    /// The objects that an Application's sources describe, tracked and with namespaces.
    fn targets<'a>(&'a self, application: &'a Application) -> Later<'a, Vec<Value>>;

    /// What a revision of the only source of an Application says of itself.
    fn describe<'a>(&'a self, application: &'a Application, revision: &'a str) -> Later<'a, Described>;

    /// The branches and tags of a git repository of a project, read with the credentials that are registered for it; or
    /// as these fields of a repository's Secret say, where there are any.
    fn references<'a>(
        &'a self,
        url: &'a str,
        project: &'a str,
        fields: Option<&'a BTreeMap<String, String>>,
    ) -> Later<'a, References>;
}

/// What a repository has to be named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// Its branches.
    pub branches: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// What a revision of a source says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// A commit.
    Commit {
        /// Who wrote it.
        author: String,
        /// When.
        date: Timestamp,
        /// Tags that lead to it.
        tags: Vec<String>,
        /// Its message.
        message: String,
    },
    /// A version of a chart.
    Chart {
        /// In a sentence.
        description: String,
        /// Where it lives.
        home: String,
        /// Who cares for it.
        maintainers: Vec<String>,
    },
}
