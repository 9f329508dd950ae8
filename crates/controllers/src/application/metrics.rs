//! What is measured of Applications, under Argo CD's names.

use std::sync::Arc;
use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::OperationState;
use baton_api::names::DEFAULT_PROJECT;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::known::{Held, Known};
use crate::metrics::label_name;

/// Argo CD's buckets.
const BUCKETS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// Counters and durations.
#[derive(Clone)]
pub(super) struct Metrics {
    passes: Family<PassLabels, Histogram, fn() -> Histogram>,
    syncs: Family<SyncLabels, Counter>,
    durations: Family<DurationLabels, Counter<f64, std::sync::atomic::AtomicU64>>,
    orphans: Family<AppLabels, Gauge>,
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
                ("repo", source.map(|source| source.repo_url.clone()).unwrap_or_default()),
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
