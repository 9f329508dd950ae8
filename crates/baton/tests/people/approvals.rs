//! What waits for a person, decided by command: by whoever may, by whoever may not, resource by resource.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::place::{Place, config_map};
use crate::process::eventually;
use crate::shell::Shell;

/// An Application with two resources that ask before they go and one that does not; its deletion waits.
async fn deletion_that_waits(place: &Place, admin: &Shell<'_>, name: &str) {
    let guarded = json!({"argocd.argoproj.io/sync-options": "Delete=confirm"});
    for (file, annotations) in [("one", &guarded), ("two", &guarded), ("plain", &json!({}))] {
        let content = config_map(&format!("{name}-{file}"), annotations.clone());
        place.commit(&format!("{name}/{file}.yaml"), &content);
    }
    place.apply(&place.application(name, name)).await;
    admin.says(&["app", "sync", name, "--timeout", "60"]);
    let late = admin.run(&["app", "delete", name, "--yes", "--timeout", "1s"]);
    assert_eq!(late.code, Some(2), "it waits for a person: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_resource_that_waits_is_approved_by_an_action_at_a_server_and_without_one() {
    let place = Place::start().await;
    let admin = Shell::signed_in(&place);
    for (shell, name) in [(&admin, "web"), (&Shell::without_server(&place), "shop")] {
        deletion_that_waits(&place, &admin, name).await;
        let waiting = || {
            let application = shell.json(&["app", "get", name]);
            let rows = application["status"]["resources"].as_array().into_iter().flatten();
            let rows = rows.filter(|row| row["requiresDeletionApproval"] == true);
            rows.filter_map(|row| row["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        eventually("both wait", async || (waiting().len() == 2).then_some(())).await;
        let offered = shell.says(&["app", "actions", "list", name]);
        assert_eq!(offered.matches("approve-deletion").count(), 2, "{offered}");

        let approve = ["app", "actions", "run", name, "approve-deletion"];
        shell.fails(&approve, 1, "2 resources are meant: name one, or add --all");
        let (plain, one) = (format!("{name}-plain"), format!("{name}-one"));
        let of = |resource| [&approve[..], &["--all", "--resource-name", resource]].concat();
        shell.fails(&of(plain.as_str()), 3, "no such resource waits");
        shell.fails(&[&approve[..], &["--all", "--kind", "Secret"]].concat(), 3, "no such resource waits");
        assert_eq!(waiting().len(), 2, "nothing was approved by then");
        shell.says(&of(one.as_str()));
        eventually("the other waits still", async || (waiting() == [format!("{name}-two")]).then_some(()))
            .await;
        let rest = shell.says(&[&approve[..], &["--all", "--kind", "ConfigMap"]].concat());
        assert!(rest.contains(&format!("{name}-two")) && !rest.contains(&one), "only what waits: {rest}");
        assert!(shell.says(&["app", "wait", name, "--deleted", "--timeout", "60"]).contains("deleted"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_decide_is_told_so_and_nothing_is_decided() {
    let place = Place::start().await;
    place.settings("argocd-cm", json!({"accounts.reader": "login"})).await;
    place.settings("argocd-rbac-cm", json!({"policy.csv": "g, reader, role:readonly"})).await;
    let admin = Shell::signed_in(&place);
    deletion_that_waits(&place, &admin, "web").await;
    let session = place.admin().await;
    let some = |_: StatusCode, answer: &Value| answer["items"].as_array().is_some_and(|all| !all.is_empty());
    session.until("it waits", "/api/v1/approvals", some).await;
    let body = json!({"name": "reader", "currentPassword": place.password(), "newPassword": "a word that is long enough"});
    eventually("the account has a password", async || {
        (session.put("/api/v1/account/password", body.clone()).await.0 == StatusCode::OK).then_some(())
    })
    .await;
    let token = place.person("reader", "a word that is long enough").await.token.expect("a token");
    let by_reader = |arguments: &[&str]| admin.run(&[arguments, &["--auth-token", &token]].concat());

    let seen = by_reader(&["approvals", "list"]);
    assert!(seen.stdout.contains("delete/argocd/web"), "{seen:?}");
    for words in [
        &["approvals", "approve", "delete/argocd/web"][..],
        &["approvals", "approve", "--all", "--yes"],
        &["approvals", "reject", "delete/argocd/web", "--reason", "no"],
    ] {
        let refused = by_reader(words);
        assert_eq!(refused.code, Some(3), "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains("nothing was decided: permission denied: applications, action/"),
            "{refused:?}"
        );
    }
    let action = by_reader(&["app", "actions", "run", "web", "approve-deletion", "--all"]);
    assert_eq!(action.code, Some(20), "{action:?}");
    assert_eq!(admin.says(&["approvals", "list", "-o", "name"]), "delete/argocd/web\n", "it waits as before");
    // What does not come from the inbox is another thing: the server itself refuses.
    admin.fails(
        &["approvals", "approve", "--all", "--yes", "--auth-token", "a.b.c"],
        20,
        "sign in with `baton login`",
    );
}
