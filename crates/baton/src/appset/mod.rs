//! `baton appset`: ApplicationSets, on paper, in a cluster and at a server.

mod approve;
mod changes;
mod control;
mod described;
mod explain;
mod generate;
mod head;
mod lint;
pub(crate) mod live;
pub(crate) mod manifests;
mod objects;
pub(crate) mod offline;
mod owned;
mod phase_view;
mod phases;
mod picture;
mod plan;
mod plan_phases;
mod plan_rows;
mod plan_view;
mod revisions;
mod sets;
mod standing_view;
mod watch;

#[cfg(test)]
mod golden;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the Applications that ApplicationSets give, without touching any cluster.
    Generate(generate::Arguments),
    /// Tell who would change and go, in which order, and why.
    Plan(plan::Arguments),
    /// Find mistakes in ApplicationSets.
    Lint(lint::Arguments),
    /// List ApplicationSets.
    List(objects::List),
    /// Show one ApplicationSet and its rollout, or with --watch follow it.
    Get(objects::Get),
    /// Tell what a rollout or a deletion waits for.
    Explain(explain::Arguments),
    /// Hold a rollout.
    Pause(control::Pause),
    /// Let a held rollout go on.
    Resume(control::Resume),
    /// End the run of a rollout.
    Abort(control::Abort),
    /// Try again what failed.
    Retry(control::Retry),
    /// Show how far phased deployments are.
    Phases(phases::Arguments),
    /// End the wait of a phase, or go on after one that failed.
    Advance(control::Advance),
    /// Put back what a phase, or a whole run, has changed.
    Rollback(control::Rollback),
    /// Let Applications count as done.
    Skip(control::Skip),
    /// Create ApplicationSets, or with --upsert change them.
    Create(objects::Create),
    /// Delete ApplicationSets.
    Delete(objects::Delete),
    /// Let Applications go that generators dropped by many at once.
    ApproveDeletion(approve::Approve),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Generate(arguments) => generate::run(arguments).await,
        Command::Plan(arguments) => plan::run(arguments).await,
        Command::Lint(arguments) => lint::run(arguments).await,
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Explain(arguments) => explain::run(arguments).await,
        Command::Pause(arguments) => arguments.run().await,
        Command::Resume(arguments) => arguments.run().await,
        Command::Abort(arguments) => arguments.run().await,
        Command::Retry(arguments) => arguments.run().await,
        Command::Phases(arguments) => phases::run(arguments).await,
        Command::Advance(arguments) => arguments.run().await,
        Command::Rollback(arguments) => arguments.run().await,
        Command::Skip(arguments) => arguments.run().await,
        Command::Create(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
        Command::ApproveDeletion(arguments) => arguments.run().await,
    }
}
