//! `create`: an Application from flags or from files.

use std::path::PathBuf;

use baton_api::application::{ApplicationSpec, AutomatedSync, Destination, SyncPolicy};
use baton_api::names::IN_CLUSTER_SERVER;
use baton_api::names::finalizer::RESOURCES;
use baton_api::source::{DirectorySource, HelmParameter, HelmSource, KustomizeSource, Source};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::applications::{Applications, Creation};
use crate::appset::manifests;
use crate::failure::Failure;
use crate::objects::text;
use crate::place::Place;
use crate::print::{self, Form};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton app create web --repo https://git.example.com/fleet/config.git --path apps/web --dest-name dev --dest-namespace web
  baton app create web --repo … --path apps/web --dest-name dev --sync-policy automated --auto-prune --self-heal
  baton app create -f web.yaml --upsert
  baton app create web --repo … --path apps/web --dry-run -o yaml")]
pub(crate) struct Create {
    /// Its name; with -f only where the file has none.
    name: Option<String>,
    /// Files or directories with Applications; - is standard input. Other flags than --upsert do not go with it.
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["repo", "path"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// The repository.
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// The directory in it.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Branch, tag, commit or range of versions.
    #[arg(long, value_name = "REVISION", default_value = "")]
    revision: String,
    /// The cluster, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "dest_server")]
    dest_name: Option<String>,
    /// The cluster, by URL; the control plane's own without it.
    #[arg(long, value_name = "URL")]
    dest_server: Option<String>,
    /// The namespace of resources that name none.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    dest_namespace: String,
    /// The project.
    #[arg(long, value_name = "NAME", default_value = "default")]
    project: String,
    /// Whether it syncs by itself.
    #[arg(long, value_enum, default_value_t = Automation::None)]
    sync_policy: Automation,
    /// Delete by itself what is no longer in git.
    #[arg(long)]
    auto_prune: bool,
    /// Undo by itself what others change.
    #[arg(long)]
    self_heal: bool,
    /// Let it delete everything where git is empty.
    #[arg(long)]
    allow_empty: bool,
    /// A sync option, such as CreateNamespace=true; may be repeated.
    #[arg(long = "sync-option", value_name = "OPTION")]
    sync_options: Vec<String>,
    /// Read directories below the path.
    #[arg(long)]
    directory_recurse: bool,
    /// A value of a Helm chart; may be repeated.
    #[arg(long = "helm-set", value_name = "NAME=VALUE")]
    helm_set: Vec<String>,
    /// A file of values of a Helm chart; may be repeated.
    #[arg(long = "values", value_name = "FILE")]
    values: Vec<String>,
    /// An image of a kustomization; may be repeated.
    #[arg(long = "kustomize-image", value_name = "IMAGE")]
    kustomize_images: Vec<String>,
    /// A label; may be repeated.
    #[arg(short = 'l', long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Delete what it deployed when it is deleted.
    #[arg(long)]
    set_finalizer: bool,
    /// Change Applications that exist already.
    #[arg(long)]
    upsert: bool,
    /// Let the server check it, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Automation {
    /// It is synced by people.
    #[value(alias = "manual")]
    None,
    /// It syncs whenever git changes.
    #[value(alias = "auto")]
    Automated,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        // All are read and judged before the first is written.
        let documents =
            if self.files.is_empty() { vec![self.written_in_flags()?] } else { self.written_in_files()? };
        let applications = Applications::at(&self.place).await?;
        let how = Creation { upsert: self.upsert, dry_run: self.dry_run };
        let mut made = Vec::new();
        for document in &documents {
            let name = text(document, "/metadata/name");
            let (object, verb) = applications.create(document, how).await?;
            if self.output.is_none() {
                let dry = if self.dry_run { " (dry run)" } else { "" };
                print::out(&format!("application.argoproj.io/{name} {verb}{dry}\n"))?;
            }
            made.push((object.clone(), super::typed(&object)?));
        }
        match self.output {
            None => Ok(()),
            output => {
                let single = made.len() == 1;
                super::show::show(made, output, single)
            }
        }
    }

    fn written_in_files(&self) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        for manifest in manifests::read(&self.files)? {
            let fault = |why: String| Failure::usage(format!("{}: {why}", manifest.name));
            let documents =
                baton_grammar::yaml::documents(&manifest.text).map_err(|error| fault(error.to_string()))?;
            for mut document in documents.into_iter().filter(|document| !document.is_null()) {
                if document["kind"] != "Application" {
                    return Err(fault(format!("found kind {}, expected Application", document["kind"])));
                }
                if text(&document, "/metadata/name").is_empty() {
                    let name = self
                        .name
                        .clone()
                        .ok_or_else(|| fault("an Application has no metadata.name".to_owned()))?;
                    document["metadata"]["name"] = name.into();
                }
                super::typed(&document).map_err(|error| fault(error.to_string()))?;
                found.push(document);
            }
        }
        if found.is_empty() {
            return Err(Failure::usage("no document with `kind: Application` in the files given"));
        }
        Ok(found)
    }

    fn written_in_flags(&self) -> Result<Value, Failure> {
        let name = self.name.as_ref().ok_or_else(|| Failure::usage("give a name, or a file with -f"))?;
        let repo =
            self.repo.as_ref().ok_or_else(|| Failure::usage("give --repo and --path, or a file with -f"))?;
        let path = self
            .path
            .as_ref()
            .ok_or_else(|| Failure::usage("give the directory in the repository with --path"))?;
        let source = Source {
            repo_url: repo.clone(),
            path: path.clone(),
            target_revision: self.revision.clone(),
            directory: self
                .directory_recurse
                .then(|| DirectorySource { recurse: true, ..DirectorySource::default() }),
            helm: self.helm()?,
            kustomize: (!self.kustomize_images.is_empty()).then(|| KustomizeSource {
                images: self.kustomize_images.clone(),
                ..KustomizeSource::default()
            }),
            ..Source::default()
        };
        let server = match (&self.dest_name, &self.dest_server) {
            (Some(_), _) => String::new(),
            (None, Some(server)) => server.clone(),
            (None, None) => IN_CLUSTER_SERVER.to_owned(),
        };
        let spec = ApplicationSpec {
            project: self.project.clone(),
            source: Some(source),
            destination: Destination {
                server,
                name: self.dest_name.clone().unwrap_or_default(),
                namespace: self.dest_namespace.clone(),
            },
            sync_policy: self.policy()?,
            ..ApplicationSpec::default()
        };
        let mut labels = serde_json::Map::new();
        for label in &self.labels {
            let (name, value) =
                label.split_once('=').ok_or_else(|| Failure::usage("write labels as NAME=VALUE"))?;
            labels.insert(name.to_owned(), value.into());
        }
        let mut document = json!({
            "apiVersion": baton_api::names::API_VERSION,
            "kind": "Application",
            "metadata": {"name": name},
            "spec": spec,
        });
        if !labels.is_empty() {
            document["metadata"]["labels"] = labels.into();
        }
        if self.set_finalizer {
            document["metadata"]["finalizers"] = json!([RESOURCES]);
        }
        Ok(document)
    }

    fn helm(&self) -> Result<Option<HelmSource>, Failure> {
        if self.helm_set.is_empty() && self.values.is_empty() {
            return Ok(None);
        }
        let mut parameters = Vec::new();
        for parameter in &self.helm_set {
            let (name, value) =
                parameter.split_once('=').ok_or_else(|| Failure::usage("write --helm-set as NAME=VALUE"))?;
            parameters.push(HelmParameter {
                name: name.to_owned(),
                value: value.to_owned(),
                force_string: false,
            });
        }
        Ok(Some(HelmSource { parameters, value_files: self.values.clone(), ..HelmSource::default() }))
    }

    fn policy(&self) -> Result<Option<SyncPolicy>, Failure> {
        let automated = self.sync_policy == Automation::Automated;
        if !automated && (self.auto_prune || self.self_heal || self.allow_empty) {
            return Err(Failure::usage(
                "--auto-prune, --self-heal and --allow-empty say how it syncs by itself: add --sync-policy automated",
            ));
        }
        let policy = SyncPolicy {
            automated: automated.then(|| AutomatedSync {
                prune: self.auto_prune.then_some(true),
                self_heal: self.self_heal.then_some(true),
                allow_empty: self.allow_empty.then_some(true),
                enabled: None,
            }),
            sync_options: self.sync_options.clone(),
            ..SyncPolicy::default()
        };
        Ok((policy != SyncPolicy::default()).then_some(policy))
    }
}
