//! Comparing a live Application with the wanted one, and the patch that makes it so.

use std::collections::BTreeMap;

use baton_api::Application;
use baton_api::application::{ApplicationSpec, SyncPolicy};
use baton_api::edit::patch_between;
use baton_api::names::baton::SET_LABEL;
use baton_api::names::{DEFAULT_PROJECT, finalizer};
use baton_api::source::{DirectorySource, HelmSource, KustomizeSource, Source};
use baton_rollout::pin::Fingerprint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Deserialize;
use serde_json::Value;

use super::ignore::{IgnoreError, IgnoreRules};
use super::ownership::{self, Guarding};
use crate::cache::is_always_preserved;

/// What is left alone in every Application of a set.
pub(crate) struct Rules {
    /// Value of the label that every Application of a set with an order carries.
    pub(crate) mark: Option<String>,
    /// What becomes of the guard among an Application's owners.
    pub(crate) guard: Guarding,
    /// Whether specifications and operations of Applications that are there already are written by somebody else.
    pub(crate) keeps_specs: bool,
    pub(crate) preserved_annotations: Vec<String>,
    pub(crate) preserved_labels: Vec<String>,
    /// Rules that cannot be read spoil comparisons, not creations.
    pub(crate) ignore: Result<IgnoreRules, IgnoreError>,
}

/// Why two Applications cannot be compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    /// The live object is no Application.
    #[error("the live Application cannot be read: {0}")]
    Live(#[source] serde_json::Error),
    /// The wanted object is no Application.
    #[error("the generated Application cannot be read: {0}")]
    Desired(#[source] serde_json::Error),
    /// Another controller has it.
    #[error("error while wrapping using MutateFn: {0}")]
    Owned(#[from] ownership::AlreadyOwned),
    /// A field could not be ignored.
    #[error("failed to apply ignore differences: {0}")]
    Ignore(#[from] IgnoreError),
}

/// The Application to create: normalised, owned by the set. One whose turn is decided by an order does not sync by
/// itself.
///
/// # Errors
/// If the wanted object is no Application.
pub(crate) fn creation(
    desired: &Value,
    owner: &OwnerReference,
    rules: &Rules,
) -> Result<Value, CompareError> {
    let mut application = Application::deserialize(desired).map_err(CompareError::Desired)?;
    normalize(&mut application.spec);
    if rules.keeps_specs {
        hold_back(&mut application.spec);
        application.operation = None;
    }
    if let Some(mark) = &rules.mark {
        let labels = application.metadata.labels.get_or_insert_default();
        labels.insert(SET_LABEL.to_owned(), mark.clone());
    }
    let owners = rules.guard.applied(&owner.name, vec![owner.clone()]);
    application.metadata.owner_references = Some(owners);
    // Written by other hands; what a template says about it must not reach the API.
    application.status = Default::default();
    serde_json::to_value(&application).map_err(CompareError::Desired)
}

/// The merge patch that makes the live Application what is wanted, or none if it is.
///
/// Status is not touched, an operation only if one is wanted. The patch keeps fields this version does not know.
///
/// # Errors
/// If either object is no Application, another controller owns it, or a rule cannot be applied.
pub(crate) fn compare(
    live: &Value,
    desired: &Value,
    owner: &OwnerReference,
    rules: &Rules,
) -> Result<Option<Value>, CompareError> {
    let mut before = Application::deserialize(live).map_err(CompareError::Live)?;
    let mut wanted = Application::deserialize(desired).map_err(CompareError::Desired)?;
    normalize(&mut before.spec);
    normalize(&mut wanted.spec);
    drop_empty(&mut before.metadata);
    let after = merged(&before, wanted, owner, rules)?;
    let ignore = rules.ignore.as_ref().map_err(Clone::clone)?;
    let (before, after) = match ignore.is_empty() {
        true => (view(&before)?, view(&after)?),
        false => (ignoring(&before, ignore)?, ignoring(&after, ignore)?),
    };
    Ok(patch_between(live, &before, &after))
}

/// The live Application with everything replaced that the set decides.
fn merged(
    live: &Application,
    wanted: Application,
    owner: &OwnerReference,
    rules: &Rules,
) -> Result<Application, CompareError> {
    let (old, mut new) = (&live.metadata, wanted.metadata);
    let always = old.annotations.iter().flatten().map(|(key, _)| key.as_str());
    let always = always.filter(|key| is_always_preserved(key));
    let annotations = rules.preserved_annotations.iter().map(String::as_str).chain(always);
    // A set that keeps an order no longer leaves the label: it harms nobody, and tells that there was one.
    let mark = rules.mark.is_none().then_some(SET_LABEL);
    let labels = rules.preserved_labels.iter().map(String::as_str).chain(mark);
    if let Some(mark) = &rules.mark {
        new.labels.get_or_insert_default().insert(SET_LABEL.to_owned(), mark.clone());
    }
    let owners = old.owner_references.clone().unwrap_or_default();
    let owners = rules.guard.applied(&owner.name, ownership::controlled(old, owners, owner)?);
    let mut metadata = ObjectMeta {
        annotations: Some(preserved(new.annotations, old.annotations.as_ref(), annotations)),
        labels: Some(preserved(new.labels, old.labels.as_ref(), labels)),
        finalizers: Some(finalizers(new.finalizers, old.finalizers.as_deref().unwrap_or_default())),
        owner_references: Some(owners),
        ..old.clone()
    };
    drop_empty(&mut metadata);
    let (spec, operation) = match rules.keeps_specs {
        true => (live.spec.clone(), live.operation.clone()),
        false => (wanted.spec, wanted.operation.or_else(|| live.operation.clone())),
    };
    Ok(Application { metadata, spec, status: live.status.clone(), operation })
}

/// The wanted entries, and the live values of keys that are left alone.
fn preserved<'a>(
    wanted: Option<BTreeMap<String, String>>,
    live: Option<&BTreeMap<String, String>>,
    keys: impl Iterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    let mut entries = wanted.unwrap_or_default();
    for key in keys {
        if let Some(value) = live.and_then(|live| live.get(key)) {
            entries.insert(key.to_owned(), value.clone());
        }
    }
    entries
}

/// The wanted finalizers, and those of delete hooks, which the application controller adds.
fn finalizers(wanted: Option<Vec<String>>, live: &[String]) -> Vec<String> {
    let mut finalizers = wanted.unwrap_or_default();
    for prefix in [finalizer::PRE_DELETE, finalizer::POST_DELETE] {
        for name in live.iter().filter(|name| name.starts_with(prefix)) {
            if !finalizers.contains(name) {
                finalizers.push(name.clone());
            }
        }
    }
    finalizers
}

/// An empty list or map is as good as none.
fn drop_empty(metadata: &mut ObjectMeta) {
    metadata.annotations.take_if(|entries| entries.is_empty());
    metadata.labels.take_if(|entries| entries.is_empty());
    metadata.finalizers.take_if(|entries| entries.is_empty());
    metadata.owner_references.take_if(|entries| entries.is_empty());
}

fn view(application: &Application) -> Result<Value, CompareError> {
    serde_json::to_value(application).map_err(CompareError::Live)
}

/// The view without the ignored fields. Name, namespace and operation cannot be ignored away.
fn ignoring(application: &Application, rules: &IgnoreRules) -> Result<Value, CompareError> {
    let mut reduced = view(application)?;
    let name = application.metadata.name.as_deref().unwrap_or_default();
    rules.apply(name, &mut reduced);
    let mut typed: Application = serde_json::from_value(reduced).map_err(CompareError::Live)?;
    typed.metadata.name.clone_from(&application.metadata.name);
    typed.metadata.namespace.clone_from(&application.metadata.namespace);
    typed.operation.clone_from(&application.operation);
    // What is left of a block whose only field was removed is as good as none.
    normalize(&mut typed.spec);
    drop_empty(&mut typed.metadata);
    view(&typed)
}

/// A specification in the form in which a live and a wanted one are compared by an order: normalised, without ignored
/// fields and without automatic sync.
///
/// # Errors
/// If nothing that could be a specification is left.
pub(crate) fn comparable(
    name: &str,
    spec: &ApplicationSpec,
    ignored: &IgnoreRules,
) -> Result<Fingerprint, CompareError> {
    let mut spec = reduced(name, spec, ignored)?;
    if let Some(policy) = &mut spec.sync_policy {
        policy.automated = None;
    }
    normalize(&mut spec);
    Ok(Fingerprint::of_json(&serde_json::to_value(&spec).map_err(CompareError::Live)?))
}

/// What happens to automatic sync while an order decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Automation {
    /// It is switched off and its settings stay.
    Disabled,
    /// The block goes: this cluster's API does not know the switch.
    Removed,
}

/// The merge patch that makes a live specification the wanted one, ignored fields left as they are and automatic sync
/// off; without a wanted one only the latter. None if nothing is to be done.
///
/// # Errors
/// If the live specification cannot be read.
pub(crate) fn ordered_patch(
    name: &str,
    live: &Value,
    wanted: Option<&ApplicationSpec>,
    ignored: &IgnoreRules,
    automation: Automation,
) -> Result<Option<Value>, CompareError> {
    let mut before = ApplicationSpec::deserialize(live).map_err(CompareError::Live)?;
    normalize(&mut before);
    let mut after = wanted.cloned().unwrap_or_else(|| before.clone());
    normalize(&mut after);
    match automation {
        Automation::Disabled => hold_back(&mut after),
        Automation::Removed => after.sync_policy.iter_mut().for_each(|policy| policy.automated = None),
    }
    normalize(&mut after);
    let written = |spec: &ApplicationSpec| {
        serde_json::to_value(reduced(name, spec, ignored)?).map_err(CompareError::Live)
    };
    Ok(patch_between(live, &written(&before)?, &written(&after)?))
}

/// Switches automatic sync off where there is any, and keeps its settings.
fn hold_back(spec: &mut ApplicationSpec) {
    if let Some(automated) = spec.sync_policy.as_mut().and_then(|policy| policy.automated.as_mut()) {
        automated.enabled = Some(false);
    }
}

/// A specification without the ignored fields.
fn reduced(
    name: &str,
    spec: &ApplicationSpec,
    ignored: &IgnoreRules,
) -> Result<ApplicationSpec, CompareError> {
    let mut application = Application { spec: spec.clone(), ..Application::default() };
    normalize(&mut application.spec);
    if ignored.is_empty() {
        return Ok(application.spec);
    }
    application.metadata.name = Some(name.to_owned());
    let mut whole = view(&application)?;
    ignored.apply(name, &mut whole);
    let mut left: Application = serde_json::from_value(whole).map_err(CompareError::Live)?;
    normalize(&mut left.spec);
    Ok(left.spec)
}

/// Removes differences without meaning, as the application controller does.
fn normalize(spec: &mut ApplicationSpec) {
    if spec.project.is_empty() {
        spec.project = DEFAULT_PROJECT.to_owned();
    }
    spec.sync_policy.take_if(|policy| *policy == SyncPolicy::default());
    match spec.sources.is_empty() {
        true => spec.source.iter_mut().for_each(normalize_source),
        false => spec.sources.iter_mut().for_each(normalize_source),
    }
}

fn normalize_source(source: &mut Source) {
    source.kustomize.take_if(|kustomize| *kustomize == KustomizeSource::default());
    source.helm.take_if(|helm| *helm == HelmSource::default());
    source.directory.take_if(|directory| *directory == DirectorySource::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_api::application_set::IgnoreApplicationDifferences;
    use serde_json::json;

    fn owner() -> OwnerReference {
        OwnerReference {
            api_version: "argoproj.io/v1alpha1".into(),
            kind: "ApplicationSet".into(),
            name: "set".into(),
            uid: "u".into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    fn rules(ignored: Value) -> Rules {
        let ignored: Vec<IgnoreApplicationDifferences> = serde_json::from_value(ignored).expect("rules");
        Rules {
            mark: None,
            guard: Guarding::Without,
            keeps_specs: false,
            preserved_annotations: vec!["mine".into()],
            preserved_labels: vec!["mine".into()],
            ignore: IgnoreRules::read(&ignored),
        }
    }

    fn desired() -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "ns", "labels": {"l": "1"}},
            "spec": {"project": "default", "destination": {"name": "x"}, "source": {"repoURL": "r", "path": "p"}},
        })
    }

    /// The wanted Application as it would be found, with fields of a newer version, and `change` made to it.
    fn live(change: impl FnOnce(&mut Value)) -> Value {
        let mut live = creation(&desired(), &owner(), &rules(json!([]))).expect("an Application");
        live["spec"]["fromTheFuture"] = json!({"kept": true});
        live["status"] = json!({"sync": {"status": "Synced"}});
        change(&mut live);
        live
    }

    fn patch(live: &Value, ignored: Value) -> Option<Value> {
        compare(live, &desired(), &owner(), &rules(ignored)).expect("comparable")
    }

    #[test]
    fn only_what_the_set_decides_and_differs_is_patched() {
        assert_eq!(patch(&live(|_| {}), json!([])), None);
        for (change, expected) in [
            (json!({"spec": {"project": ""}}), None),
            (json!({"spec": {"syncPolicy": {}}}), None),
            (json!({"spec": {"source": {"helm": {}, "directory": {"recurse": false}}}}), None),
            (json!({"metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "y"}}}), None),
            (json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}}), None),
            (json!({"metadata": {"annotations": {"baton.dev/deletion-asked-by": "alice"}}}), None),
            (json!({"metadata": {"finalizers": ["post-delete-finalizer.argocd.argoproj.io/cleanup"]}}), None),
            (json!({"operation": {"sync": {}}}), None),
            (
                json!({"metadata": {"labels": {"theirs": "x"}}}),
                Some(json!({"metadata": {"labels": {"theirs": null}}})),
            ),
            (json!({"spec": {"source": {"path": "q"}}}), Some(json!({"spec": {"source": {"path": "p"}}}))),
            (
                json!({"spec": {"source": {"directory": {"include": "*.yaml"}}}}),
                Some(json!({"spec": {"source": {"directory": null}}})),
            ),
        ] {
            let found = patch(&live(|live| merge(live, &change)), json!([]));
            assert_eq!(found, expected, "{change}");
        }
    }

    #[test]
    fn label_and_guard_of_an_ordered_set_are_kept_and_taken_away() {
        let guard = ownership::guard_reference("set", "g");
        let ordered = Rules { mark: Some("set".into()), guard: Guarding::With(guard), ..rules(json!([])) };
        let compare =
            |live: &Value, rules: &Rules| compare(live, &desired(), &owner(), rules).expect("comparable");
        let made = creation(&desired(), &owner(), &ordered).expect("an Application");
        assert_eq!(made["metadata"]["labels"]["baton.dev/application-set"], "set");
        assert_eq!(made["metadata"]["ownerReferences"][1]["name"], "set.baton-rollout");
        assert_eq!(compare(&made, &ordered), None);
        assert_eq!(compare(&live(|_| {}), &ordered).map(|patch| patch["metadata"]["labels"].clone()), {
            Some(json!({"baton.dev/application-set": "set"}))
        });
        let kept = Rules { guard: Guarding::AsItIs, ..rules(json!([])) };
        assert_eq!(compare(&made, &kept), None);
        let left = compare(&made, &rules(json!([]))).expect("a patch");
        assert_eq!(left, json!({"metadata": {"ownerReferences": [owner()]}}));
    }

    #[test]
    fn ignored_fields_are_neither_compared_nor_written() {
        let drifted = live(|live| {
            live["spec"]["source"]["path"] = "theirs".into();
            live["spec"]["source"]["repoURL"] = "theirs".into();
        });
        for rule in [
            json!({"jsonPointers": ["/spec/source/path"]}),
            json!({"jqPathExpressions": [".spec.source.path"]}),
        ] {
            let expected = Some(json!({"spec": {"source": {"repoURL": "r"}}}));
            assert_eq!(patch(&drifted, json!([rule])), expected);
            let mut elsewhere = rule.clone();
            elsewhere["name"] = "other".into();
            let both = Some(json!({"spec": {"source": {"path": "p", "repoURL": "r"}}}));
            assert_eq!(patch(&drifted, json!([elsewhere])), both, "the rule is for another Application");
        }
        let renamed = json!([{"jqPathExpressions": [".metadata.name", ".metadata.namespace", ".spec"]}]);
        assert_eq!(patch(&drifted, renamed), None, "a name cannot be ignored away");
    }

    #[test]
    fn a_rule_that_cannot_be_read_spoils_the_comparison() {
        let broken = rules(json!([{"jqPathExpressions": [".spec["]}]));
        let error =
            compare(&live(|_| {}), &desired(), &owner(), &broken).expect_err("unreadable").to_string();
        assert!(
            error.starts_with("failed to apply ignore differences: spec.ignoreApplicationDifferences[0]"),
            "{error}"
        );
    }

    fn merge(target: &mut Value, change: &Value) {
        match (target, change) {
            (Value::Object(target), Value::Object(change)) => {
                for (name, value) in change {
                    merge(target.entry(name.clone()).or_insert(Value::Null), value);
                }
            }
            (target, change) => *target = change.clone(),
        }
    }
}
