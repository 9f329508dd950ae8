//! The catalog's request for an approval, on its way through a real mail server and a real webhook.

use std::collections::BTreeMap;

use baton_hooks::Secret;
use baton_notifications::{
    About, Carrier, Config, Keeper, Ledger, NotStored, Notified, Outbox, Passed, State, catalog,
    outbox_secret, pass, read_outbox_secret,
};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret as Stored;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::receiver::{Receiver, answer};
use crate::smtp_server::{MailServer, Manner};
use crate::support::{about_app, application, carrier, noon};

/// What is stored about one Application, as a cluster would store it.
#[derive(Default)]
struct Cluster {
    secret: Mutex<Option<Stored>>,
    annotation: Mutex<Notified>,
    /// The process is killed at its next write of the outbox after so many.
    killed_at: Mutex<Option<usize>>,
}

impl Cluster {
    fn state(&self) -> State {
        let secret = self.secret.lock();
        let outbox = secret.as_ref().map_or_else(Outbox::default, |secret| {
            read_outbox_secret(secret).expect("what was stored can be read").1
        });
        State { notified: self.annotation.lock().clone(), outbox }
    }
}

impl Keeper for Cluster {
    fn store_outbox<'a>(&'a self, outbox: &'a Outbox) -> BoxFuture<'a, Result<(), NotStored>> {
        Box::pin(async move {
            if let Some(left) = self.killed_at.lock().as_mut() {
                *left = left.checked_sub(1).ok_or_else(|| NotStored("killed".into()))?;
            }
            let about: About = about_app(&waiting()).about();
            *self.secret.lock() = (!outbox.is_empty()).then(|| outbox_secret(&about, outbox, "argocd"));
            Ok(())
        })
    }

    fn store_notified<'a>(&'a self, notified: &'a Notified) -> BoxFuture<'a, Result<(), NotStored>> {
        Box::pin(async move {
            *self.annotation.lock() = notified.clone();
            Ok(())
        })
    }
}

fn waiting() -> Value {
    application(json!({
        "resources": [
            {"kind": "Namespace", "name": "prod", "requiresDeletionApproval": true},
            {"kind": "Service", "namespace": "prod", "name": "kept"},
        ],
        "conditions": [{"type": "DeletionApprovalRequiredInfo", "message": "pruning waits for approval"}],
        "operationState": {"phase": "Running", "startedAt": "2026-03-01T11:40:00Z"},
    }))
}

fn configured(mail: &MailServer, hook: &Receiver) -> Config {
    let mut data: BTreeMap<String, String> = catalog::catalog().data.expect("the catalog holds something");
    let mail = format!(
        "host: mail.example\nport: {}\nfrom: a@example.com\nusername: me\npassword: $token",
        mail.address.port()
    );
    data.insert("service.email".into(), mail);
    data.insert("service.webhook".into(), format!("url: http://{}/hook", hook.address));
    let everyone =
        "- recipients: ['email:ops@example.com', webhook]\n  triggers: [on-deletion-approval-required]";
    data.insert("subscriptions".into(), everyone.into());
    let secrets = BTreeMap::from([("token".to_owned(), Secret::new("canary-0451"))]);
    let (config, findings) = Config::read(&data, &secrets);
    assert!(findings.is_empty(), "{findings:?}");
    config
}

async fn once(
    cluster: &Cluster,
    config: &Config,
    carrier: &Carrier,
    ledger: &Ledger,
    now: Timestamp,
) -> Result<Passed, NotStored> {
    let app = waiting();
    pass(Some(&about_app(&app)), config, cluster.state(), cluster, carrier, ledger, now).await
}

#[tokio::test]
async fn a_request_for_approval_arrives_once_per_wait_and_again_after_a_500() {
    let mail = MailServer::start(Manner::StartTls).await;
    let hook = Receiver::start(|number, _| answer(if number == 0 { 500 } else { 200 }, "", "")).await;
    let config = configured(&mail, &hook);
    let carrier = carrier(Some(&mail.authority), &["mail.example=127.0.0.1"]);
    let (cluster, ledger) = (Cluster::default(), Ledger::default());
    let first = once(&cluster, &config, &carrier, &ledger, noon()).await.expect("it is stored");
    let faults: Vec<bool> = first.attempts.iter().map(|attempt| attempt.fault.is_some()).collect();
    assert_eq!(faults, [false, true], "{:?}", first.attempts);
    for minute in 1..5 {
        let now = noon() + SignedDuration::from_mins(minute);
        once(&cluster, &config, &carrier, &ledger, now).await.expect("it is stored");
    }
    assert_eq!((mail.mails().len(), hook.requests().len()), (1, 2));
    let requests = hook.requests();
    assert_eq!(requests[0], requests[1], "the same call again");
    let body: Value =
        serde_json::from_str(requests[1].split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    assert_eq!(
        body["resources"],
        json!([{"group": "", "kind": "Namespace", "namespace": "", "name": "prod"}])
    );
    assert!(mail.mails()[0].contains("- Namespace prod"), "{}", mail.mails()[0]);
    assert!(cluster.secret.lock().is_none(), "nothing is left behind");
    assert_eq!(cluster.annotation.lock().len(), 2);
}

#[tokio::test]
async fn killed_between_send_and_mark_it_is_neither_lost_nor_another() {
    for killed_at in 0..6 {
        let mail = MailServer::start(Manner::StartTls).await;
        let hook = Receiver::start(|_, _| answer(200, "", "")).await;
        let config = configured(&mail, &hook);
        let carrier = carrier(Some(&mail.authority), &["mail.example=127.0.0.1"]);
        let cluster = Cluster::default();
        *cluster.killed_at.lock() = Some(killed_at);
        let died = once(&cluster, &config, &carrier, &Ledger::default(), noon()).await.is_err();
        *cluster.killed_at.lock() = None;
        for minute in 1..4 {
            let now = noon() + SignedDuration::from_mins(minute);
            once(&cluster, &config, &carrier, &Ledger::default(), now).await.expect("it is stored");
        }
        // To a receiver that knows repetitions by their id, everything came once.
        let (mut mails, mut requests) = (mail.mails(), hook.requests());
        assert!(mails.len() + requests.len() <= 2 + usize::from(died), "{killed_at}");
        mails.dedup();
        requests.dedup();
        assert_eq!((mails.len(), requests.len()), (1, 1), "{killed_at}");
        assert!(cluster.secret.lock().is_none());
    }
}
