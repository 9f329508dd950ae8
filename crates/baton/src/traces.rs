//! Traces of rollouts: where they go, and their way there.

use baton_traces::{Collector, Traces, exporter};
use clap::Args;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// Where traces go.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TraceArguments {
    /// Collector (OTLP over HTTP, JSON) that is told of each run of a rollout: a trace with its steps, phases, hooks and
    /// checks. OTEL_EXPORTER_OTLP_HEADERS and OTEL_SERVICE_NAME are read too.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
}

/// Headers of the collector, and the name of the service.
pub(crate) const FROM_ENVIRONMENT: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"];

/// Sends traces in the background.
#[derive(Default)]
pub(crate) struct Exporting {
    under_way: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl TraceArguments {
    /// Takes traces from now on, if there is a collector.
    pub(crate) fn begin(&self) -> Result<(Traces, Exporting), Failure> {
        let Some(address) = self.otlp_endpoint.as_deref().filter(|address| !address.is_empty()) else {
            return Ok(Default::default());
        };
        let [headers, service] = FROM_ENVIRONMENT.map(|name| std::env::var(name).unwrap_or_default());
        let usage = |error: baton_traces::CollectorError| Failure::usage(format!("--otlp-endpoint: {error}"));
        let collector = Collector::new(address, &headers, &service).map_err(usage)?;
        let (traces, exporter) = exporter(collector).map_err(usage)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(exporter.run(async move { drop(stopped.await) }));
        Ok((traces, Exporting { under_way: Some((stop, task)) }))
    }
}

impl Exporting {
    /// Sends what still waits, for a few seconds at most.
    pub(crate) async fn end(self) {
        if let Some((stop, task)) = self.under_way {
            drop(stop);
            // It only ends early where it panicked, which is told elsewhere.
            let _ = task.await;
        }
    }
}
