//! The tasks of a sync: which objects are applied, pruned or run as hooks, and which of them must not be.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::application_status::SyncPhase;
use baton_api::names::{baton, resource};
use baton_api::object::{KindInfo, Object, ResourceKey, annotations_mut};
use serde_json::{Value, json};

use crate::engine::not_served;
use crate::hooks;
use crate::observation::Observation;
use crate::options::Options;
use crate::order::{arrange, defined_kind, is_namespace};
use crate::request::Request;
use crate::targets::Pair;
use crate::task::Task;
use crate::wave;

/// What is known of live objects since the observation: `None` for those that are gone.
pub(crate) type Since = BTreeMap<ResourceKey, Option<Arc<Value>>>;

/// The tasks of a sync, in order, and what is wrong with some.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) tasks: Vec<Task>,
    /// Positions of tasks that must not be carried out, and why.
    pub(crate) faults: Vec<(usize, String)>,
}

/// Builds the tasks of one step.
pub(crate) fn build(world: &Observation<'_>, request: &Request, since: &Since) -> Plan {
    let kinds = CachedKinds { world, known: BTreeMap::new() };
    let mut builder = Builder { world, request, since, kinds };
    let mut tasks: Vec<Task> = world.pairs.iter().filter_map(|pair| builder.resource(pair)).collect();
    if !request.skips_hooks() {
        for hook in world.hooks {
            tasks.extend(hooks::phases(hook).into_iter().map(|phase| builder.hook(hook, phase)));
        }
    }
    tasks.extend(builder.namespace());
    // Two hooks of one key cannot be told apart in results; the first stands for both.
    let mut seen = std::collections::BTreeSet::new();
    tasks.retain(|task| seen.insert(task.result_key()));
    for task in &mut tasks {
        task.skip_dry_run = builder.is_yet_to_come(task);
    }
    arrange(&mut tasks, request.has("PruneLast=true"));
    let faults = builder.faults(&tasks);
    Plan { tasks, faults }
}

struct Builder<'w, 'a> {
    world: &'w Observation<'a>,
    request: &'w Request,
    since: &'w Since,
    kinds: CachedKinds<'w, 'a>,
}

impl Builder<'_, '_> {
    fn resource(&self, pair: &Pair) -> Option<Task> {
        let live = self.live(&pair.key, pair.live.as_ref());
        let object = pair.target.as_deref().or(live.as_deref())?;
        let skipped = hooks::is_hook(object) || hooks::is_skipped(object);
        let tracking = &self.world.settings.tracking;
        if skipped
            || !self.request.selects(&pair.key)
            || !tracking.refers_to_itself(live.as_deref(), pair.target.as_deref())
        {
            return None;
        }
        let mut task = self.task(pair.key.clone(), SyncPhase::Sync, pair.target.clone(), live);
        task.modified = pair.modified;
        Some(task)
    }

    fn hook(&mut self, hook: &Arc<Value>, phase: SyncPhase) -> Task {
        let mut object = Value::clone(hook);
        if object.name().is_empty() {
            let name = format!("{}{}", object.metadata("generateName"), self.name_ending(&phase));
            object["metadata"]["name"] = json!(name);
            if object.annotation(resource::TRACKING_ID).is_some() {
                let destination = &self.world.application.spec.destination.namespace;
                self.world.settings.tracking.stamp(&mut object, self.world.instance, destination);
            }
        }
        hooks::hold(&mut object);
        if let Some(annotations) = annotations_mut(&mut object) {
            annotations.insert(baton::OPERATION.to_owned(), self.request.stamp(&phase).into());
        }
        let cluster_scoped =
            self.kinds.get(&object).is_ok_and(|kind| kind.is_some_and(|kind| !kind.namespaced));
        let key = if cluster_scoped { object.key().in_namespace("") } else { object.key() };
        let live = self.live(&key, self.world.live.get(&key).or_else(|| self.paired(&key)));
        self.task(key, phase, Some(Arc::new(object)), live)
    }

    /// What ends a made-up name: the same through all of an operation, so that a hook is found again.
    fn name_ending(&self, phase: &SyncPhase) -> String {
        let revision = self.world.revision;
        let short = if revision.len() >= 8 { revision.get(..7).unwrap_or(revision) } else { revision };
        format!("{short}-{phase}-{}", self.request.started_at.as_second()).to_lowercase()
    }

    /// The destination's namespace, where the sync is to make it and no manifest does.
    fn namespace(&self) -> Option<Task> {
        let name = &self.world.application.spec.destination.namespace;
        if name.is_empty() || !self.request.has("CreateNamespace=true") {
            return None;
        }
        let mut wanted =
            self.world.pairs.iter().filter_map(|pair| pair.target.as_ref()).chain(self.world.hooks);
        if wanted.any(|object| is_namespace(object) && object.name() == *name) {
            return None;
        }
        let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let key = object.key();
        let live = self.live(&key, self.world.live.get(&key).or_else(|| self.paired(&key)));
        let policy = self.world.application.spec.sync_policy.as_ref();
        let metadata = policy.and_then(|policy| policy.managed_namespace_metadata.as_ref());
        match metadata {
            None if live.is_some() => return None,
            None => {}
            Some(metadata) => {
                let mut annotations = metadata.annotations.clone();
                // Others may have labels and annotations there as well; only a merge by field leaves them alone.
                annotations.insert(resource::SYNC_OPTIONS.to_owned(), "ServerSideApply=true".to_owned());
                object["metadata"]["annotations"] = json!(annotations);
                if !metadata.labels.is_empty() {
                    object["metadata"]["labels"] = json!(metadata.labels);
                }
            }
        }
        let mut task = self.task(key, SyncPhase::PreSync, Some(Arc::new(object)), live);
        task.namespace = String::new();
        Some(task)
    }

    fn task(
        &self,
        key: ResourceKey,
        phase: SyncPhase,
        target: Option<Arc<Value>>,
        live: Option<Arc<Value>>,
    ) -> Task {
        let object = target.as_deref().or(live.as_deref()).unwrap_or(&Value::Null);
        let wave = wave::of(object);
        let mut namespace = object.namespace().to_owned();
        if target.is_some() && namespace.is_empty() {
            namespace.clone_from(&self.world.application.spec.destination.namespace);
        }
        Task {
            key,
            phase,
            wave,
            target,
            live,
            namespace,
            modified: true,
            skip_dry_run: false,
            status: Default::default(),
            state: Default::default(),
            message: String::new(),
        }
    }

    fn live(&self, key: &ResourceKey, seen: Option<&Arc<Value>>) -> Option<Arc<Value>> {
        match self.since.get(key) {
            Some(newer) => newer.clone(),
            None => seen.cloned(),
        }
    }

    fn paired(&self, key: &ResourceKey) -> Option<&Arc<Value>> {
        self.world.pairs.iter().find(|pair| pair.key == *key)?.live.as_ref()
    }

    /// Whether the kind of a task is not served yet but will be, or is said to be.
    fn is_yet_to_come(&mut self, task: &Task) -> bool {
        if !matches!(self.kinds.get(task.object()), Ok(None)) {
            return false;
        }
        let option = "SkipDryRunOnMissingResource=true";
        self.request.has(option)
            || task.target.as_deref().is_some_and(|target| Options::of(target).has(option))
            || self.is_defined_here(task)
    }

    fn is_defined_here(&self, task: &Task) -> bool {
        let targets = self.world.pairs.iter().filter_map(|pair| pair.target.as_ref());
        let mut defined = targets.chain(self.world.hooks).filter_map(|object| defined_kind(object));
        defined.any(|(group, kind)| group == task.key.group && kind == task.key.kind)
    }

    fn faults(&mut self, tasks: &[Task]) -> Vec<(usize, String)> {
        let judged = tasks.iter().enumerate();
        judged.filter_map(|(index, task)| Some((index, self.fault(task)?))).collect()
    }

    fn fault(&mut self, task: &Task) -> Option<String> {
        match self.kinds.get(task.object()) {
            Err(message) => Some(message),
            Ok(None) if task.skip_dry_run => None,
            Ok(None) => Some(not_served(task)),
            Ok(Some(kind)) => (self.world.permitted)(task.object(), &kind).err(),
        }
    }
}

/// Kinds of one step, each asked for once.
struct CachedKinds<'w, 'a> {
    world: &'w Observation<'a>,
    known: BTreeMap<(String, String), Result<Option<KindInfo>, String>>,
}

impl CachedKinds<'_, '_> {
    fn get(&mut self, object: &Value) -> Result<Option<KindInfo>, String> {
        let (api_version, kind) = (object.api_version(), object.kind());
        let id = (api_version.to_owned(), kind.to_owned());
        self.known.entry(id).or_insert_with(|| (self.world.kinds)(api_version, kind)).clone()
    }
}
