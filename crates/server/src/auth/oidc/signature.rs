//! Whether an issuer's key signed something.
//!
//! By hand over `ring`, as our own tokens are: the algorithm follows from the key, never from the token alone, so that a
//! token cannot choose how it is judged.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

/// Most keys of an issuer that are looked at.
const MOST_KEYS: usize = 100;

/// The keys of an issuer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Debug, Clone, Deserialize)]
struct Key {
    kty: String,
    #[serde(default)]
    kid: String,
    #[serde(default, rename = "use")]
    usage: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

// === impl Keys ===

impl Keys {
    /// Reads a key set. Keys of other kinds are left out.
    pub(crate) fn read(text: &[u8]) -> Option<Keys> {
        let set: Set = serde_json::from_slice(text).ok()?;
        let keys = set.keys.into_iter().take(MOST_KEYS);
        let keys = keys.filter_map(|key| serde_json::from_value::<Key>(key).ok());
        Some(Keys(keys.filter(|key| key.usage.is_empty() || key.usage == "sig").collect()))
    }

    /// Whether one of them signed it, in the way the header names. Without the name of a key each is tried.
    pub(crate) fn signed(
        &self,
        algorithm: &str,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let mut keys = self.0.iter().filter(|key| kid.is_none_or(|kid| key.kid == kid));
        keys.any(|key| key.signed(algorithm, message, signature).is_some())
    }
}

// === impl Key ===

impl Key {
    /// Something only where it signed it.
    fn signed(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Option<()> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        match (self.kty.as_str(), self.crv.as_str()) {
            ("RSA", _) => {
                let parameters = match algorithm {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return None,
                };
                let (n, e) = (decode(&self.n)?, decode(&self.e)?);
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).ok()
            }
            ("EC", "P-256") if algorithm == "ES256" => {
                self.on_curve(&signature::ECDSA_P256_SHA256_FIXED, message, signature)
            }
            ("EC", "P-384") if algorithm == "ES384" => {
                self.on_curve(&signature::ECDSA_P384_SHA384_FIXED, message, signature)
            }
            ("OKP", "Ed25519") if algorithm == "EdDSA" => {
                let key = UnparsedPublicKey::new(&signature::ED25519, decode(&self.x)?);
                key.verify(message, signature).ok()
            }
            _ => None,
        }
    }

    fn on_curve(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Option<()> {
        // A point that is written out begins with 4.
        let mut point = vec![4];
        for part in [&self.x, &self.y] {
            point.extend(URL_SAFE_NO_PAD.decode(part).ok()?);
        }
        UnparsedPublicKey::new(algorithm, point).verify(message, signature).ok()
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    fn keys(keys: serde_json::Value) -> Keys {
        Keys::read(json!({ "keys": keys }).to_string().as_bytes()).expect("a key set")
    }

    #[test]
    fn each_kind_of_key_is_judged_in_its_own_way() {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let curve = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random);
        let curve = curve.expect("a key");
        let made = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let edwards = Ed25519KeyPair::from_pkcs8(made.as_ref()).expect("a key");
        let point = curve.public_key().as_ref();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let keys = keys(json!([
            {"kty": "EC", "crv": "P-256", "kid": "c", "x": encode(&point[1..33]), "y": encode(&point[33..])},
            {"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": encode(edwards.public_key().as_ref())},
            {"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "oct", "k": "c2VjcmV0"},
            3,
        ]));
        let by_curve = curve.sign(&random, b"text").expect("signed");
        let by_edwards = edwards.sign(b"text");
        for (algorithm, kid, message, signature, counts) in [
            ("ES256", Some("c"), "text", by_curve.as_ref(), true),
            ("ES256", None, "text", by_curve.as_ref(), true),
            ("EdDSA", Some("e"), "text", by_edwards.as_ref(), true),
            ("ES256", Some("e"), "text", by_curve.as_ref(), false),
            ("ES256", Some("c"), "other", by_curve.as_ref(), false),
            ("ES384", Some("c"), "text", by_curve.as_ref(), false),
            ("HS256", None, "text", by_curve.as_ref(), false),
            ("none", None, "text", b"", false),
            ("RS256", None, "text", by_curve.as_ref(), false),
        ] {
            let found = keys.signed(algorithm, kid, message.as_bytes(), signature);
            assert_eq!(found, counts, "{algorithm} {kid:?} {message}");
        }
    }

    #[test]
    fn what_is_no_key_set_is_none() {
        for text in ["", "[]", "{}", "{\"keys\":3}"] {
            assert!(Keys::read(text.as_bytes()).is_none(), "{text}");
        }
    }
}
