//! The cryptography behind TLS.

/// Chooses it for the whole process; later calls change nothing.
pub(crate) fn install() {
    // An error says that it was chosen before, by the same call.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
