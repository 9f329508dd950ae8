//! Repositories over HTTP and HTTPS, from git's own server program.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use baton_source::{Access, Commit, SourceError, Trust};
use support::server::{Mood, Server};
use support::{Repo, World, access_with, paths, texts};

/// Resolves, lists and reads: what a file generator does.
async fn use_all(
    world: &World,
    url: &str,
    access: &Access,
    revision: &str,
) -> Result<Vec<(String, String)>, SourceError> {
    let repositories = &world.repositories;
    let commit = repositories.resolve(url, access, revision, false).await?;
    let tree = repositories.tree(url, access, &commit).await?;
    let found = tree.files_like_pathspec("apps/*/config.yaml")?;
    Ok(texts(repositories.read(url, access, &commit, &found).await?))
}

fn expected() -> Vec<(String, String)> {
    let files = [("apps/a/config.yaml", "name: a\n"), ("apps/b/config.yaml", "name: b\n")];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).to_vec()
}

#[tokio::test]
async fn a_repository_is_fetched_once_and_read_from_the_cache() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    assert_eq!(use_all(&world, &server.url(), &anonymous, "main").await.expect("read"), expected());
    assert_eq!(world.cached().len(), 1);
    server.seen();
    assert_eq!(use_all(&world, &server.url(), &anonymous, "main").await.expect("read"), expected());
    assert_eq!(server.seen().len(), 0, "everything is in the cache");
    server.mood(Mood::Status(500));
    let later = World::with(|settings| settings.cache_dir = world.cache.path().to_owned());
    let commit = repo.git(&["rev-parse", "HEAD"]);
    let again = use_all(&later, &server.url(), &anonymous, &commit).await;
    assert_eq!(again.expect("another process finds it in the cache"), expected());
}

#[tokio::test]
async fn contents_are_fetched_only_when_they_are_read() {
    let repo = Repo::new();
    repo.write("apps/a/config.yaml", "name: a\n");
    repo.write("large.bin", vec![7; 300_000]);
    let commit = repo.commit();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    let tree = world.repositories.tree(&server.url(), &anonymous, &commit).await.expect("a tree");
    assert_eq!(tree.files().count(), 2);
    let one = paths(&["apps/a/config.yaml"]);
    world.repositories.read(&server.url(), &anonymous, &commit, &one).await.expect("read");
    let packs = std::fs::read_dir(world.cached()[0].join("objects/pack")).expect("packs");
    let names: Vec<_> = packs
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "pack"))
        .collect();
    assert_eq!(names.len(), 2, "one fetch for the trees, one for the content");
    let mut objects = String::new();
    for name in names {
        objects += &repo.git(&["verify-pack", "-v", name.with_extension("idx").to_str().expect("UTF-8")]);
    }
    assert!(!objects.contains(&repo.git(&["rev-parse", "HEAD:large.bin"])), "{objects}");
}

#[tokio::test]
async fn servers_that_cannot_leave_out_contents_or_give_single_objects_are_read_too() {
    let (repo, _) = Repo::filled();
    let old = repo.git(&["rev-parse", "HEAD"]);
    repo.write("later", "x");
    repo.commit();
    let server = Server::start(repo.path()).await;
    for (filter, mood) in [("false", Mood::Serve), ("true", Mood::Old), ("false", Mood::Old)] {
        repo.git(&["config", "uploadpack.allowFilter", filter]);
        server.mood(mood.clone());
        for revision in ["main", &old, &old[..9]] {
            let read = use_all(&World::new(), &server.url(), &Access::anonymous(), revision).await;
            assert_eq!(read.expect(revision), expected(), "{revision} {filter} {mood:?}");
        }
        let absent = Commit::parse(&"ab".repeat(20)).expect("a commit");
        let fault = World::new().repositories.tree(&server.url(), &Access::anonymous(), &absent).await;
        assert!(matches!(fault, Err(SourceError::NotFound { .. })), "{filter} {mood:?}: {fault:?}");
    }
}

#[tokio::test]
async fn a_new_commit_is_fetched_beside_the_old_one() {
    let (repo, first) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    use_all(&world, &server.url(), &anonymous, "main").await.expect("read");
    repo.write("apps/b/config.yaml", "name: changed\n");
    let second = repo.commit();
    let resolved =
        world.repositories.resolve(&server.url(), &anonymous, "main", false).await.expect("remembered");
    assert_eq!(resolved, first, "references are believed for a while");
    let resolved =
        world.repositories.resolve(&server.url(), &anonymous, "main", true).await.expect("asked again");
    assert_eq!(resolved, second);
    let read = async |commit: Commit| {
        let path = paths(&["apps/b/config.yaml"]);
        texts(world.repositories.read(&server.url(), &anonymous, &commit, &path).await.expect("read"))
    };
    assert_eq!(read(second).await[0].1, "name: changed\n");
    assert_eq!(read(first).await[0].1, "name: b\n");
    assert_eq!(world.cached().len(), 1);
}

#[tokio::test]
async fn a_revision_that_came_since_the_last_listing_is_found() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    world.repositories.resolve(&server.url(), &anonymous, "main", false).await.expect("resolved");
    repo.git(&["branch", "new"]);
    assert!(world.repositories.resolve(&server.url(), &anonymous, "new", false).await.is_ok());
    let fault = world.repositories.resolve(&server.url(), &anonymous, "none", false).await.expect_err("none");
    assert!(matches!(fault, SourceError::NotFound { .. }), "{fault}");
}

#[tokio::test]
async fn a_commit_the_server_does_not_have_is_not_found() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let absent = Commit::parse(&"ab".repeat(20)).expect("a commit");
    let fault =
        world.repositories.tree(&server.url(), &Access::anonymous(), &absent).await.expect_err("absent");
    assert!(
        matches!(&fault, SourceError::NotFound { revision, .. } if *revision == "ab".repeat(20)),
        "{fault}"
    );
    let short = world.repositories.resolve(&server.url(), &Access::anonymous(), "abababab", false).await;
    assert!(matches!(short, Err(SourceError::NotFound { .. })), "{short:?}");
}

#[tokio::test]
async fn a_name_that_is_no_commit_s_costs_the_cache_nothing() {
    let (repo, commit) = Repo::filled();
    repo.git(&["tag", "-a", "-m", "annotated", "v1"]);
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    let tree = async |name: &str| {
        let name = Commit::parse(&repo.git(&["rev-parse", name])).expect("a name");
        world.repositories.tree(&server.url(), &anonymous, &name).await
    };
    tree(commit.as_str()).await.expect("a commit");
    let packs = || std::fs::read_dir(world.cached()[0].join("objects/pack")).expect("packs").count();
    let before = packs();
    for name in ["HEAD:README.md", "HEAD:apps", "HEAD^{tree}"] {
        let fault = tree(name).await.expect_err(name);
        assert!(matches!(fault, SourceError::NotFound { .. }), "{fault}");
    }
    assert!(packs() >= before, "nothing was thrown away");
    assert_eq!(tree("v1").await.expect("an annotated tag").files().count(), 3);
}

#[tokio::test]
async fn a_proxy_is_used_but_for_the_hosts_that_need_none() {
    let (repo, commit) = Repo::filled();
    // Asked for a whole URL, the server answers as a proxy would.
    let proxy = Server::start(repo.path()).await;
    let url = "http://git.invalid/repo";
    let address = format!("http://jane:CANARY@{}", proxy.address);
    let through = access_with(url, &[("proxy", address.as_str())]);
    let resolved = World::new().repositories.resolve(url, &through, "main", false).await;
    assert_eq!(resolved.expect("through the proxy"), commit);
    let around = access_with(url, &[("proxy", address.as_str()), ("noProxy", "git.invalid")]);
    proxy.seen();
    let fault =
        World::new().repositories.resolve(url, &around, "main", false).await.expect_err("no such host");
    assert!(matches!(fault, SourceError::Network { .. }), "{fault}");
    assert!(proxy.seen().is_empty());
    proxy.mood(Mood::Status(500));
    let fault = World::new().repositories.resolve(url, &through, "main", false).await.expect_err("a fault");
    assert!(!fault.to_string().contains("CANARY"), "{fault}");
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_servers_that_ask() {
    let (repo, commit) = Repo::filled();
    let made = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).expect("a certificate");
    let server = Server::start_tls_for(repo.path(), made.cert.der().clone()).await;
    let url = server.url();
    let resolve = async |fields: &[(&str, &str)]| {
        World::new().repositories.resolve(&url, &access_with(&url, fields), "main", false).await
    };
    assert!(resolve(&[("insecure", "true")]).await.is_err(), "a certificate is asked for");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let fields = [("insecure", "true"), ("tlsClientCertData", &certificate), ("tlsClientCertKey", &key)];
    assert_eq!(resolve(&fields).await.expect("shown"), commit);
}

#[tokio::test]
async fn user_and_password_are_given_when_asked_for() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.require_password("jane", "p%w: ü");
    let url = server.url();
    let jane = access_with(&url, &[("username", "jane"), ("password", "p%w: ü")]);
    assert_eq!(use_all(&World::new(), &url, &jane, "main").await.expect("read"), expected());
    let first = &server.seen()[0];
    assert_eq!(first.authorization, None, "credentials are given only when asked for");
    let forced =
        access_with(&url, &[("username", "jane"), ("password", "p%w: ü"), ("forceHttpBasicAuth", "true")]);
    assert_eq!(use_all(&World::new(), &url, &forced, "main").await.expect("read"), expected());
    assert!(server.seen().iter().all(|seen| seen.authorization.is_some()));
    let in_url = url.replace("http://", "http://jane:p%25w%3A%20%C3%BC@");
    assert_eq!(
        use_all(&World::new(), &in_url, &Access::anonymous(), "main").await.expect("read"),
        expected()
    );
}

#[tokio::test]
async fn a_bearer_token_goes_with_every_request() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.mood(Mood::Require("Bearer t0k3n-t0k3n".to_owned()));
    let url = server.url();
    let bearer = access_with(&url, &[("bearerToken", "t0k3n-t0k3n")]);
    assert_eq!(use_all(&World::new(), &url, &bearer, "main").await.expect("read"), expected());
}

#[tokio::test]
async fn refused_credentials_are_said_to_be_and_never_shown() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.require_password("jane", "right");
    let url = server.url();
    let in_url = url.replace("http://", "http://jane:CANARY@");
    for (url, access) in [
        (&url, Access::anonymous()),
        (&url, access_with(&url, &[("username", "jane"), ("password", "CANARY")])),
        (&url, access_with(&url, &[("bearerToken", "CANARY")])),
        (&in_url, Access::anonymous()),
    ] {
        let fault = use_all(&World::new(), url, &access, "main").await.expect_err("refused");
        assert!(matches!(fault, SourceError::Unauthorized { .. }), "{fault}");
        assert!(!format!("{fault} {fault:?}").contains("CANARY"), "{fault}");
        assert!(fault.to_string().contains(&server.url()), "{fault}");
    }
}

#[tokio::test]
async fn what_one_may_read_another_does_not_find_in_the_cache() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.require_password("jane", "right");
    let url = server.url();
    let world = World::new();
    let jane = access_with(&url, &[("username", "jane"), ("password", "right")]);
    use_all(&world, &url, &jane, "main").await.expect("read");
    for access in [Access::anonymous(), access_with(&url, &[("username", "jane"), ("password", "wrong")])] {
        assert!(world.repositories.tree(&url, &access, &commit).await.is_err());
        assert!(world.repositories.read(&url, &access, &commit, &paths(&["README.md"])).await.is_err());
        assert!(world.repositories.resolve(&url, &access, "main", false).await.is_err());
    }
}

#[tokio::test]
async fn certificates_are_checked() {
    let (repo, _) = Repo::filled();
    let server = Server::start_tls(repo.path()).await;
    let url = server.url();
    let fault = use_all(&World::new(), &url, &Access::anonymous(), "main").await.expect_err("not trusted");
    assert!(matches!(fault, SourceError::Network { .. }), "{fault}");
    let certificates = BTreeMap::from([("localhost".to_owned(), server.certificate.clone().expect("one"))]);
    let trust = Trust::read(None, Some(&certificates));
    let trusting = Access::anonymous().trusting(&url, &trust);
    assert_eq!(use_all(&World::new(), &url, &trusting, "main").await.expect("read"), expected());
    let insecure = access_with(&url, &[("insecure", "true")]);
    assert_eq!(use_all(&World::new(), &url, &insecure, "main").await.expect("read"), expected());
}

#[tokio::test]
async fn a_redirection_is_followed_but_gets_no_credentials_of_another_host() {
    let (repo, _) = Repo::filled();
    let target = Server::start(repo.path()).await;
    let door = Server::start(repo.path()).await;
    let url = door.url();
    door.mood(Mood::Redirect(format!("http://{}", target.address)));
    assert_eq!(use_all(&World::new(), &url, &Access::anonymous(), "main").await.expect("read"), expected());
    target.require_password("jane", "right");
    target.seen();
    let jane = access_with(&url, &[("username", "jane"), ("password", "right")]);
    let bearer = access_with(&url, &[("bearerToken", "t0k3n-t0k3n")]);
    let forced = access_with(&url, &[("password", "right"), ("forceHttpBasicAuth", "true")]);
    for access in [jane, bearer, forced] {
        let fault = use_all(&World::new(), &url, &access, "main").await.expect_err("not for that host");
        assert!(!fault.to_string().contains("t0k3n"), "{fault}");
        assert!(target.seen().iter().all(|seen| seen.authorization.is_none()));
    }
}

#[tokio::test]
async fn a_redirection_to_another_protocol_is_not_followed() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    for target in
        [format!("file://{}", repo.path().display()), "ftp://127.0.0.1".to_owned(), "ext::sh".to_owned()]
    {
        server.mood(Mood::Redirect(target.clone()));
        assert!(
            use_all(&World::new(), &server.url(), &Access::anonymous(), "main").await.is_err(),
            "{target}"
        );
    }
}

#[tokio::test]
async fn faults_of_the_server_are_errors_and_pass() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    for mood in [Mood::Status(500), Mood::Status(404), Mood::Status(403), Mood::Cut] {
        server.mood(mood.clone());
        if mood != Mood::Cut {
            assert!(
                world.repositories.resolve(&server.url(), &anonymous, "main", false).await.is_err(),
                "{mood:?}"
            );
        }
        let fault = world.repositories.tree(&server.url(), &anonymous, &commit).await.expect_err("a fault");
        assert!(!matches!(fault, SourceError::NotFound { .. }), "{mood:?}: {fault}");
    }
    server.mood(Mood::Serve);
    assert_eq!(use_all(&world, &server.url(), &anonymous, "main").await.expect("read"), expected());
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.mood(Mood::Hang);
    let world = World::with(|settings| settings.limits.silence = Duration::from_millis(300));
    let fault =
        world.repositories.tree(&server.url(), &Access::anonymous(), &commit).await.expect_err("silent");
    assert!(matches!(fault, SourceError::Timeout { .. }), "{fault}");
    assert!(fault.is_transient());
}

#[tokio::test]
async fn a_server_that_never_ends_is_given_up_though_it_is_not_silent() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.mood(Mood::Drip);
    let world = World::with(|settings| settings.limits.total = Duration::from_secs(1));
    let fault =
        world.repositories.tree(&server.url(), &Access::anonymous(), &commit).await.expect_err("endless");
    let too_long = matches!(fault, SourceError::Timeout { why, .. } if why.contains("too long"));
    assert!(too_long, "{fault}");
}

#[tokio::test]
async fn a_repository_over_its_size_is_given_up() {
    let repo = Repo::new();
    // Random enough not to be compressed.
    let mut state = 88_172_645_463_325_252_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(1_000_000)
    .collect();
    repo.write("noise", noise);
    let commit = repo.commit();
    let server = Server::start(repo.path()).await;
    let world = World::with(|settings| settings.limits.repository_bytes = 100_000);
    let anonymous = Access::anonymous();
    world.repositories.tree(&server.url(), &anonymous, &commit).await.expect("trees are small");
    let read = world.repositories.read(&server.url(), &anonymous, &commit, &paths(&["noise"])).await;
    let fault = read.map(|files| files.len()).expect_err("the content is large");
    assert!(matches!(&fault, SourceError::Limit { why, .. } if why.contains("100000")), "{fault}");
}

#[test]
fn repositories_may_be_used_from_any_thread() {
    fn is_send<T: Send>(_: T) {}
    let world = World::new();
    let commit = Commit::parse(&"ab".repeat(20)).expect("a commit");
    let access = Access::anonymous();
    is_send(world.repositories.clone());
    is_send(world.repositories.resolve("u", &access, "main", false));
    is_send(world.repositories.tree("u", &access, &commit));
    is_send(world.repositories.read("u", &access, &commit, &[]));
}
