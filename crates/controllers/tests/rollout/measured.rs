//! What is measured while fleets are rolled out, and whether the dashboard and the alerts name what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::order::names;
use crate::phases::{deployed, phased, scene};
use crate::scene::{Scene, fleet, text};

const MEMBERS: [(&str, &str); 2] = [("aa-prod", "prod"), ("zz-dev", "dev")];
const APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// How names of metrics begin that are the controllers' own.
const OURS: [&str; 4] = ["argocd_", "baton_", "workqueue_", "rest_client_"];
/// What is measured by the notifications controller, which has no part in a rollout.
const ELSEWHERE: &str = "argocd_notifications_deliveries_total";

/// The value of a line, by its name and some of its labels.
fn value(metrics: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let mut lines = metrics.lines().filter(of_name);
    let line = lines.find(|line| labels.iter().all(|label| line.contains(label)))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A rollout that waits ten minutes for a person's approval. Tells what was measured while it waited, and afterwards.
async fn held_up() -> [String; 2] {
    let scene = Scene::new().await;
    let names = ["aa-prod", "zz-dev"];
    let guarded = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations:\n    \
                   argocd.argoproj.io/sync-options: Prune=confirm\n";
    scene.write("zz-dev/kept.yaml", Some(guarded));
    let commit = scene.commit(&names, "0");
    scene.apply(fleet(&MEMBERS)).await;
    scene.rolled_out(&commit).await;
    scene.write("zz-dev/kept.yaml", None);
    let commit = scene.commit(&names, "1");
    let waits = |scene: &Scene| text(&scene.rollout("fleet"), "/blockers/0/reason") == "ApprovalRequired";
    scene.until("the wait for a person", waits).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let meanwhile = scene.metrics().await;
    scene.annotate_application("zz-dev", APPROVED, &scene.now()).await;
    scene.rolled_out(&commit).await;
    [meanwhile, scene.metrics().await]
}

/// Everything that is measured of a rollout in phases.
async fn in_phases(scene: Scene) -> String {
    let commit = scene.commit(&names(), "0");
    scene.apply(phased(|_, _| {})).await;
    deployed(&scene, &commit).await;
    scene.metrics().await
}

#[tokio::test(start_paused = true)]
async fn a_wait_shows_while_it_lasts_and_is_measured_when_it_ends() {
    let Some(_) = scene().await else { return };
    let [meanwhile, after] = held_up().await;
    let set = [r#"namespace="argocd""#, r#"name="fleet""#];
    let of_set = |more: &'static str| [set[0], set[1], more];
    let state = |metrics: &str, state: &'static str| value(metrics, "baton_rollout_state", &of_set(state));
    assert_eq!(state(&meanwhile, r#"state="Progressing""#), Some(1.0), "{meanwhile}");
    assert_eq!(value(&meanwhile, "baton_rollout_step", &set), Some(1.0));
    let waiting = |metrics: &str| {
        value(metrics, "baton_rollout_waiting_since_seconds", &of_set(r#"reason="ApprovalRequired""#))
    };
    let asked = |metrics: &str| {
        value(metrics, "baton_approval_waiting_since_seconds", &[r#"name="zz-dev""#, r#"project="default""#])
    };
    let (waiting_since, asked_since) = (waiting(&meanwhile), asked(&meanwhile));
    assert!(waiting_since > Some(1_767_225_600.0), "a time after the beginning of 2026: {waiting_since:?}");
    assert!(asked_since > Some(1_767_225_600.0), "{asked_since:?}");
    assert_eq!((waiting(&after), asked(&after)), (None, None), "nobody waits any more: {after}");
    assert_eq!(state(&after, r#"state="Complete""#), Some(1.0));
    let applications = |state: &'static str| value(&after, "baton_rollout_applications", &of_set(state));
    assert_eq!(applications(r#"state="done""#), Some(2.0));

    let sum = |name: &str, labels: &[&str]| value(&after, name, labels).unwrap_or_default();
    let waited = sum("baton_rollout_wait_duration_seconds_sum", &[r#"reason="ApprovalRequired""#]);
    assert!((600.0..700.0).contains(&waited), "{waited}");
    let waited = sum("baton_approval_wait_seconds_sum", &[r#"of="prune""#]);
    assert!((600.0..700.0).contains(&waited), "{waited}");
    assert_eq!(value(&after, "baton_approval_wait_seconds_count", &[r#"of="prune""#]), Some(1.0));
    let runs = value(&after, "baton_rollout_run_duration_seconds_count", &of_set(r#"state="Complete""#));
    assert_eq!(runs, Some(2.0));
    let step = sum("baton_rollout_step_duration_seconds_sum", &of_set(r#"step="1""#));
    assert!((600.0..800.0).contains(&step), "{step} in {after}");
    let asked = value(&after, "rest_client_requests_total", &[r#"host="east.example.com""#, r#"code="200""#]);
    assert!(asked > Some(0.0), "members are asked too: {after}");
}

#[tokio::test(start_paused = true)]
async fn the_dashboard_and_the_alerts_name_what_is_measured() {
    let Some(scene) = scene().await else { return };
    let [meanwhile, after] = held_up().await;
    let metrics = [meanwhile, after, in_phases(scene).await].concat();
    let mut measured: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once(['{', ' ']).expect("a name");
        let labels = labels.split('"').step_by(2).map(|text| text.trim_matches([',', '=', '}', ' ']));
        measured.entry(name).or_default().extend(labels);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/observability");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a file");
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("JSON");
    let rules: Value = baton_grammar::yaml::first(&read("rules.yaml")).expect("YAML");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let panels = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let variables = dashboard["templating"]["list"].as_array().expect("variables").iter();
    let groups = rules["groups"].as_array().expect("groups").iter();
    let alerts = groups.flat_map(|group| group["rules"].as_array().expect("rules"));
    let mut asked: Vec<&str> = panels.chain(alerts).map(|one| text_of(&one["expr"])).collect();
    asked.extend(variables.filter(|one| one["type"] == "query").map(|one| text_of(&one["query"])));
    let mut named = BTreeSet::new();
    for expression in asked {
        let names = words(expression).filter(|word| OURS.iter().any(|begin| word.starts_with(begin)));
        let names: Vec<&str> = names.collect();
        assert!(!names.is_empty(), "{expression} asks for nothing of ours");
        for name in names.iter().filter(|name| **name != ELSEWHERE) {
            let labels = measured.get(name).unwrap_or_else(|| panic!("nothing measures {name}"));
            for label in labels_of(expression) {
                assert!(labels.contains(label), "{name} has no label {label}, only {labels:?}");
            }
        }
        named.extend(names);
    }
    assert!(named.len() > 20, "only {named:?}");
    let page = std::fs::read_to_string(root.join("../../docs/observability.md")).expect("a page");
    let told = told_of(&page);
    for (name, told_labels) in &told {
        let parts = ["", "_bucket"].map(|end| format!("{name}{end}"));
        let labels = parts.iter().find_map(|name| measured.get(name.as_str()));
        let labels = labels.unwrap_or_else(|| panic!("the page tells of {name}, and nothing measures it"));
        for label in told_labels {
            assert!(labels.contains(label.as_str()), "{name} has no label {label}, only {labels:?}");
        }
    }
    assert!(told.len() > 25, "only {told:?}");
    let is_told = |name: &str| name == ELSEWHERE || told.keys().any(|known| name.starts_with(known));
    let untold: Vec<&&str> = named.iter().filter(|name| !is_told(name)).collect();
    assert_eq!(untold, [&""; 0], "the page does not tell of these");
    let counts = ["baton_hook_attempts_total", "baton_phase_state", "baton_rollout_lists_total"];
    assert!(counts.iter().all(|name| named.contains(name)), "{named:?}");
}

/// The metrics and labels that the page tells of, but for those of the notifications controller.
fn told_of(page: &str) -> BTreeMap<String, Vec<String>> {
    let (_, section) = page.split_once("\n## Metrics\n").expect("a section on metrics");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut told = BTreeMap::new();
    for row in section.lines().filter_map(|line| line.strip_prefix("| `")) {
        let mut cells = row.split('|').map(str::trim);
        let names = cells.next().unwrap_or_default();
        let labels = cells.next().unwrap_or_default();
        let labels: Vec<String> =
            labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        for name in names.split('`').step_by(2).filter(|name| name.contains('_')) {
            // Of several in one cell the beginning stands once.
            let name = name.replace('…', "baton_rollout");
            if !name.starts_with("argocd_notifications_") {
                told.insert(name, labels.clone());
            }
        }
    }
    told
}

#[test]
fn metrics_are_read_off_the_page() {
    let page =
        "\n## Metrics\n| `a_b` | x, y | words |\n| `c_total`, `…_d`, … | | `e_f` |\n## Next\n| `g_h` | | |\n";
    let none: Vec<String> = Vec::new();
    let expected =
        [("a_b", vec!["x".to_owned(), "y".to_owned()]), ("baton_rollout_d", none.clone()), ("c_total", none)];
    assert_eq!(told_of(page), expected.map(|(name, labels)| (name.to_owned(), labels)).into());
}

fn text_of(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
}

/// The labels that an expression selects or groups by, but for those of Prometheus' own.
fn labels_of(expression: &str) -> BTreeSet<&str> {
    let grouped = expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    let grouped = grouped.flat_map(|(labels, _)| labels.split(',').map(str::trim));
    let selected = expression.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let selected = selected.flat_map(|(matchers, _)| {
        matchers.split("\",").map(|matcher| matcher.split(['=', '!']).next().unwrap_or_default().trim())
    });
    grouped.chain(selected).collect()
}

#[test]
fn labels_are_read_off_expressions() {
    let expression =
        r#"sum by (le, step) (rate(baton_x_bucket{namespace=~"$a",name!~"b|c"}[5m])) / baton_y{z="1"}"#;
    assert_eq!(labels_of(expression), BTreeSet::from(["le", "step", "namespace", "name", "z"]));
    assert_eq!(value("a_b{c=\"d\"} 3\na{c=\"d\"} 2.5\n", "a", &["c=\"d\""]), Some(2.5));
}
