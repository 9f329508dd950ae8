//! A fleet as Argo CD's ApplicationSet controller leaves it in the middle of a rollout, written by hand, and Baton in its place with
//! no other rights than its Role has: it goes on where the other was, and nothing that is done is done again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE, Repository};
use crate::migrate::{CONTROLLER, binding, role};
use crate::process::{Running, baton};
use crate::{MEMBERS, arrives, by_env, map, merge, set};

/// Name, environment, and the status that Argo CD's controller has written. Steps are dev, test, prod.
const FLEET: [(&str, &str, &str); 5] = [
    ("done", "dev", "Healthy"),
    ("begun", "test", "Progressing"),
    ("asked", "test", "Pending"),
    ("held", "prod", "Waiting"),
    ("last", "prod", "Waiting"),
];
const ENVIRONMENTS: [&str; 3] = ["dev", "test", "prod"];
const BEFORE: &str = "2026-01-01T00:00:00Z";

fn step(env: &str) -> usize {
    1 + ENVIRONMENTS.iter().position(|one| *one == env).expect("an environment")
}

fn files(colour: &str) -> Vec<(String, String)> {
    FLEET.iter().map(|(name, ..)| (format!("{name}/map.yaml"), map(name, colour, ""))).collect()
}

fn commit(repository: &Repository, colour: &str) -> String {
    let files = files(colour);
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    repository.commit(&files, &[])
}

fn spec(repository: &Repository, name: &str, automated: Value) -> Value {
    json!({
        "project": "default",
        "source": {"repoURL": repository.url(), "targetRevision": "main", "path": name},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "work"},
        "syncPolicy": {"syncOptions": ["CreateNamespace=true"], "automated": automated},
    })
}

fn fleet(repository: &Repository) -> Value {
    let elements: Vec<Value> = FLEET.iter().map(|(name, env, _)| json!({"name": name, "env": env})).collect();
    let by_env = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let steps = ENVIRONMENTS.map(by_env);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "fleet", "namespace": NAMESPACE},
        "spec": {
            "generators": [{"list": {"elements": elements}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}},
            "template": {
                "metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}},
                "spec": spec(repository, "{{name}}", json!({"prune": true})),
            },
        },
    })
}

/// What Argo CD's controller asks for, without a revision.
fn operation() -> Value {
    json!({
        "initiatedBy": {"username": "applicationset-controller", "automated": true},
        "info": [{"name": "Reason", "value": "ApplicationSet RollingSync triggered a sync of this Application resource"}],
        "retry": {"limit": 5}, "sync": {"prune": true, "syncOptions": ["CreateNamespace=true"]},
    })
}

/// An Application as Argo CD has it: at the old commit or at the new one.
fn application(repository: &Repository, set: &Value, name: &str, env: &str, at: &str, more: Value) -> Value {
    let spec = spec(repository, name, json!({"enabled": false, "prune": true}));
    let compared = json!({"source": spec["source"], "destination": spec["destination"]});
    let state = json!({
        "operation": operation(), "phase": "Succeeded", "message": "successfully synced (all tasks run)",
        "startedAt": BEFORE, "finishedAt": BEFORE,
        "syncResult": {"revision": at, "source": spec["source"], "resources": []},
    });
    let mut application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "labels": {"env": env},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet",
                "uid": set["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
        "status": {
            "reconciledAt": BEFORE, "health": {"status": "Healthy"}, "operationState": state,
            "sync": {"status": "Synced", "revision": at, "comparedTo": compared},
        },
    });
    merge(&mut application, more);
    application
}

/// An Argo CD without its controller of sets, and with the rights of that one.
fn argo_cd() -> Cluster {
    let cluster = Cluster::start();
    cluster.kubectl(&["create", "namespace", NAMESPACE]);
    cluster.kubectl(&["create", "serviceaccount", CONTROLLER, "-n", NAMESPACE]);
    cluster.apply_printed(&["crds"]);
    cluster.apply(&role());
    cluster.apply(&binding());
    cluster
}

/// Baton with Argo CD's rights, and what stands for Argo CD's controller of Applications.
fn controllers(cluster: &Cluster) -> [Running; 2] {
    // Argo CD's flags and variables are taken as they are.
    let mut ours = baton();
    ours.args([
        "controller",
        "--controllers",
        "applicationset",
        "--namespace",
        NAMESPACE,
        "--allow-local-repos",
    ]);
    ours.args([
        "--enable-leader-election",
        "--metrics-addr",
        "127.0.0.1:0",
        "--argocd-repo-server",
        "repo:8081",
    ]);
    ours.env("ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_PROGRESSIVE_SYNCS", "true");
    ours.env("ARGOCD_APPLICATIONSET_CONTROLLER_REQUEUE_AFTER", "2s");
    ours.arg("--kubeconfig").arg(cluster.kubeconfig_of(CONTROLLER));
    let mut theirs = baton();
    theirs.args(["controller", "--controllers", "application", "--allow-local-repos", "--kubeconfig"]);
    theirs.arg(cluster.kubeconfig()).env("ARGOCD_RECONCILIATION_TIMEOUT", "2s");
    [Running::of(ours), Running::of(theirs)]
}

/// Watches a set of two go: whoever is to go first is gone before the other begins to.
#[track_caller]
fn goes(cluster: &Cluster, set: &str, first: &str, last: &str) {
    cluster.kubectl(&["delete", "applicationset", set, "-n", NAMESPACE, "--wait=false"]);
    cluster.until(&format!("{first} is gone"), || {
        // As it was before the other was looked at.
        let waits = cluster.find("application", last);
        let gone = cluster.find("application", first).is_none();
        let waits = waits.is_some_and(|one| one["metadata"]["deletionTimestamp"].is_null());
        assert!(waits || gone, "{last} goes before {first} is gone");
        gone.then_some(())
    });
    cluster.until(&format!("{last} and {set} are gone"), || {
        let none =
            cluster.find("application", last).is_none() && cluster.find("applicationset", set).is_none();
        none.then_some(())
    });
}

#[test]
fn with_argo_cds_own_rights_sets_are_deleted_in_order_and_what_phases_lack_is_named() {
    let cluster = argo_cd();
    let repository = cluster.repository();
    let names = ["reverse", "custom", "phased"];
    let members = |set: &str| MEMBERS.map(|(member, _)| format!("{set}-{member}"));
    let files: Vec<(String, String)> = (names.iter().flat_map(|set| members(set)))
        .map(|name| (format!("{name}/map.yaml"), map(&name, "blue", "")))
        .collect();
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    let commit = repository.commit(&files, &[]);
    let [ours, theirs] = controllers(&cluster);

    let step = |env: &str| json!({"matchExpressions": by_env(env)});
    let steps = ["dev", "prod"].map(step);
    let reverse = json!({
        "type": "RollingSync", "deletionOrder": "Reverse", "rollingSync": {"steps": steps},
    });
    // In the order of the rollout, which is the other way round.
    let custom = json!({"deletionOrder": "Custom", "deletionSync": {"steps": steps}});
    let phase = |env: &str| json!({"name": env, "targets": [step(env)]});
    let phases = ["dev", "prod"].map(phase);
    let phases = json!({"deploymentStrategy": {"type": "phaseDeployment", "phases": phases}});
    cluster.apply(&set("reverse", &repository, json!({}), json!({"strategy": reverse})));
    cluster.apply(&set("custom", &repository, json!({}), json!({"strategy": custom})));
    cluster.apply(&set("phased", &repository, phases, json!({})));
    for name in ["reverse", "custom"] {
        arrives(&cluster, name, &commit);
    }
    let told = cluster.until("the missing right is named", || {
        let conditions = cluster.set("phased")["status"]["conditions"].take();
        let all = conditions.as_array()?.iter().filter_map(|condition| condition["message"].as_str());
        let mut named = all.filter(|message| message.contains("controllerrevisions"));
        named.next().map(str::to_owned)
    });
    println!("{told}");
    goes(&cluster, "reverse", "reverse-two", "reverse-one");
    goes(&cluster, "custom", "custom-one", "custom-two");
    let left = cluster.kubectl(&["get", "configmaps", "-n", NAMESPACE, "-o", "name"]);
    assert!(!left.contains("baton"), "nothing was kept where nothing may be kept: {left}");
    drop(theirs);
    let outcome = ours.terminate();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}

#[test]
fn a_fleet_in_mid_rollout_is_taken_over_with_argo_cds_own_rights() {
    let cluster = argo_cd();
    let repository = cluster.repository();
    let old = commit(&repository, "blue");
    let new = commit(&repository, "green");
    cluster.apply(&fleet(&repository));
    let set = cluster.object("applicationset", "fleet");
    cluster.kubectl(&["create", "namespace", "work"]);
    for (name, env, status) in FLEET {
        // What was deployed before, with the mark that Argo CD's controller leaves.
        let colour = if status == "Healthy" { "green" } else { "blue" };
        let mut deployed: Value = serde_json::from_str(&map(name, colour, "")).expect("JSON");
        deployed["metadata"]["namespace"] = "work".into();
        let mark = format!("{name}:/ConfigMap:work/{name}");
        deployed["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = mark.into();
        cluster.apply(&deployed);
        let (at, more) = match status {
            "Healthy" => (&new, json!({})),
            // It was asked for, and the Application controller has not looked yet.
            "Progressing" => (&old, json!({"operation": operation()})),
            _ => (&old, json!({})),
        };
        let mut object = application(&repository, &set, name, env, at, more);
        if status != "Healthy" {
            object["status"]["sync"]["status"] = "OutOfSync".into();
            object["status"]["sync"]["revision"] = new.as_str().into();
        }
        cluster.apply(&object);
    }
    let entry = |(name, env, status): &(&str, &str, &str)| {
        json!({
            "application": name, "status": status, "step": step(env).to_string(), "message": "as Argo CD says it",
            "targetRevisions": [new], "lastTransitionTime": BEFORE,
        })
    };
    let entries: Vec<Value> = FLEET.iter().map(entry).collect();
    let patch = json!({"status": {"applicationStatus": entries}}).to_string();
    cluster.kubectl(&[
        "patch",
        "applicationset",
        "fleet",
        "-n",
        NAMESPACE,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ]);
    let uids = |cluster: &Cluster| {
        FLEET.map(|(name, ..)| cluster.object("application", name)["metadata"]["uid"].take())
    };
    let before = uids(&cluster);

    let [ours, theirs] = controllers(&cluster);

    cluster.until("the fleet is at the new commit", || {
        let there = |name: &str| {
            let status = cluster.find("application", name)?["status"].take();
            let there = status["sync"]["status"] == "Synced"
                && status["health"]["status"] == "Healthy"
                && status["operationState"]["syncResult"]["revision"] == *new;
            there.then_some(())
        };
        FLEET.iter().all(|(name, ..)| there(name).is_some()).then_some(())
    });
    cluster.until("the set says so", || {
        let entries = cluster.set("fleet")["status"]["applicationStatus"].take();
        entries.as_array()?.iter().all(|entry| entry["status"] == "Healthy").then_some(())
    });
    let states: BTreeMap<&str, Value> = FLEET
        .iter()
        .map(|(name, ..)| (*name, cluster.object("application", name)["status"].take()))
        .collect();
    let time =
        |name: &str, field: &str| states[name]["operationState"][field].as_str().expect("a time").to_owned();
    assert_eq!(time("done", "startedAt"), BEFORE, "what is done is not done again");
    for (name, ..) in &FLEET[1..] {
        assert_eq!(states[name]["history"].as_array().map(Vec::len), Some(1), "{name} was synced once");
    }
    for later in ["held", "last"] {
        for earlier in ["begun", "asked"] {
            let (ended, began) = (time(earlier, "finishedAt"), time(later, "startedAt"));
            assert!(ended <= began, "{later} began at {began}, and {earlier} ended at {ended}");
        }
    }
    assert_eq!(uids(&cluster), before, "nothing was deleted and made anew");
    drop(theirs);
    let outcome = ours.terminate();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // The head of the rollout is where that Role lets it be.
    let head =
        cluster.object("applicationset", "fleet")["metadata"]["annotations"]["baton.dev/rollout"].take();
    assert!(head.is_string(), "{head}");
}
