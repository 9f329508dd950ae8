//! Tokens of our own: JSON Web Tokens signed with HMAC-SHA-256 and with nothing else.
//!
//! By hand over `ring`, which is there anyway: one algorithm needs no library of all of them, and what is not there
//! cannot be asked for by a token's header.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::{aead, hmac};
use serde::{Deserialize, Serialize};

/// Who vouches for tokens of our own.
pub const ISSUER: &str = "argocd";
/// Longest token that is looked at.
pub const LONGEST: usize = 64 * 1024;
/// How far the clocks of two servers may differ, in seconds.
const SKEW: i64 = 5;

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Claims {
    /// Who vouches.
    #[serde(default)]
    pub iss: String,
    /// For whom.
    #[serde(default)]
    pub sub: String,
    /// When it was issued, in seconds since 1970.
    #[serde(default)]
    pub iat: i64,
    /// Before when it does not count.
    #[serde(default)]
    pub nbf: i64,
    /// When it ends; never where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    /// Its name.
    #[serde(default)]
    pub jti: String,
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is none.
    #[error("token is malformed")]
    Malformed,
    /// It wants to be checked in another way.
    #[error("token is not signed with HS256")]
    Algorithm,
    /// Somebody else signed it, or it was changed.
    #[error("signature is invalid")]
    Signature,
    /// It is of another issuer.
    #[error("token is of another issuer")]
    Issuer,
    /// It is for somebody else.
    #[error("token is for another audience")]
    Audience,
    /// It was asked for by another sign-in.
    #[error("token belongs to another sign-in")]
    Replayed,
    /// Its issuer cannot be asked for its keys.
    #[error("the issuer of the token cannot be asked for its keys")]
    Unreachable,
    /// It has ended.
    #[error("token is expired")]
    Expired,
    /// It does not count yet.
    #[error("token is not valid yet")]
    Early,
    /// It has no name by which it could be revoked.
    #[error("token has no id")]
    Nameless,
    /// It was revoked.
    #[error("token is revoked")]
    Revoked,
    /// There is no such account, or it may not do this.
    #[error("account does not exist, is disabled or lacks the capability")]
    Account,
    /// The password was changed since.
    #[error("password has changed since the token was issued")]
    Outdated,
}

/// What our tokens are signed with.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

/// Who signed a token, by its own word: nothing else of it may be used before it was verified.
pub fn claimed_issuer(token: &str) -> Option<String> {
    let payload = token.split('.').nth(1).filter(|_| token.len() <= LONGEST)?;
    let claims: serde_json::Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    Some(claims.get("iss")?.as_str()?.to_owned())
}

// === impl SigningKey ===

impl SigningKey {
    /// From `server.secretkey`; none where it is too short to keep anybody out.
    pub fn new(secret: &[u8]) -> Option<SigningKey> {
        (secret.len() >= 16).then(|| SigningKey(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// A token that says this.
    pub fn sign(&self, claims: &Claims) -> String {
        let payload = serde_json::to_vec(claims).expect("texts and numbers are always JSON");
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(br#"{"alg":"HS256","typ":"JWT"}"#),
            URL_SAFE_NO_PAD.encode(payload)
        );
        let signature = hmac::sign(&self.0, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Something that a browser keeps and brings back as it was. It can be read, and not changed.
    pub(crate) fn seal(&self, content: &[u8]) -> String {
        let content = URL_SAFE_NO_PAD.encode(content);
        let signature = hmac::sign(&self.0, sealed(&content).as_bytes());
        format!("{content}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// What was sealed, if nobody has changed it.
    pub(crate) fn unseal(&self, text: &str) -> Option<Vec<u8>> {
        let (content, signature) = text.split_once('.').filter(|_| text.len() <= LONGEST)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        hmac::verify(&self.0, sealed(content).as_bytes(), &signature).ok()?;
        URL_SAFE_NO_PAD.decode(content).ok()
    }

    /// Something that a browser keeps and brings back, which nobody but a server can read.
    pub(crate) fn lock(&self, content: &[u8]) -> Option<String> {
        let nonce: [u8; aead::NONCE_LEN] = crate::auth::password::random();
        let mut sealed = content.to_vec();
        let key = self.cipher()?;
        let own = aead::Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(own, aead::Aad::empty(), &mut sealed).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// What was locked, if nobody has changed it.
    pub(crate) fn unlock(&self, text: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|_| text.len() <= LONGEST)?;
        let (nonce, sealed) = bytes.split_at_checked(aead::NONCE_LEN)?;
        let nonce = aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let opened = self.cipher()?.open_in_place(nonce, aead::Aad::empty(), &mut sealed).ok()?;
        Some(opened.to_vec())
    }

    /// A key of its own for what is locked: none that signs is used for anything else.
    fn cipher(&self) -> Option<aead::LessSafeKey> {
        let derived = hmac::sign(&self.0, b"baton: what a browser keeps locked");
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, derived.as_ref()).ok()?;
        Some(aead::LessSafeKey::new(key))
    }

    /// What a token says, if it is ours and counts now.
    ///
    /// # Errors
    /// Why it does not.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        if token.len() > LONGEST {
            return Err(TokenError::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| TokenError::Malformed)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return Err(TokenError::Algorithm);
        }
        hmac::verify(&self.0, signed.as_bytes(), &decode(signature)?).map_err(|_| TokenError::Signature)?;
        let claims: Claims = serde_json::from_slice(&decode(payload)?).map_err(|_| TokenError::Malformed)?;
        if claims.iss != ISSUER {
            return Err(TokenError::Issuer);
        }
        let second = now.as_second();
        if claims.exp.is_some_and(|end| end <= second) {
            return Err(TokenError::Expired);
        }
        if claims.nbf.max(claims.iat) > second.saturating_add(SKEW) {
            return Err(TokenError::Early);
        }
        if claims.jti.is_empty() && !claims.sub.starts_with("proj:") {
            return Err(TokenError::Nameless);
        }
        Ok(claims)
    }
}

/// What is signed of something sealed: no token, which has a point in another place, is taken for one.
fn sealed(content: &str) -> String {
    format!("sealed:{content}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::new(b"0123456789abcdef0123456789abcdef").expect("a key")
    }

    fn claims() -> Claims {
        let [iss, sub, jti] = [ISSUER, "alice:login", "one"].map(str::to_owned);
        Claims { iss, sub, iat: 100, nbf: 100, exp: Some(200), jti }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a second")
    }

    #[test]
    fn a_token_says_what_it_was_signed_for() {
        let token = key().sign(&claims());
        assert_eq!(key().verify(&token, at(150)), Ok(claims()));
        assert_eq!(claimed_issuer(&token).as_deref(), Some(ISSUER));
    }

    #[test]
    fn a_token_counts_only_in_its_time() {
        let token = key().sign(&claims());
        assert_eq!(key().verify(&token, at(200)), Err(TokenError::Expired));
        assert_eq!(key().verify(&token, at(90)), Err(TokenError::Early));
        assert!(key().verify(&token, at(97)).is_ok(), "clocks differ a little");
        let endless = key().sign(&Claims { exp: None, ..claims() });
        assert!(key().verify(&endless, at(1_000_000)).is_ok());
    }

    #[test]
    fn nothing_but_our_signature_counts() {
        let other = SigningKey::new(b"another key of another server!!!").expect("a key");
        assert_eq!(key().verify(&other.sign(&claims()), at(150)), Err(TokenError::Signature));
        let token = key().sign(&claims());
        let mut parts = token.split('.').map(str::to_owned).collect::<Vec<_>>();
        parts[1] = URL_SAFE_NO_PAD.encode(r#"{"iss":"argocd","sub":"admin:login","jti":"x","iat":100}"#);
        assert_eq!(key().verify(&parts.join("."), at(150)), Err(TokenError::Signature));
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS384"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"alg":"HS256","crit":["x"]}"#,
        ] {
            let forged = format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), parts[1]);
            assert_eq!(key().verify(&forged, at(150)), Err(TokenError::Algorithm), "{header}");
        }
        for broken in ["", ".", "..", "a.b", "a.b.c", "....", &"x".repeat(LONGEST + 1)] {
            assert_eq!(key().verify(broken, at(150)), Err(TokenError::Malformed), "{broken:.20}");
        }
    }

    #[test]
    fn a_token_of_another_issuer_or_without_a_name_is_none_of_ours() {
        let token = key().sign(&Claims { iss: "https://sso".to_owned(), ..claims() });
        assert_eq!(key().verify(&token, at(150)), Err(TokenError::Issuer));
        let token = key().sign(&Claims { jti: String::new(), ..claims() });
        assert_eq!(key().verify(&token, at(150)), Err(TokenError::Nameless));
        assert!(SigningKey::new(b"short").is_none());
    }

    #[test]
    fn what_is_sealed_comes_back_as_it_was_or_not_at_all() {
        let sealed = key().seal(b"text");
        assert_eq!(key().unseal(&sealed).as_deref(), Some(&b"text"[..]));
        let other = SigningKey::new(b"another key of another server!!!").expect("a key");
        let (_, signature) = sealed.split_once('.').expect("two parts");
        let changed = format!("{}.{signature}", URL_SAFE_NO_PAD.encode("other"));
        for text in [other.seal(b"text"), changed, key().sign(&claims()), String::new(), ".".to_owned()] {
            assert_eq!(key().unseal(&text), None, "{text}");
        }
        assert!(key().verify(&sealed, at(150)).is_err());
    }
}
