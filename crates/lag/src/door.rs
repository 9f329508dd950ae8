//! What lets a client in, and what a client knows the proxy by.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::serve::ServeError;

/// The certificate and the token of one life of a proxy.
pub(crate) struct Door {
    authority: String,
    token: Token,
}

/// A text that is not printed.
struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Door {
    /// A new one for an address, and how to serve TLS behind it.
    pub(crate) fn new(address: SocketAddr) -> Result<(Door, rustls::ServerConfig), ServeError> {
        let bad = |error: rcgen::Error| ServeError::Certificates(error.to_string());
        let authority_key = KeyPair::generate().map_err(bad)?;
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "baton-lag-proxy-ca");
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_certificate = authority.self_signed(&authority_key).map_err(bad)?;
        let issuer = Issuer::new(authority, authority_key);

        let mut names = vec!["localhost".to_owned(), address.ip().to_string()];
        names.dedup();
        let key = KeyPair::generate().map_err(bad)?;
        let mut server = CertificateParams::new(names).map_err(bad)?;
        server.distinguished_name.push(DnType::CommonName, "baton-lag-proxy");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = server.signed_by(&key, &issuer).map_err(bad)?;

        let tls = tls(certificate.der().clone(), key.serialize_der())?;
        let random: [u8; 32] = rand::random();
        let token = Token(URL_SAFE_NO_PAD.encode(random));
        Ok((Door { authority: authority_certificate.pem(), token }, tls))
    }

    /// Whether a request has the token.
    pub(crate) fn knows(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let (scheme, token) = given.and_then(|text| text.split_once(' ')).unwrap_or_default();
        scheme.eq_ignore_ascii_case("bearer") && self.token.matches(token.trim())
    }

    /// A kubeconfig of the proxy at an address.
    pub(crate) fn kubeconfig(&self, address: SocketAddr) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: lag-proxy\nclusters:\n- name: lag-proxy\n  cluster:\n    \
             server: https://{address}\n    certificate-authority-data: {}\ncontexts:\n- name: lag-proxy\n  \
             context:\n    cluster: lag-proxy\n    user: lag-proxy\nusers:\n- name: lag-proxy\n  user:\n    token: {}\n",
            STANDARD.encode(&self.authority),
            self.token.0,
        )
    }
}

impl Token {
    /// Compares in a time that does not tell where the texts differ.
    fn matches(&self, candidate: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), candidate.as_bytes());
        own.len() == other.len() && own.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

fn tls(certificate: CertificateDer<'static>, key: Vec<u8>) -> Result<rustls::ServerConfig, ServeError> {
    let bad = |error: rustls::Error| ServeError::Certificates(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(bad)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key)))
        .map_err(bad)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

/// Where clients on this machine reach an address: one that stands for all is replaced by the local one.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
