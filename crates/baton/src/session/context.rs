//! `baton context` and `baton logout`.

use clap::Args;

use super::remote::Remote;
use super::{Session, unknown};
use crate::failure::Failure;
use crate::listing::{self, Column};
use crate::{print, terminal};

/// Contexts, each with whether it is the current one.
const COLUMNS: &[Column<(bool, super::Context)>] = &[
    Column::new("CURRENT", |(current, _)| if *current { "*" } else { "" }.to_owned()),
    Column::new("NAME", |(_, context)| context.name.clone()),
    Column::new("SERVER", |(_, context)| context.server.clone()),
];

/// Which context.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton context                   all of them; the current one is marked
  baton context prod              use this one from now on
  baton context staging --delete  forget it and its session")]
pub(crate) struct Arguments {
    /// Its name.
    context: Option<String>,
    /// Forget it.
    #[arg(long, requires = "context")]
    delete: bool,
    #[command(flatten)]
    session: Session,
}

/// Where to end a session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  baton logout
  baton logout prod")]
pub(crate) struct LogoutArguments {
    /// Name of the context [default: the current one].
    context: Option<String>,
    #[command(flatten)]
    session: Session,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut file = arguments.session.file()?;
    let Some(name) = &arguments.context else {
        let is_current = |context: super::Context| (file.current() == Some(&context.name), context);
        let contexts: Vec<(bool, super::Context)> = file.contexts().into_iter().map(is_current).collect();
        return print::out(&listing::table(COLUMNS, &contexts, false));
    };
    let context = file.context(name).ok_or_else(|| unknown(name, &file))?;
    if arguments.delete {
        file.forget(&context);
        file.write()?;
        terminal::tell(&format!("Context '{name}' deleted"));
    } else {
        file.switch(name);
        file.write()?;
        terminal::tell(&format!("Switched to context '{name}'"));
    }
    Ok(())
}

pub(crate) async fn logout(arguments: LogoutArguments) -> Result<(), Failure> {
    let mut file = arguments.session.file()?;
    let name = arguments.context.as_deref().or(file.current());
    let name = name.ok_or_else(|| Failure::usage("nobody is signed in"))?.to_owned();
    let context = file.context(&name).ok_or_else(|| unknown(&name, &file))?;
    // The token is forgotten here even where the server cannot be told.
    let told = match file.token(&context.user) {
        Some(token) => Remote::new(&context, Some(token))?.delete("api/v1/session").await.map(|_| ()),
        None => Ok(()),
    };
    file.forget_token(&context.user);
    file.write()?;
    terminal::tell(&format!("Logged out from '{name}'"));
    if let Err(failure) = told {
        terminal::remark(&format!("the server was not told: {failure}"));
    }
    Ok(())
}
