//! What an Application's sources want beside what its cluster holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_api::Application;
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_api::source::Source;
use baton_clusters::{Cluster, ClusterError, PredictError};
use baton_diff::{Quick, Rules};
use baton_manifests::{ManifestError, Manifests, Rendered, Request};
use baton_source::{RepositorySecret, Trust};
use baton_sync::conditions::{self, Finding};
use baton_sync::options::Options;
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::targets::{self, Pair, Place, Targets};
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::config::Config;
use super::memory::{Memory, Verdict};
use crate::digest::Digest;

/// How many objects of one Application are predicted at once.
const PREDICTIONS: usize = 8;

/// What is compared.
pub(super) struct Subject<'a> {
    pub(super) application: &'a Application,
    /// The Application, as it is written on objects.
    pub(super) instance: &'a str,
    pub(super) project: &'a ProjectRules,
    pub(super) cluster: &'a Arc<Cluster>,
    pub(super) config: &'a Config,
    pub(super) memory: &'a Mutex<Memory>,
}

/// What it is compared with.
pub(super) struct Wanted<'a> {
    pub(super) sources: &'a [Source],
    /// One for each source; empty where the newest counts.
    pub(super) revisions: &'a [String],
    /// Manifests given with an operation, instead of those of the sources.
    pub(super) manifests: &'a [String],
    pub(super) fresh: bool,
    pub(super) ignore_cache: bool,
    pub(super) secrets: &'a [RepositorySecret],
    pub(super) trust: &'a Trust,
}

/// What came of it.
pub(super) struct Compared {
    pub(super) rendered: Arc<Rendered>,
    /// False where only some paths count and nothing in them changed since the last comparison.
    pub(super) revisions_may_differ: bool,
    pub(super) targets: Targets,
    /// Every resource, as it is wanted and as it is. Objects the project does not permit are not among them.
    pub(super) pairs: Vec<Pair>,
    /// Live objects of hooks, and the destination namespace; and every managed object.
    pub(super) live: BTreeMap<ResourceKey, Arc<Value>>,
    pub(super) findings: Vec<Finding>,
    /// That objects are shared with another Application, in words.
    pub(super) shared: Option<String>,
}

impl<'a> Subject<'a> {
    pub(super) fn destination(&self) -> DestinationCluster<'a> {
        DestinationCluster { server: self.cluster.server(), name: &self.cluster.access().name }
    }
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompareError {
    #[error("Failed to load target state: {0}")]
    Sources(#[from] ManifestError),
    #[error("Failed to load local manifests: {0}")]
    Manifests(String),
    #[error("Failed to load live state: {0}")]
    Cluster(#[from] ClusterError),
    #[error("Failed to compare desired state to live state: {0}")]
    Differences(String),
}

/// Renders, looks, and puts each object beside its other half.
pub(super) async fn compare(
    subject: &Subject<'_>,
    wanted: &Wanted<'_>,
    manifests: &Manifests,
) -> Result<Compared, CompareError> {
    let cluster = subject.cluster;
    cluster.ready(&[]).await?;
    let before = subject.memory.lock().last_digest();
    let rendered = render(subject, wanted, manifests).await?;
    let narrowed = generate_paths(subject.application).is_some();
    let revisions_may_differ = !narrowed || before != Some(rendered.digest);
    let mut findings = Vec::new();
    let objects = served(subject, &rendered, &mut findings);
    cluster.ready(&kinds_of(subject.application, &objects)).await?;
    let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
        cluster.kind(api_version, kind).map_err(|error| error.to_string())
    };
    let place = Place {
        namespace: &subject.application.spec.destination.namespace,
        instance: subject.instance,
        tracking: &subject.config.tracking,
        kinds: &kinds,
    };
    let mut targets = targets::prepare(&objects, &place);
    findings.extend(targets.conditions.iter().cloned().map(Finding::from));
    hold(subject, &targets).await?;
    targets.resources.extend(managed_namespace(subject, &targets));
    let managed = managed(subject);
    let mut pairs = targets::pair(&targets.resources, &managed, &|key| cluster.get(key), &kinds);
    let shared = shared(subject, &pairs);
    findings.extend(shared.iter().map(|message| Finding::new(conditions::SHARED_RESOURCE_WARNING, message)));
    judge(subject, &mut pairs).await?;
    let live = beside(subject, &targets, &managed);
    let shared = shared.into_iter().next();
    Ok(Compared { rendered, revisions_may_differ, targets, pairs, live, findings, shared })
}

/// The objects of the sources, or those given with an operation.
pub(super) async fn render(
    subject: &Subject<'_>,
    wanted: &Wanted<'_>,
    manifests: &Manifests,
) -> Result<Arc<Rendered>, CompareError> {
    let application = subject.application;
    if !wanted.manifests.is_empty() {
        return given(wanted);
    }
    let version = subject.cluster.version();
    let api_versions = subject.cluster.api_versions();
    let inputs = Memory::inputs(application, wanted.sources, &version, &api_versions);
    let before = subject.memory.lock().rendered_from(inputs);
    let request = Request {
        name: application.metadata.name.as_deref().unwrap_or_default(),
        instance: subject.instance,
        namespace: &application.spec.destination.namespace,
        project: &application.spec.project,
        sources: wanted.sources,
        revisions: wanted.revisions,
        fresh: wanted.fresh,
        ignore_cache: wanted.ignore_cache,
        generate_paths: generate_paths(application),
        previous: before.as_ref().map(|rendered| (rendered.revisions.as_slice(), rendered)),
        secrets: wanted.secrets,
        trust: wanted.trust,
        kube_version: &version,
        api_versions: &api_versions,
    };
    let rendered = manifests.render(&request).await?;
    subject.memory.lock().remember(inputs, &rendered, request.generate_paths.is_some());
    Ok(rendered)
}

/// The paths whose change makes manifests stale, where the Application names them.
fn generate_paths(application: &Application) -> Option<&str> {
    let annotations = application.metadata.annotations.as_ref()?;
    annotations.get(baton_api::names::application::MANIFEST_GENERATE_PATHS).map(String::as_str)
}

/// Manifests that came with an operation, each a JSON object.
fn given(wanted: &Wanted<'_>) -> Result<Arc<Rendered>, CompareError> {
    let read = |text: &String| -> Result<Arc<Value>, CompareError> {
        let object: Value =
            serde_json::from_str(text).map_err(|error| CompareError::Manifests(error.to_string()))?;
        match object.is_object() {
            true => Ok(Arc::new(object)),
            false => Err(CompareError::Manifests("a manifest is not an object".to_owned())),
        }
    };
    let objects: Vec<Arc<Value>> = wanted.manifests.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Arc::new(Rendered {
        objects,
        revisions: wanted.revisions.to_vec(),
        source_types: Vec::new(),
        digest: [0; 32],
    }))
}

/// The objects whose kinds the operator's settings let pass.
fn served(subject: &Subject<'_>, rendered: &Rendered, findings: &mut Vec<Finding>) -> Vec<Arc<Value>> {
    let mut kept = Vec::with_capacity(rendered.objects.len());
    for object in &rendered.objects {
        let (group, kind) = (object.group(), object.kind());
        if subject.cluster.is_excluded(group, kind) {
            let message = format!("Resource {group}/{kind} {} is excluded in the settings", object.name());
            findings.push(Finding::new(conditions::EXCLUDED_RESOURCE_WARNING, message));
        } else {
            kept.push(object.clone());
        }
    }
    kept
}

/// The kinds that must be watched: of what is wanted, of what was there last, and Namespaces for hooks and gates.
pub(super) fn kinds_of(application: &Application, objects: &[Arc<Value>]) -> Vec<(String, String)> {
    let wanted = objects.iter().map(|object| (object.api_version().to_owned(), object.kind().to_owned()));
    let listed = application.status.resources.iter().map(|row| {
        let api_version = match row.group.as_str() {
            "" => row.version.clone(),
            group => format!("{group}/{}", row.version),
        };
        (api_version, row.kind.clone())
    });
    let namespaces = std::iter::once(("v1".to_owned(), "Namespace".to_owned()));
    let kinds: BTreeSet<(String, String)> = wanted.chain(listed).chain(namespaces).collect();
    kinds.into_iter().filter(|(api_version, kind)| !api_version.is_empty() && !kind.is_empty()).collect()
}

/// The live objects marked as the Application's own that its project lets it touch: others are neither compared nor
/// pruned nor deleted.
pub(super) fn managed(subject: &Subject<'_>) -> Vec<Arc<Value>> {
    let cluster = subject.destination();
    let live = subject.cluster.managed(subject.instance).into_iter();
    live.filter(|live| subject.project.permits_live(live, cluster)).collect()
}

/// Objects that another Application says are its own.
fn shared(subject: &Subject<'_>, pairs: &[Pair]) -> Vec<String> {
    let metadata = &subject.application.metadata;
    let own = format!(
        "{}/{}",
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    );
    let mut messages = Vec::new();
    for pair in pairs {
        let (Some(live), Some(_)) = (&pair.live, &pair.target) else { continue };
        let owner = subject.config.tracking.owner_of(live);
        if let Some(owner) = owner.filter(|owner| owner != subject.instance) {
            // An instance of another namespace is written `<namespace>_<name>`.
            let (kind, name, owner) = (live.kind(), live.name(), owner.replace('_', "/"));
            messages.push(format!("{kind}/{name} is part of applications {own} and {owner}"));
        }
    }
    messages
}

/// Tells of each pair whether its halves differ. Only what cannot be told from here is asked of the cluster, and its
/// answers are remembered.
async fn judge(subject: &Subject<'_>, pairs: &mut [Pair]) -> Result<(), CompareError> {
    let rules = rules(subject)?;
    let options = subject.application.metadata.annotations.as_ref();
    let options = options.and_then(|all| all.get(baton_api::names::resource::COMPARE_OPTIONS));
    let options = baton_diff::CompareOptions::parse(options.map_or("", String::as_str));
    let mut unsure: Vec<Question> = Vec::new();
    for (place, pair) in pairs.iter_mut().enumerate() {
        let (Some(target), Some(live)) = (&pair.target, &pair.live) else { continue };
        if baton_sync::hooks::is_skipped(target) {
            continue;
        }
        let target = baton_diff::prepare(target);
        if !options.include_mutations && baton_diff::quick(&target, live, &rules) == Quick::Same {
            pair.modified = false;
            continue;
        }
        let basis = Basis::of(&target, live, &rules, options.include_mutations);
        match subject.memory.lock().verdict(&pair.key, &basis) {
            Some(modified) => pair.modified = modified,
            None => {
                let (key, live) = (pair.key.clone(), live.clone());
                unsure.push(Question { place, key, target, live, basis });
            }
        }
    }
    let mut asked = Vec::with_capacity(unsure.len());
    for question in unsure {
        asked.push(ask(subject.cluster, question, &rules, options.include_mutations).boxed());
    }
    let answers: Vec<(Question, Result<bool, CompareError>)> =
        futures::stream::iter(asked).buffer_unordered(PREDICTIONS).collect().await;
    for (question, verdict) in answers {
        let modified = verdict?;
        pairs[question.place].modified = modified;
        subject.memory.lock().learn(question.key, Verdict { basis: question.basis, modified });
    }
    Ok(())
}

/// A pair that only the cluster can judge.
struct Question {
    place: usize,
    key: ResourceKey,
    /// Prepared for the API.
    target: Value,
    live: Arc<Value>,
    basis: Basis,
}

/// What a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Basis {
    target: Digest,
    live: [u8; 32],
    rules: [u8; 32],
    include_mutations: bool,
}

impl Basis {
    fn of(target: &Value, live: &Value, rules: &Rules, include_mutations: bool) -> Basis {
        Basis {
            target: Digest::of(target),
            live: baton_diff::fingerprint(live),
            rules: rules.digest(),
            include_mutations,
        }
    }
}

/// Has the cluster say what the target would make of the live object.
async fn ask(
    cluster: &Cluster,
    question: Question,
    rules: &Rules,
    include_mutations: bool,
) -> (Question, Result<bool, CompareError>) {
    let (target, live) = (&question.target, &*question.live);
    let verdict = match cluster.predict(target).await {
        Ok(predicted) => Ok(baton_diff::compare(target, &predicted, live, rules, include_mutations).modified),
        // The sync will say what is wrong with it.
        Err(PredictError::Invalid(_) | PredictError::Missing(_)) => Ok(true),
        Err(PredictError::Forbidden(_) | PredictError::Unsupported(_)) => {
            Ok(baton_diff::subset(target, live, rules).modified)
        }
        Err(PredictError::Failed(error)) => Err(CompareError::Differences(error.to_string())),
    };
    (question, verdict)
}

/// Has the cluster keep what is not tracked and yet matters: targets, hooks, the destination namespace.
async fn hold(subject: &Subject<'_>, targets: &Targets) -> Result<(), CompareError> {
    let wanted = targets.resources.iter().chain(&targets.hooks);
    let mut keys: Vec<ResourceKey> =
        wanted.filter(|object| !object.name().is_empty()).map(|object| object.key()).collect();
    keys.push(namespace_key(subject.application));
    subject.cluster.hold(subject.instance, &keys).await?;
    Ok(())
}

/// The destination namespace as the Application wants it, where it manages the metadata of one that is marked as its
/// own: without a target it would be pruned.
fn managed_namespace(subject: &Subject<'_>, targets: &Targets) -> Option<Arc<Value>> {
    let policy = subject.application.spec.sync_policy.as_ref()?;
    let metadata = policy.managed_namespace_metadata.as_ref()?;
    let key = namespace_key(subject.application);
    let stated = targets.resources.iter().any(|target| target.key().in_namespace("") == key);
    let live = subject.cluster.get(&key)?;
    let own = subject.config.tracking.manages(&live, subject.instance);
    if stated || !own || !Options::list(&policy.sync_options).has("CreateNamespace=true") {
        return None;
    }
    let mut namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": key.name, "labels": metadata.labels, "annotations": metadata.annotations},
    });
    subject.config.tracking.stamp(&mut namespace, subject.instance, &key.name);
    Some(Arc::new(namespace))
}

fn namespace_key(application: &Application) -> ResourceKey {
    ResourceKey {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: application.spec.destination.namespace.clone(),
    }
}

/// Live objects that matter beside the pairs: hooks, the destination namespace, and everything managed.
fn beside(
    subject: &Subject<'_>,
    targets: &Targets,
    managed: &[Arc<Value>],
) -> BTreeMap<ResourceKey, Arc<Value>> {
    let cluster = subject.cluster;
    let mut live: BTreeMap<ResourceKey, Arc<Value>> =
        managed.iter().map(|object| (object.key(), object.clone())).collect();
    let namespace = namespace_key(subject.application);
    let hooks = targets.hooks.iter().filter(|hook| !hook.name().is_empty()).map(|hook| hook.key());
    for key in hooks.chain(std::iter::once(namespace)) {
        if let Some(object) = cluster.get(&key) {
            live.insert(key, object);
        }
    }
    live
}

/// Has ignored fields keep the values they have (`RespectIgnoreDifferences=true`).
pub(super) fn respect_differences(
    subject: &Subject<'_>,
    compared: &mut Compared,
) -> Result<(), CompareError> {
    let rules = rules(subject)?;
    for pair in &mut compared.pairs {
        if let (Some(target), Some(live)) = (&pair.target, &pair.live) {
            let target = baton_diff::prepare(target);
            pair.target = Some(Arc::new(baton_diff::respect(&target, live, &rules)));
        }
    }
    Ok(())
}

fn rules(subject: &Subject<'_>) -> Result<Rules, CompareError> {
    let rules = &subject.application.spec.ignore_differences;
    Rules::compile(rules, &subject.config.rules).map_err(|error| CompareError::Differences(error.to_string()))
}
