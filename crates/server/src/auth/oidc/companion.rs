//! What a sign-in by an issuer is prolonged with: kept by the browser, encrypted, so that no replica has to remember it.

use baton_hooks::Secret;
use serde::{Deserialize, Serialize};

use crate::auth::token::SigningKey;

/// A token that ends sooner than this, in seconds, is exchanged for a newer one.
pub(crate) const SOON: i64 = 60;

/// What a browser keeps beside the issuer's token.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Companion {
    /// Which sign-in it is, by which it can be ended.
    pub(crate) session: String,
    /// For whom: nobody else's token is prolonged by it.
    pub(crate) subject: String,
    /// What a newer token is given for; none where the issuer gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    /// What the issuer is asked for groups with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access: Option<String>,
    /// When the token ends that it stands beside.
    pub(crate) ends: i64,
    /// Groups as the issuer told them.
    #[serde(default)]
    pub(crate) groups: Vec<String>,
    /// Until when these are believed.
    #[serde(default)]
    pub(crate) believed: i64,
}

// === impl Companion ===

impl Companion {
    pub(crate) fn new(
        subject: &str,
        ends: i64,
        refresh: Option<Secret>,
        access: Option<Secret>,
    ) -> Companion {
        let text = |secret: Option<Secret>| secret.map(|secret| secret.expose().to_owned());
        let session = format!("oidc-session-{}", crate::auth::fresh_id());
        let (subject, refresh, access) = (subject.to_owned(), text(refresh), text(access));
        Companion { session, subject, refresh, access, ends, groups: Vec::new(), believed: 0 }
    }

    /// Whether it is of any use.
    pub(crate) fn is_useful(&self) -> bool {
        self.refresh.is_some() || self.access.is_some() || !self.groups.is_empty()
    }

    /// What a newer token is given for, where one is needed now.
    pub(crate) fn refreshes(&self, now: i64) -> Option<Secret> {
        let refresh = self.refresh.clone().filter(|_| self.ends <= now.saturating_add(SOON));
        refresh.map(Secret::new)
    }

    /// What groups are asked for with, where they are not believed any more.
    pub(crate) fn asks(&self, now: i64) -> Option<Secret> {
        self.access.clone().filter(|_| self.believed <= now).map(Secret::new)
    }

    /// With what came of a renewal; what the issuer does not say stays as it was.
    pub(crate) fn renewed(self, ends: i64, refresh: Option<Secret>, access: Option<Secret>) -> Companion {
        let newer =
            |secret: Option<Secret>, old: Option<String>| secret.map(|one| one.expose().to_owned()).or(old);
        let (refresh, access) = (newer(refresh, self.refresh.clone()), newer(access, self.access.clone()));
        Companion { refresh, access, ends, ..self }
    }

    /// As a browser keeps it.
    pub(crate) fn locked(&self, key: &SigningKey) -> Option<String> {
        key.lock(&serde_json::to_vec(self).ok()?)
    }

    /// What a browser kept.
    pub(crate) fn unlocked(text: &str, key: &SigningKey) -> Option<Companion> {
        serde_json::from_slice(&key.unlock(text)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &[u8]) -> SigningKey {
        SigningKey::new(text).expect("a key")
    }

    #[test]
    fn what_a_browser_keeps_is_read_by_nobody_else_and_changed_by_nobody() {
        let own = key(b"0123456789abcdef0123456789abcdef");
        let kept = Companion::new("u1", 100, Some(Secret::new("hush")), Some(Secret::new("hush")));
        let text = kept.locked(&own).expect("locked");
        assert!(!text.contains("hush") && kept.locked(&own).as_ref() != Some(&text), "each time another");
        assert!(Companion::unlocked(&text, &own) == Some(kept));
        let other = key(b"another key of thirty-two bytes.");
        let mut changed = text.clone().into_bytes();
        changed[20] ^= 1;
        let changed = String::from_utf8_lossy(&changed).into_owned();
        for (text, key) in [(text.as_str(), &other), (changed.as_str(), &own), ("", &own), ("AAAA", &own)] {
            assert!(Companion::unlocked(text, key).is_none());
        }
    }

    #[test]
    fn a_token_is_renewed_shortly_before_it_ends() {
        let kept = Companion::new("u1", 1000, Some(Secret::new("r")), None);
        assert!(kept.refreshes(900).is_none());
        assert_eq!(kept.refreshes(1000 - SOON).as_ref().map(Secret::expose), Some("r"));
        assert_eq!(kept.refreshes(5000).as_ref().map(Secret::expose), Some("r"), "and after its end");
        let newer = kept.renewed(2000, None, Some(Secret::new("a")));
        assert!(newer.refreshes(1500).is_none() && newer.asks(0).is_some());
        assert_eq!(newer.refreshes(2000).as_ref().map(Secret::expose), Some("r"), "what was not told stays");
        assert!(!Companion::new("u1", 1, None, None).is_useful());
    }
}
