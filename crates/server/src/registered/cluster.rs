//! Clusters, as requests and Secrets have them.

use std::collections::BTreeMap;

use baton_clusters::ClusterConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Texts, sound_url};
use crate::error::Error;

/// Most namespaces of a cluster.
const MOST_NAMESPACES: usize = 1000;
/// What of a cluster's `config` lets somebody in.
const OPENS: [&str; 6] =
    ["username", "password", "bearerToken", "awsAuthConfig", "execProviderConfig", "proxyUrl"];
/// The same, of its `tlsClientConfig`.
const OPENS_TLS: [&str; 2] = ["certData", "keyData"];

/// A cluster as it shall be.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRequest {
    /// URL of its API.
    pub server: String,
    /// Its name; the URL where it is empty.
    pub name: String,
    /// Credentials and transport, in the words of Argo CD.
    #[schemars(schema_with = "config_schema")]
    pub config: Value,
    /// The only namespaces that may be looked at; none are all.
    pub namespaces: Option<Vec<String>>,
    /// Whether cluster-scoped objects may be looked at although namespaces are given.
    pub cluster_resources: bool,
    /// The project it belongs to.
    pub project: String,
    /// Which shard of controllers it is for.
    pub shard: Option<i64>,
    /// Labels of its Secret.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of its Secret.
    pub annotations: Option<BTreeMap<String, String>>,
}

fn config_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["object", "null"], "properties": {
        "username": {"type": "string"}, "password": {"type": "string"}, "bearerToken": {"type": "string"},
        "disableCompression": {"type": "boolean"}, "proxyUrl": {"type": "string"},
        "tlsClientConfig": {"type": "object", "properties": {
            "insecure": {"type": "boolean"}, "serverName": {"type": "string"}, "caData": {"type": "string"},
            "certData": {"type": "string"}, "keyData": {"type": "string"}}}}})
}

// === impl ClusterRequest ===

impl ClusterRequest {
    /// The texts of its Secret.
    ///
    /// # Errors
    /// What is wrong with it, without any of its values.
    pub(crate) fn texts(&self) -> Result<Texts, Error> {
        let wrong = |what: &str| Error::invalid(what.to_owned());
        let server = sound_url("server", &self.server)?.trim_end_matches('/').to_owned();
        if !server.starts_with("https://") && !server.starts_with("http://") {
            return Err(wrong("server: it is to be an https or http URL"));
        }
        let line = |text: &str| text.len() <= 1024 && !text.chars().any(char::is_control);
        if !line(&self.name) || !line(&self.project) {
            return Err(wrong("name and project are to be one line each"));
        }
        let name = if self.name.is_empty() { &server } else { &self.name };
        let mut texts = Texts::from([
            ("server".to_owned(), server.clone()),
            ("name".to_owned(), name.clone()),
            ("config".to_owned(), checked(&self.config)?.to_string()),
        ]);
        let namespaces = self.namespaces.as_deref().unwrap_or_default();
        let odd = |name: &String| {
            name.is_empty() || name.len() > 253 || name.contains([',', ' ', '\n', '\r', '\0'])
        };
        if namespaces.len() > MOST_NAMESPACES || namespaces.iter().any(odd) {
            return Err(wrong(
                "namespaces: each is to be the name of a namespace, and there are too many of some",
            ));
        }
        if !namespaces.is_empty() {
            texts.insert("namespaces".to_owned(), namespaces.join(","));
            texts.insert("clusterResources".to_owned(), self.cluster_resources.to_string());
        }
        if !self.project.is_empty() {
            texts.insert("project".to_owned(), self.project.clone());
        }
        if let Some(shard) = self.shard {
            if !(0..=100_000).contains(&shard) {
                return Err(wrong("shard: it is to be a whole number"));
            }
            texts.insert("shard".to_owned(), shard.to_string());
        }
        Ok(texts)
    }
}

/// The `config` of a Secret, of what was sent.
fn checked(config: &Value) -> Result<Value, Error> {
    let config = if config.is_null() { json!({}) } else { config.clone() };
    if !config.is_object() {
        return Err(Error::invalid("config: it is to be an object"));
    }
    // The parser's own words could show a value.
    let read: ClusterConfig = serde_json::from_value(config.clone())
        .map_err(|_| Error::invalid("config: it has not the fields that it is to have"))?;
    let tls = &read.tls_client_config;
    if tls.insecure && !tls.ca_data.is_empty() {
        return Err(Error::invalid("config.tlsClientConfig: insecure and caData exclude each other"));
    }
    if tls.cert_data.is_empty() != tls.key_data.is_empty() {
        return Err(Error::invalid("config.tlsClientConfig: certData and keyData belong together"));
    }
    for (name, text) in [("caData", &tls.ca_data), ("certData", &tls.cert_data), ("keyData", &tls.key_data)] {
        use base64::Engine as _;
        let pem = base64::engine::general_purpose::STANDARD.decode(text.trim()).unwrap_or_default();
        if !text.is_empty() && !String::from_utf8_lossy(&pem).contains("-----BEGIN ") {
            return Err(Error::invalid(format!("config.tlsClientConfig.{name}: it is to be PEM in base64")));
        }
    }
    Ok(config)
}

/// What is stored, once a request is written over it: what it says of these fields, or of all where none are named. What
/// opens the cluster stays where the request brings nothing of it.
///
/// # Errors
/// There is no such field; or what opens it would stay while what protects it on its way changes.
pub(crate) fn changed(stored: &Texts, wanted: &Texts, fields: &[String]) -> Result<Texts, Error> {
    const KNOWN: [&str; 8] =
        ["name", "namespaces", "config", "shard", "clusterResources", "labels", "annotations", "project"];
    if let Some(odd) = fields.iter().find(|field| !KNOWN.contains(&field.as_str())) {
        let odd: String = odd.chars().take(50).collect();
        return Err(Error::invalid(format!("updatedFields: there is no field {odd:?}")));
    }
    let mut changed = stored.clone();
    for name in ["name", "namespaces", "config", "shard", "clusterResources", "project"] {
        if !fields.is_empty() && !fields.iter().any(|field| field == name) {
            continue;
        }
        match wanted.get(name) {
            Some(config) if name == "config" => {
                let before = stored.get(name).map_or("", String::as_str);
                changed.insert(name.to_owned(), reopened(before, config)?);
            }
            Some(text) => drop(changed.insert(name.to_owned(), text.clone())),
            None => drop(changed.remove(name)),
        }
    }
    Ok(changed)
}

/// A `config` with what opens the cluster as it was, where the new one does not say it.
fn reopened(before: &str, after: &str) -> Result<String, Error> {
    let read = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let (old, mut new) = (read(before), read(after));
    let tls = |config: &Map<String, Value>| {
        config.get("tlsClientConfig").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (old_tls, mut new_tls) = (tls(&old), tls(&new));
    let said = |fields: &Map<String, Value>, name: &str| {
        fields.get(name).is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
    };
    if OPENS.iter().any(|name| said(&new, name)) || OPENS_TLS.iter().any(|name| said(&new_tls, name)) {
        return Ok(after.to_owned());
    }
    let opened =
        OPENS.iter().any(|name| said(&old, name)) || OPENS_TLS.iter().any(|name| said(&old_tls, name));
    let trusts = |tls: &Map<String, Value>, name: &str| {
        tls.get(name)
            .cloned()
            .filter(|value| !matches!(value, Value::Null | Value::Bool(false)) && value != "")
    };
    let differs = |name: &str| {
        let (old, new) = (trusts(&old_tls, name), trusts(&new_tls, name));
        // Who is not shown the authorities leaves them out.
        old != new && !(name == "caData" && new.is_none())
    };
    if opened && let Some(name) = ["insecure", "serverName", "caData"].into_iter().find(|name| differs(name))
    {
        let message = format!(
            "config.tlsClientConfig.{name}: send the credentials along, for they would go to somebody else"
        );
        return Err(Error::precondition(message));
    }
    for name in OPENS.iter().filter(|name| said(&old, name)) {
        new.insert((*name).to_owned(), old[*name].clone());
    }
    let unsaid = !said(&new_tls, "caData") && new_tls.get("insecure") != Some(&Value::Bool(true));
    let also = if unsaid { &["caData"][..] } else { &[][..] };
    for name in OPENS_TLS.iter().chain(also).filter(|name| said(&old_tls, name)) {
        new_tls.insert((*name).to_owned(), old_tls[*name].clone());
    }
    new.insert("tlsClientConfig".to_owned(), Value::Object(new_tls));
    Ok(Value::Object(new).to_string())
}

/// Whether a Secret is of the cluster that an id means: its URL, or its name where `by_name`.
pub(crate) fn is_meant(texts: &Texts, id: &str, by_name: bool) -> bool {
    let text = |name: &str| texts.get(name).map_or("", |text| text.trim());
    let server = text("server").trim_end_matches('/');
    match by_name {
        true => id == if text("name").is_empty() { server } else { text("name") },
        false => !server.is_empty() && id.trim_end_matches('/') == server,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: Value) -> ClusterRequest {
        serde_json::from_value(value).expect("a request")
    }

    #[test]
    fn a_cluster_is_stored_in_argo_cds_words() {
        let texts =
            request(json!({"server": "https://c.example.com/", "namespaces": ["a", "b"], "project": "shop",
            "config": {"bearerToken": "hush", "tlsClientConfig": {"insecure": true}}, "shard": 2}))
            .texts()
            .expect("a cluster");
        assert_eq!(
            (texts["server"].as_str(), texts["name"].as_str()),
            ("https://c.example.com", "https://c.example.com")
        );
        assert_eq!((texts["namespaces"].as_str(), texts["clusterResources"].as_str()), ("a,b", "false"));
        assert_eq!((texts["shard"].as_str(), texts["project"].as_str()), ("2", "shop"));
        assert_eq!(texts["config"], r#"{"bearerToken":"hush","tlsClientConfig":{"insecure":true}}"#);
    }

    #[test]
    fn what_is_wrong_is_said_without_its_value() {
        for body in [
            json!({}),
            json!({"server": "ftp://hush"}),
            json!({"server": "https://me:hush@c"}),
            json!({"server": "https://c", "name": "hush\n"}),
            json!({"server": "https://c", "config": "hush"}),
            json!({"server": "https://c", "config": {"bearerToken": ["hush"]}}),
            json!({"server": "https://c", "config": {"tlsClientConfig": {"caData": "hush"}}}),
            json!({"server": "https://c", "config": {"tlsClientConfig": {"certData": "LS0tLS1CRUdJTiBY"}}}),
            json!({"server": "https://c", "namespaces": ["a,hush"]}),
            json!({"server": "https://c", "shard": -1}),
        ] {
            let error = request(body.clone()).texts().expect_err("refused");
            assert!(!error.message.contains("hush"), "{body}: {error}");
        }
    }

    #[test]
    fn what_opens_a_cluster_stays_until_something_else_does() {
        let texts = |config: Value| {
            Texts::from([("config".to_owned(), config.to_string()), ("name".to_owned(), "c".to_owned())])
        };
        let stored =
            texts(json!({"bearerToken": "old", "tlsClientConfig": {"insecure": false, "caData": "ca"}}));
        let config = |wanted: Value, fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            let changed = changed(&stored, &texts(wanted), &fields).expect("changed");
            serde_json::from_str::<Value>(&changed["config"]).expect("JSON")
        };
        let kept = config(json!({"tlsClientConfig": {"insecure": false}}), &[]);
        assert_eq!(
            kept,
            json!({"bearerToken": "old", "tlsClientConfig": {"insecure": false, "caData": "ca"}})
        );
        for tls in [json!({"insecure": true}), json!({"caData": "other"}), json!({"serverName": "x"})] {
            let wanted = texts(json!({"tlsClientConfig": tls}));
            assert!(changed(&stored, &wanted, &[]).is_err(), "the token would go to somebody else: {tls}");
        }
        assert_eq!(
            config(json!({"username": "me", "password": "p"}), &[]),
            json!({"username": "me", "password": "p"})
        );
        let named = config(json!({"bearerToken": "new"}), &["labels"]);
        assert_eq!(named["bearerToken"], "old", "another field is meant");
        assert!(changed(&stored, &stored, &["odd".to_owned()]).is_err());
    }

    #[test]
    fn a_cluster_is_meant_by_its_url_or_its_name() {
        let texts = Texts::from([
            ("server".to_owned(), "https://c/".to_owned()),
            ("name".to_owned(), "n".to_owned()),
        ]);
        assert!(is_meant(&texts, "https://c", false) && is_meant(&texts, "n", true));
        assert!(!is_meant(&texts, "n", false) && !is_meant(&Texts::new(), "", false));
    }
}
