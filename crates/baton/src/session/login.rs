//! `baton login`.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use serde_json::json;

use super::file::Context;
use super::remote::Remote;
use super::{passwords, sso};
use crate::failure::Failure;
use crate::terminal;

/// Where to sign in, and as whom.
#[derive(Debug, Args)]
#[command(after_help = "The session is kept in the file of Argo CD's command line, which can use it too.

With --sso a person signs in at the issuer that the server names: a browser is opened where there is one, and the page is told. The issuer \
must send people back to http://localhost:8085/auth/callback, as for Argo CD. The session is renewed by itself for as long as the issuer lets it.

Examples:
  baton login cd.example.com
  baton login cd.example.com --sso
  baton login 127.0.0.1:8080 --plaintext --username admin --password-stdin < .baton/admin-password
  baton login cd.example.com --server-crt ca.pem --name prod")]
pub(crate) struct Arguments {
    /// The server: HOST or HOST:PORT.
    #[arg(required_unless_present = "core")]
    server: Option<String>,
    /// Name of the account; asked for without it.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Its password. Other users of this machine can see it: --password-stdin is better.
    #[arg(long, value_name = "TEXT", conflicts_with = "password_stdin")]
    password: Option<String>,
    /// Read the password from standard input.
    #[arg(long)]
    password_stdin: bool,
    /// Sign in at the issuer of the server.
    #[arg(long, conflicts_with_all = ["username", "password", "password_stdin"])]
    sso: bool,
    /// Port of this machine that the issuer sends the browser back to; 0 is any.
    #[arg(long, value_name = "PORT", default_value_t = 8085)]
    sso_port: u16,
    /// Open a browser, where there is one.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    sso_launch_browser: bool,
    /// Sign in nowhere: use the kubeconfig from now on.
    #[arg(long, conflicts_with_all = ["server", "sso", "username", "password", "password_stdin"])]
    core: bool,
    /// Name of the context [default: the server].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Speak to it without TLS.
    #[arg(long)]
    plaintext: bool,
    /// Do not look at its certificate.
    #[arg(long, conflicts_with = "server_crt")]
    insecure: bool,
    /// Certificates (PEM) that are trusted instead of the machine's.
    #[arg(long, value_name = "FILE")]
    server_crt: Option<PathBuf>,
    /// Path that the server's paths begin with.
    #[arg(long, value_name = "PATH", default_value = "")]
    grpc_web_root_path: String,
    /// File to keep the session in [default: ~/.config/argocd/config].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let context = arguments.context()?;
    let mut file = super::read(arguments.config.as_deref())?;
    if arguments.core {
        file.keep(&context, "", None);
        file.write()?;
        terminal::tell(&format!("Context '{}' updated", context.name));
        return Ok(());
    }
    let server = Remote::new(&context, None)?;
    // Whether it is one at all shows before a password goes there.
    let version = server.get("api/version").await?;
    if version["Version"].as_str().is_none() {
        return Err(Failure::api(format!("{} is no server of Baton or Argo CD", context.server)));
    }
    let (username, token, refresh) = match arguments.sso {
        true => {
            let way = sso::Way { port: arguments.sso_port, opens: arguments.sso_launch_browser };
            let arrived = sso::sign_in(&context, &way).await?;
            (arrived.username, arrived.tokens.id, arrived.tokens.refresh)
        }
        false => {
            let (username, token) = arguments.sign_in(&server, &context).await?;
            (username, token, None)
        }
    };
    file.keep(&context, &token, refresh.as_deref());
    file.write()?;
    terminal::tell(&format!("'{username}' logged in successfully"));
    terminal::tell(&format!("Context '{}' updated", context.name));
    Ok(())
}

// === impl Arguments ===

impl Arguments {
    /// Signs in by name and password.
    async fn sign_in(&self, server: &Remote, context: &Context) -> Result<(String, String), Failure> {
        let username = match &self.username {
            Some(name) => name.clone(),
            None => ask("Username: ")?,
        };
        let body = json!({"username": username, "password": self.password()?});
        let answer = server.post("api/v1/session", &body).await?;
        let token = answer["token"].as_str().filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| Failure::api(format!("{} gives no token", context.server)))?;
        Ok((username, token.to_owned()))
    }

    fn context(&self) -> Result<Context, Failure> {
        // The name that Argo CD's command line gives to no server.
        let mut context = Context::at(self.server.as_deref().unwrap_or("kubernetes"));
        context.core = self.core;
        if let Some(name) = &self.name {
            (context.name, context.user) = (name.clone(), name.clone());
        }
        context.plain |= self.plaintext;
        context.insecure = self.insecure;
        context.root = self.grpc_web_root_path.clone();
        if let Some(path) = &self.server_crt {
            let pem = std::fs::read(path)
                .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
            context.authority = Some(BASE64_STANDARD.encode(pem));
        }
        Ok(context)
    }

    fn password(&self) -> Result<String, Failure> {
        if let Some(password) = &self.password {
            return Ok(password.clone());
        }
        match self.password_stdin {
            true => passwords::from_stdin(),
            false => passwords::asked("Password: ", "--password-stdin reads one"),
        }
    }
}

// === impl Context ===

impl Context {
    /// One for a server that nothing else is known of. Where a whole URL is given, what it says counts.
    pub(super) fn at(server: &str) -> Context {
        let (plain, rest) = match (server.strip_prefix("http://"), server.strip_prefix("https://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => (false, server),
        };
        let server = rest.trim_end_matches('/').to_owned();
        let (name, user) = (server.clone(), server.clone());
        Context { name, server, user, plain, ..Context::default() }
    }
}

fn ask(what: &str) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("no account was named: --username does"));
    }
    let mut out = std::io::stderr().lock();
    // A prompt that cannot be shown is missed by nobody.
    let _ = write!(out, "{what}").and_then(|()| out.flush());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| Failure::usage(format!("cannot read: {error}")))?;
    Ok(line.trim().to_owned())
}
