//! The three scenarios of the proposal on out-of-order syncs, fifty changes each, with real git: one repository, a changed
//! template, and many repositories that change at once. Whether order was kept is read off the API's history.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{REPOSITORY, SECOND, Scene, fleet, text};

const CHANGES: usize = 50;
const MEMBERS: [(&str, &str); 5] =
    [("aa-prod", "prod"), ("bb-prod", "prod"), ("mm-test", "test"), ("yy-dev", "dev"), ("zz-dev", "dev")];

fn step(name: &str) -> usize {
    let envs = ["dev", "test", "prod"];
    envs.iter().position(|env| name.ends_with(env)).expect("a step")
}

fn names() -> Vec<&'static str> {
    MEMBERS.iter().map(|(name, _)| *name).collect()
}

/// What each Application is to report.
type Target = BTreeMap<&'static str, Vec<String>>;

fn reported(application: &Value) -> Vec<String> {
    let sync = &application["status"]["sync"];
    match sync["revisions"].as_array().filter(|revisions| !revisions.is_empty()) {
        Some(revisions) => {
            revisions.iter().map(|revision| revision.as_str().unwrap_or_default().to_owned()).collect()
        }
        None => vec![text(application, "/status/sync/revision")],
    }
}

fn arrived(application: &Value, target: &[String], round: usize) -> bool {
    application["status"]["sync"]["status"] == "Synced"
        && application["status"]["health"]["status"] == "Healthy"
        && application["operation"].is_null()
        && reported(application) == target
        && text(application, "/spec/info/0/value") == round.to_string()
}

/// Reads the history, version by version.
#[derive(Default)]
struct Judge {
    known: BTreeMap<String, Value>,
    seen: u64,
    starts: usize,
}

impl Judge {
    /// Starts since the last look that came before an earlier step was where it is to be.
    fn violations(&mut self, scene: &Scene, target: &Target, round: usize) -> Vec<String> {
        let mut violations = Vec::new();
        for version in scene.versions_since(self.seen) {
            self.seen = version.revision;
            let Some(now) = version.object else {
                self.known.remove(&version.name);
                continue;
            };
            let idle = self.known.get(&version.name).is_none_or(|before| before["operation"].is_null());
            if idle && !now["operation"].is_null() {
                self.starts += 1;
                let earlier = self.known.iter().filter(|(name, _)| step(name) < step(&version.name));
                for (name, other) in
                    earlier.filter(|(name, other)| !arrived(other, &target[name.as_str()], round))
                {
                    let sync = &other["status"]["sync"];
                    violations.push(format!("{} began while {name} was {sync:#}", version.name));
                }
            }
            self.known.insert(version.name, now);
        }
        violations
    }
}

/// Waits until all is where it is to be, and judges how it came there.
async fn round(scene: &Scene, judge: &mut Judge, target: &Target, number: usize) {
    scene
        .until(&format!("change {number}"), |scene| {
            let all = scene.applications();
            scene.rollout_state() == "Complete"
                && all.len() == MEMBERS.len()
                && all.iter().all(|(name, one)| arrived(one, &target[name.as_str()], number_of(one)))
                && all.values().all(|one| number_of(one) == number)
        })
        .await;
    let violations = judge.violations(scene, target, number);
    assert!(violations.is_empty(), "change {number}: {violations:#?}");
}

fn number_of(application: &Value) -> usize {
    text(application, "/spec/info/0/value").parse().unwrap_or(usize::MAX)
}

/// The set with a number in its template.
fn numbered(mut set: Value, number: usize) -> Value {
    set["spec"]["template"]["spec"]["info"] = json!([{"name": "change", "value": number.to_string()}]);
    set
}

/// Somebody looks at an Application of a late step right after a change, so that it notices first.
async fn notice_late_steps_first(scene: &Scene, number: usize) {
    if number.is_multiple_of(2) {
        scene.ask_for_refresh("aa-prod").await;
    }
    if number.is_multiple_of(3) {
        scene.ask_for_refresh("mm-test").await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_repository() {
    let scene = Scene::new().await;
    let same =
        |commit: String| -> Target { names().into_iter().map(|name| (name, vec![commit.clone()])).collect() };
    let target = same(scene.commit(&names(), "0"));
    scene.apply(numbered(fleet(&MEMBERS), 0)).await;
    let mut judge = Judge::default();
    round(&scene, &mut judge, &target, 0).await;
    for number in 1..=CHANGES {
        let target = same(scene.commit(&names(), &number.to_string()));
        notice_late_steps_first(&scene, number).await;
        round(&scene, &mut judge, &target, 0).await;
    }
    println!("one repository: {CHANGES} commits, {} starts, 0 violations", judge.starts);
    assert_eq!(judge.starts, (CHANGES + 1) * MEMBERS.len());
}

#[tokio::test(start_paused = true)]
async fn a_changed_template() {
    let scene = Scene::new().await;
    let commit = scene.commit(&names(), "0");
    let target: Target = names().into_iter().map(|name| (name, vec![commit.clone()])).collect();
    scene.apply(numbered(fleet(&MEMBERS), 0)).await;
    let mut judge = Judge::default();
    round(&scene, &mut judge, &target, 0).await;
    for number in 1..=CHANGES {
        let mut set = numbered(fleet(&MEMBERS), number);
        if number.is_multiple_of(2) {
            // A field that a comparison names, beside one that it does not.
            set["spec"]["template"]["spec"]["source"]["directory"] =
                json!({"exclude": format!("none-{number}.yaml")});
        }
        scene.apply(set).await;
        notice_late_steps_first(&scene, number).await;
        round(&scene, &mut judge, &target, number).await;
    }
    println!("a changed template: {CHANGES} changes, {} starts, 0 violations", judge.starts);
}

#[tokio::test(start_paused = true)]
async fn many_repositories_at_once() {
    let scene = Scene::new().await;
    let (first, release, second) = (
        scene.commit(&names(), "0"),
        scene.commit_on("release", &names(), "0"),
        scene.commit_second(&["yy-dev", "mm-more"], "0"),
    );
    let target = |first: &str, release: &str, second: &str| -> Target {
        let one = |commit: &str| vec![commit.to_owned()];
        BTreeMap::from([
            ("aa-prod", one(first)),
            ("bb-prod", one(release)),
            ("mm-test", vec![first.to_owned(), second.to_owned()]),
            ("yy-dev", one(second)),
            ("zz-dev", one(release)),
        ])
    };
    scene.apply(numbered(mixed(), 0)).await;
    let mut judge = Judge::default();
    round(&scene, &mut judge, &target(&first, &release, &second), 0).await;
    for number in 1..=CHANGES {
        let value = number.to_string();
        let (first, release, second) = (
            scene.commit(&names(), &value),
            scene.commit_on("release", &names(), &value),
            scene.commit_second(&["yy-dev", "mm-more"], &value),
        );
        notice_late_steps_first(&scene, number).await;
        round(&scene, &mut judge, &target(&first, &release, &second), 0).await;
    }
    println!(
        "two repositories, two branches: {CHANGES} times three commits, {} starts, 0 violations",
        judge.starts
    );
    assert_eq!(judge.starts, (CHANGES + 1) * MEMBERS.len());
}

/// Applications of two repositories and two branches, and one of both repositories.
fn mixed() -> Value {
    let source = |name: &str| match name {
        "aa-prod" => (REPOSITORY, "main"),
        "bb-prod" | "zz-dev" => (REPOSITORY, "release"),
        _ => (SECOND, "main"),
    };
    let elements: Vec<Value> = MEMBERS
        .iter()
        .map(
            |(name, env)| json!({"name": name, "env": env, "repo": source(name).0, "branch": source(name).1}),
        )
        .collect();
    let mut set = fleet(&MEMBERS);
    set["spec"]["goTemplate"] = true.into();
    set["spec"]["generators"] = json!([{"list": {"elements": elements}}]);
    let template = &mut set["spec"]["template"];
    template["metadata"] = json!({"name": "{{ .name }}", "labels": {"env": "{{ .env }}"}});
    template["spec"]["source"] =
        json!({"repoURL": "{{ .repo }}", "path": "{{ .name }}", "targetRevision": "{{ .branch }}"});
    set["spec"]["templatePatch"] = format!(
        "{{{{- if eq .name \"mm-test\" }}}}\nspec:\n  source: null\n  sources:\n  - {{repoURL: {REPOSITORY}, path: mm-test, \
         targetRevision: main}}\n  - {{repoURL: {SECOND}, path: mm-more, targetRevision: main}}\n{{{{- end }}}}\n"
    )
    .into();
    set
}
