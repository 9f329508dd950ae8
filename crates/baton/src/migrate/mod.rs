//! `baton migrate`: between Argo CD's ApplicationSet controller and this one.

mod check;
mod controller;
mod definitions;
mod finding;
mod installation;
mod lease;
mod leave;
mod parting;
mod rights;
mod sets;
mod standing;
mod unheard;

use clap::{Args, Subcommand};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::install;

/// What to do.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at an Argo CD, and tell what will be different with Baton in the place of its ApplicationSet controller.
    Check(check::Arguments),
    /// Take what is Baton's off Applications and sets, before Argo CD's controller comes back.
    Leave(leave::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Check(arguments) => check::run(arguments).await,
        Command::Leave(arguments) => leave::run(arguments).await,
    }
}

/// Argo CD's namespace, under a name that a namespace can have.
fn namespace(connection: &Connection) -> Result<&str, Failure> {
    let name = connection.namespace();
    install::namespace(name).map_err(|how| Failure::usage(format!("--namespace {name:?}: {how}")))?;
    Ok(name)
}
