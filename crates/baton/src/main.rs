//! The `baton` command.

mod apiserver;
mod app;
mod approvals;
mod appset;
mod cluster;
mod completion;
mod connection;
mod controller;
mod crds;
mod crypto;
mod desk;
mod dev;
mod failure;
mod health;
mod hooks;
mod http;
mod install;
mod listening;
mod listing;
mod lock;
mod logging;
mod machinery;
mod migrate;
mod objects;
mod place;
mod print;
mod proj;
#[cfg(test)]
mod reference;
mod registry;
mod repo;
mod repositories;
mod screen;
mod server;
mod session;
mod shutdown;
mod sight;
mod simulate;
mod surroundings;
mod terminal;
mod traces;
mod up;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use failure::Failure;
use logging::Wanted;

/// Ordered, gated GitOps delivery for fleets of Kubernetes clusters. To begin: baton up.
#[derive(Debug, Parser)]
#[command(name = "baton", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// What to log, as `info`.
    #[arg(long, global = true, env = "BATON_LOG", default_value = USUAL_LOG, value_name = "FILTER", value_parser = filter)]
    log: String,
}

/// What is logged where nobody asks for something else.
const USUAL_LOG: &str = "warn";

// Everything fits on a screen, so what is used once a day has a line and what is used once a month a word.
const EXAMPLES: &str =
    "Also: login logout context account repocreds apiserver health install migrate crds completion
Exit codes: 0 done, 1 usage, 2 waiting for a person, 3 failed, 4 difference or finding, 20 API error";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a control plane and simulated member clusters on this machine.
    Up(up::Arguments),
    /// Serve only the embedded Kubernetes API.
    #[command(hide = true)]
    Apiserver(apiserver::Arguments),
    /// Run the reconcilers beside a Kubernetes API.
    Controller(Box<controller::Arguments>),
    /// Serve the API for people and programs, and the web pages.
    Server(Box<server::Arguments>),
    /// ApplicationSets: generate, plan, lint, get, explain, pause, resume, retry and more.
    Appset(appset::Arguments),
    /// Roll an ApplicationSet out in a made-up world with faults, and tell its course.
    Simulate(simulate::Arguments),
    /// Applications: list, get, sync, wait, roll back, approve, delete and more.
    App(app::Arguments),
    /// What waits for a person: list, approve, reject.
    Approvals(approvals::Arguments),
    /// Projects: what Applications may use, roles and their tokens, sync windows.
    Proj(Box<proj::Arguments>),
    /// Clusters that Applications may be deployed to: list, get, add, set, rm.
    Cluster(Box<cluster::Arguments>),
    /// Repositories that sources are read from: list, get, add, rm.
    Repo(Box<repo::Arguments>),
    /// Credentials that many repositories share: list, add, rm.
    #[command(hide = true)]
    Repocreds(Box<repo::CredentialArguments>),
    /// Sign in at a server.
    #[command(hide = true)]
    Login(session::LoginArguments),
    /// End the session at a server.
    #[command(hide = true)]
    Logout(session::LogoutArguments),
    /// List servers one has signed in at, and choose one.
    #[command(hide = true)]
    Context(session::ContextArguments),
    /// Who one is at a server, and what one may do.
    #[command(hide = true)]
    Account(session::AccountArguments),
    /// Tell the version of this command and of the server.
    #[command(hide = true)]
    Version(session::VersionArguments),
    /// Print a script that lets a shell finish words.
    #[command(hide = true)]
    Completion(completion::Arguments),
    /// Tell the health of an object in a file.
    #[command(hide = true)]
    Health(health::Arguments),
    /// Print the CustomResourceDefinitions of Application, ApplicationSet and AppProject.
    #[command(hide = true)]
    Crds(crds::Arguments),
    /// Print everything to apply to a cluster: definitions, rights, controllers, server.
    #[command(hide = true)]
    Install(install::Arguments),
    /// Between Argo CD's ApplicationSet controller and this one: check before coming, and leave.
    #[command(hide = true)]
    Migrate(migrate::Arguments),
    /// Tools for whoever tries things out: a receiver of hooks, a proxy that makes watches late, cut and old.
    // Not in the overview, which is for whoever runs a fleet.
    #[command(hide = true)]
    Dev(dev::Arguments),
}

/// Checked with the rest of the command line: a filter that says nothing would hide what was asked for.
fn filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    // A command of a hook is started by this program, begun anew: before anything else is looked at.
    if let Some(code) = baton_hooks::sandbox::enter_if_asked() {
        return code;
    }
    match parsed().map_or_else(refused, begun) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => ExitCode::from(code),
    }
}

/// The command line, and what the environment says in its place.
fn parsed() -> Result<Cli, clap::Error> {
    let mut command = without_empty(Cli::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// A variable that is empty is as good as unset, as those of Argo CD are: an empty key of a ConfigMap says nothing.
fn without_empty(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|arg| match arg.get_env().is_some_and(is_empty) {
        true => arg.env(Resettable::Reset),
        false => arg,
    });
    command.mut_subcommands(without_empty)
}

/// Help and version are what the user asked for; anything else is a usage error, which is 1 here.
fn refused(error: clap::Error) -> Result<(), u8> {
    if !error.use_stderr() {
        let _ = error.print();
        return Ok(());
    }
    let instead = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => {
            let is_controller = std::env::args().any(|word| word == "controller");
            controller::instead(flag).filter(|_| is_controller)
        }
        _ => None,
    };
    let is_json = logging::is_json().unwrap_or(false);
    if is_json {
        terminal::speak_json();
    }
    match instead {
        Some(instead) => Failure::usage(instead).tell(),
        // In its colours, for a person.
        None if !is_json => drop(error.print()),
        None => terminal::complain(error.to_string().trim_end()),
    }
    Err(failure::USAGE)
}

fn begun(cli: Cli) -> Result<(), u8> {
    started(cli).map_err(|failure| {
        failure.tell();
        failure.code()
    })
}

fn started(cli: Cli) -> Result<(), Failure> {
    let wanted = match &cli.command {
        Command::Controller(arguments) => arguments.log(&|name| std::env::var(name).ok()),
        Command::Server(arguments) => Ok(arguments.log()),
        // What keeps such a command from its work is its last line, not a line of the log too.
        Command::Appset(_)
        | Command::App(_)
        | Command::Approvals(_)
        | Command::Proj(_)
        | Command::Cluster(_)
        | Command::Repo(_)
        | Command::Repocreds(_)
            if cli.log == USUAL_LOG =>
        {
            Ok(Wanted { filter: Some(format!("{USUAL_LOG},kube_client::client=off")), json: None })
        }
        // A world is full of faults, which is what its course tells.
        Command::Simulate(_) if cli.log == USUAL_LOG => {
            Ok(Wanted { filter: Some("off".to_owned()), json: None })
        }
        _ => Ok(Wanted::default()),
    };
    let form = logging::is_json();
    // What is wrong with the log is told in it.
    let json = match &wanted {
        Ok(Wanted { json: Some(json), .. }) => *json,
        _ => form.as_ref().is_ok_and(|json| *json),
    };
    let filter = wanted.as_ref().ok().and_then(|wanted| wanted.filter.clone()).unwrap_or(cli.log);
    logging::begin(&filter, json);
    form?;
    wanted?;
    match cli.command {
        Command::Up(arguments) => run(up::run(arguments)),
        Command::Apiserver(arguments) => run(apiserver::run(arguments)),
        Command::Controller(arguments) => run(controller::run(*arguments)),
        Command::Server(arguments) => run(server::run(*arguments)),
        Command::Appset(arguments) => run(appset::run(arguments)),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::App(arguments) => run(app::run(arguments)),
        Command::Approvals(arguments) => run(approvals::run(arguments)),
        Command::Proj(arguments) => run(proj::run(*arguments)),
        Command::Cluster(arguments) => run(cluster::run(*arguments)),
        Command::Repo(arguments) => run(repo::run(*arguments)),
        Command::Repocreds(arguments) => run(repo::run_credentials(*arguments)),
        Command::Login(arguments) => run(session::login(arguments)),
        Command::Logout(arguments) => run(session::logout(arguments)),
        Command::Context(arguments) => run(session::context(arguments)),
        Command::Account(arguments) => run(session::account(arguments)),
        Command::Version(arguments) => run(session::version(arguments)),
        Command::Completion(arguments) => completion::run(&arguments, Cli::command()),
        Command::Health(arguments) => health::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
        Command::Install(arguments) => install::run(&arguments),
        Command::Migrate(arguments) => run(migrate::run(arguments)),
        Command::Dev(arguments) => run(dev::run(arguments)),
    }
}

fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
