//! How hosts may be asked.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How hosts may be asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether they may be asked at all.
    pub enabled: bool,
    /// The values of `api` that generators may name; empty is all. A generator without `api` is always allowed.
    pub allowed_apis: Vec<String>,
    /// URL of Bitbucket Cloud's API for scmProvider generators, which cannot name one.
    pub bitbucket_api: String,
    /// PEM file with the only certificate authorities to trust for GitLab and Bitbucket Server.
    pub root_ca: Option<PathBuf>,
    /// How requests leave.
    pub proxy: Proxy,
    /// Take tokens only from Secrets labelled as credentials of source code hosts.
    pub strict_token_refs: bool,
    /// Count the calls to GitHub.
    pub github_metrics: bool,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the whole answer to one request.
    pub timeout: Duration,
    /// Longest time for all requests that one generator needs.
    pub deadline: Duration,
    /// Largest body read, in bytes.
    pub max_body: usize,
    /// Most pages read for one list.
    pub max_pages: usize,
    /// Most repositories, branches or pull requests in one result.
    pub max_items: usize,
    /// How often a GET is tried when the host is out of order for the moment.
    pub attempts: u32,
    /// The wait before the second try; it doubles for each further one.
    pub retry_delay: Duration,
    /// A host that asks for a shorter wait is waited for; a longer one is an error.
    pub longest_wait: Duration,
    /// Bytes of answers kept to ask "has it changed?" instead of asking for it again.
    pub cache_bytes: usize,
}

/// How requests leave.
#[derive(Clone, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` say.
    Environment,
    /// Through this proxy, except to the hosts listed.
    Url {
        /// Its URL.
        url: String,
        /// Comma-separated hosts, domains and networks that are reached directly.
        no_proxy: String,
    },
    /// Directly.
    Direct,
}

impl fmt::Debug for Proxy {
    /// The URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proxy::Environment => f.write_str("Environment"),
            Proxy::Url { no_proxy, .. } => {
                f.debug_struct("Url").field("no_proxy", no_proxy).finish_non_exhaustive()
            }
            Proxy::Direct => f.write_str("Direct"),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            enabled: true,
            allowed_apis: Vec::new(),
            bitbucket_api: "https://api.bitbucket.org/2.0".into(),
            root_ca: None,
            proxy: Proxy::Environment,
            strict_token_refs: false,
            github_metrics: false,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            deadline: Duration::from_secs(30 * 60),
            max_body: 32 << 20,
            max_pages: 1_000,
            max_items: 50_000,
            attempts: 4,
            retry_delay: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            cache_bytes: 32 << 20,
        }
    }
}
