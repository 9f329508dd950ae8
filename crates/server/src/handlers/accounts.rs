//! Accounts, their tokens and passwords, and what the caller may.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_hooks::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::audit::Deed;
use crate::auth::accounts::{Account, AccountToken, secret_key};
use crate::auth::{self, password};
use crate::caller::Proof;
use crate::configuration::SECRET;
use crate::error::{Code, Error};
use crate::objects::{SECRETS, text};
use crate::server::{Context, Server};

/// Resources that policies know.
const RESOURCES: [&str; 12] = [
    "clusters",
    "projects",
    "applications",
    "applicationsets",
    "repositories",
    "write-repositories",
    "certificates",
    "accounts",
    "gpgkeys",
    "logs",
    "exec",
    "extensions",
];
/// Actions that policies know; those with a path begin like the last three.
const ACTIONS: [&str; 8] = ["get", "create", "update", "delete", "sync", "rollback", "override", "invoke"];
/// Most tokens of one account.
const MOST_TOKENS: usize = 100;
/// Longest name of a token.
const LONGEST_ID: usize = 128;

/// A request for a token.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewToken {
    /// Its name; one is made up where it is empty.
    pub id: String,
    /// For how many seconds it counts; 0 is without end.
    pub expires_in: i64,
    /// What it is for.
    pub description: String,
}

/// A request for another password.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewPassword {
    /// Whose; the caller's own where it is empty.
    pub name: String,
    /// The password of the caller as it is.
    pub current_password: String,
    /// The password as it shall be.
    pub new_password: String,
}

impl Server {
    /// Whether the caller may do something, in the words of policies.
    ///
    /// # Errors
    /// There is no such resource or action.
    pub fn can_i(
        &self,
        context: &Context,
        resource: &str,
        action: &str,
        object: &str,
    ) -> Result<Value, Error> {
        if !RESOURCES.contains(&resource) {
            return Err(Error::invalid(format!("{resource:?} is no resource: {}", RESOURCES.join(", "))));
        }
        let prefixed = ["action/", "update/", "delete/"].iter().any(|prefix| action.starts_with(prefix));
        if !ACTIONS.contains(&action) && action != "*" && !prefixed {
            return Err(Error::invalid(format!("{action:?} is no action: {}", ACTIONS.join(", "))));
        }
        let allowed = self.may(context, resource, action, object);
        Ok(json!({"value": if allowed { "yes" } else { "no" }}))
    }

    /// The accounts that the caller may see.
    pub fn accounts(&self, context: &Context) -> Value {
        let all = context.configuration.accounts.iter();
        let seen = all.filter(|account| self.sees_account(context, &account.name));
        json!({"items": seen.map(shown).collect::<Vec<_>>()})
    }

    /// One account.
    ///
    /// # Errors
    /// The caller may not see it, or there is none.
    pub fn account(&self, context: &Context, name: &str) -> Result<Value, Error> {
        if !self.sees_account(context, name) {
            return Err(Error::hidden());
        }
        let account = context.configuration.accounts.get(name);
        account.map(shown).ok_or_else(|| Error::not_found(format!("account '{name}' does not exist")))
    }

    /// Makes a token of an account.
    ///
    /// # Errors
    /// The caller may not, or the account may have none.
    pub async fn create_account_token(
        &self,
        context: &Context,
        name: &str,
        request: NewToken,
    ) -> Result<Value, Error> {
        self.changes_account(context, name)?;
        let deed = Deed {
            verb: "create token",
            reason: "BatonTokenCreated",
            object: self.secret(),
            detail: format!("of account {name}"),
            ..Deed::default()
        };
        let result = self.issue(context, name, request).await;
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    /// Revokes a token of an account.
    ///
    /// # Errors
    /// The caller may not, or there is no such token.
    pub async fn delete_account_token(
        &self,
        context: &Context,
        name: &str,
        id: &str,
    ) -> Result<Value, Error> {
        self.changes_account(context, name)?;
        let deed = Deed {
            verb: "revoke token",
            reason: "BatonTokenRevoked",
            object: self.secret(),
            detail: format!("{id} of account {name}"),
            ..Deed::default()
        };
        let account = context.configuration.accounts.get(name);
        let result = match account.filter(|account| account.tokens.iter().any(|token| token.id == id)) {
            None => Err(Error::not_found(format!("token with id '{id}' does not exist"))),
            Some(account) => {
                let kept: Vec<&AccountToken> = account.tokens.iter().filter(|token| token.id != id).collect();
                self.keep(name, "tokens", &json!(kept).to_string(), None).await.map(|()| json!({}))
            }
        };
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    /// Changes a password: sessions from before count no longer.
    ///
    /// # Errors
    /// The caller may not, or does not know their own password.
    pub async fn change_password(&self, context: &Context, request: NewPassword) -> Result<Value, Error> {
        let caller = &context.caller;
        let name = if request.name.is_empty() { caller.subject.clone() } else { request.name.clone() };
        if name != caller.subject {
            self.demand(context, "accounts", "update", &name)?;
        }
        if caller.proof != Proof::Session {
            return Err(Error::invalid("passwords are changed by people who signed in with one"));
        }
        password::allowed(&request.new_password).map_err(Error::invalid)?;
        let now = self.now();
        let own = context.configuration.accounts.get(&caller.subject).cloned();
        self.0
            .attempts
            .begin(&caller.subject, true, now)
            .map_err(|_| Error::new(Code::ResourceExhausted, "too many wrong passwords: try again later"))?;
        let (decoy, cost) = (self.0.decoy.clone(), self.0.settings.password_cost);
        let work = tokio::task::spawn_blocking(move || {
            let right = auth::admits(own.as_ref(), &request.current_password, &decoy);
            right.then(|| password::hash(&request.new_password, cost))
        });
        let hash = work.await.map_err(|_| Error::internal("the password could not be checked"))?;
        let deed = Deed {
            verb: "change password",
            reason: "BatonPasswordChanged",
            object: self.secret(),
            detail: format!("of account {name}"),
            ..Deed::default()
        };
        let result = match hash {
            None => Err(Error::invalid("current password does not match")),
            Some(_) if context.configuration.accounts.get(&name).is_none() => {
                Err(Error::not_found(format!("account '{name}' does not exist")))
            }
            Some(hash) => {
                self.0.attempts.succeed(&caller.subject);
                let changed = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                self.keep(&name, "password", &hash, Some(&changed)).await.map(|()| json!({}))
            }
        };
        self.0.configured.forget().await;
        self.audited(context, deed, result).await
    }

    async fn issue(&self, context: &Context, name: &str, request: NewToken) -> Result<Value, Error> {
        let configuration = &context.configuration;
        let account = configuration.accounts.get(name);
        let account = account.ok_or_else(|| Error::not_found(format!("account '{name}' does not exist")))?;
        if !account.api_key {
            return Err(Error::invalid(format!("account '{name}' does not have apiKey capability")));
        }
        let key = configuration.key.as_ref();
        let key =
            key.ok_or_else(|| Error::internal("argocd-secret has no server.secretkey to sign tokens with"))?;
        let token =
            prepare(&request, self.now().as_second(), account.tokens.iter().map(|token| token.id.as_str()))?;
        let signed = auth::lasting(key, format!("{name}:apiKey"), self.now(), token.exp, &token.id);
        let mut all = account.tokens.clone();
        all.push(token);
        self.keep(name, "tokens", &json!(all).to_string(), None).await?;
        Ok(json!({"token": signed}))
    }

    /// Writes something of an account into the Secret.
    async fn keep(&self, account: &str, what: &str, value: &str, changed: Option<&str>) -> Result<(), Error> {
        let secrets = self.objects(SECRETS, &self.0.settings.namespace);
        let there = secrets.find(SECRET).await?;
        let there = there.ok_or_else(|| Error::internal(format!("there is no Secret {SECRET}")))?;
        let mut data = Map::from_iter([(secret_key(account, what), STANDARD.encode(value).into())]);
        if let Some(changed) = changed {
            data.insert(secret_key(account, "passwordMtime"), STANDARD.encode(changed).into());
        }
        let version = text(&there, "/metadata/resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
        secrets.merge(SECRET, &patch).await.map(drop)
    }

    fn sees_account(&self, context: &Context, name: &str) -> bool {
        let own = context.caller.subject == name && context.caller.proof != Proof::ProjectToken;
        (own && context.caller.is_known()) || self.may(context, "accounts", "get", name)
    }

    fn changes_account(&self, context: &Context, name: &str) -> Result<(), Error> {
        let own = context.caller.subject == name && context.caller.proof == Proof::Session;
        if own { Ok(()) } else { self.demand(context, "accounts", "update", name) }
    }
}

/// The token that is asked for, as it is remembered.
///
/// # Errors
/// There is one of that name, there are too many, or it makes no sense.
pub(crate) fn prepare<'t>(
    request: &NewToken,
    now: i64,
    known: impl Iterator<Item = &'t str>,
) -> Result<AccountToken, Error> {
    let id = if request.id.is_empty() { auth::fresh_id() } else { request.id.clone() };
    let known: Vec<&str> = known.collect();
    if request.expires_in < 0 || id.len() > LONGEST_ID {
        return Err(Error::invalid(format!(
            "a token ends in the future, and its id has up to {LONGEST_ID} characters"
        )));
    }
    if known.contains(&id.as_str()) {
        return Err(Error::invalid(format!("a token with id '{id}' exists already")));
    }
    if known.len() >= MOST_TOKENS {
        return Err(Error::precondition(format!("there are {MOST_TOKENS} tokens already: revoke one first")));
    }
    let exp = if request.expires_in == 0 { 0 } else { now.saturating_add(request.expires_in) };
    Ok(AccountToken { id, iat: now, exp })
}

fn shown(account: &Account) -> Value {
    let token = |token: &AccountToken| json!({"id": token.id, "issuedAt": token.iat, "expiresAt": token.exp});
    json!({
        "name": account.name,
        "enabled": account.enabled,
        "capabilities": account.capabilities(),
        "tokens": account.tokens.iter().map(token).collect::<Vec<_>>(),
    })
}

// Kept apart from `Debug`: a request for a password is never printed.
impl std::fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hidden = Secret::new(self.new_password.as_str());
        f.debug_struct("NewPassword")
            .field("name", &self.name)
            .field("new_password", &hidden)
            .finish_non_exhaustive()
    }
}
