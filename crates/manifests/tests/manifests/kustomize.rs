//! Kustomize, by the real `kubectl`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Repo, URL, World, config_map, source, tool};

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'nginx:1'}]}
";

fn fleet() -> Repo {
    Repo::with(&[
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", DEPLOYMENT),
        ("overlays/prod/kustomization.yaml", "bases: [../../base]\nnamePrefix: prod-\n"),
        (
            "parts/logging/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [log.yaml]\n",
        ),
        ("parts/logging/log.yaml", &config_map("log")),
        ("unrelated/huge.yaml", "not needed\n"),
    ])
}

/// A Kustomize that knows components, replicas and patches, where the one Baton would find itself does not.
pub(crate) fn recent_kustomize() -> Option<PathBuf> {
    if Command::new("kustomize").arg("version").output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let output =
        Command::new("kubectl").args(["version", "--client", "-o", "json"]).output().expect("kubectl runs");
    let version: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let kustomize = version["kustomizeVersion"].as_str().unwrap_or_default();
    let major = kustomize.strip_prefix('v').and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    if major.is_some_and(|major| major >= 4) { None } else { Some(tool("kustomize")) }
}

#[tokio::test]
async fn an_overlay_is_built_with_the_directories_it_names() {
    let repo = fleet();
    let world = World::new(&repo);
    let rendered = world.render(&[source(json!({"path": "overlays/prod"}))]).await.expect("rendered");
    assert_eq!(rendered.source_types[0].as_str(), "Kustomize");
    assert_eq!(crate::support::names(&rendered), ["prod-web"]);
}

#[tokio::test]
async fn options_of_the_source_are_built_in() {
    let repo = fleet();
    let world = World::new(&repo);
    let options = json!({
        "namePrefix": "eu-", "nameSuffix": "-1", "namespace": "shop", "images": ["nginx=mirror/nginx:$ARGOCD_APP_NAME"],
        "commonLabels": {"team": "a"}, "commonAnnotations": {"at": "$ARGOCD_APP_REVISION_SHORT"}, "commonAnnotationsEnvsubst": true,
    });
    let sources = [source(json!({"path": "overlays/prod", "kustomize": options}))];
    let rendered = world.render(&sources).await.expect("rendered");
    let web = &rendered.objects[0];
    assert_eq!(web["metadata"]["name"], "eu-web-1");
    assert_eq!(web["metadata"]["namespace"], "shop");
    assert_eq!(web["metadata"]["labels"]["team"], "a");
    assert_eq!(web["metadata"]["annotations"]["at"], rendered.revisions[0][..7]);
    assert_eq!(web["spec"]["selector"]["matchLabels"]["team"], "a");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], "mirror/nginx:shop");
}

#[tokio::test]
async fn newer_options_are_built_in() {
    let repo = fleet();
    let world = World::with(&[(URL, &repo)], |settings| settings.kustomize = recent_kustomize());
    let options = json!({
        "replicas": [{"name": "web", "count": 3}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": "- {op: add, path: /spec/paused, value: true}"}],
        "components": ["../../parts/logging", "../../parts/gone"], "ignoreMissingComponents": true,
        "commonLabels": {"team": "a"}, "labelWithoutSelector": true,
    });
    let sources = [source(json!({"path": "overlays/prod", "kustomize": options}))];
    let rendered = world.render(&sources).await.expect("rendered");
    assert_eq!(crate::support::names(&rendered), ["prod-log", "prod-web"]);
    let web = &rendered.objects[1];
    assert_eq!(web["spec"]["replicas"], 3);
    assert_eq!(web["spec"]["paused"], true);
    assert_eq!(web["metadata"]["labels"]["team"], "a");
    assert_eq!(web["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
}

#[tokio::test]
async fn what_the_tool_complains_about_is_shown_without_our_paths() {
    let repo = Repo::with(&[("app/kustomization.yaml", "resources: [gone.yaml]\n")]);
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("no such file");
    assert!(message.contains(" app` failed: "), "{message}");
    assert!(message.contains("gone.yaml"), "{message}");
    assert!(!message.contains("baton-render-"), "{message}");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_named_with_what_to_install() {
    let repo = fleet();
    let world = World::with(&[(URL, &repo)], |settings| {
        settings.kustomize = Some(PathBuf::from("kustomize-that-is-not-there"));
    });
    let message = world.names(json!({"path": "base"})).await.expect_err("no tool");
    assert!(message.contains("kustomize-that-is-not-there is needed"), "{message}");
    assert!(message.contains("Install kustomize or kubectl"), "{message}");
}

#[tokio::test]
async fn links_out_of_the_repository_are_refused_and_others_are_followed() {
    let repo = fleet();
    repo.link("app/web.yaml", "../base/web.yaml");
    repo.link("app/parts", "../base");
    repo.write("app/kustomization.yaml", "bases: [parts]\nnameSuffix: -linked\n");
    repo.commit();
    assert_eq!(World::new(&repo).names(json!({"path": "app"})).await, Ok(vec!["web-linked".to_owned()]));
    repo.link("app/secret.yaml", "/etc/passwd");
    repo.commit();
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("a link out");
    assert!(
        message.contains("\"app/secret.yaml\": it is a link that leads out of the repository"),
        "{message}"
    );
}

#[tokio::test]
async fn what_a_linked_directory_names_is_meant_from_where_it_is() {
    let repo = Repo::with(&[
        ("shared/base/kustomization.yaml", "bases: [../config.yaml/, ../more]\n"),
        ("shared/more/kustomization.yaml", "resources: [a.yaml]\n"),
        ("shared/more/a.yaml", &config_map("more")),
        ("shared/config.yaml/kustomization.yaml", "resources: [b.yaml]\n"),
        ("shared/config.yaml/b.yaml", &config_map("config")),
        ("app/kustomization.yaml", "bases: [base]\nnamePrefix: x-\n"),
    ]);
    repo.link("app/base", "../shared/base");
    repo.commit();
    let names = World::new(&repo).names(json!({"path": "app"})).await;
    assert_eq!(names, Ok(vec!["x-config".to_owned(), "x-more".to_owned()]));
}

#[tokio::test]
async fn a_build_cannot_leave_the_repository() {
    for reference in ["../../..", "../../../etc"] {
        let repo = Repo::with(&[("app/kustomization.yaml", &format!("resources: ['{reference}']\n"))]);
        let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err(reference);
        assert!(message.contains("leads out of the repository"), "{message}");
    }
    let repo = Repo::with(&[("app/kustomization.yaml", "resources: [/etc/passwd]\n")]);
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("an absolute path");
    assert!(message.contains("failed"), "{message}");
}

#[tokio::test]
async fn remote_references_are_https_or_refused() {
    for (reference, expected) in [
        ("http://127.0.0.1:1/x.yaml", "by https only"),
        ("git@127.0.0.1:team/base.git", "by https only"),
        ("https://127.0.0.1:1/team/base.git", "remote references are turned off"),
    ] {
        let repo = Repo::with(&[("app/kustomization.yaml", &format!("resources: ['{reference}']\n"))]);
        let off = expected.contains("off");
        let world = World::with(&[(URL, &repo)], |settings| settings.remote_references = !off);
        let message = world.names(json!({"path": "app"})).await.expect_err(reference);
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn plugins_are_not_run() {
    let generator = "apiVersion: v1\nkind: Evil\nmetadata:\n  name: x\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./evil.sh}\n";
    let repo = Repo::with(&[
        ("app/kustomization.yaml", "generators: [evil.yaml]\n"),
        ("app/evil.yaml", generator),
        ("app/evil.sh", "#!/bin/sh\ntouch ../ran\n"),
    ]);
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("a plugin");
    assert!(message.contains("failed"), "{message}");
}

#[tokio::test]
async fn a_tool_that_takes_too_much_of_anything_is_stopped() {
    let repo = fleet();
    let place = tempfile::tempdir().expect("a directory");
    let slow = crate::support::program(place.path(), "slow", "sleep 1000");
    let world = World::with(&[(URL, &repo)], |settings| {
        settings.kustomize = Some(slow);
        settings.limits.tool_time = std::time::Duration::from_millis(200);
    });
    let message = world.names(json!({"path": "base"})).await.expect_err("too slow");
    assert!(message.contains("given up after 200ms"), "{message}");
    let chatty = crate::support::program(place.path(), "chatty", "yes");
    let world = World::with(&[(URL, &repo)], |settings| {
        settings.kustomize = Some(chatty);
        settings.limits.tool_output = 100_000;
    });
    let message = world.names(json!({"path": "base"})).await.expect_err("too much");
    assert!(message.contains("printed more than 100000 bytes"), "{message}");
    let greedy = crate::support::program(
        place.path(),
        "greedy",
        "head -c 3000000 /dev/zero > $TMPDIR/x; echo 'kind: A'",
    );
    let world = World::with(&[(URL, &repo)], |settings| {
        settings.kustomize = Some(greedy);
        settings.limits.tree_bytes = 1_000_000;
    });
    let message = world.names(json!({"path": "base"})).await.expect_err("too much");
    assert!(message.contains("more than 1000000 bytes of disk"), "{message}");
}

#[tokio::test]
async fn a_tool_sees_nothing_of_our_environment_and_only_the_files_it_needs() {
    let repo = fleet();
    let place = tempfile::tempdir().expect("a directory");
    let seen = place.path().join("seen");
    let script = format!("(env; find \"$HOME/..\" -type f) > {}\necho 'kind: A'", seen.display());
    let nosy = crate::support::program(place.path(), "nosy", &script);
    let world = World::with(&[(URL, &repo)], |settings| settings.kustomize = Some(nosy));
    let sources = [source(json!({"path": "overlays/prod"}))];
    world.render(&sources).await.expect("rendered");
    let seen = std::fs::read_to_string(seen).expect("written");
    assert!(!seen.contains("CARGO"), "{seen}");
    assert!(seen.contains("ARGOCD_APP_NAME=shop"), "{seen}");
    assert!(seen.contains("repository/base/web.yaml"), "{seen}");
    assert!(!seen.contains("unrelated"), "{seen}");
}

#[tokio::test]
async fn a_tool_whose_source_needs_no_network_has_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let place = tempfile::tempdir().expect("a directory");
    let reached = place.path().join("reached");
    let script = format!(
        "bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && touch {}\necho 'kind: A'",
        reached.display()
    );
    let curious = crate::support::program(place.path(), "curious", &script);
    let repo = fleet();
    let world = World::with(&[(URL, &repo)], |settings| settings.kustomize = Some(curious));
    world.render(&[source(json!({"path": "base"}))]).await.expect("rendered");
    // Some machines do not let us take it away; there the inspection of the source must do.
    let can_isolate = Command::new("unshare").args(["--map-root-user", "--net", "true"]).status();
    assert_eq!(reached.exists(), !can_isolate.is_ok_and(|status| status.success()));
}
