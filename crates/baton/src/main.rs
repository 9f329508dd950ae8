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
mod listing;
mod lock;
mod machinery;
mod objects;
mod place;
mod print;
mod proj;
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
    "Also: login, logout, context, account, repocreds, apiserver, health, crds, version, completion
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
        Command::Controller(arguments) => arguments.log(),
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
            (Some(format!("{USUAL_LOG},kube_client::client=off")), false)
        }
        // A world is full of faults, which is what its course tells.
        Command::Simulate(_) if cli.log == USUAL_LOG => (Some("off".to_owned()), false),
        _ => (None, false),
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
fn log(filter: &str, json: bool) {
    use std::io::IsTerminal as _;
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    if json { log.json().init() } else { log.init() }
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
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const PAGE: &str = include_str!("../../../docs/cli.md");

    /// The commands that do something, by all of their words.
    fn commands(command: &clap::Command, before: &str, all: &mut BTreeSet<String>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let name = format!("{before} {}", below.get_name()).trim().to_owned();
            match below.has_subcommands() {
                true => commands(below, &name, all),
                false => drop(all.insert(name)),
            }
        }
    }

    /// The commands of the page, each with its example.
    fn told() -> BTreeMap<String, String> {
        let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"));
        let pairs = rows.filter_map(|row| row.split_once("` | `"));
        let pairs = pairs.filter(|(_, example)| example.starts_with("baton "));
        pairs.map(|(command, example)| (command.to_owned(), example.to_owned())).collect()
    }

    /// An example as a shell would hand it over.
    fn words(example: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for (at, part) in example.split('\'').enumerate() {
            let quoted = at % 2 == 1;
            for (at, piece) in part.split(' ').enumerate() {
                match (quoted, at) {
                    (_, 0) => words.last_mut().expect("there is one").push_str(piece),
                    (true, _) => words.last_mut().expect("there is one").push_str(&format!(" {piece}")),
                    (false, _) => words.push(piece.to_owned()),
                }
            }
        }
        words
    }

    #[test]
    fn the_page_of_commands_has_every_command_and_no_other() {
        let mut all = BTreeSet::new();
        commands(&Cli::command(), "", &mut all);
        let told: BTreeSet<String> = told().into_keys().collect();
        assert_eq!(all.difference(&told).collect::<Vec<_>>(), [""; 0], "docs/cli.md does not tell of these");
        assert_eq!(
            told.difference(&all).collect::<Vec<_>>(),
            [""; 0],
            "docs/cli.md tells of what is not there"
        );
    }

    #[test]
    fn the_examples_of_the_page_of_commands_are_understood() {
        assert_eq!(words("a 'b c' '' d"), ["a", "b c", "", "d"]);
        for (command, example) in told() {
            assert!(example.starts_with(&format!("baton {command}")), "{example} is no example of {command}");
            if let Err(error) = Cli::try_parse_from(words(&example)) {
                panic!("{example}: {error}");
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
