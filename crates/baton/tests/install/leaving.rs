//! Baton goes: from one controller to the next at once, and for good in the middle of everything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::process::{Outcome, Running, baton, run};
use crate::{MEMBERS, SETS, arrives, by_env, commit, files, map, rolling, set};

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
    leave_as(&cluster.kubeconfig(), more)
}

fn leave_as(kubeconfig: &Path, more: &[&str]) -> Outcome {
    let own = ["migrate", "leave", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    run(own.iter().chain(more))
}

/// Everything that leaving could change, with its versions.
fn everything(cluster: &Cluster) -> String {
    let kinds = "applications,applicationsets,configmaps,controllerrevisions";
    cluster.kubectl(&["get", kinds, "-A", "-o", "json"])
}

/// Someone who may do what leaving takes, but for one kind.
fn without(cluster: &Cluster, kind: &str) -> PathBuf {
    let account = format!("without-{kind}");
    let all = [
        ("argoproj.io", "applications"),
        ("argoproj.io", "applicationsets"),
        ("", "configmaps"),
        ("apps", "controllerrevisions"),
        ("apps", "deployments"),
        ("coordination.k8s.io", "leases"),
    ];
    assert!(all.iter().any(|(_, resource)| *resource == kind), "{kind} is one of them");
    let rules: Vec<Value> = all
        .iter()
        .filter(|(_, resource)| *resource != kind)
        .map(|(group, resource)| json!({"apiGroups": [group], "resources": [resource], "verbs": ["*"]}))
        .collect();
    let version = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": account, "namespace": NAMESPACE});
    cluster.kubectl(&["create", "serviceaccount", &account, "-n", NAMESPACE]);
    cluster.apply(&json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules}));
    cluster.apply(&json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }));
    cluster.kubeconfig_of(&account)
}

/// A Deployment that comes up, or never does.
fn deployment(name: &str, colour: &str, stuck: bool) -> String {
    let labels = json!({"app": name});
    let annotations = if stuck { json!({"sim.baton.dev/stuck": "true"}) } else { json!({}) };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "annotations": annotations},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": format!("example.com/{colour}:1")}]},
        }},
    })
    .to_string()
}

#[test]
fn what_is_synced_at_an_older_commit_than_the_rollout_goes_by_stays_without_automated_sync() {
    let cluster = Cluster::start();
    cluster.apply_printed(&["install"]);
    let repository = cluster.repository();
    let commit = |colour: &str, stuck: &str| {
        let files = MEMBERS.map(|(member, _)| {
            let name = format!("rolling-{member}");
            (format!("{name}/deployment.yaml"), deployment(&name, colour, member == stuck))
        });
        let files: Vec<(&str, String)> =
            files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        repository.commit(&files, &[])
    };
    let first = commit("blue", "nobody");
    // It compares nothing by itself for as long as this takes.
    let mut theirs = baton();
    theirs.args(["controller", "--controllers", "application", "--allow-local-repos", "--kubeconfig"]);
    theirs.arg(cluster.kubeconfig()).env("ARGOCD_RECONCILIATION_TIMEOUT", "1h");
    let theirs = Running::of(theirs);
    let ours = cluster.start_component(SETS);
    cluster.apply(&rolling(&repository));
    arrives(&cluster, "rolling", &first);
    let state = |run: u64, state: &str| {
        let rollout = cluster.set("rolling")["status"]["rollout"].take();
        (rollout["run"] == run && rollout["state"] == state).then_some(())
    };
    cluster.until("the first run is complete", || state(1, "Complete"));
    let second = commit("green", "one");
    let of = |name: &str| cluster.object("application", name);
    cluster.until("the second run is held up at its first step", || {
        let status = of("rolling-one")["status"].take();
        state(2, "Progressing")?;
        let begun = status["sync"]["revision"] == *second && status["health"]["status"] == "Progressing";
        (begun && status["operationState"]["phase"] == "Succeeded").then_some(())
    });
    let stale = of("rolling-two")["status"]["sync"].take();
    assert_eq!(
        (&stale["status"], &stale["revision"]),
        (&json!("Synced"), &json!(first)),
        "nobody has compared it since"
    );

    // Whoever names another namespace leaves that one, or none.
    cluster.kubectl(&["create", "namespace", "platform"]);
    let before = everything(&cluster);
    for (namespace, code, part) in [
        ("platform", 0, ""),
        ("nowhere", 3, "there is no namespace nowhere"),
        ("", 1, "--namespace \"\": "),
        ("Bad/NS", 1, "--namespace \"Bad/NS\": "),
    ] {
        let outcome = leave(&cluster, &["--namespace", namespace]);
        assert_eq!(outcome.code, Some(code), "{namespace}: {} {}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(part), "{namespace}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{namespace}");
    }
    let outcome = ours.terminate();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // Whoever cannot see all of it begins nothing.
    for kind in ["leases", "applications", "configmaps", "controllerrevisions"] {
        let kubeconfig = without(&cluster, kind);
        for more in [&["--dry-run"][..], &[]] {
            let outcome = leave_as(&kubeconfig, more);
            assert_eq!(outcome.code, Some(20), "{kind} {more:?}: {} {}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.stdout, "", "{kind} {more:?}");
        }
    }
    assert_eq!(everything(&cluster), before);

    let done = leave(&cluster, &[]);
    assert_eq!(done.code, Some(2), "{} {}", done.stdout, done.stderr);
    let told = "Application argocd/rolling-two stays without automated sync: run 2 of its rollout has not brought it to its commit";
    assert!(done.stdout.contains(told), "{}", done.stdout);
    // It is compared once more, which starts nothing, and after which it is known to be behind.
    cluster.until("it is compared", || {
        let application = of("rolling-two");
        let asked = !application["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null();
        (!asked && application["status"]["sync"]["status"] == "OutOfSync").then_some(())
    });
    let again = leave(&cluster, &[]);
    assert_eq!(again.code, Some(2), "{} {}", again.stdout, again.stderr);
    let last = of("rolling-two");
    assert_eq!(last["spec"]["syncPolicy"]["automated"]["enabled"], false);
    assert_eq!(last["status"]["operationState"]["syncResult"]["revision"], *first);
    drop(theirs);
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
