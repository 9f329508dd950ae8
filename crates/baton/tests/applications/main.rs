//! From git to cluster and back on `baton up`: the real binary, real git, real kubectl, two clusters.

mod deletion;
mod kill;
#[path = "../process/mod.rs"]
mod process;
mod stage;

use stage::{Stage, config_map, deployment, job};

#[test]
fn an_application_is_created_and_syncs_itself() {
    let stage = Stage::start();
    stage.commit(&[
        ("web/deployment.yaml", &deployment("web", 2)),
        ("web/settings.yaml", &config_map("settings", "blue", &[])),
    ]);
    stage.create("web", "web", &["--sync-policy", "automated", "--sync-option", "CreateNamespace=true"]);
    stage.ok(&["app", "wait", "web", "--timeout", "60s"]);

    assert_eq!(
        stage.kubectl("dev", &["get", "configmap", "settings", "-n", "web", "-o", "jsonpath={.data.colour}"]),
        "blue"
    );
    let application = stage.application("web");
    assert_eq!(application["status"]["sync"]["status"], "Synced");
    assert_eq!(application["status"]["health"]["status"], "Healthy");
    assert_eq!(application["status"]["sync"]["revision"], stage.head());
    assert_eq!(application["status"]["operationState"]["message"], "successfully synced (all tasks run)");
    assert_eq!(application["status"]["history"][0]["revision"], stage.head());
    assert_eq!(application["status"]["history"][0]["initiatedBy"]["automated"], true);
    assert!(application.get("operation").is_none(), "{application:#}");
    let kinds: Vec<_> = application["status"]["resources"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["kind"].as_str())
        .collect();
    assert_eq!(kinds, [Some("ConfigMap"), Some("Deployment")]);

    // The next commit follows without anybody's help.
    stage.commit(&[("web/settings.yaml", &config_map("settings", "green", &[]))]);
    stage.ok(&["app", "get", "web", "--refresh"]);
    stage.until("the new colour is there", || {
        stage.kubectl("dev", &["get", "configmap", "settings", "-n", "web", "-o", "jsonpath={.data.colour}"])
            == "green"
    });
}

#[test]
fn drift_is_healed_where_the_policy_says_so_and_shown_where_it_does_not() {
    let stage = Stage::start();
    stage.commit(&[("web/settings.yaml", &config_map("settings", "blue", &[]))]);
    stage.create(
        "healed",
        "web",
        &["--sync-policy", "automated", "--self-heal", "--sync-option", "CreateNamespace=true"],
    );
    stage.create_on(
        "prod",
        "left",
        "web",
        &["--sync-policy", "automated", "--sync-option", "CreateNamespace=true"],
    );
    stage.ok(&["app", "wait", "healed", "left", "--timeout", "60s"]);

    let paint = [
        "patch",
        "configmap",
        "settings",
        "-n",
        "web",
        "--type",
        "merge",
        "-p",
        r#"{"data":{"colour":"red"}}"#,
    ];
    let colour = ["get", "configmap", "settings", "-n", "web", "-o", "jsonpath={.data.colour}"];
    stage.kubectl("prod", &paint);
    stage.until("drift is seen", || stage.application("left")["status"]["sync"]["status"] == "OutOfSync");
    stage.kubectl("dev", &paint);
    stage.until("drift is healed", || stage.kubectl("dev", &colour) == "blue");
    assert_eq!(stage.kubectl("prod", &colour), "red");
}

#[test]
fn what_leaves_git_is_pruned_only_when_asked() {
    let stage = Stage::start();
    stage.commit(&[
        ("web/a.yaml", &config_map("a", "blue", &[])),
        ("web/b.yaml", &config_map("b", "blue", &[])),
    ]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    stage.ok(&["app", "sync", "web", "--timeout", "60s"]);
    stage.remove("web/b.yaml");

    let kept = stage.baton(&["app", "sync", "web", "--timeout", "60s"]);
    assert_eq!(kept.code, Some(4), "{kept:?}");
    assert!(kept.stdout.contains("ignored (requires pruning)"), "{kept:?}");
    assert!(kept.stderr.contains("--prune"), "{kept:?}");
    stage.kubectl("dev", &["get", "configmap", "b", "-n", "web"]);

    let pruned = stage.ok(&["app", "sync", "web", "--prune", "--timeout", "60s"]);
    assert!(pruned.contains("Pruned"), "{pruned}");
    assert_eq!(stage.kubectl("dev", &["get", "configmap", "b", "-n", "web", "--ignore-not-found"]), "");
    stage.kubectl("dev", &["get", "configmap", "a", "-n", "web"]);
}

#[test]
fn a_sync_of_a_resource_that_is_not_there_says_what_is() {
    let stage = Stage::start();
    stage.commit(&[("web/a.yaml", &config_map("plain", "blue", &[]))]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    let wrong = stage.baton(&["app", "sync", "web", "--resource", ":ConfigMap:plane", "--timeout", "60s"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(
        wrong.stderr.contains("no resource :ConfigMap:plane; there is: :ConfigMap:web/plain"),
        "{wrong:?}"
    );
    assert!(stage.application("web").get("operation").is_none(), "nothing was begun");
    // One that came with a commit that nobody compared yet is found.
    stage.commit(&[("web/b.yaml", &config_map("late", "blue", &[]))]);
    stage.ok(&["app", "sync", "web", "--resource", ":ConfigMap:late", "--timeout", "60s"]);
    stage.kubectl("dev", &["get", "configmap", "late", "-n", "web"]);
}

#[test]
fn a_broken_cluster_secret_is_named_by_who_needs_it() {
    let stage = Stage::start();
    stage.commit(&[("web/a.yaml", &config_map("plain", "blue", &[]))]);
    let secret = "apiVersion: v1
kind: Secret
metadata:
  name: cluster-north
  namespace: argocd
  labels: {argocd.argoproj.io/secret-type: cluster}
stringData: {name: north, server: 'https://north.example.com', config: '{\"bearerToken\": [\"hunter2\"]}'}
";
    stage.apply_to_control(secret);
    stage.create_on("north", "web", "web", &[]);
    let tree = stage.baton(&["app", "get", "web", "-o", "tree"]);
    assert_eq!(tree.code, Some(3), "{tree:?}");
    assert!(tree.stderr.contains("cluster Secret \"cluster-north\": config is not"), "{tree:?}");
    assert!(!tree.stderr.contains("hunter2"), "{tree:?}");
    stage.until("the controller says so too", || {
        stage.ok(&["app", "get", "web"]).contains("cluster Secret \"cluster-north\"")
    });
    let shown = stage.ok(&["app", "get", "web"]);
    assert!(shown.lines().any(|line| line.starts_with("Health:") && line.ends_with("Unknown")), "{shown}");
}

#[test]
fn waves_wait_for_health_and_a_job_runs_before_all() {
    let stage = Stage::start();
    let wave = |number| [("argocd.argoproj.io/sync-wave", number)];
    let migrate = job(
        "migrate",
        &[("argocd.argoproj.io/hook", "PreSync"), ("argocd.argoproj.io/hook-delete-policy", "HookSucceeded")],
    );
    stage.commit(&[
        ("web/1.yaml", &migrate),
        ("web/2.yaml", &deployment("first", 1)),
        ("web/3.yaml", &config_map("second", "blue", &wave("5"))),
    ]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    let said = stage.ok(&["app", "sync", "web", "--timeout", "60s"]);
    assert!(said.contains("successfully synced"), "{said}");
    let application = stage.application("web");
    let results = application["status"]["operationState"]["syncResult"]["resources"]
        .as_array()
        .expect("results")
        .clone();
    let named: Vec<_> = results.iter().map(|row| row["name"].as_str().expect("a name")).collect();
    assert_eq!(named, ["web", "migrate", "first", "second"], "{results:#?}");
    let hook = &results[1];
    assert_eq!((hook["hookType"].as_str(), hook["hookPhase"].as_str()), (Some("PreSync"), Some("Succeeded")));
    assert_eq!(stage.kubectl("dev", &["get", "job", "migrate", "-n", "web", "--ignore-not-found"]), "");
    // The second wave came when the first was available, judged by the cluster's own times.
    let available = stage.kubectl(
        "dev",
        &[
            "get",
            "deployment",
            "first",
            "-n",
            "web",
            "-o",
            "jsonpath={.status.conditions[?(@.type==\"Available\")].lastTransitionTime}",
        ],
    );
    let created = stage.kubectl(
        "dev",
        &["get", "configmap", "second", "-n", "web", "-o", "jsonpath={.metadata.creationTimestamp}"],
    );
    assert!(available <= created, "{available} {created}");
}

#[test]
fn a_failed_hook_stops_the_sync_and_runs_what_is_there_for_it() {
    let stage = Stage::start();
    let failing = job(
        "migrate",
        &[("argocd.argoproj.io/hook", "PreSync"), ("sim.baton.dev/fail", "BackoffLimitExceeded")],
    );
    let rescue = config_map("rescue", "red", &[("argocd.argoproj.io/hook", "SyncFail")]);
    stage.commit(&[
        ("web/1.yaml", &failing),
        ("web/2.yaml", &rescue),
        ("web/3.yaml", &config_map("never", "blue", &[])),
    ]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    let failed = stage.baton(&["app", "sync", "web", "--timeout", "60s"]);
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(
        failed.stdout.contains("one or more synchronization tasks completed unsuccessfully"),
        "{failed:?}"
    );
    stage.kubectl("dev", &["get", "configmap", "rescue", "-n", "web"]);
    assert_eq!(stage.kubectl("dev", &["get", "configmap", "never", "-n", "web", "--ignore-not-found"]), "");
}

#[test]
fn a_rollback_brings_back_what_was() {
    let stage = Stage::start();
    stage.commit(&[("web/settings.yaml", &config_map("settings", "blue", &[]))]);
    let first = stage.head();
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    stage.ok(&["app", "sync", "web", "--timeout", "60s"]);
    stage.commit(&[("web/settings.yaml", &config_map("settings", "green", &[]))]);
    stage.ok(&["app", "sync", "web", "--timeout", "60s"]);
    stage.ok(&["app", "rollback", "web", "--timeout", "60s"]);
    let colour = ["get", "configmap", "settings", "-n", "web", "-o", "jsonpath={.data.colour}"];
    assert_eq!(stage.kubectl("dev", &colour), "blue");
    let history = stage.application("web")["status"]["history"].clone();
    let revisions: Vec<_> =
        history.as_array().expect("history").iter().map(|entry| entry["revision"].as_str()).collect();
    assert_eq!(revisions.len(), 3);
    assert_eq!(revisions[2], Some(first.as_str()));
    stage.until("it is behind git again", || {
        stage.application("web")["status"]["sync"]["status"] == "OutOfSync"
    });
}

#[test]
fn deletion_takes_what_was_deployed_and_nothing_that_needs_a_word_without_it() {
    let stage = Stage::start();
    let guarded = config_map("precious", "blue", &[("argocd.argoproj.io/sync-options", "Delete=confirm")]);
    stage.commit(&[("web/a.yaml", &config_map("plain", "blue", &[])), ("web/b.yaml", &guarded)]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    stage.ok(&["app", "sync", "web", "--timeout", "60s"]);

    let waits = stage.baton(&["app", "delete", "web", "--yes", "--timeout", "5s"]);
    assert_eq!(waits.code, Some(2), "{waits:?}");
    assert!(waits.stderr.contains("precious"), "{waits:?}");
    for name in ["plain", "precious"] {
        stage.kubectl("dev", &["get", "configmap", name, "-n", "web"]);
    }
    let shown = stage.ok(&["app", "resources", "web"]);
    let line = shown.lines().find(|line| line.contains("precious")).expect("a row");
    assert!(line.contains("needs approval"), "{shown}");

    let approved = stage.ok(&["app", "confirm-deletion", "web"]);
    assert!(approved.contains("precious"), "{approved}");
    stage.ok(&["app", "wait", "web", "--deleted", "--timeout", "60s"]);
    for name in ["plain", "precious"] {
        assert_eq!(stage.kubectl("dev", &["get", "configmap", name, "-n", "web", "--ignore-not-found"]), "");
    }
}

#[test]
fn a_prune_that_needs_a_word_waits_for_it() {
    let stage = Stage::start();
    let guarded = config_map("precious", "blue", &[("argocd.argoproj.io/sync-options", "Prune=confirm")]);
    stage.commit(&[
        ("web/a.yaml", &config_map("plain", "blue", &[])),
        ("web/b.yaml", &guarded),
        ("web/c.yaml", &config_map("stays", "blue", &[])),
    ]);
    stage.create("web", "web", &["--sync-option", "CreateNamespace=true"]);
    stage.ok(&["app", "sync", "web", "--timeout", "60s"]);
    stage.remove("web/a.yaml");
    stage.remove("web/b.yaml");

    let waits = stage.baton(&["app", "sync", "web", "--prune", "--timeout", "5s"]);
    assert_eq!(waits.code, Some(2), "{waits:?}");
    let state = stage.application("web")["status"]["operationState"].clone();
    assert_eq!(state["phase"], "Running");
    assert_eq!(state["message"], "waiting for pruning confirmation of /ConfigMap/precious");
    for name in ["plain", "precious"] {
        stage.kubectl("dev", &["get", "configmap", name, "-n", "web"]);
    }
    // The seed's own way: a person marks the resource itself.
    stage.kubectl(
        "dev",
        &["annotate", "configmap", "precious", "-n", "web", "argocd.argoproj.io/deletion-approved=true"],
    );
    stage.ok(&["app", "wait", "web", "--timeout", "60s"]);
    for name in ["plain", "precious"] {
        assert_eq!(stage.kubectl("dev", &["get", "configmap", name, "-n", "web", "--ignore-not-found"]), "");
    }
}

#[test]
fn an_application_of_applications_brings_its_children_and_takes_them_away() {
    let stage = Stage::start();
    let child = stage.manifest("child", "child", "prod");
    stage.commit(&[
        ("parent/child.yaml", &child),
        ("child/settings.yaml", &config_map("settings", "blue", &[])),
    ]);
    stage.create_on(
        "in-cluster",
        "parent",
        "parent",
        &["--sync-policy", "automated", "--dest-namespace", "argocd", "--set-finalizer"],
    );
    stage.ok(&["app", "wait", "parent", "child", "--timeout", "60s"]);
    stage.kubectl("prod", &["get", "configmap", "settings", "-n", "web"]);
    assert_eq!(stage.application("parent")["status"]["summary"]["isAppOfApps"], true);

    stage.ok(&["app", "delete", "parent", "--yes", "--timeout", "60s"]);
    let gone = stage.baton(&["app", "get", "child"]);
    assert_eq!(gone.code, Some(20), "{gone:?}");
    assert_eq!(
        stage.kubectl("prod", &["get", "configmap", "settings", "-n", "web", "--ignore-not-found"]),
        ""
    );
}
