//! Who asks, and how that is known: accounts, passwords, tokens, cookies.

pub mod accounts;
mod attempts;
pub mod cookie;
pub(crate) mod oidc;
pub(crate) mod password;
pub mod setup;
pub mod token;

use jiff::{SignedDuration, Timestamp};

pub(crate) use attempts::{Attempts, Locked};
pub use password::hashed as hashed_password;

use crate::caller::{Caller, Proof};
use crate::configuration::Configuration;
use accounts::Account;
use token::{Claims, ISSUER, SigningKey, TokenError};

/// How long a session lasts where nothing else is set.
const SESSION: SignedDuration = SignedDuration::from_hours(24);
/// A session that ends sooner than this is renewed.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_mins(5);

/// Whom a token makes known.
///
/// # Errors
/// Why it makes nobody known.
pub(crate) fn identify(
    configuration: &Configuration,
    token: &str,
    now: Timestamp,
) -> Result<Caller, TokenError> {
    let key = configuration.key.as_ref().ok_or(TokenError::Signature)?;
    let claims = key.verify(token, now)?;
    if !claims.jti.is_empty() && configuration.revoked.contains(&claims.jti) {
        return Err(TokenError::Revoked);
    }
    if let Some(rest) = claims.sub.strip_prefix("proj:") {
        let (project, role) = rest.split_once(':').ok_or(TokenError::Account)?;
        return match is_listed(configuration, project, role, &claims) {
            true => Ok(caller(Proof::ProjectToken, &claims.sub, &claims)),
            false => Err(TokenError::Revoked),
        };
    }
    let (name, capability) = claims.sub.rsplit_once(':').unwrap_or((&claims.sub, "login"));
    let account = configuration.accounts.get(name).filter(|account| account.enabled);
    let account = account.ok_or(TokenError::Account)?;
    let proof = match capability {
        "login" if account.login => Proof::Session,
        "apiKey" if account.api_key => Proof::ApiKey,
        _ => return Err(TokenError::Account),
    };
    if proof == Proof::ApiKey && !account.tokens.iter().any(|token| token.id == claims.jti) {
        return Err(TokenError::Revoked);
    }
    let changed = account.password_changed.filter(|_| proof == Proof::Session);
    if changed.is_some_and(|changed| claims.iat < changed.as_second()) {
        return Err(TokenError::Outdated);
    }
    Ok(caller(proof, name, &claims))
}

/// Whether what made a caller known still stands.
pub(crate) fn is_current(configuration: &Configuration, caller: &Caller) -> bool {
    let account = || configuration.accounts.get(&caller.subject).filter(|account| account.enabled);
    let issued = caller.issued.map_or(0, Timestamp::as_second);
    match caller.proof {
        Proof::Anonymous | Proof::Kubernetes => true,
        Proof::Oidc => {
            let provider = configuration.provider.as_ref().and_then(|provider| provider.as_ref().ok());
            provider.is_some_and(|provider| provider.issuer == caller.issuer)
        }
        Proof::Session => account().is_some_and(|account| {
            account.login && account.password_changed.is_none_or(|changed| issued >= changed.as_second())
        }),
        Proof::ApiKey => account().is_some_and(|account| {
            account.api_key && account.tokens.iter().any(|token| token.id == caller.token)
        }),
        Proof::ProjectToken => {
            let claims = Claims { iat: issued, jti: caller.token.clone(), ..Claims::default() };
            let named = caller.subject.strip_prefix("proj:").and_then(|rest| rest.split_once(':'));
            named.is_some_and(|(project, role)| is_listed(configuration, project, role, &claims))
        }
    }
}

/// A token for a session of an account.
pub(crate) fn session(configuration: &Configuration, account: &str, now: Timestamp) -> Option<String> {
    let asked = configuration.setting("users.session.duration");
    let asked = asked.and_then(|text| text.parse::<baton_grammar::duration::Duration>().ok());
    let lasts = asked.map(|asked| SignedDuration::from_nanos(asked.nanoseconds()));
    let lasts = lasts.filter(|lasts| lasts.is_positive()).unwrap_or(SESSION);
    let end = now.as_second().saturating_add(lasts.as_secs());
    let claims = claims(format!("{account}:login"), now, Some(end), fresh_id());
    configuration.key.as_ref().map(|key| key.sign(&claims))
}

/// A newer token for a session that ends soon.
pub(crate) fn renewed(configuration: &Configuration, caller: &Caller, now: Timestamp) -> Option<String> {
    let ends = caller.expires.filter(|_| caller.proof == Proof::Session)?;
    let soon = ends.duration_since(now) < RENEW_BEFORE;
    if soon { session(configuration, &caller.subject, now) } else { None }
}

/// A token of an account or of a project's role.
pub(crate) fn lasting(key: &SigningKey, sub: String, now: Timestamp, end: i64, id: &str) -> String {
    key.sign(&claims(sub, now, (end > 0).then_some(end), id.to_owned()))
}

/// A name that no other token has.
pub(crate) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Whether a password lets somebody in. Unknown names cost what known ones do.
pub(crate) fn admits(account: Option<&Account>, password: &str, decoy: &password::Decoy) -> bool {
    let usable = account.filter(|account| account.enabled && account.login);
    match usable.and_then(|account| account.password.as_ref()) {
        Some(hash) => password::fits(password, hash.expose()),
        None => decoy.refuse(password),
    }
}

fn claims(sub: String, now: Timestamp, exp: Option<i64>, jti: String) -> Claims {
    let second = now.as_second();
    Claims { iss: ISSUER.to_owned(), sub, iat: second, nbf: second, exp, jti }
}

fn caller(proof: Proof, subject: &str, claims: &Claims) -> Caller {
    Caller {
        proof,
        subject: subject.to_owned(),
        username: subject.to_owned(),
        issuer: ISSUER.to_owned(),
        groups: Vec::new(),
        issued: Timestamp::from_second(claims.iat).ok(),
        expires: claims.exp.and_then(|end| Timestamp::from_second(end).ok()),
        token: claims.jti.clone(),
    }
}

/// Whether a project still knows the token.
fn is_listed(configuration: &Configuration, project: &str, role: &str, claims: &Claims) -> bool {
    let Some(project) = configuration.projects.get(project) else { return false };
    let Some(role) = project.spec.roles.iter().find(|known| known.name == role) else { return false };
    let newer = project.status.jwt_tokens_by_role.get(&role.name);
    let mut known = role.jwt_tokens.iter().chain(newer.into_iter().flat_map(|tokens| &tokens.items));
    known.any(|token| match (claims.jti.as_str(), token.id.as_str()) {
        // Tokens of old had no name: then the second of their making tells them apart.
        ("", _) | (_, "") => token.iat == claims.iat,
        (id, listed) => id == listed,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use baton_api::AppProject;
    use serde_json::json;

    use super::*;

    fn configuration() -> Configuration {
        let texts = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let settings = texts(&[("accounts.alice", "login, apiKey"), ("accounts.ci", "apiKey")]);
        let secret = texts(&[
            ("accounts.alice.passwordMtime", "1970-01-01T00:01:40Z"),
            ("accounts.ci.tokens", r#"[{"id":"listed","iat":1}]"#),
        ]);
        let secret = secret.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
        let project: AppProject = serde_json::from_value(json!({
            "metadata": {"name": "shop"},
            "spec": {"roles": [{"name": "ci", "jwtTokens": [{"iat": 150, "id": "old"}]}]},
            "status": {"jwtTokensByRole": {"ci": {"items": [{"iat": 160, "id": "new"}]}}},
        }))
        .expect("a project");
        Configuration {
            accounts: accounts::Accounts::read(&settings, &secret),
            settings,
            key: SigningKey::new(b"0123456789abcdef0123456789abcdef"),
            provider: None,
            group_claims: Vec::new(),
            projects: [("shop".to_owned(), Arc::new(project))].into(),
            revoked: BTreeSet::from(["ended".to_owned()]),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a second")
    }

    fn known(sub: &str, iat: i64, jti: &str) -> Result<Proof, TokenError> {
        let configuration = configuration();
        let claims = Claims { jti: jti.to_owned(), ..claims(sub.to_owned(), at(iat), None, String::new()) };
        let token = configuration.key.as_ref().expect("a key").sign(&claims);
        identify(&configuration, &token, at(1000)).map(|caller| caller.proof)
    }

    #[test]
    fn a_token_counts_while_the_account_may_what_it_is_for() {
        for (sub, iat, jti, expected) in [
            ("alice:login", 100, "x", Ok(Proof::Session)),
            ("alice", 100, "x", Ok(Proof::Session)),
            ("alice:login", 99, "x", Err(TokenError::Outdated)),
            ("alice:login", 100, "ended", Err(TokenError::Revoked)),
            ("alice:apiKey", 100, "x", Err(TokenError::Revoked)),
            ("ci:apiKey", 1, "listed", Ok(Proof::ApiKey)),
            ("ci:apiKey", 1, "other", Err(TokenError::Revoked)),
            ("ci:login", 1, "listed", Err(TokenError::Account)),
            ("ci:admin", 1, "listed", Err(TokenError::Account)),
            ("nobody:login", 1, "x", Err(TokenError::Account)),
            ("proj:shop:ci", 1, "new", Ok(Proof::ProjectToken)),
            ("proj:shop:ci", 1, "old", Ok(Proof::ProjectToken)),
            ("proj:shop:ci", 150, "", Ok(Proof::ProjectToken)),
            ("proj:shop:ci", 151, "", Err(TokenError::Revoked)),
            ("proj:shop:ci", 150, "gone", Err(TokenError::Revoked)),
            ("proj:shop:other", 150, "new", Err(TokenError::Revoked)),
            ("proj:none:ci", 150, "new", Err(TokenError::Revoked)),
            ("proj:", 150, "new", Err(TokenError::Account)),
        ] {
            assert_eq!(known(sub, iat, jti), expected, "{sub} {iat} {jti}");
        }
    }

    #[test]
    fn a_session_that_ends_soon_is_renewed() {
        let configuration = configuration();
        let token = session(&configuration, "alice", at(200)).expect("a token");
        let caller = identify(&configuration, &token, at(200)).expect("a caller");
        let end = 200 + 24 * 3600;
        assert_eq!(caller.expires, Some(at(end)));
        assert_eq!(renewed(&configuration, &caller, at(end - 301)), None);
        let newer = renewed(&configuration, &caller, at(end - 299)).expect("a newer one");
        let newer = identify(&configuration, &newer, at(end - 299)).expect("a caller");
        assert_eq!(newer.expires, Some(at(end - 299 + 24 * 3600)));
        assert_eq!(identify(&configuration, &token, at(end)), Err(TokenError::Expired));
    }
}
