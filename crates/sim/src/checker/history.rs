//! A history by object.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Change, Entry};

/// The writes of each object, by their places in the whole.
pub(super) struct History<'h> {
    pub(super) entries: &'h [Entry],
    places: BTreeMap<&'h str, BTreeMap<&'h str, BTreeMap<&'h str, Vec<usize>>>>,
}

/// A state an object was in, from a write until the next.
#[derive(Clone, Copy)]
pub(super) struct Version<'h> {
    pub(super) place: usize,
    pub(super) entry: &'h Entry,
}

impl<'h> History<'h> {
    pub(super) fn new(entries: &'h [Entry]) -> History<'h> {
        let mut places: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, Vec<usize>>>> = BTreeMap::new();
        for (place, entry) in entries.iter().enumerate() {
            let kinds = places.entry(&entry.cluster).or_default();
            kinds.entry(&entry.resource).or_default().entry(&entry.name).or_default().push(place);
        }
        History { entries, places }
    }

    /// Names of the objects of a kind that were ever there.
    pub(super) fn names(&self, cluster: &str, resource: &str) -> Vec<&'h str> {
        let kind = self.places.get(cluster).and_then(|kinds| kinds.get(resource));
        kind.into_iter().flat_map(BTreeMap::keys).copied().collect()
    }

    /// Every write to an object before a place.
    pub(super) fn writes(
        &self,
        cluster: &str,
        resource: &str,
        name: &str,
        before: usize,
    ) -> impl DoubleEndedIterator<Item = Version<'h>> + use<'h, '_> {
        let entries = self.entries;
        let kind = self.places.get(cluster).and_then(|kinds| kinds.get(resource));
        let places = kind.and_then(|names| names.get(name)).map(Vec::as_slice).unwrap_or_default();
        let end = places.partition_point(|place| *place < before);
        places[..end].iter().map(move |&place| Version { place, entry: &entries[place] })
    }

    /// The state of an object right before a place; none where it was not there.
    pub(super) fn state(
        &self,
        cluster: &str,
        resource: &str,
        name: &str,
        before: usize,
    ) -> Option<Version<'h>> {
        let last = self.writes(cluster, resource, name, before).next_back()?;
        (last.entry.change != Change::Deleted).then_some(last)
    }

    /// The states an object was in between a time and a place, newest first.
    pub(super) fn states(
        &self,
        (cluster, resource, name): (&str, &str, &str),
        from: Timestamp,
        before: usize,
    ) -> Vec<Version<'h>> {
        let mut found = Vec::new();
        for version in self.writes(cluster, resource, name, before).rev() {
            if version.entry.change != Change::Deleted {
                found.push(version);
            }
            if version.entry.at <= from {
                break;
            }
        }
        found
    }
}
