//! Deletion of an Application's resources: what stays, what waits for approval, and what goes next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::ResultCode;
use baton_api::names::GROUP;
use baton_api::names::resource::HELM_RESOURCE_POLICY;
use baton_api::object::{Object, ResourceKey};
use jiff::Timestamp;
use serde_json::Value;

use super::{Decision, Observation, finalizers, named};
use crate::action::{Delete, Verb};
use crate::app_health::is_itself;
use crate::approval::{self, Approvals, Purpose};
use crate::conditions::{DELETION_APPROVAL_REQUIRED_INFO, Finding};
use crate::hooks;
use crate::kind_order;
use crate::options::{self, Defaults, Options, Removal, items};
use crate::tracking::is_crd;
use crate::wave;

/// Why an object outlives its Application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is a CustomResourceDefinition: deleting it would delete everybody's objects.
    Definition,
    /// It is the Application itself.
    Itself,
    /// `Delete=false`.
    Option,
    /// Helm's resource policy.
    HelmPolicy,
    /// The project does not permit it.
    NotPermitted,
}

/// Why an object is not deleted with its Application; none where it is.
pub fn kept(application: &Application, live: &Value) -> Option<Kept> {
    let policies = live.annotation(HELM_RESOURCE_POLICY).map(items).unwrap_or_default();
    if is_crd(live) {
        Some(Kept::Definition)
    } else if is_itself(application, live) {
        Some(Kept::Itself)
    } else if options::delete(live, &approval::spec_defaults(application)) == Removal::Kept {
        Some(Kept::Option)
    } else if policies.contains(&"keep") {
        Some(Kept::HelmPolicy)
    } else {
        None
    }
}

/// Objects that the last sync wrote or the last comparison saw, and that are not among the live ones: what is seen of a
/// cluster may lag far behind. They are to be read past every cache; those that are there and the Application's own
/// belong to the live ones before anything is decided, or one that needs approval would be passed over, and others left
/// behind.
pub fn unseen(application: &Application, live: &[Arc<Value>]) -> BTreeMap<ResourceKey, String> {
    let status = &application.status;
    let result = status.operation_state.as_ref().and_then(|state| state.sync_result.as_ref());
    let results = result.map_or(&[][..], |result| &result.resources).iter();
    let written = results.filter(|result| result.status == ResultCode::Synced);
    let written =
        written.map(|result| (&result.group, &result.version, &result.kind, &result.namespace, &result.name));
    let compared = status.resources.iter();
    let compared = compared.map(|resource| {
        (&resource.group, &resource.version, &resource.kind, &resource.namespace, &resource.name)
    });
    let known = written.chain(compared).map(|(group, version, kind, namespace, name)| {
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(String::clone);
        (ResourceKey { group, kind, namespace, name }, api_version)
    });
    let seen: BTreeSet<ResourceKey> = live.iter().map(|live| live.key()).collect();
    known.filter(|(key, _)| !seen.contains(key)).collect()
}

/// The next deletions, those of the highest wave.
///
/// Inside a wave kinds go in the reverse of the order they are applied in: custom resources before what their operator
/// needs, namespaces last. Argo CD deletes a wave at once. What a wave leaves is waited for before the next.
pub(super) fn decide(observation: &Observation<'_>, permitted: &[&Arc<Value>]) -> Decision {
    let application = observation.application;
    if let Some(gated) = gate(observation, permitted) {
        return gated;
    }
    let (stays, goes): (Vec<&Arc<Value>>, Vec<&Arc<Value>>) =
        permitted.iter().copied().partition(|live| kept(application, live).is_some());
    let kept =
        stays.iter().filter_map(|live| Some((live.key(), kept(application, live)?))).collect::<Vec<_>>();
    if goes.is_empty() {
        let left = finalizers::without(application, finalizers::is_cascade);
        return Decision { finalizers: Some(left), kept, ..Decision::default() };
    }
    // No operation runs, so nobody waits for the outcome of a hook that is still held.
    let mut verbs: Vec<Verb> =
        goes.iter().filter(|live| hooks::is_held(live)).map(|live| release(live)).collect();
    let place = |live: &Value| (wave::of(live), rank(live));
    let guard = Guard::of(application);
    let highest = goes.iter().map(|live| place(live)).max();
    let now: Vec<&Arc<Value>> = goes.iter().copied().filter(|live| Some(place(live)) == highest).collect();
    verbs.extend(
        now.iter().filter(|live| live.deletion_timestamp().is_none()).map(|live| delete(&guard, live)),
    );
    Decision { verbs, kept, ..Decision::waits(waiting(&now)) }
}

/// The place of an object inside its wave. A project outlives the Applications beside it, whose deletion it rules.
fn rank(live: &Value) -> (usize, bool) {
    let is_project = live.group() == GROUP && live.kind() == "AppProject";
    (kind_order::rank(live.kind()), !is_project)
}

/// What is waited for, and which finalizers hold it.
fn waiting(group: &[&Arc<Value>]) -> String {
    let keys: Vec<ResourceKey> = group.iter().map(|live| live.key()).collect();
    let ordinary = ["foregroundDeletion", "orphan"];
    let held: BTreeSet<&str> = group
        .iter()
        .filter(|live| live.deletion_timestamp().is_some())
        .flat_map(|live| live.finalizers())
        .filter(|finalizer| !ordinary.contains(finalizer))
        .collect();
    let held: Vec<&str> = held.into_iter().take(5).collect();
    match held.is_empty() {
        true => format!("waiting for deletion of {}", named(&keys)),
        false => format!("waiting for deletion of {}, held by finalizers {}", named(&keys), held.join(", ")),
    }
}

pub(super) fn release(live: &Value) -> Verb {
    Verb::ReleaseHook { key: live.key(), api_version: live.api_version().to_owned() }
}

fn delete(guard: &Guard<'_>, live: &Value) -> Verb {
    // What is guarded must still be as it was when its approval was read.
    let guarded = guard.asks(live);
    Verb::Delete(Delete {
        key: live.key(),
        api_version: live.api_version().to_owned(),
        uid: live.uid().to_owned(),
        resource_version: guarded.then(|| live.resource_version().to_owned()),
        propagation: finalizers::propagation(guard.application),
    })
}

/// The wait for approval, if there is one. Before all have it nothing is deleted, in any wave.
pub(super) fn gate(observation: &Observation<'_>, permitted: &[&Arc<Value>]) -> Option<Decision> {
    let application = observation.application;
    if !finalizers::cascades(application) {
        return None;
    }
    let since = application.metadata.deletion_timestamp.as_ref()?.0;
    let approvals = Approvals { application, since, now: observation.now };
    let goes: Vec<&&Arc<Value>> = permitted
        .iter()
        .filter(|live| kept(application, live).is_none() && live.deletion_timestamp().is_none())
        .collect();
    let guard = Guard::of(application);
    let mut missing: BTreeSet<ResourceKey> = goes
        .iter()
        .filter(|live| guard.asks(live) && !approval::approved(live, None, &approvals))
        .map(|live| live.key())
        .collect();
    let namespaces = goes.iter().filter(|live| live.kind() == "Namespace" && live.group().is_empty());
    for namespace in namespaces {
        let inside = (observation.guarded_in_namespace)(namespace.name());
        let is_own = |object: &Value| permitted.iter().any(|live| live.key() == object.key());
        missing.extend(approval::unapproved_inside(&inside, is_own, &approvals));
    }
    if missing.is_empty() {
        return None;
    }
    let waiting = permitted.iter().filter(|live| missing.contains(&live.key()));
    let refused = approval::refusals(waiting.map(|live| (&***live, None)), &approvals);
    let message = format!("waiting for deletion confirmation of {}", named(&missing));
    let message = std::iter::once(message).chain(refused).collect::<Vec<_>>().join("; ");
    Some(Decision {
        found: vec![Finding::new(DELETION_APPROVAL_REQUIRED_INFO, message)],
        approvals: missing.into_iter().collect(),
        ..Decision::default()
    })
}

/// Which objects of an Application ask for approval before they are deleted with it.
///
/// What is on an object counts, and what the last comparison saw in the source; the object's own word on `Delete=` beats
/// the latter. Hooks never ask: their own policies say when they go.
pub struct Guard<'a> {
    application: &'a Application,
    defaults: Defaults<'a>,
    /// Group, kind, namespace and name of what the last comparison saw guarded.
    seen: BTreeSet<[&'a str; 4]>,
}

impl<'a> Guard<'a> {
    /// The guard of an Application.
    pub fn of(application: &'a Application) -> Guard<'a> {
        let rows = application.status.resources.iter().filter(|row| row.requires_deletion_confirmation);
        let seen = rows.map(|row| [&row.group, &row.kind, &row.namespace, &row.name].map(String::as_str));
        Guard { application, defaults: approval::spec_defaults(application), seen: seen.collect() }
    }

    fn asks(&self, live: &Value) -> bool {
        let key = [live.group(), live.kind(), live.namespace(), live.name()];
        let seen = || self.seen.contains(&key) && Options::of(live).value("Delete").is_none();
        !hooks::is_hook(live) && (approval::needs(live, Purpose::Delete, &self.defaults) || seen())
    }

    /// Whether an object waits for approval because its Application is being deleted.
    pub fn awaits_approval(&self, live: &Value, now: Timestamp) -> bool {
        let application = self.application;
        let Some(since) = application.metadata.deletion_timestamp.as_ref().map(|time| time.0) else {
            return false;
        };
        finalizers::cascades(application)
            && kept(application, live).is_none()
            && self.asks(live)
            && !approval::approved(live, None, &Approvals { application, since, now })
    }
}
