//! Everything a pass asks for can fail, and then the pass fails: tests that make each call fail in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_api::ApplicationSet;
use baton_api::pull_request::PullRequestGenerator;
use baton_api::scm::ScmProviderGenerator;
use baton_scm::{Hosts, Lookup, PullRequest, Repository, ScmError};
use baton_source::{Access, Commit, Repositories, RepositorySecret, SourceError, Tree};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::generate::{Generated, generate};
use crate::offline::Offline;
use crate::outside::Outside;
use crate::plugin::Request;
use crate::settings::Settings;
use crate::world::{ClusterSecret, ResourceChoice, SecretData, World};
use crate::{GeneratorError, Limits};

/// What must never leave a Secret.
const CANARY: &str = "hunter2";

const REPOSITORY: &str = "https://git.example.com/config.git";

/// Counts calls and fails the one it is told to.
#[derive(Default)]
struct Calls {
    made: AtomicUsize,
    failing: Option<usize>,
}

impl Calls {
    fn failing(call: Option<usize>) -> Calls {
        Calls { made: AtomicUsize::new(0), failing: call }
    }

    fn next(&self, what: &str) -> Result<(), String> {
        let call = self.made.fetch_add(1, Ordering::SeqCst);
        if self.failing == Some(call) { Err(format!("injected into {what}")) } else { Ok(()) }
    }
}

struct FaultyWorld<'c>(&'c Calls, Offline);

impl World for FaultyWorld<'_> {
    async fn clusters(&self) -> Result<Arc<Vec<ClusterSecret>>, String> {
        self.0.next("clusters")?;
        self.1.clusters().await
    }

    async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, String> {
        self.0.next("config_map")?;
        self.1.config_map(namespace, name).await
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        self.0.next("secret")?;
        self.1.secret(namespace, name).await
    }

    async fn resources(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        choice: &ResourceChoice,
    ) -> Result<Vec<Value>, String> {
        self.0.next("resources")?;
        self.1.resources(api_version, plural, namespace, choice).await
    }

    async fn project_exists(&self, name: &str) -> Result<bool, String> {
        self.0.next("project_exists")?;
        self.1.project_exists(name).await
    }

    async fn project_demands_signatures(&self, name: &str) -> Result<bool, String> {
        self.0.next("project_demands_signatures")?;
        self.1.project_demands_signatures(name).await
    }

    async fn repository_secrets(&self) -> Result<Arc<Vec<RepositorySecret>>, String> {
        self.0.next("repository_secrets")?;
        self.1.repository_secrets().await
    }
}

/// Real git; hosts and plugins that answer from memory.
struct FaultyOutside<'c> {
    calls: &'c Calls,
    git: Repositories,
    /// Asked only for its refusal, which is the one error of hosts to be had without a network.
    refusing: Hosts,
}

impl FaultyOutside<'_> {
    fn git(&self, what: &str) -> Result<(), SourceError> {
        let failed = |why| SourceError::Network { repository: REPOSITORY.to_owned(), why };
        self.calls.next(what).map_err(failed)
    }
}

impl Outside for FaultyOutside<'_> {
    async fn resolve(
        &self,
        url: &str,
        access: &Access,
        revision: &str,
        fresh: bool,
    ) -> Result<Commit, SourceError> {
        self.git("resolve")?;
        self.git.resolve(url, access, revision, fresh).await
    }

    async fn tree(&self, url: &str, access: &Access, commit: &Commit) -> Result<Arc<Tree>, SourceError> {
        self.git("tree")?;
        self.git.tree(url, access, commit).await
    }

    async fn read(
        &self,
        url: &str,
        access: &Access,
        commit: &Commit,
        paths: &[String],
    ) -> Result<Vec<(String, Bytes)>, SourceError> {
        self.git("read")?;
        self.git.read(url, access, commit, paths).await
    }

    async fn repositories(
        &self,
        generator: &ScmProviderGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<Repository>, ScmError> {
        // Failing to read what the reference names is the business of the real one: let it say so.
        if self.calls.next("repositories").is_err() || lookup.secret("scm").await.is_err() {
            return self.refusing.repositories(generator, lookup).await;
        }
        Ok(vec![Repository {
            organization: "org".to_owned(),
            repository: "web".to_owned(),
            repository_id: json!(7),
            url: "https://git.example.com/web.git".to_owned(),
            branch: "Main_1".to_owned(),
            sha: "0123456789abcdef".to_owned(),
            labels: vec!["a".to_owned(), "b".to_owned()],
        }])
    }

    async fn pull_requests(
        &self,
        generator: &PullRequestGenerator,
        lookup: &impl Lookup,
    ) -> Result<Vec<PullRequest>, ScmError> {
        if self.calls.next("pull_requests").is_err() || lookup.config_map("ca").await.is_err() {
            return self.refusing.pull_requests(generator, lookup).await;
        }
        Ok(vec![PullRequest {
            number: 12,
            title: "A title".to_owned(),
            branch: "feat/A_b".to_owned(),
            target_branch: "main".to_owned(),
            head_sha: "fedcba9876543210".to_owned(),
            labels: vec!["x".to_owned()],
            author: "someone".to_owned(),
        }])
    }

    async fn call_plugin(&self, request: Request<'_>) -> Result<Bytes, String> {
        self.calls.next("plugin")?;
        assert_eq!(request.token, CANARY);
        Ok(Bytes::from_static(br#"{"output": {"parameters": [{"key": "k", "deep": {"n": 1}}]}}"#))
    }
}

fn set(go_template: bool) -> ApplicationSet {
    let git = |what: Value| {
        let mut git = json!({"repoURL": REPOSITORY, "revision": "main"});
        git.as_object_mut().expect("an object").extend(what.as_object().expect("an object").clone());
        json!({ "git": git })
    };
    let name = if go_template { "{{ .name }}" } else { "{{name}}" };
    let set = json!({
        "metadata": {"name": "all", "namespace": "team"},
        "spec": {
            "goTemplate": go_template,
            "generators": [
                {"list": {"elements": [{"name": "one"}]}},
                {"clusters": {"values": {"v": name}}},
                git(json!({"directories": [{"path": "apps/*"}]})),
                git(json!({"files": [{"path": "**/config.yaml"}]})),
                {"clusterDecisionResource": {"configMapRef": "duck", "name": "decision"}},
                {"plugin": {"configMapRef": {"name": "plugin"}}},
                {"scmProvider": {}},
                {"pullRequest": {}},
                {"matrix": {"generators": [{"clusters": {}}, git(json!({"directories": [{"path": format!("apps/{name}")}]}))]}},
                {"merge": {"mergeKeys": ["name"], "generators": [
                    {"clusters": {}},
                    {"matrix": {"generators": [{"list": {"elements": [{"name": "east"}]}}, {"plugin": {"configMapRef": {"name": "plugin"}}}]}},
                ]}},
            ],
            "template": {"spec": {"project": "default"}},
        },
    });
    serde_json::from_value(set).expect("an ApplicationSet")
}

fn world() -> Offline {
    let mut world = Offline::new("argocd");
    let text = r#"
apiVersion: v1
kind: Secret
metadata: {name: east, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: east, server: "https://east", config: "{\"bearerToken\": \"hunter2\"}"}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd}
stringData: {token: " hunter2 "}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plugin, namespace: argocd}
data: {baseUrl: "http://plugin", token: $token}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: duck, namespace: argocd}
data: {apiVersion: "example.com/v1", kind: decisions, matchKey: clusterName}
---
apiVersion: example.com/v1
kind: Decision
metadata: {name: decision, namespace: argocd}
status: {clusters: [{clusterName: east, weight: 3000000}, {clusterName: nowhere}]}
"#;
    world.add_yaml(text).expect("usable manifests");
    world
}

/// A repository with two applications.
fn repository(at: &Path) -> Repositories {
    let tree = at.join("tree");
    for (path, text) in [("apps/east/config.yaml", "size: 3\n"), ("apps/web/config.yaml", "- size: 4\n")] {
        let path = tree.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, text).expect("a file is written");
    }
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(&tree)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git is installed");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=tree"]);
    Repositories::new(baton_source::Settings {
        cache_dir: at.join("cache"),
        local: [(REPOSITORY.to_owned(), tree)].into(),
        ..baton_source::Settings::default()
    })
}

/// Runs a set with one call failing, or none; also tells how many calls were made.
async fn run(
    set: &ApplicationSet,
    git: &Repositories,
    failing: Option<usize>,
    limits: Limits,
) -> (Result<Generated, GeneratorError>, usize) {
    let calls = Calls::failing(failing);
    let refusing = baton_scm::Settings { enabled: false, ..baton_scm::Settings::default() };
    let outside = FaultyOutside {
        calls: &calls,
        git: git.clone(),
        refusing: Hosts::new(refusing).expect("usable settings"),
    };
    let settings = Settings { limits, ..Settings::default() };
    let result = generate(set, &FaultyWorld(&calls, world()), &outside, &settings).await;
    (result, calls.made.load(Ordering::SeqCst))
}

fn shown(generated: &Generated) -> Vec<Vec<String>> {
    let show = |group: &crate::Group| {
        let sets = group.params.iter().cloned().map(baton_template::Value::Map);
        sets.map(|set| set.to_string()).collect()
    };
    generated.groups.iter().map(show).collect()
}

#[tokio::test]
async fn any_call_that_fails_fails_the_whole() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let git = repository(scratch.path());
    for go_template in [false, true] {
        let set = set(go_template);
        let (whole, calls) = run(&set, &git, None, Limits::default()).await;
        let whole = whole.expect("without a fault there is a result");
        assert_eq!(whole.groups.len(), 10);
        assert!(calls >= 20, "only {calls} calls are made");
        for call in 0..calls {
            let (result, _) = run(&set, &git, Some(call), Limits::default()).await;
            let error = result.expect_err("a failed call leaves no result");
            let text = error.to_string();
            assert!(
                text.contains("injected into ") || text.contains("scm providers are disabled"),
                "call {call} is not named: {text}"
            );
            assert!(error.place().starts_with("spec.generators["), "call {call} has no place: {text}");
            assert!(!text.contains(CANARY), "{text}");
        }
    }
}

#[tokio::test]
async fn a_set_of_all_generators_yields_what_each_found() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let git = repository(scratch.path());
    let (generated, _) = run(&set(true), &git, None, Limits::default()).await;
    let generated = generated.expect("no fault");
    let groups = shown(&generated);
    assert_eq!(groups[0], ["map[name:one]"]);
    assert_eq!(groups[1].len(), 2);
    assert!(groups[1][0].ends_with("values:map[v:east]]"), "{}", groups[1][0]);
    assert_eq!(
        groups[2],
        [
            "map[path:map[basename:east basenameNormalized:east path:apps/east segments:[apps east]]]",
            "map[path:map[basename:web basenameNormalized:web path:apps/web segments:[apps web]]]",
        ]
    );
    assert_eq!(
        groups[3][0],
        "map[path:map[basename:east basenameNormalized:east filename:config.yaml \
         filenameNormalized:config.yaml path:apps/east segments:[apps east]] size:3]"
    );
    assert_eq!(groups[4], ["map[clusterName:east name:east server:https://east weight:3000000]"]);
    assert_eq!(groups[5], ["map[deep:map[n:1] generator:map[input:map[parameters:map[]]] key:k]"]);
    assert_eq!(
        groups[6],
        [
            "map[branch:Main_1 branchNormalized:main-1 labels:a,b organization:org repository:web repository_id:7 \
          sha:0123456789abcdef short_sha:01234567 short_sha_7:0123456 url:https://git.example.com/web.git]"
        ]
    );
    assert_eq!(
        groups[7],
        ["map[author:someone branch:feat/A_b branch_slug:feat-a-b head_sha:fedcba9876543210 \
          head_short_sha:fedcba98 head_short_sha_7:fedcba9 labels:[x] number:12 target_branch:main \
          target_branch_slug:main title:A title]"]
    );
    assert_eq!(groups[8].len(), 1);
    assert!(groups[9][0].contains("key:k") && !groups[9][1].contains("key:k"), "{:?}", groups[9]);
    assert!(!format!("{generated:?}").contains(CANARY));

    let reads = &generated.reads;
    assert_eq!(reads.repositories, [(REPOSITORY.to_owned(), "main".to_owned())].into());
    assert!(reads.cluster_names && reads.hosts && reads.plugins);
    assert_eq!(reads.pull_requests.len(), 1);
    assert_eq!(reads.projects, ["default".to_owned()].into());
    assert!(reads.secrets.contains(&("argocd".to_owned(), "argocd-secret".to_owned())));
    assert!(reads.secrets.contains(&("team".to_owned(), "scm".to_owned())));
    assert!(reads.config_maps.contains(&("team".to_owned(), "ca".to_owned())));
    assert_eq!(reads.resources.len(), 1);
    assert!(generated.requeue_after.is_some());
}

#[tokio::test]
async fn limits_are_errors_and_never_shorten() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let git = repository(scratch.path());
    let set = set(false);
    for (limits, part) in [
        (Limits { sets: 1, ..Limits::default() }, "more than 1 parameter sets"),
        (Limits { sets: 5, ..Limits::default() }, "more than 5 parameter sets"),
        (Limits { bytes: 100, ..Limits::default() }, "more than 100 bytes"),
        (Limits { bytes: 0, ..Limits::default() }, "more than 0 bytes"),
    ] {
        let (result, _) = run(&set, &git, None, limits).await;
        let error = result.expect_err("a limit is reached");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_project_that_wants_signatures_is_not_served_without() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let mut world = world();
    let project = "{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: default}, \
                   spec: {signatureKeys: [{keyID: 4AEE18F83AFDEB23}]}}";
    world.add_yaml(project).expect("a usable manifest");
    let calls = Calls::default();
    let outside = FaultyOutside {
        calls: &calls,
        git: repository(scratch.path()),
        refusing: Hosts::new(baton_scm::Settings::default()).expect("usable settings"),
    };
    let result = generate(&set(true), &FaultyWorld(&calls, world), &outside, &Settings::default()).await;
    let error = result.expect_err("signatures are wanted");
    assert!(
        error.message().contains("error getting project default: it takes only signed commits"),
        "{error}"
    );
}

#[tokio::test]
async fn what_was_read_before_a_fault_is_told() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let git = repository(scratch.path());
    let mut set = set(true);
    set.spec.template.spec.project = "absent".to_owned();
    let mut world = world();
    let project = "{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: default}}";
    world.add_yaml(project).expect("a usable manifest");
    let calls = Calls::default();
    let outside = FaultyOutside {
        calls: &calls,
        git,
        refusing: Hosts::new(baton_scm::Settings::default()).expect("usable settings"),
    };
    let result = generate(&set, &FaultyWorld(&calls, world), &outside, &Settings::default()).await;
    let error = result.expect_err("the project does not exist");
    assert_eq!(error.place(), "spec.generators[2].git");
    assert!(error.message().contains("error getting project absent"), "{error}");
    assert_eq!(error.reads().projects, ["absent".to_owned()].into());
    assert_eq!(error.reads().clusters.len(), 1);
}
