//! `baton account`: passwords and tokens of accounts, by whoever may change them.

use std::fs;

use serde_json::json;

use crate::place::Place;
use crate::process;
use crate::shell::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_listed_get_passwords_and_tokens_and_lose_them_by_command() {
    let place = Place::start().await;
    let accounts = json!({"accounts.ci": "apiKey", "accounts.reader": "login"});
    place.settings("argocd-cm", accounts).await;
    place.settings("argocd-rbac-cm", json!({"policy.csv": "g, ci, role:readonly"})).await;
    let admin = Shell::signed_in(&place);
    process::eventually("the accounts are known", async || {
        (admin.says(&["account", "list", "-o", "name"]) == "admin\nci\nreader\n").then_some(())
    })
    .await;
    let listed = admin.says(&["account", "list"]);
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2], ["ci", "true", "apiKey"], "{listed}");
    let own = admin.says(&["account", "get"]);
    assert!(own.starts_with("Name:          admin\nEnabled:       true\n"), "one's own: {own}");
    admin.fails(&["account", "get", "--account", "other"], 20, "there is no account other");

    // A token is shown once, works until it is revoked, and has its name.
    let token = admin.says(&[
        "account",
        "generate-token",
        "--account",
        "ci",
        "--id",
        "nightly",
        "--expires-in",
        "1h",
    ]);
    let with = |token: &str| {
        Shell::anew(&place).run(&[
            "account",
            "get-user-info",
            "--server",
            &place.address.to_string(),
            "--plaintext",
            "--auth-token",
            token,
        ])
    };
    assert_eq!(with(token.trim()).stdout.lines().nth(1), Some("Username: ci"));
    let shown = admin.json(&["account", "get", "--account", "ci"]);
    let [known] = shown["tokens"].as_array().expect("tokens").as_slice() else { panic!("{shown}") };
    let lasts = known["expiresAt"].as_i64().zip(known["issuedAt"].as_i64()).map(|(ends, began)| ends - began);
    assert_eq!((&known["id"], lasts), (&json!("nightly"), Some(3600)), "{shown}");
    let generate = ["account", "generate-token", "--account", "ci"];
    admin.fails(&[&generate[..], &["--expires-in", "0s"]].concat(), 1, "--expires-in");
    admin.fails(&["account", "generate-token", "--account", "reader"], 20, "apiKey");
    let revoked = admin.says(&["account", "delete-token", "--account", "ci", "nightly"]);
    assert_eq!(revoked, "token nightly of account ci revoked\n");
    assert_eq!(with(token.trim()).stdout, "Logged In: false\n");
    admin.fails(&["account", "delete-token", "--account", "ci", "nightly"], 20, "nightly");

    // Another's password takes one's own.
    let update = ["account", "update-password", "--passwords-stdin"];
    let of_reader = [&update[..], &["--account", "reader"]].concat();
    let new = "a word that is long enough";
    let wrong = admin.run_with(&of_reader, &format!("wrong\n{new}\n"));
    assert_eq!(wrong.code, Some(20), "{wrong:?}");
    let short = admin.run_with(&of_reader, &format!("{}\nshort\n", place.password()));
    assert!(short.code == Some(20) && short.stderr.contains("8 to 72"), "{short:?}");
    let one = admin.run_with(&of_reader, new);
    assert_eq!(one.code, Some(1), "{one:?}");
    let done = admin.run_with(&of_reader, &format!("{}\n{new}\n", place.password()));
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "Password updated\n"), "{done:?}");
    place.person("reader", new).await;

    // One's own ends the sessions from before, and this one goes on.
    let config = place.home.path().join(".config/argocd/config");
    let before = fs::read_to_string(&config).expect("a session");
    let done = admin.run_with(&update, &format!("{}\nanother word that is long enough\n", place.password()));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(admin.says(&["account", "get-user-info"]).contains("Username: admin"));
    assert_ne!(fs::read_to_string(&config).expect("a session"), before, "it has another token");
    place.person("admin", "another word that is long enough").await;

    let hash = admin.run_with(&["account", "bcrypt", "--password-stdin"], "correct horse\n");
    assert!(hash.stdout.starts_with("$2a$10$") && hash.stdout.len() == 61, "{hash:?}");
    let hash = admin.run_with(&["account", "bcrypt", "--password-stdin"], "short\n");
    assert_eq!(hash.code, Some(1), "{hash:?}");
    admin.fails(&["account", "bcrypt"], 1, "--password-stdin");
}
