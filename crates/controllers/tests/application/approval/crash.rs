//! The controller dies at every write there is, and another takes over, which dies as well.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use serde_json::json;

use super::journal::Entry;
use super::trial::{OPTIONS, Trial, by_hand, finalized};
use crate::faults::{Call, Fault};
use crate::scene::{Scene, conditions, config_map, job, text};

const HOOK: &str = "argocd.argoproj.io/hook";
const WAVE: &str = "argocd.argoproj.io/sync-wave";
const MOMENT: Duration = Duration::from_secs(3);

/// When approval comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// As soon as the operation runs.
    Early,
    /// Once it is asked for: for one resource, then for all.
    Asked,
}

/// Kills the controller right before its nth write, whichever cluster it goes to, and the one that takes over right after
/// its first, before the answer comes.
#[derive(Clone)]
struct Reaper {
    nth: usize,
    toll: Arc<Mutex<Toll>>,
}

#[derive(Default)]
struct Toll {
    writes: usize,
    is_dead: bool,
    deaths: usize,
}

impl Reaper {
    fn new(nth: usize) -> Reaper {
        Reaper { nth, toll: Arc::default() }
    }

    fn stand_by(&self, scene: &Scene) {
        let wires = scene.members.values().map(|(_, wire)| wire).chain([&scene.wire]);
        for wire in wires {
            let reaper = self.clone();
            wire.fail(move |_, call| reaper.judge(call));
        }
    }

    /// The dead ask for nothing.
    fn judge(&self, call: &Call) -> Option<Fault> {
        let mut toll = self.toll.lock();
        if toll.is_dead {
            return Some(Fault::Lost);
        }
        if call.method == Method::GET || call.dry_run || call.path.ends_with("/events") {
            return None;
        }
        let fault = match toll.writes.checked_sub(self.nth) {
            Some(0) => Fault::Lost,
            Some(1) => Fault::Silent,
            _ => {
                toll.writes += 1;
                return None;
            }
        };
        toll.writes += 1;
        toll.is_dead = true;
        toll.deaths += 1;
        Some(fault)
    }

    fn deaths(&self) -> usize {
        self.toll.lock().deaths
    }

    /// Waits for something; whenever the controller dies on the way, another goes on.
    async fn await_through(&self, mut trial: Trial, what: &str, hoped: impl Fn(&Scene) -> bool) -> Trial {
        let is_dead = || self.toll.lock().is_dead;
        loop {
            trial.scene.until_all(what, |scene| is_dead() || hoped(scene)).await;
            if !is_dead() {
                return trial;
            }
            trial = trial.crash().await;
            self.toll.lock().is_dead = false;
            self.stand_by(&trial.scene);
        }
    }
}

fn waved(name: &str, value: &str, wave: i64, options: &str) -> String {
    config_map(name, "a", value, &format!("{WAVE}: \"{wave}\", {OPTIONS}: \"{options}\""))
}

async fn deploy(application: serde_json::Value, files: &[(&str, String)]) -> Trial {
    let trial = Trial::new().await;
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    trial.scene.commit(&files);
    let mut wanted = application;
    wanted["operation"] = json!({"sync": {"syncOptions": ["CreateNamespace=true"]}});
    trial.scene.apply(wanted).await;
    trial.succeeds().await;
    trial.pass(MOMENT).await;
    trial
}

/// How often a Job was created.
fn runs(entries: &[Entry], name: &str) -> usize {
    let jobs = entries.iter().filter(|entry| entry.resource() == "jobs.batch" && entry.name() == name);
    jobs.map(|entry| text(&entry.after, "/metadata/uid")).collect::<BTreeSet<String>>().len()
}

async fn approve(reaper: &Reaper, trial: Trial, word: Word, asks: impl Fn(&Scene) -> bool) -> Trial {
    if word == Word::Early {
        trial.approve_all_now().await;
        return trial;
    }
    let trial = reaper.await_through(trial, "the question", asks).await;
    trial.pass(MOMENT).await;
    trial.approve("precious").await;
    trial.pass(MOMENT).await;
    trial.approve_all_now().await;
    trial
}

/// One sync with waves, hooks, changes and prunes. Tells how often the controller died.
async fn sync(nth: usize, word: Word) -> usize {
    let case = format!("write {nth}, {word:?}");
    let trial = deploy(
        by_hand("app"),
        &[
            ("app/early.yaml", waved("early", "1", -1, "")),
            ("app/precious.yaml", waved("precious", "1", 0, "Prune=confirm")),
            ("app/plain.yaml", waved("plain", "1", 3, "")),
            ("app/dear.yaml", waved("dear", "1", 2, "Prune=confirm")),
        ],
    )
    .await;
    trial.scene.commit(&[
        ("app/precious.yaml", ""),
        ("app/plain.yaml", ""),
        ("app/dear.yaml", ""),
        ("app/early.yaml", &waved("early", "2", -1, "")),
        ("app/late.yaml", &waved("late", "1", 3, "")),
        ("app/pre.yaml", &job("pre", &format!("{HOOK}: PreSync"))),
        (
            "app/post.yaml",
            &job("post", &format!("{HOOK}: PostSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded")),
        ),
    ]);
    let before = text(&trial.scene.application("app"), "/status/operationState/startedAt");
    let reaper = Reaper::new(nth);
    reaper.stand_by(&trial.scene);
    trial.scene.patch("app", json!({"operation": {"sync": {"prune": true}}})).await;
    let field = |scene: &Scene, name: &str| {
        text(&scene.application("app"), &format!("/status/operationState/{name}"))
    };
    let trial = reaper.await_through(trial, "the start", |scene| field(scene, "startedAt") != before).await;
    let asks = |scene: &Scene| field(scene, "message").starts_with("waiting for pruning confirmation of ");
    let trial = approve(&reaper, trial, word, asks).await;
    let ended = |scene: &Scene| {
        field(scene, "startedAt") != before
            && ["Succeeded", "Failed", "Error"].contains(&field(scene, "phase").as_str())
    };
    let trial = reaper.await_through(trial, "the end", ended).await;
    assert_eq!(field(&trial.scene, "phase"), "Succeeded", "{case}");
    let is_clean = |scene: &Scene| scene.object("east", "jobs.batch", "post").is_none();
    let trial = reaper.await_through(trial, "the hook is cleaned up", is_clean).await;
    let names = ["early", "late", "precious", "plain", "dear"];
    assert_eq!(trial.left(&names), ["early", "late"], "{case}");
    let early = trial.scene.object("east", "configmaps", "early").expect("early");
    assert_eq!(text(&early, "/data/a"), "2", "{case}");
    let entries = trial.journal.entries().await;
    assert_eq!((runs(&entries, "pre"), runs(&entries, "post")), (1, 1), "{case}");
    trial.judge().await;
    reaper.deaths()
}

/// One deletion with waves and hooks. Tells how often the controller died.
async fn deletion(nth: usize, word: Word) -> usize {
    let case = format!("write {nth}, {word:?}");
    let trial = deploy(
        finalized(by_hand("app")),
        &[
            ("app/precious.yaml", waved("precious", "1", 0, "Delete=confirm")),
            ("app/plain.yaml", waved("plain", "1", 3, "")),
            ("app/dear.yaml", waved("dear", "1", 2, "Prune=confirm")),
            ("app/kept.yaml", waved("kept", "1", 1, "Delete=false")),
            ("app/pre.yaml", job("pre", &format!("{HOOK}: PreDelete"))),
            ("app/post.yaml", job("post", &format!("{HOOK}: PostDelete"))),
        ],
    )
    .await;
    let is_held = |scene: &Scene| {
        scene.application("app")["metadata"]["finalizers"].as_array().is_some_and(|all| all.len() > 2)
    };
    trial.scene.until_all("the finalizers of the hooks", is_held).await;
    let reaper = Reaper::new(nth);
    reaper.stand_by(&trial.scene);
    trial.delete("app").await;
    let asks = |scene: &Scene| {
        let told = scene.find("app").map(|app| conditions(&app)).unwrap_or_default();
        told.iter().any(|condition| condition.starts_with("DeletionApprovalRequiredInfo: "))
    };
    let trial = approve(&reaper, trial, word, asks).await;
    let trial = reaper.await_through(trial, "the end", |scene| scene.find("app").is_none()).await;
    assert_eq!(trial.left(&["precious", "plain", "dear", "kept"]), ["kept"], "{case}");
    let entries = trial.journal.entries().await;
    assert_eq!((runs(&entries, "pre"), runs(&entries, "post")), (1, 1), "{case}");
    trial.judge().await;
    reaper.deaths()
}

/// Early at every other write.
fn word(nth: usize) -> Word {
    if nth.is_multiple_of(2) { Word::Asked } else { Word::Early }
}

#[tokio::test(start_paused = true)]
async fn a_sync_survives_death_at_any_write() {
    let mut nth = 0;
    while sync(nth, word(nth)).await + sync(nth + 1, word(nth + 1)).await > 0 {
        nth += 2;
    }
    assert!(nth > 12, "only {nth} writes to die at");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_survives_death_at_any_write() {
    let mut nth = 0;
    while deletion(nth, word(nth)).await + deletion(nth + 1, word(nth + 1)).await > 0 {
        nth += 2;
    }
    assert!(nth > 8, "only {nth} writes to die at");
}
