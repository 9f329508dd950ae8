//! `list`, `get`, `create`, `delete`: ApplicationSets in a cluster.

use std::path::PathBuf;

use baton_api::ApplicationSet;
use baton_api::conditions::application_set::DELETION_HELD;
use clap::Args;
use kube::api::{Api, DeleteParams, ListParams, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject};
use serde_json::Value;

use super::manifests::{self, Written};
use super::screen::Screen;
use super::{described, head, owned, watch};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::objects::{Objects, confirmed, or, text};
use crate::print::{self, Form};
use crate::terminal;

const PLURAL: &str = "applicationsets";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton appset list
  baton appset list --all-namespaces -o wide
  baton appset list -l team=web -o name")]
pub(crate) struct List {
    #[command(flatten)]
    connection: Connection,
    /// In every namespace.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only sets with these labels.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let api: Api<DynamicObject> = if self.all_namespaces {
            Api::all_with(client, &kind())
        } else {
            Api::namespaced_with(client, &self.connection.namespace, &kind())
        };
        let parameters = ListParams { label_selector: self.selector, ..ListParams::default() };
        let mut sets = Vec::new();
        for set in api.list(&parameters).await? {
            sets.push(whole(&set)?);
        }
        sets.sort_by_key(|set| (text(set, "/metadata/namespace"), text(set, "/metadata/name")));
        if sets.is_empty() && self.output.is_none() {
            let place = if self.all_namespaces {
                "any namespace".to_owned()
            } else {
                format!("namespace {}", self.connection.namespace)
            };
            terminal::remark(&format!("No ApplicationSets in {place}."));
            return Ok(());
        }
        show(&sets, self.output, false)
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "--watch follows the rollout to its end: 0 done, 3 failed or aborted, and with --exit-on-wait 2 when it waits for \
a person (paused, an approval, a held step, the deletion fuse). On a terminal the display is drawn anew; into a pipe \
each change is a line, with -o json an object. Of phases it shows how far each is, and what a hook or a wait takes; one \
that failed ends the watch. A rollout that is done is no longer followed: --next waits for the run \
that a new commit or template begins.

Exit codes: 0 shown, or the rollout is done; 1 usage; 2 it waits for a person; 3 it failed or was aborted, or the set has \
no rollout to follow; 20 no such set, or the API refused or cannot be reached.

Examples:
  baton appset get web
  baton appset get web --watch
  baton appset get web --watch --next     after a commit
  baton appset get web --watch --exit-on-wait
  baton appset get web -o yaml"
)]
pub(crate) struct Get {
    /// Its name.
    name: String,
    #[command(flatten)]
    connection: Connection,
    /// Follow its rollout to the end.
    #[arg(short, long)]
    watch: bool,
    /// Show every Application, also on a terminal and however many there are.
    #[arg(long)]
    all: bool,
    /// End also when only a person can let it go on.
    #[arg(long, requires = "watch")]
    exit_on_wait: bool,
    /// Where the rollout is over, wait for the next run and follow that.
    #[arg(long, requires = "watch")]
    next: bool,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl Get {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        if self.watch {
            let json = match self.output {
                None => false,
                Some(Form::Json) => true,
                Some(_) => return Err(Failure::usage("--watch prints lines or, with -o json, objects")),
            };
            let until = watch::Until { waits: self.exit_on_wait, next: self.next };
            return watch::run(&self.connection, &self.name, until, json).await;
        }
        let client = self.connection.client().await?;
        let namespace = &self.connection.namespace;
        let sets = Objects::new(client.clone(), PLURAL, namespace);
        let set = sets.find(&self.name).await?.ok_or_else(|| owned::absent(namespace, &self.name))?;
        if self.output.is_some() {
            return show(&[set], self.output, true);
        }
        let head = match serde_json::from_value::<ApplicationSet>(set.clone()) {
            Ok(typed) => head::of(&client, &typed).await,
            Err(_) => None,
        };
        let (now, screen) = (jiff::Timestamp::now(), Screen::of_stdout());
        print::out(&described::text(&set, head.as_ref(), self.all, now, &screen)?)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton appset create -f web.yaml
  baton appset create -f sets/ --upsert
  cat web.yaml | baton appset create -f - --dry-run -o yaml")]
pub(crate) struct Create {
    /// Files or directories with ApplicationSets; - is standard input.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change sets that exist already.
    #[arg(long)]
    upsert: bool,
    /// Let the server check it, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        // All are read and judged before the first is written.
        let sets = manifests::sets(&self.files, false)?;
        let client = self.connection.client().await?;
        let mut made = Vec::new();
        for written in &sets {
            let namespace = written.set.metadata.namespace.as_deref().unwrap_or(&self.connection.namespace);
            let sets = Objects::new(client.clone(), PLURAL, namespace).dry_run(self.dry_run);
            let existing = if self.upsert { sets.find(&name(written)).await? } else { None };
            let (object, verb) = match existing {
                Some(existing) => {
                    let version = text(&existing, "/metadata/resourceVersion");
                    (sets.replace(&name(written), &written.document, &version).await?, "configured")
                }
                None => (sets.create(&written.document).await?, "created"),
            };
            if self.output.is_none() {
                let name = text(&object, "/metadata/name");
                let dry = if self.dry_run { " (dry run)" } else { "" };
                print::out(&format!("applicationset.argoproj.io/{name} {verb}{dry}\n"))?;
            }
            made.push(object);
        }
        match self.output {
            None => Ok(()),
            output => show(&made, output, made.len() == 1),
        }
    }
}

fn name(written: &Written) -> String {
    written.set.metadata.name.clone().unwrap_or_default()
}

#[derive(Debug, Args)]
#[command(
    after_help = "Deleting a set deletes its Applications, and what they deployed, unless their policy says \
otherwise; \
--keep-applications leaves the Applications as they are, without an owner.

Examples:
  baton appset delete web
  baton appset delete web --keep-applications
  baton appset delete web api --yes"
)]
pub(crate) struct Delete {
    /// Their names.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Leave the Applications.
    #[arg(long)]
    keep_applications: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Delete {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = self.connection.sets().await?;
        let mut counts = Vec::new();
        for name in &self.names {
            let set = api.get_opt(name).await?;
            let set = whole(&set.ok_or_else(|| owned::absent(&self.connection.namespace, name))?)?;
            counts.push(set.pointer("/status/resourcesCount").and_then(Value::as_i64).unwrap_or_default());
        }
        if !self.yes && !self.confirmed(&counts)? {
            return Err(Failure::waiting("nothing was deleted"));
        }
        let policy =
            if self.keep_applications { PropagationPolicy::Orphan } else { PropagationPolicy::Background };
        let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        for name in &self.names {
            api.delete(name, &parameters).await?;
            print::out(&format!("applicationset.argoproj.io/{name} deleted\n"))?;
        }
        Ok(())
    }

    fn confirmed(&self, counts: &[i64]) -> Result<bool, Failure> {
        let fate = if self.keep_applications { "stay" } else { "go with it" };
        let line = |(name, count): (&String, &i64)| format!("{name}: {count} Applications {fate}");
        confirmed(&self.names.iter().zip(counts).map(line).collect::<Vec<_>>())
    }
}

impl Connection {
    async fn sets(&self) -> Result<Api<DynamicObject>, Failure> {
        Ok(Api::namespaced_with(self.client().await?, &self.namespace, &kind()))
    }
}

fn kind() -> ApiResource {
    ApiResource::erase::<ApplicationSet>(&())
}

fn whole(object: &DynamicObject) -> Result<Value, Failure> {
    serde_json::to_value(object).map_err(|error| Failure::failed(error.to_string()))
}

fn show(sets: &[Value], form: Option<Form>, single: bool) -> Result<(), Failure> {
    print::out(&match form {
        Some(Form::Yaml) => print::yaml(sets)?,
        Some(Form::Json) => print::json(sets, single)?,
        Some(Form::Name) => sets
            .iter()
            .map(|set| format!("applicationset.argoproj.io/{}\n", text(set, "/metadata/name")))
            .collect(),
        Some(Form::Wide) => table(sets, true),
        None => table(sets, false),
    })
}

fn table(sets: &[Value], wide: bool) -> String {
    let mut headings = vec!["NAMESPACE", "NAME", "HEALTH", "APPS", "STRATEGY", "CONDITION"];
    if wide {
        headings.extend(["GENERATORS", "PROJECT", "MESSAGE"]);
    }
    let rows: Vec<Vec<String>> = sets
        .iter()
        .map(|set| {
            let (condition, message) = standing(set);
            let mut row = vec![
                text(set, "/metadata/namespace"),
                text(set, "/metadata/name"),
                or(text(set, "/status/health/status"), "-"),
                set.pointer("/status/resourcesCount").and_then(Value::as_i64).unwrap_or_default().to_string(),
                described::order(set),
                condition,
            ];
            if wide {
                row.extend([generators(set), text(set, "/spec/template/spec/project"), message]);
            }
            row
        })
        .collect();
    print::table(&headings, &rows)
}

pub(super) fn generators(set: &Value) -> String {
    let entries = set.pointer("/spec/generators").and_then(Value::as_array);
    let kinds: Vec<&str> = entries
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|entry| entry.keys().map(String::as_str))
        .filter(|key| !matches!(*key, "selector" | "deploymentStrategy"))
        .collect();
    kinds.join(",")
}

/// The condition a person should know first, and its message.
pub(super) fn standing(set: &Value) -> (String, String) {
    let conditions = set.pointer("/status/conditions").and_then(Value::as_array);
    let holds = |kind: &str, status: &str| {
        conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == kind && condition["status"] == status)
    };
    let first = holds("ErrorOccurred", "True")
        .or_else(|| holds("InvalidRolloutConfig", "True"))
        .or_else(|| holds(DELETION_HELD, "True"))
        .or_else(|| holds("RolloutProgressing", "True"))
        .or_else(|| holds("ResourcesUpToDate", "True"));
    match first {
        Some(condition) => (text(condition, "/type"), text(condition, "/message").replace('\n', " ")),
        None => ("-".to_owned(), String::new()),
    }
}
