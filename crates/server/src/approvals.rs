//! What waits for a person: prunes, deletions, mass deletions that the fuse holds, phases that stopped. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_api::application_status::ResourceStatus;
use baton_api::conditions::application::DELETION_APPROVAL_REQUIRED_INFO;
use baton_api::names::baton::DELETION_ASKED_BY;
use baton_api::object::ResourceKey;
use baton_api::phase_status::{GeneratorPhases, PhaseState, PhaseStatus};
use baton_api::{Application, ApplicationSet};
use baton_phases::{Ask, refusal};
use baton_rollout::fuse;
use baton_sync::approval;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::rollouts::action::held;

/// Kinds whose deletion takes more with it than themselves.
const GRAVE: [(&str, &str); 7] = [
    ("", "Namespace"),
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("argoproj.io", "Application"),
    ("argoproj.io", "ApplicationSet"),
    ("apps", "StatefulSet"),
];

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Names it.
    pub id: String,
    /// What it is about.
    pub kind: Kind,
    /// Whose it is.
    pub object: About,
    /// Its project.
    pub project: String,
    /// Who asked for it, where the objects tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_by: String,
    /// Since when it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// In a sentence.
    pub why: String,
    /// What would go.
    pub resources: Vec<Doomed>,
    /// How much that is.
    pub blast: Blast,
    /// Names exactly this wait: what would go, of which object, for which operation.
    pub set_hash: String,
    /// Whether the caller may approve it.
    pub allowed: bool,
    /// Why not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_not: String,
}

/// What an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ApprovalKind")]
pub enum Kind {
    /// A sync deletes what is no longer in git.
    Prune,
    /// An Application is deleted.
    Delete,
    /// Generators no longer give many Applications.
    Fuse,
    /// A phase stopped.
    Phase,
}

/// Whose an approval is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ApprovalObject")]
pub struct About {
    /// `Application` or `ApplicationSet`.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Something that would go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doomed {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether somebody approved it already.
    pub approved: bool,
    /// Whether more goes with it.
    pub grave: bool,
}

/// How much would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blast {
    /// How many resources.
    pub resources: usize,
    /// How many Applications.
    pub applications: usize,
}

/// What an Application waits for.
pub(crate) fn of_application(application: &Application) -> Option<Approval> {
    let rows = &application.status.resources;
    let waiting: Vec<ResourceKey> = waiting(application);
    let (kind, since) = operation(application)?;
    if waiting.is_empty() {
        return None;
    }
    let is_about = |row: &&ResourceStatus| match kind {
        Kind::Prune => {
            row.requires_deletion_approval || (row.requires_pruning && row.requires_deletion_confirmation)
        }
        _ => row.requires_deletion_approval || row.requires_deletion_confirmation,
    };
    let resources: Vec<Doomed> = rows.iter().filter(is_about).map(doomed).collect();
    let state = application.status.operation_state.as_ref();
    let told = application.status.conditions.iter();
    let told =
        told.filter(|one| one.kind == DELETION_APPROVAL_REQUIRED_INFO).map(|one| one.message.clone()).next();
    let running = state.filter(|_| kind == Kind::Prune);
    let message = running.map(|state| state.message.clone()).filter(|text| !text.is_empty());
    let asked = running.map(|state| &state.operation.initiated_by);
    let noted = application.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_ASKED_BY));
    let name = application.metadata.name.as_deref().unwrap_or_default();
    let plain = || match kind {
        Kind::Prune => format!("a sync of {name} deletes what is no longer in git"),
        _ => format!("{name} is being deleted, and what it deployed with it"),
    };
    let blast = Blast { resources: resources.len(), applications: usize::from(kind == Kind::Delete) };
    Some(Approval {
        id: id(kind, &application.metadata),
        kind,
        object: about("Application", &application.metadata),
        project: application.spec.project.clone(),
        requested_by: match asked {
            Some(asked) if asked.automated => "auto-sync".to_owned(),
            Some(asked) => asked.username.clone(),
            None => noted.cloned().unwrap_or_default(),
        },
        since: Some(since),
        why: message.or(told).unwrap_or_else(plain),
        set_hash: hash(&application.metadata, &approval::operation_name(since), &waiting),
        resources,
        blast,
        allowed: false,
        why_not: String::new(),
    })
}

/// The resources of an Application whose deletion waits for approval.
pub(crate) fn waiting(application: &Application) -> Vec<ResourceKey> {
    let rows = application.status.resources.iter().filter(|row| row.requires_deletion_approval);
    rows.map(key).collect()
}

/// Which operation of an Application approvals are for: the sync that runs, else its deletion.
pub(crate) fn operation(application: &Application) -> Option<(Kind, Timestamp)> {
    let state = application.status.operation_state.as_ref().filter(|state| !state.phase.is_completed());
    let sync = state.and_then(|state| time(state.started_at.as_ref())).map(|since| (Kind::Prune, since));
    sync.or_else(|| Some((Kind::Delete, time(application.metadata.deletion_timestamp.as_ref())?)))
}

/// What a set waits for.
pub(crate) fn of_set(set: &ApplicationSet) -> Vec<Approval> {
    let fuse = held(set).and_then(|message| of_fuse(set, message));
    let phases = set
        .status
        .phases
        .iter()
        .filter_map(|generator| Some(of_phase(set, &generator.rollout_id, stopped(generator)?)));
    fuse.into_iter().chain(phases.take(1)).collect()
}

/// The kind, namespace and name of what an id names.
pub(crate) fn read_id(id: &str) -> Option<(Kind, String, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(id).ok()?).ok()?;
    let mut parts = text.split('/');
    let kind = match parts.next()? {
        "prune" => Kind::Prune,
        "delete" => Kind::Delete,
        "fuse" => Kind::Fuse,
        "phase" => Kind::Phase,
        _ => return None,
    };
    let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    parts.next().is_none().then_some((kind, namespace, name))
}

fn of_fuse(set: &ApplicationSet, message: &str) -> Option<Approval> {
    let asked = fuse::asked_for(message)?;
    // The message names them between these words.
    let named = message.split_once("without approval: ").and_then(|(_, rest)| rest.split_once("; approve"));
    let (list, more) = named.map_or(("", 0), |(list, _)| match list.rsplit_once(" and ") {
        Some((list, more)) => {
            (list, more.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0))
        }
        None => (list, 0),
    });
    let namespace = set.metadata.namespace.clone().unwrap_or_default();
    let resources: Vec<Doomed> = list
        .split(", ")
        .filter(|name| !name.is_empty())
        .map(|name| Doomed {
            group: baton_api::names::GROUP.to_owned(),
            kind: "Application".to_owned(),
            namespace: namespace.clone(),
            name: name.to_owned(),
            approved: false,
            grave: true,
        })
        .collect();
    let mut conditions = set.status.conditions.iter();
    let since =
        conditions.find(|one| one.message == message).and_then(|one| time(one.last_transition_time.as_ref()));
    Some(Approval {
        id: id(Kind::Fuse, &set.metadata),
        kind: Kind::Fuse,
        object: about("ApplicationSet", &set.metadata),
        project: set.spec.template.spec.project.clone(),
        requested_by: String::new(),
        since,
        why: message.split("; approve with").next().unwrap_or_default().to_owned(),
        blast: Blast { resources: 0, applications: resources.len() + more },
        resources,
        set_hash: asked.to_string(),
        allowed: false,
        why_not: String::new(),
    })
}

fn of_phase(set: &ApplicationSet, rollout: &str, phase: &PhaseStatus) -> Approval {
    let failure = phase.failure.as_ref();
    let why = failure.map(|failure| failure.message.clone()).filter(|text| !text.is_empty());
    let at =
        failure.and_then(|failure| time(failure.at.as_ref())).or_else(|| time(phase.finished_at.as_ref()));
    Approval {
        id: id(Kind::Phase, &set.metadata),
        kind: Kind::Phase,
        object: about("ApplicationSet", &set.metadata),
        project: set.spec.template.spec.project.clone(),
        requested_by: String::new(),
        since: at,
        why: format!("phase {} stopped{}", phase.name, why.map(|why| format!(": {why}")).unwrap_or_default()),
        resources: Vec::new(),
        blast: Blast { resources: 0, applications: usize::try_from(phase.failed).unwrap_or_default() },
        set_hash: hash(&set.metadata, &format!("{rollout}/{}", phase.name), &[]),
        allowed: false,
        why_not: String::new(),
    }
}

/// The phase that goes on only if a person lets it: a wait ends by itself, and what somebody let pass stays failed.
fn stopped(generator: &GeneratorPhases) -> Option<&PhaseStatus> {
    let open = generator.phases.get(usize::try_from(generator.current_phase).ok()?)?;
    (open.state == PhaseState::Failed && refusal(Ask::Advance, generator).is_none()).then_some(open)
}

fn doomed(row: &ResourceStatus) -> Doomed {
    let ResourceKey { group, kind, namespace, name } = key(row);
    let grave = GRAVE.contains(&(group.as_str(), kind.as_str()));
    Doomed { group, kind, namespace, name, approved: !row.requires_deletion_approval, grave }
}

pub(crate) fn key(row: &ResourceStatus) -> ResourceKey {
    let [group, kind, namespace, name] = [&row.group, &row.kind, &row.namespace, &row.name].map(Clone::clone);
    ResourceKey { group, kind, namespace, name }
}

fn id(kind: Kind, metadata: &ObjectMeta) -> String {
    let word = match kind {
        Kind::Prune => "prune",
        Kind::Delete => "delete",
        Kind::Fuse => "fuse",
        Kind::Phase => "phase",
    };
    let [namespace, name] =
        [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default());
    URL_SAFE_NO_PAD.encode(format!("{word}/{namespace}/{name}"))
}

fn about(kind: &'static str, metadata: &ObjectMeta) -> About {
    let [namespace, name] =
        [&metadata.namespace, &metadata.name].map(|text| text.clone().unwrap_or_default());
    About { kind, namespace, name }
}

/// Names a wait: what would go, of which object by its uid, for which operation.
fn hash(metadata: &ObjectMeta, operation: &str, keys: &[ResourceKey]) -> String {
    let mut lines: Vec<String> = keys.iter().map(ToString::to_string).collect();
    lines.sort_unstable();
    lines.extend([metadata.uid.clone().unwrap_or_default(), operation.to_owned()]);
    let digest = Sha256::digest(lines.join("\n").as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn application(value: Value) -> Application {
        serde_json::from_value(value).expect("an Application")
    }

    fn pruning(names: &[&str], started: &str) -> Application {
        let row = |name: &&str| json!({"kind": "Namespace", "name": name, "requiresDeletionApproval": true});
        application(json!({
            "metadata": {"name": "web", "namespace": "argocd", "uid": "u1"},
            "spec": {"project": "shop"},
            "status": {
                "resources": names.iter().map(row).collect::<Vec<_>>(),
                "operationState": {"phase": "Running", "startedAt": started, "message": "waiting",
                    "operation": {"initiatedBy": {"username": "alice"}}},
            },
        }))
    }

    #[test]
    fn a_prune_that_waits_is_told_with_what_would_go() {
        let found = of_application(&pruning(&["a", "b"], "2026-01-01T00:00:00Z")).expect("an approval");
        assert_eq!(
            (found.kind, found.requested_by.as_str(), found.why.as_str()),
            (Kind::Prune, "alice", "waiting")
        );
        assert_eq!(found.blast, Blast { resources: 2, applications: 0 });
        assert!(found.resources.iter().all(|one| one.grave && !one.approved));
        assert_eq!(read_id(&found.id), Some((Kind::Prune, "argocd".to_owned(), "web".to_owned())));
    }

    #[test]
    fn the_hash_names_one_wait_and_no_other() {
        let hash =
            |names: &[&str], started: &str| of_application(&pruning(names, started)).expect("one").set_hash;
        let one = hash(&["a", "b"], "2026-01-01T00:00:00Z");
        assert_eq!(one, hash(&["b", "a"], "2026-01-01T00:00:00Z"));
        assert_ne!(one, hash(&["a"], "2026-01-01T00:00:00Z"), "other resources");
        assert_ne!(one, hash(&["a", "b"], "2026-01-01T00:00:01Z"), "another operation");
    }

    #[test]
    fn a_deletion_waits_where_no_sync_runs() {
        let found = of_application(&application(json!({
            "metadata": {"name": "web", "namespace": "argocd", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"baton.dev/deletion-asked-by": "alice"}},
            "status": {"resources": [
                {"kind": "ConfigMap", "name": "a", "requiresDeletionApproval": true},
                {"kind": "ConfigMap", "name": "b", "requiresDeletionConfirmation": true},
                {"kind": "ConfigMap", "name": "c"},
            ]},
        })))
        .expect("an approval");
        assert_eq!((found.kind, found.requested_by.as_str()), (Kind::Delete, "alice"));
        let approved: Vec<bool> = found.resources.iter().map(|one| one.approved).collect();
        assert_eq!(approved, [false, true]);
        let none = of_application(&application(
            json!({"status": {"resources": [{"requiresDeletionApproval": true}]}}),
        ));
        assert_eq!(none, None, "nothing is under way");
    }

    #[test]
    fn a_mass_deletion_and_a_stopped_phase_wait_too() {
        let doomed: Vec<(Arc<str>, Arc<str>)> =
            (0..60).map(|at| (format!("app-{at:02}").into(), format!("u{at}").into())).collect();
        let message = fuse::message("web", 70, &doomed);
        let set: ApplicationSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "argocd", "uid": "s1"},
            "status": {
                "conditions": [{"type": "DeletionHeld", "status": "True", "message": message, "reason": "DeletionFuse"}],
                "phases": [{"generator": 0, "rolloutID": "r1", "currentPhase": 2, "phases": [
                    {"name": "canary", "state": "Complete"},
                    {"name": "passed", "state": "Failed", "failure": {"reason": "Hook", "message": "no", "action": "advance"}},
                    {"name": "rest", "state": "Failed", "failure": {"reason": "Hook", "message": "no", "action": "stop"}},
                ]}],
            },
        }))
        .expect("a set");
        let found = of_set(&set);
        assert_eq!(found.iter().map(|one| one.kind).collect::<Vec<_>>(), [Kind::Fuse, Kind::Phase]);
        assert_eq!(found[0].blast.applications, 60);
        assert_eq!(found[0].set_hash, fuse::fingerprint(&doomed).to_string());
        assert_eq!(found[1].why, "phase rest stopped: no");
    }

    #[test]
    fn what_is_no_id_names_nothing() {
        for id in [
            "",
            "!!",
            "cHJ1bmU",
            &URL_SAFE_NO_PAD.encode("prune/a/b/c"),
            &URL_SAFE_NO_PAD.encode("other/a/b"),
        ] {
            assert_eq!(read_id(id), None, "{id}");
        }
    }
}
