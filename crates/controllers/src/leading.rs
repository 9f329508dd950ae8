//! Whether a controller leads, for whoever measures: who follows has the same objects before it, and would tell of them twice.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Whether this controller leads. Who has no others beside it always does.
#[derive(Debug, Clone)]
pub(crate) struct Lead(Gauge);

/// What is only told by who leads.
#[derive(Debug)]
pub(crate) struct WhileLeading<C> {
    pub(crate) lead: Lead,
    pub(crate) told: C,
}

// === impl Lead ===

impl Default for Lead {
    /// Of something that is alone.
    fn default() -> Lead {
        let lead = Lead(Gauge::default());
        lead.begin();
        lead
    }
}

impl Lead {
    /// The lead of a controller, measured under its name; `elected` says whether it has to be won.
    pub(crate) fn registered(registry: &mut Registry, name: &'static str, elected: bool) -> Lead {
        let lead = Lead::default();
        if elected {
            lead.end();
        }
        let registry = registry.sub_registry_with_label(("name".into(), name.into()));
        registry.register("baton_leader", "Whether this controller leads", lead.0.clone());
        lead
    }

    pub(crate) fn begin(&self) {
        self.0.set(1);
    }

    pub(crate) fn end(&self) {
        self.0.set(0);
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.0.get() == 1
    }
}

// === impl WhileLeading ===

impl<C: Collector> Collector for WhileLeading<C> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if self.lead.is_ours() { self.told.encode(encoder) } else { Ok(()) }
    }
}
