//! `baton approvals`: the inbox of what waits for a person.

mod desk;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{Column, Listing};
use crate::objects::text;
use crate::place::Place;
use crate::print::{self, Form};
use crate::terminal;
use desk::Verb;

/// What is said where nothing waits.
const NOTHING: &str = "Nothing waits for a person.";

const COLUMNS: &[Column<Value>] = &[
    Column::new("NAME", name),
    Column::new("PROJECT", |item| text(item, "/project")),
    Column::new("SINCE", |item| text(item, "/since")),
    Column::new("WOULD GO", would_go),
    Column::new("MAY", |item| if item["allowed"] == true { "yes" } else { "no" }.to_owned()),
    Column::new("WHY", |item| text(item, "/why")),
];

/// What to do.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what waits for a person, the longest wait first.
    List(List),
    /// Let what waits happen.
    Approve(Decide),
    /// Refuse it.
    Reject(Decide),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton approvals list
  baton approvals list -o json
  baton approvals list --core --kubeconfig .baton/kubeconfig")]
struct List {
    #[command(flatten)]
    place: Place,
    /// How to print them.
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Form>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "What is decided is what waits at this moment, and nothing that comes after it. A refused sync ends; a deletion \
of an Application cannot be refused, only left waiting.

Exit codes: 0 done; 1 usage; 3 something did not wait any more, or may not be decided by this person; 20 the API refused or \
cannot be reached.

Examples:
  baton approvals approve delete/argocd/web --reason 'moved to another cluster'
  baton approvals approve --all --yes
  baton approvals reject prune/argocd/web --reason 'the database is still in use'"
)]
struct Decide {
    /// What, as `baton approvals list` names it.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Everything that waits.
    #[arg(long, conflicts_with = "names", requires = "yes")]
    all: bool,
    /// Yes, everything.
    #[arg(short, long)]
    yes: bool,
    /// Why; it is written down.
    #[arg(long, default_value = "", value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    place: Place,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::List(arguments) => arguments.run().await,
        Command::Approve(arguments) => arguments.run(Verb::Approve).await,
        Command::Reject(arguments) => arguments.run(Verb::Reject).await,
    }
}

// === impl List ===

impl List {
    async fn run(self) -> Result<(), Failure> {
        let items = Desk::at(&self.place, async |desk| desk.waiting().await).await?;
        let listing = Listing { columns: COLUMNS, whole: Value::clone, name, nothing: NOTHING };
        listing.print(&items, self.output)
    }
}

// === impl Decide ===

impl Decide {
    async fn run(self, verb: Verb) -> Result<(), Failure> {
        if verb == Verb::Reject && self.reason.trim().is_empty() {
            return Err(Failure::usage("say why it is rejected: --reason"));
        }
        let decide = async |desk: &Desk| {
            let waiting = desk.waiting().await?;
            let chosen = if self.all { waiting } else { chosen(waiting, &self.names)? };
            let answers = match chosen.is_empty() {
                true => Vec::new(),
                false => desk.decide(verb, &chosen, &self.reason).await?,
            };
            Ok((chosen, answers))
        };
        let (chosen, answers) = Desk::at(&self.place, decide).await?;
        if answers.is_empty() {
            terminal::remark(NOTHING);
        }
        let mut refused = 0;
        for answer in &answers {
            let item = chosen.iter().find(|item| item["id"] == answer["id"]);
            let told = format!("{}: {}", item.map(name).unwrap_or_default(), text(answer, "/message"));
            match answer["ok"] == true {
                true => print::out(&(told + "\n"))?,
                false => {
                    refused += 1;
                    terminal::remark(&told);
                }
            }
        }
        match refused {
            0 => Ok(()),
            refused => Err(Failure::failed(format!("{refused} of {} could not be decided", answers.len()))),
        }
    }
}

/// Those of what waits that are named.
fn chosen(waiting: Vec<Value>, names: &[String]) -> Result<Vec<Value>, Failure> {
    let is = |item: &Value, wanted: &str| item["id"] == wanted || name(item) == wanted;
    if let Some(unknown) = names.iter().find(|wanted| !waiting.iter().any(|item| is(item, wanted))) {
        return Err(Failure::failed(format!(
            "{unknown} does not wait: `baton approvals list` tells what does"
        )));
    }
    Ok(waiting.into_iter().filter(|item| names.iter().any(|wanted| is(item, wanted))).collect())
}

/// What people call it: the kind of the wait, and whose it is.
fn name(item: &Value) -> String {
    ["/kind", "/object/namespace", "/object/name"].map(|field| text(item, field)).join("/")
}

fn would_go(item: &Value) -> String {
    let count = |what: &str| item["blast"][what].as_u64().unwrap_or_default();
    match (count("applications"), count("resources")) {
        (0, 0) => "nothing".to_owned(),
        (0, 1) => "1 resource".to_owned(),
        (0, resources) => format!("{resources} resources"),
        (1, _) => "1 Application".to_owned(),
        (applications, _) => format!("{applications} Applications"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(kind: &str, name: &str) -> Value {
        let object = json!({"kind": "Application", "namespace": "argocd", "name": name});
        json!({"id": format!("opaque-{name}"), "kind": kind, "object": object, "allowed": true, "why": "y"})
    }

    #[test]
    fn only_what_waits_can_be_named() {
        let waiting = || vec![item("prune", "a"), item("delete", "b")];
        let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for wanted in ["delete/argocd/b", "opaque-b"] {
            assert_eq!(chosen(waiting(), &names(&[wanted])).expect("it waits"), [item("delete", "b")]);
        }
        for wanted in ["delete/argocd/a", "b", ""] {
            let error =
                chosen(waiting(), &names(&["delete/argocd/b", wanted])).expect_err("it does not wait");
            assert!(error.to_string().starts_with(&format!("{wanted} does not wait")), "{error}");
        }
    }

    #[test]
    fn a_row_tells_how_much_would_go_and_whether_one_may() {
        for (applications, resources, told) in [
            (0, 0, "nothing"),
            (0, 1, "1 resource"),
            (0, 3, "3 resources"),
            (1, 9, "1 Application"),
            (4, 0, "4 Applications"),
        ] {
            let mut item = item("prune", "a");
            item["blast"] = json!({"applications": applications, "resources": resources});
            let row = crate::listing::table(COLUMNS, std::slice::from_ref(&item), false);
            let row: Vec<&str> = row.lines().nth(1).expect("a row").split("   ").collect();
            let cells: Vec<&str> = row.into_iter().map(str::trim).filter(|cell| !cell.is_empty()).collect();
            assert_eq!(cells, ["prune/argocd/a", told, "yes", "y"]);
        }
    }
}
