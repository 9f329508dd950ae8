//! How `git` is told, for one conversation, who asks and whom to trust: never on its command line.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::access::{Access, Credentials, Proxy};
use crate::location::{Remote, Scheme};
use crate::secret::Secret;

/// Answers `git` when it asks for user and password. `git` runs it only for the host it is configured for, so that a
/// redirection elsewhere gets nothing.
const CREDENTIAL_HELPER: &str = "!f() { test \"$1\" = get && \
     printf 'username=%s\\npassword=%s\\n' \"$BATON_GIT_USERNAME\" \"$BATON_GIT_PASSWORD\"; }; f";

/// Variables that name a proxy, in the spellings programs know.
const PROXY_VARIABLES: [&str; 7] =
    ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"];

/// The credentials of one conversation, laid out for `git`. Files it wrote go away with it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) url: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) config: Vec<(String, String)>,
    pub(crate) protocols: &'static str,
    files: Option<TempDir>,
}

/// What is the same for all conversations.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) ssh: PathBuf,
    /// The proxy variables of this process, when they are to be used.
    pub(crate) proxy: Vec<(String, String)>,
}

impl Surroundings {
    pub(crate) fn new(ssh: PathBuf, inherit_proxy: bool) -> Surroundings {
        let read = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        let proxy =
            if inherit_proxy { PROXY_VARIABLES.iter().filter_map(read).collect() } else { Vec::new() };
        Surroundings { ssh, proxy }
    }
}

impl Session {
    /// Prepares a conversation. `token` is the one a GitHub App was given.
    pub(crate) fn open(
        remote: &Remote,
        access: &Access,
        token: Option<Secret>,
        surroundings: &Surroundings,
    ) -> io::Result<Session> {
        let mut session = Session {
            url: remote.url.clone(),
            environment: Vec::new(),
            config: Vec::new(),
            protocols: match remote.scheme {
                Scheme::Https => "https",
                // A server that redirects to https is followed; one that redirects away from it is not.
                Scheme::Http => "http:https",
                Scheme::Ssh => "ssh",
            },
            files: None,
        };
        match remote.scheme {
            Scheme::Ssh => session.ssh(access, surroundings)?,
            Scheme::Https | Scheme::Http => session.http(remote, access, token, surroundings)?,
        }
        Ok(session)
    }

    fn http(
        &mut self,
        remote: &Remote,
        access: &Access,
        token: Option<Secret>,
        surroundings: &Surroundings,
    ) -> io::Result<()> {
        let from_url = || remote.user_info.clone();
        match (&access.credentials, token) {
            (Credentials::GitHubApp(_), Some(token)) => self.basic(remote, "x-access-token", &token),
            (Credentials::Basic { username, password, unasked: true }, _) => {
                let pair = format!("{username}:{}", password.expose());
                self.header(format!("Authorization: Basic {}", STANDARD.encode(pair)));
            }
            (Credentials::Basic { username, password, .. }, _) => self.basic(remote, username, password),
            (Credentials::Bearer(token), _) => {
                self.header(format!("Authorization: Bearer {}", token.expose()));
            }
            _ => {
                if let Some((username, password)) = from_url() {
                    self.basic(remote, &username, &password);
                }
            }
        }
        if access.insecure {
            self.set("http.sslVerify", "false");
        } else if let Some(authorities) = &access.authorities {
            let path = self.file("authorities.pem", authorities)?;
            // The variable, not the setting: this process may have the variable too, and it comes first.
            self.environment.push(("GIT_SSL_CAINFO".into(), path));
        }
        if let Some((certificate, key)) = &access.client_certificate {
            let certificate = self.file("certificate.pem", certificate.expose())?;
            let key = self.file("key.pem", key.expose())?;
            self.set("http.sslCert", &certificate);
            self.set("http.sslKey", &key);
        }
        match &access.proxy {
            None => self.environment.extend(surroundings.proxy.iter().cloned()),
            Some(Proxy { url, except }) => {
                for name in ["http_proxy", "https_proxy"] {
                    self.environment.push((name.into(), url.expose().into()));
                }
                self.environment.push(("no_proxy".into(), except.clone()));
            }
        }
        Ok(())
    }

    fn basic(&mut self, remote: &Remote, username: &str, password: &Secret) {
        let scheme = if remote.scheme == Scheme::Https { "https" } else { "http" };
        self.set(&format!("credential.{scheme}://{}.helper", remote.authority), CREDENTIAL_HELPER);
        self.environment.push(("BATON_GIT_USERNAME".into(), username.into()));
        self.environment.push(("BATON_GIT_PASSWORD".into(), password.expose().into()));
    }

    /// A header goes with every request, wherever it leads: then no redirection is followed.
    fn header(&mut self, header: String) {
        self.set("http.extraHeader", &header);
        self.set("http.followRedirects", "false");
    }

    fn ssh(&mut self, access: &Access, surroundings: &Surroundings) -> io::Result<()> {
        let mut words =
            vec![surroundings.ssh.to_string_lossy().into_owned(), "-F".into(), "/dev/null".into()];
        let mut option = |text: String| words.extend(["-o".to_owned(), text]);
        option("BatchMode=yes".into());
        option("IdentitiesOnly=yes".into());
        option("IdentityAgent=none".into());
        option("GlobalKnownHostsFile=/dev/null".into());
        option("ClearAllForwardings=yes".into());
        option("ServerAliveInterval=15".into());
        if access.insecure {
            option("StrictHostKeyChecking=no".into());
            option("UserKnownHostsFile=/dev/null".into());
        } else {
            let path = self.file("known_hosts", &access.known_hosts)?;
            option("StrictHostKeyChecking=yes".into());
            option(format!("UserKnownHostsFile={path}"));
        }
        match &access.credentials {
            Credentials::Ssh(key) => {
                // OpenSSH refuses a key whose last line is not ended.
                let path = self.file("identity", &format!("{}\n", key.expose().trim_end()))?;
                option(format!("IdentityFile={path}"));
            }
            _ => option("PubkeyAuthentication=no".into()),
        }
        if let Some(proxy) = &access.proxy {
            let (command, user) = socks(proxy).ok_or_else(|| {
                io::Error::other("the proxy of an ssh repository must be socks5://[user:password@]host:port")
            })?;
            option(format!("ProxyCommand={command}"));
            self.environment.extend(user);
        }
        let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.environment.push(("GIT_SSH_COMMAND".into(), command.join(" ")));
        self.environment.push(("GIT_SSH_VARIANT".into(), "ssh".into()));
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) {
        self.config.push((key.to_owned(), value.to_owned()));
    }

    /// Writes a file only this user may read, and gives its path.
    fn file(&mut self, name: &str, content: &str) -> io::Result<String> {
        if self.files.is_none() {
            let mut builder = tempfile::Builder::new();
            builder.prefix("baton-git-");
            // In memory when that can be: what a killed process leaves is then gone with the machine.
            self.files = Some(builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())?);
        }
        let directory = self.files.as_ref().map_or(Path::new(""), TempDir::path);
        let path = directory.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())?;
        path.into_os_string()
            .into_string()
            .map_err(|_| io::Error::other("the temporary directory is not UTF-8"))
    }

    /// What `git` and `ssh` say, with the files of this conversation called by their last names: the directory has
    /// another name each time.
    pub(crate) fn without_file_names(&self, complaint: &str) -> String {
        match &self.files {
            Some(files) => complaint.replace(&format!("{}/", files.path().display()), ""),
            None => complaint.to_owned(),
        }
    }

    /// Every text of this conversation that must not be shown.
    pub(crate) fn secrets(&self, access: &Access) -> Vec<String> {
        let mut secrets = access.secrets();
        let environment = self.environment.iter().filter(|(name, _)| {
            name == "BATON_GIT_PASSWORD"
                || name.to_ascii_lowercase().ends_with("_proxy")
                || name == "SOCKS5_PASSWD"
        });
        secrets.extend(environment.map(|(_, value)| value.clone()));
        let header = self.config.iter().find(|(key, _)| key == "http.extraHeader");
        secrets.extend(header.and_then(|(_, value)| value.rsplit(' ').next().map(str::to_owned)));
        secrets.retain(|secret| secret.len() > 3);
        secrets
    }
}

/// The command that reaches an ssh host through a SOCKS proxy, and the variables it takes user and password from.
fn socks(proxy: &Proxy) -> Option<(String, Vec<(String, String)>)> {
    let (_, rest) = proxy.url.expose().split_once("://")?;
    let rest = rest.trim_end_matches('/');
    let (user, host) = rest.rsplit_once('@').map_or((None, rest), |(user, host)| (Some(user), host));
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
    if host.is_empty() || host.starts_with('-') || !host.bytes().all(plain) {
        return None;
    }
    let mut variables = Vec::new();
    if let Some(user) = user {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        variables.push(("SOCKS5_USER".to_owned(), name.to_owned()));
        variables.push(("SOCKS5_PASSWD".to_owned(), password.to_owned()));
    }
    Some((format!("connect-proxy -S {host} -5 %h %p"), variables))
}

/// A word for the shell that `git` runs its ssh command with.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        assert_eq!(quoted("a b'c$(d)"), "'a b'\\''c$(d)'");
    }

    #[test]
    fn socks_proxies_are_read_and_others_refused() {
        let proxy = |url: &str| Proxy { url: Secret::new(url), except: String::new() };
        let (command, user) = socks(&proxy("socks5://u:p@proxy:1080")).expect("a proxy");
        assert_eq!(command, "connect-proxy -S proxy:1080 -5 %h %p");
        assert_eq!(user.len(), 2);
        assert!(socks(&proxy("socks5://pro;xy:1080")).is_none());
        assert!(socks(&proxy("socks5://-x")).is_none());
        assert!(socks(&proxy("nonsense")).is_none());
    }
}
