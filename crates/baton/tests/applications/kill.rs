//! SIGKILL of the controller at any point of a sync: it goes on, ends once, and runs no completed hook again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::process::{LOOK_EVERY, PATIENCE, Running, client, run};
use crate::stage::{config_map, deployment, git, job};

/// Kills are spread over the time a sync takes, from before its first write to after its last.
const ROUNDS: u32 = 10;
const STEP: Duration = Duration::from_millis(350);

#[test]
fn a_killed_controller_goes_on_and_runs_no_completed_hook_again() {
    let fleet = Fleet::start();
    let mut created: BTreeSet<String> = BTreeSet::new();
    for round in 0..ROUNDS {
        fleet.commit(round);
        let mut controller = fleet.controller();
        fleet.ok(&["app", "sync", "web", "--async"]);
        thread::sleep(STEP * round);
        controller.kill();
        let _second = fleet.controller();
        fleet.until("the operation is over", || {
            let application = fleet.application();
            let phase =
                application["status"]["operationState"]["phase"].as_str().unwrap_or_default().to_owned();
            application.get("operation").is_none()
                && ["Succeeded", "Failed", "Error"].contains(&phase.as_str())
        });
        let state = fleet.application()["status"]["operationState"].clone();
        assert_eq!(state["phase"], "Succeeded", "round {round}: {state:#}");
        // Each round runs both hooks once; what the member's history shows is what happened.
        let jobs = fleet.jobs();
        let new: Vec<&String> = jobs.difference(&created).collect();
        assert_eq!(new.len(), 2, "round {round} created {new:?}");
        created = jobs;
        let history = fleet.application()["status"]["history"].as_array().map_or(0, Vec::len);
        assert_eq!(history, usize::try_from(round).expect("a small number") + 1, "round {round}");
    }
}

/// A control plane, a member and a repository; controllers come and go.
struct Fleet {
    home: tempfile::TempDir,
    _control: Running,
    _member: Running,
}

impl Fleet {
    fn start() -> Fleet {
        let home = tempfile::tempdir().expect("a directory");
        let serve = |name: &str| {
            let directory = home.path().join(name);
            let directory = directory.to_str().expect("UTF-8");
            let mut server = Running::start([
                "apiserver",
                "--ephemeral",
                "--data-dir",
                directory,
                "--listen",
                "127.0.0.1:0",
                "--ready-delay",
                "50ms",
            ]);
            server.line_with("kubeconfig");
            server
        };
        let fleet = Fleet { _control: serve("control"), _member: serve("member"), home };
        git(&fleet.home.path().join("config"), &["init", "-q", "-b", "main"]);
        fs::write(fleet.home.path().join("crds.yaml"), run(["crds"]).stdout).expect("a file");
        fleet.kubectl(&["apply", "--server-side", "-f", fleet.path("crds.yaml").as_str()]);
        fs::write(fleet.home.path().join("objects.json"), fleet.objects().to_string()).expect("a file");
        fleet.kubectl(&["apply", "-f", fleet.path("objects.json").as_str()]);
        fleet
    }

    fn objects(&self) -> Value {
        let kubeconfig =
            fs::read_to_string(self.home.path().join("member/kubeconfig")).expect("a kubeconfig");
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
        let cluster = kubeconfig.clusters[0].cluster.as_ref().expect("a cluster");
        let user = serde_json::to_value(&kubeconfig.auth_infos[0]).expect("JSON")["user"].clone();
        let config = json!({"tlsClientConfig": {
            "caData": cluster.certificate_authority_data,
            "certData": user["client-certificate-data"],
            "keyData": user["client-key-data"],
        }});
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
            {
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": "default", "namespace": "argocd"},
                "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
                    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]},
            },
            {
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "member", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
                "data": {"name": encode("member"), "server": encode(cluster.server.as_deref().expect("a server")),
                    "config": encode(&config.to_string())},
            },
            {
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "web", "namespace": "argocd"},
                "spec": {
                    "project": "default",
                    "source": {"repoURL": self.path("config"), "path": "web"},
                    "destination": {"name": "member", "namespace": "web"},
                    "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
                },
            },
        ]})
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn commit(&self, round: u32) {
        let web = self.home.path().join("config/web");
        fs::create_dir_all(&web).expect("directories");
        let hook = |kind| [("argocd.argoproj.io/hook", kind)];
        for (name, content) in [
            ("1.yaml", job("before", &hook("PreSync"))),
            ("2.yaml", deployment("web", 1)),
            (
                "3.yaml",
                config_map("settings", &format!("c{round}"), &[("argocd.argoproj.io/sync-wave", "1")]),
            ),
            ("4.yaml", job("after", &hook("PostSync"))),
        ] {
            fs::write(web.join(name), content).expect("a file");
        }
        let config = self.home.path().join("config");
        git(&config, &["add", "-A"]);
        git(&config, &["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "round"]);
    }

    fn controller(&self) -> Running {
        Running::start([
            "controller",
            "--controllers",
            "application",
            "--allow-local-repos",
            "--kubeconfig",
            self.path("control/kubeconfig").as_str(),
        ])
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let kubeconfig = self.path("control/kubeconfig");
        let outcome = run(arguments.iter().chain(&["--kubeconfig", kubeconfig.as_str()]));
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    #[track_caller]
    fn application(&self) -> Value {
        serde_json::from_str(&self.ok(&["app", "get", "web", "-o", "json"])).expect("JSON")
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) {
        let kubeconfig = self.path("control/kubeconfig");
        crate::stage::kubectl(self.home.path(), Path::new(&kubeconfig), arguments);
    }

    /// The uid of every Job that ever was in the member, by its history.
    fn jobs(&self) -> BTreeSet<String> {
        let kubeconfig = self.home.path().join("member/kubeconfig");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            use futures::{StreamExt as _, TryStreamExt as _};
            let api: Api<Job> = Api::namespaced(client(&kubeconfig).await, "web");
            let now = api.list_metadata(&kube::api::ListParams::default()).await.expect("a list");
            let end: u64 = now.metadata.resource_version.expect("a version").parse().expect("a number");
            let mut uids = BTreeSet::new();
            // From the beginning to now: the store forgets nothing in so short a life.
            let parameters = WatchParams::default().timeout(5);
            let events = api.watch(&parameters, "1").await.expect("a watch");
            let mut events = events.boxed();
            while let Some(event) = events.try_next().await.expect("an event") {
                let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) =
                    event
                else {
                    continue;
                };
                let version: u64 =
                    object.metadata.resource_version.and_then(|text| text.parse().ok()).unwrap_or_default();
                uids.insert(object.metadata.uid.expect("a uid"));
                if version >= end {
                    break;
                }
            }
            uids
        })
    }

    #[track_caller]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < deadline, "waited in vain until {what}: {:#}", self.application());
            thread::sleep(LOOK_EVERY);
        }
    }
}
