//! `list` and `get`: clusters as they are known.

use clap::Args;
use serde_json::Value;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{Column, Listing};
use crate::objects::{or, text};
use crate::place::Place;
use crate::print::Form;

#[derive(Debug, Args)]
#[command(
    after_help = "STATUS is what is known without asking the cluster: Unknown says that nobody has asked it yet.

Examples:
  baton cluster list
  baton cluster list -o wide
  baton cluster list -o name --core"
)]
pub(super) struct List {
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "What opens a cluster is never shown.

Examples:
  baton cluster get prod-eu
  baton cluster get https://10.0.0.1:6443 -o yaml")]
pub(super) struct Get {
    /// Its URL or name.
    #[arg(value_name = "SERVER/NAME")]
    id: String,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

const COLUMNS: &[Column<Value>] = &[
    Column::new("SERVER", |one| text(one, "/server")),
    Column::new("NAME", |one| text(one, "/name")),
    Column::new("VERSION", |one| or(text(one, "/serverVersion"), &text(one, "/info/serverVersion"))),
    Column::new("STATUS", |one| text(one, "/connectionState/status")),
    Column::new("MESSAGE", |one| text(one, "/connectionState/message")),
    Column::new("PROJECT", |one| text(one, "/project")),
    Column::wide("NAMESPACES", namespaces),
    Column::wide("APPS", applications),
    Column::wide("LABELS", |one| labels(one).join(",")),
];

/// How clusters are listed.
const LISTING: Listing<'_, Value> = Listing {
    columns: COLUMNS,
    whole: Value::clone,
    name: |one| format!("cluster/{}", text(one, "/name")),
    nothing: "No clusters that you may see.",
};

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let clusters = Desk::at(&self.place, async |desk| desk.clusters().await).await?;
        LISTING.print(&clusters, self.output)
    }
}

impl Get {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let cluster = Desk::at(&self.place, async |desk| desk.cluster(&self.id).await).await?;
        LISTING.print_one(cluster, self.output, |one, _| described(one))
    }
}

fn described(cluster: &Value) -> String {
    let status = match text(cluster, "/connectionState/message") {
        message if message.is_empty() => text(cluster, "/connectionState/status"),
        message => format!("{} ({message})", text(cluster, "/connectionState/status")),
    };
    let lines = [
        ("Name", text(cluster, "/name")),
        ("Server", text(cluster, "/server")),
        ("Version", text(cluster, "/serverVersion")),
        ("Status", status),
        ("Project", text(cluster, "/project")),
        ("Namespaces", namespaces(cluster)),
        ("Labels", labels(cluster).join(", ")),
        ("Applications", applications(cluster)),
    ];
    let line = |(label, value): (&str, String)| format!("{:<14}{}\n", format!("{label}:"), or(value, "-"));
    lines.into_iter().map(line).collect()
}

fn namespaces(cluster: &Value) -> String {
    let all: Vec<&str> =
        cluster["namespaces"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if all.is_empty() { "all".to_owned() } else { all.join(",") }
}

fn applications(cluster: &Value) -> String {
    cluster.pointer("/info/applicationsCount").and_then(Value::as_u64).unwrap_or_default().to_string()
}

fn labels(cluster: &Value) -> Vec<String> {
    let labels = cluster["labels"].as_object().into_iter().flatten();
    let own = labels.filter(|(key, _)| *key != baton_api::names::secret::TYPE_LABEL);
    own.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cluster_is_told_without_the_label_that_every_one_has() {
        let one = json!({
            "name": "eu", "server": "https://eu", "labels": {"argocd.argoproj.io/secret-type": "cluster", "env": "prod"},
            "connectionState": {"status": "Failed", "message": "no route"}, "info": {"applicationsCount": 3},
        });
        let told = described(&one);
        for line in [
            "Labels:       env=prod\n",
            "Status:       Failed (no route)\n",
            "Namespaces:   all\n",
            "Applications: 3\n",
        ] {
            assert!(told.contains(line), "{line:?} is not in\n{told}");
        }
    }
}
