//! What a browser is sent to its issuer with, and what it must bring back.
//!
//! What belongs to one sign-in is kept by the browser, sealed, in a cookie of its own: no server has to remember it, and
//! only the browser that began can end it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Provider;
use crate::auth::token::SigningKey;
use crate::error::{Code, Error};

/// Name of the cookie.
const NAME: &str = "argocd.oauthstate";
/// How long a person may take at the issuer, in seconds.
const LASTS: i64 = 600;
/// Where the issuer sends the browser back to, below the URL of this server.
const CALLBACK: &str = "/auth/callback";
/// Longest path that is gone back to.
const LONGEST_RETURN: usize = 1024;
/// What stands in a query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A sign-in that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    state: String,
    /// What the token must say.
    pub(crate) nonce: String,
    /// What proves that whoever brings the code asked for it.
    pub(crate) verifier: String,
    /// Where the browser goes in the end.
    pub(crate) back: String,
    until: i64,
}

/// What the issuer sends the browser back with.
#[derive(Debug, Default)]
pub(crate) struct Brought<'q> {
    pub(crate) state: &'q str,
    pub(crate) code: &'q str,
    pub(crate) error: &'q str,
}

// === impl Begun ===

impl Begun {
    /// A new sign-in, after which the browser goes back to a page of ours.
    pub(crate) fn new(url: &str, back: &str, now: Timestamp) -> Begun {
        let random = || URL_SAFE_NO_PAD.encode(rand());
        let until = now.as_second().saturating_add(LASTS);
        Begun { state: random(), nonce: random(), verifier: random(), back: own_path(url, back), until }
    }

    /// Where the browser is sent.
    pub(crate) fn location(&self, provider: &Provider, endpoint: &str, url: &str) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let parameters = [
            ("response_type", "code"),
            ("client_id", &provider.client),
            ("redirect_uri", &callback(url)),
            ("scope", &provider.scopes.join(" ")),
            ("state", &self.state),
            ("nonce", &self.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let written = parameters.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, PLAIN)));
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        format!("{endpoint}{joint}{}", written.join("&"))
    }

    /// The `Set-Cookie` line that makes the browser keep it. A page of another site leads back here, so it is sent along
    /// then too.
    pub(crate) fn kept(&self, key: &SigningKey, secure: bool) -> String {
        let text = serde_json::to_string(self).expect("texts and numbers are always JSON");
        format!("{NAME}={}; Max-Age={LASTS}; {}", key.seal(text.as_bytes()), flags(secure))
    }

    /// The sign-in that a browser kept, if what it brings belongs to it.
    ///
    /// # Errors
    /// It does not, or the issuer has refused.
    pub(crate) fn ended<'h>(
        cookies: impl IntoIterator<Item = &'h str>,
        brought: &Brought<'_>,
        key: &SigningKey,
        now: Timestamp,
    ) -> Result<Begun, Error> {
        let refuse = |why: &str| Error::new(Code::InvalidArgument, format!("cannot sign in: {why}"));
        let mut pairs = cookies.into_iter().flat_map(|line| line.split(';'));
        let sealed = pairs.find_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='));
        let opened = sealed.and_then(|sealed| key.unseal(sealed));
        let begun: Begun = opened
            .and_then(|text| serde_json::from_slice(&text).ok())
            .ok_or_else(|| refuse("this browser has not begun to, or its cookies are off; begin again"))?;
        if begun.until <= now.as_second() {
            return Err(refuse("it took too long; begin again"));
        }
        // Sealed and of one use: nobody learns it by guessing.
        if begun.state != brought.state {
            return Err(refuse("it was begun by another page; begin again"));
        }
        match (brought.error, brought.code) {
            ("", "") => Err(refuse("the issuer has sent no code")),
            ("", _) => Ok(begun),
            (error, _) => Err(refuse(&format!("the issuer says {:?}", shortened(error)))),
        }
    }
}

/// The `Set-Cookie` line that makes a browser forget it.
pub(crate) fn forgotten(secure: bool) -> String {
    format!("{NAME}=; Max-Age=0; {}", flags(secure))
}

/// Where the issuer sends browsers back to.
pub(crate) fn callback(url: &str) -> String {
    format!("{}{CALLBACK}", url.trim_end_matches('/'))
}

fn flags(secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("Path=/auth; SameSite=Lax; HttpOnly{secure}")
}

/// A path of ours, or our first page: nobody is sent elsewhere.
fn own_path(url: &str, back: &str) -> String {
    let url = url.trim_end_matches('/');
    let path = back.strip_prefix(url).filter(|_| !url.is_empty()).unwrap_or(back);
    let tricky = |byte: u8| byte == b'\\' || byte.is_ascii_control() || !byte.is_ascii();
    let own = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= LONGEST_RETURN
        && !path.bytes().any(tricky);
    if own { path.to_owned() } else { "/".to_owned() }
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

fn rand() -> [u8; 32] {
    let (one, two) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(one.as_bytes());
    bytes[16..].copy_from_slice(two.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://baton.example.com";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a second")
    }

    fn key() -> SigningKey {
        SigningKey::new(b"0123456789abcdef0123456789abcdef").expect("a key")
    }

    #[test]
    fn a_browser_ends_what_it_has_begun() {
        let begun = Begun::new(URL, "/applications", at(100));
        let line = begun.kept(&key(), true);
        assert!(line.ends_with("; Max-Age=600; Path=/auth; SameSite=Lax; HttpOnly; Secure"), "{line}");
        let cookie = line.split(';').next().expect("a pair").to_owned();
        let brought = |state: &'static str| Brought { state, code: "code", error: "" };
        let state: &'static str = begun.state.clone().leak();
        assert_eq!(Begun::ended([cookie.as_str()], &brought(state), &key(), at(699)), Ok(begun));
        let wrong = [
            ("", brought(state), 100, "has not begun"),
            ("argocd.oauthstate=e30.x", brought(state), 100, "has not begun"),
            (cookie.as_str(), brought("other"), 100, "begun by another page"),
            (cookie.as_str(), brought(state), 700, "took too long"),
            (cookie.as_str(), Brought { code: "", ..brought(state) }, 100, "no code"),
            (cookie.as_str(), Brought { error: "access_denied", ..brought(state) }, 100, "access_denied"),
        ];
        for (cookie, brought, second, words) in wrong {
            let error = Begun::ended([cookie], &brought, &key(), at(second)).expect_err(words);
            assert!(error.message.contains(words), "{error:?}");
        }
    }

    #[test]
    fn the_issuer_is_asked_for_a_code_that_only_we_can_use() {
        let provider = Provider::read("issuer: https://sso.example.com\nclientID: a b", &Default::default());
        let begun = Begun { verifier: "v".to_owned(), ..Begun::new(URL, "/", at(0)) };
        let location = begun.location(&provider.expect("a provider"), "https://sso.example.com/go?x=1", URL);
        assert!(location.starts_with("https://sso.example.com/go?x=1&response_type=code&client_id=a%20b&"));
        assert!(location.contains("redirect_uri=https%3A%2F%2Fbaton.example.com%2Fauth%2Fcallback&"));
        // The digest of "v".
        assert!(
            location.contains("&code_challenge=TJRIXgwhrmxBzh3-e2v6zupato5AokdvUCCOUm9QYIA&"),
            "{location}"
        );
        assert!(location.ends_with("&code_challenge_method=S256") && location.contains(&begun.nonce));
    }

    #[test]
    fn nobody_is_sent_elsewhere_in_the_end() {
        for (back, expected) in [
            ("/applications?x=1", "/applications?x=1"),
            ("https://baton.example.com/approvals", "/approvals"),
            ("https://baton.example.com.evil.com/", "/"),
            ("https://evil.com", "/"),
            ("//evil.com", "/"),
            ("/\\evil.com", "/"),
            ("/a\r\nSet-Cookie: x=y", "/"),
            ("javascript:alert(1)", "/"),
            ("", "/"),
        ] {
            assert_eq!(own_path(URL, back), expected, "{back}");
        }
    }
}
