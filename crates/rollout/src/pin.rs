//! What an Application is to be: its specification and the resolved revision of every source.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Sixty-four bits of a SHA-256, to tell one thing from another; written as sixteen hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fingerprint(u64);

/// A revision that is asked for: what is resolved once per run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceKey {
    /// URL of the repository.
    pub repo: Arc<str>,
    /// The revision asked for.
    pub target: Arc<str>,
    /// Name of the chart, where it is one.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub chart: Arc<str>,
    /// What tags begin with among which a version range looks.
    #[serde(rename = "tagPrefix", default, skip_serializing_if = "str::is_empty")]
    pub tag_prefix: Arc<str>,
}

/// What a revision was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resolution {
    /// The value to sync.
    pub sync: Arc<str>,
    /// Every value the Application controller may report for it, the one to sync among them.
    pub accept: BTreeSet<Arc<str>>,
}

/// What one Application is to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pin {
    /// Of the specification without automatic sync.
    pub spec: Fingerprint,
    /// Per source, in order.
    pub sources: Vec<Resolution>,
    /// Of the two.
    pub hash: Fingerprint,
}

// === impl Fingerprint ===

impl Fingerprint {
    /// Of parts, each told from the next.
    pub fn of<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Fingerprint {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Fingerprint(u64::from_be_bytes(first))
    }

    /// Of a value. Keys of objects are in their order, so that equal values have equal fingerprints.
    pub fn of_json(value: &Value) -> Fingerprint {
        Fingerprint::of([value.to_string()])
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Fingerprint, ()> {
        let plain = text.len() == 16
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if !plain {
            return Err(());
        }
        u64::from_str_radix(text, 16).map(Fingerprint).map_err(drop)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| serde::de::Error::custom("not a fingerprint: sixteen hexadecimal digits"))
    }
}

// === impl Resolution ===

impl Resolution {
    /// A value that is reported as it is.
    pub fn exact(value: impl Into<Arc<str>>) -> Resolution {
        let sync: Arc<str> = value.into();
        Resolution { accept: BTreeSet::from([sync.clone()]), sync }
    }
}

// === impl Pin ===

impl Pin {
    /// A specification with its sources resolved.
    pub fn new(spec: Fingerprint, sources: Vec<Resolution>) -> Pin {
        let own = spec.to_string();
        let parts =
            std::iter::once(own.as_bytes()).chain(sources.iter().map(|source| source.sync.as_bytes()));
        let hash = Fingerprint::of(parts);
        Pin { spec, sources, hash }
    }

    /// A pin that stands for another: an Application is to be this as long as the other is what is wanted of it.
    pub fn instead(&self, spec: Fingerprint, revisions: &[Arc<str>]) -> Pin {
        let sources = revisions.iter().cloned().map(Resolution::exact).collect();
        let own = Pin::new(spec, sources);
        let hash = Fingerprint::of([self.hash.to_string(), own.hash.to_string()]);
        Pin { hash, ..own }
    }

    /// Whether these reported revisions, one per source, are all of this pin.
    pub fn accepts(&self, reported: &[Arc<str>]) -> bool {
        reported.len() == self.sources.len()
            && self.sources.iter().zip(reported).all(|(source, reported)| source.accept.contains(reported))
    }

    /// The values to sync, one per source.
    pub fn revisions(&self) -> Vec<Arc<str>> {
        self.sources.iter().map(|source| source.sync.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_follows_its_specification_and_every_revision() {
        let spec = |text: &str| Fingerprint::of([text]);
        let one = Pin::new(spec("a"), vec![Resolution::exact("1"), Resolution::exact("2")]);
        assert_eq!(one.hash, Pin::new(spec("a"), vec![Resolution::exact("1"), Resolution::exact("2")]).hash);
        assert_ne!(one.hash, Pin::new(spec("b"), one.sources.clone()).hash);
        assert_ne!(one.hash, Pin::new(spec("a"), vec![Resolution::exact("2"), Resolution::exact("1")]).hash);
        assert!(one.accepts(&["1".into(), "2".into()]));
        assert!(!one.accepts(&["2".into(), "1".into()]) && !one.accepts(&["1".into()]));
    }

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let print = Fingerprint::of(["a", "b"]);
        assert_ne!(print, Fingerprint::of(["ab"]));
        assert_eq!(print.to_string().parse(), Ok(print));
        for broken in ["", "0", "00000000000000000", "000000000000000G", "+00000000000000f"] {
            assert_eq!(broken.parse::<Fingerprint>(), Err(()), "{broken}");
        }
    }
}
