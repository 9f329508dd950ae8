//! Argo CD's ApplicationSet controller takes a set over in the middle of a run, and gives it back: whatever it has begun or
//! taken away, Baton starts no Application before those of earlier steps are done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::order::{MEMBERS, names, step};
use crate::scene::{Scene, fleet, text};
use crate::upstream;

/// What was begun since a revision by Baton: names in order, each judged. An operation of Baton's has its mark. Nothing
/// is begun twice, unless the other controller has synced it since: then nothing tells any more that the first landed.
fn begun_by_baton(scene: &Scene, since: u64) -> Vec<String> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut begun = Vec::new();
    let mut ours_last: BTreeSet<String> = BTreeSet::new();
    for version in scene.versions_since(0) {
        let now = version.object.expect("nothing is deleted");
        let idle = known.get(&version.name).is_none_or(|before| before["operation"].is_null());
        let ours = now["operation"]["info"][1]["name"] == "baton.dev/pin";
        let begins = idle && !now["operation"].is_null() && version.revision > since;
        if begins && !ours {
            ours_last.remove(&version.name);
        }
        if begins && ours {
            assert!(ours_last.insert(version.name.clone()), "{} is begun again: {begun:?}", version.name);
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
            begun.push(version.name.clone());
        }
        known.insert(version.name, now);
    }
    begun
}

/// Whether an Application is at a commit, and nothing is under way.
fn is_at(scene: &Scene, name: &str, commit: &str) -> bool {
    let application = &scene.applications()[name];
    let status = &application["status"];
    status["sync"]["status"] == "Synced"
        && status["sync"]["revision"] == *commit
        && status["health"]["status"] == "Healthy"
        && application["operation"].is_null()
}

/// Whether every Application of an environment is.
fn env_is_at(scene: &Scene, env: &str, commit: &str) -> bool {
    MEMBERS.iter().filter(|(_, one)| *one == env).all(|(name, _)| is_at(scene, name, commit))
}

/// Whether one of an environment is being synced to a commit, or was. To report it is not enough.
fn env_has_begun(scene: &Scene, env: &str, commit: &str) -> bool {
    let applications = scene.applications();
    let mut all = MEMBERS.iter().filter(|(_, one)| *one == env).map(|(name, _)| &applications[*name]);
    let state = |one: &Value| one["status"]["operationState"]["syncResult"]["revision"].clone();
    all.any(|one| state(one) == *commit || !one["operation"].is_null())
}

fn has_no_mark(application: &Value) -> bool {
    let metadata = &application["metadata"];
    metadata["annotations"]["baton.dev/pin"].is_null()
        && metadata["labels"]["baton.dev/application-set"].is_null()
}

/// Has the other controller make passes until something is true.
async fn reigns_until(scene: &Scene, what: &str, hoped: impl Fn(&Scene) -> bool) {
    for _ in 0..200 {
        if hoped(scene) {
            return;
        }
        upstream::pass(scene).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    panic!("in vain: {what}: {:#}", scene.set("fleet")["status"]);
}

/// Somebody looks at all, until a commit is noticed everywhere: where only some know of it, the other controller itself
/// keeps no order.
async fn refresh_all(scene: &Scene, commit: &str) {
    for name in names() {
        scene.ask_for_refresh(name).await;
    }
    let noticed = |one: &Value| one["status"]["sync"]["revision"] == *commit;
    scene.until("the commit to be noticed", |scene| scene.applications().values().all(noticed)).await;
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_taken_over_in_mid_run_and_given_back_keeps_its_order() {
    let mut scene = Scene::new().await;
    scene.slow_down(&["cc-test", "zz-dev"]);
    let mut commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    // Taken over while one step is under way or done, given back while another is.
    let turns = [("dev", "dev"), ("dev", "test"), ("test", "test"), ("test", "prod"), ("prod", "prod")];
    for (number, (taken, given)) in turns.into_iter().enumerate() {
        let since = scene.revision();
        commit = scene.commit(&names(), &format!("{number}: {taken}, {given}"));
        scene.until("the step to begin", |scene| env_has_begun(scene, taken, &commit)).await;
        scene.stop_sets().await;
        refresh_all(&scene, &commit).await;
        upstream::pass(&scene).await;
        reigns_until(&scene, given, |scene| env_has_begun(scene, given, &commit)).await;
        assert!(scene.applications().values().all(has_no_mark), "the other controller leaves none");
        scene.start_sets();
        scene.rolled_out(&commit).await;
        let begun = begun_by_baton(&scene, since);
        println!("taken over in {taken}, given back in {given}: Baton began {begun:?}");
        let last = begun.iter().filter(|name| name.ends_with("prod")).count();
        assert!(last == 2 || given == "prod", "Baton had the last step left: {begun:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_other_controller_has_done_is_not_done_again() {
    let mut scene = Scene::new().await;
    let commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let commit = scene.commit(&names(), "1");
    scene.until("the first step", |scene| env_is_at(scene, "dev", &commit)).await;
    scene.stop_sets().await;
    refresh_all(&scene, &commit).await;
    upstream::pass(&scene).await;
    reigns_until(&scene, "the second step", |scene| env_is_at(scene, "test", &commit)).await;
    let done: Vec<&str> = names().into_iter().filter(|name| is_at(&scene, name, &commit)).collect();
    let since = scene.revision();
    scene.start_sets();
    scene.rolled_out(&commit).await;
    let begun = begun_by_baton(&scene, since);
    assert!(!begun.iter().any(|name| done.contains(&name.as_str())), "{done:?} were done, {begun:?} began");
}

#[tokio::test(start_paused = true)]
async fn a_commit_and_a_template_that_came_under_the_other_controller_go_in_order() {
    let mut scene = Scene::new().await;
    let commit = scene.commit(&names(), "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    let commit = scene.commit(&names(), "1");
    scene.until("the first step", |scene| env_has_begun(scene, "dev", &commit)).await;
    scene.stop_sets().await;
    upstream::pass(&scene).await;
    // It writes the template to all at once, and the last step is the first to notice the commit.
    let newest = scene.commit(&names(), "2");
    let mut changed = fleet(&MEMBERS);
    changed["spec"]["template"]["spec"]["info"] = json!([{"name": "version", "value": "2"}]);
    scene.apply(changed).await;
    scene.ask_for_refresh("aa-prod").await;
    for _ in 0..2 {
        upstream::pass(&scene).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(scene.applications().values().all(|one| one["spec"]["info"][0]["value"] == "2"));
    let since = scene.revision();
    scene.start_sets();
    scene.rolled_out(&newest).await;
    let begun = begun_by_baton(&scene, since);
    assert!(!begun.is_empty(), "Baton had something left to do");
}

#[tokio::test(start_paused = true)]
async fn a_fleet_that_the_other_controller_left_in_the_middle_is_gone_on_with_in_order() {
    for left_in in ["dev", "test", "prod"] {
        let mut scene = Scene::new().await;
        scene.stop_sets().await;
        scene.slow_down(&["cc-test", "zz-dev"]);
        let commit = scene.commit(&names(), "0");
        scene.apply(fleet(&MEMBERS)).await;
        upstream::pass(&scene).await;
        reigns_until(&scene, "the first rollout", |scene| {
            names().iter().all(|name| is_at(scene, name, &commit))
        })
        .await;
        let commit = scene.commit(&names(), "1");
        refresh_all(&scene, &commit).await;
        reigns_until(&scene, left_in, |scene| env_has_begun(scene, left_in, &commit)).await;
        assert!(scene.head("fleet").is_empty(), "Baton has never been here");
        let since = scene.revision();
        scene.start_sets();
        scene.rolled_out(&commit).await;
        let begun = begun_by_baton(&scene, since);
        println!("left in {left_in}: Baton began {begun:?}");
        let last = begun.iter().filter(|name| name.ends_with("prod")).count();
        assert!(last == 2 || left_in == "prod", "Baton had the last step left: {begun:?}");
        let next = scene.commit(&names(), "2");
        let since = scene.revision();
        scene.rolled_out(&next).await;
        assert_eq!(begun_by_baton(&scene, since).len(), MEMBERS.len(), "each begins once");
    }
}
