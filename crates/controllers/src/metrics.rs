//! What is measured, under Argo CD's names, and the endpoints that tell it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use baton_api::conditions::application_set::RESOURCES_UP_TO_DATE;
use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::application::ApplicationController;
use crate::cache::{Held, Known, ObjectKey, Synced};
use crate::controller::Controller;
use crate::leading::{Lead, WhileLeading};
use crate::namespaces::AllowedNamespaces;
use crate::notifications::NotificationController;

/// Prometheus' default buckets, which Argo CD uses.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A registry that others may add to: hosts and webhooks have measurements of their own.
pub type SharedRegistry = Arc<RwLock<Registry>>;

/// Durations of passes.
#[derive(Clone)]
pub(crate) struct PassMetrics {
    passes: Family<SetLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SetLabels {
    namespace: String,
    name: String,
}

/// Looks at the sets whenever it is asked.
struct SetCollector {
    known: Arc<Known>,
    allowed: AllowedNamespaces,
    labels: Vec<String>,
}

impl PassMetrics {
    pub(crate) fn registered(registry: &mut Registry) -> PassMetrics {
        let buckets: fn() -> Histogram = || Histogram::new(BUCKETS);
        let passes = Family::new_with_constructor(buckets);
        registry.register(
            "argocd_appset_reconcile",
            "Application reconciliation performance in seconds",
            passes.clone(),
        );
        PassMetrics { passes }
    }

    pub(crate) fn observe(&self, key: &ObjectKey, took: Duration) {
        self.passes.get_or_create(&labels(key)).observe(took.as_secs_f64());
    }

    /// A set that is gone is measured no more.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.passes.remove(&labels(key));
    }
}

fn labels(key: &ObjectKey) -> SetLabels {
    SetLabels { namespace: key.namespace.to_string(), name: key.name.to_string() }
}

/// Adds what is read off the sets.
pub(crate) fn register_sets(
    registry: &mut Registry,
    known: Arc<Known>,
    allowed: AllowedNamespaces,
    labels: Vec<String>,
    lead: &Lead,
) {
    let told = SetCollector { known, allowed, labels };
    registry.register_collector(Box::new(WhileLeading { lead: lead.clone(), told }));
}

/// `/metrics`, `/healthz` and `/readyz` of the controllers that run in one process.
///
/// `/healthz` says that the process answers, and nothing of the API: whoever waits for one that is away, or for the first list of
/// a large fleet, would wait no shorter for being started anew. `/readyz` says whether the caches are filled.
pub fn observability(
    sets: Option<&Controller>,
    applications: Option<&ApplicationController>,
    notifications: Option<&NotificationController>,
) -> Router {
    let mut registries = Vec::new();
    let mut synced = Vec::new();
    if let Some(sets) = sets {
        registries.push(sets.registry());
        synced.extend(sets.caches());
    }
    if let Some(applications) = applications {
        registries.push(applications.registry());
        synced.extend(applications.caches());
    }
    if let Some(notifications) = notifications {
        registries.push(notifications.registry());
        synced.extend(notifications.caches());
    }
    router(registries, synced)
}

pub(crate) fn router(registries: Vec<SharedRegistry>, synced: Vec<Synced>) -> Router {
    let metrics = move || async move {
        let encoded: Result<Vec<String>, std::fmt::Error> = registries
            .iter()
            .map(|registry| {
                let mut text = String::new();
                prometheus_client::encoding::text::encode(&mut text, &registry.read()).map(|()| text)
            })
            .collect();
        match encoded {
            Ok(texts) => (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], together(&texts)),
            Err(error) => {
                let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
                (StatusCode::INTERNAL_SERVER_ERROR, plain, error.to_string())
            }
        }
    };
    let ready = move || async move {
        match synced.iter().all(Synced::is_synced) {
            true => (StatusCode::OK, "ok"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "caches are not filled yet"),
        }
    };
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
}

/// Several expositions as one: a family that more than one has is described once.
fn together(texts: &[String]) -> String {
    let mut families: Vec<(&str, String, String)> = Vec::new();
    for text in texts {
        let mut current = None;
        for line in text.lines().filter(|line| *line != "# EOF") {
            let described = line.strip_prefix("# ").and_then(|rest| rest.split(' ').nth(1));
            if let Some(name) = described {
                let place = families.iter().position(|(family, ..)| *family == name).unwrap_or_else(|| {
                    families.push((name, String::new(), String::new()));
                    families.len() - 1
                });
                let descriptions = &mut families[place].1;
                let kind = line.split(' ').nth(1).unwrap_or_default();
                if !descriptions.lines().any(|known| known.split(' ').nth(1) == Some(kind)) {
                    descriptions.push_str(line);
                    descriptions.push('\n');
                }
                current = Some(place);
            } else if let Some(place) = current {
                families[place].2.push_str(line);
                families[place].2.push('\n');
            }
        }
    }
    families
        .iter()
        .flat_map(|(_, descriptions, samples)| [descriptions.as_str(), samples])
        .collect::<String>()
        + "# EOF\n"
}

impl Collector for SetCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let sets = self.known.sets.lock();
        let whole = sets.all().filter(|(key, _)| self.allowed.contains(&key.namespace));
        let whole: Vec<_> = whole
            .filter_map(|(key, held)| match held {
                Held::Whole(set) => Some((key, set)),
                Held::Unreadable { .. } => None,
            })
            .collect();
        let one = ConstGauge::new(1_i64);
        let describe = "Information about applicationset";
        let mut info = encoder.encode_descriptor("argocd_appset_info", describe, None, one.metric_type())?;
        for (key, set) in &whole {
            let mut conditions = set.status.conditions.iter();
            let status = conditions.find(|condition| condition.kind == RESOURCES_UP_TO_DATE);
            let status = status.map_or("Unknown", |condition| condition.reason.as_str());
            let labels =
                [("namespace", &*key.namespace), ("name", &*key.name), ("resource_update_status", status)];
            one.encode(info.encode_family(&labels)?)?;
        }
        let describe = "Number of applications owned by the applicationset";
        let mut owned = encoder.encode_descriptor(
            "argocd_appset_owned_applications",
            describe,
            None,
            one.metric_type(),
        )?;
        for (key, set) in &whole {
            let count = ConstGauge::new(i64::try_from(set.listed.count).unwrap_or(i64::MAX));
            let labels = [("namespace", &*key.namespace), ("name", &*key.name)];
            count.encode(owned.encode_family(&labels)?)?;
        }
        if self.labels.is_empty() {
            return Ok(());
        }
        let describe = "Applicationset labels translated to Prometheus labels";
        let mut shown =
            encoder.encode_descriptor("argocd_appset_labels", describe, None, one.metric_type())?;
        for (key, set) in &whole {
            let mut labels = vec![
                ("namespace".to_owned(), key.namespace.to_string()),
                ("name".to_owned(), key.name.to_string()),
            ];
            for label in &self.labels {
                let value = set.metadata.labels.as_ref().and_then(|all| all.get(label)).cloned();
                labels.push((label_name(label), value.unwrap_or_default()));
            }
            one.encode(shown.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for SetCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetCollector").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// A label's name as Prometheus takes it.
pub(crate) fn label_name(label: &str) -> String {
    let fits = |char: char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' };
    format!("label_{}", label.chars().map(fits).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn a_family_of_two_registries_is_described_once() {
        let one = "# HELP depth Keys.\n# TYPE depth gauge\ndepth{name=\"a\"} 1\n# EOF\n".to_owned();
        let two = "# HELP other More.\n# TYPE other gauge\nother 3\n# HELP depth Keys.\n# TYPE depth gauge\ndepth{name=\"b\"} 2\n# EOF\n".to_owned();
        assert_eq!(
            together(&[one, two]),
            "# HELP depth Keys.\n# TYPE depth gauge\ndepth{name=\"a\"} 1\ndepth{name=\"b\"} 2\n# HELP other More.\n# TYPE other gauge\nother 3\n# EOF\n"
        );
        assert_eq!(together(&[]), "# EOF\n");
    }
}
