//! Sessions at a server: `baton login`, `logout`, `context`, `account`, `version`.

mod account;
mod context;
mod file;
mod login;
mod remote;
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
use file::{ConfigFile, Context};
pub(crate) use remote::Remote;

/// Which server a command talks to.
#[derive(Debug, Clone, Args)]
pub(crate) struct Session {
    /// File with contexts and tokens, shared with Argo CD's command line [default: ~/.config/argocd/config].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Context to use instead of the current one.
    #[arg(long, value_name = "NAME")]
    argocd_context: Option<String>,
    /// Server to talk to, HOST or HOST:PORT, instead of that of a context.
    #[arg(long, env = "ARGOCD_SERVER", value_name = "HOST")]
    server: Option<String>,
    /// Token to use instead of that of a context.
    #[arg(long, env = "ARGOCD_AUTH_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Speak to it without TLS.
    #[arg(long)]
    plaintext: bool,
    /// Do not look at its certificate.
    #[arg(long)]
    insecure: bool,
}

// === impl Session ===

impl Session {
    fn file(&self) -> Result<ConfigFile, Failure> {
        read(self.config.as_deref())
    }

    /// The server that is meant. Flags and variables win over the context.
    pub(crate) fn remote(&self) -> Result<Remote, Failure> {
        let file = self.file()?;
        let (context, token) = self.choose(&file)?;
        Remote::new(&context, token.as_deref())
    }

    fn choose(&self, file: &ConfigFile) -> Result<(Context, Option<String>), Failure> {
        let given = self.auth_token.clone().filter(|token| !token.is_empty());
        if let Some(server) = self.server.as_deref().filter(|server| !server.is_empty()) {
            let known = file.contexts().into_iter().find(|context| context.server == server);
            let token =
                given.or_else(|| known.as_ref().and_then(|known| file.token(&known.user).map(str::to_owned)));
            let mut context = known.unwrap_or_else(|| Context::at(server));
            context.plain |= self.plaintext;
            context.insecure |= self.insecure;
            return Ok((context, token));
        }
        let name = self.argocd_context.as_deref().or(file.current()).ok_or_else(|| {
            Failure::usage("nobody is signed in anywhere: `baton login HOST`, or name a server with --server")
        })?;
        let context = file.context(name).ok_or_else(|| unknown(name, file))?;
        let token = given.or_else(|| file.token(&context.user).map(str::to_owned));
        Ok((context, token))
    }
}

fn read(named: Option<&std::path::Path>) -> Result<ConfigFile, Failure> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => file::usual_path(|name| std::env::var(name).ok())?,
    };
    ConfigFile::read(&path)
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
