//! `baton appset` and `baton controller` as a person uses them, beside a Kubernetes API.

mod process;

use std::fs;
use std::path::Path;
use std::process::Command;

use process::{Outcome, Running, client, eventually, run};
use serde_json::{Value, json};

const SET: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: web
  namespace: argocd
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - clusters: {}
  template:
    metadata:
      name: 'web-{{.name}}'
    spec:
      project: default
      source: {repoURL: 'https://git.example.com/web.git', targetRevision: main, path: web}
      destination: {server: '{{.server}}', namespace: web}
";

/// A Kubernetes API with the CRDs, a project and one cluster.
struct Api {
    _server: Running,
    home: tempfile::TempDir,
}

impl Api {
    async fn start() -> Api {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().to_str().expect("UTF-8");
        let mut server =
            Running::start(["apiserver", "--ephemeral", "--data-dir", directory, "--listen", "127.0.0.1:0"]);
        server.line_with("kubeconfig");
        let api = Api { _server: server, home };
        let crds = api.write("crds.yaml", &run(["crds"]).stdout);
        api.kubectl(&["apply", "--server-side", "-f", &crds]);
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}},
            {
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": "default", "namespace": "argocd"},
                "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
            },
            cluster("dev"),
        ]});
        let objects = api.write("objects.json", &objects.to_string());
        api.kubectl(&["apply", "-f", &objects]);
        api
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    fn kubeconfig(&self) -> String {
        self.home.path().join("kubeconfig").to_str().expect("UTF-8").to_owned()
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let outcome = Command::new("kubectl")
            .args(["--kubeconfig", &self.kubeconfig()])
            .args(arguments)
            .output()
            .expect("kubectl runs");
        assert!(outcome.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8(outcome.stdout).expect("UTF-8")
    }

    fn appset(&self, arguments: &[&str]) -> Outcome {
        let mut all = vec!["appset"];
        all.extend(arguments);
        let kubeconfig = self.kubeconfig();
        all.extend(["--kubeconfig", &kubeconfig]);
        run(all)
    }

    fn controller(&self) -> Running {
        let mut controller = Running::start([
            "controller",
            "--kubeconfig",
            &self.kubeconfig(),
            "--metrics-listen",
            "127.0.0.1:0",
        ]);
        assert!(controller.runs());
        controller
    }

    /// Waits until the Applications have these names.
    async fn has(&self, names: &[&str]) {
        let client = client(Path::new(&self.kubeconfig())).await;
        let api: kube::Api<baton_api::Application> = kube::Api::namespaced(client, "argocd");
        eventually(&format!("Applications {names:?}"), async || {
            let list = api.list(&kube::api::ListParams::default()).await.expect("a list");
            let mut found: Vec<String> = list.into_iter().filter_map(|one| one.metadata.name).collect();
            found.sort();
            (found == names).then_some(())
        })
        .await;
    }
}

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("cluster-{name}"), "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "stringData": {"name": name, "server": format!("https://{name}.example.com"), "config": "{}"},
    })
}

#[tokio::test]
async fn a_plan_tells_of_phases_and_how_many_go_when_they_are_removed() {
    let api = Api::start().await;
    let phases = "- clusters: {}
      deploymentStrategy:
        type: phaseDeployment
        phases:
          - name: nobody
            targets: [{clusters: [nowhere]}]
          - name: all
            targets: [{clusters: [dev]}]
            preHooks: [{name: ask, type: http, http: {url: 'https://a.example.com'}}]";
    let file = api.write("phased.yaml", &SET.replace("- clusters: {}", phases));
    assert_eq!(api.appset(&["create", "-f", &file]).code, Some(0));
    let told = api.appset(&["plan", "web"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for part in [
        "in 2 phases",
        "before: ask",
        "phase \"nobody\" matches no Application",
        "web-in-cluster is in no phase",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    // A rollout that waits for its hook.
    let status = json!({"status": {"phases": [{
        "generator": 0, "generatorType": "clusters", "rolloutID": "1-a-b", "currentPhase": 1, "totalPhases": 2,
        "state": "PreHooks", "phases": [
            {"name": "nobody", "state": "Skipped"},
            {
                "name": "all", "state": "PreHooks", "matched": 1, "selected": 1, "startedAt": "2026-01-01T00:00:00Z",
                "applications": [{"name": "web-dev", "state": "Held"}],
                "preHooks": [{"name": "ask", "state": "Running", "attempt": 1}],
            },
        ],
    }]}});
    let patch = ["--subresource=status", "--type=merge", "-p", &status.to_string()].map(str::to_owned);
    let patch: Vec<&str> = patch.iter().map(String::as_str).collect();
    api.kubectl(&[&["-n", "argocd", "patch", "applicationset", "web"], &patch[..]].concat());
    let plain = api.write("plain.yaml", SET);
    let removed = api.appset(&["plan", "-f", &plain, "--live"]);
    assert_eq!(removed.code, Some(4), "{}", removed.stderr);
    let words =
        "deploymentStrategy is removed: phase \"all\" is finished first, then 1 Application goes at once";
    assert!(removed.stdout.contains(words), "{}", removed.stdout);
    assert!(removed.stdout.contains("nobody, all → none"), "{}", removed.stdout);
    let removed = api.appset(&["plan", "-f", &plain, "--live", "-o", "json"]);
    let removed: Value = serde_json::from_str(&removed.stdout).expect("JSON");
    assert_eq!(removed["phases"][0]["removal"], json!({"finishes": "all", "atOnce": 1}));
    for command in ["get", "explain", "phases"] {
        let told = api.appset(&[command, "web"]);
        assert_eq!(told.code, Some(0), "{command}: {}", told.stderr);
        assert!(told.stdout.contains("1 running"), "{command}: {}", told.stdout);
    }
    let whole = api.appset(&["explain", "web", "-o", "json"]);
    let whole: Value = serde_json::from_str(&whole.stdout).expect("JSON");
    assert_eq!(whole["phases"][0]["phases"][1]["preHooks"][0]["name"], "ask");
}

#[tokio::test]
async fn a_set_is_created_listed_shown_and_deleted() {
    let api = Api::start().await;
    let empty = api.appset(&["list"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""), "{}", empty.stderr);
    assert!(empty.stderr.contains("No ApplicationSets in namespace argocd"), "{}", empty.stderr);

    let file = api.write("web.yaml", SET);
    let dry = api.appset(&["create", "-f", &file, "--dry-run"]);
    assert_eq!(
        (dry.code, dry.stdout.as_str()),
        (Some(0), "applicationset.argoproj.io/web created (dry run)\n")
    );
    assert_eq!(api.appset(&["get", "web"]).code, Some(20), "a dry run makes nothing");
    let created = api.appset(&["create", "-f", &file]);
    assert_eq!(
        (created.code, created.stdout.as_str()),
        (Some(0), "applicationset.argoproj.io/web created\n")
    );
    let again = api.appset(&["create", "-f", &file]);
    assert_eq!(again.code, Some(20));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
    let upserted = api.appset(&["create", "-f", &file, "--upsert"]);
    assert_eq!(
        (upserted.code, upserted.stdout.as_str()),
        (Some(0), "applicationset.argoproj.io/web configured\n")
    );
    let patched = api
        .write("patched.yaml", &SET.replace("  template:", "  templatePatch: 'metadata: {}'\n  template:"));
    assert_eq!(api.appset(&["create", "-f", &patched, "--upsert"]).code, Some(0));
    assert!(api.appset(&["get", "web", "-o", "yaml"]).stdout.contains("templatePatch"));
    assert_eq!(api.appset(&["create", "-f", &file, "--upsert"]).code, Some(0));
    assert!(
        !api.appset(&["get", "web", "-o", "yaml"]).stdout.contains("templatePatch"),
        "what the file lost is gone"
    );

    for (from, to, part) in [
        ("project: default", "project: '{{.name}}'", "templated project"),
        ("- clusters: {}", "- cluster: {}", "spec.generators[0] holds no generator"),
    ] {
        let bad = api.write("bad.yaml", &SET.replace(from, to).replace("name: web\n", "name: bad\n"));
        for command in ["create", "generate"] {
            let refused = api.appset(&[command, "-f", &bad]);
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{to}");
            assert!(refused.stderr.contains(part), "{to}: {}", refused.stderr);
        }
    }
    let unknown =
        api.write("bad.yaml", &SET.replace("path: web}", "pfad: web}").replace("name: web\n", "name: bad\n"));
    let refused = api.appset(&["create", "-f", &unknown]);
    assert_eq!(refused.code, Some(20));
    assert!(refused.stderr.contains("pfad"), "{}", refused.stderr);

    let names = api.appset(&["list", "-o", "name"]);
    assert_eq!(names.stdout, "applicationset.argoproj.io/web\n");
    let wide = api.appset(&["list", "-A", "-o", "wide"]).stdout;
    assert!(
        wide.starts_with("NAMESPACE") && wide.contains("clusters") && wide.contains("AllAtOnce"),
        "{wide}"
    );
    let yaml = api.appset(&["get", "web", "-o", "yaml"]).stdout;
    let object = baton_grammar::yaml::first(&yaml).expect("YAML");
    assert_eq!(object["spec"]["template"]["metadata"]["name"], "web-{{.name}}");
    let absent = api.appset(&["get", "nothing"]);
    assert_eq!(absent.code, Some(20));
    assert!(absent.stderr.contains("no ApplicationSet nothing in namespace argocd"), "{}", absent.stderr);

    let unasked = api.appset(&["delete", "web"]);
    assert_eq!(unasked.code, Some(1), "without a terminal there is nobody to ask");
    let deleted = api.appset(&["delete", "web", "--yes"]);
    assert_eq!(
        (deleted.code, deleted.stdout.as_str()),
        (Some(0), "applicationset.argoproj.io/web deleted\n")
    );
    assert_eq!(api.appset(&["get", "web"]).code, Some(20));
}

#[tokio::test]
async fn what_is_generated_from_a_cluster_is_what_the_controller_makes() {
    let api = Api::start().await;
    let file = api.write("web.yaml", SET);
    let generated = api.appset(&["generate", "-f", &file, "-o", "name"]);
    assert_eq!(generated.code, Some(0), "{}", generated.stderr);
    assert_eq!(generated.stdout, "application.argoproj.io/web-dev\napplication.argoproj.io/web-in-cluster\n");
    assert_eq!(api.kubectl(&["get", "applications", "-A", "-o", "name"]), "", "generating writes nothing");

    let mut controller = api.controller();
    assert_eq!(api.appset(&["create", "-f", &file]).code, Some(0));
    api.has(&["web-dev", "web-in-cluster"]).await;
    // Killed and started again, it goes on with what has happened meanwhile.
    controller.kill();
    let prod = api.write("prod.json", &cluster("prod").to_string());
    api.kubectl(&["apply", "-f", &prod]);
    api.kubectl(&["delete", "application", "-n", "argocd", "web-dev", "--wait=false"]);
    api.kubectl(&[
        "patch",
        "application",
        "-n",
        "argocd",
        "web-dev",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    let controller = api.controller();
    api.has(&["web-dev", "web-in-cluster", "web-prod"]).await;
    api.kubectl(&["delete", "secret", "-n", "argocd", "cluster-prod"]);
    // The cluster is gone, so nothing could ever take the Application's resources away: it goes without waiting.
    api.has(&["web-dev", "web-in-cluster"]).await;
    let shown = api.appset(&["get", "web"]).stdout;
    assert!(shown.contains("web-dev") && shown.contains("Healthy"), "{shown}");
    let stopped = controller.terminate();
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
}

#[tokio::test]
async fn generate_prints_a_stream_sorted_by_name_and_nothing_else() {
    let home = tempfile::tempdir().expect("a directory");
    let path = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let set = path("web.yaml", SET);
    let clusters = path(
        "clusters.json",
        &json!({"apiVersion": "v1", "kind": "List", "items": [cluster("b"), cluster("a")]}).to_string(),
    );
    let outcome = run(["appset", "generate", "-f", &set, "--clusters", &clusters]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let documents = baton_grammar::yaml::documents(&outcome.stdout).expect("YAML");
    let names: Vec<&str> = documents.iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["web-a", "web-b", "web-in-cluster"]);
    assert!(
        documents.iter().all(|one| one["kind"] == "Application" && one["metadata"]["namespace"] == "argocd")
    );

    let broken = path("broken.yaml", &SET.replace("{{.server}}", "{{.sever}}"));
    let outcome = run(["appset", "generate", "-f", &broken, "--clusters", &clusters]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(3), ""));
    for part in ["web:", "spec.destination.server", "sever", "line 1"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
}
