//! What is measured of rollouts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::courses::Courses;

/// Counters of all rollouts of a controller.
#[derive(Debug, Clone, Default)]
pub(crate) struct RolloutMetrics {
    /// Versions of Applications that were shown older than known, and refused.
    pub(crate) stale: Counter,
    /// Changes of heads that were stored.
    pub(crate) heads: Counter,
    /// Writes to Applications.
    pub(crate) writes: Counter,
    /// Writes that somebody else's write was faster than.
    pub(crate) conflicts: Counter,
    /// Consistent lists.
    pub(crate) lists: Counter,
    /// Writes of what people may see of a rollout.
    pub(crate) views: Counter,
    /// How long runs, steps and waits took.
    pub(super) courses: Courses,
}

impl RolloutMetrics {
    /// Counters that stand in `registry`.
    pub(crate) fn registered(registry: &mut Registry) -> RolloutMetrics {
        let metrics = RolloutMetrics::default();
        let all = [
            ("stale_reads", "Versions of Applications older than known, refused", &metrics.stale),
            ("head_writes", "Changes of the heads of rollouts", &metrics.heads),
            ("application_writes", "Writes of rollouts to Applications", &metrics.writes),
            ("conflicts", "Writes of rollouts that another write was faster than", &metrics.conflicts),
            ("lists", "Consistent lists of the Applications of a set", &metrics.lists),
            ("status_writes", "Writes of the status of rollouts", &metrics.views),
        ];
        let registry = registry.sub_registry_with_prefix("baton_rollout");
        for (name, help, counter) in all {
            registry.register(name, help, counter.clone());
        }
        metrics.courses.registered(registry);
        metrics
    }
}
