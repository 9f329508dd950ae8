//! An Application, its operation and its cluster, and a pass over them as the controller makes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_api::Application;
use baton_api::application_status::{OperationPhase, OperationState, SyncOperationResult};
use baton_api::object::{KindInfo, Object};
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::targets::{self, Pair, Place, Targets};
use baton_sync::{Engine, EngineSettings, GateScope, Next, Observation};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Cluster, health};
use crate::decisions::project;
use crate::table::optional;

/// The Application, as it is written on its objects.
pub(crate) const INSTANCE: &str = "shop";
/// Its cluster.
pub(crate) const DESTINATION: DestinationCluster<'static> =
    DestinationCluster { server: "https://cluster.test", name: "" };

/// What an Application's controller has before it.
pub(crate) struct Play {
    pub(crate) application: Application,
    pub(crate) rules: ProjectRules,
    pub(crate) revision: String,
    pub(crate) now: Timestamp,
    pub(crate) manifests: Vec<Arc<Value>>,
    pub(crate) untracked: Vec<String>,
    pub(crate) state: OperationState,
    pub(crate) cluster: Cluster,
    pub(crate) settings: EngineSettings,
}

/// Objects as they are wanted and as they are.
pub(crate) struct Compared {
    pub(crate) targets: Targets,
    pub(crate) pairs: Vec<Pair>,
}

/// What a cluster serves, by version and kind.
pub(crate) type Served = BTreeMap<(String, String), KindInfo>;

impl Play {
    /// What a case says: project, targets, live objects, those among them that are nobody's, slow ones.
    pub(crate) fn new(case: &Value, application: Application, now: &str) -> Play {
        let everything = json!({
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        });
        let spec = Some(&case["project"]).filter(|spec| !spec.is_null()).unwrap_or(&everything);
        let mut play = Play {
            application,
            rules: ProjectRules::new(&project(spec.clone()), &[], &[], &[]),
            revision: optional(case, "revision"),
            now: now.parse().expect("a time"),
            manifests: optional(case, "targets"),
            untracked: optional(case, "untracked"),
            state: OperationState::default(),
            cluster: Cluster::new(),
            settings: EngineSettings {
                wave_delay: Default::default(),
                gate: GateScope::Wave,
                ..EngineSettings::default()
            },
        };
        play.cluster.slow = optional(case, "slow");
        for object in optional::<Vec<Value>>(case, "live") {
            play.put(object);
        }
        play
    }

    /// Puts an object into the cluster, marked as the Application's unless it is said to be nobody's.
    pub(crate) fn put(&mut self, mut object: Value) {
        let kind = self.cluster.kind(object.api_version(), object.kind());
        if object.namespace().is_empty() && kind.is_some_and(|kind| kind.namespaced) {
            object["metadata"]["namespace"] = json!(self.application.spec.destination.namespace);
        }
        let name = format!("{}/{}", object.kind(), object.name());
        let marked = object.annotation("argocd.argoproj.io/tracking-id").is_some();
        if !self.untracked.contains(&name) && !marked {
            self.settings.tracking.stamp(&mut object, INSTANCE, &self.application.spec.destination.namespace);
        }
        self.cluster.put(object);
    }

    /// The live objects that are the Application's, permitted or not.
    pub(crate) fn managed(&self) -> Vec<Arc<Value>> {
        let live = self.cluster.objects.values();
        live.filter(|live| self.settings.tracking.manages(live, INSTANCE) && live.owners().is_empty())
            .cloned()
            .collect()
    }

    /// Puts targets and live objects side by side.
    pub(crate) fn compared(&self, served: &Served) -> Compared {
        let kinds = |api_version: &str, kind: &str| look_up(served, api_version, kind);
        let place = Place {
            namespace: &self.application.spec.destination.namespace,
            instance: INSTANCE,
            tracking: &self.settings.tracking,
            kinds: &kinds,
        };
        let targets = targets::prepare(&self.manifests, &place);
        let managed: Vec<Arc<Value>> =
            self.managed().into_iter().filter(|live| self.rules.permits_live(live, DESTINATION)).collect();
        let get = |key: &_| {
            let found = self.cluster.objects.get(key).cloned();
            found.filter(|live| self.rules.permits_live(live, DESTINATION))
        };
        let mut pairs = targets::pair(&targets.resources, &managed, &get, &kinds);
        for pair in &mut pairs {
            if let (Some(target), Some(live)) = (&pair.target, &pair.live) {
                pair.modified = !contains(live, target);
            }
        }
        Compared { targets, pairs }
    }

    /// One pass over the operation. What is told is how it stands then.
    pub(crate) fn pass(&mut self) -> (OperationPhase, String) {
        let served = self.cluster.served();
        let Compared { targets, pairs } = self.compared(&served);
        let (seen, told, rules) =
            (self.cluster.objects.clone(), self.cluster.health.clone(), self.rules.clone());
        let kinds = |api_version: &str, kind: &str| look_up(&served, api_version, kind);
        let permitted =
            |object: &Value, kind: &KindInfo| rules.permits_target(object, Some(kind), DESTINATION);
        let health = |object: &Value| Ok(health(object, &told));
        let application = self.application.clone();
        let observation = Observation {
            application: &application,
            instance: INSTANCE,
            now: self.now,
            revision: &self.revision,
            pairs: &pairs,
            hooks: &targets.hooks,
            live: &seen,
            kinds: &kinds,
            permitted: &permitted,
            health: &health,
            guarded_in_namespace: &|_| Vec::new(),
            shared: None,
            settings: &self.settings,
        };
        let mut engine = Engine::new(observation, &self.state);
        let told = loop {
            match engine.next() {
                Next::Do(groups) => {
                    for (id, outcome) in self.cluster.perform(groups) {
                        engine.record(id, outcome);
                    }
                }
                Next::Pause(_) => {}
                Next::Wait { message, .. } => break (OperationPhase::Running, message),
                Next::Done { phase, message } => break (phase, message),
            }
        };
        let results = engine.results();
        self.state.sync_result.get_or_insert_with(SyncOperationResult::default).resources = results;
        told
    }
}

/// What is served under a name.
pub(crate) fn look_up(served: &Served, api_version: &str, kind: &str) -> Result<Option<KindInfo>, String> {
    Ok(served.get(&(api_version.to_owned(), kind.to_owned())).cloned())
}

fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| live.get(name).is_some_and(|live| contains(live, value)))
        }
        (live, wanted) => live == wanted,
    }
}
