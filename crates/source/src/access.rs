//! Credentials and trust for one repository, chosen among Argo CD's Secrets and ConfigMaps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::SourceError;
use crate::location::{covers, display, same_repository};
use crate::secret::Secret;

/// The label that says what a Secret is about.
const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";

/// What is needed to talk to one repository: credentials, whom to trust, and through which proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    pub(crate) credentials: Credentials,
    /// Client certificate and its key, in PEM.
    pub(crate) client_certificate: Option<(Secret, Secret)>,
    /// Certificates (PEM) that the server's must descend from, instead of the machine's.
    pub(crate) authorities: Option<Arc<str>>,
    /// Neither server certificates nor host keys are checked.
    pub(crate) insecure: bool,
    pub(crate) proxy: Option<Proxy>,
    /// Lines of a `known_hosts` file.
    pub(crate) known_hosts: Arc<str>,
}

/// How a repository is told who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Credentials {
    #[default]
    None,
    Basic {
        username: String,
        password: Secret,
        /// Sent unasked, for servers that answer 404 where they should ask.
        unasked: bool,
    },
    Bearer(Secret),
    Ssh(Secret),
    GitHubApp(GitHubApp),
}

/// A GitHub App that a repository is read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitHubApp {
    pub(crate) app: i64,
    /// Zero when it must be looked up by the repository's owner.
    pub(crate) installation: i64,
    pub(crate) private_key: Secret,
    /// Of the API; empty for github.com.
    pub(crate) base_url: String,
}

/// A proxy, and the hosts reached without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    /// May hold a password.
    pub(crate) url: Secret,
    pub(crate) except: String,
}

impl Access {
    /// No credentials; the machine's certificate authorities; no known ssh host.
    pub fn anonymous() -> Access {
        Access::default()
    }

    /// The same access, trusting what `trust` says about the repository's host.
    pub fn trusting(mut self, url: &str, trust: &Trust) -> Access {
        self.known_hosts = trust.known_hosts.clone();
        if let Some(pem) = host_name(url).and_then(|host| trust.authorities.get(host)) {
            self.authorities = Some(pem.clone());
        }
        self
    }

    /// User name and password, where these are the credentials.
    pub fn basic(&self) -> Option<(&str, &Secret)> {
        match &self.credentials {
            Credentials::Basic { username, password, .. } => Some((username, password)),
            _ => None,
        }
    }

    /// What distinguishes this access from others without telling it: whoever keeps what was read keeps it under
    /// this, so that nobody sees what only others may.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut fingerprint = [0; 32];
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.identity());
        fingerprint.copy_from_slice(digest.as_ref());
        fingerprint
    }

    /// What distinguishes this access from others, for keeping apart what each may see.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let (kind, parts): (u8, Vec<&str>) = match &self.credentials {
            Credentials::None => (0, vec![]),
            Credentials::Basic { username, password, .. } => (1, vec![username, password.expose()]),
            Credentials::Bearer(token) => (2, vec![token.expose()]),
            Credentials::Ssh(key) => (3, vec![key.expose()]),
            Credentials::GitHubApp(app) => (4, vec![app.private_key.expose(), &app.base_url]),
        };
        let mut identity = vec![kind, u8::from(self.insecure)];
        if let Credentials::GitHubApp(app) = &self.credentials {
            identity.extend(app.app.to_be_bytes());
            identity.extend(app.installation.to_be_bytes());
        }
        let certificate =
            self.client_certificate.as_ref().map_or("", |(certificate, _)| certificate.expose());
        for part in parts.into_iter().chain([certificate]) {
            identity.extend((part.len() as u64).to_be_bytes());
            identity.extend(part.as_bytes());
        }
        identity
    }

    /// Every text that must not be seen in what `git` says.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = Vec::new();
        match &self.credentials {
            Credentials::Basic { password, .. } => secrets.push(password.expose().to_owned()),
            Credentials::Bearer(token) => secrets.push(token.expose().to_owned()),
            Credentials::Ssh(_) | Credentials::GitHubApp(_) | Credentials::None => {}
        }
        if let Some(proxy) = &self.proxy {
            secrets.push(proxy.url.expose().to_owned());
        }
        secrets
    }
}

/// Whom to trust, as Argo CD's ConfigMaps say.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    known_hosts: Arc<str>,
    authorities: BTreeMap<String, Arc<str>>,
}

impl Trust {
    /// Reads the data of `argocd-ssh-known-hosts-cm` and `argocd-tls-certs-cm`, each when it exists.
    pub fn read(
        ssh_known_hosts: Option<&BTreeMap<String, String>>,
        tls_certs: Option<&BTreeMap<String, String>>,
    ) -> Trust {
        let known_hosts = ssh_known_hosts.and_then(|data| data.get("ssh_known_hosts"));
        let authorities = tls_certs.into_iter().flatten();
        Trust {
            known_hosts: known_hosts.map_or("", String::as_str).into(),
            authorities: authorities
                .filter(|(_, pem)| pem.contains("BEGIN CERTIFICATE"))
                .map(|(host, pem)| (host.clone(), Arc::from(pem.as_str())))
                .collect(),
        }
    }
}

/// The host of an http or https URL, without its port.
fn host_name(url: &str) -> Option<&str> {
    let (scheme, rest) = url.trim().split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.split(':').next()
}

/// A Secret about repositories: one repository's, or a template for all whose URL begins alike.
#[derive(Clone)]
pub struct RepositorySecret {
    name: String,
    is_template: bool,
    url: String,
    project: String,
    fields: Result<Fields, String>,
}

impl fmt::Debug for RepositorySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_template { "repo-creds" } else { "repository" };
        write!(f, "RepositorySecret({kind} {:?} {:?})", self.name, display(&self.url))
    }
}

#[derive(Debug, Clone, Default)]
struct Fields {
    username: String,
    password: Secret,
    bearer: Secret,
    ssh_key: Secret,
    client_certificate: Secret,
    client_key: Secret,
    app_key: Secret,
    app: i64,
    installation: i64,
    app_url: String,
    proxy: Secret,
    except: String,
    insecure: bool,
    basic_unasked: bool,
    /// The name of a way to log in that is not spoken here.
    other: Option<&'static str>,
}

impl RepositorySecret {
    /// Reads a Secret; `None` when its labels say it is about something else.
    ///
    /// A Secret with a field that cannot be read is kept, so that only the repository it is chosen for fails.
    pub fn read(
        labels: &BTreeMap<String, String>,
        data: &BTreeMap<String, Vec<u8>>,
        name: &str,
    ) -> Option<RepositorySecret> {
        let is_template = match labels.get(SECRET_TYPE)?.as_str() {
            "repository" => false,
            "repo-creds" => true,
            _ => return None,
        };
        let plain = |key: &str| {
            data.get(key).map_or(String::new(), |value| String::from_utf8_lossy(value).into_owned())
        };
        Some(RepositorySecret {
            name: name.to_owned(),
            is_template,
            url: plain("url"),
            project: if is_template { String::new() } else { plain("project") },
            fields: Fields::read(data),
        })
    }

    /// The Secret's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository's URL, or the beginning of those the template is for.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The project the repository is registered for; empty is none.
    pub fn project(&self) -> &str {
        &self.project
    }
}

impl Fields {
    fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<Fields, String> {
        let text = |key: &str| match data.get(key).map(|value| String::from_utf8(value.clone())) {
            None => Ok(String::new()),
            Some(Ok(text)) => Ok(text),
            Some(Err(_)) => Err(format!("{key} is not UTF-8")),
        };
        // Credentials travel in line-based protocols: a line break would let a value speak for another field.
        let line = |key: &str| match text(key)? {
            value if value.contains(['\n', '\r', '\0']) => Err(format!("{key} holds a line break")),
            value => Ok(value),
        };
        let flag = |key: &str| match text(key)?.as_str() {
            "" if !data.contains_key(key) => Ok(false),
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            _ => Err(format!("{key} is neither true nor false")),
        };
        let number = |key: &str| match text(key)?.as_str() {
            "" if !data.contains_key(key) => Ok(0),
            digits => digits.parse::<i64>().map_err(|_| format!("{key} is no whole number")),
        };
        let has = |key: &str| data.get(key).is_some_and(|value| !value.is_empty());
        let other = if has("gcpServiceAccountKey") {
            Some("a Google Cloud service account")
        } else if flag("useAzureWorkloadIdentity")? {
            Some("Azure workload identity")
        } else if has("azureServicePrincipalClientSecret") {
            Some("an Azure service principal")
        } else {
            None
        };
        let insecure = flag("insecureIgnoreHostKey")? | flag("insecure")? | flag("insecureOCIForceHttp")?;
        Ok(Fields {
            username: line("username")?,
            password: Secret::new(line("password")?),
            bearer: Secret::new(line("bearerToken")?),
            ssh_key: Secret::new(text("sshPrivateKey")?),
            client_certificate: Secret::new(text("tlsClientCertData")?),
            client_key: Secret::new(text("tlsClientCertKey")?),
            app_key: Secret::new(text("githubAppPrivateKey")?),
            app: number("githubAppID")?,
            installation: number("githubAppInstallationID")?,
            app_url: line("githubAppEnterpriseBaseUrl")?,
            proxy: Secret::new(line("proxy")?),
            except: line("noProxy")?,
            insecure,
            basic_unasked: flag("forceHttpBasicAuth")?,
            other,
        })
    }

    fn has_credentials(&self) -> bool {
        !(self.username.is_empty()
            && self.password.is_empty()
            && self.bearer.is_empty()
            && self.ssh_key.is_empty()
            && self.client_certificate.is_empty()
            && self.app_key.is_empty()
            && self.other.is_none())
    }

    /// Fills what is missing from a template. `insecure` is never taken from one.
    fn completed_by(self, template: &Fields) -> Fields {
        let text = |own: String, other: &String| if own.is_empty() { other.clone() } else { own };
        let secret = |own: Secret, other: &Secret| if own.is_empty() { other.clone() } else { own };
        let number = |own: i64, other: i64| if own == 0 { other } else { own };
        Fields {
            username: text(self.username, &template.username),
            password: secret(self.password, &template.password),
            bearer: secret(self.bearer, &template.bearer),
            ssh_key: secret(self.ssh_key, &template.ssh_key),
            client_certificate: secret(self.client_certificate, &template.client_certificate),
            client_key: secret(self.client_key, &template.client_key),
            app_key: secret(self.app_key, &template.app_key),
            app: number(self.app, template.app),
            installation: number(self.installation, template.installation),
            app_url: text(self.app_url, &template.app_url),
            proxy: secret(self.proxy, &template.proxy),
            except: text(self.except, &template.except),
            insecure: self.insecure,
            basic_unasked: template.basic_unasked,
            other: self.other.or(template.other),
        }
    }

    fn access(self) -> Result<Access, String> {
        let has_certificate = !self.client_certificate.is_empty() && !self.client_key.is_empty();
        let has_proxy = !self.proxy.is_empty();
        let credentials = if !self.password.is_empty() && (self.basic_unasked || self.bearer.is_empty()) {
            // GitHub and GitLab take any user name beside a token, but not none.
            let username = if self.username.is_empty() { "x-access-token".to_owned() } else { self.username };
            Credentials::Basic { username, password: self.password, unasked: self.basic_unasked }
        } else if !self.bearer.is_empty() {
            Credentials::Bearer(self.bearer)
        } else if !self.ssh_key.is_empty() {
            Credentials::Ssh(self.ssh_key)
        } else if !self.app_key.is_empty() && self.app != 0 {
            Credentials::GitHubApp(GitHubApp {
                app: self.app,
                installation: self.installation,
                private_key: self.app_key,
                base_url: self.app_url,
            })
        } else if let Some(other) = self.other {
            return Err(format!("{other} is not supported as credentials for git"));
        } else {
            Credentials::None
        };
        Ok(Access {
            credentials,
            client_certificate: has_certificate.then_some((self.client_certificate, self.client_key)),
            authorities: None,
            insecure: self.insecure,
            proxy: has_proxy.then_some(Proxy { url: self.proxy, except: self.except }),
            known_hosts: Arc::from(""),
        })
    }
}

/// The access to a repository for a project, as Argo CD chooses it.
///
/// The repository's own Secret of that project comes first, then its Secret without a project. When that one holds
/// no credentials, or there is none, the template with the longest matching URL completes it. Among equals the
/// lowest name wins. `project` is empty when it is not known: then only Secrets without a project are used.
///
/// # Errors
/// The chosen Secret has a field that cannot be read, or a way to log in that is not spoken here.
pub fn access(url: &str, project: &str, secrets: &[RepositorySecret]) -> Result<Access, SourceError> {
    let own = own_secret(url, project, secrets);
    let mut name = own.map(|secret| secret.name.as_str());
    let mut fields = own.map_or(Ok(Fields::default()), fields_of)?;
    if !fields.has_credentials()
        && let Some(template) = longest_template(url, secrets)
    {
        fields = fields.completed_by(&fields_of(template)?);
        name = Some(&template.name);
    }
    fields.access().map_err(|why| SourceError::Secret { secret: name.unwrap_or_default().to_owned(), why })
}

fn own_secret<'a>(url: &str, project: &str, secrets: &'a [RepositorySecret]) -> Option<&'a RepositorySecret> {
    let named = |wanted: &str| {
        let fits = |secret: &&RepositorySecret| {
            !secret.is_template && secret.project == wanted && same_repository(&secret.url, url)
        };
        secrets.iter().filter(fits).min_by_key(|secret| &secret.name)
    };
    named(project).or_else(|| named(""))
}

fn longest_template<'a>(url: &str, secrets: &'a [RepositorySecret]) -> Option<&'a RepositorySecret> {
    let templates = secrets.iter().filter(|secret| secret.is_template);
    templates
        .filter_map(|secret| covers(&secret.url, url).map(|length| (length, secret)))
        .max_by(|(left, a), (right, b)| left.cmp(right).then(b.name.cmp(&a.name)))
        .map(|(_, secret)| secret)
}

fn fields_of(secret: &RepositorySecret) -> Result<Fields, SourceError> {
    let fault = |why: String| SourceError::Secret { secret: secret.name.clone(), why };
    secret.fields.clone().map_err(fault)
}

#[cfg(test)]
mod tests;
