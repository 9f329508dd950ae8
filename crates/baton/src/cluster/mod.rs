//! `baton cluster`: the clusters that Applications may be deployed to.

mod account;
mod add;
mod change;
mod desk;
mod kubeconfig;
mod show;

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
    /// List clusters.
    List(show::List),
    /// Show one cluster.
    Get(show::Get),
    /// Register the cluster of a kubeconfig's context.
    Add(Box<add::Add>),
    /// Change the name, namespaces, labels or annotations of a cluster.
    Set(change::Set),
    /// Take clusters off the list. What runs in them stays.
    Rm(change::Remove),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Add(arguments) => arguments.run().await,
        Command::Set(arguments) => arguments.run().await,
        Command::Rm(arguments) => arguments.run().await,
    }
}
