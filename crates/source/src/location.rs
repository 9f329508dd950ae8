//! Which repository a URL names, and whether it may be read.

use std::path::{Path, PathBuf};

use crate::error::SourceError;
use crate::secret::Secret;
use crate::settings::Settings;

/// Longest URL that is read.
const MAX_URL: usize = 4096;

/// Where a repository is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// Over the network.
    Remote(Remote),
    /// From the files of a directory that the operator named and that is no repository.
    Directory {
        /// The directory.
        path: PathBuf,
        /// How messages name it.
        display: String,
    },
    /// From this machine's disk.
    Local {
        /// The working tree or bare repository.
        path: PathBuf,
        /// How messages name it.
        display: String,
    },
}

/// A repository over the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// What `git` is given. A password that stood in the URL is not in it: `git` shows URLs on command lines.
    pub(crate) url: String,
    pub(crate) scheme: Scheme,
    /// `host` or `host:port`, as in the URL.
    pub(crate) authority: String,
    /// User and password that stood in an http or https URL.
    pub(crate) user_info: Option<(String, Secret)>,
}

/// The protocols that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Https,
    Http,
    Ssh,
}

impl Location {
    /// Reads a URL, minding the operator's mapping of URLs to local paths.
    pub(crate) fn parse(url: &str, settings: &Settings) -> Result<Location, SourceError> {
        let url = url.trim();
        let refuse = |why: &str| SourceError::Url { url: display(url), why: why.to_owned() };
        if url.is_empty() {
            return Err(refuse("it is empty"));
        }
        if url.len() > MAX_URL {
            return Err(SourceError::Url {
                url: display(&url.chars().take(100).collect::<String>()),
                why: format!("it is longer than {MAX_URL} bytes"),
            });
        }
        if url.chars().any(char::is_control) || has_escaped_control(url) {
            return Err(refuse("it holds a control character"));
        }
        if let Some(path) = mapped(url, settings) {
            return Ok(Location::Local { path: path.to_owned(), display: display(url) });
        }
        if url.starts_with('-') {
            return Err(refuse("it begins with a dash"));
        }
        if url.split_once("::").is_some_and(|(helper, _)| is_scheme(helper)) {
            return Err(refuse("remote helpers (\"name::address\") are not run"));
        }
        let local = if let Some((scheme, rest)) = url.split_once("://") {
            match scheme.to_ascii_lowercase().as_str() {
                "https" => return remote(url, Scheme::Https, rest).map(Location::Remote),
                "http" => return remote(url, Scheme::Http, rest).map(Location::Remote),
                "ssh" => return remote(url, Scheme::Ssh, rest).map(Location::Remote),
                "file" => Path::new(rest),
                _ => return Err(refuse("its protocol is none of https, http and ssh")),
            }
        } else if url.starts_with('/') {
            Path::new(url)
        } else {
            return scp(url).map(Location::Remote);
        };
        if !settings.allow_local {
            return Err(refuse("repositories on the local disk are not allowed"));
        }
        if !local.is_absolute() {
            return Err(refuse("a path on the local disk must be absolute"));
        }
        Ok(Location::Local { path: local.to_owned(), display: display(url) })
    }

    /// How messages name the repository: without user information.
    pub(crate) fn display(&self) -> String {
        match self {
            Location::Remote(remote) => remote.url.clone(),
            Location::Directory { display, .. } | Location::Local { display, .. } => display.clone(),
        }
    }
}

fn mapped<'a>(url: &str, settings: &'a Settings) -> Option<&'a Path> {
    let exact = settings.local.get(url);
    let same = || settings.local.iter().find(|(known, _)| same_repository(known, url)).map(|(_, path)| path);
    exact.or_else(same).map(PathBuf::as_path)
}

fn remote(url: &str, scheme: Scheme, rest: &str) -> Result<Remote, SourceError> {
    let refuse = |why: &str| SourceError::Url { url: display(url), why: why.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if !is_host(host) {
        return Err(refuse("it names no host that can be asked"));
    }
    if scheme == Scheme::Ssh {
        if path.len() < 2 {
            return Err(refuse("it names no repository on its host"));
        }
        if user.is_some_and(|user| !is_ssh_user(user)) {
            return Err(refuse("its user is no user for ssh (a password cannot stand here)"));
        }
        return Ok(Remote {
            url: format!("ssh://{authority}{path}"),
            scheme,
            authority: host.to_owned(),
            user_info: None,
        });
    }
    let name = if scheme == Scheme::Https { "https" } else { "http" };
    let user_info = user.map(|user| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        (unescape(name), Secret::new(unescape(password)))
    });
    if user_info
        .as_ref()
        .is_some_and(|(name, password)| name.chars().chain(password.expose().chars()).any(char::is_control))
    {
        return Err(refuse("it holds a control character"));
    }
    Ok(Remote { url: format!("{name}://{host}{path}"), scheme, authority: host.to_owned(), user_info })
}

/// Reads `user@host:path`.
fn scp(url: &str) -> Result<Remote, SourceError> {
    let refuse = |why: &str| SourceError::Url { url: display(url), why: why.to_owned() };
    let unknown = || refuse("it is no https, http or ssh URL");
    let (user, rest) = url.split_once('@').ok_or_else(unknown)?;
    let end = if rest.starts_with('[') { rest.find(']').map(|at| at + 1) } else { rest.find(':') };
    let (host, path) = rest.split_at(end.ok_or_else(unknown)?);
    let path = path.strip_prefix(':').ok_or_else(unknown)?;
    if !is_ssh_user(user) || !is_host(host) || path.is_empty() || path.starts_with('-') {
        return Err(unknown());
    }
    Ok(Remote { url: url.to_owned(), scheme: Scheme::Ssh, authority: host.to_owned(), user_info: None })
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_'))
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && !host.starts_with(['-', ':'])
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']'))
}

fn is_ssh_user(user: &str) -> bool {
    !user.is_empty()
        && !user.starts_with('-')
        && user.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
}

/// Whether a percent escape stands for a control character: `git` would unescape it into its own protocols.
fn has_escaped_control(url: &str) -> bool {
    url.as_bytes().windows(3).any(|window| {
        window[0] == b'%' && hex_pair(window[1], window[2]).is_some_and(|byte| byte < 0x20 || byte == 0x7f)
    })
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = match (byte, bytes.get(at + 1), bytes.get(at + 2)) {
            (b'%', Some(&high), Some(&low)) => hex_pair(high, low),
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// A URL for messages: what stands between `://` and the last `@` of the authority is left out.
pub(crate) fn display(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// Whether two URLs name one repository, as Argo CD compares them: case, surrounding spaces, a final `.git` and the
/// two spellings of ssh URLs do not matter.
pub(crate) fn same_repository(left: &str, right: &str) -> bool {
    !left.trim().is_empty() && normalised(left) == normalised(right)
}

/// Whether a credential template's URL covers a repository: a prefix of it, of whole host names.
///
/// Argo CD compares letters only, so that a template for `https://git.example.com` would be sent to
/// `https://git.example.com.other.org` too.
pub(crate) fn covers(template: &str, repository: &str) -> Option<usize> {
    let (template, repository) = (normalised(template), normalised(repository));
    let rest = repository.strip_prefix(template.as_str())?;
    let after_scheme = template.split_once("://").map_or(template.as_str(), |(_, rest)| rest);
    let names_path = after_scheme.contains('/');
    let whole_host = rest.is_empty() || rest.starts_with('/');
    (!after_scheme.is_empty() && (names_path || whole_host)).then_some(template.len())
}

fn normalised(url: &str) -> String {
    let mut url = url.trim().to_lowercase();
    if !url.contains("://") && url.contains('@') {
        url = url.replacen(':', "/", 1);
    }
    let url = url.strip_suffix(".git").unwrap_or(&url);
    url.strip_prefix("ssh://").unwrap_or(url).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(url: &str) -> Result<Location, SourceError> {
        Location::parse(url, &Settings::default())
    }

    fn remote_of(url: &str) -> Remote {
        match parse(url) {
            Ok(Location::Remote(remote)) => remote,
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn urls_of_the_three_protocols_are_read() {
        assert_eq!(remote_of("https://Git.example.com/a/b.git").authority, "Git.example.com");
        assert_eq!(remote_of(" http://127.0.0.1:8080/a ").authority, "127.0.0.1:8080");
        assert_eq!(remote_of("HTTPS://x.org/a").url, "https://x.org/a");
        assert_eq!(remote_of("ssh://git@x.org:2222/a/b").url, "ssh://git@x.org:2222/a/b");
        let scp = remote_of("git@x.org:team/repo.git");
        assert_eq!((scp.scheme, scp.authority.as_str()), (Scheme::Ssh, "x.org"));
        assert_eq!(remote_of("git@[::1]:repo").authority, "[::1]");
    }

    #[test]
    fn a_password_in_the_url_is_kept_apart_from_it() {
        let remote = remote_of("https://jane:p%40ss@x.org/a");
        assert_eq!(remote.url, "https://x.org/a");
        let (user, password) = remote.user_info.clone().expect("the URL has user information");
        assert_eq!((user.as_str(), password.expose()), ("jane", "p@ss"));
        assert!(!format!("{remote:?}").contains("p@ss"));
        assert_eq!(display("https://jane:pw@x.org/a@b"), "https://x.org/a@b");
    }

    #[test]
    fn urls_that_would_run_or_read_something_else_are_refused() {
        for url in [
            "",
            "   ",
            "-oProxyCommand=x",
            "--upload-pack=touch /tmp/x",
            "ext::sh -c touch% /tmp/x",
            "fd::17",
            "transport::address",
            "file:///etc",
            "file://relative",
            "/etc",
            "relative/path",
            "../up",
            "git://x.org/a",
            "ftp://x.org/a",
            "ssh://-oProxyCommand=x/a",
            "ssh://git@-oProxyCommand=x/a",
            "ssh://x.org",
            "ssh://a:pw@x.org/a",
            "-x@host:path",
            "git@-host:path",
            "git@host:-path",
            "git@host:",
            "host:path",
            "https://",
            "https:///path",
            "https://user@/path",
            "https://x.org/a\nb",
            "https://x.org/a%0ahost=evil",
            "https://x.org/%00",
            "https://ho st/",
            "https://a%0d:b@x.org/",
        ] {
            assert!(matches!(parse(url), Err(SourceError::Url { .. })), "{url:?}: {:?}", parse(url));
        }
        assert!(parse(&format!("https://x.org/{}", "a".repeat(MAX_URL))).is_err());
    }

    #[test]
    fn local_paths_are_read_when_allowed_and_mapped_ones_always() {
        let allowed = Settings { allow_local: true, ..Settings::default() };
        for url in ["/srv/repo", "file:///srv/repo"] {
            let location = Location::parse(url, &allowed).expect("allowed");
            assert!(
                matches!(&location, Location::Local { path, .. } if path == Path::new("/srv/repo")),
                "{url}"
            );
        }
        assert!(Location::parse("file://host/repo", &allowed).is_err());
        let mut mapping = Settings::default();
        mapping.local.insert("https://x.org/team/Repo.git".into(), "/srv/r".into());
        for url in ["https://x.org/team/Repo.git", "https://X.org/team/repo"] {
            assert!(matches!(Location::parse(url, &mapping), Ok(Location::Local { .. })), "{url}");
        }
    }

    #[test]
    fn a_template_covers_whole_hosts_only() {
        let cases = [
            ("https://git.example.com", "https://git.example.com/a/b", true),
            ("https://git.example.com/", "https://git.example.com/a/b", true),
            ("https://git.example.com", "https://git.example.com.evil.org/a", false),
            ("https://git.example.com", "https://git.example.com@evil.org/a", false),
            ("https://git.example.com", "https://git.example.com:8443/a", false),
            ("https://git.example.com/team", "https://git.example.com/team-a/b", true),
            ("https://git.example.com/team.git", "https://git.example.com/team", true),
            ("git@git.example.com:team", "git@git.example.com:team/x.git", true),
            ("ssh://git@git.example.com", "git@git.example.com:team/x.git", true),
            ("git@git.example.com", "git@git.example.comevil:team", false),
            ("https://", "https://git.example.com/a", false),
            ("", "https://git.example.com/a", false),
        ];
        for (template, repository, expected) in cases {
            assert_eq!(covers(template, repository).is_some(), expected, "{template} {repository}");
        }
    }

    proptest! {
        #[test]
        fn no_url_panics(
            url in "(https?://|ssh://|file://|/)?[a-z:@/.%\\[\\]0-9-]{0,30}",
            any in "\\PC{0,60}",
        ) {
            let _ = parse(&any);
            let _ = parse(&url);
            let _ = (display(&any), covers(&any, &url), same_repository(&any, &url));
        }

        #[test]
        fn user_information_of_a_url_is_never_part_of_what_is_shown(secret in "[A-Z]{6,12}", host in "[a-z]{1,8}") {
            let url = format!("https://u:{secret}@{host}/x");
            let location = parse(&url).expect("a URL");
            prop_assert!(!location.display().contains(&secret));
            let is_secret_kept = !format!("{location:?}").contains(&secret);
            prop_assert!(is_secret_kept);
        }
    }
}
