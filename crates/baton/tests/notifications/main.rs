//! Notifications with real processes: `baton up`, kubectl, an HTTP receiver and a mail server on this machine.

mod kill;
#[path = "../process/mod.rs"]
mod process;
#[path = "../../../notifications/tests/behaviour/receiver.rs"]
mod receiver;
#[path = "../../../notifications/tests/behaviour/smtp_server.rs"]
#[allow(dead_code, reason = "not every test that shares this file uses all of it")]
mod smtp_server;
#[path = "../applications/stage.rs"]
#[allow(dead_code, reason = "not every test that shares this file uses all of it")]
mod stage;

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use receiver::{Receiver, answer};
use smtp_server::{MailServer, Manner};
use stage::{Stage, config_map};

const OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// A runtime whose threads go on while a test waits for processes.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Services of this machine, and whom they tell.
fn services(mail: Option<&MailServer>, hook: &Receiver) -> Value {
    let hook = format!(
        "url: http://{}/hook\nretryWaitMin: 1s\nheaders: [{{name: X-Token, value: $token}}]",
        hook.address
    );
    let mut data = json!({"service.webhook": hook});
    let mut recipients = vec!["webhook"];
    if let Some(mail) = mail {
        let port = mail.address.port();
        let service = format!(
            "host: 127.0.0.1\nport: {port}\nsecurity: plain\nfrom: baton@example.com\nusername: me\npassword: $token"
        );
        data["service.email"] = service.into();
        recipients.push("email:ops@example.com");
    }
    let triggers = ["on-deletion-approval-required"];
    data["subscriptions"] = json!([{"recipients": recipients, "triggers": triggers}]).to_string().into();
    json!({"data": data})
}

/// The body of a call.
fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").expect("a head and a body").1).expect("JSON")
}

/// The resources that a call lists, as `Kind namespace/name`.
fn listed(request: &str) -> Vec<String> {
    let body = body(request);
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let shown =
        |one: &Value| format!("{} {}/{}", text(one, "kind"), text(one, "namespace"), text(one, "name"));
    body["resources"].as_array().expect("a list").iter().map(shown).collect()
}

/// A header of a call.
fn header<'r>(request: &'r str, name: &str) -> &'r str {
    let line = request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {request}"))
}

#[test]
fn what_waits_for_approval_is_told_once_by_webhook_and_mail_and_again_after_a_500() {
    let runtime = runtime();
    let mail = runtime.block_on(MailServer::start(Manner::Plain));
    let hook =
        runtime.block_on(Receiver::start(|number, _| answer(if number == 0 { 500 } else { 200 }, "", "no")));
    let stage = Stage::start();
    stage.apply_to_control(
        "apiVersion: v1
kind: Secret
metadata: {name: argocd-notifications-secret, namespace: argocd}
stringData: {token: canary-0451}
",
    );
    let map = ["argocd-notifications-cm", "-n", "argocd"];
    let catalog = stage.control(&[&["get", "configmap"], &map[..], &["-o", "yaml"]].concat());
    for trigger in [
        "on-deletion-approval-required",
        "on-rollout-step",
        "on-phase-failed",
        "on-rollout-completed",
        "on-deployed",
    ] {
        assert!(catalog.contains(&format!("trigger.{trigger}:")), "{trigger} is not in the catalog");
    }
    let patch = services(Some(&mail), &hook).to_string();
    stage.control(&[&["patch", "configmap"], &map[..], &["--type=merge", "-p", &patch]].concat());
    let files = [
        ("web/plain.yaml", config_map("plain", "a", &[])),
        ("web/gone.yaml", config_map("gone", "b", &[(OPTIONS, "Prune=confirm")])),
        ("db/free.yaml", config_map("free", "c", &[])),
        ("db/precious.yaml", config_map("precious", "d", &[(OPTIONS, "Delete=confirm")])),
        ("db/dear.yaml", config_map("dear", "e", &[(OPTIONS, "Prune=confirm")])),
    ];
    stage.commit(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
    let automated = ["--sync-policy", "automated", "--auto-prune", "--sync-option", "CreateNamespace=true"];
    for name in ["web", "db"] {
        stage.create(name, name, &automated);
        stage.ok(&["app", "wait", name, "--timeout", "60s"]);
    }
    assert_eq!((hook.requests().len(), mail.mails().len()), (0, 0), "nothing waits yet");

    stage.remove("web/gone.yaml");
    stage.ok(&["app", "get", "web", "--refresh"]);
    stage.until("the sync that waits is told", || hook.requests().len() == 2 && mail.mails().len() == 1);
    let requests = hook.requests();
    assert_eq!(requests[0], requests[1], "the same call again");
    assert_eq!(listed(&requests[1]), ["ConfigMap web/gone"]);
    assert_eq!(header(&requests[0], "x-token"), "canary-0451");
    stage.ok(&["app", "confirm-deletion", "web"]);
    stage.ok(&["app", "wait", "web", "--timeout", "60s"]);

    stage.ok(&["app", "delete", "db", "--yes", "--wait=false"]);
    stage.until("the deletion that waits is told", || hook.requests().len() == 3 && mail.mails().len() == 2);
    let requests = hook.requests();
    assert_eq!(listed(&requests[2]), ["ConfigMap web/dear", "ConfigMap web/precious"]);
    assert_ne!(header(&requests[2], "idempotency-key"), header(&requests[1], "idempotency-key"));
    let mails = mail.mails();
    let lines = |mail: &str| {
        mail.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&mails[0]), ["- ConfigMap web/gone"]);
    assert_eq!(lines(&mails[1]), ["- ConfigMap web/dear", "- ConfigMap web/precious"]);
    stage.ok(&["app", "confirm-deletion", "db"]);
    stage.until("the Application is gone", || stage.baton(&["app", "get", "db"]).code != Some(0));
    let secrets = stage.control(&["get", "secrets", "-n", "argocd", "-o", "name"]);
    assert!(!secrets.contains("baton-outbox-"), "{secrets}");
    assert_eq!((hook.requests().len(), mail.mails().len()), (3, 2), "each once");
    let events = stage.control(&["get", "events", "-n", "argocd", "-o", "yaml"]);
    assert!(events.contains("NotificationFailed") && events.contains("answered with status 500"), "{events}");
    assert!(!events.contains("canary-0451"), "{events}");
}
