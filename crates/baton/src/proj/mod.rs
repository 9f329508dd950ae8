//! `baton proj`: what Applications may use, and who may touch them.

mod create;
mod desk;
mod rights;
mod role;
mod show;
mod windows;

use clap::{Args, Subcommand};

use crate::desk::Desk;
use crate::failure::Failure;
use crate::objects::{can_ask, confirmed};
use crate::place::Place;
use crate::print;
use crate::terminal;
use desk::Outcome;

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List projects.
    List(show::List),
    /// Show one project.
    Get(show::Get),
    /// Create a project, or with --upsert change it.
    Create(Box<create::Create>),
    /// Delete projects that no Application uses.
    Delete(Delete),
    /// Let its Applications use a repository.
    #[command(after_help = "Examples:\n  baton proj add-source shop 'https://git.example.com/shop/*'")]
    AddSource(rights::Source),
    /// No longer let its Applications use a repository.
    #[command(after_help = "Examples:\n  baton proj remove-source shop 'https://git.example.com/shop/*'")]
    RemoveSource(rights::Source),
    /// Let its Applications deploy to a namespace of a cluster.
    #[command(after_help = "Examples:
  baton proj add-destination shop https://kubernetes.default.svc shop
  baton proj add-destination shop prod-eu 'shop-*' --name")]
    AddDestination(rights::Target),
    /// No longer let its Applications deploy to a namespace of a cluster.
    #[command(after_help = "Examples:\n  baton proj remove-destination shop prod-eu 'shop-*' --name")]
    RemoveDestination(rights::Target),
    /// Let its Applications live in another namespace of the control plane.
    #[command(after_help = "Examples:\n  baton proj add-source-namespace shop shop-apps")]
    AddSourceNamespace(rights::Namespace),
    /// No longer let its Applications live in another namespace of the control plane.
    #[command(after_help = "Examples:\n  baton proj remove-source-namespace shop shop-apps")]
    RemoveSourceNamespace(rights::Namespace),
    /// Let its Applications have a kind that belongs to no namespace.
    #[command(after_help = "Examples:
  baton proj allow-cluster-resource shop '' Namespace
  baton proj allow-cluster-resource shop rbac.authorization.k8s.io ClusterRole --list deny")]
    AllowClusterResource(rights::OfCluster),
    /// No longer let its Applications have a kind that belongs to no namespace.
    #[command(after_help = "Examples:\n  baton proj deny-cluster-resource shop '' Namespace")]
    DenyClusterResource(rights::OfCluster),
    /// Let its Applications have a kind that lives in namespaces.
    #[command(after_help = "Examples:\n  baton proj allow-namespace-resource shop '' ResourceQuota")]
    AllowNamespaceResource(rights::OfNamespace),
    /// No longer let its Applications have a kind that lives in namespaces.
    #[command(after_help = "Examples:
  baton proj deny-namespace-resource shop '' ResourceQuota
  baton proj deny-namespace-resource shop apps DaemonSet --list allow")]
    DenyNamespaceResource(rights::OfNamespace),
    /// Roles of a project: list, get, create, delete, policies, groups and tokens.
    Role(role::Arguments),
    /// When its Applications may be synced: list, add, delete.
    Windows(windows::Arguments),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 deleted; 1 usage; 2 not confirmed; 20 there is none, an Application uses it, or the API \
refused.

Examples:
  baton proj delete shop
  baton proj delete shop blog --yes"
)]
struct Delete {
    /// Their names.
    #[arg(required = true, value_name = "PROJECT")]
    names: Vec<String>,
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
        Command::Create(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
        Command::AddSource(arguments) => arguments.add().await,
        Command::RemoveSource(arguments) => arguments.remove().await,
        Command::AddDestination(arguments) => arguments.add().await,
        Command::RemoveDestination(arguments) => arguments.remove().await,
        Command::AddSourceNamespace(arguments) => arguments.add().await,
        Command::RemoveSourceNamespace(arguments) => arguments.remove().await,
        Command::AllowClusterResource(arguments) => arguments.allow().await,
        Command::DenyClusterResource(arguments) => arguments.deny().await,
        Command::AllowNamespaceResource(arguments) => arguments.allow().await,
        Command::DenyNamespaceResource(arguments) => arguments.deny().await,
        Command::Role(arguments) => role::run(arguments).await,
        Command::Windows(arguments) => windows::run(arguments).await,
    }
}

impl Delete {
    async fn run(self) -> Result<(), Failure> {
        if !self.yes {
            can_ask()?;
        }
        Desk::at(&self.place, async |desk| {
            for name in &self.names {
                desk.project(name).await?;
            }
            let question: Vec<String> = self.names.iter().map(|name| format!("project {name}")).collect();
            if !self.yes && !confirmed(&question)? {
                return Err(Failure::waiting("nothing was deleted"));
            }
            for name in &self.names {
                desk.delete_project(name).await?;
                print::out(&format!("appproject.argoproj.io/{name} deleted\n"))?;
            }
            Ok(())
        })
        .await
    }
}

/// Says what came of a change.
fn say(project: &str, outcome: Outcome, done: &str, already: &str) -> Result<(), Failure> {
    match outcome {
        Outcome::Changed => print::out(&format!("appproject.argoproj.io/{project} {done}\n")),
        Outcome::Unchanged => {
            terminal::remark(&format!("project {project}: {already}, so nothing was changed"));
            Ok(())
        }
    }
}
