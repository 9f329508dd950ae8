//! `baton proj`, at a server and without one.

use serde_json::json;

use crate::place::{Place, config_map};
use crate::shell::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_made_changed_and_deleted_at_a_server_and_without_one() {
    let place = Place::start().await;
    for (shell, name) in [(Shell::signed_in(&place), "shop"), (Shell::without_server(&place), "blog")] {
        let source = "https://git.example.com/shop/*";
        let dest = "https://kubernetes.default.svc,shop";
        let made =
            shell.says(&["proj", "create", name, "--src", source, "--dest", dest, "--description", "a shop"]);
        assert_eq!(made, format!("appproject.argoproj.io/{name} created\n"));
        shell.fails(&["proj", "create", name, "--src", "*"], 20, "upsert");
        assert!(
            shell.says(&["proj", "list", "-o", "name"]).contains(&format!("appproject.argoproj.io/{name}\n"))
        );
        assert!(shell.says(&["proj", "list", "-o", "wide"]).contains("NAMESPACE-RESOURCE-BLACKLIST"));

        let changed = |arguments: &[&str], said: &str| {
            let told = shell.says(&[&["proj", arguments[0], name], &arguments[1..]].concat());
            assert_eq!(told, format!("appproject.argoproj.io/{name} {said}\n"), "{arguments:?}");
        };
        changed(&["add-source", "https://git.example.com/other.git"], "source added");
        let again = shell.run(&["proj", "add-source", name, "https://git.example.com/other.git"]);
        assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
        assert!(again.stderr.contains("nothing was changed"), "{again:?}");
        changed(&["remove-source", "https://git.example.com/other.git"], "source removed");
        changed(&["add-destination", "dev", "shop-*", "--name"], "destination added");
        changed(&["remove-destination", "https://kubernetes.default.svc", "shop"], "destination removed");
        changed(&["add-source-namespace", "shop-apps"], "source namespace added");
        changed(&["allow-cluster-resource", "", "Namespace"], "Namespace allowed");
        changed(
            &["deny-cluster-resource", "rbac.authorization.k8s.io", "ClusterRole", "--list", "deny"],
            "rbac.authorization.k8s.io/ClusterRole denied",
        );
        changed(&["deny-namespace-resource", "", "ResourceQuota"], "ResourceQuota denied");
        changed(&["deny-namespace-resource", "apps", "DaemonSet"], "apps/DaemonSet denied");
        changed(&["allow-namespace-resource", "apps", "DaemonSet"], "apps/DaemonSet allowed");
        let spec = shell.json(&["proj", "get", name])["spec"].clone();
        let expected = json!({
            "description": "a shop", "sourceRepos": [source], "sourceNamespaces": ["shop-apps"],
            "destinations": [{"name": "dev", "namespace": "shop-*"}],
            "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}],
            "clusterResourceBlacklist": [{"group": "rbac.authorization.k8s.io", "kind": "ClusterRole"}],
            "namespaceResourceBlacklist": [{"group": "", "kind": "ResourceQuota"}],
        });
        assert_eq!(spec, expected);
        assert!(shell.says(&["proj", "get", name]).contains("Destinations:                  dev,shop-*\n"));

        let window =
            ["proj", "windows", "add", name, "--kind", "deny", "--schedule", "* * * * *", "--duration", "1h"];
        shell.fails(&window, 1, "--applications");
        shell.says(&[&window[..], &["--applications", "*"]].concat());
        let windows = shell.says(&["proj", "windows", "list", name]);
        let row: Vec<&str> = windows.lines().nth(1).expect("a window").split_whitespace().collect();
        assert_eq!(row[..3], ["0", "Active", "deny"], "{windows}");
        shell.fails(&["proj", "windows", "delete", name, "1"], 3, "no sync window 1");
        shell.says(&["proj", "windows", "delete", name, "0"]);
        assert_eq!(shell.json(&["proj", "windows", "list", name])["items"], json!([]));

        shell.fails(&["proj", "get", "other"], 20, "baton proj list");
        shell.fails(&["proj", "delete", name], 1, "--yes");
        shell.fails(&["proj", "delete", "default", "--yes"], 20, "reserved");
        assert_eq!(
            shell.says(&["proj", "delete", name, "--yes"]),
            format!("appproject.argoproj.io/{name} deleted\n")
        );
        shell.fails(&["proj", "get", name], 20, "there is no project");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_a_project_lets_a_token_do_what_its_policies_say_and_no_more() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    place.apply(&place.application("web", "web")).await;
    let admin = Shell::signed_in(&place);
    let core = Shell::without_server(&place);
    assert_eq!(
        admin.says(&["proj", "role", "create", "default", "reader", "--description", "looks"]),
        "appproject.argoproj.io/default role reader created\n"
    );
    admin.fails(
        &["proj", "role", "add-policy", "default", "writer", "-a", "get", "-o", "*"],
        3,
        "has no role writer",
    );
    admin.says(&["proj", "role", "add-policy", "default", "reader", "-a", "get", "-o", "*"]);
    core.says(&["proj", "role", "add-group", "default", "reader", "readers"]);
    let role = admin.json(&["proj", "role", "get", "default", "reader"]);
    assert_eq!(role["policies"], json!(["p, proj:default:reader, applications, get, default/*, allow"]));
    assert_eq!(role["groups"], json!(["readers"]));
    assert!(core.says(&["proj", "role", "list", "default", "-o", "wide"]).contains("readers"));

    for (shell, id) in [(&admin, "one"), (&core, "two")] {
        let create = [
            "proj",
            "role",
            "create-token",
            "default",
            "reader",
            "--token-only",
            "--id",
            id,
            "--expires-in",
            "1h",
        ];
        let token = shell.says(&create).trim().to_owned();
        let with = |arguments: &[&str]| admin.run(&[arguments, &["--auth-token", &token]].concat());
        // A server knows within a second of a token that it has not made itself.
        let listed = crate::process::eventually("the token counts", async || {
            let listed = with(&["app", "list", "-o", "name"]);
            (listed.code == Some(0)).then_some(listed.stdout)
        })
        .await;
        assert_eq!(listed, "application.argoproj.io/web\n");
        let refused = with(&["app", "sync", "web", "--async"]);
        assert_eq!(refused.code, Some(20), "{refused:?}");
        assert!(refused.stderr.contains("permission denied: applications, sync, default/web"), "{refused:?}");
        let listed = shell.says(&["proj", "role", "list-tokens", "default", "reader", "--unixtime"]);
        let row = listed.lines().find(|line| line.starts_with(id)).expect("the token");
        let issued = row.split_whitespace().nth(1).expect("when it was issued");
        shell.says(&["proj", "role", "delete-token", "default", "reader", issued]);
        crate::process::eventually("the token is revoked", async || {
            (with(&["app", "list"]).code == Some(20)).then_some(())
        })
        .await;
    }
    admin.says(&["proj", "role", "remove-policy", "default", "reader", "-a", "get", "-o", "*"]);
    admin.says(&["proj", "role", "delete", "default", "reader"]);
    assert!(admin.run(&["proj", "role", "list", "default"]).stderr.contains("no roles"));
}
