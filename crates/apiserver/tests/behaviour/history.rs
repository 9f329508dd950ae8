//! What the past is worth once it is forgotten. Only an embedded server's history can be filled up at will: a real
//! one forgets by the clock of etcd's compaction.

use crate::target::{self, Target};
use crate::watches::assert_gone;
use crate::world::{MERGE_PATCH, World, names, text, version};
use serde_json::{Value, json};

const EVENTS_KEPT: usize = 100;

#[test]
fn a_watch_from_a_forgotten_version_is_told_to_list_again() {
    with_a_short_memory(async |world| {
        let made = world.config_map("one", json!({})).await;
        forget(world).await;
        let query = format!("resourceVersion={}", version(&made));
        let mut watch = world.watch(&world.core("configmaps"), &query).await;
        assert_gone(&watch.next().await.expect("an event before the end"));
        assert_eq!(watch.next().await, None, "nothing follows the error");
    });
}

#[test]
fn a_list_at_a_forgotten_version_is_expired() {
    with_a_short_memory(async |world| {
        let made = world.config_map("one", json!({})).await;
        forget(world).await;
        let query = format!("resourceVersion={}&resourceVersionMatch=Exact&limit=10", version(&made));
        world.get(&format!("{}?{query}", world.core("configmaps"))).await.fails(410, "Expired");
    });
}

#[test]
fn a_continue_token_of_a_forgotten_snapshot_offers_a_fresh_one() {
    with_a_short_memory(async |world| {
        for name in ["a", "b", "c"] {
            world.config_map(name, json!({"set": "pages"})).await;
        }
        let path = format!("{}?labelSelector=set%3Dpages&limit=1", world.core("configmaps"));
        let first = world.get(&path).await.ok();
        assert_eq!(names(&first), ["a"]);
        forget(world).await;
        let reply = world.get(&format!("{path}&continue={}", text(&first, "/metadata/continue"))).await;
        let status = reply.fails(410, "Expired");
        assert!(text(&status, "/message").contains("The provided continue parameter is too old"), "{status}");
        let fresh = text(&status, "/metadata/continue");
        let rest = world.get(&format!("{path}&continue={fresh}")).await.ok();
        assert_eq!(names(&rest), ["b"], "the list goes on from where it was, inconsistently but to the end");
    });
}

/// Writes until nothing older than this call can be remembered.
async fn forget(world: &World) {
    world.config_map("churn", json!({})).await;
    let path = world.core("configmaps/churn");
    for index in 0..EVENTS_KEPT + 2 {
        let patch: Value = json!({"data": {"key": index.to_string()}});
        world.patch(&path, MERGE_PATCH, &patch).await.ok();
    }
}

fn with_a_short_memory(scenario: impl AsyncFn(&World)) {
    target::paused_runtime().block_on(async {
        let world = World::new(&Target::in_process_remembering(EVENTS_KEPT)).await;
        scenario(&world).await;
    });
}
