use std::collections::HashSet;
use std::sync::Arc;

use baton_api::object::{Object, ResourceKey};
use serde_json::{Value, json};

use super::digest::digest;
use super::entry::Uid;
use super::state::{KindId, State, Wakes};
use crate::catalog::GroupKind;
use crate::settings::Settings;

/// A state and the means to show it things.
struct Shown {
    state: State,
    wakes: Wakes,
}

impl Shown {
    fn new() -> Shown {
        Shown { state: State::default(), wakes: Wakes::default() }
    }

    fn kind(&mut self, object: &Value) -> KindId {
        let api_version: Arc<str> = object.api_version().into();
        self.state.kind_id(&GroupKind::new(object.group(), object.kind()), &api_version)
    }

    /// Shows an object. Returns who was woken.
    fn see(&mut self, object: &Value) -> String {
        let kind = self.kind(object);
        let held = self.state.is_held(&object.key());
        self.state.apply(kind, digest(object, held, &Settings::default()), &mut self.wakes);
        self.woken()
    }

    fn lose(&mut self, object: &Value) -> String {
        let kind = self.kind(object);
        self.state.remove(kind, object.namespace(), object.name(), &Uid::new(object.uid()), &mut self.wakes);
        self.woken()
    }

    fn complete(&mut self, listed: &[&Value], like: &Value, version: u64) -> String {
        let kind = self.kind(like);
        let listed: HashSet<Uid> = listed.iter().map(|object| Uid::new(object.uid())).collect();
        self.state.complete(kind, None, &listed, version, &mut self.wakes);
        self.woken()
    }

    fn woken(&mut self) -> String {
        let wakes = std::mem::take(&mut self.wakes);
        let managed = wakes.managed.iter().map(|instance| format!("managed {instance}"));
        let children = wakes.children.iter().map(|instance| format!("child {instance}"));
        managed.chain(children).collect::<Vec<_>>().join(", ")
    }

    fn managed(&self, instance: &str) -> Vec<String> {
        let mut names: Vec<String> =
            self.state.managed(instance).iter().map(|object| object.open().name().to_owned()).collect();
        names.sort();
        names
    }
}

fn object(kind: &str, name: &str, version: u64, app: &str) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n",
        "uid": format!("uid-{kind}-{name}"), "resourceVersion": version.to_string()}});
    if !app.is_empty() {
        object["metadata"]["annotations"] =
            json!({"argocd.argoproj.io/tracking-id": format!("{app}:/{kind}:n/{name}")});
    }
    object
}

fn owned(kind: &str, name: &str, version: u64, owner: &Value) -> Value {
    let mut object = object(kind, name, version, "");
    object["metadata"]["ownerReferences"] = json!([{"uid": owner.uid()}]);
    object
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

#[test]
fn an_object_never_goes_back() {
    let mut shown = Shown::new();
    assert_eq!(shown.see(&with(object("A", "a", 5, "app"), "spec", json!(5))), "managed app");
    assert_eq!(shown.see(&with(object("A", "a", 4, "app"), "spec", json!(4))), "");
    assert_eq!(shown.state.managed("app")[0].open()["spec"], 5);
    assert_eq!(shown.see(&with(object("A", "a", 6, "app"), "spec", json!(5))), "");
    assert_eq!(shown.see(&with(object("A", "a", 7, "app"), "spec", json!(7))), "managed app");
}

#[test]
fn what_is_gone_stays_gone_and_a_new_one_of_its_name_counts() {
    let mut shown = Shown::new();
    let old = object("A", "a", 5, "app");
    shown.see(&old);
    assert_eq!(shown.lose(&old), "managed app");
    assert_eq!(shown.see(&old), "");
    assert_eq!(shown.managed("app"), Vec::<String>::new());
    let mut new = object("A", "a", 9, "app");
    new["metadata"]["uid"] = "another".into();
    assert_eq!(shown.see(&new), "managed app");
    // Late news of the old one.
    assert_eq!(shown.lose(&old), "");
    assert_eq!(shown.managed("app"), ["a"]);
}

#[test]
fn a_complete_list_removes_what_it_lacks_but_nothing_newer() {
    let mut shown = Shown::new();
    let (a, b) = (object("A", "a", 3, "app"), object("A", "b", 4, "app"));
    shown.see(&a);
    shown.see(&b);
    shown.see(&object("A", "own-write", 12, "app"));
    assert_eq!(shown.complete(&[&b], &a, 10), "managed app");
    assert_eq!(shown.managed("app"), ["b", "own-write"]);
}

#[test]
fn an_object_that_changes_hands_wakes_both() {
    let mut shown = Shown::new();
    shown.see(&object("A", "a", 1, "one"));
    assert_eq!(shown.see(&object("A", "a", 2, "two")), "managed one, managed two");
    assert_eq!((shown.managed("one").len(), shown.managed("two").len()), (0, 1));
}

#[test]
fn children_wake_the_application_at_their_top_and_circles_end() {
    let mut shown = Shown::new();
    let root = object("Root", "r", 1, "app");
    shown.see(&root);
    let middle = owned("Middle", "m", 2, &root);
    assert_eq!(shown.see(&middle), "child app");
    assert_eq!(shown.see(&owned("Leaf", "l", 3, &middle)), "child app");
    assert_eq!(shown.see(&with(owned("Leaf", "l", 4, &middle), "spec", json!(1))), "");
    let (mut x, mut y) = (object("X", "x", 5, ""), object("Y", "y", 6, ""));
    x["metadata"]["ownerReferences"] = json!([{"uid": y.uid()}]);
    y["metadata"]["ownerReferences"] = json!([{"uid": x.uid()}]);
    shown.see(&x);
    assert_eq!(shown.see(&y), "");
    assert_eq!(shown.state.tree(&[x.key()]).len(), 2);
    assert_eq!(shown.state.tree(&[root.key()]).len(), 3);
    assert_eq!(shown.lose(&middle), "child app");
    assert_eq!(shown.state.tree(&[root.key()]).len(), 1);
}

#[test]
fn a_holder_is_woken_like_an_owner() {
    let mut shown = Shown::new();
    let plain = object("A", "a", 1, "");
    shown.see(&plain);
    assert_eq!(shown.state.hold("app", &[plain.key()]), [plain.key()]);
    assert_eq!(shown.see(&plain), "managed app");
    assert_eq!(shown.state.hold("app", &[plain.key()]), Vec::<ResourceKey>::new());
    assert_eq!(shown.see(&with(object("A", "a", 2, ""), "spec", json!(1))), "managed app");
    shown.state.hold("other", &[plain.key()]);
    shown.state.hold("app", &[]);
    assert!(shown.state.find(&plain.key()).expect("known").whole.is_some());
    shown.state.hold("other", &[]);
    assert!(shown.state.find(&plain.key()).expect("known").whole.is_none());
}

#[test]
fn volume_claims_belong_to_the_set_that_named_them() {
    let mut shown = Shown::new();
    let mut set = object("StatefulSet", "web", 1, "app");
    set["apiVersion"] = "apps/v1".into();
    set["spec"] = json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]});
    shown.see(&set);
    for name in ["data-web-0", "data-web-12", "data-web-x", "data-my-web-0", "logs-web-0"] {
        shown.see(&object("PersistentVolumeClaim", name, 2, ""));
    }
    let tree = shown.state.tree(&[set.key()]);
    let names: Vec<&str> = tree.iter().map(|node| node.key.name.as_str()).collect();
    assert_eq!(names, ["web", "data-web-0", "data-web-12"]);
    assert_eq!(tree[1].parents, [set.key()]);
}

#[test]
fn forgotten_versions_let_a_rewound_history_in() {
    let mut shown = Shown::new();
    let new = object("A", "a", 90, "app");
    shown.see(&new);
    let kind = shown.kind(&new);
    assert_eq!(shown.state.newest(kind), 90);
    shown.state.forget_versions(kind);
    assert_eq!(shown.see(&with(object("A", "a", 10, "app"), "spec", json!("old"))), "managed app");
}
