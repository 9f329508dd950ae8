//! The scripts of `examples/api`, which need curl alone and are the same for Argo CD's own server.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::place::{Place, config_map};
use crate::process::{Outcome, Running};

/// Whoever runs scripts at a place.
struct Scripts<'p> {
    place: &'p Place,
    token: String,
}

impl Scripts<'_> {
    fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/api");
        let mut command = Command::new(folder.join(script));
        command.args(arguments).env("ARGOCD_SERVER", format!("http://{}", self.place.address));
        command.env("ARGOCD_AUTH_TOKEN", &self.token);
        command
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Outcome {
        Running::of(self.command(script, arguments)).ends()
    }

    #[track_caller]
    fn says(&self, script: &str, arguments: &[&str]) -> String {
        let outcome = self.run(script, arguments);
        assert_eq!(outcome.code, Some(0), "{script} {arguments:?}: {outcome:?}");
        outcome.stdout
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_looked_after_with_curl() {
    let place = Place::start().await;
    place.commit("web/a.yaml", &config_map("plain", json!({})));
    let labels = json!({"app": "web"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]}}}});
    place.commit("web/b.yaml", &deployment);
    let mut scripts = Scripts { place: &place, token: String::new() };
    let mut session = scripts.command("session.sh", &[]);
    let session = Running::of({
        session.env("USERNAME", "admin").env("PASSWORD", place.password());
        session
    });
    let session = session.ends();
    assert_eq!(session.code, Some(0), "{session:?}");
    scripts.token = session.stdout.trim().to_owned();
    let mut wrong = scripts.command("session.sh", &[]);
    wrong.env("USERNAME", "admin").env("PASSWORD", "a \"wrong\" \\ word");
    let wrong = Running::of(wrong).ends();
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("401 Invalid username or password"), "{wrong:?}");
    assert_eq!(scripts.says("list.sh", &[]), "");

    let mut application = place.application("web", "web");
    application["metadata"]["labels"] = json!({"team": "web"});
    place.apply(&application).await;
    let admin = place.admin().await;
    let compared = |_, answer: &serde_json::Value| answer["status"]["sync"]["status"] == "OutOfSync";
    admin.until("it is compared", "/api/v1/applications/web", compared).await;
    assert_eq!(scripts.says("list.sh", &[]), "web OutOfSync Missing\n");
    assert_eq!(scripts.says("list.sh", &["team=other"]), "");
    let mut watch = Running::of(scripts.command("watch.sh", &["web"]));
    assert_eq!(watch.line_with("web"), "web ADDED Missing");
    scripts.says("sync.sh", &["web"]);
    assert_eq!(scripts.says("poll.sh", &["web"]), "web: Succeeded, Synced, Healthy\n");
    assert_eq!(scripts.says("list.sh", &["team=web"]), "web Synced Healthy\n");
    watch.line_with("web MODIFIED Healthy");

    let resource = ["web", "web", "apps", "Deployment", "web"];
    assert!(scripts.says("actions.sh", &resource).lines().any(|action| action == "restart"));
    let done = scripts.says("actions.sh", &[&resource[..], &["restart"]].concat());
    assert_eq!(done, "web: restart of Deployment web was done\n");
    let none = scripts.run("actions.sh", &[&resource[..], &["fly"]].concat());
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""), "{none:?}");

    assert_eq!(scripts.says("delete.sh", &["web"]), "web: gone\n");
    watch.line_with("web DELETED");
    assert_eq!(watch.ends().code, Some(0));
    let gone = scripts.run("sync.sh", &["web"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("403 permission denied"), "{gone:?}");
}
