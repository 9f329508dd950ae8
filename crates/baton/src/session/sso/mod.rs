//! Signing in at the issuer that a server names: OpenID Connect with a code, PKCE and a listener on this machine.

mod browser;
mod issuer;
mod listener;
mod token;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::file::{ConfigFile, Context};
use super::remote::Remote;
use crate::failure::Failure;
use crate::terminal;
pub(super) use issuer::Tokens;
use issuer::{Issuer, Provider};
use listener::Listener;
pub(super) use token::is_over;

/// How long a person may take at the issuer.
const PATIENCE: Duration = Duration::from_secs(300);

/// How a person is led to the issuer.
pub(super) struct Way {
    /// Where the issuer sends the browser back to; 0 is any port.
    pub(super) port: u16,
    /// Whether a browser is opened.
    pub(super) opens: bool,
}

/// Somebody whom the issuer vouches for and the server knows.
pub(super) struct Arrived {
    pub(super) username: String,
    pub(super) tokens: Tokens,
}

/// Signs somebody in.
///
/// # Errors
/// The server names no issuer, the issuer vouches for nobody, or the server does not take its word.
pub(super) async fn sign_in(context: &Context, way: &Way) -> Result<Arrived, Failure> {
    let issuer = issuer_of(context).await?;
    let listener = Listener::open(way.port).await?;
    let begun = issuer.begin(&listener.address());
    terminal::remark(&format!("Sign in on this page:\n  {}", begun.location));
    if way.opens {
        browser::open(&begun.location);
    }
    let code = tokio::time::timeout(PATIENCE, listener.code(&begun.state)).await.map_err(|_| {
        Failure::failed(format!("nobody has signed in within {} minutes", PATIENCE.as_secs() / 60))
    })??;
    let tokens = issuer.exchange(&begun, &code).await?;
    let claims =
        token::claims(&tokens.id).ok_or_else(|| Failure::api("the issuer's token cannot be read"))?;
    issuer.check(&claims, &begun.nonce, Timestamp::now())?;
    let who = Remote::new(context, Some(&tokens.id))?.get("api/v1/session/userinfo").await?;
    if who["loggedIn"] != true {
        return Err(Failure::api(format!(
            "{} does not take the word of {}: has its client {:?} been allowed there?",
            context.server, issuer.provider.issuer, issuer.provider.client
        )));
    }
    let username = who["username"].as_str().unwrap_or_default().to_owned();
    Ok(Arrived { username, tokens })
}

/// A new token in the place of one that is over, kept in the file; none where it cannot be renewed.
///
/// # Errors
/// The file cannot be written, or the server cannot be asked.
pub(super) async fn renewed(context: &Context, file: &mut ConfigFile) -> Result<Option<String>, Failure> {
    let Some(refresh) = file.refresh_token(&context.user).map(str::to_owned) else { return Ok(None) };
    let issuer = issuer_of(context).await?;
    // Whoever is refused here is told by the server that the session is over.
    let tokens = match issuer.refresh(&refresh).await {
        Ok(tokens) => tokens,
        Err(error) => {
            tracing::info!(%error, "the session is not renewed");
            return Ok(None);
        }
    };
    file.renew(&context.user, &tokens.id, tokens.refresh.as_deref());
    file.write()?;
    Ok(Some(tokens.id))
}

async fn issuer_of(context: &Context) -> Result<Issuer, Failure> {
    let settings: Value = Remote::new(context, None)?.get("api/v1/settings").await?;
    Issuer::find(Provider::read(&settings, context)?, context).await
}
