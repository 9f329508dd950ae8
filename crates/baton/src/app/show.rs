//! `list`, `get`, `resources`, `history`: what there is.

use baton_api::Application;
use clap::Args;
use serde_json::Value;

use super::applications::Applications;
use super::view::Shown;
use super::{typed, view};
use crate::failure::Failure;
use crate::listing::Listing;
use crate::objects::text;
use crate::place::Place;
use crate::print::{self, Form};
use crate::terminal;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app list
  baton app list -A -o wide
  baton app list --project web -l team=shop -o name
  baton app list --needs-approval")]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,
    /// In every namespace.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only Applications with these labels.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Only Applications of this project; may be repeated.
    #[arg(short, long, value_name = "NAME")]
    project: Vec<String>,
    /// Only Applications on this cluster, by name or URL.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Only Applications in which a deletion waits for a person's word.
    #[arg(long)]
    needs_approval: bool,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let mut found = Vec::new();
        for object in applications.list(self.selector.as_deref(), self.all_namespaces).await? {
            let application = typed(&object)?;
            if self.wants(&application) {
                found.push((object, application));
            }
        }
        let nothing = format!("No such Applications in {}.", applications.whereabouts(self.all_namespaces));
        Listing { nothing: &nothing, ..LISTING }.print(&found, self.output)
    }

    fn wants(&self, application: &Application) -> bool {
        let destination = &application.spec.destination;
        let project = match application.spec.project.as_str() {
            "" => baton_api::names::DEFAULT_PROJECT,
            project => project,
        };
        (self.project.is_empty() || self.project.iter().any(|wanted| wanted == project))
            && self
                .cluster
                .as_ref()
                .is_none_or(|cluster| *cluster == destination.name || *cluster == destination.server)
            && (!self.needs_approval || view::waiting(application).is_some())
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app get web
  baton app get web -o tree
  baton app get web -o yaml")]
pub(crate) struct Get {
    /// Its name.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Have it compared with git once more first.
    #[arg(long)]
    refresh: bool,
    /// Have everything read anew first, past every cache.
    #[arg(long, conflicts_with = "refresh")]
    hard_refresh: bool,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Shape>,
}

impl Get {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let object = if self.refresh || self.hard_refresh {
            let kind = if self.hard_refresh { "hard" } else { "normal" };
            super::follow::refreshed(&applications, &self.name, kind).await?
        } else {
            applications.get(&self.name).await?
        };
        let application = typed(&object)?;
        match self.output {
            None => print::out(&view::described(&application, false)),
            Some(Shape::Tree) => tree(&applications, &self.name).await,
            Some(shape) => show(vec![(object, application)], shape.form(), true),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app resources web
  baton app resources web -o tree
  baton app resources web --needs-approval
  baton app resources web -o json")]
pub(crate) struct Resources {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Only those whose deletion waits for a person's word.
    #[arg(long)]
    needs_approval: bool,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Shape>,
}

/// How one Application is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    /// What belongs to what.
    Tree,
    /// For people, with more.
    Wide,
    /// Whole, as YAML.
    Yaml,
    /// Whole, as JSON.
    Json,
    /// Kinds and names only.
    Name,
}

impl Shape {
    /// `None` for a tree.
    fn form(self) -> Option<Form> {
        match self {
            Shape::Tree => None,
            Shape::Wide => Some(Form::Wide),
            Shape::Yaml => Some(Form::Yaml),
            Shape::Json => Some(Form::Json),
            Shape::Name => Some(Form::Name),
        }
    }
}

impl Resources {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        if self.output == Some(Shape::Tree) {
            return tree(&applications, &self.name).await;
        }
        let object = applications.get(&self.name).await?;
        let mut application = typed(&object)?;
        if self.needs_approval {
            application.status.resources.retain(|resource| resource.requires_deletion_approval);
        }
        let rows: Vec<Value> = application
            .status
            .resources
            .iter()
            .map(|resource| serde_json::to_value(resource).unwrap_or_default())
            .collect();
        match self.output.and_then(Shape::form) {
            Some(Form::Json) => print::out(&(format!("{:#}", Value::Array(rows)) + "\n")),
            Some(Form::Yaml) => print::out(&print::yaml(&[Value::Array(rows)])?),
            Some(Form::Name) => {
                let line = |resource| {
                    let mark = view::marks(resource);
                    let mark = if mark.is_empty() { mark } else { format!(" ({mark})") };
                    format!("{}{mark}\n", view::resource_name(resource))
                };
                print::out(&application.status.resources.iter().map(line).collect::<String>())
            }
            None | Some(Form::Wide) if application.status.resources.is_empty() => {
                match view::waiting(&application).filter(|_| self.needs_approval) {
                    Some(others) => terminal::remark(&format!("No resources of its own; but {others}")),
                    None => terminal::remark("No such resources."),
                }
                Ok(())
            }
            None => print::out(&view::resources(&application, false)),
            Some(Form::Wide) => print::out(&view::resources(&application, true)),
        }
    }
}

async fn tree(applications: &Applications, name: &str) -> Result<(), Failure> {
    print::out(&super::tree::tree(applications, name).await?)
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app history web
  baton app history web -o json")]
pub(crate) struct History {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl History {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let object = Applications::at(&self.place).await?.get(&self.name).await?;
        let entries = typed(&object)?.status.history;
        let whole = || serde_json::to_value(&entries).unwrap_or_default();
        match self.output {
            Some(Form::Json) => print::out(&(format!("{:#}", whole()) + "\n")),
            Some(Form::Yaml) => print::out(&print::yaml(&[whole()])?),
            Some(Form::Name) => {
                print::out(&entries.iter().map(|entry| format!("{}\n", entry.id)).collect::<String>())
            }
            None | Some(Form::Wide) if entries.is_empty() => {
                terminal::remark("Nothing was deployed yet.");
                Ok(())
            }
            None | Some(Form::Wide) => print::out(&view::history(&entries)),
        }
    }
}

/// How Applications are listed.
const LISTING: Listing<'_, Shown> = Listing {
    columns: view::COLUMNS,
    whole: |(object, _)| object.clone(),
    name: |(object, _)| format!("application.argoproj.io/{}", text(object, "/metadata/name")),
    nothing: "No such Applications.",
};

/// Prints Applications as asked; one for people in full only where more than a row is asked for.
pub(super) fn show(mut found: Vec<Shown>, form: Option<Form>, single: bool) -> Result<(), Failure> {
    match found.pop() {
        Some(one) if single && found.is_empty() && form.is_some() => {
            LISTING.print_one(one, form, |(_, application), wide| view::described(application, wide))
        }
        last => {
            found.extend(last);
            LISTING.print(&found, form)
        }
    }
}
