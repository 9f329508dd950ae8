//! Whose certificates count.

use std::path::PathBuf;
use std::sync::Arc;

use baton_hooks::{AllowList, Call, Outcome, Places, Reason, Role, Settings, Verdict};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::PrivatePkcs8KeyDer;
use serde_json::json;
use tokio_rustls::TlsAcceptor;

use crate::receiver::{Receiver, ok};
use crate::support::{hook, run};

/// A receiver whose certificate for `hooks.example` an authority has signed, and that authority's file.
struct Secure {
    receiver: Receiver,
    authority: PathBuf,
    _directory: tempfile::TempDir,
}

impl Secure {
    async fn start(name: &str) -> Secure {
        let authority_key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).expect("it can sign itself");
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a good name");
        let certificate = params.signed_by(&key, &issuer).expect("the authority can sign");

        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("ca.pem");
        std::fs::write(&path, authority.pem()).expect("a file can be written");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider knows TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .expect("the key fits the certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let receiver = Receiver::start_at("127.0.0.1:0", Some(acceptor), |_| ok()).await;
        Secure { receiver, authority: path, _directory: directory }
    }

    /// Only https, and the receiver stands where `hooks.example` is.
    fn settings(&self) -> Settings {
        Settings {
            allow: AllowList::parse(["127.0.0.1"]).expect("a good entry"),
            places: Places::parse([format!("hooks.example={}", self.receiver.address).as_str()])
                .expect("a good entry"),
            ..Settings::default()
        }
    }
}

fn call(settings: &Settings, insecure: bool) -> Call {
    let http = json!({"url": "https://hooks.example/services/T0/B0/X", "insecureSkipVerify": insecure});
    let configuration = json!({"name": "notify", "type": "http", "timeout": "30s", "http": http});
    hook(settings, Role::PreHook, configuration).expect("the hook is good")
}

fn assert_untrusted(outcome: &Outcome) {
    let Verdict::Failure(fault) = &outcome.result else { panic!("{outcome:?}") };
    assert_eq!(fault.reason, Reason::TlsFailed, "{}", fault.message);
}

#[tokio::test]
async fn a_certificate_of_the_operators_authority_counts() {
    let secure = Secure::start("hooks.example").await;
    let settings = Settings { authorities: Some(secure.authority.clone()), ..secure.settings() };
    let outcome = run(settings.clone(), &call(&settings, false)).await;
    assert_eq!(outcome.result, Verdict::Success);
    assert!(secure.receiver.requests()[0].starts_with("POST /services/T0/B0/X "));
}

#[tokio::test]
async fn an_authority_nobody_knows_does_not_count_and_nothing_is_sent() {
    let secure = Secure::start("hooks.example").await;
    let settings = secure.settings();
    assert_untrusted(&run(settings.clone(), &call(&settings, false)).await);
    assert!(secure.receiver.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_does_not_count() {
    let secure = Secure::start("other.example").await;
    let settings = Settings { authorities: Some(secure.authority.clone()), ..secure.settings() };
    assert_untrusted(&run(settings.clone(), &call(&settings, false)).await);
    assert!(secure.receiver.requests().is_empty());
}

#[tokio::test]
async fn verification_is_skipped_only_when_set_and_operator_both_say_so() {
    let secure = Secure::start("other.example").await;
    let loose = Settings { allow_insecure_tls: true, ..secure.settings() };
    assert_eq!(run(loose.clone(), &call(&loose, true)).await.result, Verdict::Success);
    assert_untrusted(&run(loose.clone(), &call(&loose, false)).await);
    // Even if nobody validated it.
    let outcome = run(secure.settings(), &call(&loose, true)).await;
    assert!(matches!(outcome.result, Verdict::Refused(_)), "{outcome:?}");
    assert_eq!(secure.receiver.requests().len(), 1);
}

#[test]
fn a_file_without_certificates_is_no_authority() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("ca.pem");
    for (text, message) in
        [(Some("nothing"), "it holds no certificate"), (None, "No such file or directory (os error 2)")]
    {
        let _ = std::fs::remove_file(&path);
        if let Some(text) = text {
            std::fs::write(&path, text).expect("a file can be written");
        }
        let settings = Settings { authorities: Some(path.clone()), ..Settings::default() };
        let fault = baton_hooks::Runner::new(settings).expect_err("it is refused");
        assert_eq!(fault.to_string(), format!("hooks-ca: {}: {message}", path.display()));
    }
}
