//! Whatever request fails, and however: the order is kept, and in the end everything is as it was asked for.

use std::time::Duration;

use serde_json::{Value, json};

use super::{by_component, pricelist_of, step};
use crate::faults::Fault;
use crate::scene::Scene;

const ORDER: &[&str] = &["c", "a", "b"];

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Delete(&'static str),
    Shrink,
    Orphan,
}

#[tokio::test(start_paused = true)]
async fn the_set_goes_in_order() {
    every_mishap(Ask::Delete("Background")).await;
}

#[tokio::test(start_paused = true)]
async fn the_set_goes_in_order_in_the_foreground() {
    every_mishap(Ask::Delete("Foreground")).await;
}

#[tokio::test(start_paused = true)]
async fn generators_drop_in_order() {
    every_mishap(Ask::Shrink).await;
}

#[tokio::test(start_paused = true)]
async fn orphans_are_never_deleted() {
    every_mishap(Ask::Orphan).await;
}

async fn every_mishap(ask: Ask) {
    let scene = Scene::new().await;
    let requests = story(&scene, ask, None).await;
    assert!(requests > 5, "{ask:?} makes {requests} requests");
    let faults = [
        Fault::Refused(500, "injected".into()),
        Fault::Refused(409, "injected".into()),
        Fault::Done(500, "injected".into()),
        Fault::Silent,
    ];
    for fault in faults {
        for number in 0..requests {
            story(&scene, ask, Some((number, fault.clone()))).await;
        }
    }
}

/// Tells a story with one request failing, judges it, and tells how many requests it made.
async fn story(scene: &Scene, ask: Ask, fault: Option<(usize, Fault)>) -> usize {
    let shown = format!("{ask:?} {fault:?}");
    let revision = scene.revision();
    scene.put(letters(&["a", "b", "c"])).await;
    assert_eq!(scene.names().len(), 3, "before {shown}");
    scene.wire.take_calls();
    scene.wire.fail(move |number, call| {
        let (at, fault) = fault.as_ref()?;
        (number == *at && !call.watch).then(|| fault.clone())
    });
    match ask {
        Ask::Delete(policy) => scene.delete_set("pricelist", policy).await,
        Ask::Orphan => scene.delete_set("pricelist", "Orphan").await,
        Ask::Shrink => scene.put(letters(&[])).await,
    }
    // Long enough for every request that is never answered, and for every retry.
    tokio::time::sleep(Duration::from_secs(300)).await;
    scene.settle().await;
    scene.wire.heal();
    let requests = scene.wire.take_calls().len();
    let went = scene.went_in_order_since(revision, by_component(ORDER));
    if ask == Ask::Orphan {
        assert_eq!(went, [""; 0], "{shown}");
        assert_eq!(scene.names().len(), 3, "{shown}");
        for name in scene.names() {
            scene.remove("Application", &name).await;
        }
    } else {
        assert_eq!(went, ["pricelist-c", "pricelist-a", "pricelist-b"], "{shown}");
    }
    assert_eq!(scene.names(), [""; 0], "{shown}");
    if ask == Ask::Shrink {
        assert!(scene.has_set("pricelist"), "{shown}");
    } else {
        assert!(!scene.has_set("pricelist"), "{shown}");
        assert_eq!(scene.maps(), [""; 0], "{shown}");
    }
    requests
}

/// A set whose Applications are gone as soon as they are deleted.
fn letters(names: &[&str]) -> Value {
    let steps = [step(&["c"]), step(&["a", "b"])];
    let mut set = pricelist_of(names, json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}}));
    set["spec"]["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    set
}
