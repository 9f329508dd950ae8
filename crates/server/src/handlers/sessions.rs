//! Signing in and out.

use baton_hooks::Secret;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::audit::{Affected, Deed};
use crate::auth::{self, Locked};
use crate::caller::{Caller, Proof};
use crate::configuration::{REVOKED, SECRET, texts};
use crate::error::{Code, Error};
use crate::objects::{CONFIG_MAPS, text};
use crate::server::{Context, Server};

/// Longest name of an account.
const LONGEST_NAME: usize = 64;
/// Most sessions that are remembered as ended.
const MOST_REVOKED: usize = 10_000;
/// How long a session is remembered as ended that does not say when it ends.
const REMEMBERED: i64 = 400 * 24 * 3600;

/// A request to sign in.
#[derive(Deserialize, JsonSchema)]
pub struct SignIn {
    /// Name of the account.
    #[serde(default)]
    pub username: String,
    /// Its password.
    #[serde(default)]
    pub password: String,
}

impl Server {
    /// Signs somebody in: the token of a new session.
    ///
    /// # Errors
    /// The name or the password is wrong, which of them is not said; or there were too many attempts.
    pub async fn sign_in(&self, request: SignIn, id: &str) -> Result<Secret, Error> {
        let SignIn { username, password } = request;
        let wrong = || Error::new(Code::Unauthenticated, "Invalid username or password");
        if username.is_empty() || password.is_empty() {
            return Err(Error::new(Code::Unauthenticated, "no credentials supplied"));
        }
        if username.len() > LONGEST_NAME || password.len() > auth::password::LONGEST {
            return Err(wrong());
        }
        let inner = &self.0;
        let _place = inner.logins.try_acquire().map_err(|_| {
            Error::new(Code::ResourceExhausted, "too many people sign in at this moment: try again")
        })?;
        let context = self.open_context(None, id).await?;
        let configuration = context.configuration.clone();
        let account = configuration.accounts.get(&username).cloned();
        let now = self.now();
        inner
            .attempts
            .begin(&username, account.is_some(), now)
            .map_err(|Locked(until)| locked(until, now))?;
        let decoy = inner.decoy.clone();
        // Hashing takes a while by design, and must not hold up anything else.
        let check = tokio::task::spawn_blocking(move || auth::admits(account.as_ref(), &password, &decoy));
        let admitted = check.await.map_err(|_| Error::internal("the password could not be checked"))?;
        let deed =
            Deed { verb: "sign in", reason: "BatonSignedIn", object: self.secret(), ..Deed::default() };
        let mut context = context;
        context.caller.username.clone_from(&username);
        if !admitted {
            return self.audited(&context, deed, Err(wrong())).await;
        }
        inner.attempts.succeed(&username);
        let token = auth::session(&configuration, &username, now);
        let token =
            token.ok_or_else(|| Error::internal("argocd-secret has no server.secretkey to sign tokens with"));
        context.caller.proof = Proof::Session;
        self.audited(&context, deed, token.map(Secret::new)).await
    }

    /// Signs somebody out: the session's token counts no longer, whoever holds a copy of it.
    ///
    /// # Errors
    /// The API cannot be written.
    pub async fn sign_out(&self, context: &Context) -> Result<(), Error> {
        let caller = &context.caller;
        if !matches!(caller.proof, Proof::Session | Proof::Oidc) || caller.token.is_empty() {
            return Ok(());
        }
        let deed =
            Deed { verb: "sign out", reason: "BatonSignedOut", object: self.secret(), ..Deed::default() };
        let result = self.revoke(caller, context.session.as_deref()).await;
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    /// Who asks.
    pub fn user_info(&self, context: &Context) -> Value {
        let caller = &context.caller;
        match caller.is_known() {
            true => json!({
                "loggedIn": true, "username": caller.username, "iss": caller.issuer, "groups": caller.groups,
            }),
            false => json!({}),
        }
    }

    /// A newer token, where the session of the caller ends soon.
    pub fn renewal(&self, context: &Context) -> Option<Secret> {
        auth::renewed(&context.configuration, &context.caller, self.now()).map(Secret::new)
    }

    /// Has a token count no longer, and a sign-in by an issuer not be prolonged any more.
    async fn revoke(&self, caller: &Caller, session: Option<&str>) -> Result<(), Error> {
        let maps = self.objects(CONFIG_MAPS, &self.0.settings.namespace);
        let now = self.now().as_second();
        let end = caller.expires.map_or(now + REMEMBERED, Timestamp::as_second);
        let mut ended = serde_json::Map::new();
        ended.insert(caller.token.clone(), end.to_string().into());
        ended.extend(session.map(|session| (session.to_owned(), (now + REMEMBERED).to_string().into())));
        let Some(there) = maps.find(REVOKED).await? else {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": REVOKED, "namespace": self.0.settings.namespace},
                "data": ended,
            });
            return match maps.create(&object, false).await {
                // Somebody else was first to sign out.
                Err(error) if error.code == Code::AlreadyExists => {
                    maps.merge(REVOKED, &json!({ "data": ended })).await.map(drop)
                }
                other => other.map(drop),
            };
        };
        let mut data = serde_json::Map::new();
        let known = texts(Some(&there));
        let past = |end: &String| end.parse::<i64>().is_ok_and(|end| end <= now);
        let over: Vec<&String> = known.iter().filter(|(_, end)| past(end)).map(|(id, _)| id).collect();
        if known.len() - over.len() >= MOST_REVOKED {
            let message = "too many sessions were ended early; they are forgotten as they expire";
            return Err(Error::new(Code::ResourceExhausted, message));
        }
        data.extend(over.into_iter().map(|id| (id.clone(), Value::Null)));
        data.extend(ended);
        let patch = json!({"metadata": {"uid": text(&there, "/metadata/uid")}, "data": data});
        maps.merge(REVOKED, &patch).await.map(drop)
    }

    /// The Secret with accounts, as records name it.
    pub(crate) fn secret(&self) -> Affected {
        let namespace = self.0.settings.namespace.clone();
        Affected { kind: "Secret", namespace, name: SECRET.to_owned(), ..Affected::default() }
    }
}

fn locked(until: Timestamp, now: Timestamp) -> Error {
    let seconds = until.duration_since(now).as_secs().max(1);
    Error::new(
        Code::ResourceExhausted,
        format!("too many failed attempts to sign in: try again in {seconds} s"),
    )
}
