//! Private keys: made, read, written, and put to use.

use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RsaKeyPair};

use super::der::{self, Reader};
use super::{pem, primes};

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// A private key. Nothing shows it but [`Key::pem`].
pub(super) enum Key {
    /// As PKCS#1.
    Rsa(Vec<u8>),
    Ec {
        curve: Curve,
        secret: Vec<u8>,
        point: Vec<u8>,
    },
    Ed25519 {
        seed: Vec<u8>,
        public: Vec<u8>,
    },
    /// As sprig writes it. No certificate is made with it.
    Dsa(Vec<u8>),
}

#[derive(Clone, Copy)]
pub(super) enum Curve {
    P256,
    P384,
}

impl Curve {
    fn of(oid: &[u8]) -> Option<Curve> {
        match oid {
            P256 => Some(Curve::P256),
            P384 => Some(Curve::P384),
            _ => None,
        }
    }

    fn oid(self) -> &'static [u8] {
        match self {
            Curve::P256 => P256,
            Curve::P384 => P384,
        }
    }

    /// How long the secret is.
    fn length(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
        }
    }

    fn signing(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Curve::P256 => &signature::ECDSA_P256_SHA256_ASN1_SIGNING,
            Curve::P384 => &signature::ECDSA_P384_SHA384_ASN1_SIGNING,
        }
    }
}

impl Key {
    /// A new RSA key of so many bits.
    pub(super) fn new_rsa(seed: [u8; 32], bits: u32) -> Result<Key, String> {
        primes::rsa(&mut primes::Stream::new(seed), bits).map(Key::Rsa)
    }

    /// A new DSA key.
    pub(super) fn new_dsa(seed: [u8; 32]) -> Result<Key, String> {
        primes::dsa(&mut primes::Stream::new(seed)).map(Key::Dsa)
    }

    /// A new key on the curve P-256. It is drawn by the library from the system's randomness, which takes no other.
    pub(super) fn new_ec() -> Result<Key, String> {
        let document =
            EcdsaKeyPair::generate_pkcs8(Curve::P256.signing(), &SystemRandom::new()).map_err(refused)?;
        pkcs8(document.as_ref()).ok_or_else(|| "the key made is not one".to_owned())
    }

    /// The Ed25519 key of a seed.
    pub(super) fn new_ed25519(seed: [u8; 32]) -> Result<Key, String> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|error| error.to_string())?;
        Ok(Key::Ed25519 { seed: seed.to_vec(), public: pair.public_key().as_ref().to_vec() })
    }

    /// Reads a key.
    ///
    /// # Errors
    /// With sprig's message where it has one.
    pub(super) fn parse(text: &str) -> Result<Key, String> {
        let (kind, bytes) = pem::decode(text).ok_or("no PEM data in input")?;
        let Some(algorithm) = kind.strip_suffix("PRIVATE KEY") else {
            return Err(format!("no private key data in PEM block of type {kind}"));
        };
        let (key, what) = match algorithm {
            "" => (pkcs8(&bytes), "decoding PEM as PKCS#8"),
            "RSA " => (rsa(&bytes), "parsing RSA private key from PEM"),
            "EC " => (sec1(&bytes, None), "parsing EC private key from PEM"),
            "DSA " => (dsa(&bytes), "parsing DSA private key from PEM"),
            other if other.ends_with(' ') => return Err(format!("invalid private key type {kind}")),
            _ => return Err(format!("no private key data in PEM block of type {kind}")),
        };
        key.ok_or_else(|| format!("{what}: not a key of a kind known here"))
    }

    /// The key as PEM.
    pub(super) fn pem(&self) -> String {
        match self {
            Key::Rsa(bytes) => pem::encode("RSA PRIVATE KEY", bytes),
            Key::Dsa(bytes) => pem::encode("DSA PRIVATE KEY", bytes),
            Key::Ec { curve, secret, point } => {
                let parts = [
                    der::integer(&[1]),
                    der::octet_string(secret),
                    der::explicit(0, &der::oid(curve.oid())),
                    der::explicit(1, &der::bit_string(point)),
                ];
                pem::encode("EC PRIVATE KEY", &der::element(der::SEQUENCE, &parts.concat()))
            }
            Key::Ed25519 { seed, .. } => {
                let algorithm = der::sequence(&[&der::oid(ED25519)]);
                let secret = der::octet_string(&der::octet_string(seed));
                pem::encode("PRIVATE KEY", &der::sequence(&[&der::integer(&[]), &algorithm, &secret]))
            }
        }
    }

    /// The public key as certificates have it, and the bits of it alone.
    pub(super) fn public(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let (algorithm, bits) = match self {
            Key::Rsa(bytes) => {
                let mut parts = Reader(bytes).sequence().ok_or("not an RSA key")?;
                parts.next();
                let [n, e] = [0; 2].map(|_| parts.next().map(|(_, _, whole)| whole).unwrap_or_default());
                (der::sequence(&[&der::oid(RSA_ENCRYPTION), &der::NULL]), der::sequence(&[n, e]))
            }
            Key::Ec { curve, point, .. } => {
                let curve = der::oid(curve.oid());
                (der::sequence(&[&der::oid(EC_PUBLIC_KEY), &curve]), point.clone())
            }
            Key::Ed25519 { public, .. } => (der::sequence(&[&der::oid(ED25519)]), public.clone()),
            Key::Dsa(_) => return Err(unsupported()),
        };
        Ok((der::sequence(&[&algorithm, &der::bit_string(&bits)]), bits))
    }

    /// The name of the way the key signs.
    pub(super) fn signature_algorithm(&self) -> Result<Vec<u8>, String> {
        Ok(match self {
            Key::Rsa(_) => der::sequence(&[&der::oid(RSA_SHA256), &der::NULL]),
            Key::Ec { curve: Curve::P256, .. } => der::sequence(&[&der::oid(ECDSA_SHA256)]),
            Key::Ec { curve: Curve::P384, .. } => der::sequence(&[&der::oid(ECDSA_SHA384)]),
            Key::Ed25519 { .. } => der::sequence(&[&der::oid(ED25519)]),
            Key::Dsa(_) => return Err(unsupported()),
        })
    }

    /// Signs a message. What a signature on a curve needs of randomness is the system's.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Key::Rsa(bytes) => {
                let pair = RsaKeyPair::from_der(bytes).map_err(|error| error.to_string())?;
                let mut signed = vec![0; pair.public().modulus_len()];
                let scheme = &signature::RSA_PKCS1_SHA256;
                pair.sign(scheme, &SystemRandom::new(), message, &mut signed).map_err(refused)?;
                Ok(signed)
            }
            Key::Ec { curve, secret, point } => {
                let random = SystemRandom::new();
                let algorithm = curve.signing();
                let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point, &random)
                    .map_err(|error| error.to_string())?;
                Ok(pair.sign(&random, message).map_err(refused)?.as_ref().to_vec())
            }
            Key::Ed25519 { seed, .. } => {
                let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|error| error.to_string())?;
                Ok(pair.sign(message).as_ref().to_vec())
            }
            Key::Dsa(_) => Err(unsupported()),
        }
    }
}

fn unsupported() -> String {
    "x509: certificate private key does not implement crypto.Signer".to_owned()
}

fn refused(_: ring::error::Unspecified) -> String {
    "the key is refused".to_owned()
}

fn rsa(bytes: &[u8]) -> Option<Key> {
    RsaKeyPair::from_der(bytes).ok()?;
    Some(Key::Rsa(bytes.to_vec()))
}

fn dsa(bytes: &[u8]) -> Option<Key> {
    let mut parts = Reader(bytes).sequence()?;
    for _ in 0..6 {
        parts.expect(der::INTEGER)?;
    }
    Some(Key::Dsa(bytes.to_vec()))
}

/// A key on a curve; the curve may be told outside. One without its public half is not read.
fn sec1(bytes: &[u8], curve: Option<Curve>) -> Option<Key> {
    let mut parts = Reader(bytes).sequence()?;
    parts.expect(der::INTEGER)?;
    let secret = parts.expect(der::OCTET_STRING)?;
    let named = parts.optional(0xa0).and_then(|wrapped| Reader(wrapped).expect(der::OID));
    let curve = curve.or_else(|| named.and_then(Curve::of))?;
    let point = Reader(parts.optional(0xa1)?).expect(der::BIT_STRING)?.strip_prefix(&[0])?;
    let missing = curve.length().checked_sub(secret.len())?;
    let secret = [vec![0; missing], secret.to_vec()].concat();
    let random = SystemRandom::new();
    EcdsaKeyPair::from_private_key_and_public_key(curve.signing(), &secret, point, &random).ok()?;
    Some(Key::Ec { curve, secret, point: point.to_vec() })
}

fn pkcs8(bytes: &[u8]) -> Option<Key> {
    let mut parts = Reader(bytes).sequence()?;
    parts.expect(der::INTEGER)?;
    let mut algorithm = parts.sequence()?;
    let name = algorithm.expect(der::OID)?;
    let key = parts.expect(der::OCTET_STRING)?;
    match name {
        RSA_ENCRYPTION => rsa(key),
        EC_PUBLIC_KEY => sec1(key, Some(Curve::of(algorithm.expect(der::OID)?)?)),
        ED25519 => Key::new_ed25519(Reader(key).expect(der::OCTET_STRING)?.try_into().ok()?).ok(),
        _ => None,
    }
}
