//! `list`, `get`, `create`, `delete`: ApplicationSets in a cluster or at a server.

use std::path::PathBuf;

use baton_api::ApplicationSet;
use baton_api::conditions::application_set::DELETION_HELD;
use clap::Args;
use serde_json::Value;

use super::sets::{Creation, Sets};
use super::{described, manifests, watch};
use crate::failure::Failure;
use crate::listing::{self, Column, Listing};
use crate::objects::{confirmed, or, text};
use crate::place::Place;
use crate::print::{self, Form};
use crate::screen::Screen;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton appset list
  baton appset list --all-namespaces -o wide
  baton appset list -l team=web -o name")]
pub(crate) struct List {
    #[command(flatten)]
    place: Place,
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
        let sets = Sets::at(&self.place).await?;
        let found = sets.list(self.selector.as_deref(), self.all_namespaces).await?;
        let nothing = format!("No ApplicationSets in {}.", sets.whereabouts(self.all_namespaces));
        Listing { nothing: &nothing, ..LISTING }.print(&found, self.output)
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
    place: Place,
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
            return watch::run(&Sets::at(&self.place).await?, &self.name, until, json).await;
        }
        let sets = Sets::at(&self.place).await?;
        let set = sets.get(&self.name).await?;
        if self.output.is_some() {
            return show(vec![set], self.output);
        }
        let head = match serde_json::from_value::<ApplicationSet>(set.clone()) {
            Ok(typed) => sets.head(&typed).await,
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
    place: Place,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        // All are read and judged before the first is written.
        let written = manifests::sets(&self.files, false)?;
        let sets = Sets::at(&self.place).await?;
        let how = Creation { upsert: self.upsert, dry_run: self.dry_run };
        let mut made = Vec::new();
        for one in &written {
            let (object, verb) = sets.create(one, how).await?;
            if self.output.is_none() {
                let name = text(&object, "/metadata/name");
                let dry = if self.dry_run { " (dry run)" } else { "" };
                print::out(&format!("applicationset.argoproj.io/{name} {verb}{dry}\n"))?;
            }
            made.push(object);
        }
        match self.output {
            None => Ok(()),
            output => show(made, output),
        }
    }
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
    place: Place,
}

impl Delete {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let sets = Sets::at(&self.place).await?;
        let mut counts = Vec::new();
        for name in &self.names {
            let set = sets.get(name).await?;
            counts.push(set.pointer("/status/resourcesCount").and_then(Value::as_i64).unwrap_or_default());
        }
        if !self.yes && !self.confirmed(&counts)? {
            return Err(Failure::waiting("nothing was deleted"));
        }
        for name in &self.names {
            sets.delete(name, self.keep_applications).await?;
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

/// What a table shows of sets.
const COLUMNS: &[Column<Value>] = &[
    Column::new("NAMESPACE", |set| text(set, "/metadata/namespace")),
    Column::new("NAME", |set| text(set, "/metadata/name")),
    Column::new("HEALTH", |set| or(text(set, "/status/health/status"), "-")),
    Column::new("APPS", |set| {
        set.pointer("/status/resourcesCount").and_then(Value::as_i64).unwrap_or_default().to_string()
    }),
    Column::new("STRATEGY", described::order),
    Column::new("CONDITION", |set| standing(set).0),
    Column::wide("GENERATORS", generators),
    Column::wide("PROJECT", |set| text(set, "/spec/template/spec/project")),
    Column::wide("MESSAGE", |set| standing(set).1),
];

/// How sets are listed.
const LISTING: Listing<'_, Value> = Listing {
    columns: COLUMNS,
    whole: Value::clone,
    name: |set| format!("applicationset.argoproj.io/{}", text(set, "/metadata/name")),
    nothing: "No ApplicationSets.",
};

/// Prints sets as asked; one as an object, and not as a list of one.
fn show(mut sets: Vec<Value>, form: Option<Form>) -> Result<(), Failure> {
    match sets.pop() {
        Some(one) if sets.is_empty() => {
            LISTING.print_one(one, form, |set, wide| listing::table(COLUMNS, std::slice::from_ref(set), wide))
        }
        last => {
            sets.extend(last);
            LISTING.print(&sets, form)
        }
    }
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
