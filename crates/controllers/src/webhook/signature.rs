//! Whether a webhook knows the secret. Comparisons take the same time wherever the first difference is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::hmac;

use super::event::WebhookError;
use super::secrets::Secret;

/// A hash that signatures are made with.
#[derive(Clone, Copy)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// Checks a signature in hexadecimal, its hash named before it (`sha256=`) or not.
pub(super) fn signed(hash: Hash, secret: &Secret, body: &[u8], signature: &str) -> Result<(), WebhookError> {
    let (algorithm, prefix) = match hash {
        Hash::Sha1 => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, "sha1="),
        Hash::Sha256 => (hmac::HMAC_SHA256, "sha256="),
    };
    let signature = unhex(signature.strip_prefix(prefix).unwrap_or(signature));
    let key = hmac::Key::new(algorithm, secret.bytes());
    let genuine = signature.is_some_and(|signature| hmac::verify(&key, body, &signature).is_ok());
    if genuine { Ok(()) } else { Err(WebhookError::Signature("HMAC verification failed")) }
}

/// Whether a text is the secret.
pub(super) fn same(secret: &Secret, text: &[u8]) -> bool {
    // Tags have one length, so that neither the length nor the place of a difference shows in the time taken.
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"comparison of secrets");
    hmac::verify(&key, text, hmac::sign(&key, secret.bytes()).as_ref()).is_ok()
}

/// Checks name and password of HTTP's basic authentication.
pub(super) fn basic(headers: &HeaderMap, username: &Secret, password: &Secret) -> bool {
    let Some(value) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else { return false };
    let Some((scheme, credentials)) = value.split_once(' ') else { return false };
    let Ok(credentials) = STANDARD.decode(credentials.trim()) else { return false };
    let Some(colon) = credentials.iter().position(|&byte| byte == b':') else { return false };
    let name = same(username, &credentials[..colon]);
    let word = same(password, &credentials[colon + 1..]);
    scheme.eq_ignore_ascii_case("basic") && name && word
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    bytes.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
