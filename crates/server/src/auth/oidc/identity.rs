//! Whom an issuer's token makes known.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Provider;
use super::signature::Keys;
use crate::auth::token::{LONGEST, TokenError};
use crate::caller::{Caller, Proof};

/// How far the clocks of the issuer and of this server may differ, in seconds.
const SKEW: i64 = 60;
/// Most groups of a person.
const MOST_GROUPS: usize = 2000;

/// A token, taken apart. Nothing of it is true before its signature was judged.
pub(crate) struct Parts<'t> {
    signed: &'t str,
    signature: Vec<u8>,
    header: Header,
    payload: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

// === impl Parts ===

impl<'t> Parts<'t> {
    pub(crate) fn of(token: &'t str) -> Result<Parts<'t>, TokenError> {
        if token.len() > LONGEST {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
        if header.crit.is_some() {
            return Err(TokenError::Algorithm);
        }
        Ok(Parts { signed, signature: decode(signature)?, header, payload: decode(payload)? })
    }

    /// Whether one of the issuer's keys signed it.
    pub(crate) fn is_signed(&self, keys: &Keys) -> bool {
        let Header { alg, kid, .. } = &self.header;
        keys.signed(alg, kid.as_deref(), self.signed.as_bytes(), &self.signature)
    }
}

/// Whom a token makes known whose signature was judged. `scopes` are the claims that hold groups; `nonce` is what a
/// handshake asked for.
///
/// # Errors
/// Why nobody.
pub(crate) fn of(
    provider: &Provider,
    token: &str,
    parts: &Parts<'_>,
    scopes: &[String],
    nonce: Option<&str>,
    now: Timestamp,
) -> Result<Caller, TokenError> {
    let claims: Value = serde_json::from_slice(&parts.payload).map_err(|_| TokenError::Malformed)?;
    let text = |name: &str| claims[name].as_str().unwrap_or_default();
    if text("iss") != provider.issuer {
        return Err(TokenError::Issuer);
    }
    let audience = &claims["aud"];
    let mut audiences = audience.as_array().into_iter().flatten().chain([audience]).filter_map(Value::as_str);
    if !audiences.any(|one| provider.serves(one)) {
        return Err(TokenError::Audience);
    }
    let second = |name: &str| claims[name].as_i64().or_else(|| claims[name].as_f64().map(|at| at as i64));
    let now = now.as_second();
    let end = second("exp").ok_or(TokenError::Expired)?;
    if end <= now {
        return Err(TokenError::Expired);
    }
    let begins = second("nbf").max(second("iat")).unwrap_or(now);
    if begins > now.saturating_add(SKEW) {
        return Err(TokenError::Early);
    }
    if nonce.is_some_and(|nonce| text("nonce") != nonce) {
        return Err(TokenError::Replayed);
    }
    let federated = claims["federated_claims"]["user_id"].as_str().filter(|id| !id.is_empty());
    let subject = federated.unwrap_or(text("sub"));
    if subject.is_empty() {
        return Err(TokenError::Account);
    }
    let email = Some(text("email")).filter(|email| !email.is_empty());
    Ok(Caller {
        proof: Proof::Oidc,
        subject: subject.to_owned(),
        username: email.unwrap_or(subject).to_owned(),
        issuer: provider.issuer.clone(),
        groups: groups(&claims, scopes),
        issued: second("iat").and_then(|at| Timestamp::from_second(at).ok()),
        expires: Timestamp::from_second(end).ok(),
        token: name(token),
    })
}

/// The subject of a token that was judged before, as its issuer knows it.
pub(crate) fn subject_of(token: &str) -> Option<String> {
    let claims: Value = serde_json::from_slice(&Parts::of(token).ok()?.payload).ok()?;
    Some(claims.get("sub")?.as_str()?.to_owned())
}

/// By what a token is known once it was given back: issuers need not name theirs.
fn name(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    format!("oidc-{}", URL_SAFE_NO_PAD.encode(&digest[..16]))
}

/// What the claims say that hold groups, each a text or a list of texts.
pub(super) fn groups(claims: &Value, scopes: &[String]) -> Vec<String> {
    let claim = |scope: &String| match &claims[scope.as_str()] {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    scopes.iter().flat_map(claim).filter(|group| !group.is_empty()).take(MOST_GROUPS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn provider() -> Provider {
        let text = "issuer: https://sso.example.com\nclientID: web\nallowedAudiences: [also]";
        Provider::read(text, &Default::default()).expect("a provider")
    }

    fn known(change: impl FnOnce(&mut Value), nonce: Option<&str>) -> Result<Caller, TokenError> {
        let mut claims = json!({
            "iss": "https://sso.example.com", "aud": "web", "sub": "u1", "iat": 100, "exp": 200, "nonce": "n",
            "email": "ann@example.com", "groups": ["ops", 3, "dev"], "team": "blue",
        });
        change(&mut claims);
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let token = format!("{}.{}.c2ln", encode(&json!({"alg": "ES256"})), encode(&claims));
        let scopes = ["groups".to_owned(), "team".to_owned()];
        let parts = Parts::of(&token)?;
        of(&provider(), &token, &parts, &scopes, nonce, Timestamp::from_second(150).expect("a second"))
    }

    #[test]
    fn a_person_is_known_by_what_the_issuer_says() {
        let caller = known(|_| {}, Some("n")).expect("a caller");
        assert_eq!((caller.subject.as_str(), caller.username.as_str()), ("u1", "ann@example.com"));
        assert_eq!(caller.groups, ["ops", "dev", "blue"]);
        assert!(caller.token.starts_with("oidc-"));
        let federated = known(|claims| claims["federated_claims"] = json!({"user_id": "u2"}), None);
        assert_eq!(federated.expect("a caller").subject, "u2");
        let several = known(|claims| claims["aud"] = json!(["other", "also"]), None);
        assert!(several.is_ok());
    }

    #[test]
    fn a_token_of_somebody_else_or_of_another_time_makes_nobody_known() {
        let cases: [(&str, Value, TokenError); 8] = [
            ("iss", json!("https://sso.example.com/"), TokenError::Issuer),
            ("aud", json!("other"), TokenError::Audience),
            ("aud", json!([]), TokenError::Audience),
            ("exp", json!(150), TokenError::Expired),
            ("exp", Value::Null, TokenError::Expired),
            ("nbf", json!(211), TokenError::Early),
            ("nonce", json!("other"), TokenError::Replayed),
            ("sub", json!(""), TokenError::Account),
        ];
        for (name, value, expected) in cases {
            let told = known(|claims| claims[name] = value, Some("n"));
            assert_eq!(told.expect_err(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_token_is_none() {
        for text in ["", "a.b", "a.b.c", "e30.e30.e30"] {
            assert!(Parts::of(text).is_err(), "{text}");
        }
        let critical = format!("{}.e30.e30", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","crit":["x"]}"#));
        assert_eq!(Parts::of(&critical).err(), Some(TokenError::Algorithm));
    }
}
