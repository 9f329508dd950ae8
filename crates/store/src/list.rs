//! Listing objects, now or at an earlier revision.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::ListError;
use crate::record::Record;
use crate::state::{Place, State, Table};

/// Which part of a listing is wanted. The default is everything, now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The state as it was at exactly this revision; `None` for the current one.
    pub at: Option<u64>,
    /// Only objects after this (namespace, name).
    pub after: Option<(String, String)>,
    /// At most this many objects.
    pub limit: Option<usize>,
}

/// Objects ordered by (namespace, name).
#[derive(Clone, Debug)]
pub struct Listing {
    /// The revision at which this was the state.
    pub revision: u64,
    /// The objects of the page.
    pub records: Vec<Arc<Record>>,
    /// How many more objects follow the page.
    pub remaining: usize,
}

pub(crate) fn list(
    state: &State,
    resource: &str,
    namespace: Option<&str>,
    page: Page,
) -> Result<Listing, ListError> {
    let revision = page.at.unwrap_or(state.revision());
    if revision > state.revision() {
        return Err(ListError::Future { current: state.revision() });
    }
    state.check_kept(revision)?;
    let mut listing = Listing { revision, records: Vec::new(), remaining: 0 };
    let Some(table) = state.table(resource) else { return Ok(listing) };

    let range = Range::new(namespace, page.after);
    let undone = undo(table, &range, revision);
    let limit = page.limit.unwrap_or(usize::MAX);
    listing.records.reserve(limit.min(table.upper_bound(namespace) + undone.len()));
    for record in merged(table, &range, &undone) {
        if listing.records.len() < limit {
            listing.records.push(record.clone());
        } else {
            listing.remaining += 1;
        }
    }
    Ok(listing)
}

/// Places after a starting point, within one namespace or all.
struct Range {
    start: Bound<Place>,
    namespace: Option<Arc<str>>,
}

impl Range {
    fn new(namespace: Option<&str>, after: Option<(String, String)>) -> Self {
        let namespace: Option<Arc<str>> = namespace.map(Arc::from);
        let first = namespace.as_ref().map(|namespace| (namespace.clone(), Arc::from("")));
        let after = after.map(|(namespace, name)| (Arc::from(namespace), Arc::from(name)));
        let start = match (first, after) {
            (None, None) => Bound::Unbounded,
            (Some(first), Some(after)) if after < first => Bound::Included(first),
            (_, Some(after)) => Bound::Excluded(after),
            (Some(first), None) => Bound::Included(first),
        };
        Self { start, namespace }
    }

    fn of<'m, V>(&self, map: &'m BTreeMap<Place, V>) -> impl Iterator<Item = (&'m Place, &'m V)> {
        map.range((self.start.clone(), Bound::Unbounded))
            .take_while(|((namespace, _), _)| self.namespace.as_ref().is_none_or(|own| own == namespace))
    }

    fn contains(&self, place: &Place) -> bool {
        let after_start = match &self.start {
            Bound::Unbounded => true,
            Bound::Included(start) => place >= start,
            Bound::Excluded(start) => place > start,
        };
        after_start && self.namespace.as_ref().is_none_or(|own| *own == place.0)
    }
}

/// What the objects changed after a revision were at that revision; `None` for those that were not there.
fn undo(table: &Table, range: &Range, revision: u64) -> BTreeMap<Place, Option<Arc<Record>>> {
    let mut undone = BTreeMap::new();
    // Newest first, so that the event closest to the revision has the last word.
    for event in table.feed.after(revision).rev() {
        let key = &event.record.key;
        let place = (key.namespace.clone(), key.name.clone());
        if range.contains(&place) {
            undone.insert(place, event.previous.clone());
        }
    }
    undone
}

/// The table's objects in the range, with the undone ones in their former state.
fn merged<'s>(
    table: &'s Table,
    range: &Range,
    undone: &'s BTreeMap<Place, Option<Arc<Record>>>,
) -> impl Iterator<Item = &'s Arc<Record>> {
    let mut current = range.of(&table.objects).peekable();
    let mut former = undone.iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let use_former = match (former.peek(), current.peek()) {
                (None, None) => return None,
                (None, Some(_)) => false,
                (Some(_), None) => true,
                (Some((former, _)), Some((current, _))) => former <= current,
            };
            if !use_former {
                return current.next().map(|(_, record)| record);
            }
            let (place, record) = former.next()?;
            current.next_if(|(current, _)| *current == place);
            if record.is_some() {
                return record.as_ref();
            }
        }
    })
}

impl Table {
    /// At least as many as there are objects now in the namespace, or in all.
    fn upper_bound(&self, namespace: Option<&str>) -> usize {
        match namespace {
            Some(namespace) => self.namespaces.get(namespace).copied().unwrap_or(0),
            None => self.objects.len(),
        }
    }
}
