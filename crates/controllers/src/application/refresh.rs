//! Comparing an Application with its sources, and saying what was found.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::{ApplicationStatus, HealthCode, HealthStatus, ResourceStatus, SyncCode};
use baton_api::object::{KindInfo, ResourceKey};
use baton_clusters::Cluster;
use baton_generators::demands_signatures;
use baton_sync::auto_sync;
use baton_sync::conditions::{self, Finding};
use baton_sync::deletion;
use baton_sync::normalize::{self, Project};
use baton_sync::project::{DestinationCluster, ProjectRules};
use baton_sync::refresh::{self, Level, Refresh};
use baton_sync::resource_status::{self, Comparison};
use baton_sync::windows;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

use super::compare::{self, CompareError, Compared, Subject, Wanted};
use super::config::Config;
use super::reconcile::{Left, PassError, Reconciler, sooner, until};
use super::settings::Timing;
use super::summary;
use super::write::spec_patch;
use crate::cache::ObjectKey;

/// How soon sources that could not be reached are tried again.
const SOURCES_AGAIN: Duration = Duration::from_secs(10);

/// Where an Application is deployed to, and what it may do there.
pub(super) struct Ground {
    pub(super) project: Arc<ProjectRules>,
    pub(super) cluster: Arc<Cluster>,
}

/// What a comparison says of an Application.
struct Found {
    status: ApplicationStatus,
    /// Changes beside the status.
    extra: Map<String, Value>,
    look_again: Option<Duration>,
    /// The text of the event that tells of an automatic sync.
    started: Option<String>,
}

impl Reconciler {
    /// Compares, and persists what changed.
    pub(super) async fn refresh(
        &self,
        key: &ObjectKey,
        read: &Arc<Application>,
        needed: &Refresh,
    ) -> Result<Left, PassError> {
        let now = self.now();
        if needed.level == Level::Tree && read.status.reconciled_at.is_some() {
            return self.refresh_summary(key, read).await;
        }
        let mut application = Application::clone(read);
        if let Some(spec) = normalize::normalized(&read.spec) {
            application.spec = spec;
        }
        let mut found = match self.ground(&application) {
            Ok(ground) => match self.compare_on(key, &application, needed, &ground).await {
                Ok(compared) => self.judge(key, &application, &ground, compared, now).await,
                Err(error) => {
                    let Some(found) = self.failed(key, &application, needed, &error, now) else {
                        return Ok(Left { application: Some(read.clone()), look_again: Some(SOURCES_AGAIN) });
                    };
                    found
                }
            },
            Err(findings) => unfit(&application, &findings, now),
        };
        if let Some(patch) = spec_patch(&read.spec, &application.spec) {
            found.extra.insert("spec".to_owned(), patch["spec"].clone());
        }
        let changed = found.status != read.status || !found.extra.is_empty();
        if changed && (read.status.reconciled_at.is_none() || needed.level >= Level::Latest) {
            found.status.reconciled_at = Some(Time(in_seconds(now)));
        }
        let written = self.persist(read, &found, now).await?;
        self.announcer.verdicts(read, &written.status);
        if let Some(event) = found.started {
            tracing::info!(application = %key, "{event}");
            self.announcer.started(read, event);
        }
        if let Some(patch) = refresh::served(read, &written) {
            self.writer.take_back(&written, patch).await.map_err(PassError::Write)?;
        }
        self.note_compared(key, needed, now);
        let application = self.known.application(key);
        Ok(Left { application, look_again: found.look_again })
    }

    /// Children changed: of all that is told only the summary can be different.
    async fn refresh_summary(&self, key: &ObjectKey, read: &Arc<Application>) -> Result<Left, PassError> {
        let mut status = read.status.clone();
        if let Ok(cluster) = self.clusters.resolve(&read.spec.destination) {
            let roots: Vec<ResourceKey> = read.status.resources.iter().map(row_key).collect();
            status.summary.images = summary::images(&cluster, &roots);
        }
        self.writer.status(read, &status, None).await.map_err(PassError::Write)?;
        Ok(Left { application: self.known.application(key), look_again: None })
    }

    /// The project and the cluster of an Application, or what is wrong with its spec.
    pub(super) fn ground(&self, application: &Application) -> Result<Ground, Vec<Finding>> {
        let spec = &application.spec;
        let project = self.known.project(normalize::project_of(spec));
        let cluster = self.clusters.resolve(&spec.destination);
        // Who reads that there is no such cluster looks for its Secret, and finds it.
        let cluster = cluster.map_err(|why| self.known.broken_cluster(&spec.destination).unwrap_or(why));
        let known = match &project {
            Some(Ok(rules)) => Project::Found(rules),
            Some(Err(why)) => Project::Failed(why),
            None => Project::Missing,
        };
        let destination = match &cluster {
            Ok(cluster) => Ok(DestinationCluster { server: cluster.server(), name: &cluster.access().name }),
            Err(why) => Err(why.as_str()),
        };
        let mut findings = normalize::problems(application, known, &self.settings.namespace, destination);
        if let Some(Ok(rules)) = &project
            && demands_signatures(rules.spec())
        {
            let name = rules.name();
            let message =
                format!("project '{name}' takes only signed commits, and signatures cannot be verified");
            findings.push(Finding::new(conditions::INVALID_SPEC_ERROR, message));
        }
        if let Some(fault) = &self.known.config().fault {
            findings
                .push(Finding::new(conditions::UNKNOWN_ERROR, format!("argocd-cm cannot be used: {fault}")));
        }
        match (project, cluster) {
            (Some(Ok(project)), Ok(cluster)) if findings.is_empty() => Ok(Ground { project, cluster }),
            _ => Err(findings),
        }
    }

    async fn compare_on(
        &self,
        key: &ObjectKey,
        application: &Application,
        needed: &Refresh,
        ground: &Ground,
    ) -> Result<Compared, CompareError> {
        let spec = &application.spec;
        let sources = normalize::sources(spec);
        let sync = &application.status.sync;
        let recent = match normalize::has_several_sources(spec) {
            true => sync.revisions.clone(),
            false => vec![sync.revision.clone()],
        };
        let recent = if needed.level <= Level::Recent { recent } else { Vec::new() };
        let memory = self.memory(key);
        let config = self.known.config();
        let subject = Subject {
            application,
            instance: &self.instance(key),
            project: &ground.project,
            cluster: &ground.cluster,
            config: &config,
            memory: &memory,
        };
        let wanted = Wanted {
            sources: &sources,
            revisions: &recent,
            manifests: &[],
            fresh: needed.level == Level::Resolve,
            ignore_cache: needed.hard,
            secrets: &self.known.repositories(),
            trust: &self.known.trust(),
        };
        let compared = compare::compare(&subject, &wanted, &self.manifests).await?;
        let server = ground.cluster.server();
        let moved = {
            let mut memory = memory.lock();
            memory.failing = None;
            memory.deployed_to.replace(server.clone()).filter(|before| before != server)
        };
        if let Some(before) = moved {
            self.leave(&before, subject.instance);
        }
        Ok(compared)
    }

    /// What the comparison means for the Application.
    async fn judge(
        &self,
        key: &ObjectKey,
        application: &Application,
        ground: &Ground,
        compared: Compared,
        now: Timestamp,
    ) -> Found {
        let config = self.known.config();
        let mut status = application.status.clone();
        let spec = &application.spec;
        let mut findings = compared.findings.clone();
        let judged = judge_rows(application, ground, &compared, &config, now);
        findings.extend(judged.found);
        status.resources = judged.resources;
        status.sync.status = judged.sync;
        let revisions = &compared.rendered.revisions;
        match normalize::has_several_sources(spec) {
            true => (status.sync.revision, status.sync.revisions) = (String::new(), revisions.clone()),
            false => {
                status.sync.revision = revisions.first().cloned().unwrap_or_default();
                status.sync.revisions = Vec::new();
            }
        }
        status.sync.compared_to = normalize::compared_to(spec, &normalize::sources(spec));
        let health = HealthStatus {
            status: judged.health.code,
            message: judged.health.message,
            last_transition_time: None,
        };
        status.health = transitioned(&application.status.health, health, now);
        let types = &compared.rendered.source_types;
        match normalize::has_several_sources(spec) {
            true => (status.source_type, status.source_types) = (Default::default(), types.clone()),
            false => {
                (status.source_type, status.source_types) =
                    (types.first().cloned().unwrap_or_default(), Vec::new());
            }
        }
        status.controller_namespace = self.settings.namespace.clone();
        status.resource_health_source = String::new();
        status.summary = summary::of(&ground.cluster, &compared.pairs);
        findings.extend(self.orphans(application, ground).await);
        let evaluated =
            [&conditions::OF_COMPARISON[..], &conditions::OF_SPEC, &conditions::OF_ORPHANS].concat();
        status.conditions = conditions::merge(&status.conditions, &findings, &evaluated, in_seconds(now));
        let mut found = Found { status, extra: Map::new(), look_again: None, started: None };
        // In the same write as the status: an Application that looks synced never goes without its hooks.
        let (pre, post) = (!compared.targets.pre_delete.is_empty(), !compared.targets.post_delete.is_empty());
        if let Some(finalizers) = deletion::for_hooks(application, pre, post) {
            found.extra.insert("metadata".to_owned(), json!({ "finalizers": finalizers }));
        }
        let pairs: BTreeSet<&ResourceKey> = compared.pairs.iter().map(|pair| &pair.key).collect();
        self.memory(key).lock().keep_only(|known| pairs.contains(known));
        self.decide_auto_sync(application, ground, &compared, &config.timing, now, &mut found);
        found
    }

    fn decide_auto_sync(
        &self,
        application: &Application,
        ground: &Ground,
        compared: &Compared,
        timing: &Timing,
        now: Timestamp,
        found: &mut Found,
    ) {
        let windows = &ground.project.spec().sync_windows;
        let matching = windows::matching(windows, application);
        let verdict = windows::judge(&matching, windows::Asker::default(), now);
        let decision = auto_sync::decide(&auto_sync::Observation {
            application,
            sync: &found.status.sync,
            resources: &found.status.resources,
            windows: &verdict,
            revisions_may_differ: compared.revisions_may_differ,
            self_heal: &timing.self_heal(),
            now,
        });
        if let Some(findings) = &decision.conditions {
            found.status.conditions = conditions::merge(
                &found.status.conditions,
                findings,
                &conditions::OF_AUTO_SYNC,
                in_seconds(now),
            );
        }
        if let Some(operation) = decision.start {
            // What is told of the operation before stays: the next one's start must differ from its.
            found.extra.insert("operation".to_owned(), json!(operation));
            found.started = Some(decision.reason);
        }
        if !verdict.allowed && application.spec.auto_syncs() {
            let opens = verdict.changes_at.map(|at| until(at, now));
            found.look_again = sooner(found.look_again, opens);
        }
        found.look_again = sooner(found.look_again, decision.look_again);
    }

    /// What a comparison that failed says of the Application; nothing while the failure may still pass.
    fn failed(
        &self,
        key: &ObjectKey,
        application: &Application,
        needed: &Refresh,
        error: &CompareError,
        now: Timestamp,
    ) -> Option<Found> {
        let memory = self.memory(key);
        if let CompareError::Sources(fault) = error {
            let since = *memory.lock().failing.get_or_insert(now);
            let grace = self.known.config().timing.repo_error_grace;
            let passes = refresh::passes_over(Some(since), needed.level, grace, now);
            // What no waiting mends is said at once.
            if fault.is_transient() && passes {
                tracing::warn!(application = %key, %error, "sources cannot be reached; trying again");
                return None;
            }
        }
        let mut status = application.status.clone();
        status.sync.status = SyncCode::Unknown;
        let sources = normalize::sources(&application.spec);
        status.sync.compared_to = normalize::compared_to(&application.spec, &sources);
        for row in status.resources.iter_mut().filter(|row| !row.status.is_unset()) {
            row.status = SyncCode::Unknown;
        }
        // What the sources lack says nothing of how the cluster fares; but nothing was ever known of a new Application.
        let of_sources = matches!(error, CompareError::Sources(_) | CompareError::Manifests(_));
        if !of_sources || status.health.status.is_unset() {
            let unknown = HealthStatus { status: HealthCode::Unknown, ..HealthStatus::default() };
            status.health = transitioned(&application.status.health, unknown, now);
        }
        status.controller_namespace = self.settings.namespace.clone();
        let findings = [Finding::new(conditions::COMPARISON_ERROR, error.to_string())];
        let evaluated = [&conditions::OF_COMPARISON[..], &conditions::OF_SPEC].concat();
        status.conditions = conditions::merge(&status.conditions, &findings, &evaluated, in_seconds(now));
        let transient = !matches!(error, CompareError::Sources(fault) if !fault.is_transient());
        let look_again = transient.then_some(SOURCES_AGAIN);
        Some(Found { status, extra: Map::new(), look_again, started: None })
    }

    /// An Application is deployed elsewhere now.
    fn leave(&self, server: &str, instance: &str) {
        if let Some(cluster) = self.clusters.all().iter().find(|cluster| &**cluster.server() == server) {
            cluster.forget(instance);
        }
    }

    async fn orphans(&self, application: &Application, ground: &Ground) -> Option<Finding> {
        if !ground.project.looks_for_orphans() {
            return None;
        }
        let namespace = &application.spec.destination.namespace;
        let orphans = match ground.cluster.orphans(namespace).await {
            Ok(orphans) => orphans,
            Err(error) => {
                tracing::warn!(%error, namespace, "orphaned resources could not be looked for");
                return None;
            }
        };
        let count = orphans.iter().filter(|key| ground.project.is_orphan(key)).count();
        self.metrics.set_orphans(application, count);
        let warning = ground.project.orphan_warning(count)?;
        Some(Finding::new(conditions::ORPHANED_RESOURCE_WARNING, warning))
    }

    /// Writes what was found in one patch, onto no other state than the one it was found for.
    async fn persist(
        &self,
        read: &Arc<Application>,
        found: &Found,
        now: Timestamp,
    ) -> Result<Arc<Application>, PassError> {
        let extra = (!found.extra.is_empty()).then(|| Value::Object(found.extra.clone()));
        match self.writer.status(read, &found.status, extra).await {
            Err(error) if error.is_too_large() || error.is_invalid() => {
                let message = format!("the status cannot be stored: {error}");
                let mut status = read.status.clone();
                let finding = [Finding::new(conditions::UNKNOWN_ERROR, message)];
                let evaluated = [conditions::UNKNOWN_ERROR];
                status.conditions =
                    conditions::merge(&status.conditions, &finding, &evaluated, in_seconds(now));
                self.writer.status(read, &status, None).await.map_err(PassError::Write)
            }
            answer => answer.map_err(PassError::Write),
        }
    }

    fn note_compared(&self, key: &ObjectKey, needed: &Refresh, now: Timestamp) {
        let memory = self.memory(key);
        let mut memory = memory.lock();
        if needed.level >= Level::Latest || memory.compared.is_none() {
            memory.compared = Some(now);
        }
        if needed.hard || memory.compared_hard.is_none() {
            memory.compared_hard = Some(now);
        }
    }
}

fn row_key(row: &ResourceStatus) -> ResourceKey {
    ResourceKey {
        group: row.group.clone(),
        kind: row.kind.clone(),
        namespace: row.namespace.clone(),
        name: row.name.clone(),
    }
}

/// What is said of an Application whose spec cannot be followed.
fn unfit(application: &Application, findings: &[Finding], now: Timestamp) -> Found {
    let mut status = application.status.clone();
    status.sync.status = SyncCode::Unknown;
    let unknown = HealthStatus { status: HealthCode::Unknown, ..HealthStatus::default() };
    status.health = transitioned(&application.status.health, unknown, now);
    status.conditions =
        conditions::merge(&status.conditions, findings, &conditions::OF_SPEC, in_seconds(now));
    Found { status, extra: Map::new(), look_again: None, started: None }
}

/// Health with the time its verdict changed last.
fn transitioned(before: &HealthStatus, mut after: HealthStatus, now: Timestamp) -> HealthStatus {
    let same = before.status == after.status;
    after.last_transition_time =
        if same { before.last_transition_time.clone() } else { Some(Time(in_seconds(now))) };
    after
}

fn judge_rows(
    application: &Application,
    ground: &Ground,
    compared: &Compared,
    config: &Config,
    now: Timestamp,
) -> resource_status::Found {
    let kinds = |api_version: &str, kind: &str| -> Result<Option<KindInfo>, String> {
        ground.cluster.kind(api_version, kind).map_err(|error| error.to_string())
    };
    let health = |object: &Value| {
        baton_health::assess(object, &config.customizations).map_err(|error| error.to_string())
    };
    resource_status::judge(&Comparison {
        application,
        pairs: &compared.pairs,
        hooks: &compared.targets.hooks,
        kinds: &kinds,
        project: &ground.project,
        tracking: &config.tracking,
        health: &health,
        failed: false,
        now,
    })
}

/// Kubernetes writes times in whole seconds.
pub(super) fn in_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
