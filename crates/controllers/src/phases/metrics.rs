//! What is measured of hooks and checks.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// From what is at hand to the longest a command may take, in seconds.
const BUCKETS: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

/// Attempts at hooks and checks.
#[derive(Debug, Clone)]
pub(crate) struct CallMetrics {
    attempts: Family<AttemptLabels, Counter>,
    durations: Family<RoleLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    role: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RoleLabels {
    role: &'static str,
}

impl CallMetrics {
    pub(crate) fn registered(registry: &mut Registry) -> CallMetrics {
        let metrics = CallMetrics::default();
        let help = "Attempts at hooks and checks that have ended, by what came of them";
        registry.register("baton_hook_attempts", help, metrics.attempts.clone());
        let help = "How long attempts at hooks and checks took that were not cancelled";
        registry.register_with_unit(
            "baton_hook_attempt_duration",
            help,
            Unit::Seconds,
            metrics.durations.clone(),
        );
        metrics
    }

    pub(super) fn count(&self, role: &'static str, result: &'static str) {
        self.attempts.get_or_create(&AttemptLabels { role, result }).inc();
    }

    pub(super) fn took(&self, role: &'static str, time: Duration) {
        self.durations.get_or_create(&RoleLabels { role }).observe(time.as_secs_f64());
    }
}

impl Default for CallMetrics {
    fn default() -> CallMetrics {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        CallMetrics { attempts: Family::default(), durations: Family::new_with_constructor(buckets) }
    }
}
