//! One line per call, and where the control plane was meanwhile.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use serde::Serialize;
use tokio::sync::OnceCell;

use crate::{connection, terminal};

/// Headers that say nothing of a call: the connection's, and those that are told in other words.
const OF_THE_CONNECTION: [&str; 4] = ["host", "content-length", "accept", "connection"];

/// A call.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    /// In the order in which they came, from 1.
    pub(super) number: u64,
    pub(super) time: String,
    pub(super) method: String,
    pub(super) host: String,
    /// With the query.
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
    pub(super) tls: Tls,
    /// What was answered.
    pub(super) status: u16,
    /// Where the control plane was when the call came, and just before it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) came_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answered_at: Option<String>,
}

/// How the caller came.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tls {
    pub(super) version: String,
    /// Whom the caller meant to reach.
    pub(super) server_name: String,
}

/// Tells of calls.
pub(super) struct Journal {
    json: bool,
    count: AtomicU64,
}

/// Where a control plane is in its history.
pub(super) struct History {
    kubeconfig: Option<PathBuf>,
    client: OnceCell<kube::Client>,
}

// === impl Journal ===

impl Journal {
    pub(super) fn new(json: bool) -> Journal {
        Journal { json, count: AtomicU64::new(0) }
    }

    /// The number of the next call.
    pub(super) fn number(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn tell(&self, call: &Call) {
        terminal::tell(&if self.json { json(call) } else { text(call) });
    }
}

// === impl History ===

impl History {
    pub(super) fn new(kubeconfig: Option<PathBuf>) -> History {
        History { kubeconfig, client: OnceCell::new() }
    }

    /// The resourceVersion of now; none where nobody asks for it or the API cannot be asked.
    pub(super) async fn now(&self) -> Option<String> {
        let file = self.kubeconfig.as_deref()?;
        // Not before a call comes: the receiver starts first, for its certificate has to be there when `up` does.
        let client = self.client.get_or_try_init(async || {
            let config = connection::config(Some(file), None).await?;
            kube::Client::try_from(config).map_err(crate::failure::Failure::from)
        });
        match client.await {
            Ok(client) => {
                let one = ListParams::default().limit(1);
                Api::<Namespace>::all(client.clone()).list(&one).await.ok()?.metadata.resource_version
            }
            Err(error) => {
                tracing::warn!("where the control plane is cannot be told: {error}");
                None
            }
        }
    }
}

/// The headers that say something of a call.
pub(super) fn of_note(headers: &HeaderMap) -> BTreeMap<String, String> {
    let told = headers.iter().filter(|(name, _)| !OF_THE_CONNECTION.contains(&name.as_str()));
    told.map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn json(call: &Call) -> String {
    serde_json::to_string(call).unwrap_or_default()
}

/// `14:03:07 POST https://HOST/PATH -> 200 | header: value | … | body`, on one line whatever was sent.
fn text(call: &Call) -> String {
    let clock = call.time.get(11..19).unwrap_or(&call.time);
    let at = call.came_at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
    let mut parts =
        vec![format!("{clock}{at} {} https://{}{} -> {}", call.method, call.host, call.path, call.status)];
    parts.extend(call.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    if !call.body.trim().is_empty() {
        parts.push(call.body.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    parts.join(" | ").chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_one_line() {
        let call = Call {
            number: 3,
            time: "2026-01-01T14:03:07.5Z".into(),
            method: "POST".into(),
            host: "hooks.example".into(),
            path: "/open?a=b".into(),
            headers: [("x-hook-name".to_owned(), "open\u{1b}[2J".to_owned())].into(),
            body: "{\n  \"a\": 1\n}\n".into(),
            status: 201,
            came_at: Some("17".into()),
            ..Call::default()
        };
        assert_eq!(
            text(&call),
            "14:03:07 at 17 POST https://hooks.example/open?a=b -> 201 | x-hook-name: open [2J | { \"a\": 1 }"
        );
        let read: serde_json::Value = serde_json::from_str(&json(&call)).expect("JSON");
        assert_eq!(read["body"], "{\n  \"a\": 1\n}\n", "it is told as it came");
        assert_eq!((&read["cameAt"], &read["answeredAt"]), (&"17".into(), &serde_json::Value::Null));
    }
}
