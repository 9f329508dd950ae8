//! `list` and `get`: projects as they are.

use baton_api::AppProject;
use baton_api::project::{ClusterResourceItem, GroupKind};
use clap::Args;
use serde_json::Value;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{Column, Listing};
use crate::objects::text;
use crate::place::Place;
use crate::print::Form;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton proj list
  baton proj list -o wide
  baton proj list -o name --core")]
pub(super) struct List {
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton proj get shop
  baton proj get shop -o yaml")]
pub(super) struct Get {
    /// Its name.
    #[arg(value_name = "PROJECT")]
    name: String,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

/// A project, as it was read and as it reads.
type Shown = (Value, AppProject);

const COLUMNS: &[Column<Shown>] = &[
    Column::new("NAME", |(_, one)| one.metadata.name.clone().unwrap_or_default()),
    Column::new("DESCRIPTION", |(_, one)| one.spec.description.clone()),
    Column::new("DESTINATIONS", |(_, one)| counted(&destinations(one), "destinations")),
    Column::new("SOURCES", |(_, one)| counted(&one.spec.source_repos, "repos")),
    Column::new("ROLES", |(_, one)| one.spec.roles.len().to_string()),
    Column::new("WINDOWS", |(_, one)| one.spec.sync_windows.len().to_string()),
    Column::wide("CLUSTER-RESOURCE-WHITELIST", |(_, one)| {
        counted(&items(&one.spec.cluster_resource_whitelist), "resources")
    }),
    Column::wide("NAMESPACE-RESOURCE-BLACKLIST", |(_, one)| {
        counted(&kinds(&one.spec.namespace_resource_blacklist), "resources")
    }),
    Column::wide("SIGNATURE-KEYS", |(_, one)| one.spec.signature_keys.len().to_string()),
    Column::wide("ORPHANED-RESOURCES", |(_, one)| orphans(one)),
];

/// How projects are listed.
pub(super) const LISTING: Listing<'_, Shown> = Listing {
    columns: COLUMNS,
    whole: |(object, _)| object.clone(),
    name: |(object, _)| format!("appproject.argoproj.io/{}", text(object, "/metadata/name")),
    nothing: "No projects that you may see.",
};

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let projects = Desk::at(&self.place, async |desk| desk.projects().await).await?;
        let projects: Vec<Shown> = projects.into_iter().map(read).collect::<Result<_, _>>()?;
        LISTING.print(&projects, self.output)
    }
}

impl Get {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let project = Desk::at(&self.place, async |desk| desk.project(&self.name).await).await?;
        LISTING.print_one(read(project)?, self.output, |(_, project), _| described(project))
    }
}

/// A project as it reads.
pub(super) fn read(object: Value) -> Result<Shown, Failure> {
    let project = serde_json::from_value(object.clone())
        .map_err(|error| Failure::failed(format!("this is no AppProject: {error}")))?;
    Ok((object, project))
}

fn described(project: &AppProject) -> String {
    let spec = &project.spec;
    let roles: Vec<String> = spec.roles.iter().map(|role| role.name.clone()).collect();
    let windows: Vec<String> = spec
        .sync_windows
        .iter()
        .map(|window| format!("{} {} for {}", window.kind, window.schedule, window.duration))
        .collect();
    let keys: Vec<String> = spec.signature_keys.iter().map(|key| key.key_id.clone()).collect();
    let allowed = match &spec.namespace_resource_whitelist {
        None => vec!["*".to_owned()],
        Some(kinds_) => kinds(kinds_),
    };
    let lines: [(&str, Vec<String>); 13] = [
        ("Name", vec![project.metadata.name.clone().unwrap_or_default()]),
        ("Description", vec![spec.description.clone()]),
        ("Destinations", destinations(project)),
        ("Repositories", spec.source_repos.clone()),
        ("Source Namespaces", spec.source_namespaces.clone()),
        ("Allowed Cluster Resources", items(&spec.cluster_resource_whitelist)),
        ("Denied Cluster Resources", items(&spec.cluster_resource_blacklist)),
        ("Allowed Namespaced Resources", allowed),
        ("Denied Namespaced Resources", kinds(&spec.namespace_resource_blacklist)),
        ("Signature keys", keys),
        ("Orphaned Resources", vec![orphans(project)]),
        ("Roles", roles),
        ("Sync Windows", windows),
    ];
    let mut out = String::new();
    for (label, values) in lines {
        let first = values.first().filter(|value| !value.is_empty()).map_or("<none>", String::as_str);
        out.push_str(&format!("{:<31}{first}\n", format!("{label}:")));
        values.iter().skip(1).for_each(|value| out.push_str(&format!("{:<31}{value}\n", "")));
    }
    out
}

fn destinations(project: &AppProject) -> Vec<String> {
    let one = |destination: &baton_api::application::Destination| {
        let cluster = match destination.name.as_str() {
            "" => &destination.server,
            _ => &destination.name,
        };
        format!("{cluster},{}", destination.namespace)
    };
    project.spec.destinations.iter().map(one).collect()
}

fn items(all: &[ClusterResourceItem]) -> Vec<String> {
    let name = |item: &ClusterResourceItem| match item.name.as_str() {
        "" => format!("{}/{}", item.group, item.kind),
        name => format!("{}/{} {name}", item.group, item.kind),
    };
    all.iter().map(name).collect()
}

fn kinds(all: &[GroupKind]) -> Vec<String> {
    all.iter().map(|kind| format!("{}/{}", kind.group, kind.kind)).collect()
}

fn orphans(project: &AppProject) -> String {
    match &project.spec.orphaned_resources {
        None => "disabled".to_owned(),
        Some(orphaned) => format!("enabled (warn={})", orphaned.warn.unwrap_or(true)),
    }
}

/// One of a list, or how many there are.
fn counted(all: &[String], what: &str) -> String {
    match all {
        [] => "<none>".to_owned(),
        [one] => one.clone(),
        several => format!("{} {what}", several.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_project_is_told_with_what_it_allows() {
        let (_, project) = read(json!({
            "metadata": {"name": "shop"},
            "spec": {
                "sourceRepos": ["https://git.example.com/shop.git"],
                "destinations": [{"server": "https://k", "namespace": "shop"}, {"name": "eu", "namespace": "*"}],
                "clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "shop"}],
                "namespaceResourceWhitelist": [],
                "roles": [{"name": "deployer"}],
            },
        }))
        .expect("a project");
        let told = described(&project);
        for line in [
            "Destinations:                  https://k,shop\n                               eu,*\n",
            "Allowed Cluster Resources:     /Namespace shop\n",
            "Allowed Namespaced Resources:  <none>\n",
            "Roles:                         deployer\n",
            "Sync Windows:                  <none>\n",
        ] {
            assert!(told.contains(line), "{line:?} is not in\n{told}");
        }
    }
}
