//! What revisions of an Application's sources say of themselves.

use baton_api::Application;
use baton_api::source::Source;
use serde_json::{Value, json};

use super::applications::Named;
use crate::error::{Code, Error};
use crate::server::{Context, Server};
use crate::sources::Described;

/// Longest name of a revision.
const LONGEST: usize = 500;

/// Which revision of which source is meant.
#[derive(Debug, Clone, Default)]
pub struct RevisionQuery {
    /// Its name.
    pub revision: String,
    /// The place of the source among several, from 0.
    pub source: Option<usize>,
    /// The sync of the history whose sources are meant; those of now where there is none.
    pub version: Option<i64>,
}

impl Server {
    /// Who wrote a commit, when, and with which message.
    ///
    /// # Errors
    /// The caller may not see the Application, it has no such source, or the source no such revision.
    pub async fn revision_metadata(
        &self,
        context: &Context,
        at: &Named,
        query: &RevisionQuery,
    ) -> Result<Value, Error> {
        match self.described(context, at, query, false).await? {
            Described::Commit { author, date, tags, message } => Ok(
                json!({"author": author, "date": date, "tags": tags, "message": message, "signatureInfo": ""}),
            ),
            Described::Chart { .. } => Err(Error::invalid("this source is a chart: ask for chartdetails")),
        }
    }

    /// What a version of a chart says of itself.
    ///
    /// # Errors
    /// As [`Server::revision_metadata`].
    pub async fn chart_details(
        &self,
        context: &Context,
        at: &Named,
        query: &RevisionQuery,
    ) -> Result<Value, Error> {
        match self.described(context, at, query, true).await? {
            Described::Chart { description, home, maintainers } => {
                Ok(json!({"description": description, "home": home, "maintainers": maintainers}))
            }
            Described::Commit { .. } => Err(Error::invalid("this source is no chart: ask for metadata")),
        }
    }

    async fn described(
        &self,
        context: &Context,
        at: &Named,
        query: &RevisionQuery,
        chart: bool,
    ) -> Result<Described, Error> {
        let found = self.find(context, at, "get").await?;
        let source = query.source_of(&found.typed)?;
        if source.chart.is_empty() == chart {
            let what = if chart { "no chart: ask for metadata" } else { "a chart: ask for chartdetails" };
            return Err(Error::invalid(format!("this source is {what}")));
        }
        if query.revision.len() > LONGEST || query.revision.chars().any(char::is_control) {
            return Err(Error::invalid("this can be no revision"));
        }
        let sources = self.0.sources.as_ref();
        let sources =
            sources.ok_or_else(|| Error::new(Code::Unimplemented, "this server reads no sources"))?;
        let mut application = found.typed.clone();
        (application.spec.source, application.spec.sources) = (Some(source.clone()), Vec::new());
        sources.describe(&application, &query.revision).await.map_err(Error::precondition)
    }
}

// === impl RevisionQuery ===

impl RevisionQuery {
    fn source_of<'a>(&self, application: &'a Application) -> Result<&'a Source, Error> {
        let sources = match self.version.filter(|version| *version > 0) {
            None => application.spec.effective_sources(),
            Some(version) => {
                let mut history = application.status.history.iter();
                let entry = history.find(|entry| entry.id == version);
                let entry =
                    entry.ok_or_else(|| Error::invalid(format!("the history has no entry {version}")))?;
                match entry.sources.as_slice() {
                    [] => std::slice::from_ref(&entry.source),
                    many => many,
                }
            }
        };
        let place = self.source.unwrap_or(0);
        let missing = || Error::invalid(format!("there is no source {place}: there are {}", sources.len()));
        sources.get(place).ok_or_else(missing)
    }
}
