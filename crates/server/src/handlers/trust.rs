//! Whom sources are believed to come from: keys of hosts, certificates, and keys that sign commits.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::configuration::texts;
use crate::error::Error;
use crate::objects::CONFIG_MAPS;
use crate::server::{Context, Server};

/// Keys of hosts, as `known_hosts` of SSH.
const KNOWN_HOSTS: (&str, &str) = ("argocd-ssh-known-hosts-cm", "ssh_known_hosts");
/// Certificates by the host they are for.
const CERTIFICATES: &str = "argocd-tls-certs-cm";
/// Keys that sign commits, by their ids.
const KEYS: &str = "argocd-gpg-keys-cm";

/// Which certificates are meant.
#[derive(Debug, Clone, Default)]
pub struct CertificateQuery {
    /// Of hosts with this in their name.
    pub host: String,
    /// `ssh`, `https`, or both where it is empty or `*`.
    pub kind: String,
    /// Of this algorithm, for keys of hosts.
    pub algorithm: String,
}

impl Server {
    /// Certificates and keys of hosts, without their data.
    ///
    /// # Errors
    /// The caller may not, or the API cannot be read.
    pub async fn certificates(&self, context: &Context, query: &CertificateQuery) -> Result<Value, Error> {
        self.demand(context, "certificates", "get", "*")?;
        let maps = self.objects(CONFIG_MAPS, &self.0.settings.namespace);
        let (hosts, certificates) = futures::try_join!(maps.find(KNOWN_HOSTS.0), maps.find(CERTIFICATES))?;
        let hosts = texts(hosts.as_ref()).remove(KNOWN_HOSTS.1).unwrap_or_default();
        let certificates = texts(certificates.as_ref()).into_keys();
        let of_hosts = hosts.lines().filter_map(host);
        let of_servers = certificates.map(|server| {
            json!({"serverName": server, "certType": "https", "certSubType": "", "certInfo": "", "certData": null})
        });
        let is = |wanted: &str, found: &Value| matches!(wanted, "" | "*") || found.as_str() == Some(wanted);
        let meant = |one: &Value| {
            let name = one["serverName"].as_str().unwrap_or_default();
            (matches!(&*query.host, "" | "*") || name.contains(query.host.trim_matches('*')))
                && is(&query.kind, &one["certType"])
                && is(&query.algorithm, &one["certSubType"])
        };
        let items: Vec<Value> = of_hosts.chain(of_servers).filter(meant).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// Keys that sign commits, by their ids.
    ///
    /// # Errors
    /// The caller may not, or the API cannot be read.
    pub async fn keys(&self, context: &Context, id: &str) -> Result<Value, Error> {
        let known = self.known_keys(context).await?.into_keys();
        let items: Vec<Value> =
            known.filter(|known| id.is_empty() || known == id).map(|id| json!({"keyID": id})).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One key that signs commits, as it is written.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn key(&self, context: &Context, id: &str) -> Result<Value, Error> {
        let data = self.known_keys(context).await?.remove(id);
        let data = data.ok_or_else(|| Error::not_found(format!("no such key: {id}")))?;
        Ok(json!({"keyID": id, "keyData": data}))
    }

    async fn known_keys(
        &self,
        context: &Context,
    ) -> Result<std::collections::BTreeMap<String, String>, Error> {
        self.demand(context, "gpgkeys", "get", "*")?;
        let map = self.objects(CONFIG_MAPS, &self.0.settings.namespace).find(KEYS).await?;
        Ok(texts(map.as_ref()))
    }
}

/// The key of a host, as a line of `known_hosts` has it.
fn host(line: &str) -> Option<Value> {
    let mut words = line.split_whitespace().filter(|_| !line.trim_start().starts_with('#'));
    let (name, algorithm, key) = (words.next()?, words.next()?, words.next()?);
    let digest = Sha256::digest(STANDARD.decode(key).ok()?);
    Some(json!({
        "serverName": name, "certType": "ssh", "certSubType": algorithm, "certData": null,
        "certInfo": format!("SHA256:{}", STANDARD_NO_PAD.encode(digest)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_hosts_are_told_by_their_fingerprints() {
        let told = host("git.example.com ssh-ed25519 aGVsbG8= a note").expect("a key");
        assert_eq!(told["certInfo"], "SHA256:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ");
        assert_eq!(told["certSubType"], "ssh-ed25519");
        for line in ["# git.example.com ssh-ed25519 aGVsbG8=", "", "git.example.com", "a b ???"] {
            assert_eq!(host(line), None, "{line}");
        }
    }
}
