//! Whatever users do in between, a workload ends where its last spec says, and then rests.

mod world;

use baton_workloads::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};
use world::{World, image, is_ready, workload};

#[derive(Debug, Clone)]
enum Edit {
    Scale(u8),
    Image(u8),
    Annotate(&'static str, Option<&'static str>),
    DeletePod(u8),
    Pause(bool),
    Strategy(&'static str),
    Wait(u8),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (0u8..6).prop_map(Edit::Scale),
        (1u8..4).prop_map(Edit::Image),
        prop::sample::select(vec![
            ("stuck", Some("true")),
            ("stuck", None),
            ("fail", Some("CrashLoopBackOff")),
            ("fail", Some("ImagePullBackOff")),
            ("fail", None),
            ("delay", Some("7s")),
            ("deletion-delay", Some("4s")),
        ])
        .prop_map(|(key, value)| Edit::Annotate(key, value)),
        any::<u8>().prop_map(Edit::DeletePod),
        any::<bool>().prop_map(Edit::Pause),
        prop::sample::select(vec!["RollingUpdate", "Recreate"]).prop_map(Edit::Strategy),
        (0u8..12).prop_map(Edit::Wait),
    ];
    prop::collection::vec(edit, 0..14)
}

fn apply(world: &mut World, kind: Kind, edit: &Edit) {
    match edit {
        Edit::Scale(size) => world.patch(kind, "it", json!({"spec": {"replicas": size}})),
        Edit::Image(tag) => world.patch(kind, "it", image(&tag.to_string())),
        Edit::Annotate(key, value) => world.annotate(kind, "it", key, *value),
        Edit::DeletePod(place) => {
            let names: Vec<String> = world.list(Kind::Pod).iter().map(|pod| name(pod)).collect();
            if let Some(name) = names.get(usize::from(*place) % names.len().max(1)) {
                world.delete(Kind::Pod, name);
            }
        }
        Edit::Pause(paused) => world.patch(kind, "it", json!({"spec": {"paused": paused}})),
        Edit::Strategy(strategy) if kind == Kind::Deployment => {
            world.patch(kind, "it", json!({"spec": {"strategy": {"type": strategy}}}));
        }
        Edit::Strategy(_) => {}
        Edit::Wait(seconds) => world.advance(i64::from(*seconds)),
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_history_of_edits_ends_in_the_last_spec(
        kind in prop::sample::select(vec![Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet]),
        edits in edits(),
        order in any::<u64>(),
    ) {
        let mut world = World::with_nodes(3);
        world.order = order;
        world.create(workload(kind, "it", json!({"replicas": 2})));
        for edit in &edits {
            apply(&mut world, kind, edit);
        }
        world.patch(kind, "it", json!({"spec": {"paused": null}}));
        for key in ["stuck", "fail"] {
            world.annotate(kind, "it", key, None);
        }
        world.run();
        let object = world.get(kind, "it");
        let wanted = if kind == Kind::DaemonSet { 3 } else { object["spec"]["replicas"].as_u64().unwrap_or(1) };
        let pods = world.list(Kind::Pod);
        prop_assert_eq!(u64::try_from(pods.len()).expect("few pods"), wanted);
        let template = &object["spec"]["template"]["spec"]["containers"];
        for pod in pods {
            prop_assert!(is_ready(pod));
            prop_assert_eq!(&pod["spec"]["containers"], template);
        }
        prop_assert_eq!(&object["status"]["observedGeneration"], &object["metadata"]["generation"]);
    }
}
