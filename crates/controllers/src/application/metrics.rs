//! What is measured of Applications, under Argo CD's names.

use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::OperationState;
use baton_api::conditions::application::DELETION_APPROVAL_REQUIRED_INFO;
use baton_api::names::DEFAULT_PROJECT;
use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::known::{Held, Known};
use crate::metrics::label_name;

/// Argo CD's buckets.
const BUCKETS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
/// From a person who was waiting for it to one who was away for a week.
const APPROVAL_BUCKETS: [f64; 9] =
    [10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0];

/// Counters and durations.
#[derive(Clone)]
pub(super) struct Metrics {
    passes: Family<PassLabels, Histogram, fn() -> Histogram>,
    syncs: Family<SyncLabels, Counter>,
    durations: Family<DurationLabels, Counter<f64, std::sync::atomic::AtomicU64>>,
    orphans: Family<AppLabels, Gauge>,
    approvals: Family<ApprovalLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ApprovalLabels {
    of: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    namespace: String,
    dest_server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AppLabels {
    namespace: String,
    name: String,
    project: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    namespace: String,
    name: String,
    project: String,
    dest_server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SyncLabels {
    namespace: String,
    name: String,
    project: String,
    dest_server: String,
    phase: String,
    dry_run: String,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn registered(registry: &mut Registry) -> Metrics {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        let metrics = Metrics {
            passes: Family::new_with_constructor(buckets),
            syncs: Family::default(),
            durations: Family::default(),
            orphans: Family::default(),
            approvals: Family::new_with_constructor(|| Histogram::new(APPROVAL_BUCKETS)),
        };
        registry.register(
            "argocd_app_reconcile",
            "Application reconciliation performance in seconds",
            metrics.passes.clone(),
        );
        registry.register("argocd_app_sync", "Number of application syncs", metrics.syncs.clone());
        registry.register(
            "argocd_app_sync_duration_seconds",
            "Application sync performance in seconds total",
            metrics.durations.clone(),
        );
        registry.register(
            "argocd_app_orphaned_resources_count",
            "Number of orphaned resources per application",
            metrics.orphans.clone(),
        );
        registry.register_with_unit(
            "baton_approval_wait",
            "How long deletions waited for approval, until it was given or they were given up",
            Unit::Seconds,
            metrics.approvals.clone(),
        );
        metrics
    }

    pub(super) fn observe_pass(&self, application: &Application, took: Duration) {
        let labels = PassLabels {
            namespace: application.metadata.namespace.clone().unwrap_or_default(),
            dest_server: server(application).to_owned(),
        };
        self.passes.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts an operation that ended.
    pub(super) fn count_sync(&self, application: &Application, state: &OperationState) {
        let AppLabels { namespace, name, project } = labels(application);
        let dry_run = state.operation.sync.as_ref().is_some_and(|sync| sync.dry_run);
        let dest_server = server(application).to_owned();
        let durations = DurationLabels {
            namespace: namespace.clone(),
            name: name.clone(),
            project: project.clone(),
            dest_server: dest_server.clone(),
        };
        let phase = state.phase.as_str().to_owned();
        let syncs = SyncLabels { namespace, name, project, dest_server, phase, dry_run: dry_run.to_string() };
        self.syncs.get_or_create(&syncs).inc();
        if let (Some(start), Some(end)) = (&state.started_at, &state.finished_at) {
            let took = end.0.duration_since(start.0).as_secs_f64();
            self.durations.get_or_create(&durations).inc_by(took.max(0.0));
        }
    }

    /// Measures a wait for approval that has ended between two versions of an Application.
    pub(super) fn approval_ended(&self, before: &Application, after: &Application, now: Timestamp) {
        if waits_since(after).is_none()
            && let Some(since) = waits_since(before)
        {
            let of = if before.metadata.deletion_timestamp.is_some() { "delete" } else { "prune" };
            let waited = now.duration_since(since).as_secs_f64().max(0.0);
            self.approvals.get_or_create(&ApprovalLabels { of }).observe(waited);
        }
    }

    pub(super) fn set_orphans(&self, application: &Application, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.orphans.get_or_create(&labels(application)).set(count);
    }
}

fn labels(application: &Application) -> AppLabels {
    let project = match application.spec.project.as_str() {
        "" => DEFAULT_PROJECT,
        project => project,
    };
    AppLabels {
        namespace: application.metadata.namespace.clone().unwrap_or_default(),
        name: application.metadata.name.clone().unwrap_or_default(),
        project: project.to_owned(),
    }
}

/// How the destination is written; Argo CD shows the server, or the name where only that is given.
fn server(application: &Application) -> &str {
    let destination = &application.spec.destination;
    if destination.server.is_empty() { &destination.name } else { &destination.server }
}

/// Since when a deletion of an Application waits for approval.
fn waits_since(application: &Application) -> Option<Timestamp> {
    let mut conditions = application.status.conditions.iter();
    let waits = conditions.find(|condition| condition.kind == DELETION_APPROVAL_REQUIRED_INFO)?;
    waits.last_transition_time.as_ref().map(|time| time.0)
}

/// Looks at the Applications whenever it is asked.
pub(super) struct ApplicationCollector {
    pub(super) known: Arc<Known>,
    pub(super) labels: Vec<String>,
    pub(super) conditions: Vec<String>,
}

impl Collector for ApplicationCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let applications: Vec<Arc<Application>> = {
            let known = self.known.applications.lock();
            let whole = known.all().filter_map(|(_, held)| match held {
                Held::Whole(application) => Some(application.clone()),
                Held::Unreadable { .. } => None,
            });
            whole.collect()
        };
        self.encode_info(&mut encoder, &applications)?;
        self.encode_approvals(&mut encoder, &applications)?;
        if !self.conditions.is_empty() {
            self.encode_conditions(&mut encoder, &applications)?;
        }
        if !self.labels.is_empty() {
            self.encode_labels(&mut encoder, &applications)?;
        }
        Ok(())
    }
}

impl ApplicationCollector {
    fn encode_info(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        applications: &[Arc<Application>],
    ) -> Result<(), std::fmt::Error> {
        let one = ConstGauge::new(1_i64);
        let describe = "Information about application";
        let mut info = encoder.encode_descriptor("argocd_app_info", describe, None, one.metric_type())?;
        let unknown = |word: &str| if word.is_empty() { "Unknown".to_owned() } else { word.to_owned() };
        for application in applications {
            let AppLabels { namespace, name, project } = labels(application);
            let operation = match (&application.metadata.deletion_timestamp, &application.operation) {
                (Some(_), _) => "delete",
                (None, Some(_)) => "sync",
                (None, None) => "",
            };
            let source = application.spec.effective_sources().first();
            let labels = [
                ("namespace", namespace),
                ("name", name),
                ("project", project),
                ("autosync_enabled", application.spec.auto_syncs().to_string()),
                ("repo", source.map(|source| openly(&source.repo_url)).unwrap_or_default()),
                ("dest_server", server(application).to_owned()),
                ("dest_namespace", application.spec.destination.namespace.clone()),
                ("sync_status", unknown(application.status.sync.status.as_str())),
                ("health_status", unknown(application.status.health.status.as_str())),
                ("operation", operation.to_owned()),
            ];
            one.encode(info.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_approvals(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        applications: &[Arc<Application>],
    ) -> Result<(), std::fmt::Error> {
        let describe = "Since when each Application's deletions wait for approval, in seconds since 1970";
        let kind = ConstGauge::new(0_i64).metric_type();
        let mut shown =
            encoder.encode_descriptor("baton_approval_waiting_since_seconds", describe, None, kind)?;
        for application in applications {
            let Some(since) = waits_since(application) else { continue };
            let AppLabels { namespace, name, project } = labels(application);
            let labels = [("namespace", namespace), ("name", name), ("project", project)];
            ConstGauge::new(since.as_second()).encode(shown.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_conditions(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        applications: &[Arc<Application>],
    ) -> Result<(), std::fmt::Error> {
        let one = ConstGauge::new(1_i64);
        let describe = "Report application conditions";
        let mut shown =
            encoder.encode_descriptor("argocd_app_condition", describe, None, one.metric_type())?;
        for application in applications {
            for kind in &self.conditions {
                let held = application.status.conditions.iter().filter(|condition| condition.kind == *kind);
                let count = ConstGauge::new(i64::try_from(held.count()).unwrap_or(i64::MAX));
                let AppLabels { namespace, name, project } = labels(application);
                let labels = [
                    ("namespace", namespace),
                    ("name", name),
                    ("project", project),
                    ("condition", kind.clone()),
                ];
                count.encode(shown.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_labels(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        applications: &[Arc<Application>],
    ) -> Result<(), std::fmt::Error> {
        let one = ConstGauge::new(1_i64);
        let describe = "Argo Application labels converted to Prometheus labels";
        let mut shown = encoder.encode_descriptor("argocd_app_labels", describe, None, one.metric_type())?;
        for application in applications {
            let AppLabels { namespace, name, project } = labels(application);
            let mut labels = vec![
                ("namespace".to_owned(), namespace),
                ("name".to_owned(), name),
                ("project".to_owned(), project),
            ];
            for label in &self.labels {
                let value = application.metadata.labels.as_ref().and_then(|all| all.get(label)).cloned();
                labels.push((label_name(label), value.unwrap_or_default()));
            }
            one.encode(shown.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for ApplicationCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationCollector").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// The URL of a repository without what opens it: whoever reads metrics may not read Applications.
fn openly(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) if scheme.starts_with("http") || user.contains(':') => {
            format!("{scheme}://{}", &rest[user.len() + 1..])
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_url_are_no_label() {
        for (url, expected) in [
            ("https://me:hush@git.example.com/a.git", "https://git.example.com/a.git"),
            ("https://hush@git.example.com", "https://git.example.com"),
            ("ssh://git@git.example.com/a.git", "ssh://git@git.example.com/a.git"),
            ("https://git.example.com/a@b", "https://git.example.com/a@b"),
            ("git@git.example.com:a.git", "git@git.example.com:a.git"),
        ] {
            assert_eq!(openly(url), expected);
        }
    }
}
