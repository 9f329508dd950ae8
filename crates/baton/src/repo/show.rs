//! `list` and `get`: repositories and credentials, without what opens them.

use clap::Args;
use serde_json::Value;

use super::desk::Kind;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::listing::{Column, Listing};
use crate::objects::{or, text};
use crate::place::Place;
use crate::print::Form;

#[derive(Debug, Args)]
#[command(after_help = "What opens a repository is never shown. STATUS is Unknown where nobody has tried.

Examples:
  baton repo list
  baton repo list --project shop -o wide
  baton repo list -o name --core")]
pub(super) struct List {
    /// Only those that belong to this project.
    #[arg(long, value_name = "NAME", default_value = "")]
    project: String,
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton repo get https://git.example.com/shop.git
  baton repo get https://git.example.com/shop.git -o yaml")]
pub(super) struct Get {
    /// Its URL.
    #[arg(value_name = "URL")]
    url: String,
    /// Project that it belongs to.
    #[arg(long, value_name = "NAME", default_value = "")]
    project: String,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton repocreds list
  baton repocreds list -o name")]
pub(super) struct ListCredentials {
    /// How to print them.
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    place: Place,
}

const COLUMNS: &[Column<Value>] = &[
    Column::new("TYPE", |one| or(text(one, "/type"), "git")),
    Column::new("NAME", |one| text(one, "/name")),
    Column::new("REPO", |one| text(one, "/repo")),
    Column::new("INSECURE", |one| flag(one, &["insecure", "insecureIgnoreHostKey"])),
    Column::new("OCI", |one| flag(one, &["enableOCI"])),
    Column::new("LFS", |one| flag(one, &["enableLfs"])),
    Column::new("STATUS", |one| or(text(one, "/connectionState/status"), "Unknown")),
    Column::new("MESSAGE", |one| text(one, "/connectionState/message")),
    Column::new("PROJECT", |one| text(one, "/project")),
    Column::wide("PROXY", |one| text(one, "/proxy")),
];

/// How repositories are listed.
const LISTING: Listing<'_, Value> = Listing {
    columns: COLUMNS,
    whole: Value::clone,
    name: |one| format!("repo/{}", text(one, "/repo")),
    nothing: "No repositories that you may see.",
};

/// How credentials are listed.
const CREDENTIALS: Listing<'_, Value> = Listing {
    columns: &[
        Column::new("URL PATTERN", |one| text(one, "/url")),
        Column::new("TYPE", |one| or(text(one, "/type"), "git")),
        Column::wide("PROXY", |one| text(one, "/proxy")),
    ],
    whole: Value::clone,
    name: |one| format!("repocreds/{}", text(one, "/url")),
    nothing: "No credentials of repositories that you may see.",
};

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let all = Desk::at(&self.place, async |desk| {
            desk.all_registered(Kind::Repository, "", &self.project).await
        })
        .await?;
        LISTING.print(&all, self.output)
    }
}

impl Get {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let one = Desk::at(&self.place, async |desk| {
            desk.registered(Kind::Repository, &self.url, &self.project).await
        })
        .await?;
        LISTING.print_one(one, self.output, |one, _| described(one))
    }
}

impl ListCredentials {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let all =
            Desk::at(&self.place, async |desk| desk.all_registered(Kind::Credentials, "", "").await).await?;
        CREDENTIALS.print(&all, self.output)
    }
}

fn described(one: &Value) -> String {
    let lines = [
        ("Repo", text(one, "/repo")),
        ("Type", or(text(one, "/type"), "git")),
        ("Name", text(one, "/name")),
        ("Project", text(one, "/project")),
        ("Insecure", flag(one, &["insecure", "insecureIgnoreHostKey"])),
        ("LFS", flag(one, &["enableLfs"])),
        ("OCI", flag(one, &["enableOCI"])),
        ("Proxy", text(one, "/proxy")),
        ("Status", or(text(one, "/connectionState/status"), "Unknown")),
    ];
    let line = |(label, value): (&str, String)| format!("{:<10}{}\n", format!("{label}:"), or(value, "-"));
    lines.into_iter().map(line).collect()
}

/// Whether one of several words is said.
fn flag(one: &Value, names: &[&str]) -> String {
    names.iter().any(|name| one[*name] == true).to_string()
}
