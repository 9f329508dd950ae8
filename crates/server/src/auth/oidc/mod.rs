//! People whom an issuer vouches for: OpenID Connect, with a code and a proof that whoever brings it asked for it (PKCE).
//!
//! The token that a browser or the command line shows is the issuer's own, as in Argo CD. What can be decided without
//! asking anybody is pure: [`Provider`] reads the settings, [`signature`] and [`identity`] judge tokens, [`handshake`]
//! says what is sent to the issuer and what may come back. [`issuer`] asks it.

pub(crate) mod companion;
pub(crate) mod handshake;
pub(crate) mod identity;
pub(crate) mod issuer;
mod signature;

use std::collections::BTreeMap;

use baton_grammar::yaml;
use baton_hooks::Secret;
use serde::Deserialize;
use serde_json::Value;

/// How long groups that the issuer tells are believed where nothing else is set, in seconds.
const BELIEVED: i64 = 300;
/// The longest that may be set.
const LONGEST_BELIEF: i64 = 24 * 3600;
/// What a browser is sent to ask for where nothing else is set.
const SCOPES: [&str; 4] = ["openid", "profile", "email", "groups"];

/// An issuer, as `oidc.config` of `argocd-cm` sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provider {
    /// What people know it by.
    pub(crate) name: String,
    pub(crate) issuer: String,
    pub(crate) client: String,
    /// None for a client that has none and proves itself by PKCE alone.
    pub(crate) secret: Option<Secret>,
    /// The client that the command line is, where it is another.
    pub(crate) cli_client: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// For whom a token may be, besides the two clients.
    pub(crate) audiences: Vec<String>,
    /// Authorities in PEM that vouch for the issuer besides those of the machine.
    pub(crate) root_ca: Option<String>,
    /// Where a browser goes that was signed out.
    pub(crate) logout: Option<String>,
    /// Whether groups are asked for at the issuer, where tokens do not hold them.
    pub(crate) user_info: Option<UserInfo>,
}

/// How groups are asked for at the issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserInfo {
    /// The path below the issuer; the one it names itself where there is none.
    pub(crate) path: Option<String>,
    /// How long what it says is believed, in seconds.
    pub(crate) believed: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    name: String,
    issuer: String,
    #[serde(rename = "clientID")]
    client_id: String,
    client_secret: String,
    #[serde(rename = "cliClientID")]
    cli_client_id: String,
    requested_scopes: Vec<String>,
    allowed_audiences: Vec<String>,
    #[serde(rename = "rootCA")]
    root_ca: String,
    #[serde(rename = "logoutURL")]
    logout_url: String,
    enable_user_info_groups: bool,
    user_info_path: String,
    user_info_cache_expiration: String,
}

impl Provider {
    /// Reads `oidc.config`. A text that begins with `$` stands for a key of `argocd-secret`.
    ///
    /// # Errors
    /// What is wrong with it, for the operator; it holds no secret.
    pub(crate) fn read(text: &str, secrets: &BTreeMap<String, Vec<u8>>) -> Result<Provider, String> {
        let mut documents = yaml::documents(text).map_err(|error| format!("oidc.config: {error}"))?;
        let mut value = documents.pop().filter(|_| documents.is_empty()).unwrap_or(Value::Null);
        let fields = value.as_object_mut().ok_or("oidc.config: it is to be one map")?;
        for (name, value) in fields.iter_mut() {
            let Some(key) = value.as_str().and_then(|text| text.strip_prefix('$')) else { continue };
            let found = secrets.get(key).and_then(|bytes| std::str::from_utf8(bytes).ok());
            let found =
                found.ok_or_else(|| format!("oidc.config: {name}: argocd-secret has no key {key}"))?;
            *value = found.trim().into();
        }
        let written: Written =
            serde_json::from_value(value).map_err(|error| format!("oidc.config: {error}"))?;
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let issuer = written.issuer.trim_end_matches('/').to_owned();
        let local = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"];
        if !issuer.starts_with("https://") && !local.iter().any(|start| issuer.starts_with(start)) {
            return Err("oidc.config: issuer: it is to be an https URL".to_owned());
        }
        if written.client_id.is_empty() {
            return Err("oidc.config: clientID: it is to be the name of the client at the issuer".to_owned());
        }
        let believed = match written.user_info_cache_expiration.as_str() {
            "" => BELIEVED,
            text => match text.parse::<baton_grammar::duration::Duration>() {
                Ok(long) if long.nanoseconds() >= 0 => {
                    (long.nanoseconds() / 1_000_000_000).min(LONGEST_BELIEF)
                }
                _ => {
                    return Err(
                        "oidc.config: userInfoCacheExpiration: it is to be a duration, as 5m".to_owned()
                    );
                }
            },
        };
        let path = given(written.user_info_path);
        if path.as_ref().is_some_and(|path| !path.starts_with('/') || path.starts_with("//")) {
            return Err("oidc.config: userInfoPath: it is to be a path below the issuer".to_owned());
        }
        let user_info = written.enable_user_info_groups.then_some(UserInfo { path, believed });
        let scopes = match written.requested_scopes.is_empty() {
            true => SCOPES.map(str::to_owned).to_vec(),
            false => written.requested_scopes,
        };
        Ok(Provider {
            name: given(written.name).unwrap_or_else(|| issuer.clone()),
            // As it is written: tokens name it so.
            issuer: written.issuer,
            client: written.client_id,
            secret: given(written.client_secret).map(Secret::new),
            cli_client: given(written.cli_client_id),
            scopes,
            audiences: written.allowed_audiences,
            root_ca: given(written.root_ca),
            logout: given(written.logout_url),
            user_info,
        })
    }

    /// Whether a token may be for somebody.
    fn serves(&self, audience: &str) -> bool {
        audience == self.client
            || self.cli_client.as_deref() == Some(audience)
            || self.audiences.iter().any(|known| known == audience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Provider, String> {
        let secrets = [("oidc.secret".to_owned(), b"hush\n".to_vec())];
        Provider::read(text, &secrets.into_iter().collect())
    }

    #[test]
    fn an_issuer_is_read_as_argo_cd_writes_it() {
        let provider = read(
            "name: Okta\nissuer: https://dev.example.com/\nclientID: web\nclientSecret: $oidc.secret\n\
             cliClientID: cli\nrequestedScopes: [openid, groups]\n",
        )
        .expect("a provider");
        assert_eq!((provider.name.as_str(), provider.issuer.as_str()), ("Okta", "https://dev.example.com/"));
        assert_eq!(provider.secret.as_ref().map(Secret::expose), Some("hush"));
        assert_eq!(provider.scopes, ["openid", "groups"]);
        assert!(["web", "cli"].iter().all(|name| provider.serves(name)) && !provider.serves("other"));
        assert!(!format!("{provider:?}").contains("hush"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field() {
        for (text, words) in [
            ("issuer: http://sso.example.com\nclientID: web", "issuer: it is to be an https URL"),
            ("issuer: https://sso.example.com", "clientID: it is to be"),
            ("issuer: https://sso.example.com\nclientID: web\nclientSecret: $gone", "has no key gone"),
            (
                "issuer: https://sso.example.com\nclientID: web\nuserInfoPath: evil",
                "userInfoPath: it is to be a path",
            ),
            (
                "issuer: https://sso.example.com\nclientID: web\nuserInfoCacheExpiration: x",
                "it is to be a duration",
            ),
            ("[]", "it is to be one map"),
            ("a: [", "oidc.config: "),
            ("issuer: [x]\nclientID: web", "oidc.config: "),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with("oidc.config: ") && error.contains(words), "{error}");
        }
    }
}
