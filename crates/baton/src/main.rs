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
mod listing;
mod lock;
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

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are what the user asked for; anything else is a usage error, which is 1 here.
            let code = if error.use_stderr() { failure::USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let (filter, json) = match &cli.command {
        Command::Controller(arguments) => arguments.log(&|name| std::env::var(name).ok()),
        Command::Server(arguments) => arguments.log(),
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
            (Some(format!("{USUAL_LOG},kube_client::client=off")), None)
        }
        // A world is full of faults, which is what its course tells.
        Command::Simulate(_) if cli.log == USUAL_LOG => (Some("off".to_owned()), None),
        _ => (None, None),
    };
    log(&filter.unwrap_or(cli.log), json);
    let outcome = match cli.command {
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
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::remark(&failure.remark());
            ExitCode::from(failure.code())
        }
    }
}

/// Logs to standard error; in colours only for a person.
fn log(filter: &str, json: Option<bool>) {
    use std::io::IsTerminal as _;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    // For whatever is not told otherwise, as the Deployments of an installation.
    if json.unwrap_or_else(|| std::env::var("BATON_LOG_FORMAT").is_ok_and(|form| form == "json")) {
        terminal::speak_json();
        log.json().init();
    } else {
        log.init();
    }
}

fn run<T>(work: impl Future<Output = Result<T, failure::Failure>>) -> Result<T, failure::Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failure::Failure::failed(format!("cannot start the runtime: {error}")))?
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
