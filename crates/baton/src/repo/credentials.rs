//! What opens a repository, as the command line has it.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Longest secret that is read from a pipe or a file.
const MOST_BYTES: u64 = 1 << 20;

/// What opens a repository, and how it is reached.
#[derive(Debug, Args)]
pub(super) struct Credentials {
    /// `git`, `helm` or `oci`.
    #[arg(long = "type", value_name = "TYPE", default_value = "git", value_parser = ["git", "helm", "oci"])]
    kind: String,
    /// Name of the account.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Its password or token. Other users of this machine can see it: --password-stdin is better.
    #[arg(long, value_name = "TEXT", conflicts_with = "password_stdin")]
    password: Option<String>,
    /// Read the password from standard input.
    #[arg(long)]
    password_stdin: bool,
    /// A token that is shown instead of a name and a password. Other users of this machine can see it.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["username", "password", "password_stdin"])]
    bearer_token: Option<String>,
    /// File with an SSH key.
    #[arg(long, value_name = "FILE")]
    ssh_private_key_path: Option<PathBuf>,
    /// File with a client certificate.
    #[arg(long, value_name = "FILE", requires = "tls_client_cert_key_path")]
    tls_client_cert_path: Option<PathBuf>,
    /// File with the key of the client certificate.
    #[arg(long, value_name = "FILE", requires = "tls_client_cert_path")]
    tls_client_cert_key_path: Option<PathBuf>,
    /// Id of a GitHub App.
    #[arg(long, value_name = "NUMBER", requires = "github_app_private_key_path")]
    github_app_id: Option<u64>,
    /// Id of its installation.
    #[arg(long, value_name = "NUMBER", requires = "github_app_id")]
    github_app_installation_id: Option<u64>,
    /// File with its key.
    #[arg(long, value_name = "FILE", requires = "github_app_id")]
    github_app_private_key_path: Option<PathBuf>,
    /// URL of GitHub Enterprise's API.
    #[arg(long, value_name = "URL", requires = "github_app_id")]
    github_app_enterprise_base_url: Option<String>,
    /// File with a key of a Google Cloud account.
    #[arg(long, value_name = "FILE")]
    gcp_service_account_key_path: Option<PathBuf>,
    /// Always send name and password, also before they are asked for.
    #[arg(long)]
    force_http_basic_auth: bool,
    /// Sign in with Azure's workload identity.
    #[arg(long)]
    use_azure_workload_identity: bool,
    /// It is an OCI registry.
    #[arg(long)]
    enable_oci: bool,
    /// Speak to the OCI registry without TLS.
    #[arg(long)]
    insecure_oci_force_http: bool,
    /// Proxy on the way to it.
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Hosts that are reached without the proxy.
    #[arg(long, value_name = "HOSTS", requires = "proxy")]
    no_proxy: Option<String>,
}

// === impl Credentials ===

impl Credentials {
    /// In the words of Argo CD's API.
    pub(super) fn read(&self, url: &str) -> Result<Map<String, Value>, Failure> {
        let mut said = Map::new();
        let mut say = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                said.insert(name.to_owned(), value);
            }
        };
        let ssh = is_ssh(url);
        if self.ssh_private_key_path.is_some() && !ssh {
            return Err(Failure::usage(format!(
                "{url} is not reached over SSH: --ssh-private-key-path opens nothing there"
            )));
        }
        if self.password_given() && ssh {
            return Err(Failure::usage(format!(
                "{url} is reached over SSH, which takes a key and no password"
            )));
        }
        say("type", Some(self.kind.as_str().into()));
        say("username", self.username.clone().map(Value::from));
        say("password", self.password()?.map(Value::from));
        say("bearerToken", self.bearer_token.clone().map(Value::from));
        for (name, path) in [
            ("sshPrivateKey", &self.ssh_private_key_path),
            ("tlsClientCertData", &self.tls_client_cert_path),
            ("tlsClientCertKey", &self.tls_client_cert_key_path),
            ("githubAppPrivateKey", &self.github_app_private_key_path),
            ("gcpServiceAccountKey", &self.gcp_service_account_key_path),
        ] {
            say(name, path.as_deref().map(file).transpose()?.map(Value::from));
        }
        say("githubAppID", self.github_app_id.map(Value::from));
        say("githubAppInstallationID", self.github_app_installation_id.map(Value::from));
        say("githubAppEnterpriseBaseUrl", self.github_app_enterprise_base_url.clone().map(Value::from));
        say("proxy", self.proxy.clone().map(Value::from));
        say("noProxy", self.no_proxy.clone().map(Value::from));
        for (name, on) in [
            ("forceHttpBasicAuth", self.force_http_basic_auth),
            ("useAzureWorkloadIdentity", self.use_azure_workload_identity),
            ("enableOCI", self.enable_oci),
            ("insecureOCIForceHttp", self.insecure_oci_force_http),
        ] {
            say(name, on.then_some(Value::Bool(true)));
        }
        Ok(said)
    }

    fn password_given(&self) -> bool {
        self.password.is_some() || self.password_stdin
    }

    fn password(&self) -> Result<Option<String>, Failure> {
        if self.password.is_some() {
            return Ok(self.password.clone());
        }
        if self.password_stdin {
            let mut text = String::new();
            let read = std::io::stdin().take(MOST_BYTES).read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("cannot read the password: {error}")))?;
            return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
        }
        // A name without a password is asked for one; where nobody can answer, the name may be all there is.
        if self.username.is_some() && std::io::stdin().is_terminal() {
            let password = rpassword::prompt_password("Password: ");
            return password
                .map(Some)
                .map_err(|error| Failure::usage(format!("cannot read the password: {error}")));
        }
        Ok(None)
    }
}

/// Whether a repository is reached over SSH: `ssh://…`, or `user@host:path`.
fn is_ssh(url: &str) -> bool {
    url.starts_with("ssh://") || url.starts_with("git+ssh://") || (!url.contains("://") && url.contains('@'))
}

fn file(path: &Path) -> Result<String, Failure> {
    let wrong =
        |why: &dyn std::fmt::Display| Failure::usage(format!("cannot read {}: {why}", path.display()));
    let about = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if about.len() > MOST_BYTES {
        return Err(wrong(&"it is far too large"));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        credentials: Credentials,
    }

    #[test]
    fn a_key_is_for_ssh_and_a_password_is_not() {
        let home = tempfile::tempdir().expect("a directory");
        let key = home.path().join("key");
        std::fs::write(&key, "KEY\n").expect("a file");
        let key = key.to_str().expect("UTF-8");
        let read = |line: &[&str], url: &str| {
            let line = Line::try_parse_from(["x"].iter().chain(line)).expect("a line");
            line.credentials.read(url)
        };
        for url in ["git@git.example.com:shop.git", "ssh://git@git.example.com/shop.git"] {
            let said = read(&["--ssh-private-key-path", key], url).expect("credentials");
            assert_eq!(said["sshPrivateKey"], "KEY\n");
            assert!(read(&["--username", "me", "--password", "x"], url).is_err(), "{url}");
        }
        let url = "https://git.example.com/shop.git";
        assert!(read(&["--ssh-private-key-path", key], url).is_err());
        let said = read(&["--username", "me", "--password", "x", "--type", "helm", "--enable-oci"], url)
            .expect("credentials");
        assert_eq!(
            (&said["password"], &said["type"], &said["enableOCI"]),
            (&Value::from("x"), &Value::from("helm"), &Value::Bool(true))
        );
        assert!(!said.contains_key("bearerToken"));
        let missing =
            read(&["--tls-client-cert-path", "/no/such", "--tls-client-cert-key-path", "/no/such"], url);
        assert!(missing.is_err_and(|error| error.to_string().contains("/no/such")));
    }
}
