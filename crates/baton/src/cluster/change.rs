//! `set` and `rm`: what is said of clusters, and clusters taken off the list.

use clap::Args;
use serde_json::{Value, json};

use super::add::Ground;
use super::desk::marked;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::objects::{can_ask, confirmed, text};
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
#[command(after_help = "Credentials are changed by `baton cluster add --upsert`.

Examples:
  baton cluster set prod-eu --label env=prod --label tier-
  baton cluster set prod-eu --name prod-eu-1
  baton cluster set prod-eu --namespace shop --namespace blog")]
pub(super) struct Set {
    /// Its URL or name.
    #[arg(value_name = "SERVER/NAME")]
    id: String,
    /// Its new name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The only namespaces that are looked at; '*' is all. May be repeated.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// A label; NAME- takes one away. May be repeated.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// An annotation. May be repeated.
    #[arg(long = "annotation", value_name = "NAME=VALUE")]
    annotations: Vec<String>,
    #[command(flatten)]
    ground: Ground,
}

#[derive(Debug, Args)]
#[command(
    after_help = "What Applications have deployed there stays, and the Applications can no longer reach it.

Exit codes: 0 done; 1 usage; 2 not confirmed; 20 there is none, or the API refused.

Examples:
  baton cluster rm prod-eu
  baton cluster rm https://10.0.0.1:6443 --yes"
)]
pub(super) struct Remove {
    /// URLs or names.
    #[arg(required = true, value_name = "SERVER/NAME")]
    ids: Vec<String>,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    place: Place,
}

impl Set {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let place = self.ground.place();
        let changed = Desk::at(&place, async |desk| {
            let mut cluster = desk.cluster(&self.id).await?;
            let fields = self.changes(&mut cluster)?;
            desk.set_cluster(&self.id, &cluster, &fields).await?;
            Ok(cluster)
        })
        .await?;
        print::out(&format!("cluster/{} updated\n", text(&changed, "/name")))
    }

    /// Changes what is to change; the names of those fields.
    fn changes(&self, cluster: &mut Value) -> Result<Vec<&'static str>, Failure> {
        let mut fields = Vec::new();
        if let Some(name) = &self.name {
            if name.is_empty() {
                return Err(Failure::usage("--name: a cluster has a name"));
            }
            cluster["name"] = name.as_str().into();
            fields.push("name");
        }
        if !self.namespaces.is_empty() {
            let all = self.namespaces.iter().any(|namespace| namespace == "*");
            cluster["namespaces"] = if all { json!([]) } else { json!(self.namespaces) };
            fields.push("namespaces");
        }
        if !self.labels.is_empty() {
            cluster["labels"] = marked(&cluster["labels"], &self.labels)?;
            fields.push("labels");
        }
        if !self.annotations.is_empty() {
            cluster["annotations"] = marked(&cluster["annotations"], &self.annotations)?;
            fields.push("annotations");
        }
        match fields.is_empty() {
            true => Err(Failure::usage("say what to change: --name, --namespace, --label or --annotation")),
            false => Ok(fields),
        }
    }
}

impl Remove {
    pub(super) async fn run(self) -> Result<(), Failure> {
        if !self.yes {
            can_ask()?;
        }
        Desk::at(&self.place, async |desk| {
            let mut question = Vec::new();
            for id in &self.ids {
                let cluster = desk.cluster(id).await?;
                let count =
                    cluster.pointer("/info/applicationsCount").and_then(Value::as_u64).unwrap_or_default();
                question.push(match count {
                    0 => format!("cluster {id}: no Application is deployed there"),
                    1 => format!("cluster {id}: 1 Application can no longer reach it"),
                    count => format!("cluster {id}: {count} Applications can no longer reach it"),
                });
            }
            if !self.yes && !confirmed(&question)? {
                return Err(Failure::waiting("nothing was taken off the list"));
            }
            for id in &self.ids {
                desk.remove_cluster(id).await?;
                print::out(&format!("cluster/{id} removed\n"))?;
            }
            Ok(())
        })
        .await
    }
}
