//! The repositories and credentials that are registered, without what opens them.

use std::collections::BTreeMap;

use baton_api::names::secret::{TYPE_LABEL, TYPE_REPO_CREDS, TYPE_REPOSITORY};
use serde_json::{Map, Value, json};

use super::clusters::scoped;
use crate::configuration::bytes;
use crate::error::Error;
use crate::masking;
use crate::objects::{SECRETS, encoded};
use crate::server::{Context, Server};

/// Texts of a Secret that are told, by what they are told as.
const TEXTS: [(&str, &str); 5] =
    [("name", "name"), ("type", "type"), ("project", "project"), ("proxy", "proxy"), ("noProxy", "noProxy")];
/// Words of a Secret that are told.
const FLAGS: [(&str, &str); 6] = [
    ("insecure", "insecure"),
    ("enableLfs", "enableLfs"),
    ("enableOCI", "enableOCI"),
    ("insecureOCIForceHttp", "insecureOCIForceHttp"),
    ("forceHttpBasicAuth", "forceHttpBasicAuth"),
    ("useAzureWorkloadIdentity", "useAzureWorkloadIdentity"),
];

impl Server {
    /// The repositories that the caller may see: of one URL, of one project, or all.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn repositories(&self, context: &Context, url: &str, project: &str) -> Result<Value, Error> {
        let found = self.registered(context, TYPE_REPOSITORY, "repo").await?.into_iter();
        let is = |wanted: &str, found: &Value| wanted.is_empty() || found.as_str() == Some(wanted);
        let meant = |one: &Value| is(url, &one["repo"]) && is(project, &one["project"]);
        let items: Vec<Value> = found.filter(meant).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One repository.
    ///
    /// # Errors
    /// The caller may not see it, or there is none: both read the same.
    pub async fn repository(&self, context: &Context, url: &str, project: &str) -> Result<Value, Error> {
        let mut found = self.repositories(context, url, project).await?;
        let first = found["items"].as_array_mut().filter(|items| !items.is_empty());
        first.map(|items| items.swap_remove(0)).ok_or_else(Error::hidden)
    }

    /// The credentials of repositories that the caller may see, by the URLs they are for.
    ///
    /// # Errors
    /// The API cannot be read.
    pub async fn repository_credentials(&self, context: &Context, url: &str) -> Result<Value, Error> {
        let found = self.registered(context, TYPE_REPO_CREDS, "url").await?.into_iter();
        let items: Vec<Value> =
            found.filter(|one| url.is_empty() || one["url"].as_str() == Some(url)).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    async fn registered(&self, context: &Context, kind: &str, name: &str) -> Result<Vec<Value>, Error> {
        let query = format!("labelSelector={}", encoded(&format!("{TYPE_LABEL}={kind}")));
        let secrets = self.objects(SECRETS, &self.0.settings.namespace).list(&query).await?;
        let texts = secrets.iter().map(|secret| bytes(Some(secret)));
        let seen = texts.filter(|texts| {
            let object = scoped(&field(texts, "project"), &field(texts, "url"));
            self.may(context, "repositories", "get", &object)
        });
        let mut items: Vec<Value> = seen.map(|texts| shown(&texts, name)).collect();
        items.sort_by_cached_key(|item| item[name].to_string());
        Ok(items)
    }
}

/// What is told of a Secret: a list of its own, so that nothing is told because it is there. Credentials of the URL are
/// hidden before anybody names it by them.
fn shown(texts: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    let mut told = Map::new();
    told.insert(name.to_owned(), masking::without_credentials(&field(texts, "url")).into());
    for (key, name) in TEXTS {
        let text = field(texts, key);
        if !text.is_empty() {
            told.insert(name.to_owned(), text.into());
        }
    }
    for (key, name) in FLAGS {
        if field(texts, key) == "true" {
            told.insert(name.to_owned(), true.into());
        }
    }
    told.entry("type").or_insert_with(|| "git".into());
    if name == "repo" {
        told.insert("connectionState".to_owned(), json!({"status": "Unknown", "message": ""}));
    }
    Value::Object(told)
}

fn field(texts: &BTreeMap<String, Vec<u8>>, key: &str) -> String {
    texts.get(key).map(|text| String::from_utf8_lossy(text).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_opens_a_repository_is_told() {
        let text = |text: &str| text.as_bytes().to_vec();
        let mut texts: BTreeMap<String, Vec<u8>> = [
            "password",
            "username",
            "sshPrivateKey",
            "bearerToken",
            "tlsClientCertKey",
            "githubAppPrivateKey",
        ]
        .map(|key| (key.to_owned(), text("hush")))
        .into();
        texts.insert("url".to_owned(), text("https://me:hush@git.example.com/a.git"));
        texts.insert("enableLfs".to_owned(), text("true"));
        assert_eq!(
            shown(&texts, "repo"),
            json!({"repo": "https://***@git.example.com/a.git", "type": "git", "enableLfs": true,
                "connectionState": {"status": "Unknown", "message": ""}})
        );
    }
}
