//! What is registered beside Applications, as Argo CD stores it: from what people send to Secrets and ConfigMaps, and
//! back without what opens anything. Pure.

pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod openpgp;
pub(crate) mod repository;

use std::collections::BTreeMap;

use crate::error::Error;

/// Longest URL of a cluster or a repository.
const LONGEST_URL: usize = 2048;

/// The texts of a Secret, by their keys.
pub(crate) type Texts = BTreeMap<String, String>;

/// The name of the Secret of something that has a URL, as Argo CD makes it: of its kind, its host and a digest.
pub(crate) fn secret_name_of_host(kind: &str, url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &authority[..authority.find(['/', '?', '#']).unwrap_or(authority.len())];
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address.replace(':', "-"),
        None => authority.split(':').next().unwrap_or_default().to_owned(),
    };
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let host: String = host.to_ascii_lowercase().chars().filter(|c| sound(*c)).take(200).collect();
    let host = host.trim_matches(|c| c == '-' || c == '.');
    format!("{kind}-{host}-{}", digest(&[url])).replace("--", "-")
}

/// The name of the Secret of a repository or of credentials, as Argo CD makes it.
pub(crate) fn secret_name(kind: &str, url: &str, project: &str) -> String {
    format!("{kind}-{}", digest(&[url, project]))
}

/// FNV-1a of 32 bits: by it Argo CD tells names apart.
fn digest(texts: &[&str]) -> u32 {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A URL that can be registered.
///
/// # Errors
/// What is wrong with it, without what it holds.
pub(crate) fn sound_url(field: &str, url: &str) -> Result<String, Error> {
    let url = url.trim();
    let wrong = |what: &str| Error::invalid(format!("{field}: {what}"));
    if url.is_empty() {
        return Err(wrong("a URL is needed"));
    }
    if url.len() > LONGEST_URL {
        return Err(wrong("the URL is too long"));
    }
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("a URL has neither spaces nor control characters"));
    }
    let web = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    if let Some(rest) = web {
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        if authority.is_empty() {
            return Err(wrong("the URL names no host"));
        }
        if authority.contains('@') {
            return Err(wrong("credentials do not belong into the URL: they have fields of their own"));
        }
    }
    Ok(url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_the_names_that_argo_cd_gives_them() {
        assert_eq!(digest(&[""]), 2_166_136_261);
        assert_eq!(digest(&["a"]), 0xe40c_292c);
        assert_eq!(digest(&["foo", "bar"]), digest(&["foobar"]));
        let name = secret_name_of_host("cluster", "https://foo.example.com:6443/x");
        assert_eq!(name, format!("cluster-foo.example.com-{}", digest(&["https://foo.example.com:6443/x"])));
        assert!(secret_name_of_host("cluster", "https://[fd00::1]:6443").starts_with("cluster-fd00-1-"));
        assert_eq!(secret_name("repo", "https://a", "shop"), format!("repo-{}", digest(&["https://ashop"])));
    }

    #[test]
    fn a_url_that_cannot_be_registered_is_refused_without_being_told() {
        assert_eq!(sound_url("repo", " git@github.com:a/b.git ").as_deref(), Ok("git@github.com:a/b.git"));
        assert!(sound_url("repo", "ssh://git@host/a").is_ok());
        let long = format!("https://{}", "x".repeat(3000));
        for url in ["", " ", "https://", "http:///x", "https://a b", "a\nb", "https://me:hush@host/x", &long]
        {
            let error = sound_url("repo", url).expect_err(url);
            assert!(error.message.starts_with("repo: ") && !error.message.contains("hush"), "{error}");
        }
    }
}
