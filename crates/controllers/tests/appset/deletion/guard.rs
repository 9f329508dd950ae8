//! Finalizer, guard and witness are in place before the first Application, and go when they are no longer needed.

use serde_json::{Value, json};

use super::{APPLICATIONS, pricelist, pricelist_of, reverse};
use crate::scene::{NAMESPACE, Scene};

#[tokio::test(start_paused = true)]
async fn everything_is_in_place_before_the_first_application() {
    for deletion in
        [reverse(), super::custom(), json!({"deletionOrder": "Custom"}), json!({"deletionOrder": "x"})]
    {
        let scene = Scene::new().await;
        let revision = scene.revision();
        scene.put(pricelist(deletion)).await;
        let writes = scene.writes_since(revision);
        let first = writes.iter().position(|write| write.resource == APPLICATIONS).expect("an Application");
        let before: Vec<String> =
            writes[..first].iter().map(|write| format!("{} {}", write.change, write.name)).collect();
        let expected = [
            "added pricelist",
            "modified pricelist",
            "added pricelist.baton-witness",
            "added pricelist.baton-rollout",
        ];
        assert_eq!(before, expected);
        let finalizers = scene.set("pricelist")["metadata"]["finalizers"].clone();
        assert_eq!(finalizers, json!(["resources-finalizer.argocd.argoproj.io"]));
        for object in scene.applications().values() {
            let owners = object["metadata"]["ownerReferences"].as_array().expect("owners");
            assert_eq!(owners.len(), 2);
            let guard = &owners[1];
            assert_eq!(guard["name"], "pricelist.baton-rollout");
            assert_eq!((&guard["controller"], &guard["blockOwnerDeletion"]), (&json!(false), &json!(false)));
            assert_eq!(object["metadata"]["labels"]["baton.dev/application-set"], "pricelist");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn guard_and_label_are_no_difference() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    let revision = scene.revision();
    scene.wire.take_calls();
    scene.wake("pricelist").await;
    let scene = scene.restart().await;
    scene.wake("pricelist").await;
    assert_eq!(scene.writes_since(revision), []);
}

#[tokio::test(start_paused = true)]
async fn applications_of_before_get_their_guard() {
    let scene = Scene::new().await;
    scene.put(pricelist(json!({}))).await;
    assert_eq!(scene.maps(), [""; 0]);
    scene.put(pricelist(reverse())).await;
    for object in scene.applications().values() {
        assert_eq!(object["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(2));
    }
    scene.delete_set("pricelist", "Foreground").await;
    assert_eq!(scene.terminating(), ["pricelist-frontend"]);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_gives_up_its_order_takes_the_guard_away() {
    for policy in ["sync", "create-only"] {
        let scene = Scene::new().await;
        let with = |deletion: Value| {
            let mut set = pricelist(deletion);
            set["spec"]["syncPolicy"] = json!({"applicationsSync": policy});
            set
        };
        scene.put(with(reverse())).await;
        assert_eq!(scene.maps().len(), 2);
        let revision = scene.revision();
        scene.put(with(json!({"deletionOrder": null}))).await;
        assert_eq!(scene.maps(), [""; 0], "{policy}");
        let deleted = scene.application_writes_since(revision);
        assert!(deleted.iter().all(|write| write.starts_with("modified")), "{deleted:?}");
        for object in scene.applications().values() {
            let owners = object["metadata"]["ownerReferences"].as_array().expect("owners");
            assert_eq!(owners.len(), 1);
            assert_eq!(owners[0]["kind"], "ApplicationSet");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_guard_is_made_anew() {
    let scene = Scene::new().await;
    scene.put(pricelist(reverse())).await;
    scene.cluster.delete_object("v1", "ConfigMap", NAMESPACE, "pricelist.baton-rollout").await.expect("gone");
    scene.settle().await;
    assert_eq!(scene.maps().len(), 2);
    let uid = scene.objects("configmaps")["pricelist.baton-rollout"]["metadata"]["uid"].clone();
    for object in scene.applications().values() {
        let owners = object["metadata"]["ownerReferences"].as_array().expect("owners");
        assert_eq!(owners.len(), 2);
        assert_eq!(owners[1]["uid"], uid);
    }
}

#[tokio::test(start_paused = true)]
async fn the_data_of_the_guard_is_left_alone() {
    let scene = Scene::new().await;
    scene
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"more": "{}"},
            "metadata": {
                "name": "pricelist.baton-rollout", "namespace": NAMESPACE, "labels": {"baton.dev/application-set": "pricelist"},
            },
        }))
        .await;
    scene.put(pricelist(reverse())).await;
    scene.put(pricelist_of(&["config"], reverse())).await;
    assert_eq!(scene.objects("configmaps")["pricelist.baton-rollout"]["data"], json!({"more": "{}"}));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_with_the_name_of_the_guard_is_left_alone() {
    let scene = Scene::new().await;
    scene
        .apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "x"},
            "metadata": {"name": "pricelist.baton-rollout", "namespace": NAMESPACE},
        }))
        .await;
    scene.put(pricelist(reverse())).await;
    assert_eq!(scene.names().len(), 3);
    assert!(scene.events().iter().any(|event| event.starts_with("DeletionOrderUnguarded")));
    scene.delete_set("pricelist", "Background").await;
    for name in ["pricelist-frontend", "pricelist-db", "pricelist-config"] {
        scene.let_application_go(name).await;
    }
    assert!(!scene.has_set("pricelist"));
    assert_eq!(scene.objects("configmaps")["pricelist.baton-rollout"]["data"], json!({"mine": "x"}));
}
