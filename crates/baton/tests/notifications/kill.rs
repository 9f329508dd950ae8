//! SIGKILL of the controller around the moment a receiver has a message: nothing is lost, and a receiver that knows the
//! key of a call sees each once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Told, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::{LOOK_EVERY, PATIENCE, Running, run};
use crate::receiver::{Receiver, answer};
use crate::smtp_server::{MailServer, Manner};
use crate::stage::{config_map, git, kubectl};
use crate::{OPTIONS, body, header, listed, runtime, services};

const ROUNDS: usize = 8;
/// Rounds with a mail server.
const MAILS: usize = 4;
/// Kills are spread over this time after a message came in: from before its answer to after all is noted.
const STEP: Duration = Duration::from_millis(6);

#[test]
fn killed_at_any_moment_after_a_message_came_in_a_receiver_that_knows_keys_sees_each_once() {
    let fleet = Fleet::start();
    for round in 0..ROUNDS {
        let mut controller = fleet.controller();
        let name = format!("web-{round}");
        fleet.delete(&name);
        fleet.came_in();
        thread::sleep(STEP * u32::try_from(round).expect("a small number"));
        controller.kill();
        let _next = fleet.controller();
        fleet.until_noted(&name);
        let calls = fleet.calls_about(&name);
        let keys: BTreeMap<&str, &String> =
            calls.iter().map(|call| (header(call, "idempotency-key"), call)).collect();
        assert_eq!(keys.len(), 1, "round {round}: one key: {calls:?}");
        assert!(calls.iter().all(|call| call == &calls[0]), "round {round}: the same bytes: {calls:?}");
        assert!(calls.len() <= 2, "round {round}: {calls:?}");
        assert_eq!(listed(&calls[0]), [format!("ConfigMap {name}/precious")], "round {round}");
    }
    let all = fleet.hook.requests().len();
    assert!((ROUNDS..=2 * ROUNDS).contains(&all), "{all} calls");
}

#[test]
fn only_between_the_answer_and_its_mark_is_a_call_made_twice() {
    let fleet = Fleet::start();
    // The receiver has the message, and keeps its answer back until the controller is dead.
    let (let_go, held) = channel();
    *fleet.held.lock() = Some(held);
    let mut controller = fleet.controller();
    fleet.delete("web-0");
    fleet.came_in();
    controller.kill();
    drop(let_go);
    let mut controller = fleet.controller();
    fleet.until_noted("web-0");
    let calls = fleet.calls_about("web-0");
    assert_eq!(calls.len(), 2, "nobody can know whether the first has arrived");
    assert_eq!(calls[0], calls[1], "but the receiver can: it is the same call");
    // What is marked is never sent again, however often a controller dies.
    for _ in 0..3 {
        controller.kill();
        controller = fleet.controller();
        fleet.delete_again("web-0");
    }
    fleet.delete("web-1");
    fleet.until_noted("web-1");
    assert_eq!((fleet.calls_about("web-0").len(), fleet.calls_about("web-1").len()), (2, 1));
}

#[test]
fn killed_at_any_moment_after_a_mail_was_taken_it_comes_again_as_it_was_or_not_at_all() {
    let fleet = Fleet::with_mail();
    for round in 0..MAILS {
        let mut controller = fleet.controller();
        let name = format!("web-{round}");
        fleet.delete(&name);
        fleet.until_mailed(&name);
        // The mail server keeps its first answer back until the controller is dead.
        thread::sleep(STEP * u32::try_from(round).expect("a small number"));
        controller.kill();
        let _next = fleet.controller();
        fleet.until_all_is_sent(&name);
        let mails = fleet.mails_about(&name);
        let expected = if round == 0 { 2..=2 } else { 1..=2 };
        assert!(expected.contains(&mails.len()), "round {round}: {mails:?}");
        let ids: Vec<&str> = mails.iter().map(|mail| message_id(mail)).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "round {round}: {ids:?}");
        assert!(mails.iter().all(|mail| *mail == mails[0]), "round {round}: the same bytes: {mails:?}");
    }
    let mails = fleet.mail.as_ref().expect("a mail server").mails();
    let mut ids: Vec<&str> = mails.iter().map(|mail| message_id(mail)).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), MAILS, "each wait has an id of its own: {ids:?}");
    // What is marked is not sent again, however often a controller dies.
    let before = mails.len();
    for _ in 0..3 {
        let mut controller = fleet.controller();
        fleet.delete_again("web-0");
        controller.kill();
    }
    let _controller = fleet.controller();
    let last = format!("web-{MAILS}");
    fleet.delete(&last);
    fleet.until_all_is_sent(&last);
    assert_eq!(fleet.mail.as_ref().expect("a mail server").mails().len(), before + 1);
}

fn message_id(mail: &str) -> &str {
    header(mail, "Message-ID")
}

/// A Kubernetes API, Applications deployed to it, and a receiver; controllers come and go.
struct Fleet {
    home: tempfile::TempDir,
    hook: Receiver,
    mail: Option<MailServer>,
    /// Something came in.
    told: Told<()>,
    /// Answers are kept back until this is dropped.
    held: Arc<Mutex<Option<Told<()>>>>,
    _control: Running,
    _runtime: Runtime,
}

impl Fleet {
    fn start() -> Fleet {
        Fleet::with(None)
    }

    /// One that writes mails too.
    fn with_mail() -> Fleet {
        Fleet::with(Some(Manner::Holding))
    }

    fn with(manner: Option<Manner>) -> Fleet {
        let home = tempfile::tempdir().expect("a directory");
        let control = home.path().join("control");
        let control = control.to_str().expect("UTF-8");
        let mut server =
            Running::start(["apiserver", "--ephemeral", "--data-dir", control, "--listen", "127.0.0.1:0"]);
        server.line_with("kubeconfig");
        let runtime = runtime();
        let (tell, told) = channel();
        let held: Arc<Mutex<Option<Told<()>>>> = Arc::default();
        let keeps = held.clone();
        let hook = runtime.block_on(Receiver::start(move |_, _| {
            let _ = tell.send(());
            let keeps = keeps.lock().take();
            if let Some(held) = keeps {
                // It ends when the other end is dropped.
                let _ = held.recv();
            }
            answer(200, "", "")
        }));
        let mail = manner.map(|manner| runtime.block_on(MailServer::start(manner)));
        let fleet = Fleet { home, hook, mail, told, held, _control: server, _runtime: runtime };
        let config = fleet.home.path().join("config");
        git(&config, &["init", "-q", "-b", "main"]);
        fs::create_dir_all(config.join("web")).expect("a directory");
        for (name, options) in [("plain", "Delete=true"), ("precious", "Delete=confirm")] {
            let text = config_map(name, "a", &[(OPTIONS, options)]);
            fs::write(config.join(format!("web/{name}.yaml")), text).expect("a file");
        }
        git(&config, &["add", "-A"]);
        git(&config, &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "all"]);
        fs::write(fleet.home.path().join("crds.yaml"), run(["crds"]).stdout).expect("a file");
        fleet.kubectl(&["apply", "--server-side", "-f", fleet.path("crds.yaml").as_str()]);
        fs::write(fleet.home.path().join("objects.json"), fleet.objects().to_string()).expect("a file");
        fleet.kubectl(&["apply", "-f", fleet.path("objects.json").as_str()]);
        let mut controller = fleet.controller();
        for round in 0..ROUNDS {
            let name = format!("web-{round}");
            fleet.until(&name, |app| app["status"]["sync"]["status"] == "Synced");
        }
        controller.kill();
        fleet
    }

    fn objects(&self) -> Value {
        let mut map = baton_notifications::catalog::object("argocd");
        for (key, value) in services(self.mail.as_ref(), &self.hook)["data"].as_object().expect("a map") {
            map["data"][key] = value.clone();
        }
        let application = |round: usize| {
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {
                    "name": format!("web-{round}"), "namespace": "argocd",
                    "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                },
                "spec": {
                    "project": "default",
                    "source": {"repoURL": self.path("config"), "path": "web"},
                    "destination": {"server": "https://kubernetes.default.svc", "namespace": format!("web-{round}")},
                    "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"]},
                },
            })
        };
        let mut items = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}),
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": "default", "namespace": "argocd"},
                "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]},
            }),
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "argocd-notifications-secret", "namespace": "argocd"},
                "stringData": {"token": "canary-0451"},
            }),
            map,
        ];
        items.extend((0..ROUNDS).map(application));
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn controller(&self) -> Running {
        let kubeconfig = self.path("control/kubeconfig");
        let controllers = "application,notifications";
        Running::start([
            "controller",
            "--controllers",
            controllers,
            "--allow-local-repos",
            "--kubeconfig",
            &kubeconfig,
        ])
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        kubectl(self.home.path(), Path::new(&self.path("control/kubeconfig")), arguments)
    }

    fn delete(&self, name: &str) {
        self.kubectl(&["delete", "application", name, "-n", "argocd", "--wait=false"]);
    }

    /// Tells the new controller something of an Application that is being deleted already.
    fn delete_again(&self, name: &str) {
        let label = format!("seen={}", self.hook.requests().len());
        self.kubectl(&["label", "application", name, "-n", "argocd", "--overwrite", &label]);
        self.delete(name);
    }

    /// Waits until a message came in.
    #[track_caller]
    fn came_in(&self) {
        self.told.recv_timeout(PATIENCE).expect("a message came in");
    }

    #[track_caller]
    fn until(&self, name: &str, holds: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.kubectl(&["get", "application", name, "-n", "argocd", "-o", "json"]);
            let application: Value = serde_json::from_str(&text).expect("JSON");
            if holds(&application) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain: {application:#}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until it is noted that this was told, and nothing is left to be sent.
    #[track_caller]
    fn until_noted(&self, name: &str) {
        let noted = "/metadata/annotations/notified.notifications.argoproj.io";
        self.until(name, |application| application.pointer(noted).is_some());
        // What came in meanwhile belongs to this round.
        while self.told.try_recv().is_ok() {}
    }

    fn mails_about(&self, name: &str) -> Vec<String> {
        let about = format!("- ConfigMap {name}/precious");
        let mails = self.mail.as_ref().expect("a mail server").mails();
        mails.into_iter().filter(|mail| mail.contains(&about)).collect()
    }

    #[track_caller]
    fn until_mailed(&self, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.mails_about(name).is_empty() {
            assert!(Instant::now() < deadline, "no mail about {name}");
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until it is noted that this was told, by every way, and the outbox is empty.
    #[track_caller]
    fn until_all_is_sent(&self, name: &str) {
        self.until_noted(name);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let secrets = self.kubectl(&["get", "secrets", "-n", "argocd", "-o", "name"]);
            if !secrets.contains("baton-outbox-") {
                return;
            }
            assert!(Instant::now() < deadline, "something is still to be sent: {secrets}");
            thread::sleep(LOOK_EVERY);
        }
    }

    fn calls_about(&self, name: &str) -> Vec<String> {
        self.hook.requests().into_iter().filter(|call| body(call)["app"] == name).collect()
    }
}
