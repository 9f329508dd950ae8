//! `baton cluster`, `baton repo` and `baton repocreds`, without a server and as a server shows it.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::place::Place;
use crate::process::{Running, client, eventually};
use crate::shell::Shell;

/// A text of a Secret that registers something.
async fn said(place: &Place, kind: &str, key: &str) -> Vec<String> {
    let api: Api<Secret> = Api::namespaced(place.control.clone(), "argocd");
    let label = format!("argocd.argoproj.io/secret-type={kind}");
    let found = api.list(&kube::api::ListParams::default().labels(&label)).await.expect("Secrets");
    let text = |secret: Secret| Some(String::from_utf8_lossy(&secret.data?.get(key)?.0).into_owned());
    found.items.into_iter().filter_map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_registered_relabelled_and_taken_off_the_list() {
    let place = Place::start().await;
    let (core, admin) = (Shell::without_server(&place), Shell::signed_in(&place));
    let member = place.home.path().join("up/clusters/dev.kubeconfig");
    let text = std::fs::read_to_string(&member).expect("a kubeconfig");
    let kubeconfig: Value = serde_saphyr::from_str(&text).expect("YAML");
    let context = kubeconfig["current-context"].as_str().expect("a context");
    let port = kubeconfig["clusters"][0]["cluster"]["server"]
        .as_str()
        .and_then(|url| url.rsplit(':').next())
        .expect("a port");
    let other = format!("https://localhost:{port}");
    let member = member.to_str().expect("UTF-8");
    let from = ["--cluster-kubeconfig", member];
    let add = |more: &[&'static str]| {
        let mut all = vec![
            "cluster",
            "add",
            context,
            "--name",
            "twin",
            "--cluster-endpoint",
            &other,
            "--own-credentials",
        ];
        all.extend(from);
        all.extend(more);
        core.run(&all)
    };
    let added = add(&["--label", "env=qa"]);
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), "cluster/twin added\n"), "{added:?}");
    assert_eq!(add(&["--label", "env=qa"]).stdout, "cluster/twin unchanged\n");
    let otherwise = add(&["--project", "default"]);
    assert_eq!(otherwise.code, Some(1), "{otherwise:?}");
    assert!(otherwise.stderr.contains("--upsert"), "{otherwise:?}");
    assert_eq!(add(&["--project", "default", "--upsert"]).stdout, "cluster/twin updated\n");
    for shell in [&core, &admin] {
        let one = shell.json(&["cluster", "get", "twin"]);
        assert_eq!((&one["server"], &one["project"]), (&json!(other), &json!("default")), "{one}");
        assert_eq!(one["labels"]["env"], "qa");
        assert_eq!(shell.json(&["cluster", "get", &other])["name"], "twin");
        let names = shell.says(&["cluster", "list", "-o", "name"]);
        assert!(names.contains("cluster/dev\n") && names.contains("cluster/twin\n"), "{names}");
    }
    core.says(&[
        "cluster",
        "set",
        "twin",
        "--name",
        "third",
        "--label",
        "env-",
        "--label",
        "tier=1",
        "--namespace",
        "shop",
    ]);
    let one = core.json(&["cluster", "get", "third"]);
    assert_eq!(
        (&one["namespaces"], &one["labels"]["tier"], &one["labels"]["env"]),
        (&json!(["shop"]), &json!("1"), &Value::Null)
    );
    core.fails(&["cluster", "set", "third"], 1, "say what to change");
    let token = said(&place, "cluster", "config").await;
    let shown = core.says(&["cluster", "list", "-o", "yaml"]);
    for config in token {
        let config: Value = serde_json::from_str(&config).expect("JSON");
        let secret = [&config["bearerToken"], &config["tlsClientConfig"]["keyData"]];
        assert!(
            secret.iter().filter_map(|one| one.as_str()).all(|secret| !shown.contains(secret)),
            "{shown}"
        );
    }
    core.fails(&["cluster", "rm", "third"], 1, "--yes");
    assert_eq!(core.says(&["cluster", "rm", "third", "--yes"]), "cluster/third removed\n");
    core.fails(&["cluster", "get", "third"], 20, "there is no cluster third");
    let unknown = core.run(&[&["cluster", "add", "nowhere"][..], &from].concat());
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains(context), "the contexts there are, are told: {unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_made_in_a_cluster_and_registered_with_its_token() {
    let place = Place::start().await;
    let core = Shell::without_server(&place);
    let member = place.home.path().join("up/clusters/dev.kubeconfig");
    let text = std::fs::read_to_string(&member).expect("a kubeconfig");
    let kubeconfig: Value = serde_saphyr::from_str(&text).expect("YAML");
    let context = kubeconfig["current-context"].as_str().expect("a context").to_owned();
    let dev = client(&member).await;
    let from = [
        "cluster",
        "add",
        &context,
        "--cluster-kubeconfig",
        member.to_str().expect("UTF-8"),
        "--name",
        "made",
    ];
    let asked = core.run(&from);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.stderr.contains("argocd-manager with every right"), "{asked:?}");
    let adding = Running::of(core.command(&[&from[..], &["--yes", "--upsert"]].concat()));
    // What a cluster's token controller does.
    let secrets: Api<Secret> = Api::namespaced(dev.clone(), "kube-system");
    let name = "argocd-manager-long-lived-token";
    eventually("a token is asked for", async || secrets.get_opt(name).await.expect("an answer").map(drop))
        .await;
    let filled = json!({"data": {"token": ByteString(b"given by the cluster".to_vec())}});
    secrets.patch(name, &PatchParams::default(), &Patch::Merge(&filled)).await.expect("a token");
    let added = adding.ends();
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), "cluster/made updated\n"), "{added:?}");
    let configs = said(&place, "cluster", "config").await;
    assert!(configs.iter().any(|config| config.contains("given by the cluster")), "it is registered");
    let bound: Api<ClusterRoleBinding> = Api::all(dev);
    let binding = bound.get("argocd-manager-role-binding").await.expect("a binding");
    assert_eq!(binding.subjects.unwrap_or_default()[0].name, "argocd-manager");
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_and_credentials_are_registered_and_never_shown_with_what_opens_them() {
    let place = Place::start().await;
    let (core, admin) = (Shell::without_server(&place), Shell::signed_in(&place));
    let url = "https://git.example.com/shop.git";
    let add = ["repo", "add", url, "--username", "ci", "--password-stdin"];
    let added = core.run_with(&add, "hush-1\n");
    assert_eq!((added.code, added.stdout), (Some(0), format!("repo/{url} added\n")), "{}", added.stderr);
    assert_eq!(core.run_with(&add, "hush-1\n").stdout, format!("repo/{url} unchanged\n"));
    let otherwise = core.run_with(&add, "hush-2\n");
    assert_eq!(otherwise.code, Some(1), "{otherwise:?}");
    assert!(otherwise.stderr.contains("--upsert") && !otherwise.stderr.contains("hush"), "{otherwise:?}");
    let upsert = core.run_with(&[&add[..], &["--upsert", "--enable-lfs"]].concat(), "hush-2\n");
    assert_eq!(upsert.stdout, format!("repo/{url} updated\n"), "{upsert:?}");
    assert_eq!(said(&place, "repository", "password").await, ["hush-2"]);
    let scoped = core.run(&["repo", "add", url, "--project", "default"]);
    assert_eq!(scoped.code, Some(0), "one of a project stands beside it: {scoped:?}");
    for shell in [&core, &admin] {
        let all = shell.json(&["repo", "list"])["items"].clone();
        assert_eq!(all.as_array().map(Vec::len), Some(2), "{all}");
        let own = shell.json(&["repo", "get", url, "--project", "default"]);
        assert_eq!((&own["repo"], &own["project"]), (&json!(url), &json!("default")));
        shell.fails(&["repo", "get", url], 1, "--project");
        shell.fails(&["repo", "get", "https://git.example.com/none.git"], 20, "baton repo list");
        assert!(!shell.says(&["repo", "list", "-o", "yaml"]).contains("hush"));
    }
    assert_eq!(
        core.says(&["repo", "rm", url, "--project", "default", "--yes"]),
        format!("repo/{url} removed\n")
    );
    assert_eq!(said(&place, "repository", "password").await, ["hush-2"], "the other stays");
    core.says(&["repo", "rm", url, "--yes"]);
    assert!(admin.run(&["repo", "list"]).stderr.contains("No repositories"));

    let base = "https://git.example.com/shop";
    core.fails(&["repocreds", "add", base], 1, "say what opens");
    let kept = core.run_with(&["repocreds", "add", base, "--username", "ci", "--password-stdin"], "hush-3\n");
    assert_eq!(kept.stdout, format!("repocreds/{base} added\n"), "{kept:?}");
    for shell in [&core, &admin] {
        assert_eq!(shell.says(&["repocreds", "list", "-o", "name"]), format!("repocreds/{base}\n"));
        assert!(!shell.says(&["repocreds", "list", "-o", "json"]).contains("hush"));
    }
    assert_eq!(core.says(&["repocreds", "rm", base, "--yes"]), format!("repocreds/{base} removed\n"));
    assert!(core.run(&["repocreds", "list"]).stderr.contains("No credentials"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_registers_repositories_or_says_that_it_does_not() {
    let place = Place::start().await;
    let admin = Shell::signed_in(&place);
    let url = "https://git.example.com/shop.git";
    let added = admin.run_with(&["repo", "add", url, "--username", "ci", "--password-stdin"], "hush\n");
    if added.code == Some(20) {
        assert!(added.stderr.contains("add --core"), "it is told what to do: {added:?}");
        return;
    }
    assert_eq!((added.code, added.stdout), (Some(0), format!("repo/{url} added\n")), "{}", added.stderr);
    assert_eq!(said(&place, "repository", "password").await, ["hush"]);
    assert_eq!(admin.says(&["repo", "rm", url, "--yes"]), format!("repo/{url} removed\n"));
    assert_eq!(said(&place, "repository", "url").await, [""; 0]);
}
