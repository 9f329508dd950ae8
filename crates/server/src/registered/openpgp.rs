//! Keys that sign commits: read as far as it takes to name them.
//!
//! By hand: of OpenPGP (RFC 4880 and RFC 9580) only the frame of packets and the fingerprint of a key are needed, and a
//! library of it would bring a whole language of signatures along.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";
/// Longest text of keys.
const LONGEST: usize = 1 << 20;
/// Most keys of one text.
const MOST: usize = 100;

/// A key that signs commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// Its last sixteen digits, by which people name it.
    pub(crate) id: String,
    pub(crate) fingerprint: String,
    /// Whom it says it is of; nobody vouches for that here.
    pub(crate) owner: String,
    /// Its algorithm.
    pub(crate) algorithm: &'static str,
    /// The text it came in.
    pub(crate) armor: String,
}

/// The keys of a text, each in a block of its own.
///
/// # Errors
/// What cannot be read.
pub(crate) fn read(text: &str) -> Result<Vec<PublicKey>, &'static str> {
    if text.len() > LONGEST {
        return Err("it is too long");
    }
    if text.contains("PRIVATE KEY BLOCK") {
        return Err("it is a private key, which must stay where it is: export the public one");
    }
    let (mut keys, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let (block, left) = after.split_once(END).ok_or("its END line is missing")?;
        if keys.len() == MOST {
            return Err("there are too many keys");
        }
        keys.push(of_block(block)?);
        rest = left;
    }
    if keys.is_empty() { Err("it is to be a public key in its BEGIN and END lines") } else { Ok(keys) }
}

fn of_block(block: &str) -> Result<PublicKey, &'static str> {
    let lines = block.lines().map(str::trim);
    // Headers have a colon, and what checks the rest begins with an equals sign.
    let base64: String = lines.filter(|line| !line.contains(':') && !line.starts_with('=')).collect();
    let bytes = STANDARD.decode(base64).map_err(|_| "its base64 cannot be read")?;
    let packets = packets(&bytes).ok_or("its packets cannot be read")?;
    let mut primary = packets.iter().filter(|(tag, _)| *tag == 6);
    let (_, body) = primary.next().ok_or("there is no public key in it")?;
    if primary.next().is_some() {
        return Err("there are several keys in one block: export each by itself");
    }
    let fingerprint = fingerprint(body).ok_or("its version is not known")?;
    let owner = packets.iter().find(|(tag, _)| *tag == 13).map(|(_, body)| *body).unwrap_or_default();
    let owner: String =
        String::from_utf8_lossy(owner).chars().filter(|c| !c.is_control()).take(200).collect();
    // Of newer keys the id stands at the other end.
    let id = match body.first() {
        Some(4) => fingerprint[fingerprint.len() - 16..].to_owned(),
        _ => fingerprint[..16].to_owned(),
    };
    let algorithm = match body.get(5) {
        Some(1..=3) => "RSA",
        Some(17) => "DSA",
        Some(19) => "ECDSA",
        Some(22) => "EdDSA",
        Some(27) => "Ed25519",
        Some(28) => "Ed448",
        _ => "unknown",
    };
    let armor = format!("{BEGIN}{}{END}\n", block.replace("\r\n", "\n"));
    Ok(PublicKey { id, fingerprint, owner, algorithm, armor })
}

fn fingerprint(body: &[u8]) -> Option<String> {
    let (mark, algorithm, wide) = match body.first()? {
        4 => (0x99, &SHA1_FOR_LEGACY_USE_ONLY, false),
        5 => (0x9a, &SHA256, true),
        6 => (0x9b, &SHA256, true),
        _ => return None,
    };
    let mut text = vec![mark];
    match wide {
        true => text.extend(u32::try_from(body.len()).ok()?.to_be_bytes()),
        false => text.extend(u16::try_from(body.len()).ok()?.to_be_bytes()),
    }
    text.extend_from_slice(body);
    Some(digest(algorithm, &text).as_ref().iter().map(|byte| format!("{byte:02X}")).collect())
}

/// The packets of a key by their tags, of one length each.
fn packets(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut found = Vec::new();
    while let [head, rest @ ..] = bytes {
        let (tag, length, rest) = match head {
            head if head & 0xc0 == 0xc0 => {
                let (length, rest) = new_length(rest)?;
                (head & 0x3f, length, rest)
            }
            head if head & 0x80 != 0 => {
                let width = match head & 3 {
                    0 => 1,
                    1 => 2,
                    2 => 4,
                    _ => return None,
                };
                let (digits, rest) = rest.split_at_checked(width)?;
                let length = digits.iter().fold(0_usize, |all, digit| (all << 8) | usize::from(*digit));
                ((head >> 2) & 0xf, length, rest)
            }
            _ => return None,
        };
        let (body, after) = rest.split_at_checked(length)?;
        found.push((tag, body));
        bytes = after;
    }
    Some(found)
}

fn new_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [first @ 0..=191, rest @ ..] => Some((usize::from(*first), rest)),
        [first @ 192..=223, second, rest @ ..] => {
            Some((((usize::from(*first) - 192) << 8) + usize::from(*second) + 192, rest))
        }
        [255, a, b, c, d, rest @ ..] => {
            Some((usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok()?, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Made by GnuPG 2, which gives it the fingerprint below.
    pub(crate) const ANN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEav1b8BYJKwYBBAHaRw8BAQdA5kx9IDH4qpEYVXbq1HcVQpmksyoIjnQvXvl/
l+OdQIO0FUFubiA8YW5uQGV4YW1wbGUuY29tPoiQBBMWCAA4FiEEPQxKWGJOy5RQ
K8rbQ3jTr5lXpmkFAmr9W/ACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQ
Q3jTr5lXpmniVgEA9eviKOq2mpTm5UJyutfLQEN6ivyRS8AcixcaO386qfcBAPqZ
RmZS0gPFrdKuzDIPZdx7wds0/mdyVGlIeUySPbAM
=myX5
-----END PGP PUBLIC KEY BLOCK-----
";

    #[test]
    fn a_key_has_the_name_that_gnupg_gives_it() {
        let keys = read(&format!("a note\n{ANN}\nand again\n{}", ANN.replace('\n', "\r\n"))).expect("keys");
        assert_eq!(keys.len(), 2);
        for key in &keys {
            assert_eq!(key.fingerprint, "3D0C4A58624ECB94502BCADB4378D3AF9957A669");
            assert_eq!((key.id.as_str(), key.algorithm), ("4378D3AF9957A669", "EdDSA"));
            assert_eq!((key.owner.as_str(), key.armor.as_str()), ("Ann <ann@example.com>", ANN));
        }
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let private = ANN.replace("PUBLIC", "PRIVATE");
        let cut = &ANN[..200];
        let broken = ANN.replace("mDME", "%%%%");
        let strange = format!("{BEGIN}\n\nAAAA\n{END}");
        let none = format!("{BEGIN}\n\ntAA=\n{END}");
        for text in ["", "x", &private, cut, &broken, &strange, &none, &"x".repeat(LONGEST + 1)] {
            assert!(read(text).is_err(), "{text:.40}");
        }
    }

    #[test]
    fn no_bytes_make_it_fail() {
        for byte in 0..=255_u8 {
            for length in 0..8 {
                for (_, body) in packets(&vec![byte; length]).unwrap_or_default() {
                    let _ = fingerprint(body);
                }
            }
        }
    }
}
