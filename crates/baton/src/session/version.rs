//! `baton version`.

use clap::Args;
use serde_json::json;

use super::Session;
use crate::failure::Failure;
use crate::print::{self, Form};

/// Whose version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton version --client
  baton version -o json")]
pub(crate) struct Arguments {
    /// Only that of this command, no server's.
    #[arg(long)]
    client: bool,
    /// How to print it.
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Form>,
    #[command(flatten)]
    session: Session,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let own = concat!("v", env!("CARGO_PKG_VERSION"));
    let mut told = json!({"client": {"Version": own}});
    if !arguments.client {
        told["server"] = arguments.session.remote().await?.get("api/version").await?;
    }
    match arguments.output {
        Some(Form::Json) => print::out(&print::json(&[told], true)?),
        Some(Form::Yaml) => print::out(&print::yaml(&[told])?),
        _ => {
            let server = told["server"]["Version"].as_str().map(|version| format!("server: {version}\n"));
            print::out(&format!("baton: {own}\n{}", server.unwrap_or_default()))
        }
    }
}
