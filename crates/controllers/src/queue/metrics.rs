//! What is measured of a queue, under controller-runtime's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::leading::Lead;

/// Counters of one queue. The default ones are seen by nobody.
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    pub(super) depth: Gauge,
    pub(super) adds: Counter,
    pub(super) retries: Counter,
    pub(super) waited: Histogram,
    pub(super) worked: Histogram,
    /// Keys of who follows are nobody's work.
    lead: Lead,
}

impl Default for QueueMetrics {
    fn default() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.000_01, 10.0, 8));
        QueueMetrics {
            depth: Gauge::default(),
            adds: Counter::default(),
            retries: Counter::default(),
            waited: seconds(),
            worked: seconds(),
            lead: Lead::default(),
        }
    }
}

impl QueueMetrics {
    /// Counters that stand in `registry`, labelled with the queue's name.
    pub(crate) fn registered(registry: &mut Registry, name: &str, lead: &Lead) -> QueueMetrics {
        let metrics = QueueMetrics { lead: lead.clone(), ..QueueMetrics::default() };
        let registry = registry.sub_registry_with_label(("name".into(), name.to_owned().into()));
        registry.register("workqueue_depth", "Keys that are due", metrics.depth.clone());
        registry.register("workqueue_adds", "Keys that became due", metrics.adds.clone());
        registry.register("workqueue_retries", "Keys that failed and wait", metrics.retries.clone());
        registry.register_with_unit(
            "workqueue_queue_duration",
            "How long keys were due before work on them began",
            Unit::Seconds,
            metrics.waited.clone(),
        );
        registry.register_with_unit(
            "workqueue_work_duration",
            "How long work on a key took",
            Unit::Seconds,
            metrics.worked.clone(),
        );
        metrics
    }

    pub(super) fn set_depth(&self, depth: usize) {
        let depth = if self.lead.is_ours() { depth } else { 0 };
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}
