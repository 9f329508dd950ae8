//! The receiver's certificate, and the authority that signed it. Both live as long as the process.

use std::collections::BTreeSet;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// The authority in PEM, and TLS for the hosts.
pub(super) fn issue(hosts: &BTreeSet<String>) -> Result<(String, ServerConfig), String> {
    let bad = |error: rcgen::Error| error.to_string();
    let authority_key = KeyPair::generate().map_err(bad)?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "baton-hook-receiver-ca");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let certificate = authority.self_signed(&authority_key).map_err(bad)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate().map_err(bad)?;
    let mut server = CertificateParams::new(hosts.iter().cloned().collect::<Vec<_>>()).map_err(bad)?;
    server.distinguished_name.push(DnType::CommonName, "baton-hook-receiver");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let signed = server.signed_by(&key, &issuer).map_err(bad)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
        .map_err(|error| error.to_string())?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((certificate, tls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_certificate_can_have_are_refused() {
        let issued = |host: &str| issue(&[host.to_owned()].into());
        assert!(issued("hooks.example.com").is_ok());
        assert!(issued("höoks.example.com").is_err());
    }
}
