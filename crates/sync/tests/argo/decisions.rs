//! Decisions on Applications.

use std::time::Duration;

use baton_api::application::{Application, ApplicationSpec, RetryStrategy};
use baton_api::application_status::{
    ApplicationCondition, OperationState, ResourceStatus, RevisionHistory, SyncStatus,
};
use baton_api::names::application::REFRESH_TIMESTAMP;
use baton_api::names::baton::COMPARED;
use baton_api::project::{AppProject, SyncWindow};
use baton_sync::conditions::{self, Finding};
use baton_sync::project::{DestinationCluster, ProjectRules, ScopedCluster};
use baton_sync::refresh::{Level, RefreshSettings};
use baton_sync::self_heal::SelfHealSettings;
use baton_sync::{auto_sync, history, normalize, refresh, retry, windows};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{compare, field, optional};

/// The Application of a case: what the case says of it, over one that is complete.
pub(crate) fn application(case: &Value) -> Application {
    let mut whole = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "shop", "namespace": "fake-argocd-ns", "uid": "app-uid"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.test/shop", "path": "."},
            "destination": {"namespace": "shop"},
        },
    });
    merge(&mut whole, case);
    let destination = &mut whole["spec"]["destination"];
    if destination.get("server").is_none() && destination.get("name").is_none() {
        destination["server"] = json!("https://cluster.test");
    }
    serde_json::from_value(whole).expect("an Application")
}

fn merge(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else { return };
    for (name, value) in from {
        match into.get_mut(name) {
            Some(there) if there.is_object() && value.is_object() => merge(there, value),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The rules of a project whose spec a case gives.
pub(crate) fn project(spec: Value) -> AppProject {
    let project = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": "fake-argocd-ns"},
        "spec": spec,
    });
    serde_json::from_value(project).expect("an AppProject")
}

fn time(case: &Value, name: &str) -> Option<Timestamp> {
    case[name].as_str().filter(|text| !text.is_empty()).map(|text| text.parse().expect("a time"))
}

#[test]
fn repositories_of_projects() {
    compare("project_sources", |case| {
        let rules = ProjectRules::new(&project(json!({"sourceRepos": case["sourceRepos"]})), &[], &[], &[]);
        json!(rules.permits_source(&field::<String>(case, "repoURL")))
    });
}

#[test]
fn destinations_of_projects() {
    compare("project_destinations", |case| {
        let scoped: bool = optional(case, "scoped");
        let spec = json!({
            "destinations": case["destinations"],
            "permitOnlyProjectScopedClusters": scoped,
        });
        let clusters: Vec<ScopedCluster> = optional::<Vec<String>>(case, "projectClusters")
            .into_iter()
            .map(|server| ScopedCluster { server, name: String::new(), namespaces: Vec::new() })
            .collect();
        let rules = ProjectRules::new(&project(spec), &clusters, &[], &[]);
        let (server, name): (String, String) = (field(case, "server"), field(case, "name"));
        let cluster = DestinationCluster { server: &server, name: &name };
        json!(rules.permits_destination(cluster, &field::<String>(case, "namespace")))
    });
}

#[test]
fn kinds_of_projects() {
    compare("project_kinds", |case| {
        let rules = ProjectRules::new(&project(case["spec"].clone()), &[], &[], &[]);
        let (group, kind, name): (String, String, String) =
            (field(case, "group"), field(case, "kind"), field(case, "name"));
        json!(rules.permits_kind(&group, &kind, &name, field(case, "namespaced")))
    });
}

#[test]
fn sync_windows() {
    compare("windows", |case| {
        let all: Vec<SyncWindow> = field(case, "windows");
        let application = application(&case["application"]);
        let matching = windows::matching(&all, &application);
        let index = |window: &SyncWindow| all.iter().position(|other| std::ptr::eq(other, window));
        let asker = windows::Asker { manual: optional(case, "manual"), started_at: time(case, "startedAt") };
        let now = time(case, "now").expect("a time");
        let verdict = windows::judge(&matching, asker, now);
        let mut answer = json!({
            "matched": matching.iter().filter_map(|window| index(window)).collect::<Vec<_>>(),
            "canSync": verdict.allowed,
        });
        if let Some(error) = verdict.error {
            answer["error"] = json!(error);
        } else {
            // Whether one is open shows in what it alone would decide.
            let open: Vec<usize> = matching
                .iter()
                .filter(|window| {
                    let alone = windows::judge(&[window], windows::Asker::default(), now);
                    alone.allowed == (window.kind == "allow")
                })
                .filter_map(|window| index(window))
                .collect();
            answer["active"] = json!(open);
        }
        answer
    });
}

#[test]
fn pauses_between_retries() {
    compare("retry", |case| {
        let strategy: RetryStrategy = field(case, "retry");
        match retry::pause(&strategy, field(case, "count")) {
            Ok(pause) => number(pause.as_secs_f64()),
            Err(error) => json!({"error": error.to_string()}),
        }
    });
}

#[test]
fn pauses_of_self_heal() {
    compare("self_heal", |case| {
        let settings = SelfHealSettings::default();
        let now = time(case, "now").expect("a time");
        number(settings.remaining(field(case, "attempts"), time(case, "finishedAt"), now).as_secs_f64())
    });
}

/// A number as YAML reads it: whole where it is.
fn number(seconds: f64) -> Value {
    if seconds.fract() == 0.0 { json!(seconds as i64) } else { json!(seconds) }
}

#[test]
fn history_of_syncs() {
    compare("history", |case| {
        let mut application = application(&Value::Null);
        application.spec.revision_history_limit = optional(case, "limit");
        let ids: Vec<i64> = field(case, "ids");
        application.status.history =
            ids.into_iter().map(|id| RevisionHistory { id, ..RevisionHistory::default() }).collect();
        let state: OperationState = serde_json::from_value(json!({
            "operation": {"sync": {}},
            "phase": "Succeeded",
            "startedAt": "2026-01-02T03:04:05Z",
            "syncResult": {"revision": "r", "source": {"repoURL": "https://git.test/shop"}},
        }))
        .expect("an operation's state");
        let history = history::after(&application, &state, Timestamp::UNIX_EPOCH).expect("an entry");
        json!(history.iter().map(|entry| entry.id).collect::<Vec<_>>())
    });
}

#[test]
fn merged_conditions() {
    compare("conditions", |case| {
        let existing: Vec<ApplicationCondition> = field(case, "existing");
        let new: Vec<ApplicationCondition> = field(case, "new");
        let known = |kind: &str| {
            let all = [&conditions::OF_COMPARISON[..], &conditions::OF_SPEC, &conditions::OF_AUTO_SYNC];
            let found = all.concat().into_iter().find(|known| *known == kind);
            found.unwrap_or_else(|| panic!("{kind} is a condition"))
        };
        let found: Vec<Finding> =
            new.into_iter().map(|new| Finding::new(known(&new.kind), new.message)).collect();
        let evaluated: Vec<String> = field(case, "evaluated");
        let evaluated: Vec<&str> = evaluated.iter().map(String::as_str).collect();
        let now = time(case, "now").expect("a time");
        json!(conditions::merge(&existing, &found, &evaluated, now))
    });
}

#[test]
fn automatic_syncs() {
    compare("auto_sync", |case| {
        let application = application(&case["application"]);
        let sync: SyncStatus = field(case, "sync");
        let resources: Vec<ResourceStatus> = field(case, "resources");
        let decision = auto_sync::decide(&auto_sync::Observation {
            application: &application,
            sync: &sync,
            resources: &resources,
            windows: &windows::judge(&[], windows::Asker::default(), Timestamp::UNIX_EPOCH),
            revisions_may_differ: case["revisionChanged"].as_bool().unwrap_or(true),
            self_heal: &SelfHealSettings::default(),
            now: time(case, "now").unwrap_or_else(|| "2026-01-02T03:04:05Z".parse().expect("a time")),
        });
        let mut answer = json!({});
        if let Some(operation) = decision.start {
            answer["operation"] = json!(operation);
        }
        if let Some(finding) = decision.conditions.into_iter().flatten().next() {
            answer["condition"] = json!({"type": finding.kind, "message": finding.message});
        }
        answer
    });
}

#[test]
fn refreshes() {
    compare("need_refresh", |case| {
        let application = application(&case["application"]);
        let settings = RefreshSettings {
            soft: Duration::from_secs(field(case, "soft")),
            hard: Duration::from_secs(field(case, "hard")),
            jitter: Duration::ZERO,
        };
        let levels = [Level::Tree, Level::Recent, Level::Latest, Level::Resolve];
        let asked = optional::<Option<usize>>(case, "asked").map(|level| levels[level]);
        let needed = refresh::needed(&application, asked, &settings, time(case, "now").expect("a time"));
        needed.map_or(Value::Null, |refresh| {
            let level = levels.iter().position(|level| *level == refresh.level);
            json!({"type": if refresh.hard { "hard" } else { "normal" }, "level": level})
        })
    });
}

#[test]
fn normal_specs() {
    compare("normalize", |case| {
        let spec: ApplicationSpec = field(case, "spec");
        json!(normalize::normalized(&spec).unwrap_or(spec))
    });
}

#[test]
fn permitted_specs() {
    let registered =
        [("https://localhost:6443", "minikube"), ("https://kubernetes.default.svc", "in-cluster")];
    compare("permissions", |case| {
        let mut application = application(&case["application"]);
        let spec = &case["application"]["spec"];
        if !spec["sources"].is_null() {
            application.spec.source = None;
        }
        if !spec["source"].is_null() {
            application.spec.source = Some(field(spec, "source"));
        }
        application.spec.destination.server = "https://localhost:6443".to_owned();
        if !case["destination"].is_null() {
            application.spec.destination = field(case, "destination");
        }
        let everything = json!({
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
        });
        let wanted = Some(case["project"].clone()).filter(|spec| !spec.is_null()).unwrap_or(everything);
        let rules = ProjectRules::new(&project(wanted), &[], &[], &[]);
        // Who resolves destinations is another part, and so are the words for what it cannot resolve.
        let destination = &application.spec.destination;
        let server = destination.server.trim_end_matches('/');
        let found = registered.iter().find(|(url, name)| {
            *url == server || (!destination.name.is_empty() && *name == destination.name)
        });
        let cluster = match found {
            Some((server, name)) if destination.server.is_empty() || destination.name.is_empty() => {
                Ok(DestinationCluster { server, name })
            }
            _ => Err(case["expect"][0].as_str().unwrap_or_default().trim_start_matches("InvalidSpecError: ")),
        };
        let problems =
            normalize::problems(&application, normalize::Project::Found(&rules), "fake-argocd-ns", cluster);
        json!(problems.iter().map(|found| format!("{}: {}", found.kind, found.message)).collect::<Vec<_>>())
    });
}

#[test]
fn served_refreshes() {
    compare("refresh_served", |case| {
        let with = |name: &str| application(&json!({"metadata": {"annotations": case[name]}}));
        let mut annotations = case["current"].clone();
        let patch = refresh::served(&with("read"), &with("current"));
        for operation in patch.iter().flat_map(|patch| patch.as_array().expect("a list")) {
            let path = operation["path"].as_str().expect("a path");
            let Some(name) = path.strip_prefix("/metadata/annotations/") else { continue };
            let there = annotations.as_object_mut().expect("a map");
            match operation["op"].as_str() {
                Some("test") => assert_eq!(there.get(&name.replace("~1", "/")), operation.get("value")),
                Some("remove") => drop(there.remove(&name.replace("~1", "/"))),
                // Ours says besides which request it has answered; Argo CD's says nothing.
                Some("add") => {
                    assert_eq!(name.replace("~1", "/"), COMPARED);
                    assert_eq!(operation["value"], case["read"][REFRESH_TIMESTAMP]);
                }
                _ => panic!("{operation}"),
            }
        }
        annotations
    });
}
