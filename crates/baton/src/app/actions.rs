//! `actions`: what the resources of an Application offer to have done to them.

use std::collections::BTreeMap;

use baton_api::application_status::ResourceStatus;
use baton_api::edit::difference;
use baton_api::object::{Object, ResourceKey, group_version};
use baton_health::Change;
use baton_sync::approval;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::{actor, view};
use crate::connection::Connection;
use crate::failure::Failure;
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
    connection: Connection,
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
    connection: Connection,
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

impl List {
    async fn run(self) -> Result<(), Failure> {
        let desk = Desk::open(&self.connection, &self.name).await?;
        let mut rows = Vec::new();
        for row in desk.application.status.resources.iter().filter(|row| self.which.means(row)) {
            let mut add = |name: &str, disabled: bool| {
                let place = [&row.group, &row.kind, &row.namespace, &row.name];
                let mut cells: Vec<String> = place.into_iter().cloned().collect();
                cells.extend([name.to_owned(), disabled.to_string()]);
                rows.push(cells);
            };
            if row.requires_deletion_approval {
                add(APPROVE, false);
            }
            if let Some(live) = desk.fetch(&api_version(row), &key(row)).await? {
                let offered = baton_health::actions(&live, &desk.customizations)
                    .map_err(|error| Failure::failed(format!("{}: {error}", view::resource_name(row))))?;
                for action in offered {
                    add(&action.name, action.disabled);
                }
            }
        }
        print::out(&print::table(&["GROUP", "KIND", "NAMESPACE", "NAME", "ACTION", "DISABLED"], &rows))
    }
}

impl Run {
    async fn run(self) -> Result<(), Failure> {
        let mut params = BTreeMap::new();
        for param in &self.params {
            let (name, value) =
                param.split_once('=').ok_or_else(|| Failure::usage("write parameters as NAME=VALUE"))?;
            params.insert(name.to_owned(), value.to_owned());
        }
        let desk = Desk::open(&self.connection, &self.name).await?;
        let approves = self.action == APPROVE;
        let meant: Vec<ResourceStatus> = desk
            .application
            .status
            .resources
            .iter()
            .filter(|row| self.which.means(row) && (!approves || row.requires_deletion_approval))
            .cloned()
            .collect();
        match meant.len() {
            0 if approves => {
                return Err(Failure::failed("no such resource waits for the approval of its deletion"));
            }
            0 => return Err(Failure::failed(format!("{} has no such resource", self.name))),
            1 => {}
            _ if self.all => {}
            count => {
                return Err(Failure::usage(format!("{count} resources are meant: name one, or add --all")));
            }
        }
        let approval = if approves { Some(approval_of(&desk, &meant)?) } else { None };
        for row in &meant {
            let key = key(row);
            let live = desk
                .fetch(&api_version(row), &key)
                .await?
                .ok_or_else(|| Failure::failed(format!("{} is gone", view::resource_name(row))))?;
            if let Some(annotations) = &approval {
                let patch = json!({"metadata": {"uid": live.uid(), "annotations": annotations}});
                send(&desk, http::Method::PATCH, live.api_version(), &key, Some(&patch)).await?;
            } else {
                let changes = baton_health::run_action(&live, &self.action, &params, &desk.customizations)
                    .map_err(|error| Failure::failed(format!("{}: {error}", view::resource_name(row))))?;
                for change in changes {
                    carry_out(&desk, &live, change).await?;
                }
            }
            print::out(&format!("{} {}\n", view::resource_name(row), self.action))?;
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
    let keys: Vec<ResourceKey> = meant.iter().map(key).collect();
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

fn key(row: &ResourceStatus) -> ResourceKey {
    let [group, kind, namespace, name] = [&row.group, &row.kind, &row.namespace, &row.name].map(Clone::clone);
    ResourceKey { group, kind, namespace, name }
}

fn api_version(row: &ResourceStatus) -> String {
    match row.group.as_str() {
        "" => row.version.clone(),
        group => format!("{group}/{}", row.version),
    }
}
