//! Applications as texts for people.

use baton_api::Application;
use baton_api::application_status::{
    HealthStatus, OperationState, ResourceResult, ResourceStatus, RevisionHistory, SyncStatus,
};
use baton_api::names::IN_CLUSTER_NAME;
use baton_api::object::ResourceKey;
use baton_api::source::Source;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::listing::{self, Column};

/// What marks a resource whose deletion waits for a person's word.
const APPROVAL: &str = "needs approval";

/// An Application, as it was read and as it reads.
pub(super) type Shown = (Value, Application);

/// What a table shows of Applications.
pub(super) const COLUMNS: &[Column<Shown>] = &[
    Column::new("NAMESPACE", |(_, one)| one.metadata.namespace.clone().unwrap_or_default()),
    Column::new("NAME", |(_, one)| one.metadata.name.clone().unwrap_or_default()),
    Column::new("DESTINATION", |(_, one)| destination(one)),
    Column::new("PROJECT", |(_, one)| dash(&one.spec.project)),
    Column::new("SYNC", |(_, one)| dash(one.status.sync.status.as_str())),
    Column::new("HEALTH", |(_, one)| dash(one.status.health.status.as_str())),
    Column::new("OPERATION", |(_, one)| standing(one)),
    Column::wide("AUTO-SYNC", |(_, one)| automation(one)),
    Column::wide("REVISION", |(_, one)| short_revisions(&one.status.sync)),
    Column::wide("REPO", |(_, one)| first_source(one).map_or_else(String::new, |one| one.repo_url.clone())),
    Column::wide("PATH", |(_, one)| first_source(one).map_or_else(String::new, place)),
    Column::wide("MESSAGE", |(_, one)| first_message(one)),
];

/// A resource, and what the last sync said of it.
type Row<'a> = (&'a ResourceStatus, Option<&'a ResourceResult>);

fn first_source(application: &Application) -> Option<&Source> {
    application.spec.effective_sources().first()
}

/// The whole of an Application, for one person who asks about it; `wide` with what is seldom asked for.
pub(super) fn described(application: &Application, wide: bool) -> String {
    let status = &application.status;
    let metadata = &application.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let full = match &metadata.namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    let mut lines = vec![
        ("Name", full),
        ("Project", dash(&application.spec.project)),
        ("Destination", destination(application)),
        ("Namespace", dash(&application.spec.destination.namespace)),
    ];
    for source in application.spec.effective_sources() {
        lines.push(("Source", described_source(source)));
    }
    lines.push(("Auto-sync", automation(application)));
    lines.push(("Sync", with_note(status.sync.status.as_str(), &short_revisions(&status.sync))));
    lines.push(("Health", with_note(status.health.status.as_str(), &status.health.message)));
    if let Some(deleted) = &metadata.deletion_timestamp {
        lines.push(("Deleting", format!("since {}", moment(Some(deleted)))));
    }
    if let Some(state) = &status.operation_state {
        lines.push(("Operation", with_note(state.phase.as_str(), &state.message)));
    }
    if wide {
        lines.extend(details(application));
    }
    for condition in &status.conditions {
        lines.push(("Condition", format!("{}: {}", condition.kind, condition.message)));
    }
    let mut text = String::new();
    for (label, value) in lines {
        text.push_str(&format!("{:<13}{}\n", format!("{label}:"), value.replace('\n', "\n             ")));
    }
    if !status.resources.is_empty() {
        text.push('\n');
        text.push_str(&resources(application, wide));
    }
    if let Some(waiting) = waiting(application) {
        text.push_str(&format!("\nNeeds approval (baton app confirm-deletion {name}): {waiting}\n"));
    }
    text
}

/// What is told of an Application where there is room for it.
fn details(application: &Application) -> Vec<(&'static str, String)> {
    let status = &application.status;
    let revisions = match status.sync.revisions.as_slice() {
        [] => status.sync.revision.clone(),
        several => several.join(","),
    };
    let mut lines = vec![("Revision", dash(&revisions)), ("Compared", moment(status.reconciled_at.as_ref()))];
    if let Some(state) = &status.operation_state {
        let by = &state.operation.initiated_by;
        lines.push(("Started", moment(state.started_at.as_ref())));
        lines.push(("Finished", moment(state.finished_at.as_ref())));
        lines.push(("By", if by.automated { "auto-sync".to_owned() } else { dash(&by.username) }));
    }
    let finalizers = application.metadata.finalizers.as_deref().unwrap_or_default();
    lines.push(("Finalizers", dash(&finalizers.join(", "))));
    lines.extend(status.summary.images.iter().map(|image| ("Image", image.clone())));
    lines
}

/// The resources of an Application, with what the last sync said of each; `wide` with their waves and versions, and
/// why they are as healthy as they are.
pub(super) fn resources(application: &Application, wide: bool) -> String {
    let results = application
        .status
        .operation_state
        .as_ref()
        .and_then(|state| state.sync_result.as_ref())
        .map_or(&[][..], |result| result.resources.as_slice());
    let rows: Vec<Row<'_>> = application
        .status
        .resources
        .iter()
        .map(|resource| (resource, results.iter().find(|result| same(result, resource))))
        .collect();
    let columns: [Column<Row<'_>>; 11] = [
        Column::new("GROUP", |(resource, _)| resource.group.clone()),
        Column::new("KIND", |(resource, _)| resource.kind.clone()),
        Column::new("NAMESPACE", |(resource, _)| resource.namespace.clone()),
        Column::new("NAME", |(resource, _)| resource.name.clone()),
        Column::new("SYNC", |(resource, _)| dash(resource.status.as_str())),
        Column::new("HEALTH", |(resource, _)| dash(&health(resource.health.as_ref()).0)),
        Column::new("NOTE", |(resource, _)| marks(resource)),
        Column::new("LAST SYNC", |(_, result)| result.map_or_else(String::new, |told| told.message.clone())),
        Column::wide("VERSION", |(resource, _)| resource.version.clone()),
        Column::wide("WAVE", |(resource, _)| resource.sync_wave.to_string()),
        Column::wide("MESSAGE", |(resource, _)| health(resource.health.as_ref()).1),
    ];
    listing::table(&columns, &rows, wide)
}

fn same(result: &ResourceResult, resource: &ResourceStatus) -> bool {
    result.group == resource.group
        && result.kind == resource.kind
        && result.namespace == resource.namespace
        && result.name == resource.name
}

/// What a person should know of a resource beside its state.
pub(super) fn marks(resource: &ResourceStatus) -> String {
    let mut marks = Vec::new();
    if resource.hook {
        marks.push("hook");
    }
    // Hooks are no part of what git describes, so their absence there means nothing.
    if resource.requires_pruning && !resource.hook {
        marks.push("to be pruned");
    }
    if resource.requires_deletion_approval {
        marks.push(APPROVAL);
    }
    marks.join(", ")
}

/// What names a resource.
pub(super) fn key(row: &ResourceStatus) -> ResourceKey {
    let [group, kind, namespace, name] = [&row.group, &row.kind, &row.namespace, &row.name].map(Clone::clone);
    ResourceKey { group, kind, namespace, name }
}

/// The resources whose deletion waits for a person's word.
pub(super) fn unapproved(application: &Application) -> Vec<&ResourceStatus> {
    application.status.resources.iter().filter(|resource| resource.requires_deletion_approval).collect()
}

/// What waits for a person's word before it is deleted, in words; none where nothing does. What a sync yet to come will
/// ask for does not wait: there is nothing to approve.
///
/// Objects of other Applications, as in a namespace that goes, have no row here; the condition names them.
pub(super) fn waiting(application: &Application) -> Option<String> {
    let state = application.status.operation_state.as_ref();
    let operating = application.operation.is_some() && state.is_some_and(|state| !state.phase.is_completed());
    if !operating && application.metadata.deletion_timestamp.is_none() {
        return None;
    }
    let rows: Vec<String> = unapproved(application).into_iter().map(resource_name).collect();
    if !rows.is_empty() {
        return Some(rows.join(", "));
    }
    let conditions = &application.status.conditions;
    let asks = conditions.iter().find(|condition| condition.kind == "DeletionApprovalRequiredInfo");
    asks.map(|condition| condition.message.clone())
}

pub(super) fn resource_name(resource: &ResourceStatus) -> String {
    let place = match resource.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    format!("{}/{} {place}{}", resource.group, resource.kind, resource.name)
        .trim_start_matches('/')
        .to_owned()
}

pub(super) fn history(entries: &[RevisionHistory]) -> String {
    let columns: [Column<RevisionHistory>; 5] = [
        Column::new("ID", |entry| entry.id.to_string()),
        Column::new("DEPLOYED", |entry| moment(entry.deployed_at.as_ref())),
        Column::new("REVISION", |entry| match entry.revisions.is_empty() {
            true => entry.revision.clone(),
            false => entry.revisions.join(","),
        }),
        Column::new("REPO", |entry| {
            let several = !entry.sources.is_empty();
            let sources = if several { &entry.sources[..] } else { std::slice::from_ref(&entry.source) };
            sources.iter().map(|source| source.repo_url.clone()).collect::<Vec<_>>().join(",")
        }),
        Column::new("BY", |entry| match entry.initiated_by.automated {
            true => "auto-sync".to_owned(),
            false => dash(&entry.initiated_by.username),
        }),
    ];
    listing::table(&columns, entries, false)
}

/// What came of an operation.
pub(super) fn operation(name: &str, state: &OperationState) -> String {
    let result = state.sync_result.as_ref();
    let revision = result.map_or_else(String::new, |result| {
        if result.revisions.is_empty() { result.revision.clone() } else { result.revisions.join(",") }
    });
    let mut lines = vec![
        ("Name", name.to_owned()),
        ("Revision", dash(&revision)),
        ("Phase", state.phase.as_str().to_owned()),
        ("Started", moment(state.started_at.as_ref())),
        ("Finished", moment(state.finished_at.as_ref())),
        ("Message", state.message.clone()),
    ];
    if state.retry_count > 0 {
        lines.push(("Retries", state.retry_count.to_string()));
    }
    let mut text: String = lines
        .into_iter()
        .map(|(label, value)| {
            format!("{:<11}{}\n", format!("{label}:"), value.replace('\n', "\n           "))
        })
        .collect();
    let resources = result.map_or(&[][..], |result| result.resources.as_slice());
    if !resources.is_empty() {
        let columns: [Column<ResourceResult>; 7] = [
            Column::new("GROUP", |resource| resource.group.clone()),
            Column::new("KIND", |resource| resource.kind.clone()),
            Column::new("NAMESPACE", |resource| resource.namespace.clone()),
            Column::new("NAME", |resource| resource.name.clone()),
            Column::new("STATUS", |resource| outcome(resource).to_owned()),
            Column::new("HOOK", |resource| resource.hook_type.clone()),
            Column::new("MESSAGE", |resource| resource.message.clone()),
        ];
        text.push('\n');
        text.push_str(&listing::table(&columns, resources, false));
    }
    text
}

/// How a resource fared in a sync, in one word.
pub(super) fn outcome(result: &ResourceResult) -> &str {
    if !result.hook_type.is_empty() && !result.hook_phase.is_unset() {
        result.hook_phase.as_str()
    } else {
        result.status.as_str()
    }
}

/// What runs or waits on an Application, in few words.
fn standing(application: &Application) -> String {
    if waiting(application).is_some() {
        return APPROVAL.to_owned();
    }
    if application.metadata.deletion_timestamp.is_some() {
        return "Deleting".to_owned();
    }
    match &application.status.operation_state {
        Some(state) => dash(state.phase.as_str()),
        None if application.operation.is_some() => "Requested".to_owned(),
        None => "-".to_owned(),
    }
}

fn first_message(application: &Application) -> String {
    let condition = application.status.conditions.first().map(|condition| condition.message.clone());
    let operation = || {
        application
            .status
            .operation_state
            .as_ref()
            .filter(|state| !matches!(state.phase.as_str(), "Succeeded"))
            .map(|state| state.message.clone())
    };
    condition.or_else(operation).unwrap_or_default()
}

fn destination(application: &Application) -> String {
    let destination = &application.spec.destination;
    match (destination.name.as_str(), destination.server.as_str()) {
        ("", baton_api::names::IN_CLUSTER_SERVER) => IN_CLUSTER_NAME.to_owned(),
        ("", server) => dash(server),
        (name, _) => name.to_owned(),
    }
}

fn automation(application: &Application) -> String {
    if !application.spec.auto_syncs() {
        return "off".to_owned();
    }
    let automated = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    let mut words = vec!["on"];
    if automated.is_some_and(|automated| automated.prune == Some(true)) {
        words.push("prune");
    }
    if automated.is_some_and(|automated| automated.self_heal == Some(true)) {
        words.push("self-heal");
    }
    words.join(", ")
}

fn described_source(source: &Source) -> String {
    let revision = if source.target_revision.is_empty() { "HEAD" } else { &source.target_revision };
    let place = match place(source).as_str() {
        "" => String::new(),
        place => format!(" {place}"),
    };
    let reference = match source.reference.as_str() {
        "" => String::new(),
        reference => format!(" (ref {reference})"),
    };
    format!("{}{place} at {revision}{reference}", source.repo_url)
}

fn place(source: &Source) -> String {
    if source.chart.is_empty() { source.path.clone() } else { format!("chart {}", source.chart) }
}

fn short_revisions(sync: &SyncStatus) -> String {
    let short = |revision: &String| {
        let hexadecimal = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hexadecimal { revision[..7].to_owned() } else { revision.clone() }
    };
    if sync.revisions.is_empty() {
        short(&sync.revision)
    } else {
        sync.revisions.iter().map(short).collect::<Vec<_>>().join(",")
    }
}

fn with_note(word: &str, note: &str) -> String {
    if note.is_empty() { dash(word) } else { format!("{} ({note})", dash(word)) }
}

/// The health of an object in one word and its message.
pub(super) fn health(health: Option<&HealthStatus>) -> (String, String) {
    health.map_or_else(Default::default, |health| (health.status.as_str().to_owned(), health.message.clone()))
}

fn moment(time: Option<&Time>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.0.to_string())
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn application(change: impl FnOnce(&mut Value)) -> Application {
        let mut object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd"},
            "spec": {"project": "default", "destination": {"name": "east", "namespace": "shop"}},
            "status": {
                "sync": {"status": "OutOfSync", "revision": "v1"},
                "resources": [{
                    "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "precious", "syncWave": 7,
                    "requiresPruning": true, "requiresDeletionApproval": true,
                    "health": {"status": "Degraded", "message": "out of sorts"},
                }],
            },
        });
        change(&mut object);
        serde_json::from_value(object).expect("an Application")
    }

    #[test]
    fn a_person_is_asked_only_while_something_waits() {
        let hint = "confirm-deletion web): ConfigMap shop/precious";
        let state = |phase: &str| json!({"phase": phase, "operation": {"sync": {}}, "startedAt": "2026-01-01T00:00:00Z"});
        let running = application(|object| {
            object["operation"] = json!({"sync": {}});
            object["status"]["operationState"] = state("Running");
        });
        let going = application(|object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        for waits in [running, going] {
            assert!(described(&waits, false).contains(hint));
        }
        let ended = application(|object| object["status"]["operationState"] = state("Succeeded"));
        for idle in [application(|_| {}), ended] {
            let shown = described(&idle, false);
            assert!(!shown.contains(hint), "{shown}");
            assert!(shown.contains("to be pruned, needs approval"), "the mark stays: {shown}");
        }
    }

    #[test]
    fn wide_tells_more() {
        let web = application(|object| {
            object["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        });
        let (narrow, wide) = (described(&web, false), described(&web, true));
        for more in ["Revision:", "Finalizers:", "WAVE", "out of sorts"] {
            assert!(wide.contains(more) && !narrow.contains(more), "{more}: {wide}");
        }
    }

    #[test]
    fn a_hook_is_not_to_be_pruned() {
        let row = |hook| ResourceStatus { hook, requires_pruning: true, ..ResourceStatus::default() };
        assert_eq!((marks(&row(true)), marks(&row(false))), ("hook".to_owned(), "to be pruned".to_owned()));
    }
}
