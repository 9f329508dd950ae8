//! Signing in by an issuer.

use baton_hooks::Secret;

use crate::audit::Deed;
use crate::auth::oidc::Provider;
use crate::auth::oidc::handshake::{Begun, Brought};
use crate::auth::token::SigningKey;
use crate::configuration::Configuration;
use crate::error::{Code, Error};
use crate::server::{Context, Server};

/// Where a browser is sent, and the cookie it keeps meanwhile.
pub(crate) struct Sent {
    pub(crate) location: String,
    pub(crate) cookie: String,
}

/// Somebody whom the issuer vouches for.
pub(crate) struct Arrived {
    pub(crate) token: Secret,
    /// The page to go to.
    pub(crate) back: String,
}

/// What signing in by an issuer takes.
struct Means<'c> {
    provider: &'c Provider,
    key: &'c SigningKey,
    /// The URL that browsers know this server by.
    url: &'c str,
}

impl Server {
    /// Sends a browser to its issuer; it goes back to a page of ours afterwards.
    ///
    /// # Errors
    /// No issuer is set, or it cannot be asked.
    pub(crate) async fn begin_sign_on(&self, context: &Context, back: &str) -> Result<Sent, Error> {
        let means = Means::of(&context.configuration)?;
        let entrance = self.0.issuer.entrance(means.provider, self.now()).await?;
        let begun = Begun::new(means.url, back, self.now());
        Ok(Sent {
            location: begun.location(means.provider, &entrance, means.url),
            cookie: begun.kept(means.key, self.0.settings.secure),
        })
    }

    /// Lets somebody in whom the issuer has sent back.
    ///
    /// # Errors
    /// This browser has not begun it, or the issuer does not vouch for anybody.
    pub(crate) async fn end_sign_on(
        &self,
        context: &Context,
        cookies: &[String],
        brought: &Brought<'_>,
    ) -> Result<Arrived, Error> {
        let configuration = &context.configuration;
        let means = Means::of(configuration)?;
        let begun = Begun::ended(cookies.iter().map(String::as_str), brought, means.key, self.now())?;
        let issuer = &self.0.issuer;
        let token =
            issuer.exchange(means.provider, means.url, brought.code, &begun.verifier, self.now()).await?;
        let (claims, nonce) = (&configuration.group_claims, Some(begun.nonce.as_str()));
        let known = issuer.identify(means.provider, token.expose(), claims, nonce, self.now()).await;
        let deed =
            Deed { verb: "sign in", reason: "BatonSignedIn", object: self.secret(), ..Deed::default() };
        let mut context = context.clone();
        let result = match known {
            Ok(caller) => {
                context.caller = caller;
                Ok(Arrived { token, back: begun.back })
            }
            Err(error) => Err(Error::new(Code::Unauthenticated, format!("cannot sign in: {error}"))),
        };
        self.audited(&context, deed, result).await
    }

    /// Where a browser goes that was signed out.
    pub(crate) fn after_sign_off(&self, context: &Context) -> String {
        let provider = context.configuration.provider.as_ref().and_then(|provider| provider.as_ref().ok());
        let elsewhere = provider.and_then(|provider| provider.logout.clone());
        elsewhere.unwrap_or_else(|| "/login".to_owned())
    }
}

// === impl Means ===

impl Means<'_> {
    fn of(configuration: &Configuration) -> Result<Means<'_>, Error> {
        let missing = |what: &str| Error::new(Code::FailedPrecondition, what);
        let provider = match &configuration.provider {
            None => return Err(missing("no issuer is set: argocd-cm has no oidc.config")),
            Some(Err(error)) => return Err(missing(&format!("argocd-cm: {error}"))),
            Some(Ok(provider)) => provider,
        };
        let key = configuration.key.as_ref();
        let key = key.ok_or_else(|| missing("argocd-secret has no server.secretkey to sign with"))?;
        let url = configuration.setting("url");
        let url = url.ok_or_else(|| missing("argocd-cm: url is to be the URL that browsers know"))?;
        Ok(Means { provider, key, url })
    }
}
