//! The certificate that the server shows, read again when its files change.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::failure::Failure;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Largest file of a certificate or key.
const LARGEST: u64 = 1 << 20;

/// A certificate and its key, as their files hold them. Neither shows anything of the key.
pub(crate) struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    held: RwLock<Arc<CertifiedKey>>,
}

// === impl Certificates ===

impl Certificates {
    /// Reads both files.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Arc<Certificates>, Failure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let held = load(certificate, key, &provider).map_err(Failure::usage)?;
        Ok(Arc::new(Certificates {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            provider,
            held: RwLock::new(Arc::new(held)),
        }))
    }

    /// What takes connections with them, whichever they are by then.
    pub(crate) fn acceptor(self: &Arc<Certificates>) -> Result<TlsAcceptor, Failure> {
        let config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::failed(format!("TLS cannot be set up: {error}")))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the files now and then until dropped.
    pub(crate) async fn follow(&self) -> std::convert::Infallible {
        let mut told = String::new();
        loop {
            tokio::time::sleep(LOOK).await;
            match self.look() {
                Ok(true) => tracing::info!("the certificate was renewed"),
                Ok(false) => {}
                // Files that are just being written are whole at the next look.
                Err(error) if error != told => {
                    tracing::warn!(error, "the certificate cannot be renewed; the one before it holds");
                    told = error;
                }
                Err(_) => {}
            }
        }
    }

    /// Takes what the files hold; whether it is another certificate. Files that cannot be used change nothing.
    fn look(&self) -> Result<bool, String> {
        let read = load(&self.certificate, &self.key, &self.provider)?;
        let mut held = self.held.write();
        let renewed = held.cert != read.cert;
        if renewed {
            *held = Arc::new(read);
        }
        Ok(renewed)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.held.read().clone())
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

fn load(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(&bytes(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| format!("{} is no certificate in PEM", certificate.display()))?;
    if chain.is_empty() {
        return Err(format!("{} holds no certificate in PEM", certificate.display()));
    }
    // What is wrong with a key is not told, for the words may hold a part of it.
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|_| format!("{} holds no key in PEM", key.display()))?;
    CertifiedKey::from_der(chain, private, provider).map_err(|error| {
        format!("{} and {} cannot be used together: {error}", certificate.display(), key.display())
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(format!("{} is larger than {LARGEST} bytes", path.display())),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(directory.join("tls.crt"), made.cert.pem()).expect("a file");
        std::fs::write(directory.join("tls.key"), made.signing_key.serialize_pem()).expect("a file");
    }

    #[test]
    fn a_certificate_is_renewed_when_its_files_are_and_not_before() {
        let home = tempfile::tempdir().expect("a directory");
        let (certificate, key) = (home.path().join("tls.crt"), home.path().join("tls.key"));
        assert!(Certificates::read(&certificate, &key).is_err(), "there are no files yet");
        write(home.path());
        let certificates = Certificates::read(&certificate, &key).expect("a certificate");
        let first = certificates.held.read().cert.clone();
        assert_eq!(certificates.look(), Ok(false));
        let old_key = std::fs::read(&key).expect("a key");
        write(home.path());
        let new_key = std::fs::read(&key).expect("a key");
        std::fs::write(&key, old_key).expect("a file");
        assert!(certificates.look().is_err(), "the key is not yet the one of the certificate");
        assert_eq!(certificates.held.read().cert, first);
        std::fs::write(&key, new_key).expect("a file");
        assert_eq!(certificates.look(), Ok(true));
        assert_ne!(certificates.held.read().cert, first);
        std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n")
            .expect("a file");
        let error = certificates.look().expect_err("no key");
        assert!(!error.contains("c2VjcmV0") && !error.contains("secret"), "{error}");
    }
}
