//! `wait`: until an Application is as it should be.

use std::time::Duration;

use baton_api::Application;
use baton_api::application_status::{HealthCode, OperationPhase, SyncCode};
use clap::Args;

use super::applications::Applications;
use super::follow::{self, Ended};
use super::operate::{duration, overdue};
use crate::failure::Failure;
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
#[command(
    after_help = "Without any of --sync, --health, --operation, --suspended, --degraded and --deleted it waits for the first three.

Examples:
  baton app wait web
  baton app wait web api --health --timeout 10m
  baton app wait web --deleted"
)]
pub(crate) struct Wait {
    /// The Applications.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Until it is Synced.
    #[arg(long)]
    sync: bool,
    /// Until it is Healthy.
    #[arg(long)]
    health: bool,
    /// Until no operation runs.
    #[arg(long)]
    operation: bool,
    /// Until it is Suspended.
    #[arg(long)]
    suspended: bool,
    /// Until it is Degraded.
    #[arg(long)]
    degraded: bool,
    /// Until it is gone.
    #[arg(long, alias = "delete", conflicts_with_all = ["sync", "health", "operation", "suspended", "degraded"])]
    deleted: bool,
    /// Wait no longer than this.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
}

impl Wait {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let started = tokio::time::Instant::now();
        for name in &self.names {
            let left = self.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
            match follow::until(&applications, name, left, |application| self.holds(application)).await? {
                Ended::Held(_) => print::out(&format!("application.argoproj.io/{name} condition met\n"))?,
                Ended::Gone if self.deleted => {
                    print::out(&format!("application.argoproj.io/{name} deleted\n"))?
                }
                Ended::Gone => return Err(Failure::failed(format!("there is no Application {name}"))),
                Ended::TimedOut(last) => {
                    return Err(overdue(name, last.map(|last| last.application).as_ref()));
                }
                Ended::Interrupted => return Err(Failure::failed("interrupted")),
            }
        }
        Ok(())
    }

    fn holds(&self, application: &Application) -> bool {
        if self.deleted {
            return false;
        }
        let status = &application.status;
        // A comparison that was asked for may still change everything.
        let fresh = application
            .metadata
            .annotations
            .as_ref()
            .is_none_or(|annotations| !annotations.contains_key(baton_api::names::application::REFRESH));
        let all = !(self.sync || self.health || self.operation || self.suspended || self.degraded);
        let health = &status.health.status;
        let wanted_health = [
            (self.health || all, HealthCode::Healthy),
            (self.suspended, HealthCode::Suspended),
            (self.degraded, HealthCode::Degraded),
        ];
        let healthy = wanted_health.iter().all(|(wanted, _)| !wanted)
            || wanted_health.iter().any(|(wanted, code)| *wanted && health == code);
        let synced = !(self.sync || all) || status.sync.status == SyncCode::Synced;
        let state = status.operation_state.as_ref();
        let resting = !(self.operation || all)
            || (application.operation.is_none()
                && state.is_none_or(|state| OperationPhase::is_completed(&state.phase)));
        fresh && healthy && synced && resting
    }
}
