//! Signing in by an issuer.

use baton_hooks::Secret;
use jiff::Timestamp;

use crate::audit::Deed;
use crate::auth::oidc::Provider;
use crate::auth::oidc::companion::Companion;
use crate::auth::oidc::handshake::{Begun, Brought};
use crate::auth::oidc::identity::subject_of;
use crate::auth::token::{SigningKey, claimed_issuer};
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
    /// What prolongs it, as a browser keeps it.
    pub(crate) companion: Option<String>,
    /// The page to go to.
    pub(crate) back: String,
}

/// A sign-in by an issuer, as it is after it was prolonged.
pub(crate) struct Prolonged {
    /// The token that counts now.
    pub(crate) token: String,
    pub(crate) companion: Companion,
    /// Whether the token is another than the browser has.
    pub(crate) renewed: bool,
    /// Whether what prolongs it is another than the browser has.
    pub(crate) changed: bool,
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
        let given =
            issuer.exchange(means.provider, means.url, brought.code, &begun.verifier, self.now()).await?;
        let token = given.token.clone();
        let token = token.ok_or_else(|| Error::new(Code::Unavailable, "the issuer has given no id_token"))?;
        let (claims, nonce) = (&configuration.group_claims, Some(begun.nonce.as_str()));
        let known = issuer.identify(means.provider, token.expose(), claims, nonce, self.now()).await;
        let deed =
            Deed { verb: "sign in", reason: "BatonSignedIn", object: self.secret(), ..Deed::default() };
        let mut context = context.clone();
        let result = match known {
            Ok(caller) => {
                let ends = caller.expires.map_or(0, Timestamp::as_second);
                let companion = Companion::new(&caller.subject, ends, given.refresh, given.access);
                let companion = self.told_groups(configuration, companion, token.expose()).await.0;
                let companion = companion.is_useful().then(|| companion.locked(means.key)).flatten();
                context.caller = caller;
                Ok(Arrived { token, companion, back: begun.back })
            }
            Err(error) => Err(Error::new(Code::Unauthenticated, format!("cannot sign in: {error}"))),
        };
        self.audited(&context, deed, result).await
    }

    /// Prolongs a sign-in by an issuer with what the browser kept for that: a newer token where the present one ends, and
    /// groups where the issuer tells them apart. None where there is nothing to prolong it with.
    pub(crate) async fn prolonged(&self, token: &str, kept: &str) -> Option<Prolonged> {
        let configuration = self.0.configured.get().await.ok()?;
        let Means { provider, key, .. } = Means::of(&configuration).ok()?;
        let companion = Companion::unlocked(kept, key)?;
        if configuration.revoked.contains(&companion.session)
            || claimed_issuer(token).as_deref() != Some(&provider.issuer)
        {
            return None;
        }
        let mut known = Prolonged { token: token.to_owned(), companion, renewed: false, changed: false };
        if let Some(refresh) = known.companion.refreshes(self.now().as_second()) {
            match self.renewed(&configuration, provider, &refresh, &known.companion).await {
                Ok((newer, companion)) => {
                    known.renewed = newer.is_some();
                    known.token = newer.map_or(known.token, |newer| newer.expose().to_owned());
                    (known.companion, known.changed) = (companion, true);
                }
                // The present token may still count; if not, somebody signs in anew.
                Err(error) => tracing::info!(%error, "a sign-in by the issuer was not prolonged"),
            }
        }
        let (companion, changed) = self.told_groups(&configuration, known.companion, &known.token).await;
        Some(Prolonged { companion, changed: known.changed || changed, ..known })
    }

    async fn renewed(
        &self,
        configuration: &Configuration,
        provider: &Provider,
        refresh: &Secret,
        companion: &Companion,
    ) -> Result<(Option<Secret>, Companion), Error> {
        let issuer = &self.0.issuer;
        let given = issuer.renew(provider, refresh, self.now()).await?;
        let Some(token) = given.token else {
            let companion = companion.clone().renewed(companion.ends, given.refresh, given.access);
            return Ok((None, companion));
        };
        let claims = &configuration.group_claims;
        let caller = issuer.identify(provider, token.expose(), claims, None, self.now()).await;
        let caller = caller.map_err(|error| Error::new(Code::Unauthenticated, error.to_string()))?;
        if caller.subject != companion.subject {
            return Err(Error::new(Code::Unauthenticated, "the issuer has given a token of somebody else"));
        }
        let ends = caller.expires.map_or(0, Timestamp::as_second);
        Ok((Some(token), companion.clone().renewed(ends, given.refresh, given.access)))
    }

    /// With groups as the issuer tells them, where it is to be asked and they are not believed any more; whether it was.
    /// Where it cannot be asked, nobody is in any.
    async fn told_groups(
        &self,
        configuration: &Configuration,
        mut companion: Companion,
        token: &str,
    ) -> (Companion, bool) {
        let provider = configuration.provider.as_ref().and_then(|provider| provider.as_ref().ok());
        let now = self.now();
        let Some((provider, info)) = provider.and_then(|one| Some((one, one.user_info.as_ref()?))) else {
            companion.groups.clear();
            return (companion, false);
        };
        let Some(access) = companion.asks(now.as_second()) else { return (companion, false) };
        let subject = subject_of(token).unwrap_or_default();
        let claims = &configuration.group_claims;
        match self.0.issuer.groups(provider, info, &access, &subject, claims, now).await {
            Ok(groups) => {
                companion.groups = groups;
                companion.believed = now.as_second().saturating_add(info.believed.max(1));
                (companion, true)
            }
            Err(error) => {
                tracing::warn!(%error, "groups cannot be asked for at the issuer");
                companion.groups.clear();
                (companion, false)
            }
        }
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
