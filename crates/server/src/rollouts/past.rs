//! The runs before the one that a set's status tells of, put together from what its Applications keep of their syncs. Nothing is
//! written for it: each Application keeps its last syncs anyway (`revisionHistoryLimit`, ten by default). Pure.
//!
//! A run is known by the revision it brought, so what a change of the template alone brought counts to the run of its
//! commit, and numbers are not known.

use std::collections::BTreeMap;

use baton_api::Application;
use baton_api::application_status::RevisionHistory;
use jiff::Timestamp;

use super::board::{Run, State};
use super::target::short;

/// Most runs that are told of.
const MOST: usize = 20;

/// What is known of one run.
struct Past {
    began: Timestamp,
    ended: Timestamp,
    reached: usize,
}

/// The runs that had begun before this time, the newest first.
pub(super) fn past(applications: &[Application], before: Option<Timestamp>) -> Vec<Run> {
    let mut runs: BTreeMap<String, Past> = BTreeMap::new();
    for application in applications {
        let mut own: BTreeMap<String, (Timestamp, Timestamp)> = BTreeMap::new();
        // What was synced again later, healed or by hand, had been brought by then.
        for (revision, began, ended) in application.status.history.iter().filter_map(sync) {
            let first = own.entry(revision).or_insert((began, ended));
            *first = (*first).min((began, ended));
        }
        for (revision, (began, ended)) in own {
            let run = runs.entry(revision).or_insert(Past { began, ended, reached: 0 });
            run.began = run.began.min(began);
            run.ended = run.ended.max(ended);
            run.reached += 1;
        }
    }
    let since =
        applications.iter().filter_map(|one| Some(one.status.history.first()?.deployed_at.as_ref()?.0));
    let since: Vec<Timestamp> = since.collect();
    let mut runs: Vec<(String, Past)> =
        runs.into_iter().filter(|(_, run)| before.is_none_or(|before| run.began < before)).collect();
    runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.began));
    runs.truncate(MOST);
    let told = |(revision, run): (String, Past)| {
        // Whoever keeps nothing of that time came later, or has forgotten it.
        let there = since.iter().filter(|first| **first <= run.ended).count().max(run.reached);
        Run {
            run: 0,
            generator: None,
            revision: short(&revision),
            started_at: Some(run.began),
            finished_at: Some(run.ended),
            state: if run.reached == there { State::Complete } else { State::Superseded },
            reached: Some(run.reached),
            of: Some(there),
        }
    };
    runs.into_iter().map(told).collect()
}

/// The revision of a sync that nobody asked for by hand, when it began and when it ended.
fn sync(entry: &RevisionHistory) -> Option<(String, Timestamp, Timestamp)> {
    if !entry.initiated_by.automated {
        return None;
    }
    let ended = entry.deployed_at.as_ref()?.0;
    let began = entry.deploy_started_at.as_ref().map_or(ended, |time| time.0);
    let revision = match entry.revisions.is_empty() {
        true => entry.revision.clone(),
        false => entry.revisions.join(" "),
    };
    (!revision.is_empty()).then_some((revision, began, ended))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn at(minute: i64) -> String {
        Timestamp::from_second(minute * 60).expect("a time").to_string()
    }

    fn application(syncs: &[(&str, i64, bool)]) -> Application {
        let entry = |(id, (revision, minute, automated)): (usize, &(&str, i64, bool))| {
            json!({"id": id, "revision": revision, "deployStartedAt": at(*minute), "deployedAt": at(minute + 1),
                "initiatedBy": {"automated": automated}})
        };
        let history: Vec<Value> = syncs.iter().enumerate().map(entry).collect();
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": {"history": history}}))
            .expect("an Application")
    }

    fn told(applications: &[Application], before: Option<i64>) -> Vec<String> {
        let before = before.map(|minute| Timestamp::from_second(minute * 60).expect("a time"));
        let one = |run: Run| {
            let minute = |time: Option<Timestamp>| time.map_or(-1, |time| time.as_second() / 60);
            format!(
                "{} {}-{} {:?} {}/{}",
                run.revision,
                minute(run.started_at),
                minute(run.finished_at),
                run.state,
                run.reached.unwrap_or_default(),
                run.of.unwrap_or_default()
            )
        };
        past(applications, before).into_iter().map(one).collect()
    }

    #[test]
    fn a_run_is_what_brought_a_revision_to_the_applications_of_a_set() {
        let one = application(&[("a", 10, true), ("b", 20, true), ("c", 30, true)]);
        let two = application(&[("a", 12, true), ("c", 35, true)]);
        assert_eq!(
            told(&[one.clone(), two.clone()], None),
            ["c 30-36 Complete 2/2", "b 20-21 Superseded 1/2", "a 10-13 Complete 2/2"]
        );
        assert_eq!(told(&[one, two], Some(30)), ["b 20-21 Superseded 1/2", "a 10-13 Complete 2/2"]);
    }

    #[test]
    fn what_is_synced_again_or_by_hand_is_no_other_run() {
        let healed = application(&[("a", 10, true), ("b", 20, true), ("b", 50, true), ("a", 60, false)]);
        assert_eq!(told(&[healed], None), ["b 20-21 Complete 1/1", "a 10-11 Complete 1/1"]);
    }

    #[test]
    fn who_came_later_is_not_missed() {
        let (old, new) = (application(&[("a", 10, true), ("b", 20, true)]), application(&[("b", 21, true)]));
        assert_eq!(told(&[old, new], None), ["b 20-22 Complete 2/2", "a 10-11 Complete 1/1"]);
    }

    #[test]
    fn at_least_ten_runs_are_told_of() {
        let syncs: Vec<(String, i64, bool)> =
            (0..30).map(|number| (format!("r{number}"), number, true)).collect();
        let syncs: Vec<(&str, i64, bool)> =
            syncs.iter().map(|(name, at, by)| (name.as_str(), *at, *by)).collect();
        assert_eq!(told(&[application(&syncs)], None).len(), MOST);
    }
}
