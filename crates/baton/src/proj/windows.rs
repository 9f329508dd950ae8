//! `baton proj windows`: when the Applications of a project may be synced.

use baton_api::AppProject;
use baton_api::project::{AppProjectSpec, SyncWindow};
use baton_grammar::cron::Schedule;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::desk::edit;
use super::say;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{Column, Listing};
use crate::place::Place;
use crate::print::Form;

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the sync windows of a project.
    #[command(after_help = "Examples:\n  baton proj windows list shop")]
    List(List),
    /// Add a sync window.
    #[command(after_help = "Examples:
  baton proj windows add shop --kind allow --schedule '0 22 * * *' --duration 2h --applications '*'
  baton proj windows add shop -k deny --schedule '0 0 24 12 *' --duration 72h --clusters 'prod-*' --manual-sync")]
    Add(Box<Add>),
    /// Delete a sync window.
    #[command(after_help = "Examples:\n  baton proj windows delete shop 0")]
    Delete(Delete),
}

#[derive(Debug, Args)]
struct List {
    /// The project.
    project: String,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Add {
    /// The project.
    project: String,
    /// Whether syncs may run in it.
    #[arg(short, long, value_enum)]
    kind: Kind,
    /// When it opens, in cron's words.
    #[arg(long, value_name = "CRON")]
    schedule: String,
    /// How long it stays open.
    #[arg(long, value_name = "DURATION")]
    duration: String,
    /// Applications it holds for, globs.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    applications: Vec<String>,
    /// Namespaces it holds for, globs.
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// Clusters it holds for, globs.
    #[arg(long, value_name = "CLUSTER", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Let people sync nevertheless.
    #[arg(long)]
    manual_sync: bool,
    /// Let a running sync go on after it closes.
    #[arg(long)]
    sync_overrun: bool,
    /// Time zone of the schedule.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// Applications, namespaces and clusters must all match instead of any.
    #[arg(long)]
    use_and_operator: bool,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Allow,
    Deny,
}

#[derive(Debug, Args)]
struct Delete {
    /// The project.
    project: String,
    /// The window, as `list` numbers it.
    id: usize,
    #[command(flatten)]
    place: Place,
}

pub(super) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Add(arguments) => arguments.run().await,
        Command::Delete(arguments) => arguments.run().await,
    }
}

/// A window of a project: its number, whether it is open, and what it says.
type Shown = (usize, bool, SyncWindow);

const COLUMNS: &[Column<Shown>] = &[
    Column::new("ID", |(id, _, _)| id.to_string()),
    Column::new("STATUS", |(_, open, _)| if *open { "Active" } else { "Inactive" }.to_owned()),
    Column::new("KIND", |(_, _, window)| window.kind.clone()),
    Column::new("SCHEDULE", |(_, _, window)| window.schedule.clone()),
    Column::new("DURATION", |(_, _, window)| window.duration.clone()),
    Column::new("APPLICATIONS", |(_, _, window)| joined(&window.applications)),
    Column::new("NAMESPACES", |(_, _, window)| joined(&window.namespaces)),
    Column::new("CLUSTERS", |(_, _, window)| joined(&window.clusters)),
    Column::new("MANUALSYNC", |(_, _, window)| {
        if window.manual_sync { "Enabled" } else { "Disabled" }.to_owned()
    }),
    Column::wide("TIMEZONE", |(_, _, window)| window.time_zone.clone()),
    Column::wide("USEANDOPERATOR", |(_, _, window)| window.use_and_operator.to_string()),
    Column::wide("SYNCOVERRUN", |(_, _, window)| window.sync_overrun.to_string()),
    Column::wide("DESCRIPTION", |(_, _, window)| window.description.clone()),
];

const LISTING: Listing<'_, Shown> = Listing {
    columns: COLUMNS,
    whole: |(_, _, window)| json!(window),
    name: |(id, _, _)| id.to_string(),
    nothing: "The project has no sync windows: its Applications may be synced at any time.",
};

impl List {
    async fn run(self) -> Result<(), Failure> {
        let (project, open): (Value, Vec<Value>) = Desk::at(&self.place, async |desk| {
            Ok((desk.project(&self.project).await?, desk.open_windows(&self.project).await?))
        })
        .await?;
        let project: AppProject = serde_json::from_value(project)
            .map_err(|error| Failure::failed(format!("this is no AppProject: {error}")))?;
        let open: Vec<SyncWindow> =
            open.into_iter().filter_map(|window| serde_json::from_value(window).ok()).collect();
        let windows = project.spec.sync_windows.into_iter().enumerate();
        let windows: Vec<Shown> = windows.map(|(id, window)| (id, open.contains(&window), window)).collect();
        LISTING.print(&windows, self.output)
    }
}

impl Add {
    async fn run(self) -> Result<(), Failure> {
        let window = self.window()?;
        let change = |spec: &mut AppProjectSpec| {
            if !spec.sync_windows.contains(&window) {
                spec.sync_windows.push(window.clone());
            }
            Ok(())
        };
        let outcome = edit(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "sync window added", "it has this window already")
    }

    fn window(&self) -> Result<SyncWindow, Failure> {
        Schedule::parse(&self.schedule)
            .map_err(|error| Failure::usage(format!("--schedule {:?}: {error}", self.schedule)))?;
        let length = crate::app::duration(&self.duration)
            .map_err(|error| Failure::usage(format!("--duration {:?}: {error}", self.duration)))?;
        if length.is_zero() {
            return Err(Failure::usage("--duration: a window that is open for no time is none"));
        }
        if self.applications.is_empty() && self.namespaces.is_empty() && self.clusters.is_empty() {
            return Err(Failure::usage(
                "say for whom it holds: --applications, --namespaces or --clusters, of which '*' is all",
            ));
        }
        if jiff::tz::TimeZone::get(&self.time_zone).is_err() {
            return Err(Failure::usage(format!("--time-zone {:?} is not known here", self.time_zone)));
        }
        Ok(SyncWindow {
            kind: match self.kind {
                Kind::Allow => "allow".to_owned(),
                Kind::Deny => "deny".to_owned(),
            },
            schedule: self.schedule.clone(),
            duration: self.duration.clone(),
            applications: self.applications.clone(),
            namespaces: self.namespaces.clone(),
            clusters: self.clusters.clone(),
            manual_sync: self.manual_sync,
            time_zone: self.time_zone.clone(),
            use_and_operator: self.use_and_operator,
            description: self.description.clone(),
            sync_overrun: self.sync_overrun,
        })
    }
}

impl Delete {
    async fn run(self) -> Result<(), Failure> {
        let change = |spec: &mut AppProjectSpec| {
            if self.id >= spec.sync_windows.len() {
                return Err(Failure::failed(format!(
                    "project {0} has no sync window {1}; `baton proj windows list {0}` shows those it has",
                    self.project, self.id
                )));
            }
            spec.sync_windows.remove(self.id);
            Ok(())
        };
        let outcome = edit(&self.place, &self.project, change).await?;
        say(&self.project, outcome, "sync window deleted", "it had no such window")
    }
}

fn joined(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}
