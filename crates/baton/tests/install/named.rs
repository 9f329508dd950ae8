//! What `baton install` prints, on the cluster that `BATON_TEST_KUBECONFIG` names, or on one of our own where it names none: in a
//! namespace that nobody else has, with Deployments that start nothing, and with everything taken away again.

use std::collections::BTreeSet;
use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::process::{Outcome, run};
use crate::{APPLICATIONS, NOTIFICATIONS, SETS};

struct Named {
    kubeconfig: PathBuf,
    namespace: String,
    /// What was there before, and stays.
    definitions: BTreeSet<String>,
    _own: Option<Cluster>,
}

impl Named {
    fn find() -> Named {
        let (kubeconfig, own) = match env::var_os("BATON_TEST_KUBECONFIG").filter(|path| !path.is_empty()) {
            Some(path) => (PathBuf::from(path), None),
            None => {
                let own = Cluster::start();
                (own.kubeconfig(), Some(own))
            }
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        let namespace = format!("baton-test-{}-{}", std::process::id(), since.as_millis());
        let mut named = Named { kubeconfig, namespace, definitions: BTreeSet::new(), _own: own };
        let there = named.says(&["get", "customresourcedefinitions", "-o", "name"], "");
        named.definitions = there.lines().map(str::to_owned).collect();
        named
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_owned();
        let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().expect("kubectl ends");
        writing.join().expect("a writer does not panic");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    #[track_caller]
    fn says(&self, arguments: &[&str], input: &str) -> String {
        let outcome = self.kubectl(arguments, input);
        assert_eq!(outcome.code, Some(0), "kubectl {arguments:?}: {}", outcome.stderr);
        outcome.stdout
    }

    /// What is printed for this namespace; no Pod comes of it.
    fn printed(&self, more: &[&str]) -> Value {
        let own = ["install", "-o", "json", "--namespace", &self.namespace, "--no-in-cluster"];
        let printed = run(own.iter().chain(more));
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        let mut list: Value = serde_json::from_str(&printed.stdout).expect("JSON");
        for object in list["items"].as_array_mut().expect("a list") {
            if object["kind"] == "Deployment" {
                object["spec"]["replicas"] = json!(0);
            }
        }
        list
    }

    fn may(&self, account: &str, arguments: &[&str]) -> bool {
        let who = format!("system:serviceaccount:{}:{account}", self.namespace);
        let outcome = self.kubectl(&[&["auth", "can-i", "-q", "--as", &who], arguments].concat(), "");
        outcome.code == Some(0)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // Whatever the test came to; what cannot be taken away is told by the name it has.
        let there = self.kubectl(&["get", "customresourcedefinitions", "-o", "name"], "").stdout;
        let ours = there.lines().filter(|name| name.ends_with(".argoproj.io"));
        for definition in ours.filter(|name| !self.definitions.contains(*name)) {
            self.kubectl(&["delete", definition, "--wait=false"], "");
        }
        let outcome = self.kubectl(&["delete", "namespace", &self.namespace, "--wait=false"], "");
        if outcome.code != Some(0) {
            eprintln!("namespace {} stays: {}", self.namespace, outcome.stderr);
        }
    }
}

#[test]
fn what_is_printed_applies_to_the_cluster_that_is_named_and_grants_what_it_says() {
    let named = Named::find();
    let namespace = named.namespace.as_str();
    let all = named.printed(&[]);
    let apply = ["apply", "--server-side", "-f", "-"];
    named.says(&apply, &all.to_string());
    // Again, and with more of each: nothing is in the way.
    named.says(&apply, &all.to_string());
    named.says(&[&apply[..], &["--dry-run=server"]].concat(), &named.printed(&["--ha"]).to_string());
    for object in all["items"].as_array().expect("a list") {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let found = named.says(&["get", &kind, &name, "-n", namespace, "-o", "json"], "");
        let found: Value = serde_json::from_str(&found).expect("JSON");
        match kind.as_str() {
            "Role" => assert_eq!(found["rules"], object["rules"], "{name}"),
            "Deployment" => {
                let image =
                    |object: &Value| object["spec"]["template"]["spec"]["containers"][0]["image"].clone();
                assert_eq!(image(&found), image(object), "{name}");
                assert_eq!(found["status"]["replicas"].as_u64().unwrap_or_default(), 0, "{name}");
            }
            _ => {}
        }
    }
    for account in [SETS, APPLICATIONS, NOTIFICATIONS, "baton-server"] {
        assert!(named.may(account, &["list", "applications.argoproj.io", "-n", namespace]), "{account}");
        for arguments in [
            &["list", "secrets", "-n", "kube-system"][..],
            &["list", "applications.argoproj.io", "-A"],
            &["create", "pods", "-n", namespace],
            &["create", "clusterrolebindings"],
            &["escalate", "roles", "-n", namespace],
            &["impersonate", "users"],
            &["create", "pods/exec", "-n", namespace],
        ] {
            assert!(!named.may(account, arguments), "{account} may {arguments:?}");
        }
    }
    assert!(named.may(SETS, &["delete", "applications.argoproj.io", "-n", namespace]));
    assert!(!named.may(APPLICATIONS, &["delete", "applications.argoproj.io", "-n", namespace]));
    assert!(named.may(NOTIFICATIONS, &["get", "configmaps/argocd-notifications-cm", "-n", namespace]));
    assert!(!named.may(NOTIFICATIONS, &["get", "configmaps/argocd-cm", "-n", namespace]));
}
