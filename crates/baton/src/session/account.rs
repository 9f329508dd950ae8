//! `baton account`: who one is, what one may do, passwords and tokens.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Session, segment};
use crate::failure::Failure;
use crate::print::{self, Form};
use crate::terminal;

/// What about accounts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton account get-user-info
  baton account can-i sync applications 'payments/*'
  baton account can-i action/argoproj.io/Application/approve-deletion applications 'payments/*'")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell who is signed in.
    GetUserInfo {
        #[command(flatten)]
        session: Session,
        /// How to print it.
        #[arg(short, long, value_enum, value_name = "FORM")]
        output: Option<Form>,
    },
    /// Tell whether one may do something: yes or no.
    CanI {
        /// What, as `sync`.
        action: String,
        /// With what, as `applications`.
        resource: String,
        /// With which, as `project/name`.
        #[arg(default_value = "*")]
        subresource: String,
        #[command(flatten)]
        session: Session,
    },
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::GetUserInfo { session, output } => {
            let told = session.remote().await?.get("api/v1/session/userinfo").await?;
            match output {
                Some(Form::Json) => print::out(&print::json(&[told], true)?),
                Some(Form::Yaml) => print::out(&print::yaml(&[told])?),
                _ => print::out(&described(&told)),
            }
        }
        Command::CanI { action, resource, subresource, session } => {
            let path = format!(
                "api/v1/account/can-i/{}/{}/{}",
                segment(&resource),
                segment(&action),
                segment(&subresource)
            );
            let told = session.remote().await?.get(&path).await?;
            let answer = told["value"].as_str().unwrap_or("no");
            terminal::tell(answer);
            Ok(())
        }
    }
}

fn described(told: &Value) -> String {
    let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
    let groups: Vec<&str> =
        told["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let signed_in = told["loggedIn"] == json!(true);
    let mut lines = format!("Logged In: {signed_in}\n");
    if signed_in {
        lines += &format!(
            "Username: {}\nIssuer: {}\nGroups: {}\n",
            text("username"),
            text("iss"),
            groups.join(",")
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_signed_in_is_told_who_they_are() {
        let told = json!({"loggedIn": true, "username": "admin", "iss": "argocd", "groups": ["a", "b"]});
        assert_eq!(described(&told), "Logged In: true\nUsername: admin\nIssuer: argocd\nGroups: a,b\n");
        assert_eq!(described(&json!({"loggedIn": false})), "Logged In: false\n");
    }
}
