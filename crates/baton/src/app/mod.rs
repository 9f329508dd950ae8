//! `baton app`: Applications, in a cluster or at a server.

mod actions;
mod applications;
mod approve;
mod compare;
mod create;
mod delete;
mod desk;
mod follow;
mod operate;
mod selector;
mod set;
mod show;
mod tree;
mod view;
mod wait;

pub(crate) use operate::duration;

use baton_api::Application;
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::failure::Failure;

const PLURAL: &str = "applications";

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List Applications.
    List(show::List),
    /// Show one Application, its resources and what it waits for.
    Get(show::Get),
    /// List the resources of an Application.
    Resources(show::Resources),
    /// List what was deployed, and when.
    History(show::History),
    /// Create an Application, or with --upsert change it.
    Create(Box<create::Create>),
    /// Change what an Application says: its source, destination, project or sync policy.
    Set(Box<set::Set>),
    /// Make the cluster be as git says, and watch it happen.
    Sync(Box<operate::Sync>),
    /// Go back to what was deployed before.
    Rollback(operate::Rollback),
    /// Show how the cluster differs from git.
    Diff(compare::Diff),
    /// Print what git describes, or what is in the cluster.
    Manifests(compare::Manifests),
    /// Actions that resources offer.
    Actions(actions::Actions),
    /// Stop the operation that runs.
    TerminateOp(operate::Terminate),
    /// Wait until an Application is synced, healthy and at rest.
    Wait(wait::Wait),
    /// Approve the deletions that the running sync or deletion waits for.
    ConfirmDeletion(approve::ConfirmDeletion),
    /// Delete an Application, and what it deployed.
    Delete(delete::Delete),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Resources(arguments) => arguments.run().await,
        Command::History(arguments) => arguments.run().await,
        Command::Create(arguments) => arguments.run().await,
        Command::Set(arguments) => arguments.run().await,
        Command::Sync(arguments) => arguments.run().await,
        Command::Rollback(arguments) => arguments.run().await,
        Command::TerminateOp(arguments) => arguments.run().await,
        Command::Diff(arguments) => arguments.run().await,
        Command::Manifests(arguments) => arguments.run().await,
        Command::Actions(arguments) => arguments.run().await,
        Command::Wait(arguments) => arguments.run().await,
        Command::ConfirmDeletion(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
    }
}

/// The typed view of an Application.
fn typed(object: &Value) -> Result<Application, Failure> {
    serde_json::from_value(object.clone())
        .map_err(|error| Failure::failed(format!("not an Application: {error}")))
}

/// Who asks: the name of the account on this machine.
pub(crate) fn actor() -> String {
    ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default()
}
