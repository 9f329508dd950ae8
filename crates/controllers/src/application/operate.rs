//! Carrying an operation out: the engine says what to do, this module does it and writes down what came of it.

use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::{ApplicationCondition, OperationPhase, OperationState};
use baton_api::names::application::DELETION_APPROVED;
use baton_api::object::{KindInfo, Object, ResourceKey};
use baton_clusters::{Cluster, ClusterError};
use baton_sync::action::{Action, Outcome, Verb};
use baton_sync::approval::{self, Approvals};
use baton_sync::conditions::{self, Finding};
use baton_sync::engine::{Engine, Next};
use baton_sync::observation::{EngineSettings, GateScope, Observation};
use baton_sync::operation::{self, OperationSettings, Step, Write};
use baton_sync::options::Options;
use baton_sync::resource_status;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::compare::{self, CompareError, Compared, Subject, Wanted};
use super::config::Config;
use super::guards::Guards;
use super::reconcile::{Left, PassError, Reconciler, until};
use super::refresh::{Ground, in_seconds};
use super::settings::Timing;
use super::write::status_patch;
use crate::cache::ObjectKey;

/// How many actions of one operation are carried out at once.
const ACTIONS: usize = 20;
/// An operation that was changed under our hands is looked at again at once.
const AT_ONCE: Duration = Duration::from_millis(10);

/// What is said where the operator wants syncs to run as other accounts.
pub(super) const NO_IMPERSONATION: &str = "application.sync.impersonation.enabled is set in argocd-cm, and acting as another account is not supported";

/// An operation under way in this pass.
struct Pass<'a> {
    key: &'a ObjectKey,
    /// The Application as last read or written.
    application: Arc<Application>,
    state: OperationState,
    now: Timestamp,
}

/// What waits for a person's word.
#[derive(Default)]
struct Asked {
    keys: Vec<ResourceKey>,
    /// Why words that were given do not count.
    refused: Vec<String>,
}

/// Why a pass goes no further.
enum Stop {
    Failed(PassError),
    /// Somebody changed the operation meanwhile.
    Overtaken,
}

impl From<PassError> for Stop {
    fn from(error: PassError) -> Stop {
        Stop::Failed(error)
    }
}

impl Reconciler {
    /// Takes the operation one pass further.
    pub(super) async fn operate(&self, key: &ObjectKey) -> Result<Left, PassError> {
        let read = self.writer.read(key).await.map_err(PassError::Read)?;
        let Some(application) = read else { return Ok(Left { application: None, look_again: None }) };
        let now = self.now();
        let settings = settings(&self.known.config().timing);
        let (state, changed) = match operation::step(&application, &settings, now) {
            Step::None => return Ok(Left { application: Some(application), look_again: None }),
            Step::Wait { until: due } => {
                let look_again = Some(until(due, now));
                return Ok(Left { application: Some(application), look_again });
            }
            Step::End(write) => {
                let state = write.state.clone();
                let mut pass = Pass { key, application, state, now };
                let ended = self.write(&mut pass, *write, None).await;
                return left(pass, ended);
            }
            Step::Run { state, changed } => (*state, changed),
        };
        let mut pass = Pass { key, application, state: state.clone(), now };
        if changed {
            let write = Write { state, completion: None, look_again: None };
            if let Err(stop) = self.write(&mut pass, write, None).await {
                return left(pass, Err(stop));
            }
        }
        let ended = self.run(&mut pass, &settings).await;
        left(pass, ended)
    }

    async fn run(&self, pass: &mut Pass<'_>, settings: &OperationSettings) -> Result<Option<Duration>, Stop> {
        let ground = match self.ground(&pass.application) {
            Ok(ground) => ground,
            Err(findings) => {
                let words = in_words(&findings);
                return self.end(pass, OperationPhase::Error, &words).await;
            }
        };
        let config = self.known.config();
        if config.impersonation {
            return self.end(pass, OperationPhase::Error, NO_IMPERSONATION).await;
        }
        let windows = &ground.project.spec().sync_windows;
        if let Some(write) = operation::hold(&pass.application, &pass.state, windows, settings, pass.now) {
            return self.write(pass, write, None).await;
        }
        if let Some(rest) = self.memory(pass.key).lock().pause_left() {
            return Ok(Some(rest));
        }
        let request = match operation::request(&pass.application, &pass.state) {
            Ok(request) => request,
            Err(message) => return self.end(pass, OperationPhase::Error, &message).await,
        };
        // An operation may name other sources than the spec, whose own are checked with it.
        let refused = request.sources.iter().find(|source| !ground.project.permits_source(&source.repo_url));
        if let Some(source) = refused {
            let (url, project) = (&source.repo_url, ground.project.name());
            let message = format!("application repo {url} is not permitted in project '{project}'");
            return self.end(pass, OperationPhase::Error, &message).await;
        }
        let compared = match self.compare_for(pass, &ground, &config, &request).await {
            Ok(compared) => compared,
            Err(error) => return self.cannot_compare(pass, &error, settings).await,
        };
        let found: Vec<ApplicationCondition> = compared.findings.iter().map(condition).collect();
        if let Some((phase, message)) = operation::refusal(&found) {
            return self.end(pass, phase, &message).await;
        }
        // Nobody can have approved what no one was told of.
        let unasked = pass.state.sync_result.is_none() && pass.state.retry_count == 0;
        if self.take_back_approval(pass, unasked).await? {
            return Ok(Some(AT_ONCE));
        }
        if pass.state.sync_result.is_none() {
            operation::pin(&mut pass.state, &request, &compared.rendered.revisions);
            let policy = pass.application.spec.sync_policy.as_ref();
            let metadata = policy.and_then(|policy| policy.managed_namespace_metadata.clone());
            pass.state.sync_result.get_or_insert_default().managed_namespace_metadata = metadata;
        }
        let prunes = pass.state.operation.sync.as_ref().is_some_and(|sync| sync.prune && !sync.dry_run);
        let extra = compared.pairs.iter().filter(|pair| prunes && pair.target.is_none());
        let going = extra.filter_map(|pair| pair.live.as_deref());
        let guards = match self.guards(&ground.cluster, &config, going).await {
            Ok(guards) => guards,
            Err(error) => {
                return self.cannot_compare(pass, &CompareError::Cluster(error), settings).await;
            }
        };
        let stale = self.stale_approvals(pass, &ground.cluster, &compared, &guards, unasked);
        if !stale.is_empty() {
            for verb in &stale {
                if let Outcome::Failed { message } = ground.cluster.perform(verb).await {
                    let write = operation::goes_on(pass.state.clone(), &message, settings, pass.now);
                    return self.write(pass, write, None).await;
                }
            }
            return Ok(Some(AT_ONCE));
        }
        self.drive(pass, &ground, &config, &compared, &guards, settings).await
    }

    /// A retry that takes the newest revision may delete more than was shown to whoever approved the attempt before: the
    /// Application's approval, which covers everything, goes with that attempt. Those on objects stay.
    /// So does a time that was written ahead of the operation.
    async fn take_back_approval(&self, pass: &mut Pass<'_>, unasked: bool) -> Result<bool, Stop> {
        let state = &pass.state;
        let renewed = state.operation.retry.refresh && state.retry_count > 0 && state.sync_result.is_none();
        let annotations = pass.application.metadata.annotations.as_ref();
        let carried = annotations.is_some_and(|all| all.contains_key(DELETION_APPROVED));
        let goes = (renewed && carried) || (unasked && approval::is_ahead(&pass.application, pass.now));
        if !goes {
            return Ok(false);
        }
        let patch = json!({"metadata": {"annotations": {DELETION_APPROVED: null}}});
        self.writer.patch(&pass.application, patch).await.map_err(PassError::Write)?;
        Ok(true)
    }

    /// Approvals on objects of this operation that were not given for it.
    fn stale_approvals(
        &self,
        pass: &Pass<'_>,
        cluster: &Cluster,
        compared: &Compared,
        guards: &Guards,
        unasked: bool,
    ) -> Vec<Verb> {
        let Some(sync) = pass.state.operation.sync.as_ref().filter(|sync| !sync.dry_run) else {
            return Vec::new();
        };
        let Some(since) = pass.state.started_at.as_ref().map(|time| time.0) else { return Vec::new() };
        let approvals = Approvals { application: &pass.application, since, now: pass.now };
        let defaults = approval::sync_defaults(&pass.application, sync);
        let mut verbs = Vec::new();
        for pair in &compared.pairs {
            let (Some(live), target) = (pair.live.as_deref(), pair.target.as_deref()) else { continue };
            if approval::guarded(Some(live), target, &defaults)
                && approval::is_stale(live, target, &approvals, unasked)
            {
                verbs.push(approval::revoke(live));
            }
            if sync.prune && target.is_none() && live.kind() == "Namespace" && live.group().is_empty() {
                let inside = guards.inside(cluster, live.name());
                let stale =
                    inside.iter().filter(|(_, held)| approval::is_stale(held, None, &approvals, unasked));
                verbs.extend(stale.map(|(_, held)| approval::revoke(held)));
            }
        }
        verbs
    }

    async fn compare_for(
        &self,
        pass: &Pass<'_>,
        ground: &Ground,
        config: &Config,
        request: &operation::Request,
    ) -> Result<Compared, CompareError> {
        let memory = self.memory(pass.key);
        let sync = pass.state.operation.sync.as_ref();
        let subject = Subject {
            application: &pass.application,
            instance: &self.instance(pass.key),
            project: &ground.project,
            cluster: &ground.cluster,
            config,
            memory: &memory,
        };
        let wanted = Wanted {
            sources: &request.sources,
            revisions: &request.revisions,
            manifests: sync.map_or(&[], |sync| sync.manifests.as_slice()),
            fresh: true,
            ignore_cache: false,
            secrets: &self.known.repositories(),
            trust: &self.known.trust(),
        };
        let mut compared = compare::compare(&subject, &wanted, &self.manifests).await?;
        let options = Options::list(sync.map_or(&[], |sync| sync.sync_options.as_slice()));
        if options.has("RespectIgnoreDifferences=true") {
            compare::respect_differences(&subject, &mut compared)?;
        }
        Ok(compared)
    }

    /// Asks the engine and does as it says, until it has nothing more to say.
    async fn drive(
        &self,
        pass: &mut Pass<'_>,
        ground: &Ground,
        config: &Config,
        compared: &Compared,
        guards: &Guards,
        settings: &OperationSettings,
    ) -> Result<Option<Duration>, Stop> {
        let cluster = &ground.cluster;
        let destination = ground.destination();
        let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
            cluster.kind(api_version, kind).map_err(|error| error.to_string())
        };
        let permitted = |object: &Value, info: &KindInfo| -> Result<(), String> {
            cluster.check_scope(&object.key(), info)?;
            ground.project.permits_target(object, Some(info), destination)
        };
        let health = |object: &Value| {
            baton_health::assess(object, &config.customizations).map_err(|error| error.to_string())
        };
        let guarded = |namespace: &str| guards.inside(cluster, namespace);
        let engine_settings = engine_settings(config, self.settings.approval_by_wave);
        // The engine sees the Application as it was when the pass began; writes of this pass change no more than its
        // status.
        let application = pass.application.clone();
        let instance = self.instance(pass.key);
        let revision =
            pass.state.sync_result.as_ref().map(|result| result.revision.clone()).unwrap_or_default();
        let observation = Observation {
            application: &application,
            instance: &instance,
            now: pass.now,
            revision: &revision,
            pairs: &compared.pairs,
            hooks: &compared.targets.hooks,
            live: &compared.live,
            kinds: &kinds,
            permitted: &permitted,
            health: &health,
            guarded_in_namespace: &guarded,
            shared: compared.shared.as_deref(),
            settings: &engine_settings,
        };
        let mut engine = Engine::new(observation, &pass.state);
        loop {
            let next = engine.next();
            pass.state.sync_result.get_or_insert_default().resources = engine.results();
            match next {
                Next::Do(groups) => {
                    self.write_down(pass).await?;
                    if deletes(&groups) {
                        self.check_approval(pass, &application).await?;
                    }
                    for group in groups {
                        for (id, outcome) in perform(cluster, group).await {
                            engine.record(id, outcome);
                        }
                    }
                }
                Next::Pause(pause) => {
                    self.write_down(pass).await?;
                    self.memory(pass.key).lock().pause_for(pause);
                    return Ok(Some(pause));
                }
                Next::Wait { message, approvals } => {
                    let refused = refusals(pass, &approvals, compared);
                    let write = operation::goes_on(pass.state.clone(), &message, settings, pass.now);
                    return self.write(pass, write, Some(&Asked { keys: approvals, refused })).await;
                }
                Next::Done { phase, message } => return self.end(pass, phase, &message).await,
            }
        }
    }

    /// Writes results that changed, so that a pass that dies from here on is taken up again where it was.
    async fn write_down(&self, pass: &mut Pass<'_>) -> Result<(), Stop> {
        if pass.application.status.operation_state.as_ref() == Some(&pass.state) {
            return Ok(());
        }
        let write = Write { state: pass.state.clone(), completion: None, look_again: None };
        self.write(pass, write, None).await.map(drop)
    }

    /// Approval is somebody's word of now, so it is asked for right before it is used.
    async fn check_approval(&self, pass: &mut Pass<'_>, observed: &Application) -> Result<(), Stop> {
        let read = self.writer.read(pass.key).await.map_err(PassError::Read)?;
        let Some(current) = read else { return Err(Stop::Overtaken) };
        let approval = |application: &Application| {
            application.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_APPROVED)).cloned()
        };
        let phase = |application: &Application| {
            application.status.operation_state.as_ref().map(|state| state.phase.clone())
        };
        let same = approval(&current) == approval(observed)
            && phase(&current) == phase(&pass.application)
            && current.metadata.uid == observed.metadata.uid;
        pass.application = current;
        if same { Ok(()) } else { Err(Stop::Overtaken) }
    }

    async fn cannot_compare(
        &self,
        pass: &mut Pass<'_>,
        error: &CompareError,
        settings: &OperationSettings,
    ) -> Result<Option<Duration>, Stop> {
        let began = pass.state.sync_result.as_ref().is_some_and(|result| !result.resources.is_empty());
        let waits = match error {
            CompareError::Cluster(ClusterError::NotReady(_)) => true,
            // What has begun goes on when the cluster is back; what has not may as well be asked for again.
            CompareError::Cluster(_) | CompareError::Differences(_) => began,
            CompareError::Sources(fault) => began && fault.is_transient(),
            CompareError::Manifests(_) => false,
        };
        if waits && pass.state.phase != OperationPhase::Terminating {
            let message = format!("waiting to go on: {error}");
            let write = operation::goes_on(pass.state.clone(), &message, settings, pass.now);
            return self.write(pass, write, None).await;
        }
        let words = format!("{}: {error}", conditions::COMPARISON_ERROR);
        self.end(pass, OperationPhase::Error, &words).await
    }

    async fn end(
        &self,
        pass: &mut Pass<'_>,
        phase: OperationPhase,
        message: &str,
    ) -> Result<Option<Duration>, Stop> {
        let write = operation::ended(&pass.application, pass.state.clone(), phase, message, pass.now);
        self.write(pass, write, None).await
    }

    /// Writes the state of an operation onto the version that was read. Where that has changed, what is left to be
    /// written is judged anew. `asked` is what waits for approval, where that was found out.
    async fn write(
        &self,
        pass: &mut Pass<'_>,
        mut write: Write,
        asked: Option<&Asked>,
    ) -> Result<Option<Duration>, Stop> {
        loop {
            let before = pass.application.clone();
            let phase = write.state.phase.clone();
            match self.try_write(&before, &write, asked, pass.now).await {
                Ok(written) => {
                    pass.application = written;
                    self.written(pass, &before, &write);
                    let overtaken = phase == OperationPhase::Terminating
                        && pass.state.phase != OperationPhase::Terminating;
                    pass.state = write.state;
                    return match overtaken {
                        true => Err(Stop::Overtaken),
                        false => Ok(write.look_again.map(|at| until(at, pass.now))),
                    };
                }
                Err(error) if error.is_conflict() => {
                    let read = self.writer.read(pass.key).await.map_err(PassError::Read)?;
                    let Some(fresh) = read else { return Err(Stop::Overtaken) };
                    let Some(left) = operation::rebase(&fresh, write) else {
                        pass.application = fresh;
                        return Err(Stop::Overtaken);
                    };
                    (pass.application, write) = (fresh, left);
                }
                Err(error) if (error.is_too_large() || error.is_invalid()) && write.completion.is_none() => {
                    let message = format!("the results cannot be stored: {error}");
                    if let Some(result) = &mut write.state.sync_result {
                        result.resources.clear();
                    }
                    write = operation::ended(
                        &pass.application,
                        write.state,
                        OperationPhase::Error,
                        &message,
                        pass.now,
                    );
                }
                Err(error) => return Err(PassError::Write(error).into()),
            }
        }
    }

    async fn try_write(
        &self,
        application: &Arc<Application>,
        write: &Write,
        asked: Option<&Asked>,
        now: Timestamp,
    ) -> Result<Arc<Application>, crate::objects::ApiError> {
        let mut after = Application::clone(application);
        write.apply(&mut after);
        // An operation that has ended waits for nobody.
        let nobody = Asked::default();
        let asked = asked.or_else(|| write.completion.as_ref().map(|_| &nobody));
        if let Some(asked) = asked {
            after.status.conditions = with_approvals(&after, asked, now);
            // What a comparison marked stays marked: it looks further than the wave at hand.
            resource_status::mark_waiting_too(&mut after.status.resources, &asked.keys);
        }
        let cleared = after.operation.is_none() && application.operation.is_some();
        let extra = cleared.then(|| json!({"operation": null}));
        match status_patch(&application.status, &after.status, extra) {
            Some(patch) => self.writer.patch(application, patch).await,
            None => Ok(application.clone()),
        }
    }

    /// Tells the world.
    fn written(&self, pass: &Pass<'_>, before: &Application, write: &Write) {
        let waiting = |application: &Application| {
            let mut conditions = application.status.conditions.iter();
            conditions
                .find(|condition| condition.kind == conditions::DELETION_APPROVAL_REQUIRED_INFO)
                .cloned()
        };
        if let Some(condition) = waiting(&pass.application)
            && waiting(before).is_none_or(|known| known.message != condition.message)
        {
            self.announcer.approval_required(&pass.application, &condition.message);
        }
        self.metrics.approval_ended(before, &pass.application, pass.now);
        let Some(completion) = &write.completion else { return };
        tracing::info!(application = %pass.key, phase = %write.state.phase, "{}", completion.event);
        self.memory(pass.key).lock().end_pause();
        self.announcer.completed(&pass.application, &write.state.phase, completion.event.clone());
        self.metrics.count_sync(&pass.application, &write.state);
        if let Some(level) = completion.refresh {
            self.asks.keep(pass.key, level);
        }
    }
}

fn left(pass: Pass<'_>, ended: Result<Option<Duration>, Stop>) -> Result<Left, PassError> {
    let application = Some(pass.application);
    match ended {
        Ok(look_again) => Ok(Left { application, look_again }),
        Err(Stop::Overtaken) => Ok(Left { application, look_again: Some(AT_ONCE) }),
        Err(Stop::Failed(error)) => Err(error),
    }
}

async fn perform(cluster: &baton_clusters::Cluster, group: Vec<Action>) -> Vec<(usize, Outcome)> {
    let mut begun = Vec::with_capacity(group.len());
    for action in group {
        begun.push(perform_one(cluster, action).boxed());
    }
    futures::stream::iter(begun).buffer_unordered(ACTIONS).collect().await
}

async fn perform_one(cluster: &baton_clusters::Cluster, action: Action) -> (usize, Outcome) {
    (action.id, cluster.perform(&action.verb).await)
}

fn deletes(groups: &[Vec<Action>]) -> bool {
    let deletes = |action: &Action| match &action.verb {
        Verb::Delete(_) => true,
        Verb::Apply(apply) => apply.force || apply.replace,
        Verb::ReleaseHook { .. } | Verb::Revoke { .. } | Verb::Look { .. } => false,
    };
    groups.iter().flatten().any(deletes)
}

/// Why approvals that stand on the Application or on what waits do not count.
fn refusals(pass: &Pass<'_>, waiting: &[ResourceKey], compared: &Compared) -> Vec<String> {
    let Some(since) = pass.state.started_at.as_ref().map(|time| time.0) else { return Vec::new() };
    let approvals = Approvals { application: &pass.application, since, now: pass.now };
    let pairs = compared.pairs.iter().filter(|pair| waiting.contains(&pair.key));
    let objects = pairs.filter_map(|pair| Some((pair.live.as_deref()?, pair.target.as_deref())));
    match waiting.is_empty() {
        true => Vec::new(),
        false => approval::refusals(objects, &approvals),
    }
}

/// The conditions with the one that names what waits for approval, or without it.
fn with_approvals(application: &Application, asked: &Asked, now: Timestamp) -> Vec<ApplicationCondition> {
    let known = &application.status.conditions;
    let evaluated = [conditions::DELETION_APPROVAL_REQUIRED_INFO];
    if asked.keys.is_empty() && !known.iter().any(|condition| evaluated.contains(&condition.kind.as_str())) {
        return known.clone();
    }
    let findings: Vec<Finding> = match asked.keys.as_slice() {
        [] => Vec::new(),
        keys => {
            let keys: Vec<String> = keys.iter().map(ResourceKey::to_string).collect();
            let message = format!("pruning waits for approval of {}", keys.join(", "));
            let message =
                std::iter::once(&message).chain(&asked.refused).cloned().collect::<Vec<_>>().join("; ");
            vec![Finding::new(conditions::DELETION_APPROVAL_REQUIRED_INFO, message)]
        }
    };
    conditions::merge(known, &findings, &evaluated, in_seconds(now))
}

fn settings(timing: &Timing) -> OperationSettings {
    let timeout = (!timing.sync_timeout.is_zero()).then_some(timing.sync_timeout);
    OperationSettings { timeout, ..OperationSettings::default() }
}

pub(super) fn engine_settings(config: &Config, by_wave: bool) -> EngineSettings {
    EngineSettings {
        wave_delay: config.timing.wave_delay,
        gate: if by_wave { GateScope::Wave } else { GateScope::Operation },
        tracking: config.tracking.clone(),
    }
}

fn in_words(findings: &[Finding]) -> String {
    let all: Vec<ApplicationCondition> = findings.iter().map(condition).collect();
    conditions::in_words(&all)
}

fn condition(finding: &Finding) -> ApplicationCondition {
    ApplicationCondition {
        kind: finding.kind.to_string(),
        message: finding.message.clone(),
        last_transition_time: None,
    }
}
