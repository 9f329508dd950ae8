//! Baton goes: from one controller to the next at once, and for good in the middle of everything.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::process::{Outcome, Running, baton, run};
use crate::{MEMBERS, SETS, by_env, commit, files, map, set};

/// A controller of sets that is known by a name, and whose lease lasts longer than any test.
fn candidate(cluster: &Cluster, name: &str) -> Running {
    let mut command = baton();
    command.args(["controller", "--controllers", "applicationset", "--leader-elect"]);
    command.args(["--lease-duration", "3600s", "--renew-deadline", "1800s", "--retry-period", "200ms"]);
    command.arg("--kubeconfig").arg(cluster.kubeconfig_of(SETS)).env("HOSTNAME", name);
    Running::of(command)
}

fn leader(cluster: &Cluster) -> Option<String> {
    let lease = cluster.find("lease", "58ac56fa.applicationsets.argoproj.io")?;
    let holder = lease["spec"]["holderIdentity"].as_str()?.split('_').next()?.to_owned();
    (!holder.is_empty()).then_some(holder)
}

#[test]
fn a_leader_that_is_asked_to_stop_gives_the_lead_away() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    let mut all = BTreeMap::from(["one", "two"].map(|name| (name.to_owned(), candidate(&cluster, name))));
    let mut led = Vec::new();
    for _ in 0..4 {
        let name =
            cluster.until("somebody leads", || leader(&cluster).filter(|name| led.last() != Some(name)));
        let outcome = all.remove(&name).expect("one of them").terminate();
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        all.insert(name.clone(), candidate(&cluster, &name));
        led.push(name);
    }
    println!("{led:?}");
    assert!(led.windows(2).all(|pair| pair[0] != pair[1]), "{led:?}");
}

/// Every Application but for what is Baton's: who it is, whether it goes, and what was last done to it.
fn standing(cluster: &Cluster) -> BTreeMap<String, Value> {
    let text = cluster.kubectl(&["get", "applications", "-n", NAMESPACE, "-o", "json"]);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let items = list["items"].as_array().expect("a list");
    let told = |one: &Value| {
        let (metadata, status) = (&one["metadata"], &one["status"]);
        let kept = json!([
            metadata["uid"],
            metadata["deletionTimestamp"],
            metadata["finalizers"],
            one["operation"],
            one["spec"]["source"],
            status["operationState"]["startedAt"],
            status["history"],
        ]);
        (metadata["name"].as_str().expect("a name").to_owned(), kept)
    };
    items.iter().map(told).collect()
}

fn leave(cluster: &Cluster, more: &[&str]) -> Outcome {
    let kubeconfig = cluster.kubeconfig();
    let own = ["migrate", "leave", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    run(own.iter().chain(more))
}

#[test]
fn baton_goes_in_the_middle_of_everything_and_nothing_is_deleted_or_synced() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    let repository = cluster.repository();
    let mut all = files("blue");
    for (member, _) in MEMBERS {
        let name = format!("going-{member}");
        all.push((format!("{name}/map.yaml"), map(&name, "blue", "Delete=confirm")));
    }
    let dear = MEMBERS.map(|(member, _)| {
        (format!("pruning-{member}/dear.yaml"), map(&format!("dear-{member}"), "blue", "Prune=confirm"))
    });
    let plain = MEMBERS.map(|(member, _)| {
        (format!("pruning-{member}/map.yaml"), map(&format!("plain-{member}"), "blue", ""))
    });
    let all: Vec<(&str, String)> = all.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    repository.commit(&all, &[]);
    // In a repository of its own, whose commits are nobody else's.
    let other = cluster.repository_named("other");
    let both: Vec<(&str, String)> =
        dear.iter().chain(&plain).map(|(path, text)| (path.as_str(), text.clone())).collect();
    other.commit(&both, &[]);
    let mut theirs = baton();
    theirs.args(["controller", "--controllers", "application", "--allow-local-repos", "--kubeconfig"]);
    theirs.arg(cluster.kubeconfig()).env("ARGOCD_RECONCILIATION_TIMEOUT", "2s");
    let theirs = Running::of(theirs);
    let ours = cluster.start_component(SETS);

    // The last step is for people; the first phase waits for an hour; one set is to go, and one is to lose something dear.
    let steps = |last: Value| {
        let mut steps = ["dev", "prod"].map(|env| json!({"matchExpressions": by_env(env)}));
        steps[1]["maxUpdate"] = last;
        json!({"strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}, "deletionOrder": "Reverse"}})
    };
    let phase = |env: &str| json!({"name": env, "targets": [{"matchExpressions": by_env(env)}], "waitDuration": "1h"});
    let all = ["dev", "prod"].map(phase);
    let phases = json!({"deploymentStrategy": {"type": "phaseDeployment", "phases": all}});
    cluster.apply(&set("rolling", &repository, json!({}), steps(json!(0))));
    cluster.apply(&set("phased", &repository, phases, json!({})));
    cluster.apply(&set("going", &repository, json!({}), steps(json!(1))));
    cluster.apply(&set("pruning", &other, json!({}), steps(json!(0))));
    let synced = |name: &str| {
        let status = cluster.find("application", name)?["status"].take();
        let done = status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy";
        (done && status["operationState"]["phase"] == "Succeeded").then_some(())
    };
    for name in ["rolling-one", "phased-one", "going-one", "going-two", "pruning-one"] {
        cluster.until(&format!("{name} is synced"), || synced(name));
    }
    cluster.until("the phase waits", || {
        (cluster.set("phased")["status"]["phases"][0]["phases"][0]["state"] == "Waiting").then_some(())
    });
    cluster.kubectl(&["delete", "applicationset", "going", "-n", NAMESPACE, "--wait=false"]);
    cluster.until("approval is asked for", || {
        let going = cluster.find("application", "going-two")?;
        let resources = going["status"]["resources"].as_array()?.clone();
        let asks = resources.iter().any(|one| one["requiresDeletionApproval"] == true);
        (asks && !going["metadata"]["deletionTimestamp"].is_null()).then_some(())
    });
    // A sync is under way, and waits for a person in the middle.
    other.commit(&[], &["pruning-one/dear.yaml"]);
    cluster.until("the prune waits for approval", || {
        let status = cluster.find("application", "pruning-one")?["status"].take();
        let asks = status["resources"].as_array()?.iter().any(|one| one["requiresDeletionApproval"] == true);
        (asks && status["operationState"]["phase"] == "Running").then_some(())
    });
    cluster.kubectl(&["annotate", "applicationset", "phased", "-n", NAMESPACE, "baton.dev/paused=true"]);
    let refused = leave(&cluster, &[]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("still leads"), "{}", refused.stderr);
    let outcome = ours.terminate();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);

    let before = standing(&cluster);
    assert_eq!(before.len(), 7, "the second of the phases is not made yet: {before:?}");
    let held = |name: &str| cluster.object("application", name)["spec"]["syncPolicy"]["automated"].take();
    assert_eq!(held("rolling-one")["enabled"], false);
    let marks = |cluster: &Cluster| {
        cluster
            .kubectl(&["get", "applications,applicationsets", "-n", NAMESPACE, "-o", "json"])
            .contains("baton")
    };
    assert!(marks(&cluster), "there is something to take off");
    let dry = leave(&cluster, &["--dry-run"]);
    assert_eq!(dry.code, Some(2), "{} {}", dry.stdout, dry.stderr);
    assert!(marks(&cluster), "a dry run changes nothing");
    let done = leave(&cluster, &[]);
    assert_eq!(done.code, Some(2), "{} {}", done.stdout, done.stderr);
    println!("{}", done.stdout);

    let text = cluster.kubectl(&["get", "applications,applicationsets", "-n", NAMESPACE, "-o", "json"]);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    for object in list["items"].as_array().expect("a list") {
        let mut metadata = object["metadata"].clone();
        // What was applied names nothing of Baton's, and the last operation says for good who began it.
        metadata["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].take();
        let told = metadata.to_string();
        assert!(!told.contains("baton.dev/") && !told.contains("baton-rollout"), "{told}");
        let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        assert!(
            finalizers.iter().all(|name| name.as_str().is_some_and(|name| name.ends_with("argoproj.io")))
        );
    }
    let kept = cluster.kubectl(&["get", "configmaps,controllerrevisions", "-n", NAMESPACE, "-o", "name"]);
    assert!(!kept.contains("baton-rollout") && !kept.contains("baton-phases"), "{kept}");
    assert!(!kept.contains("controllerrevision.apps/"), "{kept}");
    assert_eq!(held("rolling-one"), json!({"prune": true}), "as in the template");
    assert_eq!(held("rolling-two")["enabled"], false, "it would be synced at once");
    assert!(
        done.stdout.contains("Application argocd/rolling-two stays without automated sync"),
        "{}",
        done.stdout
    );

    // Argo CD's controller looks at each of them once more, and nothing comes of it.
    for name in before.keys() {
        cluster.kubectl(&[
            "annotate",
            "application",
            name,
            "-n",
            NAMESPACE,
            "argocd.argoproj.io/refresh=normal",
        ]);
    }
    for name in before.keys().filter(|name| !name.starts_with("going-two")) {
        cluster.until(&format!("{name} was looked at"), || {
            let application = cluster.find("application", name)?;
            application["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null().then_some(())
        });
    }
    assert_eq!(standing(&cluster), before, "nothing is deleted and nothing is synced");
    // Whoever runs it again finds nothing more to do but what is left to people.
    let again = leave(&cluster, &[]);
    assert!(!again.stdout.contains("marks go") && !again.stdout.contains(": goes"), "{}", again.stdout);
    // Another commit goes where the template lets it, and only there.
    let second = commit(&repository, "green");
    cluster.until("automated sync is back", || {
        let status = cluster.find("application", "rolling-one")?["status"].take();
        (status["operationState"]["syncResult"]["revision"] == *second).then_some(())
    });
    assert_eq!(standing(&cluster)["rolling-two"], before["rolling-two"]);

    // What waited for a person still does, and goes on with Argo CD's own word.
    let dear = ["get", "configmap", "dear-one", "-n", "work", "-o", "name", "--ignore-not-found"];
    assert_ne!(cluster.kubectl(&dear), "");
    assert_eq!(held("pruning-one")["enabled"], false, "it would be synced at once");
    let now = format!("argocd.argoproj.io/deletion-approved={}", jiff::Timestamp::now());
    cluster.kubectl(&["annotate", "application", "pruning-one", "-n", NAMESPACE, &now]);
    cluster.until("the prune is done", || cluster.kubectl(&dear).is_empty().then_some(()));
    cluster.until("the sync has come to its end", || synced("pruning-one"));
    assert_eq!(leave(&cluster, &[]).code, Some(2));
    assert_eq!(held("pruning-one"), json!({"prune": true}), "as in the template, now that it starts nothing");
    drop(theirs);
}
