//! What an Application waits for that is to go: because generators no longer give it, or because its set goes.

use std::collections::{BTreeMap, BTreeSet};

use baton_api::ApplicationSet;
use baton_api::application_set::ConditionStatus;
use baton_api::conditions::application_set::{DELETION_HELD, DELETION_PROGRESSING};
use jiff::Timestamp;

use super::{ApplicationStanding, DeletionStanding, Known, Obstacle, Standing, time};
use crate::blocker::Reason;
use crate::deletion::Order;

/// The status of one that no status tells of.
const STATUS: &str = "Leaving";
/// How many Applications that wait for approval are named.
const NAMED: usize = 5;
/// What ends the wait of one that the set's policy keeps.
const STAYS: &str = "somebody to delete it, or a policy of the set that deletes";

/// How the deletion of Applications that generators dropped stands, as the condition of a set says that has a rollout
/// too: the rest of its status is the rollout's.
pub(super) fn by_condition(set: &ApplicationSet) -> Option<DeletionStanding> {
    let mut conditions = set.status.conditions.iter();
    let found =
        conditions.find(|one| one.kind == DELETION_PROGRESSING && one.status == ConditionStatus::True)?;
    let (place, stuck) = match found.message.split_once(", which waits for ") {
        Some((place, stuck)) => (place, Some(stuck)),
        None => (found.message.as_str(), None),
    };
    let (step, total_steps) = place
        .rsplit_once("step ")
        .and_then(|(_, numbers)| numbers.split_once(" of "))
        .and_then(|(step, total)| Some((step.parse().ok()?, total.parse().ok()?)))
        .unwrap_or_default();
    let since = time(found.last_transition_time.as_ref());
    let leaving = format!("{STATUS}: ");
    let left = set.status.application_status.iter().filter(|entry| entry.message.starts_with(&leaving));
    let held = stuck.map(|stuck| Obstacle {
        unblocks: "what holds it to be mended, or its finalizers to be removed".to_owned(),
        since,
        ..Obstacle::new(Reason::Leaving, String::new(), stuck.to_owned())
    });
    Some(DeletionStanding {
        order: Order::of(set.spec.strategy.as_ref())
            .map_or_else(|_| String::new(), |(order, _)| order.as_str().to_owned()),
        step,
        total_steps,
        remaining: i64::try_from(left.count()).unwrap_or(i64::MAX),
        deleting: Vec::new(),
        started_at: since,
        of_the_set: false,
        obstacles: held.into_iter().collect(),
    })
}

/// What the condition of a deletion that waits for approval says, with a few names: how to approve it is told as what
/// ends the wait, and a plan names them all.
pub(super) fn fuse_words(message: &str) -> String {
    let what = message.split("; approve with").next().unwrap_or_default();
    let Some((what, names)) = what.split_once(": ") else { return what.to_owned() };
    let (names, uncounted) = match names.split_once(" and ") {
        Some((names, more)) => {
            (names, more.strip_suffix(" more").and_then(|more| more.parse().ok()).unwrap_or(0))
        }
        None => (names, 0),
    };
    let names: Vec<&str> = names.split(", ").collect();
    match names.len().saturating_sub(NAMED) + uncounted {
        0 => format!("{what}: {}", names.join(", ")),
        more => format!("{what}: {} and {more} more", names[..names.len().min(NAMED)].join(", ")),
    }
}

/// Tells of every Application that is to go what it waits for, also of those that no status lists any more.
pub(super) fn tell(set: &ApplicationSet, known: &BTreeMap<String, Known>, standing: &mut Standing) {
    if let Some(deletion) = standing.deletion.as_mut().filter(|deletion| deletion.deleting.is_empty()) {
        let going = known.iter().filter(|(_, seen)| seen.terminating.is_some());
        deletion.deleting = going.map(|(name, _)| name.clone()).collect();
    }
    let mut applications = std::mem::take(&mut standing.applications);
    for one in &mut applications {
        let seen = known.get(&one.name);
        if goes(set, standing, &one.name, seen) || is_leaving(one) {
            let kept = one.first.as_ref().filter(|first| first.message.ends_with("and stays")).cloned();
            one.first = Some(match kept {
                Some(first) => Obstacle { unblocks: STAYS.to_owned(), ..first },
                None if !known.is_empty() && seen.is_none() => gone(&one.name),
                None => Obstacle { since: since(one, seen), ..obstacle(set, standing, &one.name, seen) },
            });
        }
    }
    let listed: BTreeSet<&str> = applications.iter().map(|one| one.name.as_str()).collect();
    let more: Vec<ApplicationStanding> = known
        .iter()
        .filter(|(name, seen)| !listed.contains(name.as_str()) && goes(set, standing, name, Some(seen)))
        .map(|(name, seen)| ApplicationStanding {
            name: name.clone(),
            step: -1,
            status: STATUS.to_owned(),
            message: String::new(),
            since: seen.terminating,
            target_revisions: Vec::new(),
            first: Some(Obstacle { since: seen.terminating, ..obstacle(set, standing, name, Some(seen)) }),
            record: None,
        })
        .collect();
    applications.extend(more);
    standing.applications = applications;
}

fn gone(name: &str) -> Obstacle {
    Obstacle {
        unblocks: "the controller to write the status".to_owned(),
        ..Obstacle::new(
            Reason::Leaving,
            name.to_owned(),
            "it is gone, which the status does not tell yet".to_owned(),
        )
    }
}

fn is_leaving(one: &ApplicationStanding) -> bool {
    one.first.as_ref().is_some_and(|first| first.reason == Reason::Leaving.as_str())
}

fn since(one: &ApplicationStanding, seen: Option<&Known>) -> Option<Timestamp> {
    seen.and_then(|seen| seen.terminating).or(one.since)
}

/// Whether it is sure that an Application goes.
fn goes(set: &ApplicationSet, standing: &Standing, name: &str, seen: Option<&Known>) -> bool {
    let deletion = standing.deletion.as_ref();
    seen.is_some_and(|seen| seen.terminating.is_some())
        || deletion.is_some_and(|deletion| deletion.of_the_set || deletion.is_deleting(name))
        || is_held(set, name)
}

/// Whether the fuse names it among those that wait for approval.
fn is_held(set: &ApplicationSet, name: &str) -> bool {
    let mut conditions = set.status.conditions.iter();
    let held = conditions.find(|one| one.kind == DELETION_HELD && one.status == ConditionStatus::True);
    let words = held.map(|held| held.message.split([' ', ',', ';']));
    words.into_iter().flatten().any(|word| word == name)
}

fn obstacle(set: &ApplicationSet, standing: &Standing, name: &str, seen: Option<&Known>) -> Obstacle {
    let leaving = |message: String| Obstacle::new(Reason::Leaving, name.to_owned(), message);
    let why = match set.metadata.deletion_timestamp.is_some() {
        true => "its set is deleted",
        false => "no generator gives it any more",
    };
    let terminating = seen.is_some_and(|seen| seen.terminating.is_some());
    let deletion = standing.deletion.as_ref();
    if terminating || deletion.is_some_and(|deletion| deletion.is_deleting(name)) {
        let mut of_deletion = deletion.iter().flat_map(|deletion| &deletion.obstacles);
        let named = of_deletion.find(|obstacle| obstacle.is_about(name) && !obstacle.message.is_empty());
        return named.cloned().unwrap_or_else(|| leaving(under_way(seen)));
    }
    let going = set.metadata.deletion_timestamp.is_some();
    if !going && standing.is_held_by_fuse() {
        let message = format!("{why}, and the deletion fuse lets none go without approval");
        return Obstacle::new(Reason::DeletionFuse, name.to_owned(), message);
    }
    match Order::of(set.spec.strategy.as_ref()) {
        Err(invalid) => Obstacle {
            unblocks: "the order of deletion to make sense".to_owned(),
            ..leaving(format!("{why}: {}", invalid.advice()))
        },
        Ok((Order::AllAtOnce, _)) => Obstacle {
            unblocks: "the applicationset controller to delete it".to_owned(),
            ..leaving(format!("{why}: it is deleted at once"))
        },
        Ok((order, _)) => {
            let turn = turn(&order, deletion, seen);
            Obstacle {
                unblocks: "those before it to be gone".to_owned(),
                ..leaving(format!("{why}: {turn}"))
            }
        }
    }
}

fn under_way(seen: Option<&Known>) -> String {
    match seen.map(|seen| &seen.finalizers[..]) {
        Some([]) | None => "it is being deleted".to_owned(),
        Some([one]) => format!("it is being deleted; finalizer {one} holds it"),
        Some(several) => format!("it is being deleted; finalizers {} hold it", several.join(", ")),
    }
}

/// Where in the order of deletion its turn is.
fn turn(order: &Order, deletion: Option<&DeletionStanding>, seen: Option<&Known>) -> String {
    let name = order.as_str();
    let steps = order.positions();
    let place = seen.map(|seen| order.position(&seen.labels) + 1);
    let now = deletion.filter(|deletion| deletion.step > 0).map(|deletion| {
        let names = match &deletion.deleting[..] {
            [] => String::new(),
            [one] => format!(", {one} goes"),
            [one, rest @ ..] => format!(", {one} and {} more go", rest.len()),
        };
        (usize::try_from(deletion.step).unwrap_or_default(), names)
    });
    match (place, now) {
        (Some(place), Some((at, names))) if place == at => {
            format!(
                "its step of the deletion is open ({name}, {at} of {steps}){names}: it waits for its turn"
            )
        }
        (Some(place), Some((at, names))) => {
            format!(
                "it goes in step {place} of {steps} of the deletion ({name}), which is in step {at}{names}"
            )
        }
        (Some(place), None) => {
            format!("it goes in step {place} of {steps} of the deletion ({name}), which has not begun")
        }
        (None, Some((at, names))) => {
            format!("it goes in the order {name}; the deletion is in step {at} of {steps}{names}")
        }
        (None, None) => format!("it goes in the order {name}; the deletion has not begun"),
    }
}

// === impl DeletionStanding ===

impl DeletionStanding {
    fn is_deleting(&self, name: &str) -> bool {
        self.deleting.iter().any(|one| one == name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn of_those_that_wait_for_approval_a_few_are_named() {
        for (count, expected) in [
            (5, "app-0, app-1, app-2, app-3, app-4"),
            (7, "app-3, app-4 and 2 more"),
            (70, "app-4 and 65 more"),
        ] {
            let doomed: Vec<(Arc<str>, Arc<str>)> =
                (0..count).map(|n| (format!("app-{n}").into(), "uid".into())).collect();
            let words = fuse_words(&crate::fuse::message("web", 100, &doomed));
            assert!(
                words.starts_with(&format!("generators no longer give {count} of 100 Applications")),
                "{words}"
            );
            assert!(words.ends_with(expected), "{words}");
        }
        assert_eq!(fuse_words("something else"), "something else");
    }
}
