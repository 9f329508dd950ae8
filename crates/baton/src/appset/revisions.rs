//! What the revisions that Applications ask for stand at, as far as the cluster has told already: nothing is asked of a
//! repository.

use std::collections::BTreeMap;

use baton_api::Application;
use baton_api::application_status::ApplicationStatus;
use baton_api::source::Source;
use baton_rollout::head::Head;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::changes::short;
use crate::screen::{Cell, Screen, Tone, span};

/// How many revisions people are shown.
const SHOWN: usize = 10;

/// A revision that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Revision {
    #[serde(rename = "repoURL")]
    pub(super) repo: String,
    pub(super) target_revision: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) chart: String,
    /// How many Applications ask for it.
    pub(super) applications: usize,
    /// What an Application was last compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compared: Option<Told>,
    /// What the run of the rollout goes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rolled_out: Option<Told>,
}

/// What a revision was said to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told {
    pub(super) revision: String,
    /// An Application, or the number of a run.
    pub(super) by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Timestamp>,
}

/// Repository, revision asked for, chart.
type Key = (String, String, String);

/// The revisions that `wanted` ask for, with what the Applications that are there and the head of the rollout tell.
pub(super) fn of(wanted: &[Value], there: &[Value], head: Option<&Head>) -> Vec<Revision> {
    let mut asked: BTreeMap<Key, usize> = BTreeMap::new();
    for application in wanted.iter().filter_map(read) {
        let mut keys: Vec<Key> = application.spec.effective_sources().iter().map(key).collect();
        keys.sort();
        keys.dedup();
        keys.into_iter().for_each(|key| *asked.entry(key).or_default() += 1);
    }
    let mut compared: BTreeMap<Key, Told> = BTreeMap::new();
    for application in there.iter().filter_map(read) {
        let name = application.metadata.name.as_deref().unwrap_or_default();
        for (key, told) in comparisons(name, &application.status) {
            let newer = compared.get(&key).is_none_or(|known| known.at < told.at);
            if newer {
                compared.insert(key, told);
            }
        }
    }
    let mut rolled: BTreeMap<Key, Told> = BTreeMap::new();
    if let Some(head) = head.filter(|head| head.run.seq > 0) {
        for (key, resolution) in &head.revisions {
            let told = Told {
                revision: resolution.sync.to_string(),
                by: format!("run {}", head.run.seq),
                at: head.run.started,
            };
            rolled.insert((key.repo.to_string(), or_head(&key.target), key.chart.to_string()), told);
        }
    }
    let revision = |(key, applications): (Key, usize)| Revision {
        compared: compared.remove(&key),
        rolled_out: rolled.remove(&key),
        repo: key.0,
        target_revision: key.1,
        chart: key.2,
        applications,
    };
    asked.into_iter().map(revision).collect()
}

fn read(object: &Value) -> Option<Application> {
    serde_json::from_value(object.clone()).ok()
}

fn key(source: &Source) -> Key {
    (source.repo_url.clone(), or_head(&source.target_revision), source.chart.clone())
}

fn or_head(target: &str) -> String {
    if target.is_empty() { "HEAD".to_owned() } else { target.to_owned() }
}

fn comparisons(name: &str, status: &ApplicationStatus) -> Vec<(Key, Told)> {
    let (sync, at) = (&status.sync, status.reconciled_at.as_ref().map(|time| time.0));
    let told = |revision: &String| Told { revision: revision.clone(), by: name.to_owned(), at };
    let pairs: Vec<(&Source, &String)> = match sync.compared_to.sources.is_empty() {
        true => vec![(&sync.compared_to.source, &sync.revision)],
        false => sync.compared_to.sources.iter().zip(&sync.revisions).collect(),
    };
    let known = pairs.into_iter().filter(|(_, revision)| !revision.is_empty());
    known.map(|(source, revision)| (key(source), told(revision))).collect()
}

pub(super) fn text(all: &[Revision], now: Timestamp, screen: &Screen) -> Option<String> {
    if all.is_empty() {
        return None;
    }
    let target = |one: &Revision| match one.chart.as_str() {
        "" => one.target_revision.clone(),
        chart => format!("{chart} {}", one.target_revision),
    };
    let shown = &all[..all.len().min(SHOWN)];
    let tone = |one: &Revision| if one.newest().is_some() { Tone::Plain } else { Tone::Quiet };
    let row = |one: &Revision| {
        vec![Cell::from(&one.repo), target(one).into(), Cell::toned(one.words(now), tone(one))]
    };
    let rows: Vec<Vec<Cell>> = shown.iter().map(row).collect();
    let list = || {
        let line = |one: &Revision| {
            let title = format!("{} of {}", target(one), one.repo);
            screen.labelled("", &title, Tone::Plain, 0) + &screen.labelled("", &one.words(now), tone(one), 4)
        };
        shown.iter().map(line).collect()
    };
    let mut out = screen.roomy(&["REPOSITORY", "REVISION", "STANDS AT"], &rows, 0).unwrap_or_else(list);
    if all.len() > shown.len() {
        let text = format!("and {} more; -o json shows them", all.len() - shown.len());
        out.push_str(&screen.labelled("", &text, Tone::Quiet, 0));
    }
    Some(out)
}

// === impl Revision ===

impl Revision {
    /// What it was last said to be.
    fn newest(&self) -> Option<&Told> {
        match (&self.compared, &self.rolled_out) {
            (Some(compared), Some(rolled)) if compared.at < rolled.at => Some(rolled),
            (compared, rolled) => compared.as_ref().or(rolled.as_ref()),
        }
    }

    fn words(&self, now: Timestamp) -> String {
        let Some(newest) = self.newest() else { return "not resolved".to_owned() };
        let ago = newest.at.map(|at| format!(" {} ago", span(at, now))).unwrap_or_default();
        let mut words = match self.rolled_out.as_ref() == Some(newest) {
            true => format!("{} as {} found it{ago}", short(&newest.revision), newest.by),
            false => format!("{} as {} was compared{ago}", short(&newest.revision), newest.by),
        };
        if let Some(run) = self.rolled_out.as_ref().filter(|run| run.revision != newest.revision) {
            words.push_str(&format!("; {} goes by {}", run.by, short(&run.revision)));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_rollout::head::{Change, Run};
    use baton_rollout::pin::{Resolution, SourceKey};
    use serde_json::json;

    const REPO: &str = "https://git.example.com/web.git";

    fn application(name: &str, target: &str, revision: &str, at: &str) -> Value {
        let source = json!({"repoURL": REPO, "targetRevision": target, "path": "web"});
        json!({
            "metadata": {"name": name},
            "spec": {"destination": {}, "project": "default", "source": source},
            "status": {
                "reconciledAt": at,
                "sync": {"status": "Synced", "revision": revision, "comparedTo": {"destination": {}, "source": source}},
            },
        })
    }

    fn head(target: &str, revision: &str, at: &str) -> Head {
        let key =
            SourceKey { repo: REPO.into(), target: target.into(), chart: "".into(), tag_prefix: "".into() };
        let run = Run { seq: 4, started: at.parse().ok(), ..Run::default() };
        let mut head = Head::default();
        let revisions = Some(BTreeMap::from([(key, Resolution::exact(revision))]));
        head.apply(&Change { run: Some(run), revisions, ..Change::default() });
        head
    }

    #[test]
    fn the_last_word_on_a_revision_counts() {
        let now: Timestamp = "2026-11-15T12:10:00Z".parse().expect("a time");
        let (early, late) = ("2026-11-15T12:00:00Z", "2026-11-15T12:08:00Z");
        let there =
            [application("web-dev", "main", "aaa", early), application("web-prod", "main", "bbb", late)];
        let wanted = [&there[0], &there[1], &application("web-new", "v2", "", early)].map(Value::clone);
        let words = |there: &[Value], head: Option<&Head>| -> Vec<String> {
            of(&wanted, there, head).iter().map(|one| one.words(now)).collect()
        };
        assert_eq!(words(&[], None), ["not resolved", "not resolved"]);
        assert_eq!(words(&there, None), ["bbb as web-prod was compared 2m ago", "not resolved"]);
        let run = head("main", "aaa", early);
        assert_eq!(words(&there, Some(&run))[0], "bbb as web-prod was compared 2m ago; run 4 goes by aaa");
        assert_eq!(words(&there[..1], Some(&head("main", "ccc", late)))[0], "ccc as run 4 found it 2m ago");
        let counted: Vec<usize> = of(&wanted, &there, None).iter().map(|one| one.applications).collect();
        assert_eq!(counted, [2, 1]);
    }

    #[test]
    fn no_target_is_head_and_every_source_counts() {
        let source = |target: &str| json!({"repoURL": REPO, "targetRevision": target});
        let several = json!({
            "metadata": {"name": "web"}, "spec": {"destination": {}, "project": "default", "sources": [source("v1"), source("")]},
            "status": {"sync": {
                "status": "Synced", "revisions": ["aaa", "bbb"],
                "comparedTo": {"destination": {}, "sources": [source("v1"), source("")]},
            }},
        });
        let found = of(std::slice::from_ref(&several), std::slice::from_ref(&several), None);
        let told: Vec<(&str, &str)> = found
            .iter()
            .map(|one| {
                (one.target_revision.as_str(), one.compared.as_ref().map_or("", |told| &told.revision))
            })
            .collect();
        assert_eq!(told, [("HEAD", "bbb"), ("v1", "aaa")]);
    }
}
