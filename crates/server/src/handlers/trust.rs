//! Whom sources are believed to come from: keys of hosts, certificates, and keys that sign commits.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::applications::{ATTEMPTS, busy};
use crate::audit::Deed;
use crate::configuration::texts;
use crate::error::{Code, Error};
use crate::objects::{CONFIG_MAPS, text};
use crate::registered::Texts;
use crate::registered::certificates::{self, CertificateQuery, CertificateRequest};
use crate::registered::openpgp::{self, PublicKey};
use crate::server::{Context, Server};

/// Keys of hosts, as `known_hosts` of SSH.
const KNOWN_HOSTS: (&str, &str) = ("argocd-ssh-known-hosts-cm", "ssh_known_hosts");
/// Certificates by the host they are for.
const CERTIFICATES: &str = "argocd-tls-certs-cm";
/// Keys that sign commits, by their ids.
const KEYS: &str = "argocd-gpg-keys-cm";

/// A key that signs commits, as it shall be known.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyRequest {
    /// The key, in its BEGIN and END lines.
    pub key_data: String,
}

impl Server {
    /// Certificates and keys of hosts, without their data.
    ///
    /// # Errors
    /// The caller may not, or the API cannot be read.
    pub async fn certificates(&self, context: &Context, query: &CertificateQuery) -> Result<Value, Error> {
        self.demand(context, "certificates", "get", "*")?;
        let (hosts, servers) = futures::try_join!(self.map(KNOWN_HOSTS.0), self.map(CERTIFICATES))?;
        let hosts = texts(hosts.as_ref()).remove(KNOWN_HOSTS.1).unwrap_or_default();
        let is = |wanted: &str, found: &Value| matches!(wanted, "" | "*") || found.as_str() == Some(wanted);
        let meant = |one: &Value| {
            let name = one["serverName"].as_str().unwrap_or_default();
            (matches!(&*query.host, "" | "*") || name.contains(query.host.trim_matches('*')))
                && is(&query.kind, &one["certType"])
                && is(&query.algorithm, &one["certSubType"])
        };
        let items = certificates::listed(&hosts, &texts(servers.as_ref())).into_iter();
        Ok(json!({"metadata": {}, "items": items.filter(meant).collect::<Vec<_>>()}))
    }

    /// Adds certificates and keys of hosts; with `upsert` those of the same place are replaced.
    ///
    /// # Errors
    /// The caller may not, one cannot be read, or there is another of the same place.
    pub async fn create_certificates(
        &self,
        context: &Context,
        request: &CertificateRequest,
        upsert: bool,
    ) -> Result<Value, Error> {
        self.demand(context, "certificates", "create", "*")?;
        let wanted = certificates::read(request)?;
        let change = |hosts: &str, servers: &Texts| certificates::added(hosts, servers, &wanted, upsert);
        self.change_certificates(context, "create certificates", change).await
    }

    /// Takes away certificates and keys of hosts: those whose host a glob means.
    ///
    /// # Errors
    /// The caller may not, or nothing says which.
    pub async fn delete_certificates(
        &self,
        context: &Context,
        query: &CertificateQuery,
    ) -> Result<Value, Error> {
        self.demand(context, "certificates", "delete", "*")?;
        if query.host.is_empty() {
            return Err(Error::invalid("hostNamePattern: say of which hosts; * are all"));
        }
        let change = |hosts: &str, servers: &Texts| certificates::removed(hosts, servers, query);
        self.change_certificates(context, "delete certificates", change).await
    }

    async fn change_certificates(
        &self,
        context: &Context,
        verb: &'static str,
        change: impl Fn(&str, &Texts) -> Result<(String, Texts, Vec<Value>), Error>,
    ) -> Result<Value, Error> {
        let (hosts, servers) = futures::try_join!(self.map(KNOWN_HOSTS.0), self.map(CERTIFICATES))?;
        let known = texts(hosts.as_ref()).remove(KNOWN_HOSTS.1).unwrap_or_default();
        let by_host = texts(servers.as_ref());
        let (lines, certificates, touched) = change(&known, &by_host)?;
        let names: Vec<&str> = touched.iter().filter_map(|one| one["serverName"].as_str()).collect();
        let deed = self.trust_deed(verb, KNOWN_HOSTS.0, "certificates", &names.join(", "));
        let result = async {
            if lines.trim() != known.trim() {
                let after = Texts::from([(KNOWN_HOSTS.1.to_owned(), lines)]);
                self.write_map(KNOWN_HOSTS.0, hosts.as_ref(), &after).await?;
            }
            if certificates != by_host {
                self.write_map(CERTIFICATES, servers.as_ref(), &certificates).await?;
            }
            Ok(json!({"metadata": {}, "items": touched}))
        };
        let result = result.await;
        self.audited(context, deed, result).await
    }

    /// Keys that sign commits, by their ids.
    ///
    /// # Errors
    /// The caller may not, or the API cannot be read.
    pub async fn keys(&self, context: &Context, id: &str) -> Result<Value, Error> {
        let known = self.known_keys(context).await?.into_iter();
        let meant = known.filter(|(known, _)| id.is_empty() || known == id);
        let items: Vec<Value> = meant.map(|(id, armor)| told(&id, &armor)).collect();
        Ok(json!({"metadata": {}, "items": items}))
    }

    /// One key that signs commits, as it is written.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn key(&self, context: &Context, id: &str) -> Result<Value, Error> {
        let data = self.known_keys(context).await?.remove(id);
        let data = data.ok_or_else(|| Error::not_found(format!("no such key: {id}")))?;
        let mut told = told(id, &data);
        told["keyData"] = data.into();
        Ok(told)
    }

    /// Makes keys known that sign commits. Those that are known are left as they are, unless they are to be replaced.
    ///
    /// # Errors
    /// The caller may not, or they cannot be read.
    pub async fn create_keys(
        &self,
        context: &Context,
        request: &KeyRequest,
        upsert: bool,
    ) -> Result<Value, Error> {
        self.demand(context, "gpgkeys", "create", "*")?;
        let keys = openpgp::read(&request.key_data);
        let keys = keys.map_err(|what| Error::invalid(format!("keyData: {what}")))?;
        let names: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
        let deed = self.trust_deed("create keys", KEYS, "gpgkeys", &names.join(", "));
        let result = self.add_keys(&keys, upsert).await;
        self.audited(context, deed, result).await
    }

    /// Has a key known no longer.
    ///
    /// # Errors
    /// The caller may not, or there is none.
    pub async fn delete_key(&self, context: &Context, id: &str) -> Result<Value, Error> {
        self.demand(context, "gpgkeys", "delete", "*")?;
        let deed = self.trust_deed("delete keys", KEYS, "gpgkeys", &id.chars().take(60).collect::<String>());
        let result = async {
            let map = self.map(KEYS).await?;
            let mut known = texts(map.as_ref());
            known.remove(id).ok_or_else(|| Error::not_found(format!("no such key: {id}")))?;
            self.write_map(KEYS, map.as_ref(), &known).await?;
            Ok(json!({}))
        };
        let result = result.await;
        self.audited(context, deed, result).await
    }

    async fn add_keys(&self, keys: &[PublicKey], upsert: bool) -> Result<Value, Error> {
        for _ in 0..ATTEMPTS {
            let map = self.map(KEYS).await?;
            let mut known = texts(map.as_ref());
            let (mut created, mut skipped) = (Vec::new(), Vec::new());
            for key in keys {
                if known.contains_key(&key.id) && !upsert {
                    skipped.push(key.id.as_str());
                } else {
                    known.insert(key.id.clone(), key.armor.clone());
                    created.push(told(&key.id, &key.armor));
                }
            }
            let written = match created.is_empty() {
                true => Ok(()),
                false => self.write_map(KEYS, map.as_ref(), &known).await,
            };
            match written {
                Err(error) if matches!(error.code, Code::Aborted | Code::AlreadyExists) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    return Ok(json!({"created": {"metadata": {}, "items": created}, "skipped": skipped}));
                }
            }
        }
        Err(busy(KEYS))
    }

    async fn known_keys(&self, context: &Context) -> Result<Texts, Error> {
        self.demand(context, "gpgkeys", "get", "*")?;
        Ok(texts(self.map(KEYS).await?.as_ref()))
    }

    async fn map(&self, name: &str) -> Result<Option<Value>, Error> {
        self.objects(CONFIG_MAPS, &self.0.settings.namespace).find(name).await
    }

    /// Makes a ConfigMap hold these texts: the one that was read and no newer one, or a new one.
    async fn write_map(&self, name: &str, there: Option<&Value>, after: &Texts) -> Result<(), Error> {
        let maps = self.objects(CONFIG_MAPS, &self.0.settings.namespace);
        let Some(there) = there else {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": name, "namespace": self.0.settings.namespace,
                    "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"},
                },
                "data": after,
            });
            return maps.create(&object, false).await.map(drop);
        };
        let before = texts(Some(there));
        let mut data: Map<String, Value> = Map::new();
        for (key, text) in after.iter().filter(|(key, text)| before.get(*key) != Some(*text)) {
            data.insert(key.clone(), text.as_str().into());
        }
        // Of known hosts only the one text is ours.
        let owns = name != KNOWN_HOSTS.0;
        for key in before.keys().filter(|key| owns && !after.contains_key(*key)) {
            data.insert(key.clone(), Value::Null);
        }
        let version = text(there, "/metadata/resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
        maps.merge(name, &patch).await.map(drop)
    }

    fn trust_deed(&self, verb: &'static str, map: &str, resource: &'static str, detail: &str) -> Deed {
        let mut deed = self.registry_deed(verb, map, (resource, "*".to_owned()), detail);
        deed.object.kind = "ConfigMap";
        deed
    }
}

/// What is told of a key that signs commits. What cannot be read is told by the id it stands under.
fn told(id: &str, armor: &str) -> Value {
    match openpgp::read(armor).ok().and_then(|keys| keys.into_iter().next()) {
        Some(key) => json!({
            "keyID": id, "fingerprint": key.fingerprint, "owner": key.owner, "subType": key.algorithm,
            "trust": "unknown",
        }),
        None => json!({"keyID": id}),
    }
}
