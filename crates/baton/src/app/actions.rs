//! `actions`: what the resources of an Application offer to have done to them.

use std::collections::BTreeMap;

use baton_api::Application;
use baton_api::application_status::ResourceStatus;
use baton_api::edit::difference;
use baton_api::object::{Object, ResourceKey, group_version};
use baton_health::Change;
use baton_sync::approval;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::applications::Applications;
use super::desk::Desk;
use super::{actor, typed, view};
use crate::failure::Failure;
use crate::listing::{self, Column};
use crate::place::Place;
use crate::print;

/// The action that every resource whose deletion waits for approval offers.
const APPROVE: &str = "approve-deletion";
/// Who owns what actions write: never the controller's manager, which would take it for a part of git.
const MANAGER: &str = "baton-actions";

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Actions {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the actions of an Application's resources.
    List(List),
    /// Run one.
    Run(Run),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app actions list web
  baton app actions list web --kind Deployment")]
struct List {
    /// The Application.
    name: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app actions run web restart --kind Deployment --resource-name web
  baton app actions run web approve-deletion --kind PersistentVolumeClaim --all
  baton app actions run web scale --kind Deployment --resource-name web -p replicas=3")]
struct Run {
    /// The Application.
    name: String,
    /// The action.
    action: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    which: Which,
    /// On every resource that is meant, not only where it is one.
    #[arg(long)]
    all: bool,
    /// A parameter; may be repeated.
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
}

/// Which resources are meant.
#[derive(Debug, Args)]
struct Which {
    /// Of this group.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Of this kind.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// In this namespace.
    #[arg(long, value_name = "NAMESPACE")]
    resource_namespace: Option<String>,
    /// Of this name.
    #[arg(long, value_name = "NAME")]
    resource_name: Option<String>,
}

impl Which {
    fn means(&self, row: &ResourceStatus) -> bool {
        let holds = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        holds(&self.group, &row.group)
            && holds(&self.kind, &row.kind)
            && holds(&self.resource_namespace, &row.namespace)
            && holds(&self.resource_name, &row.name)
    }
}

impl Actions {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::List(arguments) => arguments.run().await,
            Command::Run(arguments) => arguments.run().await,
        }
    }
}

/// An action that a resource offers, and whether it is disabled.
type Offer = (ResourceStatus, String, bool);

const COLUMNS: &[Column<Offer>] = &[
    Column::new("GROUP", |(row, _, _)| row.group.clone()),
    Column::new("KIND", |(row, _, _)| row.kind.clone()),
    Column::new("NAMESPACE", |(row, _, _)| row.namespace.clone()),
    Column::new("NAME", |(row, _, _)| row.name.clone()),
    Column::new("ACTION", |(_, action, _)| action.clone()),
    Column::new("DISABLED", |(_, _, disabled)| disabled.to_string()),
];

impl List {
    async fn run(self) -> Result<(), Failure> {
        let applications = Applications::at(&self.place).await?;
        let offers = match &applications {
            Applications::Cluster(there) => self.in_cluster(&Desk::open(there, &self.name).await?).await?,
            Applications::Server(there) => {
                let mut offers = Vec::new();
                let application = typed(&applications.get(&self.name).await?)?;
                for row in application.status.resources.iter().filter(|row| self.which.means(row)) {
                    let all = there.actions(&self.name, row).await?.into_iter();
                    offers.extend(all.map(|(name, disabled)| (row.clone(), name, disabled)));
                }
                offers
            }
        };
        print::out(&listing::table(COLUMNS, &offers, false))
    }

    async fn in_cluster(&self, desk: &Desk) -> Result<Vec<Offer>, Failure> {
        let mut offers = Vec::new();
        for row in desk.application.status.resources.iter().filter(|row| self.which.means(row)) {
            if row.requires_deletion_approval {
                offers.push((row.clone(), APPROVE.to_owned(), false));
            }
            if let Some(live) = desk.fetch(&api_version(row), &view::key(row)).await? {
                let offered = baton_health::actions(&live, &desk.customizations)
                    .map_err(|error| Failure::failed(format!("{}: {error}", view::resource_name(row))))?;
                offers.extend(offered.into_iter().map(|one| (row.clone(), one.name, one.disabled)));
            }
        }
        Ok(offers)
    }
}

impl Run {
    async fn run(self) -> Result<(), Failure> {
        let mut params = Vec::new();
        for param in &self.params {
            let (name, value) =
                param.split_once('=').ok_or_else(|| Failure::usage("write parameters as NAME=VALUE"))?;
            params.push((name.to_owned(), value.to_owned()));
        }
        let applications = Applications::at(&self.place).await?;
        match &applications {
            Applications::Cluster(there) => {
                let desk = Desk::open(there, &self.name).await?;
                self.in_cluster(&desk, params.into_iter().collect()).await
            }
            Applications::Server(there) => {
                let application = typed(&applications.get(&self.name).await?)?;
                for row in self.meant(&application)? {
                    there.run_action(&self.name, &row, &self.action, &params).await?;
                    self.say(&row)?;
                }
                Ok(())
            }
        }
    }

    /// The resources that are meant.
    fn meant(&self, application: &Application) -> Result<Vec<ResourceStatus>, Failure> {
        let approves = self.action == APPROVE;
        let rows = application.status.resources.iter();
        let meant: Vec<ResourceStatus> = rows
            .filter(|row| self.which.means(row) && (!approves || row.requires_deletion_approval))
            .cloned()
            .collect();
        match meant.len() {
            0 if approves => Err(Failure::failed("no such resource waits for the approval of its deletion")),
            0 => Err(Failure::failed(format!("{} has no such resource", self.name))),
            1 => Ok(meant),
            _ if self.all => Ok(meant),
            count => Err(Failure::usage(format!("{count} resources are meant: name one, or add --all"))),
        }
    }

    fn say(&self, row: &ResourceStatus) -> Result<(), Failure> {
        print::out(&format!("{} {}\n", view::resource_name(row), self.action))
    }

    async fn in_cluster(&self, desk: &Desk, params: BTreeMap<String, String>) -> Result<(), Failure> {
        let meant = self.meant(&desk.application)?;
        let approval = if self.action == APPROVE { Some(approval_of(desk, &meant)?) } else { None };
        for row in &meant {
            let key = view::key(row);
            let live = desk
                .fetch(&api_version(row), &key)
                .await?
                .ok_or_else(|| Failure::failed(format!("{} is gone", view::resource_name(row))))?;
            if let Some(annotations) = &approval {
                let patch = json!({"metadata": {"uid": live.uid(), "annotations": annotations}});
                send(desk, http::Method::PATCH, live.api_version(), &key, Some(&patch)).await?;
            } else {
                let changes = baton_health::run_action(&live, &self.action, &params, &desk.customizations)
                    .map_err(|error| Failure::failed(format!("{}: {error}", view::resource_name(row))))?;
                for change in changes {
                    carry_out(desk, &live, change).await?;
                }
            }
            self.say(row)?;
        }
        Ok(())
    }
}

/// The annotations that approve these deletions together, for the operation that waits for them and no other.
fn approval_of(desk: &Desk, meant: &[ResourceStatus]) -> Result<Map<String, Value>, Failure> {
    let application = &desk.application;
    let state = application.status.operation_state.as_ref();
    let running =
        state.filter(|state| !state.phase.is_completed()).and_then(|state| state.started_at.as_ref());
    // A sync that runs ends before the deletion of its Application goes on.
    let since = running.or(application.metadata.deletion_timestamp.as_ref()).ok_or_else(|| {
        Failure::failed(
            "no sync or deletion is under way, so there is nothing to approve; an approval holds for one operation",
        )
    })?;
    let now = Timestamp::now().max(since.0);
    let keys: Vec<ResourceKey> = meant.iter().map(view::key).collect();
    Ok(approval::grant(&keys, &actor(), now, &approval::operation_name(since.0)))
}

async fn carry_out(desk: &Desk, live: &Value, change: Change) -> Result<(), Failure> {
    match change {
        Change::Create(object) => {
            let key = object.key();
            send(desk, http::Method::POST, object.api_version(), &key, Some(&object)).await
        }
        Change::Patch(object) => {
            let patch = difference(live, &object);
            if patch.as_object().is_some_and(Map::is_empty) {
                return Ok(());
            }
            send(desk, http::Method::PATCH, object.api_version(), &object.key(), Some(&patch)).await
        }
    }
}

async fn send(
    desk: &Desk,
    method: http::Method,
    api_version: &str,
    key: &ResourceKey,
    body: Option<&Value>,
) -> Result<(), Failure> {
    let kind = desk.cluster.kind(api_version, &key.kind).map_err(|error| Failure::api(error.to_string()))?;
    let kind =
        kind.ok_or_else(|| Failure::failed(format!("the cluster does not know {api_version} {}", key.kind)))?;
    let root = if group_version(api_version).0.is_empty() { "api" } else { "apis" };
    let namespace = if kind.namespaced { format!("/namespaces/{}", key.namespace) } else { String::new() };
    let name = if method == http::Method::POST { String::new() } else { format!("/{}", key.name) };
    let content = match method {
        http::Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/{root}/{api_version}{namespace}/{}{name}?fieldManager={MANAGER}", kind.plural))
        .header(http::header::CONTENT_TYPE, content)
        .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
        .map_err(|error| Failure::failed(error.to_string()))?;
    desk.member.request::<Value>(request).await?;
    Ok(())
}

fn api_version(row: &ResourceStatus) -> String {
    match row.group.as_str() {
        "" => row.version.clone(),
        group => format!("{group}/{}", row.version),
    }
}
