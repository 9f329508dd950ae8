//! Plans, explanations and people's words on ordered rollouts, beside a Kubernetes API and without any controller:
//! what a controller would write is written by hand.

mod process;

use std::collections::BTreeMap;
use std::fs;

use baton_rollout::head::{Change, Head, Row, Run};
use baton_rollout::pin::{Fingerprint, Resolution, SourceKey};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use process::{Outcome, Running, client, run};
use serde_json::{Value, json};

const SET: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - list: {elements: [{env: dev}, {env: prod}]}
  strategy:
    type: RollingSync
    rollingSync:
      steps:
        - matchExpressions: [{key: env, operator: In, values: [dev]}]
        - matchExpressions: [{key: env, operator: In, values: [prod]}]
          maxUpdate: 1
  template:
    metadata: {name: 'web-{{.env}}', labels: {env: '{{.env}}'}}
    spec:
      project: default
      source: {repoURL: 'https://git.example.com/web.git', targetRevision: main, path: web}
      destination: {server: 'https://kubernetes.default.svc', namespace: web}
";

/// A Kubernetes API with the set and its two Applications.
struct Place {
    _server: Running,
    home: tempfile::TempDir,
    client: kube::Client,
}

impl Place {
    async fn start() -> Place {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().to_str().expect("UTF-8");
        let mut server =
            Running::start(["apiserver", "--ephemeral", "--data-dir", directory, "--listen", "127.0.0.1:0"]);
        server.line_with("kubeconfig");
        let client = client(&home.path().join("kubeconfig")).await;
        let place = Place { _server: server, home, client };
        place.define().await;
        let set: Value = baton_grammar::yaml::first(SET).expect("YAML");
        let made = place.sets().create(&PostParams::default(), &object(&set)).await.expect("a set");
        let uid = made.metadata.uid.expect("a UID");
        let generated = run(["appset", "generate", "-f", &place.write("web.yaml", SET), "-o", "json"]);
        let list: Value = serde_json::from_str(&generated.stdout).expect("JSON");
        for mut application in list["items"].as_array().expect("items").clone() {
            application["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "web", "uid": uid, "controller": true,
            }]);
            place
                .applications()
                .create(&PostParams::default(), &object(&application))
                .await
                .expect("an Application");
        }
        place
    }

    async fn define(&self) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        ));
        let definitions: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        for definition in baton_grammar::yaml::documents(&run(["crds"]).stdout).expect("YAML") {
            definitions.create(&PostParams::default(), &object(&definition)).await.expect("a definition");
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": "argocd"}})).expect("a namespace");
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
        for kind in ["ApplicationSet", "Application"] {
            process::eventually("the kind is served", async || {
                self.api(kind).list(&Default::default()).await.ok()
            })
            .await;
        }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("argoproj.io", "v1alpha1", kind));
        Api::namespaced_with(self.client.clone(), "argocd", &kind)
    }

    fn sets(&self) -> Api<DynamicObject> {
        self.api("ApplicationSet")
    }

    fn applications(&self) -> Api<DynamicObject> {
        self.api("Application")
    }

    fn heads(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "argocd")
    }

    async fn status(&self, status: Value) {
        let patch = json!({ "status": status });
        let parameters = PatchParams::default();
        self.sets().patch_status("web", &parameters, &Patch::Merge(&patch)).await.expect("a status");
    }

    async fn annotation(&self, name: &str) -> Option<String> {
        self.sets().get("web").await.expect("the set").metadata.annotations?.remove(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn all(&self, arguments: &[&str]) -> Vec<String> {
        let kubeconfig = self.home.path().join("kubeconfig").to_str().expect("UTF-8").to_owned();
        let own = ["appset"].iter().chain(arguments).map(|part| (*part).to_owned());
        own.chain(["--kubeconfig".to_owned(), kubeconfig]).collect()
    }

    fn appset(&self, arguments: &[&str]) -> Outcome {
        run(self.all(arguments))
    }

    /// Runs a command that must succeed with this first word about it.
    #[track_caller]
    fn says(&self, arguments: &[&str], part: &str) {
        let outcome = self.appset(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stdout.contains(part), "{arguments:?}: {}", outcome.stdout);
    }

    #[track_caller]
    fn refuses(&self, arguments: &[&str], code: i32, part: &str) {
        let outcome = self.appset(arguments);
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (Some(code), ""),
            "{arguments:?}: {}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}

/// The texts of a head.
fn texts(change: &Change) -> BTreeMap<String, String> {
    Head::default().texts_of(change).into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
}

fn object(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).expect("an object")
}

fn entry(name: &str, step: &str, status: &str) -> Value {
    json!({"application": name, "step": step, "status": status, "message": "", "targetRevisions": []})
}

fn under_way() -> Value {
    json!({
        "applicationStatus": [entry("web-dev", "1", "Progressing"), entry("web-prod", "2", "Waiting")],
        "rollout": {
            "run": 2, "state": "Progressing", "step": 1,
            "steps": [
                {"step": 1, "state": "Open", "total": 1, "updating": 1},
                {"step": 2, "state": "Waiting", "total": 1, "maxUpdate": 1},
            ],
            "blockers": [{"reason": "Progressing", "object": "web-dev", "message": "it syncs", "remedy": "its end"}],
        },
    })
}

#[test]
fn a_plan_on_paper_needs_no_cluster_and_tells_a_difference_by_its_exit_code() {
    let home = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let old = file("old.yaml", SET);
    let new =
        file("new.yaml", &SET.replace("path: web}", "path: web2}").replace("{env: prod}", "{env: lab}"));
    let plan = run(["appset", "plan", "-f", &old]);
    assert_eq!((plan.code, plan.stderr.as_str()), (Some(0), ""));
    assert!(plan.stdout.contains("APPLICATION   STEP 1    STEP 2    WHY"), "{}", plan.stdout);
    assert!(!plan.stdout.contains('\x1b'), "colours are for terminals");

    let same = run(["appset", "plan", "-f", &old, "--against", &old]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    assert!(same.stdout.contains("No difference from"), "{}", same.stdout);

    let edit = run(["appset", "plan", "-f", &new, "--against", &old, "-o", "json"]);
    assert_eq!(edit.code, Some(4));
    let plan: Value = serde_json::from_str(&edit.stdout).expect("JSON");
    let one = |at: usize| &plan["applications"][at];
    assert_eq!(
        (&one(0)["name"], &one(0)["step"], &one(0)["batch"]),
        (&json!("web-dev"), &json!(1), &json!(1))
    );
    assert_eq!(one(0)["change"], json!({"kind": "spec", "fields": ["source.path"]}));
    assert_eq!(
        (&one(1)["name"], &one(1)["step"], &one(1)["change"]["kind"]),
        (&json!("web-lab"), &json!(-1), &json!("new"))
    );
    assert_eq!(plan["deletion"]["stages"], json!([{"applications": ["web-prod"]}]));
    assert_eq!(plan["shifts"]["applications"][1]["move"], "leaves");
    let yaml = run(["appset", "plan", "-f", &new, "--against", &old, "-o", "yaml"]);
    assert_eq!(baton_grammar::yaml::first(&yaml.stdout).expect("YAML"), plan, "both forms say the same");
    for wrong in
        [&["appset", "plan"][..], &["appset", "plan", "web", "-f", "x"], &["appset", "plan", "web", "--live"]]
    {
        assert_eq!(run(wrong).code, Some(1), "{wrong:?}");
    }
}

#[tokio::test]
async fn a_plan_of_a_cluster_compares_with_what_is_there() {
    let place = Place::start().await;
    place.says(&["plan", "web"], "0 of 2 Applications change");
    let same = place.write("same.yaml", SET);
    place.says(&["plan", "-f", &same, "--live"], "No difference from the cluster");
    let text = SET.replace("targetRevision: main", "targetRevision: v2").replace("{env: dev}, ", "");
    let edit = place.write("edit.yaml", &text);
    let plan = place.appset(&["plan", "-f", &edit, "--live"]);
    assert_eq!(plan.code, Some(4), "{}", plan.stderr);
    for part in
        ["1 of 1 Application change", "revision: main → v2", "1 of 2 Applications is no longer wanted (50 %)"]
    {
        assert!(plan.stdout.contains(part), "{part}: {}", plan.stdout);
    }
    let patch = json!({"status": {
        "sync": {"status": "OutOfSync", "revision": "b"}, "history": [{"revision": "a", "id": 1, "deployedAt": "2026-11-15T12:00:00Z"}],
    }});
    place
        .applications()
        .patch("web-prod", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .expect("a status");
    place.says(&["plan", "web", "--changed"], "revision: a → b");
    place.refuses(&["plan", "nothing"], 20, "there is no ApplicationSet nothing");
}

#[tokio::test]
async fn what_a_rollout_waits_for_is_told() {
    let place = Place::start().await;
    place.status(under_way()).await;
    place.says(&["explain", "web"], "Waits for:  Progressing web-dev: it syncs");
    place.says(&["explain", "web", "web-prod"], "WaitingForStep step 1: step 1 is not done: 0 of 1");
    place.says(&["get", "web"], "Rollout:    Progressing, run 2, step 1 of 2, 0 of 2 done");
    let json = place.appset(&["explain", "web", "-o", "json"]).stdout;
    let told: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&told["state"], &told["first"]["reason"]), (&json!("Progressing"), &json!("Progressing")));
    place.refuses(&["explain", "web", "other"], 3, "knows no Application other");
    place.refuses(&["explain", "other"], 20, "there is no ApplicationSet other");
}

#[tokio::test]
async fn a_rollout_is_followed_to_its_end() {
    let place = Place::start().await;
    place.status(under_way()).await;
    let mut watch = Running::start(place.all(&["get", "web", "--watch"]));
    watch.line_with("step 1 Open, 0 of 1 done");
    watch.line_with("run 2 Progressing, 0 of 2 done");
    watch.line_with("waits for Progressing web-dev: it syncs");
    let mut status = under_way();
    status["applicationStatus"][0]["status"] = json!("Healthy");
    status["rollout"]["steps"][0] =
        json!({"step": 1, "state": "Complete", "total": 1, "done": 1, "updating": 0});
    status["rollout"]["blockers"] =
        json!([{"reason": "HoldStep", "object": "step 2", "message": "people sync it"}]);
    place.status(status.clone()).await;
    watch.line_with("web-dev Progressing → Healthy (step 1)");
    watch.line_with("step 1 Complete, 1 of 1 done");
    watch.line_with("waits for HoldStep step 2");
    let waiting = place.appset(&["get", "web", "--watch", "--exit-on-wait"]);
    assert_eq!(waiting.code, Some(2), "{}", waiting.stderr);
    assert!(waiting.stderr.contains("waiting for a person: HoldStep step 2"), "{}", waiting.stderr);

    let mut interrupted = Running::start(place.all(&["get", "web", "--watch"]));
    interrupted.line_with("waits for HoldStep");
    let ended = interrupted.terminate();
    assert_eq!(ended.code, Some(3), "an end that says nothing of the rollout is no success");
    assert!(ended.stderr.contains("interrupted; the rollout goes on"), "{}", ended.stderr);

    status["rollout"]["state"] = json!("Complete");
    status["rollout"]["blockers"] = Value::Null;
    place.status(status.clone()).await;
    watch.line_with("run 2 Complete");
    assert_eq!(watch.ends().code, Some(0));
    status["rollout"]["state"] = json!("Failed");
    status["rollout"]["blockers"] =
        json!([{"reason": "SyncFailed", "object": "web-prod", "message": "a hook failed"}]);
    place.status(status).await;
    let failed = place.appset(&["get", "web", "--watch", "-o", "json"]);
    assert_eq!(failed.code, Some(3));
    assert!(failed.stderr.contains("is Failed: SyncFailed web-prod: a hook failed"), "{}", failed.stderr);
    let line: Value = serde_json::from_str(failed.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!(line["state"], "Failed");
    place.refuses(&["get", "web", "--watch", "-o", "yaml"], 1, "--watch prints lines");
}

#[tokio::test]
async fn a_rollout_is_paused_and_resumed_in_the_set_and_in_its_head() {
    let place = Place::start().await;
    place.refuses(&["resume", "web"], 3, "nothing to resume: web is not paused");
    place.says(&["pause", "web"], "applicationset.argoproj.io/web paused");
    assert_eq!(place.annotation("baton.dev/paused").await.as_deref(), Some("true"));
    place.says(&["pause", "web"], "was paused already");
    place.says(&["resume", "web"], "resumed");
    assert_eq!(place.annotation("baton.dev/paused").await, None);

    let head = Head::default()
        .texts_of(&Change { run: Some(Run { seq: 2, ..Run::default() }), ..Change::default() });
    let data: BTreeMap<String, String> =
        head.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
    let map = json!({"metadata": {"name": "web.baton-rollout", "labels": {"baton.dev/application-set": "web"}}, "data": data});
    let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
    place.heads().create(&PostParams::default(), &map).await.expect("a head");
    for (verb, paused) in [("pause", true), ("resume", false)] {
        place.says(&[verb, "web"], "web ");
        let data = place.heads().get("web.baton-rollout").await.expect("the head").data.expect("data");
        let head = Head::read(&data).expect("a head that can be read");
        assert_eq!((head.run.paused, head.run.seq), (paused, 2), "{verb}");
    }
}

#[tokio::test]
async fn people_abort_retry_and_skip() {
    let place = Place::start().await;
    place.refuses(&["abort", "web"], 3, "nothing to abort in web: its rollout is Idle");
    place.refuses(&["retry", "web"], 3, "nothing to retry in web");
    place.status(under_way()).await;
    place.says(&["abort", "web"], "abort asked for");
    let first = place.annotation("baton.dev/abort").await.expect("a request");
    place.says(&["abort", "web"], "abort asked for");
    assert_ne!(place.annotation("baton.dev/abort").await, Some(first), "each request is a new one");
    place.says(&["retry", "web", "web-prod", "web-dev"], "retry asked for");
    let retry = place.annotation("baton.dev/retry").await.expect("a request");
    assert!(retry.ends_with("/web-prod,web-dev"), "{retry}");
    place.refuses(&["retry", "web", "other"], 3, "web has no Application other");

    place.refuses(&["skip", "web"], 1, "APPLICATIONS");
    place.refuses(&["skip", "web", "other"], 3, "web has no Application other");
    place.refuses(&["skip", "web", "web-dev"], 3, "no run asks anything of web-dev yet");
    let set = place.sets().get("web").await.expect("the set").metadata.uid.expect("a UID");
    let (stamped, recorded) = (Fingerprint::of(["stamped"]), Fingerprint::of(["recorded"]));
    let patch = json!({"metadata": {"annotations": {"baton.dev/pin": format!("{set}/2/1/{stamped}")}}});
    for name in ["web-dev", "web-prod"] {
        place
            .applications()
            .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .expect("a stamp");
    }
    place.says(&["skip", "web", "web-dev"], &format!("web-dev counts as done at {stamped}"));
    let uid = place.applications().get("web-prod").await.expect("it").metadata.uid.expect("a UID");
    let row = Row::new(Fingerprint::of([uid]), recorded);
    let change = Change { run: Some(Run::default()), rows: vec![row], anew: true, ..Change::default() };
    let texts = Head::default().texts_of(&change);
    let data: BTreeMap<String, String> =
        texts.into_iter().filter_map(|(key, text)| Some((key, text?))).collect();
    let map = json!({"metadata": {"name": "web.baton-rollout", "labels": {"baton.dev/application-set": "web"}}, "data": data});
    place
        .heads()
        .create(&PostParams::default(), &serde_json::from_value(map).expect("a ConfigMap"))
        .await
        .expect("a head");
    place.says(&["skip", "web", "web-prod"], &format!("web-prod counts as done at {recorded}"));
    let skips = place.annotation("baton.dev/skip").await.expect("skips");
    assert_eq!(skips, format!("web-dev={stamped},web-prod={recorded}"));

    let patch = json!({"spec": {"strategy": {"type": "AllAtOnce"}}});
    place.sets().patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the set");
    for verb in ["pause", "resume", "abort", "retry", "explain"] {
        place.refuses(&[verb, "web"], 3, "web has no rollout: its strategy is not RollingSync");
    }
    place.refuses(&["get", "web", "--watch"], 3, "web has no rollout");
}

#[tokio::test]
async fn a_head_in_the_annotation_of_the_set_is_read_and_paused_as_one_in_a_config_map() {
    let place = Place::start().await;
    place.status(under_way()).await;
    let uid = place.applications().get("web-dev").await.expect("it").metadata.uid.expect("a UID");
    let pin = Fingerprint::of(["recorded"]);
    let row = Row { n: 7, ..Row::new(Fingerprint::of([uid]), pin) };
    let run = Run { seq: 2, ..Run::default() };
    let key = SourceKey {
        repo: "https://git.example.com/web.git".into(),
        target: "main".into(),
        chart: "".into(),
        tag_prefix: "".into(),
    };
    let revisions = Some(BTreeMap::from([(key, Resolution::exact("c0ffee0"))]));
    let head = texts(&Change { run: Some(run), revisions, rows: vec![row], anew: true });
    let patch = json!({"metadata": {"annotations": {"baton.dev/rollout": json!(head).to_string()}}});
    place.sets().patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("a head");

    place.says(&["explain", "web", "web-dev"], &format!("pin {pin}, 7 writes"));
    place.says(&["explain", "web"], "https://git.example.com/web.git main = c0ffee0");
    place.says(&["plan", "web"], "c0ffee0 as run 2 found it");
    place.says(&["skip", "web", "web-dev"], &format!("web-dev counts as done at {pin}"));
    for (verb, paused) in [("pause", true), ("resume", false)] {
        let outcome = place.appset(&[verb, "web"]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{verb} holds at once");
        let kept = place.annotation("baton.dev/rollout").await.expect("the head");
        let head = Head::read(&serde_json::from_str(&kept).expect("texts")).expect("a head");
        assert_eq!((head.run.paused, head.run.seq, head.rows().len()), (paused, 2, 1), "{verb}");
    }
    // One of that name without the label is somebody else's.
    let other = json!({"metadata": {"name": "web.baton-rollout"}, "data": {"run": "nonsense"}});
    let other = serde_json::from_value(other).expect("a ConfigMap");
    place.heads().create(&PostParams::default(), &other).await.expect("a ConfigMap");
    place.says(&["explain", "web", "web-dev"], &format!("pin {pin}"));
}

#[tokio::test]
async fn a_plan_tells_what_revisions_stand_at_as_far_as_the_cluster_knows() {
    let place = Place::start().await;
    place.says(&["plan", "web"], "not resolved");
    let source =
        json!({"repoURL": "https://git.example.com/web.git", "targetRevision": "main", "path": "web"});
    let patch = json!({"status": {"reconciledAt": "2026-11-15T12:00:00Z", "sync": {
        "status": "Synced", "revision": "abc", "comparedTo": {"destination": {}, "source": source},
    }}});
    let applications = place.applications();
    applications.patch("web-dev", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("a status");
    place.says(&["plan", "web"], "abc as web-dev was compared");
    let plan: Value =
        serde_json::from_str(&place.appset(&["plan", "web", "-o", "json"]).stdout).expect("JSON");
    let told = &plan["revisions"][0];
    assert_eq!((&told["compared"]["revision"], &told["applications"]), (&json!("abc"), &json!(2)));
    let paper = run(["appset", "plan", "-f", &place.write("paper.yaml", SET)]);
    assert!(paper.stdout.contains("main       not resolved"), "{}", paper.stdout);
}

#[tokio::test]
async fn what_leaves_is_planned_and_explained() {
    let place = Place::start().await;
    let smaller = SET
        .replace("{env: dev}, ", "")
        .replace("type: RollingSync", "type: RollingSync\n    deletionOrder: Reverse");
    let plan = place.appset(&["plan", "-f", &place.write("smaller.yaml", &smaller), "--live"]);
    assert_eq!(plan.code, Some(4), "{}", plan.stderr);
    for part in
        ["deleted in this order (Reverse):\n  step 1      web-dev", "The deletion fuse (50%) lets them go."]
    {
        assert!(plan.stdout.contains(part), "{part}: {}", plan.stdout);
    }
    let patch = json!({"spec": {
        "generators": [{"list": {"elements": [{"env": "prod"}]}}], "strategy": {"deletionOrder": "Reverse"},
    }});
    place.sets().patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the set");
    let mut status = under_way();
    status["applicationStatus"][0]["message"] = json!("Leaving: it is no longer wanted");
    status["applicationStatus"][0]["status"] = json!("Waiting");
    status["rollout"]["blockers"] = Value::Null;
    status["conditions"] = json!([{
        "type": "DeletionProgressing", "status": "True", "reason": "OrderedDeletion",
        "message": "Applications are deleted in the order Reverse: step 1 of 3",
    }]);
    place.status(status).await;
    place.says(
        &["explain", "web", "web-dev"],
        "it goes in step 2 of 3 of the deletion (Reverse), which is in step 1",
    );
    place.says(&["explain", "web"], "Applications go (Reverse), step 1 of 3, 1 left");
    let patch = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    let applications = place.applications();
    applications.patch("web-dev", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("a finalizer");
    applications.delete("web-dev", &Default::default()).await.expect("its deletion");
    place.says(&["explain", "web", "web-dev"], "it is being deleted; finalizer example.com/hold holds it");
    place.says(&["plan", "web"], "Being deleted already: web-dev.");
}

#[tokio::test]
async fn the_next_run_is_waited_for() {
    let place = Place::start().await;
    let mut status = under_way();
    status["rollout"]["state"] = json!("Complete");
    status["rollout"]["blockers"] = Value::Null;
    place.status(status.clone()).await;
    assert_eq!(place.appset(&["get", "web", "--watch"]).code, Some(0), "it is over");
    let mut watch = Running::start(place.all(&["get", "web", "--watch", "--next"]));
    watch.line_with("run 2 Complete");
    status["rollout"]["run"] = json!(3);
    status["rollout"]["state"] = json!("Progressing");
    place.status(status.clone()).await;
    watch.line_with("run 3 Progressing");
    status["rollout"]["state"] = json!("Complete");
    place.status(status).await;
    watch.line_with("run 3 Complete");
    assert_eq!(watch.ends().code, Some(0));
    place.refuses(&["get", "web", "--next"], 1, "--watch");
}

#[tokio::test]
async fn every_refusal_says_what_and_where_and_what_to_do() {
    let place = Place::start().await;
    for command in [
        &["get", "other"][..],
        &["get", "other", "--watch"],
        &["explain", "other"],
        &["plan", "other"],
        &["retry", "other"],
        &["skip", "other", "web-dev"],
        &["approve-deletion", "other"],
        &["delete", "other", "--yes"],
    ] {
        place.refuses(
            command,
            20,
            "there is no ApplicationSet other in namespace argocd; `baton appset list -A`",
        );
    }
    place.refuses(&["skip", "web", "other"], 3, "`baton appset get web --all` shows those it has");
    place.refuses(&["explain", "web", "web-dev"], 3, "whose status does not tell of it");
    let twice = place.write("twice.yaml", &format!("{SET}---\n{SET}"));
    let two = place.write("two.yaml", &format!("{SET}---\n{}", SET.replace("web", "api")));
    let one = place.write("one.yaml", SET);
    let wrong = place.write("wrong.yaml", "kind: Deployment\nmetadata: {name: web}\n");
    let broken = place.write("broken.yaml", "kind: [ApplicationSet\n");
    let empty = place.write("empty.yaml", "");
    for (file, part) in [
        (&twice, "twice.yaml: there is a second ApplicationSet web"),
        (&wrong, "wrong.yaml has kind \"Deployment\""),
        (&broken, "broken.yaml: "),
        (&empty, "they are empty"),
        (&"nowhere.yaml".to_owned(), "cannot read nowhere.yaml"),
    ] {
        place.refuses(&["plan", "-f", file, "--live"], 1, part);
        let outcome = run(["appset", "plan", "-f", file]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
    }
    let both = run(["appset", "plan", "-f", &two]);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    assert!(both.stdout.contains("argocd/web: ") && both.stdout.contains("argocd/api: "), "{}", both.stdout);
    let fewer = run(["appset", "plan", "-f", &one, "--against", &two]);
    assert_eq!(fewer.code, Some(4), "a set that is no longer there is a difference");
    assert!(fewer.stderr.contains("two.yaml: api."), "{}", fewer.stderr);
}

#[tokio::test]
async fn a_cluster_that_is_down_or_another_is_told_apart() {
    let place = Place::start().await;
    let kubeconfig = fs::read_to_string(place.home.path().join("kubeconfig")).expect("a kubeconfig");
    let other = Place::start().await;
    let others = fs::read_to_string(other.home.path().join("kubeconfig")).expect("a kubeconfig");
    let server = |text: &str| {
        let line = text.lines().find(|line| line.contains("server:")).expect("a server");
        line.trim().trim_start_matches("server: ").to_owned()
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let down = place.write("down", &kubeconfig.replace(&server(&kubeconfig), &format!("https://{port}")));
    let strange = place.write("strange", &kubeconfig.replace(&server(&kubeconfig), &server(&others)));
    for (file, part) in [
        (&down, format!("cannot reach the cluster at https://{port}: ")),
        (&down, "nothing listens there: is it running".to_owned()),
        (&strange, format!("cannot reach the cluster at {}: ", server(&others))),
        (&strange, "its certificate is not one that the kubeconfig trusts".to_owned()),
    ] {
        for command in [
            &["get", "web"][..],
            &["get", "web", "--watch"],
            &["explain", "web"],
            &["plan", "web"],
            &["pause", "web"],
        ] {
            let outcome = run(["appset"].iter().chain(command).copied().chain(["--kubeconfig", file]));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(20), ""), "{}", outcome.stderr);
            assert!(outcome.stderr.contains(&part), "{command:?}: {part}: {}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "one line says it: {}", outcome.stderr);
        }
    }
}

#[test]
fn every_command_that_may_refuse_documents_its_exit_codes() {
    for command in ["get", "plan", "explain", "pause", "resume", "abort", "retry", "skip", "approve-deletion"]
    {
        // Where a line is folded is the terminal's business.
        let help = run(["appset", command, "--help"]).stdout;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("Exit codes: 0 ") && help.contains("; 20 no such"), "{command}: {help}");
    }
}
