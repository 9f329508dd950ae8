//! I5, of failures: a phase that has failed does what it says is to be done then, and nothing else.
//!
//! That it has failed, and what was done about it, stands in `status.phases`. What it says is to be done is read off the
//! set; that it was done, off what was started and called afterwards.

use jiff::Timestamp;
use serde_json::Value;

use super::history::History;
use super::order::{is_healing, names_its_commit};
use super::rollback::recorded;
use super::starts::{Start, pin_of};
use super::told::{Phasing, Told, action, goes_on};
use super::wanted::{Sets, Wanted};
use super::{Case, Violation, annotation, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    starts: &[Start<'h>],
) -> Vec<Violation> {
    let own: Vec<&Start<'h>> =
        starts.iter().filter(|start| !is_healing(history, start) && !names_its_commit(start)).collect();
    let mut found = consequences(case, (sets, phasing), &own);
    found.extend(own.iter().filter_map(|start| started_after(case, phasing, start, &own)));
    found.extend(called_after(case, phasing));
    found.extend(stuck(case, sets, phasing));
    found
}

/// What was done about failures, and is not what the phase says, or people asked for.
fn consequences<'h>(
    case: &Case<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    starts: &[&Start<'h>],
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, told) in phasing.versions.iter().enumerate() {
        let before = number.checked_sub(1).map(|number| &phasing.versions[number]);
        let before = before.filter(|before| before.rollout() == told.rollout());
        for (place, phase) in told.phases().iter().enumerate() {
            let was = before.and_then(|before| before.phases().get(place)).map_or("", action);
            if action(phase).is_empty() || was == action(phase) {
                continue;
            }
            let versions = sets.in_force(told.place, told.at - case.slack);
            // Where the field was taken away, the open phase is finished as it was written.
            let versions = versions.filter(|wanted| wanted.is_phased()).chain(sets.phased_before(told.place));
            let mut judged: Vec<Option<String>> =
                versions.map(|wanted| contradicts(case, wanted, told, (place, phase), was, starts)).collect();
            judged.sort_by_key(Option::is_some);
            if let Some(Some(why)) = judged.into_iter().next() {
                let text =
                    format!("phase {} has failed and is answered with {}: {why}", place + 1, action(phase));
                found.push(Violation { invariant: "I5", at: told.at, text });
            }
        }
    }
    found
}

/// Why what was done about a failure is not what one version of the set says, where it is not.
fn contradicts(
    case: &Case<'_>,
    wanted: &Wanted<'_>,
    told: &Told<'_>,
    (place, phase): (usize, &Value),
    was: &str,
    starts: &[&Start<'_>],
) -> Option<String> {
    let did = action(phase);
    let asked = |name: &str| !annotation(told.set, name).is_empty();
    let unless = |right: bool, why: &str| (!right).then(|| why.to_owned());
    if did == "advance" {
        return unless(asked("baton.dev/advance") && was != "rollback", "nobody asked for that");
    }
    match text(phase, "/failure/reason") {
        "AbortedByRequest" => {
            return unless(did == "abort" && asked("baton.dev/abort"), "nobody asked for that");
        }
        "RollbackByRequest" => {
            let asked = asked("baton.dev/rollback") || asked("baton.dev/rollback-all");
            return unless(["rollback", "stop"].contains(&did) && asked, "nobody asked for that");
        }
        _ => {}
    }
    let written = wanted.phase(place);
    let says = match text(written, "/onFailure/action") {
        "" => "stop",
        action => action,
    };
    let aborts = |hook: &Value| {
        let named = format!("hook {:?}", text(hook, "/name"));
        text(hook, "/failurePolicy") == "abort" && text(phase, "/failure/message").starts_with(&named)
    };
    let hooks = ["preHooks", "postHooks"].into_iter().flat_map(|list| written[list].as_array());
    let says = if hooks.flatten().any(aborts) { "abort" } else { says };
    if did == says {
        return None;
    }
    if (says, did) != ("rollback", "stop") {
        return Some(format!("it says {says}"));
    }
    let changed = starts.iter().find(|start| {
        start.place < told.place
            && start.entry.at >= told.began
            && told.place_of(&start.entry.name) == Some(place)
            && has_good(case, start, told.at)
    });
    changed.map(|start| format!("it says rollback, and {} was started in it", start.entry.name))
}

/// Whether an Application that was started had something else to be put back to.
fn has_good(case: &Case<'_>, start: &Start<'_>, at: Timestamp) -> bool {
    let brought = pin_of(start);
    recorded(case, &start.entry.name, at - case.slack).iter().any(|(pin, _)| Some(*pin) != brought)
}

/// How long the phase that a version tells to have failed was told so before, in the same rollout.
fn since(phasing: &Phasing<'_>, told: &Told<'_>) -> Timestamp {
    let earlier = phasing.versions.iter().rev().filter(|other| other.place <= told.place);
    let same = |other: &&Told<'_>| {
        other.rollout() == told.rollout()
            && other.current() == told.current()
            && other.ended_badly().is_some()
    };
    earlier.take_while(same).last().map_or(told.at, |first| first.at)
}

/// A start that must not be, since a phase has failed and nobody lets the rollout go on.
fn started_after<'h>(
    case: &Case<'h>,
    phasing: &Phasing<'h>,
    start: &Start<'h>,
    starts: &[&Start<'h>],
) -> Option<Violation> {
    let name = &*start.entry.name;
    let told = phasing.in_force(start.place, start.entry.at).next()?;
    let (failed, phase) = told.ended_badly()?;
    let again = |other: &&&Start<'_>| {
        other.place < start.place && &*other.entry.name == name && other.entry.at >= told.began
    };
    // Who has begun goes on.
    if starts.iter().any(|other| again(&other)) {
        return None;
    }
    let own = told.place_of(name);
    let was_open = phasing.versions.iter().any(|other| {
        other.place < told.place
            && other.rollout() == told.rollout()
            && own.is_some_and(|own| own <= other.current())
    });
    // What was decided before may land a little later.
    if was_open && start.entry.at <= since(phasing, told) + case.slack {
        return None;
    }
    let text = format!(
        "{name} was started though phase {} has failed, which is answered with {}",
        failed + 1,
        action(phase)
    );
    Some(Violation { invariant: "I5", at: start.entry.at, text })
}

/// What was called for a rollout that had ended with a failure.
fn called_after(case: &Case<'_>, phasing: &Phasing<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in case.calls {
        let Some(told) = phasing.versions.iter().rev().find(|told| told.at <= call.at) else { continue };
        let Some((failed, _)) = told.ended_badly() else { continue };
        let is_of = told.keys().any(|key| key == call.key);
        if is_of && call.at > since(phasing, told) + case.slack {
            let text = format!("{} was called though phase {} has failed", call.name, failed + 1);
            found.push(Violation { invariant: "I5", at: call.at, text });
        }
    }
    found
}

/// A phase that failed and says to go on, and is not gone on from in the end.
fn stuck(case: &Case<'_>, sets: &Sets<'_>, phasing: &Phasing<'_>) -> Option<Violation> {
    let (told, wanted) = (phasing.last()?, sets.last()?);
    if !case.ended || wanted.terminating || wanted.paused || sets.gone.is_some() {
        return None;
    }
    let open = told.phases().get(told.current()).filter(|phase| goes_on(phase))?;
    let (phase, action) = (told.current() + 1, action(open));
    let text =
        format!("phase {phase} has failed, which is answered with {action}, and the next does not begin");
    Some(Violation { invariant: "I5", at: told.at, text })
}
