//! Who is in which step or phase, as a version of the set has it. Whoever has begun in a phase keeps its place there, whoever
//! joins and whatever it is labelled since: what is told of that is tried too.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::told::Phasing;
use super::wanted::Wanted;

/// One way to read a version of the set.
pub(super) struct Roster<'w, 'h> {
    pub(super) wanted: &'w Wanted<'h>,
    places: BTreeMap<&'w str, usize>,
}

impl<'w, 'h> Roster<'w, 'h> {
    fn new(wanted: &'w Wanted<'h>, homes: &BTreeMap<&str, usize>) -> Roster<'w, 'h> {
        let mut places = BTreeMap::new();
        for number in 0..wanted.steps.len() {
            let matched: Vec<&str> = wanted.matched(number).collect();
            let is_home = |name: &&&str| homes.get(**name) == Some(&number);
            let begun_later = |name: &&&str| homes.get(**name).is_some_and(|home| *home > number);
            let free: Vec<&str> =
                matched.iter().filter(|name| !places.contains_key(*name)).copied().collect();
            let own: Vec<&str> = free.iter().filter(is_home).copied().collect();
            // Who has begun here stays here whatever it is labelled since, and takes nobody's place.
            let stay = wanted.apps.keys().map(String::as_str).filter(|name| !matched.contains(name));
            let stay: Vec<&str> =
                stay.filter(|name| homes.get(name) == Some(&number) && !places.contains_key(name)).collect();
            let used = matched.len() - free.len() + own.len() + free.iter().filter(begun_later).count();
            let left = selects(wanted.phase(number), matched.len()).saturating_sub(used);
            let rest = free.iter().filter(|name| !is_home(name) && !begun_later(name)).copied().take(left);
            places.extend(rest.chain(own).chain(stay).map(|name| (name, number)));
        }
        Roster { wanted, places }
    }

    /// The step or phase of an Application, counted from 0.
    pub(super) fn step(&self, app: &str) -> Option<usize> {
        self.places.get(app).copied()
    }

    /// The Applications of a step or phase.
    pub(super) fn members(&self, step: usize) -> impl Iterator<Item = &'w str> {
        self.places.iter().filter(move |(_, place)| **place == step).map(|(name, _)| *name)
    }
}

/// Every way to read a version of the set at a place.
pub(super) fn rosters<'w, 'h>(
    wanted: &'w Wanted<'h>,
    phasing: &Phasing<'h>,
    (place, from): (usize, Timestamp),
) -> Vec<Roster<'w, 'h>> {
    let mut all = vec![Roster::new(wanted, &BTreeMap::new())];
    if wanted.is_phased() {
        let told = phasing.in_force(place, from);
        all.extend(told.map(|told| Roster::new(wanted, &phasing.homes(told))));
    }
    all
}

/// How many of those that match are updated when a phase ends, earlier phases included.
fn selects(phase: &Value, matched: usize) -> usize {
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let percent = |percent: usize| (percent * matched).div_ceil(100);
    if let Some(share) = number(&phase["percentage"]) {
        return percent(share);
    }
    match &phase["maxUpdate"] {
        Value::String(text) => {
            text.strip_suffix('%').and_then(|text| text.parse().ok()).map_or(matched, percent)
        }
        other => number(other).unwrap_or(matched),
    }
}
