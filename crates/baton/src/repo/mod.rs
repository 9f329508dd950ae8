//! `baton repo` and `baton repocreds`: the repositories that sources are read from, and what opens them.

mod add;
mod credentials;
mod desk;
mod show;

use clap::{Args, Subcommand};

use crate::desk::Desk;
use crate::failure::Failure;
use crate::objects::{can_ask, confirmed};
use crate::place::Place;
use crate::print;
use desk::Kind;

/// What to do with repositories.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List repositories.
    List(show::List),
    /// Show one repository.
    Get(show::Get),
    /// Register a repository, or with --upsert change it.
    Add(Box<add::Add>),
    /// Take repositories off the list.
    Rm(Remove),
}

/// What to do with credentials that many repositories share.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct CredentialArguments {
    #[command(subcommand)]
    command: CredentialCommand,
}

#[derive(Debug, Subcommand)]
enum CredentialCommand {
    /// List the URLs that credentials are for.
    List(show::ListCredentials),
    /// Keep credentials for all repositories whose URLs begin like this, or with --upsert change them.
    Add(Box<add::AddCredentials>),
    /// Forget credentials.
    Rm(RemoveCredentials),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 done; 1 usage; 2 not confirmed; 20 there is none, or the API refused.

Examples:
  baton repo rm https://git.example.com/shop.git
  baton repo rm https://git.example.com/shop.git --project shop --yes")]
struct Remove {
    /// Their URLs.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Project that they belong to.
    #[arg(long, value_name = "NAME", default_value = "")]
    project: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 done; 1 usage; 2 not confirmed; 20 there are none, or the API refused.

Examples:
  baton repocreds rm https://git.example.com/shop
  baton repocreds rm https://git.example.com/shop --yes")]
struct RemoveCredentials {
    /// The URLs that they are for.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Get(arguments) => arguments.run().await,
        Command::Add(arguments) => arguments.run().await,
        Command::Rm(arguments) => {
            remove(Kind::Repository, &arguments.urls, &arguments.project, arguments.yes, &arguments.place)
                .await
        }
    }
}

pub(crate) async fn run_credentials(arguments: CredentialArguments) -> Result<(), Failure> {
    match arguments.command {
        CredentialCommand::List(arguments) => arguments.run().await,
        CredentialCommand::Add(arguments) => arguments.run().await,
        CredentialCommand::Rm(arguments) => {
            remove(Kind::Credentials, &arguments.urls, "", arguments.yes, &arguments.place).await
        }
    }
}

async fn remove(kind: Kind, urls: &[String], project: &str, yes: bool, place: &Place) -> Result<(), Failure> {
    if !yes {
        can_ask()?;
    }
    Desk::at(place, async |desk| {
        for url in urls {
            desk.registered(kind, url, project).await?;
        }
        let question: Vec<String> = urls.iter().map(|url| format!("{} {url}", kind.word())).collect();
        if !yes && !confirmed(&question)? {
            return Err(Failure::waiting("nothing was taken off the list"));
        }
        for url in urls {
            desk.unregister(kind, url, project).await?;
            print::out(&format!("{}/{url} removed\n", kind.word()))?;
        }
        Ok(())
    })
    .await
}
