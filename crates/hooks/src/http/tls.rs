//! Whose certificates count.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// The two ways to make TLS connections.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    verified: Arc<ClientConfig>,
    unverified: Arc<ClientConfig>,
}

// === impl Trust ===

impl Trust {
    /// Trusts the machine's authorities, and those of a PEM file beside them.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub(crate) fn new(authorities: Option<&Path>) -> io::Result<Trust> {
        let mut roots = RootCertStore::empty();
        // A machine's store often has a few that cannot be read; the rest count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = authorities {
            add(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = || {
            ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)
        };
        let verified = builder()?.with_root_certificates(roots).with_no_client_auth();
        let anything = Arc::new(Anything(provider.clone()));
        let unverified =
            builder()?.dangerous().with_custom_certificate_verifier(anything).with_no_client_auth();
        Ok(Trust { verified: speaking_http1(verified), unverified: speaking_http1(unverified) })
    }

    pub(crate) fn config(&self, insecure: bool) -> Arc<ClientConfig> {
        if insecure { self.unverified.clone() } else { self.verified.clone() }
    }
}

fn speaking_http1(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn add(roots: &mut RootCertStore, path: &Path) -> io::Result<()> {
    let wrong = |why: String| io::Error::other(format!("hooks-ca: {}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|fault| wrong(fault.to_string()))?;
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|fault| wrong(fault.to_string()))?;
        roots.add(certificate).map_err(|fault| wrong(fault.to_string()))?;
        count += 1;
    }
    if count == 0 {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    Ok(())
}

/// Takes any certificate, as `insecureSkipVerify` asks for. Signatures are still verified: without that, the peer
/// need not even have the key of the certificate it shows.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
