//! Repositories and credentials for them: the fields of requests and of Secrets, which are the same.

use serde_json::{Map, Value, json};

use super::{Texts, sound_url};
use crate::error::Error;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// A text in one line.
    Line,
    /// PEM.
    Pem,
    /// A text of any form.
    Text,
    Flag,
    Number,
}

/// A field of a repository or of credentials.
struct Field {
    name: &'static str,
    sort: Sort,
    /// Whether it opens something: such are written and never told.
    opens: bool,
    /// Whether credentials have it too, which stand for many repositories.
    shared: bool,
}

const fn field(name: &'static str, sort: Sort, opens: bool, shared: bool) -> Field {
    Field { name, sort, opens, shared }
}

const FIELDS: [Field; 25] = [
    field("type", Sort::Line, false, true),
    field("name", Sort::Line, false, false),
    field("project", Sort::Line, false, false),
    field("proxy", Sort::Line, false, true),
    field("noProxy", Sort::Line, false, true),
    field("insecure", Sort::Flag, false, false),
    field("insecureIgnoreHostKey", Sort::Flag, false, false),
    field("enableLfs", Sort::Flag, false, false),
    field("enableOCI", Sort::Flag, false, true),
    field("insecureOCIForceHttp", Sort::Flag, false, true),
    field("forceHttpBasicAuth", Sort::Flag, false, true),
    field("useAzureWorkloadIdentity", Sort::Flag, false, true),
    field("depth", Sort::Number, false, false),
    field("githubAppEnterpriseBaseUrl", Sort::Line, false, true),
    field("username", Sort::Line, true, true),
    field("password", Sort::Line, true, true),
    field("bearerToken", Sort::Line, true, true),
    field("sshPrivateKey", Sort::Pem, true, true),
    field("tlsClientCertData", Sort::Pem, true, true),
    field("tlsClientCertKey", Sort::Pem, true, true),
    field("githubAppPrivateKey", Sort::Pem, true, true),
    field("githubAppID", Sort::Number, true, true),
    field("githubAppInstallationID", Sort::Number, true, true),
    field("gcpServiceAccountKey", Sort::Text, true, true),
    field("azureServicePrincipalClientSecret", Sort::Line, true, true),
];

/// What decides who sees credentials on their way.
const PROTECTS: [&str; 6] = [
    "proxy",
    "noProxy",
    "insecure",
    "insecureIgnoreHostKey",
    "insecureOCIForceHttp",
    "githubAppEnterpriseBaseUrl",
];
/// Longest text of a field.
const LONGEST: usize = 64 << 10;

/// A repository or credentials, as a Secret holds them: `url` and what else is set.
///
/// # Errors
/// What is wrong with the request, without any of its values.
pub(crate) fn read(body: &Value, url: &'static str) -> Result<Texts, Error> {
    let wrong = |name: &str, what: &str| Error::invalid(format!("{name}: {what}"));
    let sent = body.as_object().ok_or_else(|| Error::invalid("the body is to be an object"))?;
    let address = sent.get(url).and_then(Value::as_str).unwrap_or_default();
    let mut texts = Texts::from([("url".to_owned(), sound_url(url, address)?)]);
    for Field { name, sort, .. } in FIELDS.iter().filter(|field| field.belongs(url)) {
        let value = sent.get(*name).unwrap_or(&Value::Null);
        let text = match (value, sort) {
            (Value::Null, _) => continue,
            (Value::Bool(false), Sort::Flag) => continue,
            (Value::Bool(true), Sort::Flag) => "true".to_owned(),
            (Value::Number(number), Sort::Number) => match number.as_i64() {
                Some(0) => continue,
                Some(number) if number > 0 => number.to_string(),
                _ => return Err(wrong(name, "it is to be a whole number above zero")),
            },
            (Value::String(text), Sort::Line | Sort::Pem | Sort::Text) if text.is_empty() => continue,
            (Value::String(text), Sort::Line | Sort::Pem | Sort::Text) => text.clone(),
            _ => return Err(wrong(name, "it is of another kind than it is to be")),
        };
        if text.len() > LONGEST {
            return Err(wrong(name, "it is too long"));
        }
        if text.contains('\0') || (*sort == Sort::Line && text.contains(['\n', '\r'])) {
            return Err(wrong(name, "it is to be one line"));
        }
        if *sort == Sort::Pem && !text.contains("-----BEGIN ") {
            return Err(wrong(name, "it is to be PEM, with its BEGIN and END lines"));
        }
        texts.insert((*name).to_owned(), text);
    }
    check(&texts, url)?;
    Ok(texts)
}

/// Whether anything of these opens a repository.
pub(crate) fn opens(texts: &Texts) -> bool {
    FIELDS.iter().any(|field| field.opens && texts.contains_key(field.name))
}

/// What fits together.
fn check(texts: &Texts, url: &str) -> Result<(), Error> {
    let has = |name: &str| texts.contains_key(name);
    let kind = texts.get("type").map_or("git", String::as_str);
    if !["git", "helm", "oci"].contains(&kind) {
        return Err(Error::invalid("type: it is git, helm or oci"));
    }
    if url == "repo" && kind == "helm" && !has("name") {
        return Err(Error::invalid("name: a repository of charts needs a name"));
    }
    if has("tlsClientCertData") != has("tlsClientCertKey") {
        return Err(Error::invalid("tlsClientCertData and tlsClientCertKey belong together"));
    }
    let app = ["githubAppPrivateKey", "githubAppID"].map(has);
    if app[0] != app[1] {
        return Err(Error::invalid("githubAppPrivateKey and githubAppID belong together"));
    }
    Ok(())
}

/// What is stored, once a request is written over it. What opens the repository is replaced as a whole by what a request
/// brings of it, and stays where it brings nothing: nobody was shown it, so nobody can send it back. What this version
/// does not know stays too.
///
/// # Errors
/// What opens it would stay while what protects it on its way changes: whoever may change a repository would learn it so.
pub(crate) fn changed(stored: &Texts, wanted: Texts) -> Result<Texts, Error> {
    let field = |name: &str| FIELDS.iter().find(|field| field.name == name);
    let opens = |texts: &Texts| texts.keys().any(|name| field(name).is_some_and(|field| field.opens));
    let brings = opens(&wanted);
    let differs = |name: &&&str| stored.get(**name) != wanted.get(**name);
    if opens(stored)
        && !brings
        && let Some(name) = PROTECTS.iter().find(differs)
    {
        let message =
            format!("{name}: send the credentials along, for they would go another way than before");
        return Err(Error::precondition(message));
    }
    let stays = |name: &str| match field(name) {
        Some(field) => field.opens && !brings,
        None => true,
    };
    let kept = stored.iter().filter(|(name, _)| stays(name));
    let mut changed: Texts = kept.map(|(name, text)| (name.clone(), text.clone())).collect();
    changed.extend(wanted);
    Ok(changed)
}

/// What is told of a Secret: a list of its own, so that nothing is told because it is there. Credentials of the URL are
/// hidden before anybody names it by them.
pub(crate) fn shown(texts: &Texts, url: &'static str) -> Value {
    let mut told = Map::new();
    let address = texts.get("url").map(|url| crate::masking::without_credentials(url.trim()));
    told.insert(url.to_owned(), address.unwrap_or_default().into());
    for Field { name, sort, .. } in FIELDS.iter().filter(|field| !field.opens && field.belongs(url)) {
        let text = texts.get(*name).map(|text| text.trim()).filter(|text| !text.is_empty());
        let value = match (sort, text) {
            (_, None) => continue,
            (Sort::Flag, Some("true")) => Value::Bool(true),
            (Sort::Flag, Some(_)) => continue,
            (Sort::Number, Some(text)) => text.parse::<i64>().map_or(Value::Null, Value::from),
            (_, Some(text)) => crate::masking::without_credentials(text).into(),
        };
        told.insert((*name).to_owned(), value);
    }
    told.entry("type").or_insert_with(|| "git".into());
    if url == "repo" {
        told.insert("connectionState".to_owned(), json!({"status": "Unknown", "message": ""}));
    }
    Value::Object(told)
}

/// The schema of a request.
pub(crate) fn schema(url: &'static str) -> Value {
    let mut properties = Map::new();
    properties.insert(url.to_owned(), json!({"type": "string"}));
    for Field { name, sort, .. } in FIELDS.iter().filter(|field| field.belongs(url)) {
        let kind = match sort {
            Sort::Line | Sort::Pem | Sort::Text => json!({"type": "string"}),
            Sort::Flag => json!({"type": "boolean"}),
            Sort::Number => json!({"type": "integer"}),
        };
        properties.insert((*name).to_owned(), kind);
    }
    json!({"type": "object", "required": [url], "properties": properties})
}

// === impl Field ===

impl Field {
    fn belongs(&self, url: &str) -> bool {
        self.shared || url == "repo"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> Texts {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_repository_is_stored_in_argo_cds_words() {
        let body = json!({"repo": "https://git.example.com/a", "type": "helm", "name": "charts", "username": "me",
            "password": "hush", "enableOCI": true, "insecure": false, "githubAppID": 0, "depth": 1,
            "connectionState": {"status": "x"}, "unknown": [3]});
        assert_eq!(
            read(&body, "repo"),
            Ok(texts(&[
                ("url", "https://git.example.com/a"),
                ("type", "helm"),
                ("name", "charts"),
                ("username", "me"),
                ("password", "hush"),
                ("enableOCI", "true"),
                ("depth", "1"),
            ]))
        );
        let creds = read(&json!({"url": "https://git.example.com", "project": "x", "password": "p"}), "url");
        assert_eq!(creds, Ok(texts(&[("url", "https://git.example.com"), ("password", "p")])));
    }

    #[test]
    fn what_is_wrong_is_said_by_its_field_and_not_by_its_value() {
        let with = |name: &str, value: Value| {
            let mut body = json!({"repo": "https://git.example.com/a"});
            body[name] = value;
            read(&body, "repo").expect_err(name).message
        };
        for (name, value) in [
            ("password", json!("hush\nhush")),
            ("sshPrivateKey", json!("hush")),
            ("username", json!(["hush"])),
            ("insecure", json!("hush")),
            ("githubAppID", json!(-3)),
            ("githubAppID", json!("3")),
            ("type", json!("hush")),
            ("tlsClientCertData", json!("-----BEGIN CERTIFICATE----- hush")),
            ("githubAppPrivateKey", json!("-----BEGIN RSA PRIVATE KEY----- hush")),
            ("password", json!("x".repeat(LONGEST + 1))),
        ] {
            let message = with(name, value);
            assert!(message.contains(name) && !message.contains("hush"), "{message}");
        }
        assert!(with("type", json!("helm")).contains("needs a name"));
        assert!(read(&json!([]), "repo").is_err() && read(&json!({}), "repo").is_err());
    }

    #[test]
    fn what_opens_a_repository_stays_until_something_else_does() {
        let stored = texts(&[("url", "https://a"), ("password", "old"), ("username", "me"), ("newer", "x")]);
        let plain = texts(&[("url", "https://a"), ("name", "n")]);
        let kept = texts(&[
            ("url", "https://a"),
            ("name", "n"),
            ("password", "old"),
            ("username", "me"),
            ("newer", "x"),
        ]);
        assert_eq!(changed(&stored, plain), Ok(kept));
        let other = texts(&[("url", "https://a"), ("bearerToken", "t"), ("proxy", "p")]);
        let replaced = texts(&[("url", "https://a"), ("bearerToken", "t"), ("proxy", "p"), ("newer", "x")]);
        assert_eq!(changed(&stored, other), Ok(replaced));
    }

    #[test]
    fn credentials_that_nobody_sends_do_not_go_another_way() {
        let stored = texts(&[("url", "https://a"), ("password", "old")]);
        for name in PROTECTS {
            let wanted = texts(&[("url", "https://a"), (name, "true")]);
            assert!(changed(&stored, wanted).is_err_and(|error| error.message.starts_with(name)), "{name}");
        }
    }

    #[test]
    fn nothing_that_opens_a_repository_is_told() {
        let mut stored = Texts::new();
        for Field { name, .. } in FIELDS.iter().filter(|field| field.opens) {
            stored.insert((*name).to_owned(), "hush".to_owned());
        }
        stored.insert("url".to_owned(), "https://me:hush@git.example.com/a.git".to_owned());
        stored.insert("proxy".to_owned(), "http://me:hush@proxy".to_owned());
        stored.insert("enableLfs".to_owned(), "true".to_owned());
        assert_eq!(
            shown(&stored, "repo"),
            json!({"repo": "https://***@git.example.com/a.git", "type": "git", "enableLfs": true,
                "proxy": "http://***@proxy", "connectionState": {"status": "Unknown", "message": ""}})
        );
    }

    #[test]
    fn every_field_of_the_schema_is_read() {
        for url in ["repo", "url"] {
            let schema = schema(url);
            let known = schema["properties"].as_object().expect("properties").keys();
            for name in known.filter(|name| *name != url) {
                assert!(FIELDS.iter().any(|field| field.name == name && field.belongs(url)), "{name}");
            }
        }
    }
}
