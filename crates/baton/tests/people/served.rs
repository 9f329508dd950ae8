//! `baton app` and `baton appset` at a server, by whoever has signed in there.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::place::{Place, config_map};
use crate::process::{Running, eventually};
use crate::shell::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_created_synced_compared_put_back_and_deleted_at_a_server() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let admin = Shell::signed_in(&place);
    let repository = place.repository();
    let create = [
        "app",
        "create",
        "web",
        "--repo",
        &repository,
        "--path",
        "web",
        "--revision",
        "main",
        "--dest-name",
        "dev",
        "--dest-namespace",
        "web",
        "--sync-option",
        "CreateNamespace=true",
    ];
    admin.fails(&[&create[..], &["--dry-run"]].concat(), 1, "--core");
    assert_eq!(admin.says(&create), "application.argoproj.io/web created\n");
    assert_eq!(admin.says(&create), "application.argoproj.io/web unchanged\n");
    admin.fails(&[&create[..], &["--self-heal", "--sync-policy", "automated"]].concat(), 20, "upsert");
    assert_eq!(admin.says(&["app", "list", "-o", "name"]), "application.argoproj.io/web\n");
    assert!(admin.says(&["app", "list", "-o", "wide"]).contains("AUTO-SYNC"));
    admin.fails(&["app", "get", "other"], 20, "there is no Application other");
    admin.fails(&["app", "terminate-op", "web"], 3, "no operation of web");

    let synced = admin.says(&["app", "sync", "web", "--timeout", "60"]);
    assert!(synced.contains("Phase:     Succeeded"), "{synced}");
    assert!(admin.says(&["app", "wait", "web", "--timeout", "60"]).contains("condition met"));
    assert!(admin.says(&["app", "get", "web"]).contains("Name:        argocd/web"));
    let tree = admin.says(&["app", "get", "web", "-o", "tree"]);
    assert!(tree.contains("└─ ConfigMap web/plain  Synced"), "{tree}");
    assert_eq!(admin.json(&["app", "get", "web"])["kind"], "Application");
    assert!(admin.says(&["app", "resources", "web"]).contains("ConfigMap"));
    assert!(admin.says(&["app", "manifests", "web"]).contains("colour: blue"));
    assert!(admin.says(&["app", "manifests", "web", "--source", "live"]).contains("colour: blue"));
    assert!(admin.says(&["app", "actions", "list", "web"]).starts_with("GROUP"));
    assert_eq!(admin.run(&["app", "diff", "web"]).code, Some(0));
    admin.fails(&["app", "diff", "web", "--revision", "other"], 1, "--core");

    let mut red = config_map("plain", json!({}));
    red["data"]["colour"] = json!("red");
    place.commit("web/a.yaml", &red);
    admin.says(&["app", "get", "web", "--hard-refresh"]);
    let differs = admin.run(&["app", "diff", "web"]);
    assert_eq!(differs.code, Some(4), "{differs:?}");
    assert!(differs.stdout.contains("red") && differs.stdout.contains("blue"), "{differs:?}");
    admin.says(&["app", "sync", "web", "--timeout", "60"]);
    let history = admin.json(&["app", "history", "web"]);
    assert_eq!(history.as_array().map(Vec::len), Some(2), "{history}");
    let back = admin.says(&["app", "rollback", "web", "--timeout", "60"]);
    assert!(back.contains("Phase:     Succeeded"), "{back}");
    let live = admin.says(&["app", "manifests", "web", "--source", "live"]);
    assert!(live.contains("colour: blue"), "{live}");

    for shell in [&admin, &Shell::without_server(&place)] {
        let colour = if std::ptr::eq(shell, &admin) { "one" } else { "two" };
        let option = format!("Colour={colour}");
        let set = ["app", "set", "web", "--sync-option", &option];
        assert_eq!(shell.says(&set), "application.argoproj.io/web updated\n");
        assert!(shell.run(&set).stderr.contains("nothing was changed"));
        let options = shell.json(&["app", "get", "web"])["spec"]["syncPolicy"]["syncOptions"].clone();
        assert_eq!(options, json!(["CreateNamespace=true", option]));
    }
    admin.fails(&["app", "delete", "web"], 1, "--yes");
    assert_eq!(
        admin.says(&["app", "delete", "web", "--yes", "--timeout", "60"]),
        "application.argoproj.io/web deleted\n"
    );
    assert!(admin.run(&["app", "list"]).stderr.contains("No such Applications"));
    assert!(admin.says(&["app", "wait", "web", "--deleted", "--timeout", "60"]).contains("deleted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_approved_by_command_at_a_server_while_another_waits_for_it() {
    let place = Place::start().await;
    let guarded = json!({"argocd.argoproj.io/sync-options": "Delete=confirm"});
    place.commit("web/a.yaml", &config_map("precious", guarded));
    place.apply(&place.application("web", "web")).await;
    let admin = Shell::signed_in(&place);
    admin.says(&["app", "sync", "web", "--timeout", "60"]);
    let late = admin.run(&["app", "delete", "web", "--yes", "--timeout", "2s"]);
    assert_eq!(late.code, Some(2), "it waits for a person: {late:?}");
    assert!(late.stderr.contains("confirm-deletion web"), "{late:?}");
    assert!(admin.says(&["app", "list", "--needs-approval"]).contains("needs approval"));
    let waiting = Running::of(admin.command(&["app", "wait", "web", "--deleted", "--timeout", "60"]));
    assert!(admin.says(&["app", "confirm-deletion", "web"]).contains("deletion approved at"));
    assert_eq!(waiting.ends().stdout, "application.argoproj.io/web deleted\n");
}

fn set(place: &Place) -> Value {
    let element = |env: &str| json!({"env": env});
    let step = |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
    let mut template = place.application("web-{{.env}}", "web");
    template["metadata"]["labels"] = json!({"env": "{{.env}}"});
    template["spec"]["destination"]["namespace"] = json!("web-{{.env}}");
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "web"},
        "spec": {
            "goTemplate": true,
            "generators": [{"list": {"elements": [element("dev"), element("prod")]}}],
            "strategy": {"type": "RollingSync", "rollingSync": {"steps": [step("dev"), step("prod")]}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_planned_created_followed_held_and_deleted_at_a_server() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let admin = Shell::signed_in(&place);
    let file = place.home.path().join("set.json");
    let path = file.to_str().expect("UTF-8").to_owned();
    std::fs::write(&file, set(&place).to_string()).expect("a file");
    let generated = admin.says(&["appset", "generate", "-f", &path, "--live", "-o", "name"]);
    assert_eq!(generated, "application.argoproj.io/web-dev\napplication.argoproj.io/web-prod\n");
    let planned = admin.run(&["appset", "plan", "-f", &path, "--live"]);
    assert_eq!(planned.code, Some(4), "two are new: {planned:?}");
    assert!(planned.stdout.contains("web-prod"), "{planned:?}");
    assert_eq!(admin.says(&["appset", "create", "-f", &path]), "applicationset.argoproj.io/web created\n");
    assert_eq!(admin.says(&["appset", "list", "-o", "name"]), "applicationset.argoproj.io/web\n");
    admin.fails(&["appset", "get", "other"], 20, "there is no ApplicationSet other");
    let followed = admin.says(&["appset", "get", "web", "--watch"]);
    assert!(followed.contains("2 of 2 done"), "{followed}");
    assert!(admin.says(&["appset", "get", "web"]).contains("web-prod"));
    assert!(admin.says(&["appset", "explain", "web"]).contains("Set:"));
    assert!(admin.says(&["appset", "explain", "web", "web-dev"]).contains("web-dev"));
    let plan = admin.says(&["appset", "plan", "web"]);
    assert!(plan.starts_with("web: 0 created, 0 updated, 0 deleted, 2 as they are"), "{plan}");
    admin.fails(&["appset", "phases", "web"], 3, "has no phases");

    assert_eq!(admin.says(&["appset", "pause", "web"]), "applicationset.argoproj.io/web paused\n");
    let core = Shell::without_server(&place);
    let held = core.json(&["appset", "get", "web"]);
    assert_eq!(held["metadata"]["annotations"]["baton.dev/paused"], "true", "{held}");
    assert_eq!(admin.says(&["appset", "resume", "web"]), "applicationset.argoproj.io/web resumed\n");
    admin.fails(&["appset", "resume", "web"], 3, "not paused");
    admin.fails(&["appset", "retry", "web"], 3, "nothing to retry");
    admin.fails(&["appset", "advance", "web"], 3, "has no phases");

    admin.fails(&["appset", "delete", "web", "--keep-applications", "--yes"], 1, "--core");
    assert_eq!(admin.says(&["appset", "delete", "web", "--yes"]), "applicationset.argoproj.io/web deleted\n");
    eventually("its Applications are gone", async || {
        admin.run(&["app", "list"]).stderr.contains("No such Applications").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_is_told_the_same_as_where_nothing_is() {
    let place = Place::start().await;
    place.apply(&place.application("web", "web")).await;
    place.settings("argocd-cm", json!({"accounts.stranger": "login"})).await;
    let admin = place.admin().await;
    let body = json!({"name": "stranger", "currentPassword": place.password(), "newPassword": "a word that is long enough"});
    eventually("the account has a password", async || {
        (admin.put("/api/v1/account/password", body.clone()).await.0 == StatusCode::OK).then_some(())
    })
    .await;
    let stranger = place.person("stranger", "a word that is long enough").await;
    let token = stranger.token.clone().expect("a token");
    let shell = Shell::signed_in(&place);
    for name in ["web", "other"] {
        let refused = shell.run(&["app", "get", name, "--auth-token", &token]);
        assert_eq!(refused.code, Some(20), "{refused:?}");
        assert!(
            refused.stderr.contains(&format!("there is no Application {name} that you may see")),
            "{refused:?}"
        );
    }
    let empty = shell.run(&["app", "list", "--auth-token", &token]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{empty:?}");
    let spoiled = shell.run(&["app", "list", "--auth-token", "a.b.c"]);
    assert_eq!(spoiled.code, Some(20));
    assert!(spoiled.stderr.contains("sign in with `baton login`"), "{spoiled:?}");
}
