//! What people register: clusters, repositories, credentials, certificates and keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::scene::{Answer, CANARY, NAMESPACE, Scene, Who};

/// A key made for this test by GnuPG.
const KEY: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEav1b8BYJKwYBBAHaRw8BAQdA5kx9IDH4qpEYVXbq1HcVQpmksyoIjnQvXvl/
l+OdQIO0FUFubiA8YW5uQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEEPQxKWGJOy5RQ
K8rbQ3jTr5lXpmkFAmr9W/ACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
Q3jTr5lXpmniVgEA9eviKOq2mpTm5UJyutfLQEN6ivyRS8AcixcaO386qfcBAPqZ
RmZS0gPFrdKuzDIPZdx7wds0/mdyVGlIeUySPbAM
=myX5
-----END PGP PUBLIC KEY BLOCK-----
";

/// The Secrets of a kind, each with its texts decoded.
async fn secrets(scene: &Scene, kind: &str) -> Vec<Value> {
    let selector = format!("labelSelector=argocd.argoproj.io%2Fsecret-type%3D{kind}");
    let list = scene.stored(&format!("/api/v1/namespaces/{NAMESPACE}/secrets?{selector}")).await;
    let decoded = |secret: &Value| {
        let mut secret = secret.clone();
        for value in secret["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
            let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).expect("base64");
            *value = String::from_utf8(bytes).expect("a text").into();
        }
        secret
    };
    list["items"].as_array().into_iter().flatten().map(decoded).collect()
}

async fn of(scene: &Scene, kind: &str, field: &str, value: &str) -> Option<Value> {
    secrets(scene, kind).await.into_iter().find(|secret| secret["data"][field] == value)
}

/// What records tell of the last deed of a verb.
async fn deed(scene: &Scene, who: Who, verb: &str) -> Option<Value> {
    let audit = scene.get(who, "/api/v1/audit").await.json();
    audit["items"].as_array().into_iter().flatten().find(|one| one["verb"] == verb).cloned()
}

#[track_caller]
fn done(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.text.contains(CANARY), "{}", answer.text);
    answer.json()
}

#[tokio::test]
async fn a_cluster_is_registered_changed_and_given_up_in_argo_cds_format() {
    let scene = Scene::new().await;
    let path = "/api/v1/clusters";
    let wanted = json!({"server": "https://new.example.com", "name": "new", "labels": {"env": "dev"},
        "config": {"bearerToken": CANARY, "tlsClientConfig": {"insecure": false}}});
    let shown = done(&scene.call(Who::Admin, "POST", path, wanted.clone()).await);
    assert_eq!(
        (shown["name"].as_str(), shown["labels"]["env"].as_str()),
        (Some("new"), Some("dev")),
        "{shown}"
    );
    let secret = of(&scene, "cluster", "server", "https://new.example.com").await.expect("a Secret");
    let name = secret["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("cluster-new.example.com-"), "{name}");
    assert_eq!(secret["metadata"]["annotations"]["managed-by"], "argocd.argoproj.io");
    assert!(secret["data"]["config"].as_str().is_some_and(|config| config.contains(CANARY)));
    let told = deed(&scene, Who::Admin, "create cluster").await.expect("a record");
    assert_eq!((told["actor"].as_str(), told["outcome"].as_str()), (Some("admin"), Some("done")), "{told}");
    assert!(deed(&scene, Who::Role, "create cluster").await.is_none(), "who may not see it is not told");

    assert_eq!(scene.call(Who::Admin, "POST", path, wanted.clone()).await.status, 200, "the same again");
    let mut other = wanted.clone();
    other["name"] = "renamed".into();
    let refused = scene.call(Who::Admin, "POST", path, other.clone()).await;
    let message = "existing cluster spec is different; use upsert flag to force update";
    assert_eq!((refused.status.as_u16(), refused.message().as_str()), (400, message));
    assert_eq!(
        done(&scene.call(Who::Admin, "POST", &format!("{path}?upsert=true"), other).await)["name"],
        "renamed"
    );

    // What was shown can be sent back: what opens the cluster stays.
    let one = "/api/v1/clusters/https%3A%2F%2Fnew.example.com";
    let mut shown = scene.get(Who::Admin, one).await.json();
    shown["namespaces"] = json!(["a", "b"]);
    let changed = done(&scene.call(Who::Admin, "PUT", one, shown.clone()).await);
    assert_eq!(changed["namespaces"], json!(["a", "b"]));
    let secret = of(&scene, "cluster", "server", "https://new.example.com").await.expect("a Secret");
    assert!(secret["data"]["config"].as_str().is_some_and(|config| config.contains(CANARY)), "{secret}");
    shown["config"]["tlsClientConfig"]["insecure"] = true.into();
    let refused = scene.call(Who::Admin, "PUT", one, shown.clone()).await;
    assert_eq!(refused.status, 400, "the token would go to anybody: {}", refused.text);
    shown["labels"] = json!({"env": "prod"});
    let only = format!("{one}?updatedFields=labels");
    let changed = done(&scene.call(Who::Admin, "PUT", &only, shown.clone()).await);
    assert_eq!(
        (changed["labels"]["env"].as_str(), changed["config"]["tlsClientConfig"]["insecure"].as_bool()),
        (Some("prod"), Some(false))
    );
    assert_eq!(changed["labels"]["argocd.argoproj.io/secret-type"], "cluster", "it is still a cluster");

    assert_eq!(
        scene.call(Who::Admin, "POST", &format!("{one}/invalidate-cache"), Value::Null).await.status,
        200
    );
    let by_name = "/api/v1/clusters/renamed?id.type=name";
    assert_eq!(done(&scene.call(Who::Admin, "DELETE", by_name, Value::Null).await), json!({}));
    assert!(of(&scene, "cluster", "server", "https://new.example.com").await.is_none());
    assert_eq!(scene.call(Who::Admin, "DELETE", by_name, Value::Null).await.status, 404);
    assert!(deed(&scene, Who::Admin, "delete cluster").await.is_some());
}

#[tokio::test]
async fn a_secret_that_a_person_made_is_given_up_without_being_lost() {
    let scene = Scene::new().await;
    assert_eq!(
        scene.call(Who::Admin, "DELETE", "/api/v1/clusters/member?id.type=name", Value::Null).await.status,
        200
    );
    assert!(of(&scene, "cluster", "name", "member").await.is_none());
    let kept = scene.stored("/api/v1/namespaces/argocd/secrets/member").await;
    assert!(kept["data"]["config"].is_string(), "only its label is gone: {kept}");
}

#[tokio::test]
async fn a_repository_is_registered_changed_and_given_up_in_argo_cds_format() {
    let scene = Scene::new().await;
    for (path, kind, field, prefix, verb) in [
        ("/api/v1/repositories", "repository", "repo", "repo-", "repository"),
        ("/api/v1/repocreds", "repo-creds", "url", "creds-", "credentials"),
        ("/api/v1/write-repositories", "repository-write", "repo", "repo-write-", "repository"),
        ("/api/v1/write-repocreds", "repo-write-creds", "url", "creds-write-", "credentials"),
    ] {
        let url = "https://git.example.com/new";
        let wanted =
            json!({field: url, "type": "git", "username": "me", "password": CANARY, "enableOCI": false});
        let shown = done(&scene.call(Who::Admin, "POST", path, wanted.clone()).await);
        assert_eq!((shown[field].as_str(), shown.get("username")), (Some(url), None), "{shown}");
        let secret = of(&scene, kind, "url", url).await.expect("a Secret");
        assert!(secret["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix)), "{secret}");
        assert_eq!(
            (secret["data"]["username"].as_str(), secret["data"]["password"].as_str()),
            (Some("me"), Some(CANARY))
        );
        let told = deed(&scene, Who::Reader, &format!("create {verb}")).await.expect("a record");
        assert_eq!(told["actor"], "admin");

        assert_eq!(scene.call(Who::Admin, "POST", path, wanted.clone()).await.status, 200, "the same again");
        let mut other = wanted.clone();
        other["password"] = "another".into();
        let refused = scene.call(Who::Admin, "POST", path, other.clone()).await;
        assert!(refused.status == 400 && refused.message().contains("use upsert flag"), "{}", refused.text);
        done(&scene.call(Who::Admin, "POST", &format!("{path}?upsert=true"), other).await);
        assert_eq!(of(&scene, kind, "url", url).await.expect("a Secret")["data"]["password"], "another");

        let one = format!("{path}/https%3A%2F%2Fgit.example.com%2Fnew");
        done(&scene.call(Who::Admin, "PUT", &one, json!({field: url, "forceHttpBasicAuth": true})).await);
        let secret = of(&scene, kind, "url", url).await.expect("a Secret");
        assert_eq!(
            (secret["data"]["password"].as_str(), secret["data"]["forceHttpBasicAuth"].as_str()),
            (Some("another"), Some("true"))
        );
        let refused = scene
            .call(Who::Admin, "PUT", &one, json!({field: url, "proxy": "http://evil.example.com"}))
            .await;
        assert_eq!(refused.status, 400, "credentials would go another way: {}", refused.text);
        let elsewhere = json!({field: "https://elsewhere.example.com"});
        assert_eq!(scene.call(Who::Admin, "PUT", &one, elsewhere).await.status, 400);
        assert_eq!(done(&scene.call(Who::Admin, "DELETE", &one, Value::Null).await), json!({}));
        assert!(of(&scene, kind, "url", url).await.is_none());
        assert_eq!(scene.call(Who::Admin, "DELETE", &one, Value::Null).await.status, 404);
    }
}

#[tokio::test]
async fn a_url_of_old_with_credentials_in_it_keeps_them() {
    let scene = Scene::new().await;
    let shown = scene.get(Who::Admin, "/api/v1/repocreds").await.json()["items"][0].clone();
    let one = "/api/v1/repocreds/https%3A%2F%2F%2A%2A%2A%40git.example.com%2Fteam";
    done(&scene.call(Who::Admin, "PUT", one, shown).await);
    let secret = scene.stored("/api/v1/namespaces/argocd/secrets/creds").await;
    let url = STANDARD.decode(secret["data"]["url"].as_str().expect("a URL")).expect("base64");
    assert_eq!(String::from_utf8(url).expect("a text"), format!("https://me:{CANARY}@git.example.com/team"));
}

#[tokio::test]
async fn the_same_url_may_be_registered_for_several_projects() {
    let scene = Scene::new().await;
    let url = "https://git.example.com/shared";
    for project in ["shop", "default"] {
        done(
            &scene
                .call(Who::Admin, "POST", "/api/v1/repositories", json!({"repo": url, "project": project}))
                .await,
        );
    }
    let one = "/api/v1/repositories/https%3A%2F%2Fgit.example.com%2Fshared";
    let refused = scene.call(Who::Admin, "DELETE", one, Value::Null).await;
    assert!(refused.status == 400 && refused.message().contains("appProject"), "{}", refused.text);
    done(&scene.call(Who::Admin, "DELETE", &format!("{one}?appProject=shop"), Value::Null).await);
    let left = scene.get(Who::Admin, one).await.json();
    assert_eq!(left["project"], "default");
}

#[tokio::test]
async fn certificates_and_keys_of_hosts_are_added_and_taken_away() {
    let scene = Scene::new().await;
    let path = "/api/v1/certificates";
    let mut blob = vec![0, 0, 0, 11];
    blob.extend_from_slice(b"ssh-ed25519");
    blob.extend([7; 36]);
    let key = STANDARD.encode(&blob);
    let item = json!({"serverName": "ssh.example.com", "certType": "ssh", "certSubType": "ssh-ed25519",
        "certData": STANDARD.encode(&key)});
    let added = done(&scene.call(Who::Admin, "POST", path, json!({"items": [item]})).await);
    assert_eq!(
        (added["items"][0]["serverName"].as_str(), added["items"][0]["certData"].is_null()),
        (Some("ssh.example.com"), true)
    );
    let map = scene.stored("/api/v1/namespaces/argocd/configmaps/argocd-ssh-known-hosts-cm").await;
    let hosts = map["data"]["ssh_known_hosts"].as_str().expect("hosts");
    assert!(
        hosts.contains("# hosts\ngit.example.com ")
            && hosts.ends_with(&format!("ssh.example.com ssh-ed25519 {key}\n")),
        "{hosts}"
    );
    assert!(deed(&scene, Who::Reader, "create certificates").await.is_some());
    let gone = done(
        &scene
            .call(
                Who::Admin,
                "DELETE",
                &format!("{path}?hostNamePattern=*.example.com&certType=ssh"),
                Value::Null,
            )
            .await,
    );
    assert_eq!(gone["items"].as_array().map(Vec::len), Some(2), "{gone}");
    let left = scene.get(Who::Admin, path).await.json();
    assert_eq!(left["items"][0]["certType"], "https", "{left}");
    for body in [
        json!({}),
        json!({"items": []}),
        json!({"items": [{"serverName": "a", "certType": "ssh"}]}),
        json!({"items": [3]}),
    ] {
        assert_eq!(scene.call(Who::Admin, "POST", path, body.clone()).await.status, 400, "{body}");
    }
    assert_eq!(scene.call(Who::Admin, "DELETE", path, Value::Null).await.status, 400, "nobody says of which");
}

#[tokio::test]
async fn keys_that_sign_commits_are_made_known_by_their_own_names() {
    let scene = Scene::new().await;
    let path = "/api/v1/gpgkeys";
    let made = done(&scene.call(Who::Admin, "POST", path, json!({"keyData": KEY})).await);
    let key = json!({"keyID": "4378D3AF9957A669", "fingerprint": "3D0C4A58624ECB94502BCADB4378D3AF9957A669",
        "owner": "Ann <ann@example.com>", "subType": "EdDSA", "trust": "unknown"});
    assert_eq!((&made["created"]["items"][0], &made["skipped"]), (&key, &json!([])));
    let again = done(&scene.call(Who::Admin, "POST", path, json!({"keyData": KEY})).await);
    assert_eq!(
        (again["created"]["items"].as_array().map(Vec::len), &again["skipped"][0]),
        (Some(0), &json!("4378D3AF9957A669"))
    );
    let shown = scene.get(Who::Reader, "/api/v1/gpgkeys/4378D3AF9957A669").await.json();
    assert_eq!(
        (shown["keyData"].as_str(), shown["owner"].as_str()),
        (Some(KEY), Some("Ann <ann@example.com>"))
    );
    let private = KEY.replace("PUBLIC", "PRIVATE");
    for (data, words) in [("", "public key"), ("x", "public key"), (private.as_str(), "private key")] {
        let refused = scene.call(Who::Admin, "POST", path, json!({"keyData": data})).await;
        assert!(refused.status == 400 && refused.message().contains(words), "{}", refused.text);
    }
    let gone = format!("{path}?keyID=4378D3AF9957A669");
    assert_eq!(scene.call(Who::Admin, "DELETE", &gone, Value::Null).await.status, 200);
    assert_eq!(scene.call(Who::Admin, "DELETE", &gone, Value::Null).await.status, 404);
    assert!(deed(&scene, Who::Admin, "delete keys").await.is_some());
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_said_of_secrets() {
    let scene = Scene::new().await;
    for (path, body) in [
        ("/api/v1/clusters", json!({})),
        ("/api/v1/clusters", json!({"server": format!("https://me:{CANARY}@x")})),
        ("/api/v1/clusters", json!({"server": "https://x", "config": {"bearerToken": [CANARY]}})),
        ("/api/v1/clusters", json!({"server": "https://x", "labels": {"a b": CANARY}})),
        ("/api/v1/repositories", json!({})),
        ("/api/v1/repositories", json!({"repo": format!("https://me:{CANARY}@git.example.com")})),
        (
            "/api/v1/repositories",
            json!({"repo": "https://git.example.com/x", "password": format!("{CANARY}\n")}),
        ),
        ("/api/v1/repositories", json!({"repo": "https://git.example.com/x", "sshPrivateKey": CANARY})),
        ("/api/v1/repositories", json!({"repo": "https://git.example.com/x", "type": "helm"})),
        ("/api/v1/repocreds", json!({"repo": "https://git.example.com/x"})),
        ("/api/v1/repocreds", json!([CANARY])),
    ] {
        let before =
            scene.stored("/api/v1/namespaces/argocd/secrets").await["items"].as_array().map(Vec::len);
        let refused = scene.call(Who::Admin, "POST", path, body.clone()).await;
        assert_eq!(refused.status, 400, "{path} {body}: {}", refused.text);
        assert!(!refused.text.contains(CANARY), "{}", refused.text);
        let after = scene.stored("/api/v1/namespaces/argocd/secrets").await["items"].as_array().map(Vec::len);
        assert_eq!(before, after, "{path} {body}");
    }
}
