//! Whose certificates count.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_scm::{Kind, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::server::Objects;
use crate::{hosts, scm, settings};

/// A server with a certificate nobody knows, and that certificate in PEM. To every request it answers `[]`.
async fn start() -> (String, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key can be made");
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .expect("the key fits the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut seen = Vec::new();
                while !seen.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => seen.push(byte),
                        Err(_) => return,
                    }
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (format!("https://localhost:{port}"), certified.cert.pem())
}

fn objects(pem: &str) -> Objects {
    let data = BTreeMap::from([("ca.crt".to_owned(), pem.to_owned())]);
    Objects { config_maps: BTreeMap::from([("authorities".into(), data)]), ..Objects::default() }
}

fn gitlab(api: &str, more: Value) -> Value {
    let mut spec = json!({"group": "fleet", "api": api});
    let fields = more.as_object().expect("the rest is an object").clone();
    spec.as_object_mut().expect("it is an object").extend(fields);
    json!({"gitlab": spec})
}

async fn ask(settings: Settings, generator: Value, objects: &Objects) -> Result<usize, Kind> {
    let outcome = hosts(settings).repositories(&scm(generator), objects).await;
    outcome.map(|found| found.len()).map_err(|error| error.kind())
}

#[tokio::test]
async fn a_certificate_nobody_knows_is_refused() {
    let (url, _) = start().await;
    let settings = Settings { attempts: 1, ..settings() };
    assert_eq!(ask(settings, gitlab(&url, json!({})), &Objects::default()).await, Err(Kind::Network));
}

#[tokio::test]
async fn an_authority_beside_the_application_set_counts() {
    let (url, pem) = start().await;
    let reference = json!({"caRef": {"configMapName": "authorities", "key": "ca.crt"}});
    assert_eq!(ask(settings(), gitlab(&url, reference.clone()), &objects(&pem)).await, Ok(0));

    let (_, another) = start().await;
    let refused = Settings { attempts: 1, ..settings() };
    assert_eq!(ask(refused, gitlab(&url, reference.clone()), &objects(&another)).await, Err(Kind::Network));
    assert_eq!(
        ask(settings(), gitlab(&url, reference.clone()), &objects("no PEM")).await,
        Err(Kind::Invalid)
    );
    assert_eq!(ask(settings(), gitlab(&url, reference), &Objects::default()).await, Err(Kind::Invalid));
    let other_key = json!({"caRef": {"configMapName": "authorities", "key": "tls.crt"}});
    assert_eq!(ask(settings(), gitlab(&url, other_key), &objects(&pem)).await, Err(Kind::Invalid));
}

#[tokio::test]
async fn an_authority_of_the_operator_counts() {
    let (url, pem) = start().await;
    let folder = tempfile::tempdir().expect("there is a place for files");
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, pem).expect("files can be written");
    let with_root = Settings { root_ca: Some(path), ..settings() };
    assert_eq!(ask(with_root, gitlab(&url, json!({})), &Objects::default()).await, Ok(0));

    let missing = Settings { root_ca: Some(folder.path().join("gone.pem")), ..settings() };
    assert_eq!(ask(missing, gitlab(&url, json!({})), &Objects::default()).await, Err(Kind::Invalid));
}

#[tokio::test]
async fn no_certificate_is_looked_at_when_that_is_asked_for() {
    let (url, _) = start().await;
    assert_eq!(ask(settings(), gitlab(&url, json!({"insecure": true})), &Objects::default()).await, Ok(0));
    let gitea = json!({"gitea": {"owner": "fleet", "api": url, "insecure": true}});
    assert_eq!(ask(settings(), gitea, &Objects::default()).await, Ok(0));
}
