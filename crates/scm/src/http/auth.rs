//! Who asks.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use ring::digest;

use crate::error::ScmError;
use crate::secret::Secret;

/// A header with a credential, and a name for its owner that tells nothing about it.
#[derive(Clone)]
pub(crate) struct Auth {
    header: Option<(HeaderName, HeaderValue)>,
    identity: Identity,
}

/// Names the owner of a credential: what the host tells one user must not be shown to another, and the rate
/// limit of one says nothing about another's.
pub(crate) type Identity = [u8; 32];

impl Auth {
    pub(crate) fn anonymous() -> Auth {
        Auth { header: None, identity: Identity::default() }
    }

    pub(crate) fn bearer(token: &Secret) -> Result<Auth, ScmError> {
        Auth::new(AUTHORIZATION, &format!("Bearer {}", token.reveal()))
    }

    pub(crate) fn basic(user: &str, password: &Secret) -> Result<Auth, ScmError> {
        let pair = STANDARD.encode(format!("{user}:{}", password.reveal()));
        Auth::new(AUTHORIZATION, &format!("Basic {pair}"))
    }

    /// Gitea's and, with its own header, GitLab's way.
    pub(crate) fn new(name: HeaderName, value: &str) -> Result<Auth, ScmError> {
        let digest = digest::digest(&digest::SHA256, format!("{name}:{value}").as_bytes());
        let mut identity = Identity::default();
        identity.copy_from_slice(digest.as_ref());
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| ScmError::invalid("the token holds characters that a header cannot"))?;
        value.set_sensitive(true);
        Ok(Auth { header: Some((name, value)), identity })
    }

    /// The same credential under the name of an owner who changes credentials now and then.
    pub(crate) fn owned_by(mut self, owner: &str) -> Auth {
        self.identity.copy_from_slice(digest::digest(&digest::SHA256, owner.as_bytes()).as_ref());
        self
    }

    pub(crate) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.header.clone()
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(…)")
    }
}
