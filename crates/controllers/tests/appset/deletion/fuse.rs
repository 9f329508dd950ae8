//! A mass deletion by generators waits for a person.

use baton_controllers::{Fuse, Settings};
use serde_json::{Value, json};

use super::{by_component, pricelist_of, step};
use crate::scene::{NAMESPACE, Scene, list, set};

const SETS: &str = "applicationsets.argoproj.io";
const TEN: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

async fn armed() -> Scene {
    Scene::with(Settings { deletion_fuse: Fuse::Share(50), ..Settings::new(NAMESPACE) }).await
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_without_approval() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    scene.put(set("set", list(&TEN[..4]))).await;
    assert_eq!(scene.names(), TEN);
    assert_eq!(scene.terminating(), [""; 0]);
    let held = held(&scene, "set").expect("a condition");
    assert!(held.contains("6 of 10 Applications") && held.contains("e, f, g, h, i, j"), "{held}");
    assert!(held.contains("baton appset approve-deletion set"), "{held}");
    assert_eq!(scene.set("set")["status"]["health"]["status"], "Suspended");
    let events: Vec<String> =
        scene.events().into_iter().filter(|event| event.starts_with("DeletionHeld")).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    let revision = scene.revision();
    scene.wake("set").await;
    assert_eq!(scene.writes_since(revision), [], "told once");
    // The generator comes to its senses.
    scene.put(set("set", list(&TEN))).await;
    assert_eq!(self::held(&scene, "set"), None);
    assert_eq!(scene.names(), TEN);
}

#[tokio::test(start_paused = true)]
async fn half_of_them_and_four_of_them_go_without_asking() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    scene.put(set("set", list(&TEN[..5]))).await;
    assert_eq!(scene.terminating(), TEN[5..]);
    scene.put(set("few", list(&["w", "x", "y", "z"]))).await;
    scene.put(set("few", list(&[]))).await;
    assert_eq!(scene.terminating().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn an_approval_lets_exactly_these_go_once() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    scene.put(set("set", list(&TEN[..4]))).await;
    let print = asked_for(&scene, "set");
    approve(&scene, "set", "0123456789abcdef").await;
    assert_eq!(scene.terminating(), [""; 0], "another approval is none");
    approve(&scene, "set", &print).await;
    assert_eq!(scene.terminating(), TEN[4..]);
    for name in &TEN[4..] {
        scene.let_application_go(name).await;
    }
    assert_eq!(scene.names(), TEN[..4]);
    assert_eq!(held(&scene, "set"), None);
    assert_eq!(annotation(&scene, "set"), Value::Null, "it is used up");
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_void_when_more_would_go() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    scene.put(set("set", list(&TEN[..4]))).await;
    let print = asked_for(&scene, "set");
    scene.put(set("set", list(&TEN[..3]))).await;
    approve(&scene, "set", &print).await;
    assert_eq!(scene.terminating(), [""; 0]);
    assert_ne!(asked_for(&scene, "set"), print);
}

#[tokio::test(start_paused = true)]
async fn an_approved_deletion_keeps_its_order_and_outlives_a_restart() {
    let scene = armed().await;
    let steps = [step(&["f", "e"]), step(&["a", "b", "c", "d"])];
    let deletion = json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}});
    let six = &TEN[..6];
    scene.put(pricelist_of(six, deletion.clone())).await;
    scene.put(pricelist_of(&[], deletion.clone())).await;
    assert_eq!(scene.terminating(), [""; 0]);
    let print = asked_for(&scene, "pricelist");
    approve(&scene, "pricelist", &print).await;
    assert_eq!(scene.terminating(), ["pricelist-e"]);
    let scene = scene.restart().await;
    for component in ["e", "f", "a", "b", "c", "d"] {
        let name = format!("pricelist-{component}");
        assert_eq!(scene.terminating(), [name.as_str()]);
        scene.let_application_go(&name).await;
    }
    assert_eq!(annotation(&scene, "pricelist"), Value::Null);
    scene.went_in_order(by_component(&["e", "f", "a"]));
}

#[tokio::test(start_paused = true)]
async fn while_it_holds_what_is_new_is_created_and_what_stays_is_updated() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    let mut changed = set("set", list(&["a", "new"]));
    changed["spec"]["template"]["spec"]["source"]["targetRevision"] = "next".into();
    scene.put(changed).await;
    assert_eq!(scene.names().len(), 11);
    assert_eq!(scene.application("a")["spec"]["source"]["targetRevision"], "next");
    assert_eq!(scene.terminating(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_set_has_its_own_share() {
    for (settings, share, held_back) in [
        (Fuse::Share(50), "off", false),
        (Fuse::Share(50), "90%", false),
        (Fuse::Share(90), "50%", true),
        (Fuse::Off, "50%", true),
        (Fuse::Off, "some", true),
    ] {
        let scene = Scene::with(Settings { deletion_fuse: settings, ..Settings::new(NAMESPACE) }).await;
        let with = |names: &[&str]| {
            let mut set = set("set", list(names));
            set["metadata"]["annotations"] = json!({"baton.dev/deletion-fuse": share});
            set
        };
        scene.put(with(&TEN)).await;
        scene.put(with(&TEN[..2])).await;
        assert_eq!(held(&scene, "set").is_some(), held_back, "{settings} {share}");
        assert_eq!(scene.terminating().is_empty(), held_back, "{settings} {share}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_set_is_no_accident() {
    let scene = armed().await;
    scene.put(set("set", list(&TEN))).await;
    scene.delete_set("set", "Background").await;
    assert_eq!(scene.terminating(), TEN);
}

fn held(scene: &Scene, set: &str) -> Option<String> {
    scene.conditions(set).into_iter().find(|text| text.starts_with("DeletionHeld=True DeletionFuse"))
}

fn asked_for(scene: &Scene, set: &str) -> String {
    let held = held(scene, set).expect("a condition");
    held.rsplit_once("baton.dev/deletion-approved=").expect("an annotation").1.to_owned()
}

fn annotation(scene: &Scene, set: &str) -> Value {
    let set = scene.set(set);
    set["metadata"]["annotations"].get("baton.dev/deletion-approved").cloned().unwrap_or_default()
}

async fn approve(scene: &Scene, set: &str, print: &str) {
    let patch = json!({"metadata": {"annotations": {"baton.dev/deletion-approved": print}}});
    scene.merge(SETS, set, patch).await;
    scene.settle().await;
}
