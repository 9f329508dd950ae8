//! Passwords: hashed with bcrypt, as Argo CD's are.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};

/// The work of one hash that Argo CD asks for.
pub(crate) const COST: u32 = 10;
/// Shortest password that somebody may choose.
const SHORTEST: usize = 8;
/// Longest password that is looked at: bcrypt sees no more than this.
pub(crate) const LONGEST: usize = 72;

/// A password of no account, hashed with the work that real ones cost: unknown names must take as long as known ones.
#[derive(Clone)]
pub(crate) struct Decoy(String);

/// Random bytes that nobody can foresee.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness, or nothing here is safe");
    bytes
}

/// A text that nobody can foresee, of letters, digits, `-` and `_`.
pub(crate) fn random_text<const N: usize>() -> String {
    URL_SAFE_NO_PAD.encode(random::<N>())
}

/// The hash of a password, with the work that Argo CD asks for.
///
/// # Errors
/// It is too short or too long for an account, in words.
pub fn hashed(password: &str) -> Result<String, String> {
    allowed(password)?;
    Ok(hash(password, COST))
}

/// Whether accounts may have this password.
pub(crate) fn allowed(password: &str) -> Result<(), String> {
    match (SHORTEST..=LONGEST).contains(&password.len()) {
        true => Ok(()),
        false => Err(format!("a password has {SHORTEST} to {LONGEST} characters")),
    }
}

/// The hash of a password.
pub(crate) fn hash(password: &str, cost: u32) -> String {
    let parts = bcrypt::hash_with_salt(password, cost, random()).expect("the cost is one that bcrypt knows");
    parts.format_for_version(bcrypt::Version::TwoA)
}

/// Whether a password is the one of a hash. What is no hash fits none.
pub(crate) fn fits(password: &str, hash: &str) -> bool {
    password.len() <= LONGEST && bcrypt::verify(password, hash).unwrap_or(false)
}

// === impl Decoy ===

impl Decoy {
    pub(crate) fn new(cost: u32) -> Decoy {
        Decoy(hash(&random_text::<16>(), cost))
    }

    /// Does the work of a check that cannot succeed.
    pub(crate) fn refuse(&self, password: &str) -> bool {
        std::hint::black_box(fits(password, &self.0));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_fits_its_own_hash_only() {
        let hash = hash("correct horse", 4);
        assert!(hash.starts_with("$2a$04$"), "as Argo CD writes them: {hash}");
        assert!(fits("correct horse", &hash));
        assert!(!fits("correct horsf", &hash) && !fits("", &hash) && !fits("correct horse", "nonsense"));
        assert!(!fits(&"x".repeat(LONGEST + 1), &hash));
        assert_ne!(random_text::<16>(), random_text::<16>());
    }
}
