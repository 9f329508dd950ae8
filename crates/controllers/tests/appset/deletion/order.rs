use serde_json::{Value, json};

use super::{by_component, custom, pricelist, pricelist_of, reverse, step};
use crate::scene::{Scene, cluster_secret};

const REVERSE: &[&str] = &["frontend", "db", "config"];
const CUSTOM: &[&str] = &["config", "frontend", "db"];
const ALL: [&str; 3] = ["pricelist-config", "pricelist-db", "pricelist-frontend"];

fn named(order: &[&str]) -> Vec<String> {
    order.iter().map(|srv| format!("pricelist-{srv}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_set_without_an_order_takes_everything_with_it() {
    let scene = Scene::new().await;
    scene.put(pricelist(json!({"deletionOrder": "AllAtOnce"}))).await;
    assert_eq!(scene.names(), ALL);
    assert_eq!(scene.set("pricelist")["metadata"].get("finalizers"), None);
    assert_eq!(scene.maps(), [""; 0]);
    scene.delete_set("pricelist", "Background").await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.terminating(), ALL);
}

#[tokio::test(start_paused = true)]
async fn the_applications_of_a_deleted_set_go_one_by_one() {
    for (deletion, order) in [(reverse(), REVERSE), (custom(), CUSTOM)] {
        let scene = Scene::new().await;
        scene.put(pricelist(deletion)).await;
        assert_eq!(scene.names(), ALL);
        scene.delete_set("pricelist", "Background").await;
        for (gone, name) in named(order).iter().enumerate() {
            assert_eq!(scene.terminating(), [name.as_str()]);
            assert_eq!(scene.names().len(), 3 - gone);
            assert!(scene.has_set("pricelist"));
            let status = scene.set("pricelist")["status"]["rollout"]["deletion"].clone();
            assert_eq!((&status["step"], &status["totalSteps"]), (&json!(gone + 1), &json!(4)));
            assert_eq!(status["deleting"], json!([name]));
            scene.let_application_go(name).await;
        }
        assert!(!scene.has_set("pricelist") && scene.names().is_empty());
        assert_eq!(scene.maps(), [""; 0], "nothing is left behind");
        assert_eq!(scene.went_in_order(by_component(order)), named(order));
    }
}

#[tokio::test(start_paused = true)]
async fn applications_that_generators_drop_go_in_the_same_order() {
    for (deletion, order) in [(reverse(), REVERSE), (custom(), CUSTOM)] {
        let scene = Scene::new().await;
        scene.put(pricelist(deletion.clone())).await;
        scene.put(pricelist_of(&[], deletion.clone())).await;
        for name in named(order) {
            assert_eq!(scene.terminating(), [name.as_str()]);
            let conditions = scene.conditions("pricelist").join("\n");
            assert!(conditions.contains("DeletionProgressing=True OrderedDeletion"), "{conditions}");
            scene.let_application_go(&name).await;
        }
        assert_eq!(scene.names(), [""; 0]);
        assert_eq!(scene.went_in_order(by_component(order)), named(order));
        let conditions = scene.conditions("pricelist").join("\n");
        assert!(!conditions.contains("DeletionProgressing"), "{conditions}");
        assert_eq!(scene.set("pricelist")["status"].get("rollout"), None);
        assert_eq!(scene.maps().len(), 2, "the guard waits for the next Application");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_applications_do_not_wait_for_those_that_stay() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.put(pricelist_of(&["frontend"], reverse())).await;
    assert_eq!(scene.terminating(), ["pricelist-db"]);
    scene.let_application_go("pricelist-db").await;
    assert_eq!(scene.terminating(), ["pricelist-config"]);
    // It comes back before the other is gone: it is not deleted any more, the other is created anew once it is.
    scene.put(pricelist_of(&["frontend", "config"], reverse())).await;
    scene.let_application_go("pricelist-config").await;
    assert_eq!(scene.names(), ["pricelist-config", "pricelist-frontend"]);
    assert_eq!(scene.terminating(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn all_at_once_drops_together() {
    let scene = Scene::new().await;
    scene.put(pricelist(json!({}))).await;
    scene.put(pricelist_of(&["db"], json!({}))).await;
    assert_eq!(scene.terminating(), ["pricelist-config", "pricelist-frontend"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_changes_nothing() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.delete_set("pricelist", "Background").await;
    let scene = scene.restart().await;
    assert_eq!(scene.terminating(), ["pricelist-frontend"]);
    scene.let_application_go("pricelist-frontend").await;
    let scene = scene.restart().await;
    assert_eq!(scene.terminating(), ["pricelist-db"]);
    scene.let_application_go("pricelist-db").await;
    scene.let_application_go("pricelist-config").await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.went_in_order(by_component(REVERSE)), named(REVERSE));
}

#[tokio::test(start_paused = true)]
async fn a_step_may_let_several_go_at_once_and_strangers_go_last() {
    let scene = Scene::new().await;
    let mut first = step(&["a", "b", "c", "d"]);
    first["maxUpdate"] = "50%".into();
    let mut second = step(&["x", "y"]);
    second["maxUpdate"] = 0.into();
    let deletion = json!({"deletionOrder": "custom", "deletionSync": {"steps": [first, second]}});
    scene.put(pricelist_of(&["y", "other", "d", "c", "b", "a", "x"], deletion)).await;
    scene.delete_set("pricelist", "Background").await;
    assert_eq!(scene.terminating(), ["pricelist-a", "pricelist-b"]);
    scene.let_application_go("pricelist-b").await;
    assert_eq!(scene.terminating(), ["pricelist-a", "pricelist-c"]);
    scene.let_application_go("pricelist-a").await;
    assert_eq!(scene.terminating(), ["pricelist-c", "pricelist-d"]);
    scene.let_application_go("pricelist-d").await;
    assert_eq!(scene.terminating(), ["pricelist-c"], "the step is not over");
    scene.let_application_go("pricelist-c").await;
    assert_eq!(scene.terminating(), ["pricelist-x"], "0 counts as 1");
    for name in ["pricelist-x", "pricelist-y", "pricelist-other"] {
        assert_eq!(scene.terminating(), [name]);
        scene.let_application_go(name).await;
    }
    assert!(!scene.has_set("pricelist"));
}

#[tokio::test(start_paused = true)]
async fn a_consistent_read_comes_between_steps_and_not_between_applications() {
    let scene = Scene::new().await;
    let names = ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4"];
    let steps = [step(&names[..4]), step(&names[4..])];
    let mut set = pricelist_of(&names, json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}}));
    // Without finalizers each is gone at once.
    set["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    scene.put(set).await;
    assert_eq!(scene.names().len(), 8);
    scene.wire.take_calls();
    scene.delete_set("pricelist", "Background").await;
    assert!(!scene.has_set("pricelist") && scene.names().is_empty());
    let calls = scene.wire.take_calls();
    let lists = calls.iter().filter(|call| call.target().0 == "applications" && call.target().1.is_empty());
    assert_eq!(lists.count(), 3, "one per step, and one for the end");
    let expected = names.map(|name| format!("pricelist-{name}"));
    assert_eq!(scene.went_in_order(|_| 0), expected);
}

#[tokio::test(start_paused = true)]
async fn the_cost_of_a_deletion_follows_its_size() {
    let cost = async |count: usize| {
        let scene = Scene::new().await;
        let names: Vec<String> = (0..count).map(|number| format!("s{number:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let steps: Vec<Value> = names.chunks(count / 5).map(step).collect();
        let mut set =
            pricelist_of(&names, json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}}));
        set["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
        scene.put(set).await;
        assert_eq!(scene.names().len(), count);
        scene.wire.take_calls();
        scene.delete_set("pricelist", "Background").await;
        assert!(!scene.has_set("pricelist") && scene.names().is_empty());
        let calls = scene.wire.take_calls();
        let of = |resource: &str| calls.iter().filter(|call| call.target().0 == resource).count();
        let lists = calls.iter().filter(|call| call.target() == ("applications", "", "")).count();
        assert_eq!(lists, 6, "one per step, and one for the end");
        (of("applications"), of("applicationsets") + of("configmaps"))
    };
    let (small, small_rest) = cost(50).await;
    let (large, large_rest) = cost(200).await;
    assert_eq!((small, large), (2 * 50 + 6, 2 * 200 + 6), "a look and a deletion each");
    assert!(small_rest < 20 && large_rest < 35, "{small_rest} and {large_rest} others");
}

#[tokio::test(start_paused = true)]
async fn applications_of_a_cluster_that_is_gone_do_not_hold_the_others() {
    let scene = Scene::new().await;
    scene.put(cluster_secret("east", json!({}))).await;
    let mut set = pricelist(reverse());
    set["spec"]["template"]["spec"]["destination"] = json!({"name": "east", "namespace": "pricelist"});
    scene.put(set).await;
    assert_eq!(scene.names(), ALL);
    scene.remove("Secret", "cluster-east").await;
    scene.delete_set("pricelist", "Background").await;
    assert!(!scene.has_set("pricelist") && scene.names().is_empty());
    assert_eq!(scene.went_in_order(by_component(REVERSE)), named(REVERSE));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_being_deleted_already_is_waited_for_and_never_written() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    // Somebody deletes the one that would be the last to go.
    scene.delete("Application", "pricelist-config").await;
    scene.settle().await;
    let revision = scene.revision();
    let mut changed = pricelist(reverse());
    changed["spec"]["template"]["spec"]["source"]["targetRevision"] = "next".into();
    scene.put(changed).await;
    let writes = scene.application_writes_since(revision);
    assert_eq!(writes, ["modified pricelist-db", "modified pricelist-frontend"]);
    scene.delete_set("pricelist", "Background").await;
    assert_eq!(scene.terminating(), ["pricelist-config", "pricelist-frontend"]);
    scene.let_application_go("pricelist-frontend").await;
    assert_eq!(scene.terminating(), ["pricelist-config", "pricelist-db"]);
    scene.let_application_go("pricelist-db").await;
    assert!(scene.has_set("pricelist"), "the first is still there");
    scene.let_application_go("pricelist-config").await;
    assert!(!scene.has_set("pricelist"));
}

#[tokio::test(start_paused = true)]
async fn a_policy_without_deletion_leaves_the_applications() {
    let scene = Scene::new().await;
    let mut set = pricelist(reverse());
    set["spec"]["syncPolicy"] = json!({"applicationsSync": "create-update"});
    scene.put(set).await;
    scene.delete_set("pricelist", "Background").await;
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.names(), ALL);
    assert_eq!(scene.terminating(), [""; 0]);
    assert_eq!(scene.maps(), [""; 0]);
    for (name, object) in scene.applications() {
        assert_eq!(object["metadata"].get("ownerReferences"), None, "{name}");
        assert_eq!(object["metadata"]["labels"].as_object().map(|labels| labels.len()), Some(1), "{name}");
        assert_eq!(object["metadata"]["labels"].get("baton.dev/application-set"), None::<&Value>, "{name}");
    }
}
