//! Applications as texts for people.

use baton_api::Application;
use baton_api::application_status::{
    HealthStatus, OperationState, ResourceResult, ResourceStatus, RevisionHistory, SyncStatus,
};
use baton_api::names::IN_CLUSTER_NAME;
use baton_api::source::Source;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::print;

/// What marks a resource whose deletion waits for a person's word.
const APPROVAL: &str = "needs approval";

pub(super) fn table(applications: &[Application], wide: bool) -> String {
    let mut headings = vec!["NAMESPACE", "NAME", "DESTINATION", "PROJECT", "SYNC", "HEALTH", "OPERATION"];
    if wide {
        headings.extend(["AUTO-SYNC", "REVISION", "REPO", "PATH", "MESSAGE"]);
    }
    let rows: Vec<Vec<String>> = applications.iter().map(|application| row(application, wide)).collect();
    print::table(&headings, &rows)
}

fn row(application: &Application, wide: bool) -> Vec<String> {
    let (metadata, status) = (&application.metadata, &application.status);
    let mut row = vec![
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
        destination(application),
        dash(&application.spec.project),
        dash(status.sync.status.as_str()),
        dash(status.health.status.as_str()),
        standing(application),
    ];
    if wide {
        let source = application.spec.effective_sources().first();
        row.extend([
            automation(application),
            short_revisions(&status.sync),
            source.map_or_else(String::new, |source| source.repo_url.clone()),
            source.map_or_else(String::new, place),
            first_message(application).replace('\n', " "),
        ]);
    }
    row
}

/// The whole of an Application, for one person who asks about it.
pub(super) fn described(application: &Application, namespace_shown: bool) -> String {
    let status = &application.status;
    let metadata = &application.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let full = match (&metadata.namespace, namespace_shown) {
        (Some(namespace), true) => format!("{namespace}/{name}"),
        _ => name.to_owned(),
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
    for condition in &status.conditions {
        lines.push(("Condition", format!("{}: {}", condition.kind, condition.message)));
    }
    let mut text = String::new();
    for (label, value) in lines {
        text.push_str(&format!("{:<13}{}\n", format!("{label}:"), value.replace('\n', "\n             ")));
    }
    if !status.resources.is_empty() {
        text.push('\n');
        text.push_str(&resources(application));
    }
    if let Some(waiting) = waiting(application) {
        text.push_str(&format!("\nNeeds approval (baton app confirm-deletion {name}): {waiting}\n"));
    }
    text
}

/// The resources of an Application, with what the last sync said of each.
pub(super) fn resources(application: &Application) -> String {
    let results = application
        .status
        .operation_state
        .as_ref()
        .and_then(|state| state.sync_result.as_ref())
        .map_or(&[][..], |result| result.resources.as_slice());
    let rows: Vec<Vec<String>> = application
        .status
        .resources
        .iter()
        .map(|resource| {
            let result = results.iter().find(|result| same(result, resource));
            vec![
                resource.group.clone(),
                resource.kind.clone(),
                resource.namespace.clone(),
                resource.name.clone(),
                dash(resource.status.as_str()),
                dash(resource.health.as_ref().map_or("", |health| health.status.as_str())),
                marks(resource),
                result.map_or_else(String::new, |result| result.message.replace('\n', " ")),
            ]
        })
        .collect();
    print::table(&["GROUP", "KIND", "NAMESPACE", "NAME", "SYNC", "HEALTH", "NOTE", "LAST SYNC"], &rows)
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
    if resource.requires_pruning {
        marks.push("to be pruned");
    }
    if resource.requires_deletion_approval {
        marks.push(APPROVAL);
    }
    marks.join(", ")
}

/// The resources whose deletion waits for a person's word.
pub(super) fn unapproved(application: &Application) -> Vec<&ResourceStatus> {
    application.status.resources.iter().filter(|resource| resource.requires_deletion_approval).collect()
}

/// What waits for a person's word before it is deleted, in words; none where nothing does.
///
/// Objects of other Applications, as in a namespace that goes, have no row here; the condition names them.
pub(super) fn waiting(application: &Application) -> Option<String> {
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
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            let sources =
                if entry.sources.is_empty() { std::slice::from_ref(&entry.source) } else { &entry.sources };
            let by = &entry.initiated_by;
            vec![
                entry.id.to_string(),
                moment(entry.deployed_at.as_ref()),
                if entry.revisions.is_empty() { entry.revision.clone() } else { entry.revisions.join(",") },
                sources.iter().map(|source| source.repo_url.clone()).collect::<Vec<_>>().join(","),
                if by.automated { "auto-sync".to_owned() } else { dash(&by.username) },
            ]
        })
        .collect();
    print::table(&["ID", "DEPLOYED", "REVISION", "REPO", "BY"], &rows)
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
        let rows: Vec<Vec<String>> = resources
            .iter()
            .map(|resource| {
                vec![
                    resource.group.clone(),
                    resource.kind.clone(),
                    resource.namespace.clone(),
                    resource.name.clone(),
                    outcome(resource).to_owned(),
                    resource.hook_type.clone(),
                    resource.message.replace('\n', " "),
                ]
            })
            .collect();
        text.push('\n');
        text.push_str(&print::table(
            &["GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HOOK", "MESSAGE"],
            &rows,
        ));
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
