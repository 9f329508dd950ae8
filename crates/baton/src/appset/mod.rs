//! `baton appset`: ApplicationSets, on paper and in a cluster.

mod generate;
mod lint;
mod live;
pub(crate) mod manifests;
mod objects;
mod offline;

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
    /// Find mistakes in ApplicationSets.
    Lint(lint::Arguments),
    /// List ApplicationSets.
    List(objects::List),
    /// Show one ApplicationSet.
    Get(objects::Get),
    /// Create ApplicationSets, or with --upsert change them.
    Create(objects::Create),
    /// Delete ApplicationSets.
    Delete(objects::Delete),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Generate(arguments) => generate::run(arguments).await,
        Command::Lint(arguments) => lint::run(arguments).await,
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Create(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
    }
}
