//! Sessions at a server: `baton login`, `logout`, `context`, `account`, `version`.

mod account;
mod context;
mod events;
mod file;
mod login;
mod passwords;
mod remote;
mod sso;
mod version;

use std::path::PathBuf;

use clap::Args;

pub(crate) use account::Arguments as AccountArguments;
pub(crate) use context::{Arguments as ContextArguments, LogoutArguments};
pub(crate) use login::Arguments as LoginArguments;
pub(crate) use version::Arguments as VersionArguments;

pub(crate) use account::run as account;
pub(crate) use context::{logout, run as context};
pub(crate) use login::run as login;
pub(crate) use version::run as version;

use crate::failure::Failure;
pub(crate) use events::{Interruption, Sight, Watched, follow};
use file::{ConfigFile, Context};
pub(crate) use remote::{Remote, query, segment};

/// Which server a command talks to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Session {
    /// File with contexts and tokens, shared with Argo CD's command line [default: ~/.config/argocd/config].
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
    /// Context to use instead of the current one.
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    argocd_context: Option<String>,
    /// Server to talk to, HOST or HOST:PORT, instead of that of a context.
    #[arg(long, env = "ARGOCD_SERVER", value_name = "HOST", help_heading = HEADING)]
    server: Option<String>,
    /// Token to use instead of that of a context.
    #[arg(long, env = "ARGOCD_AUTH_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = HEADING)]
    auth_token: Option<String>,
    /// Speak to it without TLS.
    #[arg(long, help_heading = HEADING)]
    plaintext: bool,
    /// Do not look at its certificate.
    #[arg(long, help_heading = HEADING)]
    insecure: bool,
}

const HEADING: &str = "Server";

/// Whether there is a server to talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Somebody has signed in at one, or it is named.
    Server,
    /// The context in use says that there is none.
    Core,
    /// Nobody has said anything.
    Nobody,
}

/// A server, and what shows who asks.
struct Chosen {
    context: Context,
    token: Option<String>,
    /// Whether the token is the one that the file has.
    kept: bool,
}

// === impl Session ===

impl Session {
    fn file(&self) -> Result<ConfigFile, Failure> {
        read(self.config.as_deref())
    }

    /// Whether there is a server to talk to. Nothing is asked of it.
    pub(crate) fn presence(&self) -> Result<Presence, Failure> {
        let named = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        if named(&self.server) {
            return Ok(Presence::Server);
        }
        // Where there is no home, as in a pod, nobody has signed in.
        if self.config.is_none() && file::usual_path(variable).is_err() {
            return Ok(if named(&self.argocd_context) { Presence::Server } else { Presence::Nobody });
        }
        let file = self.file()?;
        let Some(name) = self.argocd_context.as_deref().or(file.current()) else {
            return Ok(if named(&self.auth_token) { Presence::Server } else { Presence::Nobody });
        };
        let context = file.context(name).ok_or_else(|| unknown(name, &file))?;
        Ok(if context.core { Presence::Core } else { Presence::Server })
    }

    /// The server that is meant. Flags and variables win over the context. A session that has ended is renewed where it
    /// can be.
    pub(crate) async fn remote(&self) -> Result<Remote, Failure> {
        let mut file = self.file()?;
        let chosen = self.choose(&file)?;
        let mut token = chosen.token;
        if chosen.kept && token.as_deref().is_some_and(|token| sso::is_over(token, jiff::Timestamp::now())) {
            token = sso::renewed(&chosen.context, &mut file).await?.or(token);
        }
        Remote::new(&chosen.context, token.as_deref())
    }

    /// Signs in with another password, where the session is one that the file keeps.
    async fn sign_in_anew(&self, username: &str, password: &str) -> Result<(), Failure> {
        let mut file = self.file()?;
        let Chosen { context, kept, token } = self.choose(&file)?;
        if !kept || token.is_none() {
            return Ok(());
        }
        let body = serde_json::json!({"username": username, "password": password});
        let told = Remote::new(&context, None)?.post("api/v1/session", &body).await?;
        let token = told["token"].as_str().filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| Failure::api(format!("{} gives no token", context.server)))?;
        file.renew(&context.user, token, None);
        file.write()
    }

    fn choose(&self, file: &ConfigFile) -> Result<Chosen, Failure> {
        let given = self.auth_token.clone().filter(|token| !token.is_empty());
        let with = |context: Context, is_known: bool| {
            let kept = file.token(&context.user).filter(|_| is_known).map(str::to_owned);
            let is_kept = given.is_none();
            Chosen { token: given.clone().or(kept), kept: is_kept, context }
        };
        if let Some(server) = self.server.as_deref().filter(|server| !server.is_empty()) {
            let known = file.contexts().into_iter().find(|context| context.server == server);
            let is_known = known.is_some();
            let mut context = known.unwrap_or_else(|| Context::at(server));
            context.plain |= self.plaintext;
            context.insecure |= self.insecure;
            return Ok(with(context, is_known));
        }
        let name = self.argocd_context.as_deref().or(file.current()).ok_or_else(|| {
            Failure::usage("nobody is signed in anywhere: `baton login HOST`, or name a server with --server")
        })?;
        let context = file.context(name).ok_or_else(|| unknown(name, file))?;
        if context.core {
            return Err(Failure::usage(format!(
                "context {name:?} is of no server: this is asked of one; `baton context NAME` changes to another"
            )));
        }
        Ok(with(context, true))
    }
}

fn read(named: Option<&std::path::Path>) -> Result<ConfigFile, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => file::usual_path(variable)?,
    };
    ConfigFile::read(&path)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// There is no such context.
fn unknown(name: &str, file: &ConfigFile) -> Failure {
    let names: Vec<String> = file.contexts().into_iter().map(|context| context.name).collect();
    let known = if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    Failure::usage(format!("there is no context {name:?}: {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "contexts:
- {name: prod, server: cd.example.com, user: prod}
- {name: here, server: kubernetes, user: here}
current-context: CURRENT
servers:
- {server: cd.example.com}
- {server: kubernetes, core: true}
users:
- {name: prod, auth-token: a.b.c}
";

    fn session(current: &str) -> (tempfile::TempDir, Session) {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("config");
        std::fs::write(&path, FILE.replace("CURRENT", current)).expect("a file");
        (home, Session { config: Some(path), ..Session::default() })
    }

    #[test]
    fn a_server_is_asked_where_somebody_has_signed_in_or_names_one() {
        for (current, expected) in
            [("prod", Presence::Server), ("here", Presence::Core), ("''", Presence::Nobody)]
        {
            assert_eq!(session(current).1.presence().expect("an answer"), expected, "{current}");
        }
        let (_home, nobody) = session("''");
        let some = |text: &str| Some(text.to_owned());
        let named = Session { server: some("127.0.0.1:8080"), ..nobody.clone() };
        assert_eq!(named.presence().expect("an answer"), Presence::Server);
        let token = Session { auth_token: some("t"), ..nobody.clone() };
        assert_eq!(token.presence().expect("an answer"), Presence::Server, "it is told what is missing");
        let context = Session { argocd_context: some("here"), ..nobody.clone() };
        assert_eq!(context.presence().expect("an answer"), Presence::Core);
        let absent = Session { argocd_context: some("other"), ..nobody };
        assert!(absent.presence().is_err_and(|error| error.to_string().contains("prod, here")));
    }

    #[test]
    fn a_token_of_one_server_is_not_sent_to_another() {
        let (_home, session) = session("prod");
        let elsewhere = Session { server: Some("elsewhere.example.com".to_owned()), ..session.clone() };
        let file = session.file().expect("a file");
        assert_eq!(elsewhere.choose(&file).expect("a server").token, None);
        assert_eq!(session.choose(&file).expect("a server").token.as_deref(), Some("a.b.c"));
    }
}
