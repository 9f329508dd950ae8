//! What webhooks are signed with.

use std::collections::BTreeMap;
use std::fmt;

/// The secrets of `argocd-secret` that webhooks prove to know. An empty one asks for no proof.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookSecrets {
    pub(super) github: Secret,
    pub(super) gitlab: Secret,
    pub(super) azure_username: Secret,
    pub(super) azure_password: Secret,
    pub(super) bitbucket_uuid: Secret,
    pub(super) bitbucket_secret: Secret,
    pub(super) bitbucket_server: Secret,
    pub(super) gogs: Secret,
}

/// Bytes that are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Secret(Box<[u8]>);

// === impl WebhookSecrets ===

impl WebhookSecrets {
    /// Reads the data of `argocd-secret`.
    ///
    /// A value `$key` stands for another key of the same Secret, `$name:key` for a key of another one, which `other`
    /// looks up; a value that leads nowhere stands for itself. `webhook.bitbucket.secret` is an addition to Argo CD's
    /// keys: Bitbucket Cloud can sign since Argo CD settled for its UUID.
    pub fn read(
        data: &BTreeMap<String, Vec<u8>>,
        other: impl Fn(&str, &str) -> Option<Vec<u8>>,
    ) -> WebhookSecrets {
        let secret = |key: &str| {
            let Some(value) = data.get(key) else { return Secret::default() };
            let reference = std::str::from_utf8(value).ok().and_then(|text| text.trim().strip_prefix('$'));
            let found = reference.and_then(|reference| match reference.split_once(':') {
                Some((name, key)) => other(name, key),
                None => data.get(reference).cloned(),
            });
            Secret(found.unwrap_or_else(|| value.clone()).into())
        };
        WebhookSecrets {
            github: secret("webhook.github.secret"),
            gitlab: secret("webhook.gitlab.secret"),
            azure_username: secret("webhook.azuredevops.username"),
            azure_password: secret("webhook.azuredevops.password"),
            bitbucket_uuid: secret("webhook.bitbucket.uuid"),
            bitbucket_secret: secret("webhook.bitbucket.secret"),
            bitbucket_server: secret("webhook.bitbucketserver.secret"),
            gogs: secret("webhook.gogs.secret"),
        }
    }

    /// The secret of Gitea and Gogs. Argo CD's ApplicationSet controller takes Gitea for GitHub, so whoever set it up
    /// that way has GitHub's secret.
    pub(super) fn gitea(&self) -> &Secret {
        if self.gogs.is_empty() { &self.github } else { &self.gogs }
    }
}

// === impl Secret ===

impl Secret {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "unset" } else { "[redacted]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_followed_and_nothing_is_shown() {
        let data = [
            ("webhook.github.secret", "$own"),
            ("own", "hunter2"),
            ("webhook.gitlab.secret", "$other:key"),
            ("webhook.gogs.secret", "$nowhere"),
        ];
        let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into();
        let secrets = WebhookSecrets::read(&data, |name, key| {
            (name == "other" && key == "key").then(|| b"elsewhere".to_vec())
        });
        assert_eq!(secrets.github.bytes(), b"hunter2");
        assert_eq!(secrets.gitlab.bytes(), b"elsewhere");
        assert_eq!(secrets.gogs.bytes(), b"$nowhere");
        assert!(secrets.bitbucket_uuid.is_empty());
        let shown = format!("{secrets:?}");
        assert!(!shown.contains("hunter2") && shown.contains("[redacted]"), "{shown}");
    }
}
