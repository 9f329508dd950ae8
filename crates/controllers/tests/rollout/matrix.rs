//! Every form of a revision, times every change that may come while an operation of the run is under way.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::charts::{CHART, Charts, pace};
use crate::scene::{NAMESPACE, REPOSITORY, SECOND, Scene, Version, fleet, objects, text};

/// In the order of names the last step comes first.
const MEMBERS: [(&str, &str); 3] = [("aa-prod", "prod"), ("mm-test", "test"), ("zz-dev", "dev")];
const NAMES: [&str; 3] = ["aa-prod", "mm-test", "zz-dev"];
/// Parts of a specification that a template gives every Application alike.
const SHARED: [&str; 4] = ["/project", "/destination", "/info", "/syncPolicy/syncOptions"];
/// Takes so long that there is time for a change.
pub(crate) const HOOK: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: slow
  annotations:
    argocd.argoproj.io/hook: PreSync
    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
    sim.baton.dev/delay: 10s
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: main}]
";

/// What a chart gives every Application.
const MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}'
data:
  version: '{{ .Chart.Version }}'
";

/// Where releases are made.
struct Ground {
    scene: Scene,
    charts: Charts,
}

/// How a revision is asked for.
#[derive(Debug, Clone, Copy)]
enum Form {
    AnnotatedTag,
    ShortSha,
    CommitSha,
    Branch,
    TagRange,
    /// A chart by a range of versions.
    ChartRange,
    /// A branch, and beside it a repository at an annotated tag that is only referred to.
    SeveralWithRef,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Commit,
    Spec,
    SyncOptions,
    Project,
    Destination,
}

const CHANGES: [Change; 5] =
    [Change::Commit, Change::Spec, Change::SyncOptions, Change::Project, Change::Destination];

/// What each source may be reported as.
type Resolution = Vec<BTreeSet<String>>;

/// Reads the history, version by version.
struct Judge {
    known: BTreeMap<String, Value>,
    seen: u64,
    starts: usize,
    /// Everything that was ever released.
    releases: Vec<Resolution>,
}

impl Judge {
    /// What was started before an earlier step was where it is to be, and what was written while an operation ran.
    fn violations(&mut self, versions: Vec<Version>) -> Vec<String> {
        let mut found = Vec::new();
        for version in versions {
            self.seen = version.revision;
            let now = version.object.expect("nothing is deleted");
            let before = self.known.get(&version.name).unwrap_or(&Value::Null);
            let (was, is) = (!before["operation"].is_null(), !now["operation"].is_null());
            if was && is && before["spec"] != now["spec"] {
                found.push(format!("{} is another in its operation", version.name));
            }
            if is && !was {
                self.starts += 1;
                let earlier = self.known.iter().filter(|(name, _)| step(name) < step(&version.name));
                for (name, other) in earlier.filter(|(_, other)| !self.is_done_as(other, &now)) {
                    found.push(format!(
                        "{} began while {name} was {:#}",
                        version.name, other["status"]["sync"]
                    ));
                }
            }
            self.known.insert(version.name, now);
        }
        found
    }

    /// Whether an Application is done with what another begins.
    fn is_done_as(&self, other: &Value, begins: &Value) -> bool {
        let wanted = revisions(&begins["operation"]["sync"]);
        let reported = revisions(&other["status"]["sync"]);
        let same_release = |release: &Resolution| is_at(release, &wanted) && is_at(release, &reported);
        let same = |field: &&str| other["spec"].pointer(field) == begins["spec"].pointer(field);
        is_well(other) && SHARED.iter().all(same) && self.releases.iter().any(same_release)
    }
}

fn step(name: &str) -> usize {
    ["dev", "test", "prod"].iter().position(|env| name.ends_with(env)).expect("a step")
}

fn is_well(application: &Value) -> bool {
    application["status"]["sync"]["status"] == "Synced"
        && application["status"]["health"]["status"] == "Healthy"
        && application["operation"].is_null()
}

fn is_at(release: &Resolution, revisions: &[String]) -> bool {
    release.len() == revisions.len()
        && release.iter().zip(revisions).all(|(accept, one)| accept.contains(one))
}

fn revisions(sync: &Value) -> Vec<String> {
    match sync["revisions"].as_array().filter(|several| !several.is_empty()) {
        Some(several) => several.iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect(),
        None => vec![text(sync, "/revision")],
    }
}

/// Commits, in a form: what the template asks for then, and what may be reported for it.
fn release(ground: &Ground, form: Form, number: usize) -> (Value, Resolution) {
    let scene = &ground.scene;
    let commit = scene.commit(&NAMES, &number.to_string());
    let of = |target: &str| json!({"source": {"repoURL": REPOSITORY, "path": "{{name}}", "targetRevision": target}});
    let one = |accept: &[&str]| vec![accept.iter().map(|one| (*one).to_owned()).collect()];
    match form {
        Form::Branch => (of("main"), one(&[&commit])),
        Form::CommitSha => (of(&commit), one(&[&commit])),
        Form::ShortSha => (of(&commit[..8]), one(&[&commit, &commit[..8]])),
        Form::AnnotatedTag => (of("release"), one(&[&commit, &scene.tag("release")])),
        Form::TagRange => (of("1.*"), one(&[&commit, &scene.tag(&format!("1.0.{number}"))])),
        Form::ChartRange => {
            let (version, url) = (format!("1.{number}.0"), &ground.charts.url);
            let hook = format!("{{{{ if eq .Release.Name \"zz-dev\" }}}}\n{HOOK}{{{{ end }}}}\n");
            ground.charts.release(&version, &[("map.yaml", MAP), ("hook.yaml", &hook)]);
            (json!({"source": {"repoURL": url, "chart": CHART, "targetRevision": "1.x"}}), one(&[&version]))
        }
        Form::SeveralWithRef => {
            let second = scene.commit_second(&["values"], &number.to_string());
            let sources = json!({"sources": [
                {"repoURL": REPOSITORY, "path": "{{name}}", "targetRevision": "main"},
                {"repoURL": SECOND, "ref": "values", "targetRevision": "release"},
            ]});
            let values = BTreeSet::from([second, scene.tag_second("release")]);
            (sources, vec![BTreeSet::from([commit]), values])
        }
    }
}

/// The set with these sources.
fn with_sources(set: &mut Value, sources: Value) {
    let spec = set["spec"]["template"]["spec"].as_object_mut().expect("a specification");
    spec.remove("source");
    spec.extend(sources.as_object().expect("sources").clone());
}

/// Changes the set. A commit is the only one that is none of the template's own.
fn change(ground: &Ground, form: Form, change: Change, set: &mut Value, number: usize) -> Option<Resolution> {
    let spec = &mut set["spec"]["template"]["spec"];
    match change {
        Change::Commit => {
            let (sources, resolution) = release(ground, form, number);
            with_sources(set, sources);
            return Some(resolution);
        }
        Change::Spec => spec["info"] = json!([{"name": "number", "value": number.to_string()}]),
        Change::SyncOptions => {
            spec["syncPolicy"]["syncOptions"] = json!(["CreateNamespace=true", "Validate=false"])
        }
        Change::Project => spec["project"] = "other".into(),
        Change::Destination => spec["destination"]["namespace"] = format!("demo-{number}").into(),
    }
    None
}

/// Applies the set, and has its revisions looked up at once.
async fn apply(scene: &Scene, set: &Value) {
    scene.apply(set.clone()).await;
    scene.annotate_set("fleet", "argocd.argoproj.io/application-set-refresh", Some("true")).await;
}

/// Waits until every Application is what the set asks for, at the right revisions.
async fn arrive(scene: &Scene, what: &str, set: &Value, resolution: &Resolution) {
    let wanted = &set["spec"]["template"]["spec"];
    scene
        .until(what, |scene| {
            let there = |application: &Value| {
                let (status, spec) = (&application["status"], &application["spec"]);
                is_well(application)
                    && SHARED.iter().all(|field| spec.pointer(field) == wanted.pointer(field))
                    && is_at(resolution, &revisions(&status["sync"]))
                    && is_at(resolution, &revisions(&status["operationState"]["syncResult"]))
            };
            let applications = scene.applications();
            scene.rollout_state() == "Complete"
                && applications.len() == MEMBERS.len()
                && applications.values().all(there)
        })
        .await;
}

async fn try_all(form: Form) {
    let ground = Ground { scene: Scene::new().await, charts: Charts::start() };
    let scene = &ground.scene;
    if matches!(form, Form::ChartRange) {
        tokio::spawn(pace());
    }
    let mut other = objects(&scene.control, "appprojects.argoproj.io")["default"].clone();
    other["metadata"] = json!({"name": "other", "namespace": NAMESPACE});
    scene.apply(other).await;
    scene.write("zz-dev/hook.yaml", Some(HOOK));
    let mut set = fleet(&MEMBERS);
    let (sources, mut resolution) = release(&ground, form, 0);
    with_sources(&mut set, sources);
    apply(scene, &set).await;
    arrive(scene, "the beginning", &set, &resolution).await;
    let mut judge = Judge { known: BTreeMap::new(), seen: 0, starts: 0, releases: vec![resolution] };
    let mut found = judge.violations(scene.versions_since(0));
    let mut row = String::new();
    for (at, kind) in CHANGES.into_iter().enumerate() {
        let number = 10 * (at + 1);
        let (sources, begun) = release(&ground, form, number);
        with_sources(&mut set, sources);
        apply(scene, &set).await;
        let what = format!("{form:?}, {kind:?}");
        scene
            .until(&format!("{what}: an operation of the run"), |scene| {
                let application = &scene.applications()["zz-dev"];
                is_at(&begun, &revisions(&application["operation"]["sync"]))
                    && application["status"]["operationState"]["phase"] == "Running"
                    && application["status"]["operationState"]["operation"] == application["operation"]
            })
            .await;
        resolution = change(&ground, form, kind, &mut set, number + 1).unwrap_or(begun.clone());
        judge.releases.extend([begun, resolution.clone()]);
        apply(scene, &set).await;
        let before = (judge.starts, found.len());
        arrive(scene, &what, &set, &resolution).await;
        found.extend(judge.violations(scene.versions_since(judge.seen)));
        row +=
            &format!("  {kind:?} {} starts, {} violations", judge.starts - before.0, found.len() - before.1);
        assert!(judge.starts - before.0 > MEMBERS.len(), "{what}: the change came in the middle of a run");
    }
    println!("{form:?}:{row}");
    assert!(found.is_empty(), "{form:?}: {found:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_annotated_tag_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::AnnotatedTag).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_commit_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::ShortSha).await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::CommitSha).await;
}

#[tokio::test(start_paused = true)]
async fn a_branch_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::Branch).await;
}

#[tokio::test(start_paused = true)]
async fn a_range_of_tags_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::TagRange).await;
}

#[tokio::test(start_paused = true)]
async fn a_range_of_versions_of_a_chart_keeps_the_order_whatever_changes_in_an_operation() {
    try_all(Form::ChartRange).await;
}

#[tokio::test(start_paused = true)]
async fn several_sources_keep_the_order_whatever_changes_in_an_operation() {
    try_all(Form::SeveralWithRef).await;
}

#[test]
fn a_start_before_its_time_and_a_change_in_an_operation_are_seen() {
    let version = |revision: u64, name: &str, status: &str, operation: &str, project: &str| {
        let operation = (!operation.is_empty()).then(|| json!({"sync": {"revision": operation}}));
        let object = json!({
            "spec": {"project": project}, "operation": operation,
            "status": {"sync": {"status": status, "revision": "one"}, "health": {"status": "Healthy"}},
        });
        Version { revision, name: name.to_owned(), object: Some(object) }
    };
    let release = vec![BTreeSet::from(["one".to_owned(), "tag".to_owned()])];
    for (before, begins, changes, expected) in [
        (version(1, "zz-dev", "Synced", "", "p"), "tag", "p", 0),
        (version(1, "zz-dev", "OutOfSync", "", "p"), "one", "p", 1),
        (version(1, "zz-dev", "Synced", "one", "p"), "one", "p", 1),
        (version(1, "zz-dev", "Synced", "", "other"), "one", "p", 1),
        (version(1, "zz-dev", "Synced", "", "p"), "two", "p", 1),
        (version(1, "zz-dev", "Synced", "", "p"), "one", "other", 1),
    ] {
        let mut judge = Judge { known: BTreeMap::new(), seen: 0, starts: 0, releases: vec![release.clone()] };
        let begun = version(2, "aa-prod", "OutOfSync", begins, "p");
        let found =
            judge.violations(vec![before, begun, version(3, "aa-prod", "OutOfSync", begins, changes)]);
        assert_eq!(found.len(), expected, "{found:?}");
    }
}
