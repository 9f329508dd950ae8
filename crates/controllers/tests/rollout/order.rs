//! Steps are kept: on commits, on changes of the template, over restarts and changes of the strategy.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{Scene, fleet, text};

pub(crate) const MEMBERS: [(&str, &str); 6] = [
    ("aa-prod", "prod"),
    ("bb-prod", "prod"),
    ("cc-test", "test"),
    ("dd-test", "test"),
    ("yy-dev", "dev"),
    ("zz-dev", "dev"),
];

pub(crate) fn names() -> Vec<&'static str> {
    MEMBERS.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn step(name: &str) -> usize {
    let env = MEMBERS.iter().find(|(member, _)| *member == name).expect("a member").1;
    ["dev", "test", "prod"].iter().position(|step| *step == env).expect("a step")
}

/// Reads off the history that every operation of a step began only when all earlier steps were done: Synced and
/// Healthy, with the same specification and revision. Tells the names in the order in which they began.
pub(crate) fn judged(scene: &Scene, revision: u64) -> Vec<String> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut began = Vec::new();
    for version in scene.versions_since(0) {
        let Some(now) = version.object else {
            known.remove(&version.name);
            continue;
        };
        let was_idle = known.get(&version.name).is_none_or(|before| before["operation"].is_null());
        if was_idle && !now["operation"].is_null() && version.revision > revision {
            let wanted = text(&now, "/operation/sync/revision");
            for (name, other) in known.iter().filter(|(name, _)| step(name) < step(&version.name)) {
                let status = &other["status"];
                let at = format!("{} began at {wanted} while {name} is {:#}", version.name, status["sync"]);
                assert_eq!(status["sync"]["status"], "Synced", "{at}");
                assert_eq!(status["sync"]["revision"], *wanted, "{at}");
                assert_eq!(status["health"]["status"], "Healthy", "{at}");
                assert_eq!(other["spec"]["info"], now["spec"]["info"], "{at}");
                assert!(other["operation"].is_null(), "{at}");
            }
            began.push(version.name.clone());
        }
        known.insert(version.name, now);
    }
    began
}

#[tokio::test(start_paused = true)]
async fn commits_go_through_the_steps_in_order() {
    let scene = Scene::new().await;
    let mut commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    assert_eq!(scene.applications().len(), 6);
    for number in 1..=3 {
        let revision = scene.revision();
        commit = scene.commit(&names(), &number.to_string());
        scene.rolled_out(&commit).await;
        let began = judged(&scene, revision);
        assert_eq!(began.len(), 6, "each began once: {began:?}");
    }
    judged(&scene, 0);
    let application = &scene.applications()["aa-prod"];
    assert_eq!(application["spec"]["syncPolicy"]["automated"]["enabled"], false);
}

#[tokio::test(start_paused = true)]
async fn a_changed_template_enters_at_each_step() {
    let scene = Scene::new().await;
    let commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let revision = scene.revision();
    let mut changed = fleet(&MEMBERS);
    changed["spec"]["template"]["spec"]["info"] = json!([{"name": "version", "value": "2"}]);
    scene.apply(changed).await;
    let changed = |object: &Value| object["spec"]["info"][0]["value"] == "2";
    scene
        .until("the new specification everywhere", |scene| {
            scene.applications().values().all(changed) && scene.rollout_state() == "Complete"
        })
        .await;
    // A specification enters with its step, not before.
    let mut known: BTreeMap<String, Value> = scene
        .versions_since(0)
        .into_iter()
        .filter(|one| one.revision <= revision)
        .filter_map(|one| Some((one.name, one.object?)))
        .collect();
    for version in scene.versions_since(revision) {
        let now = version.object.expect("nothing is deleted");
        if changed(&now) && !changed(&known[&version.name]) {
            for (name, other) in known.iter().filter(|(name, _)| step(name) < step(&version.name)) {
                assert!(changed(other), "{} changed before {name}", version.name);
                assert_eq!(other["status"]["sync"]["status"], "Synced", "{} before {name}", version.name);
                assert!(other["operation"].is_null(), "{} before {name}", version.name);
            }
        }
        known.insert(version.name, now);
    }
    judged(&scene, revision);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_changes_nothing() {
    let mut scene = Scene::new().await;
    let commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let revision = scene.revision();
    let commit = scene.commit(&names(), "1");
    for open in 1..=3 {
        scene
            .until("the next step", |scene| {
                scene.rollout("fleet")["step"].as_i64() >= Some(open)
                    && scene.applications().values().any(|one| one["status"]["sync"]["revision"] == *commit)
            })
            .await;
        scene = scene.crash().await;
    }
    scene.rolled_out(&commit).await;
    let began = judged(&scene, revision);
    assert_eq!(began.len(), 6, "each began once: {began:?}");
}
