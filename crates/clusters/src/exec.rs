//! Credentials from a program, as kubectl's exec plugins give them.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;
use tower::BoxError;

use crate::access::{ClusterAccess, ExecConfig};

/// Time a program may take.
const LONGEST_RUN: Duration = Duration::from_secs(60);
/// Most bytes of its answer.
const MOST_OUTPUT: u64 = 1024 * 1024;
/// A token is asked for anew this long before it ends.
const AHEAD: Duration = Duration::from_secs(60);
/// A token without an end is asked for anew after this time.
const WITHOUT_END: Duration = Duration::from_secs(10 * 60);

/// Gives the token of a program, which it runs when there is none or the last one ends.
#[derive(Clone)]
pub(crate) struct Credentials {
    exec: Arc<ExecConfig>,
    /// What the program is told.
    info: Arc<str>,
    token: Arc<Mutex<Option<Token>>>,
}

#[derive(Clone)]
struct Token {
    header: HeaderValue,
    good_until: Timestamp,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    expiration_timestamp: Option<Timestamp>,
    #[serde(default)]
    client_certificate_data: Option<String>,
}

impl Credentials {
    pub(crate) fn new(exec: ExecConfig, cluster: &ClusterAccess) -> Credentials {
        let info = exec_info(&exec, cluster).to_string().into();
        Credentials { exec: Arc::new(exec), info, token: Arc::default() }
    }

    /// The client, with every request bearing the token.
    pub(crate) fn authorize(self, transport: Client) -> Client {
        let namespace = transport.default_namespace().to_owned();
        let send = tower::service_fn(move |mut request: Request<Body>| {
            let (this, transport) = (self.clone(), transport.clone());
            async move {
                let header = this.header().await.map_err(BoxError::from)?;
                request.headers_mut().insert(AUTHORIZATION, header);
                let answer = transport.send(request).await?;
                if answer.status() == http::StatusCode::UNAUTHORIZED {
                    *this.token.lock().await = None;
                }
                Ok::<_, BoxError>(answer)
            }
        });
        Client::new(send, namespace)
    }

    async fn header(&self) -> Result<HeaderValue, String> {
        let mut held = self.token.lock().await;
        let now = Timestamp::now();
        if let Some(token) = &*held
            && token.good_until > now
        {
            return Ok(token.header.clone());
        }
        let fresh = self.run(now).await?;
        Ok(held.insert(fresh).header.clone())
    }

    async fn run(&self, now: Timestamp) -> Result<Token, String> {
        let program = &self.exec.command;
        let failed = |what: String| match self.exec.install_hint.is_empty() {
            true => format!("cannot get credentials from {program:?}: {what}"),
            false => format!("cannot get credentials from {program:?}: {what}. {}", self.exec.install_hint),
        };
        let mut command = Command::new(program);
        command.args(&self.exec.args).envs(&self.exec.env).env("KUBERNETES_EXEC_INFO", &*self.info);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let output = child.stdout.take().ok_or_else(|| failed("no output".to_owned()))?;
        let answer = async {
            let mut text = Vec::new();
            let read = output.take(MOST_OUTPUT).read_to_end(&mut text).await;
            (read.map(|_| text), child.wait().await)
        };
        let answer = tokio::time::timeout(LONGEST_RUN, answer).await;
        let (text, status) =
            answer.map_err(|_| failed(format!("it ran longer than {} s", LONGEST_RUN.as_secs())))?;
        let (text, status) = (
            text.map_err(|error| failed(error.to_string()))?,
            status.map_err(|error| failed(error.to_string()))?,
        );
        // What the program wrote may hold the secret, so only that it failed is told.
        if !status.success() {
            return Err(failed(format!("it ended with {status}")));
        }
        token(&text, now).map_err(|what| failed(what.to_owned()))
    }
}

fn token(text: &[u8], now: Timestamp) -> Result<Token, &'static str> {
    let answer: Answer = serde_json::from_slice(text).map_err(|_| "its answer is no ExecCredential")?;
    let status = answer.status.ok_or("its answer has no status")?;
    let token = match status.token {
        Some(token) if !token.is_empty() => token,
        _ if status.client_certificate_data.is_some() => {
            return Err("client certificates from programs are not supported");
        }
        _ => return Err("its answer has no token"),
    };
    let mut header =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "its token has odd characters")?;
    header.set_sensitive(true);
    let ahead = |end: Timestamp| end.checked_sub(AHEAD).unwrap_or(end);
    let good_until = match status.expiration_timestamp {
        // A token shorter than the margin is used as long as it is good.
        Some(end) if ahead(end) <= now => end,
        Some(end) => ahead(end),
        None => now.checked_add(WITHOUT_END).unwrap_or(now),
    };
    Ok(Token { header, good_until })
}

fn exec_info(exec: &ExecConfig, cluster: &ClusterAccess) -> Value {
    let mut spec = json!({"interactive": false});
    if exec.provide_cluster_info {
        let tls = &cluster.config.tls_client_config;
        spec["cluster"] = json!({
            "server": &*cluster.server,
            "insecure-skip-tls-verify": tls.insecure,
            "certificate-authority-data": tls.ca_data,
            "tls-server-name": tls.server_name,
            "config": exec.config,
        });
    }
    let version = match exec.api_version.as_str() {
        "" => "client.authentication.k8s.io/v1beta1",
        version => version,
    };
    json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_token_is_good_until_shortly_before_its_end() {
        let now = at("2026-01-01T00:00:00Z");
        let good_until = |end: &str| {
            let text = json!({"status": {"token": "t", "expirationTimestamp": end}}).to_string();
            token(text.as_bytes(), now).map(|token| token.good_until.to_string())
        };
        assert_eq!(good_until("2026-01-01T01:00:00Z"), Ok("2026-01-01T00:59:00Z".to_owned()));
        assert_eq!(good_until("2026-01-01T00:00:30Z"), Ok("2026-01-01T00:00:30Z".to_owned()));
        let endless = token(br#"{"status":{"token":"t"}}"#, now).expect("a token");
        assert_eq!(endless.good_until, at("2026-01-01T00:10:00Z"));
    }

    #[test]
    fn answers_without_a_usable_token_are_errors() {
        let why = |text: &str| token(text.as_bytes(), Timestamp::UNIX_EPOCH).err();
        assert_eq!(why("hello"), Some("its answer is no ExecCredential"));
        assert_eq!(why("{}"), Some("its answer has no status"));
        assert_eq!(why(r#"{"status":{}}"#), Some("its answer has no token"));
        assert_eq!(why(r#"{"status":{"token":"a\nb"}}"#), Some("its token has odd characters"));
        let certificate = r#"{"status":{"clientCertificateData":"x"}}"#;
        assert_eq!(why(certificate), Some("client certificates from programs are not supported"));
    }

    #[tokio::test]
    async fn a_program_is_run_once_until_its_token_ends() {
        let directory = std::env::temp_dir().join(format!("baton-exec-{}", std::process::id()));
        let script =
            format!("echo run >> {0}; echo '{{\"status\":{{\"token\":\"t1\"}}}}'", directory.display());
        let exec = ExecConfig {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            ..ExecConfig::default()
        };
        let credentials = Credentials::new(exec, &ClusterAccess::in_cluster());
        assert_eq!(credentials.header().await.expect("a token"), "Bearer t1");
        assert_eq!(credentials.header().await.expect("a token"), "Bearer t1");
        let runs = std::fs::read_to_string(&directory).expect("the program ran");
        std::fs::remove_file(&directory).expect("a file of this test");
        assert_eq!(runs.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_program_that_fails_is_named_without_its_output() {
        let exec = ExecConfig {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), "echo hunter2; exit 3".to_owned()],
            ..ExecConfig::default()
        };
        let error =
            Credentials::new(exec, &ClusterAccess::in_cluster()).header().await.expect_err("it failed");
        assert!(error.contains("\"sh\"") && error.contains('3') && !error.contains("hunter2"), "{error}");
    }
}
