//! Repositories over ssh: how `ssh` is called. A stand-in for it writes down what it is given and runs the server's
//! part on this machine.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use baton_source::{Access, SourceError, Trust};
use support::{Repo, World, access_with, paths, texts};
use tempfile::TempDir;

const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----";
const KNOWN: &str = "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample\n";

/// The stand-in, and where it writes.
struct Stand {
    directory: TempDir,
}

impl Stand {
    fn new(ending: &str) -> Stand {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path().display();
        // For each option that names a file, what is in the file and who may read it.
        let script = format!(
            "#!/bin/sh\n\
             printf '%s\\n' \"$@\" > '{here}/arguments'\n\
             env > '{here}/environment'\n\
             for word; do\n\
               case \"$word\" in\n\
                 IdentityFile=*|UserKnownHostsFile=*)\n\
                   name=${{word%%=*}}; file=${{word#*=}}\n\
                   cat \"$file\" > \"{here}/$name\"; stat -c '%a' \"$file\" > \"{here}/$name.mode\";;\n\
               esac\n\
             done\n\
             {ending}\n"
        );
        let path = directory.path().join("ssh");
        std::fs::write(&path, script).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("runnable");
        Stand { directory }
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("ssh")
    }

    fn wrote(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }
}

const SERVE: &str = "for last; do :; done; exec sh -c \"$last\"";

fn url(repo: &Repo) -> String {
    format!("ssh://git@git.example.com:2222{}", repo.path().display())
}

fn trusting(access: Access, url: &str) -> Access {
    let known = BTreeMap::from([("ssh_known_hosts".to_owned(), KNOWN.to_owned())]);
    access.trusting(url, &Trust::read(Some(&known), None))
}

#[tokio::test]
async fn a_repository_is_read_with_key_and_known_hosts() {
    let (repo, commit) = Repo::filled();
    let stand = Stand::new(SERVE);
    let world = World::with(|settings| settings.ssh = stand.program());
    let url = url(&repo);
    let access = trusting(access_with(&url, &[("sshPrivateKey", KEY)]), &url);
    assert_eq!(world.repositories.resolve(&url, &access, "main", false).await.expect("resolved"), commit);
    let arguments = stand.wrote("arguments");
    for wanted in [
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "GlobalKnownHostsFile=/dev/null",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "2222",
        "git@git.example.com",
    ] {
        assert!(arguments.lines().any(|line| line == wanted), "{wanted} in {arguments}");
    }
    assert!(arguments.starts_with("-F\n/dev/null\n"), "{arguments}");
    assert_eq!(stand.wrote("IdentityFile"), format!("{KEY}\n"));
    assert_eq!(stand.wrote("UserKnownHostsFile"), KNOWN);
    assert_eq!(stand.wrote("IdentityFile.mode").trim(), "600");
    let file = arguments.lines().find_map(|line| line.strip_prefix("IdentityFile=")).expect("an identity");
    assert!(!Path::new(file).exists(), "the key is gone");
    assert!(!stand.wrote("environment").contains("CANARY"));
    let path = paths(&["apps/a/config.yaml"]);
    let files = world.repositories.read(&url, &access, &commit, &path).await.expect("read");
    assert_eq!(texts(files)[0].1, "name: a\n");
}

#[tokio::test]
async fn without_a_key_or_known_hosts_nothing_is_taken_from_the_machine() {
    let (repo, _) = Repo::filled();
    let stand = Stand::new(SERVE);
    let world = World::with(|settings| settings.ssh = stand.program());
    let url = url(&repo);
    world
        .repositories
        .resolve(&url, &Access::anonymous(), "main", false)
        .await
        .expect("the stand-in lets all in");
    let arguments = stand.wrote("arguments");
    assert!(arguments.contains("PubkeyAuthentication=no") && arguments.contains("StrictHostKeyChecking=yes"));
    assert!(!arguments.contains("IdentityFile="), "{arguments}");
    assert_eq!(stand.wrote("UserKnownHostsFile"), "");
    let environment = stand.wrote("environment");
    assert!(environment.lines().any(|line| line == "HOME=/nonexistent"), "{environment}");
    assert!(!environment.contains("SSH_AUTH_SOCK"), "{environment}");
}

#[tokio::test]
async fn host_keys_are_not_checked_only_when_the_secret_says_so() {
    let (repo, _) = Repo::filled();
    let stand = Stand::new(SERVE);
    let world = World::with(|settings| settings.ssh = stand.program());
    let url = url(&repo);
    for flag in ["insecure", "insecureIgnoreHostKey"] {
        let access = trusting(access_with(&url, &[("sshPrivateKey", KEY), (flag, "true")]), &url);
        world.repositories.resolve(&url, &access, "main", true).await.expect("resolved");
        let arguments = stand.wrote("arguments");
        assert!(arguments.contains("StrictHostKeyChecking=no"), "{arguments}");
        assert!(arguments.contains("UserKnownHostsFile=/dev/null"), "{arguments}");
    }
}

#[tokio::test]
async fn a_proxy_is_used_and_its_password_stays_off_the_command_line() {
    let (repo, _) = Repo::filled();
    let stand = Stand::new(SERVE);
    let world = World::with(|settings| settings.ssh = stand.program());
    let url = url(&repo);
    let fields = [("sshPrivateKey", KEY), ("proxy", "socks5://jane:CANARY@proxy.example.com:1080")];
    let access = trusting(access_with(&url, &fields), &url);
    world.repositories.resolve(&url, &access, "main", false).await.expect("resolved");
    let arguments = stand.wrote("arguments");
    assert!(
        arguments.contains("ProxyCommand=connect-proxy -S proxy.example.com:1080 -5 %h %p"),
        "{arguments}"
    );
    assert!(!arguments.contains("CANARY"), "{arguments}");
    assert!(stand.wrote("environment").contains("SOCKS5_PASSWD=CANARY"));
}

#[tokio::test]
async fn an_unknown_host_or_a_refused_key_is_no_access() {
    let (repo, _) = Repo::filled();
    let url = url(&repo);
    for complaint in ["Host key verification failed.", "git@git.example.com: Permission denied (publickey)."]
    {
        let stand = Stand::new(&format!("echo '{complaint}' >&2; exit 255"));
        let world = World::with(|settings| settings.ssh = stand.program());
        let access = trusting(access_with(&url, &[("sshPrivateKey", KEY)]), &url);
        let fault = world.repositories.resolve(&url, &access, "main", false).await.expect_err("refused");
        assert!(
            matches!(&fault, SourceError::Unauthorized { why, .. } if why.contains(complaint)),
            "{fault}"
        );
        assert!(!fault.to_string().contains("CANARY"), "{fault}");
    }
}

#[tokio::test]
async fn paths_for_ssh_are_one_word_for_the_server() {
    let stand = Stand::new("exit 1");
    let world = World::with(|settings| settings.ssh = stand.program());
    let url = "git@git.example.com:team/$(touch x)';y.git";
    world.repositories.resolve(url, &Access::anonymous(), "main", false).await.expect_err("refused");
    let arguments = stand.wrote("arguments");
    let command = arguments.lines().last().expect("a command");
    assert_eq!(command, "git-upload-pack 'team/$(touch x)'\\'';y.git'");
}
