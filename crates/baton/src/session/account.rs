//! `baton account`: who one is, what one may do, passwords and tokens.

use std::time::Duration;

use baton_server::auth::hashed_password;
use clap::{Args, Subcommand};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Remote, Session, passwords, segment};
use crate::failure::Failure;
use crate::listing::{self, Column, Listing};
use crate::objects::text;
use crate::print::{self, Form};
use crate::terminal;

/// What about accounts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton account get-user-info
  baton account can-i sync applications 'payments/*'
  baton account can-i action/argoproj.io/Application/approve-deletion applications 'payments/*'
  baton account generate-token --account ci --expires-in 720h")]
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
    /// List the accounts that one may see.
    #[command(after_help = "Examples:\n  baton account list\n  baton account list -o name")]
    List {
        #[command(flatten)]
        session: Session,
        /// How to print them.
        #[arg(short, long, value_enum, value_name = "FORM")]
        output: Option<Form>,
    },
    /// Show one account: what it may be used for, and its tokens.
    #[command(after_help = "Examples:\n  baton account get\n  baton account get --account ci -o json")]
    Get {
        #[command(flatten)]
        whose: Whose,
        /// How to print it.
        #[arg(short, long, value_enum, value_name = "FORM")]
        output: Option<Form>,
    },
    /// Change a password.
    UpdatePassword(UpdatePassword),
    /// Make a token of an account. It is shown once.
    #[command(after_help = "The account needs `apiKey` in `argocd-cm`: accounts.ci: apiKey

Examples:
  baton account generate-token --account ci
  ARGOCD_AUTH_TOKEN=$(baton account generate-token --account ci --expires-in 24h --id nightly)")]
    GenerateToken {
        #[command(flatten)]
        whose: Whose,
        /// For how long it counts, as `24h`; without it for ever.
        #[arg(short, long, value_name = "DURATION", value_parser = crate::app::duration)]
        expires_in: Option<Duration>,
        /// Its name; one is made up without it.
        #[arg(long, value_name = "NAME", default_value = "")]
        id: String,
    },
    /// Revoke a token of an account.
    #[command(after_help = "Examples:
  baton account get --account ci
  baton account delete-token --account ci nightly")]
    DeleteToken {
        /// Its name, as `baton account get` tells.
        id: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print the hash of a password, as `argocd-secret` holds it. No server is asked.
    #[command(after_help = "Examples:
  baton account bcrypt
  baton account bcrypt --password-stdin < password")]
    Bcrypt {
        /// The password. Other users of this machine can see it: --password-stdin is better.
        #[arg(long, value_name = "TEXT", conflicts_with = "password_stdin")]
        password: Option<String>,
        /// Read the password from standard input.
        #[arg(long)]
        password_stdin: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Sessions from before end; the one of this command goes on with the new password.

Examples:
  baton account update-password
  baton account update-password --account viewer
  printf '%s\\n' \"$OLD\" \"$NEW\" | baton account update-password --passwords-stdin")]
struct UpdatePassword {
    #[command(flatten)]
    whose: Whose,
    /// The password of whoever is signed in, as it is. Other users of this machine can see it: --passwords-stdin is better.
    #[arg(long, value_name = "TEXT", requires = "new_password")]
    current_password: Option<String>,
    /// The password as it shall be.
    #[arg(long, value_name = "TEXT", requires = "current_password")]
    new_password: Option<String>,
    /// Read both from standard input, each on a line of its own.
    #[arg(long, conflicts_with = "current_password")]
    passwords_stdin: bool,
}

/// Of which account, at which server.
#[derive(Debug, Args)]
struct Whose {
    /// The account [default: one's own].
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    #[command(flatten)]
    session: Session,
}

const LISTING: Listing<'static, Value> = Listing {
    columns: &[
        Column::new("NAME", |account| text(account, "/name")),
        Column::new("ENABLED", |account| (account["enabled"] == true).to_string()),
        Column::new("CAPABILITIES", capabilities),
        Column::wide("TOKENS", |account| tokens(account).len().to_string()),
    ],
    whole: Value::clone,
    name: |account| text(account, "/name"),
    nothing: "There is no account that you may see.",
};

const TOKENS: &[Column<Value>] = &[
    Column::new("ID", |token| text(token, "/id")),
    Column::new("ISSUED-AT", |token| moment(&token["issuedAt"])),
    Column::new("EXPIRES-AT", |token| moment(&token["expiresAt"])),
];

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::GetUserInfo { session, output } => {
            let told = who(&session.remote().await?).await?;
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
        Command::List { session, output } => {
            let told = session.remote().await?.get("api/v1/account").await?;
            LISTING.print(&crate::desk::items(told), output)
        }
        Command::Get { whose, output } => {
            let (remote, name) = whose.asked().await?;
            let found = remote.find(&format!("api/v1/account/{}", segment(&name))).await?;
            let found = found.ok_or_else(|| {
                Failure::api(format!(
                    "there is no account {name} that you may see: `baton account list` tells those"
                ))
            })?;
            LISTING.print_one(found, output, |account, _| shown(account))
        }
        Command::UpdatePassword(arguments) => arguments.run().await,
        Command::GenerateToken { whose, expires_in, id } => {
            let seconds = expires_in.map_or(0, |time| time.as_secs());
            if expires_in.is_some() && seconds == 0 {
                return Err(Failure::usage(
                    "a token counts for a second at least: leave --expires-in out for ever",
                ));
            }
            let (remote, name) = whose.asked().await?;
            let path = format!("api/v1/account/{}/token", segment(&name));
            let told = remote.post(&path, &json!({"name": name, "id": id, "expiresIn": seconds})).await?;
            let token = told["token"].as_str().filter(|token| !token.is_empty());
            print::out(&format!("{}\n", token.ok_or_else(|| Failure::api("the server gives no token"))?))
        }
        Command::DeleteToken { id, whose } => {
            let (remote, name) = whose.asked().await?;
            remote.delete(&format!("api/v1/account/{}/token/{}", segment(&name), segment(&id))).await?;
            print::out(&format!("token {id} of account {name} revoked\n"))
        }
        Command::Bcrypt { password, password_stdin } => {
            let password = match password {
                Some(password) => password,
                None if password_stdin => passwords::from_stdin()?,
                None => chosen()?,
            };
            print::out(&format!("{}\n", hashed_password(&password).map_err(Failure::usage)?))
        }
    }
}

// === impl UpdatePassword ===

impl UpdatePassword {
    async fn run(self) -> Result<(), Failure> {
        let session = &self.whose.session;
        let remote = session.remote().await?;
        let own = text(&who(&remote).await?, "/username");
        let name = self.whose.account.as_deref().unwrap_or(&own);
        let (current, new) = self.passwords(&own)?;
        let body = json!({"name": name, "currentPassword": current, "newPassword": new});
        remote.send(Method::PUT, "api/v1/account/password", Some(&body)).await?;
        terminal::tell("Password updated");
        if name == own { session.sign_in_anew(&own, &new).await } else { Ok(()) }
    }

    /// The password of whoever is signed in, and the one that shall be.
    fn passwords(&self, own: &str) -> Result<(String, String), Failure> {
        if let (Some(current), Some(new)) = (&self.current_password, &self.new_password) {
            return Ok((current.clone(), new.clone()));
        }
        if self.passwords_stdin {
            let given = passwords::from_stdin()?;
            let mut lines = given.lines().map(str::to_owned);
            return match (lines.next(), lines.next(), lines.next()) {
                (Some(current), Some(new), None) => Ok((current, new)),
                _ => Err(Failure::usage("two lines are read: the password as it is, and as it shall be")),
            };
        }
        let current = passwords::asked(&format!("Password of {own}: "), "--passwords-stdin reads both")?;
        Ok((current, chosen()?))
    }
}

// === impl Whose ===

impl Whose {
    /// The server, and the account that is meant.
    async fn asked(&self) -> Result<(Remote, String), Failure> {
        let remote = self.session.remote().await?;
        let name = match &self.account {
            Some(name) => name.clone(),
            None => text(&who(&remote).await?, "/username"),
        };
        match name.is_empty() {
            true => Err(Failure::usage("nobody is signed in: name the account with --account")),
            false => Ok((remote, name)),
        }
    }
}

async fn who(remote: &Remote) -> Result<Value, Failure> {
    remote.get("api/v1/session/userinfo").await
}

/// A password that somebody thinks of, typed twice.
fn chosen() -> Result<String, Failure> {
    let instead = "--password-stdin reads one";
    let once = passwords::asked("New password: ", instead)?;
    match passwords::asked("Again: ", instead)? == once {
        true => Ok(once),
        false => Err(Failure::usage("the two are not the same")),
    }
}

fn capabilities(account: &Value) -> String {
    let all = account["capabilities"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn tokens(account: &Value) -> &[Value] {
    account["tokens"].as_array().map_or(&[], Vec::as_slice)
}

/// A time in seconds since 1970, which Argo CD's server writes as a text.
fn moment(seconds: &Value) -> String {
    let number = seconds.as_i64().or_else(|| seconds.as_str()?.parse().ok()).unwrap_or_default();
    match number {
        0 => "never".to_owned(),
        number => Timestamp::from_second(number).map_or_else(|_| number.to_string(), |time| time.to_string()),
    }
}

/// An account, in words.
fn shown(account: &Value) -> String {
    let mut lines = format!(
        "Name:          {}\nEnabled:       {}\nCapabilities:  {}\n\nTokens:\n",
        text(account, "/name"),
        account["enabled"] == true,
        capabilities(account)
    );
    lines += &match tokens(account) {
        [] => "none\n".to_owned(),
        tokens => listing::table(TOKENS, tokens, false),
    };
    lines
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

    #[test]
    fn an_account_is_shown_with_its_tokens() {
        let account = |tokens: Value| json!({"name": "ci", "enabled": true, "capabilities": ["apiKey", "login"], "tokens": tokens});
        let told = shown(&account(json!([
            {"id": "nightly", "issuedAt": "1767225600", "expiresAt": 1_767_229_200},
            {"id": "old", "issuedAt": 1_767_225_600},
        ])));
        assert_eq!(
            told,
            "Name:          ci\nEnabled:       true\nCapabilities:  apiKey, login\n\nTokens:\n\
            ID        ISSUED-AT              EXPIRES-AT\n\
            nightly   2026-01-01T00:00:00Z   2026-01-01T01:00:00Z\n\
            old       2026-01-01T00:00:00Z   never\n"
        );
        assert!(shown(&account(Value::Null)).ends_with("Tokens:\nnone\n"), "as Argo CD's server says it");
    }
}
