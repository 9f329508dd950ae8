//! `create`: a project from flags or from files.

use std::path::PathBuf;

use baton_api::AppProject;
use baton_api::application::Destination;
use baton_api::project::{ClusterResourceItem, GroupKind, OrphanedResources, SignatureKey};
use clap::Args;
use serde_json::{Value, json};

use super::show::{LISTING, read};
use crate::appset::manifests;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing;
use crate::objects::text;
use crate::place::Place;
use crate::print::{self, Form};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton proj create shop --description 'the shop' --src 'https://git.example.com/shop/*' --dest https://kubernetes.default.svc,shop
  baton proj create shop --dest 'prod-*,shop-*' --dest-by-name --allow-cluster-resource /Namespace
  baton proj create -f shop.yaml --upsert
  baton proj create shop --src '*' --dry-run -o yaml")]
pub(super) struct Create {
    /// Its name; with -f only where the file has none.
    #[arg(value_name = "PROJECT")]
    name: Option<String>,
    /// A file with AppProjects; - is standard input. Other flags than --upsert do not go with it.
    #[arg(short = 'f', long = "file", alias = "filename", value_name = "FILE", conflicts_with_all = ["src", "dest"])]
    files: Vec<PathBuf>,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// A cluster and a namespace its Applications may be deployed to, globs; may be repeated.
    #[arg(short, long, value_name = "SERVER,NAMESPACE")]
    dest: Vec<String>,
    /// SERVER of --dest is the name of the cluster.
    #[arg(long)]
    dest_by_name: bool,
    /// A repository its Applications may use, a glob; may be repeated.
    #[arg(short, long, value_name = "URL")]
    src: Vec<String>,
    /// A namespace of the control plane its Applications may live in; may be repeated.
    #[arg(long = "source-namespaces", value_name = "NAMESPACE", value_delimiter = ',')]
    source_namespaces: Vec<String>,
    /// A kind without namespaces that is allowed; may be repeated.
    #[arg(long, value_name = "GROUP/KIND")]
    allow_cluster_resource: Vec<String>,
    /// A kind without namespaces that is refused; may be repeated.
    #[arg(long, value_name = "GROUP/KIND")]
    deny_cluster_resource: Vec<String>,
    /// A kind in namespaces that is allowed, and no other; may be repeated.
    #[arg(long, value_name = "GROUP/KIND")]
    allow_namespaced_resource: Vec<String>,
    /// A kind in namespaces that is refused; may be repeated.
    #[arg(long, value_name = "GROUP/KIND")]
    deny_namespaced_resource: Vec<String>,
    /// A key that commits must be signed with; may be repeated.
    #[arg(long = "signature-keys", value_name = "ID", value_delimiter = ',')]
    signature_keys: Vec<String>,
    /// Look for resources that belong to no Application.
    #[arg(long)]
    orphaned_resources: bool,
    /// Warn of resources that belong to no Application.
    #[arg(long, requires = "orphaned_resources")]
    orphaned_resources_warn: bool,
    /// Change a project that exists already.
    #[arg(long)]
    upsert: bool,
    /// Write nothing: print what would be sent.
    #[arg(long)]
    dry_run: bool,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

impl Create {
    pub(super) async fn run(self) -> Result<(), Failure> {
        // All are read and judged before the first is written.
        let documents = match self.files.is_empty() {
            true => vec![self.written_in_flags()?],
            false => self.written_in_files()?,
        };
        let made: Vec<Value> = match self.dry_run {
            true => documents,
            false => {
                Desk::at(&self.place, async |desk| {
                    let mut made = Vec::new();
                    for document in &documents {
                        made.push(desk.create_project(document, self.upsert).await?);
                    }
                    Ok(made)
                })
                .await?
            }
        };
        let verb = match (self.dry_run, self.upsert) {
            (true, _) => "would be written",
            (false, true) => "configured",
            (false, false) => "created",
        };
        let mut shown: Vec<_> = made.into_iter().map(read).collect::<Result<_, _>>()?;
        match (self.output, shown.len()) {
            (None, _) => {
                shown.iter().try_for_each(|one| print::out(&format!("{} {verb}\n", (LISTING.name)(one))))
            }
            (form, 1) => LISTING.print_one(shown.remove(0), form, |one, wide| {
                listing::table(LISTING.columns, std::slice::from_ref(one), wide)
            }),
            (form, _) => LISTING.print(&shown, form),
        }
    }

    fn written_in_files(&self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        for manifest in manifests::read(&self.files)? {
            let fault = |why: String| Failure::usage(format!("{}: {why}", manifest.name));
            let documents =
                baton_grammar::yaml::documents(&manifest.text).map_err(|error| fault(error.to_string()))?;
            for mut document in documents.into_iter().filter(|document| !document.is_null()) {
                if document["kind"] != "AppProject" {
                    return Err(fault(format!("found kind {}, expected AppProject", document["kind"])));
                }
                if text(&document, "/metadata/name").is_empty() {
                    let name = self.name.clone();
                    let name = name.ok_or_else(|| fault("a project has no metadata.name".to_owned()))?;
                    document["metadata"]["name"] = name.into();
                }
                read(document.clone()).map_err(|error| fault(error.to_string()))?;
                all.push(document);
            }
        }
        match all.is_empty() {
            true => Err(Failure::usage("no document with `kind: AppProject` in the files given")),
            false => Ok(all),
        }
    }

    fn written_in_flags(&self) -> Result<Value, Failure> {
        let name = self.name.clone().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Failure::usage("give a name, or a file with -f"))?;
        let mut project = AppProject::default();
        project.metadata.name = Some(name);
        let spec = &mut project.spec;
        spec.description = self.description.clone();
        spec.source_repos = self.src.clone();
        spec.source_namespaces = self.source_namespaces.clone();
        for destination in &self.dest {
            let (cluster, namespace) = destination.rsplit_once(',').ok_or_else(|| {
                Failure::usage(format!("--dest {destination:?}: write it as SERVER,NAMESPACE"))
            })?;
            let (server, name) = if self.dest_by_name { ("", cluster) } else { (cluster, "") };
            let [server, name, namespace] = [server, name, namespace].map(str::to_owned);
            spec.destinations.push(Destination { server, name, namespace });
        }
        let items = |all: &[String]| -> Result<Vec<ClusterResourceItem>, Failure> {
            let item = |kind: GroupKind| ClusterResourceItem {
                group: kind.group,
                kind: kind.kind,
                name: String::new(),
            };
            Ok(kinds(all)?.into_iter().map(item).collect())
        };
        spec.cluster_resource_whitelist = items(&self.allow_cluster_resource)?;
        spec.cluster_resource_blacklist = items(&self.deny_cluster_resource)?;
        let allowed = kinds(&self.allow_namespaced_resource)?;
        spec.namespace_resource_whitelist = (!allowed.is_empty()).then_some(allowed);
        spec.namespace_resource_blacklist = kinds(&self.deny_namespaced_resource)?;
        spec.signature_keys =
            self.signature_keys.iter().map(|id| SignatureKey { key_id: id.clone() }).collect();
        spec.orphaned_resources = self.orphaned_resources.then(|| OrphanedResources {
            warn: Some(self.orphaned_resources_warn),
            ..OrphanedResources::default()
        });
        Ok(json!(project))
    }
}

/// Kinds, each with its group before it.
fn kinds(all: &[String]) -> Result<Vec<GroupKind>, Failure> {
    let kind = |text: &String| {
        let (group, kind) = text.rsplit_once('/').unwrap_or(("", text));
        match kind.is_empty() {
            true => Err(Failure::usage(format!("{text:?} is no kind: write it as GROUP/KIND"))),
            false => Ok(GroupKind { group: group.to_owned(), kind: kind.to_owned() }),
        }
    };
    all.iter().map(kind).collect()
}
