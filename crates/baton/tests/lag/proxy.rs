//! `baton dev lag-proxy` as people use it: with kubectl, by a kubeconfig or a URL, until Ctrl-C.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Running, address_in};

/// An API, with its address.
struct Api {
    home: TempDir,
    _running: Running,
    address: std::net::SocketAddr,
}

impl Api {
    fn start() -> Api {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("api");
        let directory = directory.to_str().expect("UTF-8");
        let mut running = Running::start(["apiserver", "--listen", "127.0.0.1:0", "--data-dir", directory]);
        let address = address_in(&running.line_with("Kubernetes API on"));
        running.line_with("kubeconfig");
        Api { home, _running: running, address }
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn proxy(&self, arguments: &[&str]) -> Running {
        let kubeconfig = self.path("lag.kubeconfig");
        let own = ["dev", "lag-proxy", "--write-kubeconfig", &kubeconfig, "--seed", "5"];
        let mut proxy = Running::start(own.iter().chain(arguments));
        let line = proxy.line_with("Lagging proxy before 127.0.0.1 on https://127.0.0.1:");
        assert!(line.ends_with(", seed 5"), "{line}");
        proxy.line_with("lag.kubeconfig get pods --watch");
        proxy
    }

    /// kubectl that goes through the proxy.
    fn kubectl(&self, arguments: &[&str]) -> Running {
        let mut command = Command::new("kubectl");
        command.args(["--kubeconfig", &self.path("lag.kubeconfig")]).args(arguments);
        command.env("HOME", self.home.path()).env_remove("KUBECONFIG");
        Running::of(command)
    }
}

#[test]
fn kubectl_goes_through_the_proxy_until_ctrl_c() {
    let api = Api::start();
    let calm = ["--delay", "500ms", "--cut", "0s", "--gone", "0"];
    let proxy = api.proxy(&[&calm[..], &["--kubeconfig", &api.path("api/kubeconfig")]].concat());
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(api.path("lag.kubeconfig")).expect("it was written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds a token");

    let mut watch = api.kubectl(&["get", "configmaps", "--watch", "--output", "name"]);
    for name in ["one", "two", "three"] {
        let made = api.kubectl(&["create", "configmap", name]).ends();
        assert_eq!(made.code, Some(0), "{}", made.stderr);
    }
    for name in ["one", "two", "three"] {
        watch.line_with(&format!("configmap/{name}"));
    }
    let pod = api.kubectl(&["run", "web", "--image", "registry.example.com/web:1"]).ends();
    assert_eq!(pod.code, Some(0), "{}", pod.stderr);
    let exec = api.kubectl(&["exec", "web", "--", "date"]).ends();
    assert_ne!(exec.code, Some(0));
    assert!(exec.stderr.contains("ask the cluster itself"), "{}", exec.stderr);

    let outcome = proxy.interrupt();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let last = outcome.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("Seed 5: "), "{last}");
    assert!(last.contains(" 0 cuts ") && last.contains(" 0 refused with 410"), "{last}");
    watch.kill();
}

#[test]
fn a_url_with_a_certificate_and_a_token_will_do_instead_of_a_kubeconfig() {
    let api = Api::start();
    let url = format!("https://{}", api.address);
    let (ca, token) = (api.path("api/pki/ca.crt"), api.path("api/pki/token"));
    let proxy = api.proxy(&["--upstream", &url, "--upstream-ca", &ca, "--upstream-token-file", &token]);
    let listed = api.kubectl(&["get", "namespaces", "--output", "name"]).ends();
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains("namespace/kube-system"), "{}", listed.stdout);
    assert_eq!(proxy.terminate().code, Some(0));
}
