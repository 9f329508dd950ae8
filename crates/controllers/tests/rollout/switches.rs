//! What people switch: pause and resume, and the strategy itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene::{Scene, fleet, objects, text};

const MEMBERS: [(&str, &str); 3] = [("a", "dev"), ("b", "test"), ("c", "prod")];
const PAUSED: &str = "baton.dev/paused";

#[tokio::test(start_paused = true)]
async fn a_paused_rollout_writes_nothing_until_it_is_resumed() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", PAUSED, Some("true")).await;
    scene.until("a pause", |scene| scene.rollout_state() == "Paused").await;
    let commit = scene.commit(&["a", "b", "c"], "1");
    tokio::time::sleep(Duration::from_secs(600)).await;
    let revision = scene.revision();
    let began = |scene: &Scene| {
        let versions = scene.versions_since(revision);
        versions
            .into_iter()
            .filter(|one| one.object.as_ref().is_some_and(|one| !one["operation"].is_null()))
            .count()
    };
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(began(&scene), 0);
    scene.annotate_set("fleet", PAUSED, None).await;
    scene.rolled_out(&commit).await;
    assert!(began(&scene) >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_pause_in_the_head_ends_with_the_annotation_of_the_set() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", PAUSED, Some("true")).await;
    scene.pause_in_head("fleet").await;
    scene.until("a pause", |scene| scene.rollout_state() == "Paused").await;
    let paused_at = |scene: &Scene| text(&scene.rollout("fleet"), "/pausedAt");
    let since = paused_at(&scene);
    assert_eq!(since.is_empty(), !scene.api.keeps_summary(), "nowhere else is it told");
    assert!(since <= scene.now(), "{since}");
    // Whoever takes over reads the pause in the head.
    let scene = scene.crash().await;
    let commit = scene.commit(&["a", "b", "c"], "1");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((scene.rollout_state().as_str(), paused_at(&scene)), ("Paused", since));
    scene.annotate_set("fleet", PAUSED, None).await;
    scene.rolled_out(&commit).await;
    assert_eq!(paused_at(&scene), "");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_to_be_finished_keeps_newer_templates_and_commits_waiting() {
    let scene = Scene::new().await;
    let names = ["a", "b", "c"];
    // The run lasts until what waits for it was told.
    scene.slow_down(&["b"]);
    let commit = scene.commit(&names, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.annotate_set("fleet", "baton.dev/supersede", Some("Finish")).await;
    let (revision, held) = (scene.revision(), scene.commit(&names, "1"));
    let is_at = |object: &Value| {
        object["status"]["operationState"]["syncResult"]["revision"] == *held
            && object["status"]["operationState"]["phase"] == "Succeeded"
            && object["operation"].is_null()
    };
    scene.until("the first step", |scene| is_at(&scene.applications()["a"])).await;
    let mut changed = fleet(&MEMBERS);
    changed["metadata"]["annotations"] = json!({"baton.dev/supersede": "Finish"});
    changed["spec"]["template"]["spec"]["destination"]["namespace"] = "elsewhere".into();
    scene.apply(changed).await;
    let newest = scene.commit(&names, "2");
    scene
        .until("what waits to be told", |scene| {
            text(&scene.rollout("fleet"), "/message").contains("waits for the end of this run")
        })
        .await;
    scene.rolled_out(&newest).await;
    let mut known: std::collections::BTreeMap<String, Value> = Default::default();
    let mut met: std::collections::BTreeSet<String> = Default::default();
    for version in scene.versions_since(revision) {
        let Some(now) = version.object else { continue };
        let is_new = now["spec"]["destination"]["namespace"] == "elsewhere"
            || now["operation"]["sync"]["revision"] == *newest;
        assert!(!is_new || met.len() == 3, "{} goes on before the run has ended: {met:?}", version.name);
        if is_at(&now) {
            met.insert(version.name.clone());
        }
        known.insert(version.name, now);
    }
    assert!(known.values().all(|one| one["spec"]["destination"]["namespace"] == "elsewhere"));
}

#[tokio::test(start_paused = true)]
async fn without_steps_and_while_generators_fail_nothing_is_started() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let mut stepless = fleet(&MEMBERS);
    stepless["spec"]["strategy"]["rollingSync"]["steps"] = json!([]);
    let mut broken = fleet(&MEMBERS);
    broken["spec"]["generators"] = json!([{"list": {"elements": [{"name": "a"}]}}, {}]);
    for (number, (held, why)) in
        [(stepless, "No steps defined"), (broken, "generator")].into_iter().enumerate()
    {
        scene.apply(held).await;
        let named = |scene: &Scene| {
            let blocker = &scene.rollout("fleet")["blockers"][0];
            blocker["reason"] == "GeneratorError" && text(blocker, "/message").contains(why)
        };
        scene.until("the error to be named", named).await;
        let (revision, commit) = (scene.revision(), scene.commit(&["a", "b", "c"], &format!("{number}+")));
        tokio::time::sleep(Duration::from_secs(900)).await;
        let versions = scene.versions_since(revision).into_iter();
        let begun = versions.filter(|one| one.object.as_ref().is_some_and(|one| !one["operation"].is_null()));
        assert_eq!(begun.count(), 0, "{why}");
        assert!(named(&scene));
        scene.apply(fleet(&MEMBERS)).await;
        scene.rolled_out(&commit).await;
    }
}

#[tokio::test(start_paused = true)]
async fn to_rolling_sync_and_back_restores_automatic_sync() {
    let scene = Scene::new().await;
    let commit = scene.commit(&["a", "b", "c"], "0");
    let mut together = fleet(&MEMBERS);
    together["spec"]["strategy"] = json!({"type": "AllAtOnce"});
    scene.apply(together.clone()).await;
    let synced = |scene: &Scene| {
        let applications = scene.applications();
        let synced = |one: &Value| one["status"]["sync"]["status"] == "Synced";
        applications.len() == 3 && applications.values().all(synced)
    };
    scene.until("automatic syncs", synced).await;
    let policies = |scene: &Scene| -> Vec<Value> {
        scene.applications().values().map(|one| one["spec"]["syncPolicy"].clone()).collect()
    };
    let before = policies(&scene);
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    assert!(policies(&scene).iter().all(|policy| policy["automated"]["enabled"] == false));
    assert!(!scene.head("fleet").is_empty());
    scene.apply(together).await;
    scene.until("the policies of before", |scene| policies(scene) == before).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(scene.head("fleet").is_empty());
    assert!(!objects(&scene.control, "configmaps").contains_key("fleet.baton-rollout"));
    let status = scene.set("fleet")["status"].clone();
    assert!(status["applicationStatus"].is_null() && status["rollout"].is_null(), "{status:#}");
    let commit = scene.commit(&["a", "b", "c"], "1");
    scene
        .until("automatic syncs of a commit", |scene| {
            scene.applications().values().all(|one| {
                one["status"]["sync"]["status"] == "Synced" && one["status"]["sync"]["revision"] == *commit
            })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_in_flight_at_the_switch_goes_in_order_once_automatic_sync_is_off() {
    let scene = Scene::new().await;
    let names = ["a", "b", "c"];
    let commit = scene.commit(&names, "0");
    let mut together = fleet(&MEMBERS);
    together["spec"]["strategy"] = json!({"type": "AllAtOnce"});
    scene.apply(together.clone()).await;
    let synced_at = |scene: &Scene, commit: &str| {
        let applications = scene.applications();
        let synced = |one: &Value| {
            one["status"]["sync"]["status"] == "Synced"
                && one["status"]["sync"]["revision"] == *commit
                && one["status"]["health"]["status"] == "Healthy"
        };
        applications.len() == 3 && applications.values().all(synced)
    };
    scene.until("automatic syncs", |scene| synced_at(scene, &commit)).await;
    let policies = |scene: &Scene| -> Vec<String> {
        scene.applications().values().map(|one| one["spec"]["syncPolicy"].to_string()).collect()
    };
    let before = policies(&scene);
    for number in 1..=4 {
        let (since, commit) = (scene.revision(), scene.commit(&names, &number.to_string()));
        // The last step notices first, and may be under way by itself when the strategy changes.
        scene.ask_for_refresh("c").await;
        tokio::time::sleep(Duration::from_millis(150 * number)).await;
        scene.apply(fleet(&MEMBERS)).await;
        scene.rolled_out(&commit).await;
        let armed = opened_after(&scene, since);
        let mut known: std::collections::BTreeMap<String, Value> = Default::default();
        for version in scene.versions_since(0) {
            let Some(now) = version.object else { continue };
            let idle = known.get(&version.name).is_none_or(|before| before["operation"].is_null());
            if idle && !now["operation"].is_null() && version.revision > armed {
                let own = now["operation"]["info"][1]["name"] == "baton.dev/pin";
                assert!(own, "{} syncs by itself after it was armed: {:#}", version.name, now["operation"]);
                let earlier = known.iter().filter(|(name, _)| **name < version.name);
                for (name, other) in earlier {
                    let arrived = other["status"]["sync"]["revision"] == *commit
                        && other["status"]["sync"]["status"] == "Synced"
                        && other["operation"].is_null();
                    assert!(
                        arrived,
                        "{} began before {name} was done: {:#}",
                        version.name, other["status"]["sync"]
                    );
                }
            }
            known.insert(version.name, now);
        }
        scene.apply(together.clone()).await;
        scene.until("the policies of before", |scene| policies(scene) == before).await;
        scene.until("all is at rest", |scene| synced_at(scene, &commit)).await;
    }
}

/// The revision at which the first step of the first run since another revision opened.
fn opened_after(scene: &Scene, since: u64) -> u64 {
    let runs = scene.runs_since(since).into_iter();
    let mut opened = runs.filter(|(_, run)| run["open"].as_u64() > Some(0));
    opened.next().map(|(revision, _)| revision).expect("a step that opened")
}
