//! I1: no sync of an Application starts before every Application of every earlier step was done in that run. I5: nor before
//! every one of every earlier phase was.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::done::{comparable, has_failed, was_done};
use super::history::History;
use super::passed::{lacking, lacking_before};
use super::roster::{Roster, rosters};
use super::sources::{Accepted, Source, revisions, sources};
use super::starts::{Stamp, Start, stamp_of};
use super::told::{Phasing, Told};
use super::wanted::{APPS, Sets, Wanted};
use super::{Case, Change, Violation, is_busy, is_null, text};

pub(super) fn violations<'h>(
    case: &Case<'h>,
    history: &History<'h>,
    (sets, phasing): (&Sets<'h>, &Phasing<'h>),
    starts: &[Start<'h>],
    runs: &Runs<'h>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let name = &start.entry.name;
        let phased = sets.in_force(start.place, start.entry.at).any(|wanted| wanted.is_phased());
        let invariant = if phased { "I5" } else { "I1" };
        let mut blame = |text: String| {
            found.push(Violation { invariant, at: start.entry.at, text: format!("{name} {text}") });
        };
        let Some(stamp) = start.stamp else {
            blame("was started without a stamp".to_owned());
            continue;
        };
        let before = history.state("control", APPS, name, start.place).map(|version| &version.entry.object);
        if before.is_some_and(|app| !is_null(app, "/metadata/deletionTimestamp")) {
            blame("was started while it is being deleted".to_owned());
        }
        if before.is_some_and(is_busy) {
            blame("was started over an operation that had not ended".to_owned());
        }
        let invalid = history.states(("control", APPS, name), start.entry.at - case.slack, start.place);
        if !invalid.is_empty() && invalid.iter().all(|version| is_invalid(&version.entry.object)) {
            blame("was started though its specification was known to be invalid".to_owned());
        }
        let unknown = start.revisions.iter().find(|revision| !case.git.contents.contains_key(**revision));
        if let Some(unknown) = unknown {
            blame(format!("was started at {unknown:?}, which is no commit"));
            continue;
        }
        if is_healing(history, start) {
            continue;
        }
        for (source, revision) in sources(&start.entry.object["spec"]).iter().zip(&start.revisions) {
            if let Some(other) = runs.revision(stamp, source.branch).filter(|other| other != revision) {
                let run = stamp.run;
                blame(format!("was started at {revision:.7} in run {run}, which is at {other:.7}"));
            }
        }
        let mut judged: Vec<Vec<String>> = sets
            .in_force(start.place, start.entry.at - case.slack)
            .filter(|wanted| is_of(wanted, start))
            .flat_map(|wanted| rosters(wanted, phasing, (start.place, start.entry.at - case.slack)))
            .map(|roster| judge(case, (history, phasing), runs, &roster, (start, stamp), &starts[..number]))
            .collect();
        judged.sort_by_key(Vec::len);
        match judged.into_iter().next() {
            Some(texts) => texts.into_iter().for_each(blame),
            None if is_put_back(case, sets, start) => {}
            None => blame("was started as the set did not want it".to_owned()),
        }
    }
    found.extend(automatic(case, history, sets));
    found
}

/// Whether it says that nothing can be made of its specification: a sync then fails by what was found before.
fn is_invalid(app: &Value) -> bool {
    let conditions = app.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| text(condition, "/type") == "InvalidSpecError")
}

/// Syncs that began by themselves though a rollout had all the time to see to it that they do not.
fn automatic(case: &Case<'_>, history: &History<'_>, sets: &Sets<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (place, entry) in case.entries.iter().enumerate() {
        let operation = &entry.object["operation"];
        let by_itself = operation["initiatedBy"]["automated"] == true && operation["info"].is_null();
        if &*entry.resource != APPS || entry.change == Change::Deleted || !by_itself {
            continue;
        }
        let Some(before) = history.state("control", APPS, &entry.name, place) else { continue };
        let from = entry.at - case.slack;
        let is_on = |app: &Value| {
            let automated = &app["spec"]["syncPolicy"]["automated"];
            !automated.is_null() && automated["enabled"] != false
        };
        let left_on = history
            .states(("control", APPS, &entry.name), from, place)
            .iter()
            // Over an operation that has not ended nothing is written.
            .all(|version| {
                let app = &version.entry.object;
                is_on(app) && owned(case, app) && !is_busy(app)
            });
        let known = history.writes("control", APPS, &entry.name, place).next();
        let rolled = sets.in_force(place, from).all(|wanted| {
            let goes_on = !wanted.terminating && !wanted.paused && wanted.aborted.is_empty();
            let goes_on = goes_on && !wanted.is_broken();
            !wanted.steps.is_empty() && goes_on && wanted.apps.contains_key(&*entry.name)
        });
        let begins = before.entry.object["operation"].is_null();
        if begins && left_on && rolled && known.is_some_and(|first| first.entry.at <= from) {
            let text = format!("{} was left to sync by itself in a set that is rolled out", entry.name);
            found.push(Violation { invariant: "I1", at: entry.at, text });
        }
    }
    found
}

fn owned(case: &Case<'_>, app: &Value) -> bool {
    let owners = app.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| text(owner, "/name") == case.set)
}

/// What keeps a start from being right under one version of the set.
fn judge<'h>(
    case: &Case<'h>,
    (history, phasing): (&History<'h>, &Phasing<'h>),
    runs: &Runs<'h>,
    roster: &Roster<'_, 'h>,
    (start, stamp): (&Start<'h>, Stamp<'h>),
    earlier: &[Start<'h>],
) -> Vec<String> {
    let wanted = roster.wanted;
    let Some(step) = roster.step(&start.entry.name) else {
        if wanted.is_free(&start.entry.name) || is_let_go(case, phasing, wanted, start) {
            return Vec::new();
        }
        return vec!["was started though no step holds it".to_owned()];
    };
    let began = runs.began(stamp).unwrap_or(start.entry.at);
    let is_of_step = |other: &&Start<'_>| {
        other.stamp.is_some_and(|other| other.set == stamp.set && other.run == stamp.run)
            && roster.step(&other.entry.name) == Some(step)
    };
    // A step opens only while the ones before it are well; once open it goes on.
    let is_open = super::openings::is_open(case, history, stamp.run, step, start.place);
    let opens = !is_open && !earlier.iter().any(|other| is_of_step(&other));
    let from = if opens { began.max(start.entry.at - case.slack) } else { began };
    let mut found = Vec::new();
    let told: Vec<&Told<'h>> = phasing.in_force(start.place, start.entry.at - case.slack).collect();
    if let Some(hook) = lacking_before(case, roster, &told, (step, &start.entry.name, start.entry.at)) {
        found.push(format!("(phase {}) was started before {hook} had passed", step + 1));
    }
    for before in 0..step {
        if wanted.is_phased() && told.iter().any(|told| told.passes_over(before)) {
            continue;
        }
        found.extend(lacking(case, roster, &told, (before, start.entry.at)).map(|what| {
            format!("(phase {}) was started before {what} of phase {} had passed", step + 1, before + 1)
        }));
        let mut failures = wanted.steps[before].failures(roster.members(before).count());
        for name in roster.members(before) {
            let spec = &wanted.apps[name].spec;
            let accepted = runs.accepted(case, (stamp, spec), (began - case.slack, start.entry.at));
            let what = (name, spec, &accepted);
            if wanted.skips(history, name, start.place) {
                continue;
            }
            let whole = was_whole(history, (name, stamp), (began, start.place));
            if let Err(why) = was_done(case, history, what, (from, start.place)).and(whole) {
                if failures > 0 && has_failed(history, name, began, start.place) {
                    failures -= 1;
                    continue;
                }
                let (run, step, before) = (stamp.run, step + 1, before + 1);
                found.push(format!(
                    "(step {step}) was started in run {run} before {name} (step {before}) was done: {why}"
                ));
            }
        }
    }
    found
}

/// Whether phases were taken from the set, and it belongs to the open one, which is finished first, or that is over.
fn is_let_go(case: &Case<'_>, phasing: &Phasing<'_>, wanted: &Wanted<'_>, start: &Start<'_>) -> bool {
    let mut told = phasing.in_force(start.place, start.entry.at - case.slack);
    wanted.steps.is_empty()
        && told.any(|told| told.phases().is_empty() || told.place_of(&start.entry.name).is_some())
}

/// Whether the syncs of a run, if there were any, were not all of a selection of resources: those run no hooks.
fn was_whole(
    history: &History<'_>,
    (name, stamp): (&str, Stamp<'_>),
    (began, before): (Timestamp, usize),
) -> Result<(), String> {
    let states = history.states(("control", APPS, name), began, before);
    let of_run = states.iter().filter_map(|version| {
        let operation = version.entry.object.pointer("/status/operationState/operation")?;
        let own = Stamp::read(stamp_of(operation)?)?;
        (own.set == stamp.set && own.run == stamp.run).then_some(operation)
    });
    let mut selected = of_run.map(|operation| !is_null(operation, "/sync/resources")).peekable();
    match selected.peek().is_some() && selected.all(|selected| selected) {
        true => Err("it was synced in part".to_owned()),
        false => Ok(()),
    }
}

/// Whether a phase that failed puts it back to a commit it was well at, which its sources name then.
fn is_put_back(case: &Case<'_>, sets: &Sets<'_>, start: &Start<'_>) -> bool {
    let may = sets.in_force(start.place, start.entry.at - case.slack).any(|wanted| wanted.puts_back());
    may && names_its_commit(start)
}

/// Whether what it starts follows no branch but names its commits, as what is put back does.
pub(super) fn names_its_commit(start: &Start<'_>) -> bool {
    let sources = sources(&start.entry.object["spec"]);
    sources.iter().zip(&start.revisions).all(|(source, revision)| source.branch.1 == *revision)
}

fn is_of(wanted: &Wanted<'_>, start: &Start<'_>) -> bool {
    let Some(app) = wanted.apps.get(&*start.entry.name) else { return false };
    comparable(&app.spec) == comparable(&start.entry.object["spec"])
}

/// Whether it only brings back what was synced last, so that nothing new enters.
pub(super) fn is_healing(history: &History<'_>, start: &Start<'_>) -> bool {
    let app = &start.entry.object;
    let Some(before) = history.state("control", APPS, &start.entry.name, start.place) else { return false };
    let synced = app.pointer("/status/history").and_then(Value::as_array).and_then(|all| all.last());
    // Beside several sources some tell an empty one.
    let fields: &[&str] = if is_null(app, "/spec/sources") { &["source", "sources"] } else { &["sources"] };
    let same = |synced: &Value| {
        revisions(synced) == start.revisions
            && fields.iter().all(|field| synced[*field] == app["spec"][*field])
    };
    synced.is_some_and(same) && before.entry.object["spec"] == app["spec"]
}

/// By branch, a commit.
type Revisions<'h> = BTreeMap<(&'h str, &'h str), &'h str>;

/// When each run began, and at which revision.
pub(super) struct Runs<'h> {
    began: BTreeMap<(&'h str, u64), Timestamp>,
    revisions: BTreeMap<(&'h str, u64), Revisions<'h>>,
}

impl<'h> Runs<'h> {
    pub(super) fn read(case: &Case<'h>, history: &History<'h>, starts: &[Start<'h>]) -> Runs<'h> {
        let mut runs = Runs { began: BTreeMap::new(), revisions: BTreeMap::new() };
        for start in starts.iter().filter(|start| !is_healing(history, start)) {
            let Some(stamp) = start.stamp else { continue };
            let of_run = runs.revisions.entry((stamp.set, stamp.run)).or_default();
            for (source, revision) in sources(&start.entry.object["spec"]).iter().zip(&start.revisions) {
                of_run.entry(source.branch).or_insert(revision);
            }
        }
        for entry in case.entries.iter().filter(|entry| &*entry.resource == APPS) {
            if let Some(stamp) = Stamp::read(super::annotation(&entry.object, "baton.dev/pin")) {
                runs.began.entry((stamp.set, stamp.run)).or_insert(entry.at);
            }
        }
        for (uid, run, at) in heads(case, history) {
            let keys: Vec<_> =
                runs.began.keys().filter(|key| key.0 == uid && key.1 == run).copied().collect();
            for key in keys {
                runs.began.entry(key).and_modify(|began| *began = at.min(*began));
            }
        }
        runs
    }

    /// A stamp of a run; one of no set where nothing was stamped in it.
    pub(super) fn stamp(&self, set: &str, run: u64) -> Stamp<'h> {
        let set = self.began.keys().find(|key| **key == (set, run)).map_or("", |key| key.0);
        Stamp { set, run, n: 0 }
    }

    pub(super) fn began(&self, stamp: Stamp<'h>) -> Option<Timestamp> {
        self.began.get(&(stamp.set, stamp.run)).copied()
    }

    /// The commit that a run is at on a branch, by what was started in it.
    fn revision(&self, stamp: Stamp<'h>, branch: (&str, &str)) -> Option<&'h str> {
        self.revisions.get(&(stamp.set, stamp.run))?.get(&branch).copied()
    }

    /// What an Application of a run may be at: what others were started at, and on branches on which none was what the
    /// branch pointed to meanwhile.
    pub(super) fn accepted(
        &self,
        case: &Case<'h>,
        (stamp, spec): (Stamp<'h>, &Value),
        (from, to): (Timestamp, Timestamp),
    ) -> Accepted<'h> {
        let accepted = |source: &Source<'_>| match self.revision(stamp, source.branch) {
            Some(revision) => [revision].into(),
            None => case.git.tips(source.branch, from, to),
        };
        sources(spec).iter().map(accepted).collect()
    }
}

/// Set, number and beginning of every run, as its head was stored.
fn heads(case: &Case<'_>, history: &History<'_>) -> Vec<(String, u64, Timestamp)> {
    let name = format!("{}.baton-rollout", case.set);
    let read = |entry: &super::Entry| {
        let run: Value = serde_json::from_str(text(&entry.object, "/data/run")).ok()?;
        Some((text(&run, "/set").to_owned(), run["seq"].as_u64()?, entry.at))
    };
    history.writes("control", "configmaps", &name, usize::MAX).filter_map(|write| read(write.entry)).collect()
}
