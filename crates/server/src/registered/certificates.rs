//! Keys of hosts and certificates of servers, as Argo CD's ConfigMaps hold them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Texts;
use crate::error::Error;

/// Most of one request.
const MOST: usize = 500;
/// Longest data of one.
const LONGEST: usize = 256 << 10;

/// Certificates as they shall be.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CertificateRequest {
    /// Each of them.
    pub items: Option<Vec<CertificateItem>>,
}

/// A certificate, or the key of a host.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateItem {
    /// The host.
    pub server_name: String,
    /// `ssh` or `https`.
    pub cert_type: String,
    /// The algorithm of a host's key.
    pub cert_sub_type: String,
    /// PEM, or the key of a host as `known_hosts` has it, in base64.
    pub cert_data: Option<String>,
}

/// What was sent, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Certificate {
    Host { name: String, algorithm: String, key: String },
    Server { name: String, pem: String },
}

/// What is meant by a deletion or a list.
#[derive(Debug, Clone, Default)]
pub struct CertificateQuery {
    /// Of hosts with this in their name; a glob where something is deleted.
    pub host: String,
    /// `ssh`, `https`, or both where it is empty or `*`.
    pub kind: String,
    /// Of this algorithm, for keys of hosts.
    pub algorithm: String,
}

/// Reads certificates.
///
/// # Errors
/// What is wrong with which of them.
pub(crate) fn read(request: &CertificateRequest) -> Result<Vec<Certificate>, Error> {
    let items = request.items.as_deref().unwrap_or_default();
    if items.is_empty() || items.len() > MOST {
        return Err(Error::invalid(format!("items: one to {MOST} certificates are needed")));
    }
    let read = items
        .iter()
        .enumerate()
        .map(|(at, item)| item.read().map_err(|what| Error::invalid(format!("items[{at}]: {what}"))));
    read.collect()
}

// === impl CertificateItem ===

impl CertificateItem {
    fn read(&self) -> Result<Certificate, &'static str> {
        let data = self.cert_data.as_deref().unwrap_or_default();
        if data.len() > LONGEST {
            return Err("certData is too long");
        }
        let bytes = STANDARD.decode(data.trim()).map_err(|_| "certData is to be base64")?;
        let name = self.server_name.to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match self.cert_type.as_str() {
            "ssh" => {
                let sound = |c: char| plain(c) || matches!(c, '[' | ']' | ':');
                if name.is_empty() || name.len() > 253 || !name.chars().all(sound) {
                    return Err("serverName is to be a host, with a port as [host]:port");
                }
                let key = key(&bytes, &self.cert_sub_type).ok_or("certData is no key of that certSubType")?;
                Ok(Certificate::Host { name, algorithm: self.cert_sub_type.clone(), key })
            }
            "https" => {
                if name.is_empty() || name.len() > 253 || !name.chars().all(plain) || name.starts_with('.') {
                    return Err("serverName is to be a host");
                }
                let pem = String::from_utf8(bytes).map_err(|_| "certData is to be PEM")?;
                if !is_certificates(&pem) {
                    return Err("certData is to be certificates in PEM");
                }
                Ok(Certificate::Server { name, pem: format!("{}\n", pem.trim_end()) })
            }
            _ => Err("certType is to be ssh or https"),
        }
    }
}

/// The key of a host as `known_hosts` has it, if it is one of the algorithm. Clients send that text, or what it stands for.
fn key(bytes: &[u8], algorithm: &str) -> Option<String> {
    let named = |blob: &[u8]| {
        let length = u32::from_be_bytes(blob.get(..4)?.try_into().ok()?);
        let name = blob.get(4..)?.get(..usize::try_from(length).ok()?)?;
        (name == algorithm.as_bytes() && !name.is_empty()).then_some(())
    };
    if named(bytes).is_some() {
        return Some(STANDARD.encode(bytes));
    }
    let text = std::str::from_utf8(bytes).ok()?.trim();
    named(&STANDARD.decode(text).ok()?).map(|()| text.to_owned())
}

/// Whether a text is nothing but certificates in PEM, at least one.
fn is_certificates(pem: &str) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let mut found = CertificateDer::pem_slice_iter(pem.as_bytes()).peekable();
    found.peek().is_some()
        && found.all(|one| one.is_ok_and(|one| one.first() == Some(&0x30)))
        && !pem.contains("PRIVATE KEY")
}

/// A line of `known_hosts`.
struct Line<'t> {
    name: &'t str,
    algorithm: &'t str,
    key: &'t str,
}

// === impl Line ===

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Option<Line<'t>> {
        let mut words = line.split_whitespace().filter(|_| !line.trim_start().starts_with('#'));
        Some(Line { name: words.next()?, algorithm: words.next()?, key: words.next()? })
    }

    fn told(&self) -> Option<Value> {
        let digest = Sha256::digest(STANDARD.decode(self.key).ok()?);
        Some(json!({
            "serverName": self.name, "certType": "ssh", "certSubType": self.algorithm, "certData": null,
            "certInfo": format!("SHA256:{}", STANDARD_NO_PAD.encode(digest)),
        }))
    }
}

fn told_server(name: &str) -> Value {
    json!({"serverName": name, "certType": "https", "certSubType": "", "certInfo": "", "certData": null})
}

/// Keys of hosts and certificates of servers, without their data.
pub(crate) fn listed(hosts: &str, servers: &Texts) -> Vec<Value> {
    let of_hosts = hosts.lines().filter_map(Line::read).filter_map(|line| line.told());
    of_hosts.chain(servers.keys().map(|name| told_server(name))).collect()
}

/// What is stored once certificates are added: both texts, and those that are new.
///
/// # Errors
/// There is another of the same place, and it is not to be replaced.
pub(crate) fn added(
    hosts: &str,
    servers: &Texts,
    wanted: &[Certificate],
    upsert: bool,
) -> Result<(String, Texts, Vec<Value>), Error> {
    let (mut lines, mut servers) = (hosts.lines().map(str::to_owned).collect::<Vec<_>>(), servers.clone());
    let mut new = Vec::new();
    let other = |name: &str| {
        Error::invalid(format!(
            "{name} has another certificate already, and upsert was not specified: use upsert to replace it"
        ))
    };
    for certificate in wanted {
        match certificate {
            Certificate::Host { name, algorithm, key } => {
                let of = |line: &String| {
                    Line::read(line).is_some_and(|line| line.name == name && line.algorithm == algorithm)
                };
                let there = lines.iter().position(of);
                let same = there.is_some_and(|at| Line::read(&lines[at]).is_some_and(|line| line.key == key));
                if same {
                    continue;
                }
                let line = format!("{name} {algorithm} {key}");
                new.extend(Line::read(&line).and_then(|line| line.told()));
                match there {
                    Some(_) if !upsert => return Err(other(name)),
                    Some(at) => lines[at] = line,
                    None => lines.push(line),
                }
            }
            Certificate::Server { name, pem } => {
                match servers.get(name) {
                    Some(there) if there.trim() == pem.trim() => continue,
                    Some(_) if !upsert => return Err(other(name)),
                    _ => {}
                }
                new.push(told_server(name));
                servers.insert(name.clone(), pem.clone());
            }
        }
    }
    Ok((format!("{}\n", lines.join("\n")), servers, new))
}

/// What is stored once those that are meant are gone: both texts, and those that were there.
///
/// # Errors
/// The pattern cannot be read.
pub(crate) fn removed(
    hosts: &str,
    servers: &Texts,
    query: &CertificateQuery,
) -> Result<(String, Texts, Vec<Value>), Error> {
    let pattern = baton_grammar::globs::gobwas::Pattern::new(&query.host, &[])
        .map_err(|_| Error::invalid("hostNamePattern: it is no glob"))?;
    let is = |wanted: &str, found: &str| matches!(wanted, "" | "*") || wanted == found;
    let (mut gone, mut lines) = (Vec::new(), Vec::new());
    for line in hosts.lines() {
        let meant = Line::read(line).filter(|read| {
            is(&query.kind, "ssh") && is(&query.algorithm, read.algorithm) && pattern.matches(read.name)
        });
        match meant.and_then(|read| read.told()) {
            Some(told) => gone.push(told),
            None => lines.push(line),
        }
    }
    let of_servers = is(&query.kind, "https") && matches!(query.algorithm.as_str(), "" | "*");
    let (meant, kept): (Texts, Texts) =
        servers.clone().into_iter().partition(|(name, _)| of_servers && pattern.matches(name));
    gone.extend(meant.keys().map(|name| told_server(name)));
    Ok((format!("{}\n", lines.join("\n")), kept, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of a host, as OpenSSH writes it: its algorithm and 32 bytes.
    fn blob(algorithm: &str, byte: u8) -> Vec<u8> {
        let mut blob = u32::try_from(algorithm.len()).expect("short").to_be_bytes().to_vec();
        blob.extend_from_slice(algorithm.as_bytes());
        blob.extend([0, 0, 0, 32]);
        blob.extend([byte; 32]);
        blob
    }

    fn host(name: &str, byte: u8) -> CertificateItem {
        let text = STANDARD.encode(blob("ssh-ed25519", byte));
        CertificateItem {
            server_name: name.to_owned(),
            cert_type: "ssh".to_owned(),
            cert_sub_type: "ssh-ed25519".to_owned(),
            cert_data: Some(STANDARD.encode(text)),
        }
    }

    fn wanted(items: Vec<CertificateItem>) -> Result<Vec<Certificate>, Error> {
        read(&CertificateRequest { items: Some(items) })
    }

    #[test]
    fn keys_of_hosts_are_told_by_their_fingerprints() {
        let told = listed("git.example.com ssh-ed25519 aGVsbG8= a note", &Texts::new());
        assert_eq!(told[0]["certInfo"], "SHA256:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ");
        assert_eq!(told[0]["certSubType"], "ssh-ed25519");
        for line in ["", "# git.example.com ssh-rsa aGVsbG8=", "a b", "a b %%%"] {
            assert!(listed(line, &Texts::new()).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_key_is_added_once_and_replaced_only_on_purpose() {
        let one = wanted(vec![host("Git.example.com", 1)]).expect("a key");
        let raw = CertificateItem {
            cert_data: Some(STANDARD.encode(blob("ssh-ed25519", 1))),
            ..host("git.example.com", 1)
        };
        assert_eq!(wanted(vec![raw]).expect("a key"), one, "the key itself is taken too");
        let (hosts, _, new) = added("# ours\n", &Texts::new(), &one, false).expect("added");
        assert!(hosts.starts_with("# ours\ngit.example.com ssh-ed25519 AAAA") && new.len() == 1, "{hosts}");
        let (same, _, none) = added(&hosts, &Texts::new(), &one, false).expect("added");
        assert_eq!((same, none.len()), (hosts.clone(), 0));
        let other = wanted(vec![host("git.example.com", 2)]).expect("a key");
        assert!(
            added(&hosts, &Texts::new(), &other, false).is_err_and(|error| error.message.contains("upsert"))
        );
        let (replaced, _, new) = added(&hosts, &Texts::new(), &other, true).expect("replaced");
        assert_eq!((replaced.lines().count(), new.len()), (2, 1));
    }

    #[test]
    fn what_is_meant_is_removed_and_nothing_else() {
        let servers = Texts::from([("git.example.com".to_owned(), "pem".to_owned())]);
        let all = wanted(vec![host("git.example.com", 1), host("other.example.com", 1)]).expect("keys");
        let (hosts, servers, _) = added("", &servers, &all, false).expect("added");
        let query = |host: &str, kind: &str| CertificateQuery {
            host: host.to_owned(),
            kind: kind.to_owned(),
            ..CertificateQuery::default()
        };
        let gone =
            |host: &str, kind: &str| removed(&hosts, &servers, &query(host, kind)).expect("removed").2.len();
        assert_eq!(
            (
                gone("git.example.com", ""),
                gone("git.example.com", "ssh"),
                gone("*", "https"),
                gone("git", "")
            ),
            (2, 1, 1, 0)
        );
        let (left, kept, _) = removed(&hosts, &servers, &query("git.*", "")).expect("removed");
        assert!(left.contains("other.example.com") && !left.contains("git.example.com") && kept.is_empty());
        assert!(removed(&hosts, &servers, &query("[", "")).is_err());
    }

    #[test]
    fn what_is_no_certificate_is_refused_by_its_place() {
        let base = host("git.example.com", 1);
        let pem = |text: &str| Some(STANDARD.encode(text));
        for item in [
            CertificateItem { server_name: String::new(), ..base.clone() },
            CertificateItem { server_name: "a b".to_owned(), ..base.clone() },
            CertificateItem { cert_sub_type: "ssh-rsa".to_owned(), ..base.clone() },
            CertificateItem { cert_data: None, ..base.clone() },
            CertificateItem { cert_data: Some("%".to_owned()), ..base.clone() },
            CertificateItem { cert_type: "gpg".to_owned(), ..base.clone() },
            CertificateItem { cert_type: "https".to_owned(), cert_data: pem("x"), ..base.clone() },
            CertificateItem {
                cert_type: "https".to_owned(),
                cert_data: pem("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"),
                ..base.clone()
            },
        ] {
            let error = wanted(vec![base.clone(), item.clone()]).expect_err("refused");
            assert!(error.message.starts_with("items[1]: "), "{item:?}: {error}");
        }
        assert!(wanted(Vec::new()).is_err() && read(&CertificateRequest::default()).is_err());
    }
}
