//! Argo CD's own answers to the same questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_grammar::yaml;
use baton_manifests::Settings;
use serde::Deserialize;
use serde_json::Value;

use crate::kustomize::recent_kustomize;
use crate::support::{Repo, URL, World, source, tool};

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    app: Option<String>,
    source: Value,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    wide: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    says: String,
    /// Whether an old Kustomize can do it too.
    #[serde(default)]
    old: bool,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    objects: Vec<Value>,
}

fn cases(questions: &str, answers: &str) -> Vec<(Case, Answer)> {
    let questions = yaml::first(questions).expect("YAML");
    let cases: Vec<Case> = serde_json::from_value(questions).expect("cases");
    let mut answers: BTreeMap<String, Answer> = serde_json::from_str(answers).expect("answers");
    let answered = |case: Case| {
        let answer = answers.remove(&case.name).expect("an answer to each question");
        (case, answer)
    };
    cases.into_iter().map(answered).collect()
}

async fn check(case: &Case, answer: &Answer, change: impl FnOnce(&mut Settings)) {
    let repo = Repo::new();
    for (path, content) in &case.files {
        repo.write(path, content);
    }
    for (path, content) in &case.wide {
        let units = std::iter::once(0xfeff).chain(content.encode_utf16());
        repo.write(path, units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    }
    for (path, target) in &case.links {
        repo.link(path, target);
    }
    repo.commit();
    let world = World::with(&[(URL, &repo)], change);
    let sources = [source(case.source.clone())];
    let app = case.app.clone().unwrap_or_else(|| "shop".to_owned());
    let rendered = world.ask(&sources, |request| request.instance = app.leak()).await;
    match (rendered, &answer.error) {
        (Ok(rendered), None) => {
            let objects: Vec<Value> = rendered.objects.iter().map(Arc::as_ref).cloned().collect();
            assert_eq!(objects, answer.objects, "{}", case.name);
            assert_eq!(rendered.source_types[0].as_str(), answer.r#type, "{}", case.name);
        }
        (Err(ours), Some(theirs)) => {
            let ours = ours.to_string();
            assert!(!case.says.is_empty(), "{}: {theirs}", case.name);
            assert!(theirs.contains(&case.says), "{}: {theirs}", case.name);
            assert!(ours.contains(&case.says), "{}: {ours}", case.name);
        }
        (Ok(_), Some(theirs)) => panic!("{}: Argo CD says {theirs}", case.name),
        (Err(ours), None) => panic!("{}: {ours}", case.name),
    }
}

#[tokio::test]
async fn directories_give_the_objects_argo_cd_gives() {
    let cases = cases(include_str!("../argo/directories.yaml"), include_str!("../argo/directories.json"));
    assert!(cases.len() >= 50, "{} cases", cases.len());
    for (case, answer) in &cases {
        check(case, answer, |_| {}).await;
    }
}

#[tokio::test]
async fn kustomizations_give_the_objects_argo_cd_gives() {
    let cases = cases(include_str!("../argo/kustomize.yaml"), include_str!("../argo/kustomize.json"));
    assert!(cases.len() >= 25, "{} cases", cases.len());
    let recent = recent_kustomize();
    for (case, answer) in &cases {
        check(case, answer, |settings| settings.kustomize.clone_from(&recent)).await;
    }
    // The one of the machine, where it is another.
    let of_old = cases.iter().filter(|(case, _)| recent.is_some() && case.old);
    for (case, answer) in of_old {
        check(case, answer, |_| {}).await;
    }
}

#[tokio::test]
async fn charts_give_the_objects_argo_cd_gives() {
    let cases = cases(include_str!("../argo/helm.yaml"), include_str!("../argo/helm.json"));
    assert!(cases.len() >= 20, "{} cases", cases.len());
    let helm = tool("helm");
    for (case, answer) in &cases {
        check(case, answer, |settings| settings.helm.clone_from(&helm)).await;
    }
}
