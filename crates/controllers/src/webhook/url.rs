//! Addresses of repositories: a webhook names one form, a generator may use another.

use regex::Regex;

/// Longest address that is looked at.
const MAX_LENGTH: usize = 4096;

/// User names in addresses, as Argo CD reads them.
const USER: &str = r"[0-9A-Za-z_.][0-9A-Za-z_.-]{0,30}[0-9A-Za-z_.$-]?";

/// A repository, recognised by any of its addresses.
#[derive(Debug, Clone)]
pub struct RepositoryUrl {
    pattern: Regex,
}

impl RepositoryUrl {
    /// From the address of its web page; `None` if that is no address.
    ///
    /// It matches `http`, `https` and `ssh` with or without user, port and `.git`, `host:path` too, whatever the case
    /// of letters; a host may have `ssh.` or `altssh.` before it.
    pub fn of_page(address: &str) -> Option<RepositoryUrl> {
        let (host, path) = host_and_path(address)?;
        RepositoryUrl::new(host, path.trim_matches('/'))
    }

    /// From the address of a clone, which may end in `.git`; otherwise like [`RepositoryUrl::of_page`].
    pub fn of_clone(address: &str) -> Option<RepositoryUrl> {
        let (host, path) = host_and_path(address)?;
        let path = path.trim_matches('/');
        RepositoryUrl::new(host, path.strip_suffix(".git").unwrap_or(path))
    }

    fn new(host: &str, path: &str) -> Option<RepositoryUrl> {
        if path.is_empty() {
            return None;
        }
        let (host, path) = (regex::escape(host), regex::escape(path));
        let pattern = format!(
            r"(?i)^(?:(?:https?|ssh)://)?(?:{USER}@)?(?:(?:alt)?ssh\.)?{host}(?::[0-9]+)?[:/]/?{path}(?:\.git)?/?$"
        );
        Some(RepositoryUrl { pattern: Regex::new(&pattern).ok()? })
    }

    /// From project and repository alone, for hosts that tell no address: it matches on any host.
    pub fn any_host(project: &str, repository: &str) -> Option<RepositoryUrl> {
        if project.is_empty() || repository.is_empty() || project.len() + repository.len() > MAX_LENGTH {
            return None;
        }
        let (project, repository) = (regex::escape(project), regex::escape(repository));
        let pattern = format!(r"(?i)[:/]{project}/{repository}(?:\.git)?/?$");
        Some(RepositoryUrl { pattern: Regex::new(&pattern).ok()? })
    }

    /// Whether an address leads to the repository.
    pub fn matches(&self, address: &str) -> bool {
        address.len() <= MAX_LENGTH && self.pattern.is_match(address)
    }
}

/// The host of an address, without user and port.
pub(super) fn host(address: &str) -> Option<&str> {
    host_and_path(address).map(|(host, _)| host)
}

fn host_and_path(address: &str) -> Option<(&str, &str)> {
    if address.len() > MAX_LENGTH {
        return None;
    }
    let (_, rest) = address.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then_some((host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_is_recognised() {
        let repository = RepositoryUrl::of_page("https://github.com/Org/Repo.Name").expect("an address");
        for address in [
            "https://github.com/org/repo.name",
            "https://github.com/Org/Repo.Name.git",
            "http://github.com/org/repo.name",
            "https://user@github.com/org/repo.name",
            "https://github.com:443/org/repo.name.git",
            "git@github.com:org/repo.name.git",
            "ssh://git@github.com/org/repo.name.git",
            "ssh://git@ssh.github.com:443/org/repo.name",
            "ssh://git@altssh.github.com:443/org/repo.name",
            "github.com/org/repo.name",
        ] {
            assert!(repository.matches(address), "{address}");
        }
        for address in [
            "https://github.com/org/repoxname",
            "https://github.com/org/repo.name/other",
            "https://github.com/other/org/repo.name",
            "https://evilgithub.com/org/repo.name",
            "https://github.com.evil/org/repo.name",
            "https://us er@github.com/org/repo.name",
            "",
        ] {
            assert!(!repository.matches(address), "{address}");
        }
    }

    #[test]
    fn an_address_may_be_that_of_a_clone_or_lack_its_host() {
        let clone = RepositoryUrl::of_clone("ssh://git@bitbucket.example.com:7999/proj/repo.git")
            .expect("an address");
        assert!(clone.matches("ssh://git@bitbucket.example.com:7999/proj/repo.git"));
        assert!(clone.matches("ssh://git@bitbucket.example.com/PROJ/repo"));
        let tail = RepositoryUrl::any_host("PROJ", "repo").expect("a repository");
        assert!(tail.matches("https://bitbucket.example.com/scm/proj/repo.git"));
        assert!(tail.matches("git@bitbucket.example.com:proj/repo"));
        assert!(!tail.matches("https://bitbucket.example.com/scm/other-proj/repo.git"));
    }

    #[test]
    fn what_is_no_address_matches_nothing() {
        for address in ["", "https://", "https:///path", "no scheme", "https://host", "https://host/"] {
            assert!(RepositoryUrl::of_page(address).is_none(), "{address}");
        }
        assert!(RepositoryUrl::of_page(&format!("https://h/{}", "a".repeat(5000))).is_none());
        assert_eq!(host("https://user:word@[::1]:8080/x"), Some("::1"));
    }
}
