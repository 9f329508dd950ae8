//! What `status.phases` of the set told of its first generator, and while it did.
//!
//! Phases go by what is stored there and by nothing else, so that whatever follows a failure, or is passed over, must stand
//! there first. What it says of Applications and calls is not believed: that is looked up.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::history::History;
use super::wanted::SETS;
use super::{Case, Change, text};

/// Every version of the set that differs in what it tells of phases.
pub(super) struct Phasing<'h> {
    pub(super) versions: Vec<Told<'h>>,
}

/// What one version tells.
pub(super) struct Told<'h> {
    pub(super) place: usize,
    pub(super) at: Timestamp,
    /// When the next came.
    pub(super) until: Timestamp,
    pub(super) set: &'h Value,
    /// Of the first generator; null where nothing is told of phases.
    pub(super) generator: &'h Value,
    /// When its rollout was first told of.
    pub(super) began: Timestamp,
}

impl<'h> Phasing<'h> {
    pub(super) fn read(case: &Case<'h>, history: &History<'h>) -> Phasing<'h> {
        let mut versions: Vec<Told<'h>> = Vec::new();
        for write in history.writes("control", SETS, case.set, usize::MAX) {
            let (entry, set) = (write.entry, &write.entry.object);
            let nothing = entry.change == Change::Deleted;
            let generator =
                if nothing { &Value::Null } else { set.pointer("/status/phases/0").unwrap_or(&Value::Null) };
            let mut began = entry.at;
            if let Some(last) = versions.last_mut() {
                if *last.generator == *generator {
                    continue;
                }
                last.until = entry.at;
                if last.rollout() == text(generator, "/rolloutID") {
                    began = last.began;
                }
            }
            versions.push(Told {
                place: write.place,
                at: entry.at,
                until: Timestamp::MAX,
                set,
                generator,
                began,
            });
        }
        Phasing { versions }
    }

    /// The versions a controller may have gone by at a place, newest first.
    pub(super) fn in_force(&self, place: usize, from: Timestamp) -> impl Iterator<Item = &Told<'h>> {
        let before = self.versions.iter().rev().filter(move |told| told.place < place);
        before.take_while(move |told| told.until >= from)
    }

    /// Where each Application has begun in the rollout that a version tells of, or was left by a phase that failed: there it
    /// stays, whatever is told later.
    pub(super) fn homes(&self, told: &Told<'h>) -> BTreeMap<&'h str, usize> {
        let mut homes = BTreeMap::new();
        let of_rollout = self.versions.iter().filter(|other| other.rollout() == told.rollout());
        for version in of_rollout.filter(|other| other.place <= told.place) {
            for (place, phase) in version.phases().iter().enumerate() {
                let entries = phase["applications"].as_array().into_iter().flatten();
                let stays = |entry: &&Value| text(entry, "/state") != "Held" || !action(phase).is_empty();
                for entry in entries.filter(stays) {
                    homes.entry(text(entry, "/name")).or_insert(place);
                }
            }
        }
        homes
    }

    pub(super) fn last(&self) -> Option<&Told<'h>> {
        self.versions.last()
    }
}

impl<'h> Told<'h> {
    pub(super) fn rollout(&self) -> &'h str {
        text(self.generator, "/rolloutID")
    }

    /// The open phase, counted from 0.
    pub(super) fn current(&self) -> usize {
        self.generator["currentPhase"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0)
    }

    pub(super) fn phases(&self) -> &'h [Value] {
        self.generator["phases"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The phase that has come to an end which nothing follows by itself, where the open one has.
    pub(super) fn frozen(&self) -> Option<(usize, &'h Value)> {
        let current = self.current();
        self.phases().get(current).filter(|phase| is_frozen(phase)).map(|phase| (current, phase))
    }

    /// The open phase, where it has failed and the rollout does not go on, whether or not it is still being put back.
    pub(super) fn ended_badly(&self) -> Option<(usize, &'h Value)> {
        let current = self.current();
        let open = self.phases().get(current).filter(|phase| !goes_on(phase));
        let open = open.filter(|phase| text(phase, "/state") == "RollingBack" || is_frozen(phase));
        open.map(|phase| (current, phase))
    }

    /// The keys of its calls.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'h str> {
        let results = self.phases().iter().flat_map(|phase| {
            ["preHooks", "checks", "postHooks"].into_iter().filter_map(|list| phase[list].as_array())
        });
        results.flatten().map(|result| text(result, "/idempotencyKey")).filter(|key| !key.is_empty())
    }

    /// Whether a phase was passed over, though it had failed or matches nobody.
    pub(super) fn passes_over(&self, phase: usize) -> bool {
        self.phases().get(phase).is_some_and(|phase| goes_on(phase) || text(phase, "/state") == "Skipped")
    }

    /// The phase that an Application is told to be in.
    pub(super) fn place_of(&self, app: &str) -> Option<usize> {
        self.phases().iter().position(|phase| entry(phase, app).is_some())
    }
}

/// What a phase tells of an Application.
pub(super) fn entry<'v>(phase: &'v Value, app: &str) -> Option<&'v Value> {
    phase["applications"].as_array()?.iter().find(|entry| text(entry, "/name") == app)
}

/// What was done about a phase's failure; empty where it has not failed.
pub(super) fn action(phase: &Value) -> &str {
    text(phase, "/failure/action")
}

pub(super) fn goes_on(phase: &Value) -> bool {
    matches!(action(phase), "continue" | "advance")
}

fn is_frozen(phase: &Value) -> bool {
    matches!(text(phase, "/state"), "Failed" | "Aborted" | "RolledBack") && !goes_on(phase)
}
