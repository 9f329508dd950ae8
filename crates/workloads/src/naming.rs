//! Names and addresses from a stable hash: the same inputs give the same name in every run and process.
//! That makes creation idempotent (a decision repeated on a stale view asks for the same name, and the API
//! answers "already exists") and simulated runs reproducible.

use serde_json::Value;
use std::collections::HashSet;

/// Kubernetes' alphabet for generated names: no vowels and no look-alikes, so that no word appears.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a pod template as it appears in `pod-template-hash` and revision names. Nulls, empty
/// containers and key order do not count: a typed client that reads and writes a template back changes
/// those, and must not start a rollout.
pub(crate) fn template_hash(template: &Value) -> String {
    let mut hash = Fnv::new();
    feed(&mut hash, template, 0);
    encode(hash.finish(), 10)
}

/// The first `count` names `<prefix>-<suffix>` that are not taken; the suffix depends on `seed` only.
pub(crate) fn fresh_names(prefix: &str, seed: &str, taken: &HashSet<&str>, count: usize) -> Vec<String> {
    (0u64..)
        .map(|index| suffixed(prefix, &[seed, &index.to_string()]))
        .filter(|name| !taken.contains(name.as_str()))
        .take(count)
        .collect()
}

/// `<prefix>-<five characters from seeds>`, shortened to fit a name's 63 characters.
pub(crate) fn suffixed(prefix: &str, seeds: &[&str]) -> String {
    let kept: String = prefix.chars().take(57).collect();
    format!("{kept}-{}", encode(digest(seeds), 5))
}

pub(crate) fn digest(seeds: &[&str]) -> u64 {
    let mut hash = Fnv::new();
    for seed in seeds {
        hash.write(seed.as_bytes());
        hash.write(&[0xff]);
    }
    hash.finish()
}

/// 64 hexadecimal digits, for container identifiers.
pub(crate) fn long_hex(seeds: &[&str]) -> String {
    let first = digest(seeds);
    (0u64..4).map(|part| format!("{:016x}", digest(&[&first.to_string(), &part.to_string()]))).collect()
}

/// An address `<prefix>.x.y` whose last part is never 0 or 255.
pub(crate) fn address(prefix: &str, seeds: &[&str]) -> String {
    let hash = digest(seeds);
    format!("{prefix}.{}.{}", (hash >> 8) % 256, 1 + hash % 254)
}

fn encode(hash: u64, length: usize) -> String {
    let mut rest = hash;
    (0..length)
        .map(|_| {
            let index = usize::try_from(rest % 27).unwrap_or(0);
            rest /= 27;
            char::from(ALPHABET[index])
        })
        .collect()
}

fn feed(hash: &mut Fnv, value: &Value, depth: usize) {
    // Deeper than any real pod template; a hostile one merely stops counting there.
    if depth > 64 {
        return;
    }
    match value {
        Value::Null => {}
        Value::Bool(flag) => hash.write(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => hash.write(number.to_string().as_bytes()),
        Value::String(text) => {
            hash.write(b"\"");
            hash.write(text.as_bytes());
            hash.write(&[0xff]);
        }
        Value::Array(list) => {
            hash.write(b"[");
            list.iter().for_each(|item| feed(hash, item, depth + 1));
            hash.write(b"]");
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().filter(|(_, value)| !is_empty(value)).collect();
            entries.sort_by_key(|(key, _)| *key);
            hash.write(b"{");
            for (key, value) in entries {
                hash.write(key.as_bytes());
                hash.write(&[0xff]);
                feed(hash, value, depth + 1);
            }
            hash.write(b"}");
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// FNV-1a with a final mix, so that short inputs differ in all digits.
struct Fnv(u64);

// === impl Fnv ===

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(self) -> u64 {
        let mut hash = self.0;
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_read_and_written_by_a_typed_client_keeps_its_hash() {
        let applied = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
        let rewritten = json!({"spec": {"containers": [{"image": "i:1", "name": "c", "resources": {}}]},
            "metadata": {"creationTimestamp": null, "labels": {"a": "b"}}});
        assert_eq!(template_hash(&applied), template_hash(&rewritten));
        let changed = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}});
        assert_ne!(template_hash(&applied), template_hash(&changed));
    }

    #[test]
    fn fresh_names_skip_what_is_taken_and_repeat_otherwise() {
        let first = fresh_names("web", "uid", &HashSet::new(), 3);
        let taken = HashSet::from([first[0].as_str()]);
        assert_eq!(fresh_names("web", "uid", &taken, 2), first[1..]);
        assert!(first[0].starts_with("web-") && first[0].len() == 9);
    }
}
