//! Every ApplicationSet under `examples/` gives the Applications its `expected.txt` names, on `baton up` and on paper.

mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_api::{Application, ApplicationSet};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use process::{Running, address_in, client, eventually, run};

const REPOSITORY: &str = "https://git.example.com/fleet/config.git";
/// Where the examples look for the demo hosts.
const HOSTS: &str = "127.0.0.1:8080";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn mapping() -> String {
    format!("{REPOSITORY}={}", examples().join("repo").display())
}

/// Files by the name of their set.
fn files() -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(examples().join("applicationsets")).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|kind| kind == "yaml"));
    yaml.map(|path| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path)).collect()
}

/// What each set gives: `APPLICATION CLUSTER NAMESPACE PATH@REVISION`, by set.
fn expected() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(examples().join("applicationsets/expected.txt")).expect("what is expected");
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (set, application) = line.split_once(' ').expect("a set and an Application");
        assert!(all.entry(set.to_owned()).or_default().insert(application.to_owned()), "twice: {line}");
    }
    all
}

/// An Application as `expected.txt` writes it. Members' addresses differ from run to run, so they are named.
fn line(application: &Application, servers: &BTreeMap<String, String>) -> String {
    let spec = &application.spec;
    let destination = &spec.destination;
    let cluster = match destination.name.as_str() {
        "" => servers.get(&destination.server).map_or(destination.server.as_str(), String::as_str),
        name => name,
    };
    let source = spec.source.as_ref().expect("a source");
    let name = application.name_any();
    format!("{name} {cluster} {} {}@{}", destination.namespace, source.path, source.target_revision)
}

#[test]
fn there_are_enough_examples_and_each_says_what_it_gives() {
    let files = files();
    assert!(files.len() >= 25, "{}", files.len());
    assert_eq!(files.keys().collect::<Vec<_>>(), expected().keys().collect::<Vec<_>>());
    let all: String = files.values().map(|path| fs::read_to_string(path).expect("an example")).collect();
    for generator in [
        "list",
        "clusters",
        "git",
        "scmProvider",
        "clusterDecisionResource",
        "pullRequest",
        "matrix",
        "merge",
        "plugin",
    ] {
        assert!(all.contains(&format!("- {generator}:")), "no example of {generator}");
    }
}

#[test]
fn examples_have_no_mistakes_a_linter_finds() {
    let directory = examples().join("applicationsets");
    let outcome = run(["appset", "lint", "-f", directory.to_str().expect("UTF-8")]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
}

#[test]
fn on_paper_each_example_gives_what_it_says() {
    let clusters = examples().join("clusters.yaml");
    let servers = BTreeMap::from(
        [
            ("https://127.0.0.1:6444", "dev"),
            ("https://127.0.0.1:6445", "staging"),
            ("https://127.0.0.1:6446", "prod"),
            ("https://kubernetes.default.svc", "in-cluster"),
        ]
        .map(|(server, name)| (server.to_owned(), name.to_owned())),
    );
    let expected = expected();
    for (set, path) in files() {
        let text = fs::read_to_string(&path).expect("an example");
        if text.contains(HOSTS) {
            // What is asked of a host needs one: the other test has it.
            continue;
        }
        // The objects a set needs may stand beside it in its file.
        let file = path.to_str().expect("UTF-8");
        let outcome = run([
            "appset",
            "generate",
            "-f",
            file,
            "--clusters",
            clusters.to_str().expect("UTF-8"),
            "--clusters",
            file,
            "--repo",
            &mapping(),
            "-o",
            "json",
        ]);
        assert_eq!(outcome.code, Some(0), "{set}: {}", outcome.stderr);
        let list: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let applications: Vec<Application> =
            serde_json::from_value(list["items"].clone()).expect("Applications");
        let given: BTreeSet<String> = applications.iter().map(|one| line(one, &servers)).collect();
        assert_eq!(given, expected[&set], "{set}");
    }
}

#[tokio::test]
async fn on_baton_up_each_example_gives_what_it_says() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().to_str().expect("UTF-8");
    let mut fleet = Running::start([
        "up",
        "--ephemeral",
        "--data-dir",
        directory,
        "--listen",
        "127.0.0.1:0",
        "--api-listen",
        "127.0.0.1:0",
        "--repo",
        &mapping(),
    ]);
    let page = address_in(&fleet.line_with("page "));
    fleet.line_with("Ctrl-C");
    let kubeconfig = home.path().join("kubeconfig");
    let client = client(&kubeconfig).await;

    let mut expected = expected();
    for (set, path) in files() {
        let text = fs::read_to_string(&path).expect("an example").replace(HOSTS, &page.to_string());
        let file = home.path().join(format!("{set}.yaml"));
        fs::write(&file, text).expect("a file");
        kubectl(&kubeconfig, &file);
    }
    // The pricelist of the first proposal, whose repository nobody reads yet.
    kubectl(&kubeconfig, &examples().join("seeds/000-deletion-reverse.yaml"));
    expected.insert(
        "pricelist".to_owned(),
        ["config", "db", "frontend"]
            .map(|part| {
                let path = format!("applicationsets/rollingsync/apps/pricelist-{part}");
                format!("pricelist-{part} in-cluster pricelist {path}@main")
            })
            .into(),
    );

    let servers = servers(&client).await;
    let applications: Api<Application> = Api::namespaced(client.clone(), "argocd");
    let sets: Api<ApplicationSet> = Api::namespaced(client.clone(), "argocd");
    eventually("all Applications are there", async || {
        let count = applications.list(&ListParams::default()).await.expect("a list").items.len();
        let healthy = sets.list(&ListParams::default()).await.expect("a list");
        // The pricelist is rolled out in steps, and says why it cannot begin.
        let waits = |set: &ApplicationSet| {
            let rollout = set.status.rollout.as_ref();
            let first = rollout.and_then(|rollout| rollout.blockers.first());
            set.name_any() == "pricelist" && first.is_some_and(|first| first.reason == "RevisionUnresolved")
        };
        let fine = |set: &&ApplicationSet| set.status.health.status.as_str() == "Healthy" || waits(set);
        let healthy = healthy.iter().filter(fine).count();
        let all = count >= expected.values().map(BTreeSet::len).sum::<usize>() && healthy == expected.len();
        all.then_some(())
    })
    .await;
    let mut given: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for application in applications.list(&ListParams::default()).await.expect("a list") {
        let owner = application.owner_references().first().expect("an owner").name.clone();
        given.entry(owner).or_default().insert(line(&application, &servers));
    }
    assert_eq!(given, expected);
    for set in sets.list(&ListParams::default()).await.expect("a list") {
        let count = usize::try_from(set.status.resources_count).expect("a count");
        assert_eq!(count, expected[&set.name_any()].len(), "{}", set.name_any());
    }
}

fn kubectl(kubeconfig: &Path, file: &Path) {
    let outcome = Command::new("kubectl")
        .args([
            "--kubeconfig".as_ref(),
            kubeconfig.as_os_str(),
            "apply".as_ref(),
            "-f".as_ref(),
            file.as_os_str(),
        ])
        .output()
        .expect("kubectl runs");
    assert!(outcome.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&outcome.stderr));
}

/// Names of clusters by their address.
async fn servers(client: &Client) -> BTreeMap<String, String> {
    let api: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), "argocd");
    let secrets = api.list(&ListParams::default().labels("argocd.argoproj.io/secret-type=cluster")).await;
    let mut servers =
        BTreeMap::from([("https://kubernetes.default.svc".to_owned(), "in-cluster".to_owned())]);
    for secret in secrets.expect("cluster Secrets") {
        let data = secret.data.expect("data");
        let text = |key: &str| String::from_utf8(data[key].0.clone()).expect("UTF-8");
        servers.insert(text("server"), text("name"));
    }
    servers
}
