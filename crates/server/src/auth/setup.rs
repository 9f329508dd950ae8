//! What must be there before anybody can sign in: the key of our tokens and the password of `admin`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_hooks::Secret;
use jiff::Timestamp;
use kube::Client;
use serde_json::json;

use super::password::{self, random};
use crate::configuration::{SECRET, bytes};
use crate::error::{Code, Error};
use crate::objects::{Objects, SECRETS, text};

/// How often a Secret that changes meanwhile is read again.
const ATTEMPTS: usize = 10;
/// Letters that are easy to read out.
const ALPHABET: &[u8] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Which password `admin` shall have.
#[derive(Debug, Clone)]
pub enum Admin {
    /// The one it has, or a new one that nobody knows yet.
    Any,
    /// The one it has, or this one.
    Usually(Secret),
    /// This one, whatever it has.
    Always(Secret),
}

/// Makes the key and the password of `admin` in `argocd-secret` where they are missing, and tells the password if it was
/// made: it is told this once and kept nowhere.
///
/// # Errors
/// The Secret can be neither read nor written.
pub async fn ensure(client: &Client, namespace: &str, now: Timestamp) -> Result<Option<Secret>, Error> {
    ensure_with(client, namespace, now, &Admin::Any).await
}

/// The same where the password is chosen elsewhere: it is told if it was written.
///
/// # Errors
/// The Secret can be neither read nor written, or the password is longer than what is ever looked at.
pub async fn ensure_with(
    client: &Client,
    namespace: &str,
    now: Timestamp,
    admin: &Admin,
) -> Result<Option<Secret>, Error> {
    if let Admin::Usually(password) | Admin::Always(password) = admin
        && !(1..=password::LONGEST).contains(&password.expose().len())
    {
        return Err(Error::invalid(format!("a password has 1 to {} bytes", password::LONGEST)));
    }
    let secrets = Objects::new(client, SECRETS, namespace);
    for _ in 0..ATTEMPTS {
        let there = secrets.find(SECRET).await?;
        let known = bytes(there.as_ref());
        let lacks = |key: &str| known.get(key).is_none_or(Vec::is_empty);
        let mut wanted: BTreeMap<&str, String> = BTreeMap::new();
        if lacks("server.secretkey") {
            wanted.insert("server.secretkey", STANDARD.encode(random::<32>()));
        }
        let password = match admin {
            Admin::Always(password) => Some(password.clone()),
            Admin::Usually(password) => lacks("admin.password").then(|| password.clone()),
            Admin::Any => lacks("admin.password").then(|| Secret::new(readable())),
        };
        if let Some(password) = &password {
            wanted.insert("admin.password", password::hash(password.expose(), password::COST));
            wanted.insert("admin.passwordMtime", now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let data: BTreeMap<&str, String> =
            wanted.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
        let written = match &there {
            Some(there) => {
                let version = text(there, "/metadata/resourceVersion");
                let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
                secrets.merge(SECRET, &patch).await
            }
            None => {
                let labels = json!({"app.kubernetes.io/name": SECRET, "app.kubernetes.io/part-of": "argocd"});
                let object = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                    "metadata": {"name": SECRET, "namespace": namespace, "labels": labels},
                });
                secrets.create(&object, false).await
            }
        };
        match written {
            Ok(_) => return Ok(password),
            Err(error) if matches!(error.code, Code::Aborted | Code::AlreadyExists) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::Aborted, format!("{SECRET} changed each time it was to be written: try again")))
}

/// Twenty letters out of 55: more than 110 bits.
fn readable() -> String {
    let mut text = String::new();
    while text.len() < 20 {
        // Bytes beyond the last whole round would make some letters likelier.
        let fair = random::<32>().into_iter().filter(|byte| usize::from(*byte) < ALPHABET.len() * 4);
        text.extend(
            fair.take(20 - text.len()).map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])),
        );
    }
    text
}
