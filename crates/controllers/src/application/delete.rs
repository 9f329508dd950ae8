//! Deleting an Application: one step, and the name of what is waited for.

use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::ApplicationCondition;
use baton_api::names::application::DELETION_APPROVED;
use baton_api::object::{KindInfo, Object};
use baton_clusters::{Cluster, ClusterError};
use baton_sync::action::{Outcome, Verb};
use baton_sync::approval::{self, Approvals};
use baton_sync::conditions::{self, Finding};
use baton_sync::deletion::{self, Decision, DeletionSettings, Observation, Rendered, Stage};
use baton_sync::hooks::HookType;
use baton_sync::normalize::{self, Project};
use baton_sync::project::DestinationCluster;
use baton_sync::resource_status;
use baton_sync::targets::{self, Place, Targets};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::compare::{self, Subject, Wanted};
use super::config::Config;
use super::guards::Guards;
use super::operate::NO_IMPERSONATION;
use super::reconcile::{Left, PassError, Reconciler, sooner, until};
use super::refresh::{Ground, in_seconds};
use super::write::status_patch;
use crate::cache::ObjectKey;

/// How many deletions are asked for at once.
const AT_ONCE: usize = 20;
/// The next stage follows at once.
const NEXT_STAGE: Duration = Duration::from_millis(10);
/// Longest time until a deletion under way is looked at again.
const BACKSTOP: Duration = Duration::from_secs(30);

/// What is said of a deletion that waits for an operation, whose own need of approval stays told.
const OF_WAITING: [&str; 2] = [conditions::DELETION_ERROR, conditions::DELETION_WAITING_INFO];

/// What is known of the destination.
enum Destination {
    Unknown(String),
    Unreachable(String),
    Ready(Ground),
}

impl Reconciler {
    /// Takes the deletion one step further.
    pub(super) async fn delete(&self, key: &ObjectKey) -> Result<Left, PassError> {
        let read = self.writer.read(key).await.map_err(PassError::Read)?;
        let Some(application) = read else { return Ok(Left { application: None, look_again: None }) };
        let stage = deletion::stage(&application);
        if application.metadata.deletion_timestamp.is_none() || stage == Stage::Done {
            return Ok(Left { application: Some(application), look_again: None });
        }
        let now = self.now();
        let config = self.known.config();
        if stage == Stage::Operation {
            // The operation ends first; of the cluster nothing need be known to say so.
            let decision = self.decide_without(&application, deletion::Cluster::Unreachable(""), now);
            return self.conclude(key, &application, decision, Vec::new(), &OF_WAITING, now).await;
        }
        if is_unasked(&application) && approval::is_ahead(&application, now) {
            let patch = json!({"metadata": {"annotations": {DELETION_APPROVED: null}}});
            let written = self.writer.patch(&application, patch).await.map_err(PassError::Write)?;
            return Ok(Left { application: Some(written), look_again: Some(NEXT_STAGE) });
        }
        let destination = self.destination(&application).await;
        let decision = match &destination {
            Destination::Ready(ground) => {
                self.decide_on(key, &application, stage, ground, &config, now).await
            }
            Destination::Unknown(why) => {
                self.decide_without(&application, deletion::Cluster::Unknown(why), now)
            }
            Destination::Unreachable(why) => {
                self.decide_without(&application, deletion::Cluster::Unreachable(why), now)
            }
        };
        for (kept, why) in &decision.kept {
            tracing::debug!(application = %key, resource = %kept, ?why, "a resource outlives its Application");
        }
        let mut failures = Vec::new();
        if let Destination::Ready(ground) = &destination {
            failures = perform(ground, &decision.verbs).await;
        }
        self.conclude(key, &application, decision, failures, &conditions::OF_DELETION, now).await
    }

    async fn destination(&self, application: &Application) -> Destination {
        let spec = &application.spec;
        let config = self.known.config();
        if let Some(fault) = &config.fault {
            return Destination::Unreachable(format!("argocd-cm cannot be used: {fault}"));
        }
        if config.impersonation {
            return Destination::Unreachable(NO_IMPERSONATION.to_owned());
        }
        let cluster = match self.clusters.resolve(&spec.destination) {
            Ok(cluster) => cluster,
            // A Secret that cannot be read is no reason to leave the resources behind.
            Err(why) => match self.known.broken_cluster(&spec.destination) {
                Some(broken) => return Destination::Unreachable(broken),
                None => return Destination::Unknown(why),
            },
        };
        if let Err(error) = cluster.ready(&compare::kinds_of(application, &[])).await {
            return Destination::Unreachable(error.to_string());
        }
        match self.known.project(normalize::project_of(spec)) {
            Some(Ok(project)) => Destination::Ready(Ground { project, cluster }),
            Some(Err(why)) => Destination::Unreachable(why.to_string()),
            None => {
                let project = normalize::project_of(spec);
                let why = format!("Application referencing project {project} which does not exist");
                Destination::Unreachable(why)
            }
        }
    }

    fn decide_without(
        &self,
        application: &Application,
        cluster: deletion::Cluster<'_>,
        now: Timestamp,
    ) -> Decision {
        deletion::decide(&Observation {
            application,
            project: Project::Missing,
            own_namespace: &self.settings.namespace,
            cluster,
            live: &[],
            kinds: &|_, _| Ok(None),
            hooks: Rendered::Not,
            health: &|_| Ok(None),
            guarded_in_namespace: &|_| Vec::new(),
            settings: &DeletionSettings::default(),
            now,
        })
    }

    async fn decide_on(
        &self,
        key: &ObjectKey,
        application: &Application,
        stage: Stage,
        ground: &Ground,
        config: &Config,
        now: Timestamp,
    ) -> Decision {
        let cluster = &ground.cluster;
        let instance = self.instance(key);
        let mut live = cluster.managed(&instance);
        if stage == Stage::Cascade {
            match self.unseen(key, application, &live, ground, config).await {
                Ok(found) => live.extend(found),
                Err(error) => {
                    let why = error.to_string();
                    return self.decide_without(application, deletion::Cluster::Unreachable(&why), now);
                }
            }
        }
        let rendered = match stage.needs_hooks() {
            Some(hooks) => Some(self.delete_hooks(key, application, ground, config, hooks).await),
            None => None,
        };
        let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
            cluster.kind(api_version, kind).map_err(|error| error.to_string())
        };
        let health = |object: &Value| {
            baton_health::assess(object, &config.customizations).map_err(|error| error.to_string())
        };
        let guards = match stage {
            Stage::Cascade => self.guards(cluster, config, live.iter().map(Arc::as_ref)).await,
            _ => self.guards(cluster, config, std::iter::empty()).await,
        };
        let guards = match guards {
            Ok(guards) => guards,
            Err(error) => {
                let why = error.to_string();
                return self.decide_without(application, deletion::Cluster::Unreachable(&why), now);
            }
        };
        let stale = stale_approvals(application, &live, &guards, cluster, now);
        if !stale.is_empty() {
            return Decision { verbs: stale, look_again: Some(now), ..Decision::default() };
        }
        let guarded = |namespace: &str| guards.inside(cluster, namespace);
        deletion::decide(&Observation {
            application,
            project: Project::Found(&ground.project),
            own_namespace: &self.settings.namespace,
            cluster: deletion::Cluster::Ready(ground.destination()),
            live: &live,
            kinds: &kinds,
            hooks: match &rendered {
                None => Rendered::Not,
                Some(Ok(hooks)) => Rendered::Hooks(hooks),
                Some(Err(why)) => Rendered::Failed(why),
            },
            health: &health,
            guarded_in_namespace: &guarded,
            settings: &DeletionSettings::default(),
            now,
        })
    }

    /// What is the Application's own and there, though it is not seen. What is found to be gone is not asked for again.
    async fn unseen(
        &self,
        key: &ObjectKey,
        application: &Application,
        live: &[Arc<Value>],
        ground: &Ground,
        config: &Config,
    ) -> Result<Vec<Arc<Value>>, ClusterError> {
        let memory = self.memory(key);
        let mut unseen = deletion::unseen(application, live);
        memory.lock().leave_out_gone(application.metadata.uid.as_deref(), &mut unseen);
        let mut asked = Vec::with_capacity(unseen.len());
        for (key, api_version) in unseen {
            asked.push(async move { (ground.cluster.fetch(&api_version, &key).await, key) }.boxed());
        }
        let instance = self.instance(key);
        let mut answers = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
        let mut found = Vec::new();
        while let Some((answer, key)) = answers.next().await {
            match answer {
                Ok(Some(object)) if config.tracking.manages(&object, &instance) => found.push(object),
                // What may not be read may not be deleted either.
                Ok(_) | Err(ClusterError::Forbidden(_)) => memory.lock().note_gone(key),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The delete hooks as the source has them now.
    async fn delete_hooks(
        &self,
        key: &ObjectKey,
        application: &Application,
        ground: &Ground,
        config: &Config,
        hooks: HookType,
    ) -> Result<Vec<Arc<Value>>, String> {
        let memory = self.memory(key);
        let instance = self.instance(key);
        let subject = Subject {
            application,
            instance: &instance,
            project: &ground.project,
            cluster: &ground.cluster,
            config,
            memory: &memory,
        };
        // Where something is wrong, a commit that mends it may be there already.
        let wrong = |condition: &ApplicationCondition| condition.kind == conditions::DELETION_ERROR;
        let wanted = Wanted {
            sources: &normalize::sources(&application.spec),
            revisions: &[],
            manifests: &[],
            fresh: application.status.conditions.iter().any(wrong),
            ignore_cache: false,
            secrets: &self.known.repositories(),
            trust: &self.known.trust(),
        };
        let rendered = compare::render(&subject, &wanted, &self.manifests).await;
        let rendered = rendered.map_err(|error| error.to_string())?;
        let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
            ground.cluster.kind(api_version, kind).map_err(|error| error.to_string())
        };
        let place = Place {
            namespace: &application.spec.destination.namespace,
            instance: &instance,
            tracking: &config.tracking,
            kinds: &kinds,
        };
        let Targets { pre_delete, post_delete, .. } = targets::prepare(&rendered.objects, &place);
        let hooks = if hooks == HookType::PreDelete { pre_delete } else { post_delete };
        // Whether they are done is seen by watching them.
        let of_hooks = hooks.iter().map(|hook| (hook.api_version().to_owned(), hook.kind().to_owned()));
        let watched: Vec<(String, String)> = of_hooks.collect();
        ground.cluster.ready(&watched).await.map_err(|error| error.to_string())?;
        Ok(hooks)
    }

    /// Writes what is waited for, and the finalizers that are left if everything went well.
    async fn conclude(
        &self,
        key: &ObjectKey,
        application: &Arc<Application>,
        decision: Decision,
        failures: Vec<Finding>,
        evaluated: &[&str],
        now: Timestamp,
    ) -> Result<Left, PassError> {
        let went_well = failures.is_empty();
        let mut found = decision.found;
        found.extend(failures);
        let mut status = application.status.clone();
        status.conditions = conditions::merge(&status.conditions, &found, evaluated, in_seconds(now));
        if evaluated.contains(&conditions::DELETION_APPROVAL_REQUIRED_INFO) {
            resource_status::mark_waiting(&mut status.resources, &decision.approvals);
        }
        let finalizers = decision.finalizers.filter(|_| went_well);
        let extra = finalizers.as_ref().map(|left| json!({"metadata": {"finalizers": left}}));
        let advanced = extra.is_some();
        let mut written = application.clone();
        if let Some(patch) = status_patch(&application.status, &status, extra) {
            written = match self.writer.patch(application, patch).await {
                Ok(written) => written,
                // With its last finalizer it is gone.
                Err(error) if error.is_not_found() => {
                    return Ok(Left { application: None, look_again: None });
                }
                Err(error) => return Err(PassError::Write(error)),
            };
        }
        self.announce(application, &written, decision.event.as_deref());
        self.metrics.approval_ended(application, &written, now);
        let gone = written.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        if gone {
            tracing::info!(application = %key, "the Application is finalized");
            return Ok(Left { application: None, look_again: None });
        }
        let stated = decision.look_again.map(|at| until(at, now));
        let next = if advanced { NEXT_STAGE } else { BACKSTOP };
        Ok(Left { application: Some(written), look_again: sooner(stated, Some(next)) })
    }

    /// Tells people what is new.
    fn announce(&self, before: &Application, after: &Application, event: Option<&str>) {
        let fresh = |kind: &str| {
            let of_kind = |application: &Application| {
                let mut conditions = application.status.conditions.iter();
                conditions.find(|condition| condition.kind == kind).map(|condition| condition.message.clone())
            };
            of_kind(after).filter(|message| of_kind(before).as_ref() != Some(message))
        };
        if let Some(message) = fresh(conditions::DELETION_ERROR) {
            self.announcer.deletion_failed(after, &message);
        }
        if let Some(message) = fresh(conditions::DELETION_APPROVAL_REQUIRED_INFO) {
            self.announcer.approval_required(after, &message);
        }
        if let Some(event) = event {
            self.announcer.deletion_noted(after, event);
        }
    }
}

/// Carries the verbs out side by side and tells what went wrong.
async fn perform(ground: &Ground, verbs: &[Verb]) -> Vec<Finding> {
    let mut begun = Vec::with_capacity(verbs.len());
    for verb in verbs {
        begun.push(perform_one(ground, verb).boxed());
    }
    let ended: Vec<Option<Finding>> = futures::stream::iter(begun).buffer_unordered(AT_ONCE).collect().await;
    ended.into_iter().flatten().collect()
}

async fn perform_one(ground: &Ground, verb: &Verb) -> Option<Finding> {
    let outcome: Outcome = ground.cluster.perform(verb).await;
    deletion::failure(verb, &outcome)
}

impl Ground {
    pub(super) fn destination(&self) -> DestinationCluster<'_> {
        DestinationCluster { server: self.cluster.server(), name: &self.cluster.access().name }
    }
}

/// Whether nothing was said of a deletion yet. Its first pass says something; before it nobody can have approved what no
/// one was told of.
fn is_unasked(application: &Application) -> bool {
    let told = |condition: &ApplicationCondition| conditions::OF_DELETION.contains(&condition.kind.as_str());
    !application.status.conditions.iter().any(told)
}

/// Approvals on the Application's objects that were not given for this deletion.
fn stale_approvals(
    application: &Application,
    live: &[Arc<Value>],
    guards: &Guards,
    cluster: &Cluster,
    now: Timestamp,
) -> Vec<Verb> {
    let Some(since) = application.metadata.deletion_timestamp.as_ref().map(|time| time.0) else {
        return Vec::new();
    };
    let approvals = Approvals { application, since, now };
    let unasked = is_unasked(application);
    let defaults = approval::spec_defaults(application);
    let mut verbs = Vec::new();
    for object in live {
        if approval::guarded(Some(object), None, &defaults)
            && approval::is_stale(object, None, &approvals, unasked)
        {
            verbs.push(approval::revoke(object));
        }
        if object.kind() == "Namespace" && object.group().is_empty() {
            let inside = guards.inside(cluster, object.name());
            let stale = inside.iter().filter(|(_, held)| approval::is_stale(held, None, &approvals, unasked));
            verbs.extend(stale.map(|(_, held)| approval::revoke(held)));
        }
    }
    verbs
}
