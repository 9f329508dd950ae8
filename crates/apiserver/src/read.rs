//! Reading objects: get, list with consistent pages, and the selectors both share with watch.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_grammar::fields::FieldSelector;
use baton_grammar::labels::{Selector, Test};
use baton_schema::{FieldError, names};
use baton_store::{ListError, Page, Record};
use memchr::memmem;
use serde_json::{Value, json};

use crate::catalog::Resource;
use crate::cluster::Core;
use crate::failure::{Failure, Subject};
use crate::object;
use crate::request::Query;

/// What errors in the options of a list or watch are about.
pub(crate) const LIST_OPTIONS: Subject<'static> =
    Subject { group: "meta.k8s.io", resource: "ListOptions", name: "" };

/// What a list or watch keeps of a collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    labels: Selector,
    fields: FieldSelector,
    /// Texts that the JSON of every object that passes holds.
    marks: Vec<String>,
}

impl Filter {
    pub(crate) fn read(resource: &Resource, query: &Query, name: Option<&str>) -> Result<Filter, Failure> {
        let labels = match query.get("labelSelector") {
            None => Selector::default(),
            Some(text) => Selector::parse(text).map_err(|error| Failure::bad_request(error.to_string()))?,
        };
        for requirement in &labels.requirements {
            if let Some(why) = names::qualified_name(&requirement.key).first() {
                let message =
                    format!("unable to parse requirement: key: Invalid value: {:?}: {why}", requirement.key);
                return Err(Failure::bad_request(message));
            }
        }
        let mut fields = match query.get("fieldSelector") {
            None => FieldSelector::default(),
            Some(text) => FieldSelector::parse(text)
                .map_err(|error| Failure::bad_request(format!("unable to parse field selector: {error}")))?,
        };
        if let Some(term) = fields.terms.iter().find(|term| !resource.selectable(&term.path)) {
            let path = &term.path;
            return Err(Failure::bad_request(if resource.selects_by_name_only() {
                format!(
                    "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {path}")
            }));
        }
        if let Some(name) = name {
            let only =
                baton_grammar::fields::Term { path: "metadata.name".into(), value: name.into(), equal: true };
            fields.terms.push(only);
        }
        let marks = labels.requirements.iter().filter_map(|requirement| match &requirement.test {
            Test::Equals(value) => Some(format!("{}:{}", json!(requirement.key), json!(value))),
            _ => None,
        });
        Ok(Filter { marks: marks.collect(), labels, fields })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the record passes. Names are decided by the key; only other questions need the object.
    pub(crate) fn passes(&self, resource: &Resource, record: &Record) -> bool {
        let key = |path: &str| match path {
            "metadata.name" => Some(record.key.name.to_string()),
            "metadata.namespace" => Some(record.key.namespace.to_string()),
            _ => None,
        };
        let by_key = |path: &str| matches!(path, "metadata.name" | "metadata.namespace");
        let (keyed, other): (Vec<_>, Vec<_>) = self.fields.terms.iter().partition(|term| by_key(&term.path));
        if !keyed.iter().all(|term| (key(&term.path).unwrap_or_default() == term.value) == term.equal) {
            return false;
        }
        if other.is_empty() && self.labels.is_empty() {
            return true;
        }
        if other.is_empty() {
            let json = record.json();
            // Most objects of a large collection are somebody else's, and need not be read to know that.
            if !self.marks.iter().all(|mark| memmem::find(&json, mark.as_bytes()).is_some()) {
                return false;
            }
            let labels = object::read_labels(&json);
            return self.labels.matches(|key| labels.get(key).map(String::as_str));
        }
        let object = object::read(record);
        self.labels.matches_object(&object)
            && other.iter().all(|term| {
                let value = resource.field_value(&object, &term.path).unwrap_or_default();
                (value == term.value) == term.equal
            })
    }

    /// The one name this filter lets through, if it pins one.
    fn exact_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }
}

/// One page of a collection.
pub(crate) struct Chunk {
    pub(crate) revision: u64,
    pub(crate) records: Vec<Arc<Record>>,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// How a client bounds the revision it reads at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The newest.
    Latest,
    /// Anything not older than this.
    NotOlderThan(u64),
    /// Exactly this.
    Exact(u64),
}

impl Freshness {
    pub(crate) fn read(query: &Query, is_watch: bool) -> Result<Freshness, Failure> {
        let revision = match query.get("resourceVersion") {
            None => None,
            Some(text) => Some(text.parse::<u64>().map_err(|_| {
                Failure::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {text:?}: must be a whole number"
                ))
            })?),
        };
        let list_error = |field: &str, detail: &str| {
            Failure::invalid(LIST_OPTIONS, &[FieldError::forbidden(field, detail)])
        };
        match (query.get("resourceVersionMatch"), revision) {
            (Some(_), _) if query.get("continue").is_some() => Err(list_error(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            )),
            (Some(_), None) if !is_watch => Err(list_error(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            )),
            (Some("Exact"), Some(0)) => Err(list_error(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            (Some("Exact"), Some(revision)) => Ok(Freshness::Exact(revision)),
            (Some("NotOlderThan") | None, Some(revision)) => Ok(Freshness::NotOlderThan(revision)),
            (Some("NotOlderThan") | None, None) => Ok(Freshness::Latest),
            (Some(other), _) => {
                let error = baton_schema::FieldError::not_supported(
                    "resourceVersionMatch",
                    other,
                    &["Exact", "NotOlderThan", ""],
                );
                let subject =
                    crate::failure::Subject { group: "meta.k8s.io", resource: "ListOptions", name: "" };
                Err(Failure::invalid(subject, &[error]))
            }
        }
    }
}

impl Core {
    pub(crate) fn get(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        query: &Query,
    ) -> Result<Arc<Record>, Failure> {
        if let Freshness::NotOlderThan(revision) = Freshness::read(query, false)? {
            self.reached(revision)?;
        }
        self.store
            .get(&crate::write::key(resource, namespace, name))
            .ok_or_else(|| Failure::not_found(resource.subject(name)))
    }

    fn reached(&self, revision: u64) -> Result<(), Failure> {
        let current = self.store.revision();
        if revision > current { Err(Failure::future_revision(revision, current)) } else { Ok(()) }
    }

    pub(crate) fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        filter: &Filter,
        query: &Query,
    ) -> Result<Chunk, Failure> {
        let limit = query.number::<usize>("limit")?.filter(|limit| *limit > 0);
        query.number::<u64>("timeoutSeconds")?;
        if query.get("sendInitialEvents").is_some() {
            let error = FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
            return Err(Failure::invalid(LIST_OPTIONS, &[error]));
        }
        let freshness = Freshness::read(query, false)?;
        let token = query.get("continue").map(Token::decode).transpose()?;
        if token.is_some() && matches!(freshness, Freshness::NotOlderThan(revision) if revision > 0) {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let at = match (&token, freshness) {
            (Some(token), _) => token.revision,
            (None, Freshness::Exact(revision)) => Some(revision),
            (None, Freshness::NotOlderThan(revision)) => {
                self.reached(revision)?;
                None
            }
            (None, Freshness::Latest) => None,
        };
        let after = token.as_ref().map(|token| (token.namespace.clone(), token.name.clone()));
        // A filter decides after the store has counted, so only an unfiltered list lets the store cut the page.
        let page_limit = if filter.is_empty() { limit } else { None };
        let page = Page { at, after, limit: page_limit };
        let listing = self.store.list(&resource.storage, namespace, page).map_err(|error| match error {
            ListError::Compacted(_) => match &token {
                Some(token) => Failure::expired_continue(Token { revision: None, ..token.clone() }.encode()),
                None => Failure::expired("The resourceVersion for the provided list is too old."),
            },
            ListError::Future { current } => Failure::future_revision(at.unwrap_or_default(), current),
        })?;
        let mut chunk = Chunk {
            revision: listing.revision,
            records: listing.records,
            continue_token: None,
            remaining: None,
        };
        let mut more = listing.remaining;
        if !filter.is_empty() {
            let limit = limit.unwrap_or(usize::MAX);
            let name = filter.exact_name();
            let passes = |record: &Arc<Record>| {
                name.is_none_or(|name| &*record.key.name == name) && filter.passes(resource, record)
            };
            // One beyond the page tells that there are more; nobody is told how many.
            chunk.records = chunk.records.into_iter().filter(passes).take(limit.saturating_add(1)).collect();
            more = chunk.records.len().saturating_sub(limit);
            chunk.records.truncate(limit);
        }
        if more > 0
            && let Some(last) = chunk.records.last()
        {
            let token = Token {
                revision: Some(listing.revision),
                namespace: last.key.namespace.to_string(),
                name: last.key.name.to_string(),
            };
            chunk.continue_token = Some(token.encode());
            chunk.remaining = filter.is_empty().then_some(more);
        }
        Ok(chunk)
    }
}

/// Where the next page begins. Opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    /// `None` goes on at whatever revision is current.
    revision: Option<u64>,
    namespace: String,
    name: String,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD
            .encode(json!({"rv": self.revision, "ns": self.namespace, "name": self.name}).to_string())
    }

    fn decode(text: &str) -> Result<Token, Failure> {
        let bad = || Failure::bad_request("continue key is not valid: it is not a token of this server");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
        Ok(Token {
            revision: value["rv"].as_u64(),
            namespace: value["ns"].as_str().ok_or_else(bad)?.to_owned(),
            name: value["name"].as_str().ok_or_else(bad)?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went_out() {
        let token = Token { revision: Some(7), namespace: "a".into(), name: "b/c".into() };
        assert_eq!(Token::decode(&token.encode()), Ok(token));
        assert!(Token::decode("%%%").is_err());
        assert!(Token::decode(&URL_SAFE_NO_PAD.encode("{}")).is_err());
    }
}
