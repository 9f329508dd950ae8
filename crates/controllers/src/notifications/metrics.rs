//! What is measured of notifications, under Argo CD's names.

use baton_notifications::{Attempt, Config};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What a name counts as that only an annotation knows: anybody can write any number of those.
const UNKNOWN: &str = "unknown";

/// Counters.
#[derive(Clone)]
pub(super) struct Metrics {
    deliveries: Family<DeliveryLabels, Counter>,
    evaluations: Family<EvaluationLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    trigger: String,
    service: String,
    succeeded: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvaluationLabels {
    name: String,
    triggered: String,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn registered(registry: &mut Registry) -> Metrics {
        let metrics = Metrics { deliveries: Family::default(), evaluations: Family::default() };
        registry.register(
            "argocd_notifications_deliveries",
            "Number of delivered notifications.",
            metrics.deliveries.clone(),
        );
        registry.register(
            "argocd_notifications_trigger_eval",
            "Number of trigger evaluations.",
            metrics.evaluations.clone(),
        );
        metrics
    }

    pub(super) fn count_attempts(&self, attempts: &[Attempt], config: &Config) {
        for Attempt { trigger, service, fault } in attempts {
            let known = |name: &str, is_known: bool| if is_known { name } else { UNKNOWN }.to_owned();
            let labels = DeliveryLabels {
                trigger: known(trigger, config.triggers.contains_key(trigger)),
                service: known(service, config.services.contains_key(service)),
                succeeded: fault.is_none().to_string(),
            };
            self.deliveries.get_or_create(&labels).inc();
        }
    }

    /// Counts triggers, all of which the configuration has.
    pub(super) fn count_evaluations(&self, evaluated: &[(String, bool)]) {
        for (name, triggered) in evaluated {
            let labels = EvaluationLabels { name: name.clone(), triggered: triggered.to_string() };
            self.evaluations.get_or_create(&labels).inc();
        }
    }
}
