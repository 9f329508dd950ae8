//! `sync`, `rollback`, `terminate-op`: operations, which the controller carries out.

use std::time::Duration;

use baton_api::Application;
use baton_api::application::{Backoff, Info, RetryStrategy};
use baton_api::application_status::{OperationPhase, SyncCode};
use baton_api::operation::{
    Operation, OperationInitiator, SyncOperation, SyncStrategy, SyncStrategyApply, SyncStrategyHook,
};
use clap::{Args, ValueEnum};

use super::applications::{Applications, Wish};
use super::follow::{self, Ended};
use super::selector::{self, ResourceSelector};
use super::{actor, show, typed, view};
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Form};
use crate::terminal;

/// How often a request is made anew when the Application changes under it.
pub(super) const ATTEMPTS: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "The sync goes on without this command: Ctrl-C only stops watching it.

Examples:
  baton app sync web
  baton app sync web --prune --timeout 5m
  baton app sync web --revision v1.4.0 --dry-run
  baton app sync web --resource apps:Deployment:shop/web")]
pub(crate) struct Sync {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Sync this revision instead of the one the Application names; once for each source, in their order.
    #[arg(long = "revision", value_name = "REVISION")]
    revisions: Vec<String>,
    /// Delete what is no longer in git.
    #[arg(long)]
    prune: bool,
    /// Let the cluster check everything, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Delete and create anew what cannot be changed.
    #[arg(long)]
    force: bool,
    /// Replace objects instead of merging into them.
    #[arg(long)]
    replace: bool,
    /// Ask for server-side apply.
    #[arg(long)]
    server_side: bool,
    /// Apply only what differs.
    #[arg(long)]
    apply_out_of_sync_only: bool,
    /// Whether hooks run.
    #[arg(long, value_enum, default_value_t = Strategy::Hook)]
    strategy: Strategy,
    /// Sync only this resource, without hooks; may be repeated.
    #[arg(long = "resource", value_name = "GROUP:KIND:[NAMESPACE/]NAME")]
    resources: Vec<ResourceSelector>,
    /// How often a failed sync is tried again; negative is without end.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    retry_limit: Option<i64>,
    /// Wait before the first retry.
    #[arg(long, value_name = "DURATION", requires = "retry_limit")]
    retry_backoff_duration: Option<String>,
    /// How much longer each wait is.
    #[arg(long, value_name = "N", requires = "retry_limit")]
    retry_backoff_factor: Option<i64>,
    /// Longest wait.
    #[arg(long, value_name = "DURATION", requires = "retry_limit")]
    retry_backoff_max_duration: Option<String>,
    /// A note kept with the operation; may be repeated.
    #[arg(long = "info", value_name = "NAME=VALUE", value_parser = note)]
    infos: Vec<(String, String)>,
    #[command(flatten)]
    watching: Watching,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Hooks run.
    Hook,
    /// Only what is in git is applied.
    Apply,
}

/// How a started operation is watched.
#[derive(Debug, Args)]
struct Watching {
    /// Start it and return.
    #[arg(long = "async")]
    detached: bool,
    /// Watch it no longer than this.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// How to print the Application afterwards.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

fn note(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A Go duration, or a bare number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let parsed: baton_grammar::duration::Duration =
        text.parse().map_err(|error: baton_grammar::duration::Error| error.to_string())?;
    parsed.to_std().ok_or_else(|| "it must not be negative".to_owned())
}

impl Sync {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        self.check_resources(&applications).await?;
        start(&applications, &self.name, |seen| self.operation(seen).map(Wish::Sync)).await?;
        self.watching.watch(&applications, &self.name).await
    }

    /// A sync of resources that are not there would succeed and have done nothing.
    async fn check_resources(&self, applications: &Applications) -> Result<(), Failure> {
        // Of another revision than the one compared nobody knows yet what it holds.
        if self.resources.is_empty() || !self.revisions.is_empty() {
            return Ok(());
        }
        let mut application = typed(&applications.get(&self.name).await?)?;
        if application.metadata.deletion_timestamp.is_some() || application.operation.is_some() {
            return Ok(());
        }
        if selector::found(&self.resources, &application.status.resources).is_err() {
            // It may have come with a commit that was not compared yet.
            application = typed(&follow::refreshed(applications, &self.name, "normal").await?)?;
        }
        // What could not be compared the sync itself complains about.
        if application.status.sync.status == SyncCode::Unknown {
            return Ok(());
        }
        selector::found(&self.resources, &application.status.resources).map_err(Failure::usage)
    }

    fn operation(&self, application: &Application) -> Result<Operation, Failure> {
        let several = application.spec.sources.len();
        let wanted = several.max(1);
        if self.revisions.len() > wanted {
            return Err(Failure::usage(format!(
                "{} revisions for {wanted} source{}",
                self.revisions.len(),
                if wanted == 1 { "" } else { "s" }
            )));
        }
        if several > 0 && !self.revisions.is_empty() && self.revisions.len() != several {
            return Err(Failure::usage(format!(
                "the Application has {several} sources: give --revision once for each, in their order"
            )));
        }
        let policy = application.spec.sync_policy.as_ref();
        let mut options = policy.map(|policy| policy.sync_options.clone()).unwrap_or_default();
        for (asked, option) in [
            (self.replace, "Replace=true"),
            (self.server_side, "ServerSideApply=true"),
            (self.apply_out_of_sync_only, "ApplyOutOfSyncOnly=true"),
        ] {
            if asked && !options.iter().any(|given| given == option) {
                options.push(option.to_owned());
            }
        }
        let strategy = match self.strategy {
            Strategy::Hook => {
                SyncStrategy { hook: Some(SyncStrategyHook { force: self.force }), apply: None }
            }
            Strategy::Apply => {
                SyncStrategy { apply: Some(SyncStrategyApply { force: self.force }), hook: None }
            }
        };
        let sync = SyncOperation {
            revision: if several == 0 {
                self.revisions.first().cloned().unwrap_or_default()
            } else {
                String::new()
            },
            revisions: if several == 0 { Vec::new() } else { self.revisions.clone() },
            prune: self.prune,
            dry_run: self.dry_run,
            sync_strategy: Some(strategy),
            resources: self.resources.iter().cloned().map(Into::into).collect(),
            sync_options: options,
            ..SyncOperation::default()
        };
        let info = |(name, value): &(String, String)| Info { name: name.clone(), value: value.clone() };
        Ok(Operation {
            sync: Some(sync),
            initiated_by: OperationInitiator { username: actor(), automated: false },
            info: self.infos.iter().map(info).collect(),
            retry: self
                .retry()
                .or_else(|| policy.and_then(|policy| policy.retry.clone()))
                .unwrap_or_default(),
        })
    }

    fn retry(&self) -> Option<RetryStrategy> {
        let limit = self.retry_limit?;
        let backoff = Backoff {
            duration: self.retry_backoff_duration.clone().unwrap_or_default(),
            factor: self.retry_backoff_factor,
            max_duration: self.retry_backoff_max_duration.clone().unwrap_or_default(),
        };
        let backoff = (backoff != Backoff::default()).then_some(backoff);
        Some(RetryStrategy { limit, backoff, refresh: false })
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app rollback web          to what was deployed before
  baton app rollback web 3        to entry 3 of `baton app history web`")]
pub(crate) struct Rollback {
    /// The Application.
    name: String,
    /// The entry of its history; without it the one before the last.
    id: Option<i64>,
    #[command(flatten)]
    place: Place,
    /// Delete what was not there then.
    #[arg(long)]
    prune: bool,
    /// Let the cluster check everything, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    watching: Watching,
}

impl Rollback {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        start(&applications, &self.name, |seen| self.operation(seen)).await?;
        self.watching.watch(&applications, &self.name).await
    }

    fn operation(&self, application: &Application) -> Result<Wish, Failure> {
        if application.spec.auto_syncs() {
            return Err(Failure::usage(format!(
                "{} syncs by itself and would go forward again at once: turn auto-sync off first",
                self.name
            )));
        }
        let history = &application.status.history;
        let entry = match self.id {
            Some(id) => history.iter().find(|entry| entry.id == id).ok_or_else(|| {
                Failure::usage(format!("history has no entry {id}: see `baton app history {}`", self.name))
            })?,
            None => history.iter().rev().nth(1).ok_or_else(|| {
                Failure::usage("nothing was deployed before: history has no entry to go back to")
            })?,
        };
        let several = !entry.sources.is_empty();
        let options = application.spec.sync_policy.as_ref().map(|policy| policy.sync_options.clone());
        let sync = SyncOperation {
            revision: entry.revision.clone(),
            revisions: entry.revisions.clone(),
            prune: self.prune,
            dry_run: self.dry_run,
            sync_strategy: Some(SyncStrategy { apply: Some(SyncStrategyApply::default()), hook: None }),
            source: (!several).then(|| entry.source.clone()),
            sources: entry.sources.clone(),
            sync_options: options.unwrap_or_default(),
            ..SyncOperation::default()
        };
        let operation = Operation {
            sync: Some(sync),
            initiated_by: OperationInitiator { username: actor(), automated: false },
            ..Operation::default()
        };
        Ok(Wish::Rollback(entry.id, operation))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "What was applied stays as it is; hooks that run are deleted.

Examples:
  baton app terminate-op web")]
pub(crate) struct Terminate {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
}

impl Terminate {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        for _ in 0..ATTEMPTS {
            let object = applications.get(&self.name).await?;
            let application = typed(&object)?;
            let phase = application.status.operation_state.as_ref().map(|state| &state.phase);
            if application.operation.is_none() || phase.is_none_or(OperationPhase::is_completed) {
                return Err(Failure::failed(format!("no operation of {} is in progress", self.name)));
            }
            if applications.terminate(&self.name, &object).await? {
                return print::out(&format!(
                    "application.argoproj.io/{} operation is terminating\n",
                    self.name
                ));
            }
        }
        Err(busy(&self.name))
    }
}

/// Writes an operation into an Application that has none.
async fn start(
    applications: &Applications,
    name: &str,
    wish: impl Fn(&Application) -> Result<Wish, Failure>,
) -> Result<(), Failure> {
    for _ in 0..ATTEMPTS {
        let object = applications.get(name).await?;
        let application = typed(&object)?;
        if application.metadata.deletion_timestamp.is_some() {
            return Err(Failure::failed(format!("{name} is being deleted")));
        }
        if application.operation.is_some() {
            let message = format!("another operation of {name} is already in progress");
            return Err(match view::waiting(&application) {
                Some(what) => Failure::waiting(format!("{message}, and waits for approval: {what}")),
                None => Failure::failed(message),
            });
        }
        if applications.start(name, &object, &wish(&application)?).await? {
            return Ok(());
        }
    }
    Err(busy(name))
}

pub(super) fn busy(name: &str) -> Failure {
    Failure::api(format!("{name} changed each time it was to be written: try again"))
}

impl Watching {
    async fn watch(&self, applications: &Applications, name: &str) -> Result<(), Failure> {
        if self.detached {
            return print::out(&format!("application.argoproj.io/{name} operation requested\n"));
        }
        let over = |application: &Application| {
            let phase = application.status.operation_state.as_ref().map(|state| &state.phase);
            application.operation.is_none() && phase.is_some_and(OperationPhase::is_completed)
        };
        match follow::until(applications, name, self.timeout, over).await? {
            Ended::Held(followed) => {
                let application = followed.application;
                match self.output {
                    Some(form) => show::show(vec![(followed.object, application.clone())], Some(form), true)?,
                    None => {
                        let state = application.status.operation_state.as_ref();
                        let state = state.ok_or_else(|| Failure::failed("the operation left no state"))?;
                        print::out(&view::operation(name, state))?;
                    }
                }
                verdict(name, &application)
            }
            Ended::Gone => Err(Failure::failed(format!("{name} was deleted while it synced"))),
            Ended::TimedOut(last) => Err(overdue(name, last.map(|last| last.application).as_ref())),
            Ended::Interrupted => {
                terminal::remark(&format!(
                    "The operation goes on; `baton app terminate-op {name}` stops it, `baton app wait {name}` watches it."
                ));
                Err(Failure::failed("interrupted"))
            }
        }
    }
}

/// Why watching ended before the operation did.
pub(super) fn overdue(name: &str, application: Option<&Application>) -> Failure {
    let Some(application) = application else {
        return Failure::failed(format!("time is up, and nothing was seen of {name}"));
    };
    if let Some(waiting) = view::waiting(application) {
        return Failure::waiting(format!(
            "time is up: deletions wait for approval (baton app confirm-deletion {name}): {waiting}"
        ));
    }
    if baton_sync::refresh::is_skipped(application) {
        return Failure::failed(format!(
            "time is up: {name} carries the annotation {}, so no controller touches it",
            baton_api::names::application::SKIP_RECONCILE
        ));
    }
    if application.metadata.deletion_timestamp.is_some() {
        let of_deletion = baton_sync::conditions::OF_DELETION;
        let told = application.status.conditions.iter();
        let told: Vec<&str> = told
            .filter(|condition| of_deletion.contains(&condition.kind.as_str()))
            .map(|condition| condition.message.as_str())
            .collect();
        return Failure::failed(match told.is_empty() {
            true => format!("time is up: {name} is being deleted, and no controller says what it waits for"),
            false => format!("time is up: {name} is being deleted: {}", told.join("; ")),
        });
    }
    let state = application.status.operation_state.as_ref();
    let message = match state {
        Some(state) if !state.phase.is_completed() => {
            format!("the operation is still {}: {}", state.phase.as_str(), state.message)
        }
        None if application.operation.is_some() => {
            "the operation was requested and no controller has begun it: does one run?".to_owned()
        }
        _ => format!(
            "{name} is {} and {}{}",
            application.status.sync.status.as_str(),
            application.status.health.status.as_str(),
            match application.status.health.message.as_str() {
                "" => String::new(),
                message => format!(" ({message})"),
            }
        ),
    };
    Failure::failed(format!("time is up: {message}"))
}

/// What the exit code says of a finished operation.
fn verdict(name: &str, application: &Application) -> Result<(), Failure> {
    let Some(state) = &application.status.operation_state else { return Ok(()) };
    if state.phase != OperationPhase::Succeeded {
        return Err(Failure::failed(format!(
            "the operation of {name} ended {}: {}",
            state.phase.as_str(),
            state.message
        )));
    }
    let skipped = state
        .sync_result
        .iter()
        .flat_map(|result| &result.resources)
        .filter(|resource| {
            resource.status.as_str() == "PruneSkipped" && !resource.message.contains("no prune")
        })
        .count();
    if skipped > 0 {
        return Err(Failure::finding(format!(
            "{skipped} resource{} no longer in git and still there: sync with --prune to delete",
            if skipped == 1 { " is" } else { "s are" }
        )));
    }
    Ok(())
}
