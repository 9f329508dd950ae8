//! `add`: a repository is registered, or credentials that many share.

use clap::Args;
use serde_json::{Map, Value};

use super::credentials::Credentials;
use super::desk::{Became, Kind};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::place::Place;
use crate::print;

#[derive(Debug, Args)]
#[command(after_help = "Whether it can be read is not tried here: `baton app create` and a sync will tell.

Exit codes: 0 registered; 1 usage, or it is registered otherwise; 20 the API refused or cannot be reached.

Examples:
  baton repo add https://git.example.com/shop.git --username ci --password-stdin < token
  baton repo add git@git.example.com:shop.git --ssh-private-key-path ~/.ssh/id_ed25519
  baton repo add https://charts.example.com --type helm --name charts
  baton repo add https://git.example.com/shop.git --project shop --upsert")]
pub(super) struct Add {
    /// Its URL.
    #[arg(value_name = "URL")]
    url: String,
    /// Its name; a Helm repository needs one.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Project that it belongs to.
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Do not look at the certificate of the server.
    #[arg(long)]
    insecure_skip_server_verification: bool,
    /// Do not look at the host key of the server.
    #[arg(long)]
    insecure_ignore_host_key: bool,
    /// Read files that git keeps elsewhere.
    #[arg(long)]
    enable_lfs: bool,
    /// How many commits are fetched; 0 is all.
    #[arg(long, value_name = "NUMBER")]
    depth: Option<u32>,
    #[command(flatten)]
    credentials: Credentials,
    /// Change a repository that is registered already.
    #[arg(long)]
    upsert: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 kept; 1 usage, or others are kept for it; 20 the API refused or cannot be reached.

Examples:
  baton repocreds add https://git.example.com/shop --username ci --password-stdin < token
  baton repocreds add https://github.com/example --github-app-id 1 --github-app-installation-id 2 --github-app-private-key-path app.pem"
)]
pub(super) struct AddCredentials {
    /// How the URLs begin.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    credentials: Credentials,
    /// Change credentials that are kept for this URL already.
    #[arg(long)]
    upsert: bool,
    #[command(flatten)]
    place: Place,
}

impl Add {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut said = self.credentials.read(&self.url)?;
        if said["type"] == "helm" && self.name.as_deref().is_none_or(str::is_empty) {
            return Err(Failure::usage("a Helm repository has a name, by which charts name it: add --name"));
        }
        said.insert("repo".to_owned(), self.url.as_str().into());
        for (name, value) in [
            ("name", self.name.clone().map(Value::from)),
            ("project", self.project.clone().map(Value::from)),
            ("depth", self.depth.map(Value::from)),
            ("insecure", self.insecure_skip_server_verification.then_some(Value::Bool(true))),
            ("insecureIgnoreHostKey", self.insecure_ignore_host_key.then_some(Value::Bool(true))),
            ("enableLfs", self.enable_lfs.then_some(Value::Bool(true))),
        ] {
            if let Some(value) = value {
                said.insert(name.to_owned(), value);
            }
        }
        register(Kind::Repository, &self.url, said, self.upsert, &self.place).await
    }
}

impl AddCredentials {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let mut said = self.credentials.read(&self.url)?;
        if said.len() == 1 {
            return Err(Failure::usage(
                "say what opens these repositories: --username, --ssh-private-key-path or the like",
            ));
        }
        said.insert("url".to_owned(), self.url.as_str().into());
        register(Kind::Credentials, &self.url, said, self.upsert, &self.place).await
    }
}

async fn register(
    kind: Kind,
    url: &str,
    said: Map<String, Value>,
    upsert: bool,
    place: &Place,
) -> Result<(), Failure> {
    if url.is_empty() || url.chars().any(|mark| mark.is_control() || mark.is_whitespace()) {
        return Err(Failure::usage(format!("{url:?} is no URL of a repository")));
    }
    let said = Value::Object(said);
    let became = Desk::at(place, async |desk| desk.register(kind, &said, upsert).await).await?;
    print::out(&match became {
        Became::Added => format!("{}/{url} added\n", kind.word()),
        Became::Changed => format!("{}/{url} updated\n", kind.word()),
        Became::Unchanged => format!("{}/{url} unchanged\n", kind.word()),
    })
}
