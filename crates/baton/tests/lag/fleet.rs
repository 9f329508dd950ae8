//! The set under test and its repositories: what changes, and what a cluster shows once it has it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_sim::checker::{Branch, Git, Shown};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Name of the set.
pub(crate) const SET: &str = "web";
/// Where its Applications go: the cluster that also holds them, so that one history tells the order of everything.
pub(crate) const SERVER: &str = "https://kubernetes.default.svc";

/// Each step with its Applications.
const STEPS: [(&str, [&str; 2]); 3] =
    [("dev", ["d1", "d2"]), ("stage", ["s1", "s2"]), ("prod", ["p1", "p2"])];
/// Directories of which the template names one.
const VARIANTS: [&str; 2] = ["a", "b"];
/// Directory of what an Application of two sources has from the second.
const EXTRA: &str = "extra";
const ONE: Place = ("one", "main");
const RELEASE: Place = ("one", "release");
const TWO: Place = ("two", "main");

/// Name of a repository, and of a branch.
type Place = (&'static str, &'static str);

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The one branch that all Applications follow.
    OneRepository,
    /// The template.
    Template,
    /// Two branches of one repository and one of another at once; one Application follows both repositories.
    ManyRepositories,
    /// The one branch, and in the end the set is deleted: its last step first.
    Deletion,
}

/// One set over its repositories.
pub(crate) struct Fleet {
    scenario: Scenario,
    home: PathBuf,
    variant: usize,
    git: Git,
    heads: BTreeMap<Place, String>,
}

impl Fleet {
    /// With a first commit on each branch.
    pub(crate) fn new(scenario: Scenario, home: PathBuf) -> Fleet {
        let mut fleet = Fleet { scenario, home, variant: 0, git: Git::default(), heads: BTreeMap::new() };
        for (repository, branch) in fleet.branches() {
            let directory = fleet.home.join(repository);
            if !directory.exists() {
                git(&directory, &["init", "-q", "-b", branch]);
            }
            fleet.commit((repository, branch), 0);
        }
        fleet
    }

    fn branches(&self) -> Vec<Place> {
        match self.scenario {
            Scenario::OneRepository | Scenario::Template | Scenario::Deletion => vec![ONE],
            Scenario::ManyRepositories => vec![ONE, RELEASE, TWO],
        }
    }

    /// Changes what the scenario is about.
    pub(crate) fn change(&mut self, number: u32) {
        match self.scenario {
            Scenario::Template => self.variant = (self.variant + 1) % VARIANTS.len(),
            _ => self.branches().into_iter().for_each(|branch| self.commit(branch, number)),
        }
    }

    fn commit(&mut self, (repository, branch): Place, number: u32) {
        let directory = self.home.join(repository);
        if self.heads.keys().any(|(known, _)| *known == repository) {
            let known = self.heads.contains_key(&(repository, branch));
            git(&directory, &["switch", if known { "-q" } else { "-qc" }, branch]);
        }
        let text = format!("{repository}-{branch}-{number}");
        let mut contents = BTreeMap::new();
        for name in self.applications() {
            for variant in VARIANTS {
                let shown =
                    Shown { object: name.to_owned(), text: format!("{text}-{variant}"), workload: true };
                contents.insert(format!("{variant}/{name}"), shown);
            }
            let shown =
                Shown { object: format!("{name}-{EXTRA}"), text: format!("{text}-{EXTRA}"), workload: false };
            contents.insert(format!("{EXTRA}/{name}"), shown);
        }
        for (path, shown) in &contents {
            fs::create_dir_all(directory.join(path)).expect("a directory");
            fs::write(directory.join(path).join("all.yaml"), manifests(shown)).expect("a file");
        }
        let at = Timestamp::now();
        git(&directory, &["add", "-A"]);
        let author = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        git(&directory, &[&author[..], &["commit", "-qm", &text]].concat());
        let commit = git(&directory, &["rev-parse", "HEAD"]).trim().to_owned();
        self.heads.insert((repository, branch), commit.clone());
        self.git.contents.insert(commit.clone(), contents);
        let branch: Branch = (self.url(repository), branch.to_owned());
        self.git.pushes.push((at, branch, commit));
    }

    /// What is in git.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Whether the set is deleted in the end.
    pub(crate) fn is_deleted(&self) -> bool {
        self.scenario == Scenario::Deletion
    }

    pub(crate) fn applications(&self) -> Vec<&'static str> {
        STEPS.iter().flat_map(|(_, names)| *names).collect()
    }

    /// Whether an Application is where the last change leads.
    pub(crate) fn is_done(&self, application: &Value) -> bool {
        let status = &application["status"];
        self.is_at_last(application, &status["sync"])
            && sources(&status["sync"]["comparedTo"]) == sources(&application["spec"])
            && status["sync"]["status"] == "Synced"
            && status["health"]["status"] == "Healthy"
            && application["operation"].is_null()
    }

    /// Whether an Application is being brought there.
    pub(crate) fn has_begun(&self, application: &Value) -> bool {
        self.is_at_last(application, &application["operation"]["sync"])
    }

    /// Whether a specification is the last one, and something of it names the last commits.
    fn is_at_last(&self, application: &Value, at: &Value) -> bool {
        let name = application["metadata"]["name"].as_str().unwrap_or_default();
        let wanted: Vec<Value> =
            self.sources(name).iter().map(|(place, path)| self.source(*place, path)).collect();
        let heads: Vec<Value> =
            self.sources(name).iter().map(|(place, _)| json!(self.heads.get(place))).collect();
        let named = match at["revisions"].as_array().filter(|all| !all.is_empty()) {
            Some(all) => all.clone(),
            None => vec![at["revision"].clone()],
        };
        sources(&application["spec"]) == wanted.iter().collect::<Vec<_>>() && named == heads
    }

    /// The branches an Application follows, and the directory in each.
    fn sources(&self, name: &str) -> Vec<(Place, String)> {
        let own = format!("{}/{name}", VARIANTS[self.variant]);
        match (self.scenario, name) {
            (Scenario::ManyRepositories, "d1" | "p1") => vec![(ONE, own)],
            (Scenario::OneRepository | Scenario::Template | Scenario::Deletion, _) => vec![(ONE, own)],
            (_, "s1") => vec![(RELEASE, own)],
            (_, "s2") => vec![(ONE, own), (TWO, format!("{EXTRA}/{name}"))],
            _ => vec![(TWO, own)],
        }
    }

    fn url(&self, repository: &str) -> String {
        self.home.join(repository).to_str().expect("UTF-8").to_owned()
    }

    fn source(&self, (repository, branch): Place, path: &str) -> Value {
        json!({"repoURL": self.url(repository), "targetRevision": branch, "path": path})
    }

    /// The set.
    pub(crate) fn set(&self) -> Value {
        let step =
            |env: &str| json!({"matchExpressions": [{"key": "env", "operator": "In", "values": [env]}]});
        let mut steps: Vec<Value> = STEPS.iter().map(|(env, _)| step(env)).collect();
        steps[1]["maxUpdate"] = json!(1);
        let mut strategy = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
        if self.scenario == Scenario::Deletion {
            strategy["deletionOrder"] = "Reverse".into();
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": SET, "namespace": "argocd"},
            "spec": {
                "generators": self.generators(),
                "strategy": strategy,
                "template": {
                    "metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}},
                    "spec": {"project": "default", "destination": {"server": SERVER, "namespace": "work"}},
                },
            },
        })
    }

    /// One list for Applications of one source and one for those of several, each with the part of the template that
    /// differs.
    fn generators(&self) -> Value {
        let (mut single, mut several) = (Vec::new(), Vec::new());
        for (env, name) in STEPS.iter().flat_map(|(env, names)| names.iter().map(move |name| (env, name))) {
            match self.sources(name).as_slice() {
                [((repository, branch), _)] => single.push(json!({
                    "name": name, "env": env, "repo": self.url(repository), "branch": branch,
                })),
                _ => several.push(json!({"name": name, "env": env})),
            }
        }
        let own = format!("{}/{{{{name}}}}", VARIANTS[self.variant]);
        let source = json!({"repoURL": "{{repo}}", "targetRevision": "{{branch}}", "path": own});
        let both = [self.source(ONE, &own), self.source(TWO, &format!("{EXTRA}/{{{{name}}}}"))];
        let part = |field: &str, value: Value| json!({"metadata": {}, "spec": {"project": "default", "destination": {}, field: value}});
        let mut generators = vec![json!({"list": {"elements": single, "template": part("source", source)}})];
        if !several.is_empty() {
            generators.push(json!({"list": {"elements": several, "template": part("sources", json!(both))}}));
        }
        generators.into()
    }
}

fn sources(spec: &Value) -> Vec<&Value> {
    match spec["sources"].as_array().filter(|all| !all.is_empty()) {
        Some(all) => all.iter().collect(),
        None => vec![&spec["source"]],
    }
}

/// A ConfigMap that shows a text and a Deployment that runs it, as the judge knows them.
fn manifests(Shown { object, text, workload }: &Shown) -> String {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object}, "data": {"shown": text}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": object},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": object}},
            "template": {
                "metadata": {"labels": {"app": object}},
                "spec": {"containers": [{"name": "main", "image": format!("example.com/app:{text}")}]},
            },
        },
    });
    if *workload { format!("{map}\n---\n{deployment}\n") } else { format!("{map}\n") }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    fs::create_dir_all(directory).expect("a directory");
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().expect("git runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {}: {complaint}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
