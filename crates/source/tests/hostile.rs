//! Repositories made to do harm.

mod support;

use baton_source::{Access, SourceError};
use support::server::Server;
use support::{Repo, URL, World, mapped, paths};

/// Commits a tree given as git's own bytes: entries no working tree could have.
fn commit_raw(repo: &Repo, entries: &[(&str, &[u8], &str)]) -> baton_source::Commit {
    let mut raw = Vec::new();
    for (mode, name, object) in entries {
        raw.extend(mode.as_bytes());
        raw.push(b' ');
        raw.extend(*name);
        raw.push(0);
        raw.extend((0..20).map(|at| u8::from_str_radix(&object[at * 2..at * 2 + 2], 16).expect("digits")));
    }
    let tree = repo.git_with_input(&["hash-object", "-t", "tree", "--literally", "-w", "--stdin"], &raw);
    let commit = repo.git(&["commit-tree", "-m", "raw", &tree]);
    repo.git(&["update-ref", "refs/heads/main", &commit]);
    baton_source::Commit::parse(&commit).expect("a commit")
}

#[tokio::test]
async fn trees_that_would_leave_a_checkout_are_refused() {
    let repo = Repo::new();
    let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"x: 1");
    let tree = repo.git_with_input(&["mktree"], format!("100644 blob {blob}\tpasswd\n").as_bytes());
    let cases: [(&str, &[u8], &str); 5] = [
        ("100644", b"../../etc/passwd", &blob),
        ("100644", b"/etc/passwd", &blob),
        ("40000", b"..", &tree),
        ("40000", b".git", &tree),
        ("100644", b".", &blob),
    ];
    for case in cases {
        let commit = commit_raw(&repo, &[case]);
        let world = mapped(&repo);
        let fault = world.repositories.tree(URL, &Access::anonymous(), &commit).await.expect_err("refused");
        assert!(matches!(fault, SourceError::Tree { .. }), "{:?}: {fault}", String::from_utf8_lossy(case.1));
        let read =
            world.repositories.read(URL, &Access::anonymous(), &commit, &paths(&["../../etc/passwd"])).await;
        assert!(read.is_err());
    }
}

#[tokio::test]
async fn such_a_tree_from_a_server_is_refused_and_not_fetched_for_ever() {
    let repo = Repo::new();
    let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"x: 1");
    let commit = commit_raw(&repo, &[("100644", b"../escape", &blob)]);
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let fault =
        world.repositories.tree(&server.url(), &Access::anonymous(), &commit).await.expect_err("refused");
    assert!(matches!(fault, SourceError::Tree { .. }), "{fault}");
    assert_eq!(server.listings(), 1);
}

#[tokio::test]
async fn names_that_are_not_utf8_hide_nothing_else() {
    let repo = Repo::new();
    let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"x: 1");
    let commit =
        commit_raw(&repo, &[("100644", b"a\xff.yaml", &blob), ("100644", "ü.yaml".as_bytes(), &blob)]);
    let world = mapped(&repo);
    let tree = world.repositories.tree(URL, &Access::anonymous(), &commit).await.expect("a tree");
    assert_eq!(tree.files_like_pathspec("*.yaml").expect("a pattern"), ["ü.yaml"]);
}

#[tokio::test]
async fn a_tree_of_trees_without_end_is_cut_off() {
    let repo = Repo::new();
    let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], b"x: 1");
    // Each level holds the one below ten times: ten to the ninth files from ten objects.
    let mut tree = repo.git_with_input(&["mktree"], format!("100644 blob {blob}\tf\n").as_bytes());
    for _ in 0..9 {
        let level: String = (0..10).map(|n| format!("040000 tree {tree}\td{n}\n")).collect();
        tree = repo.git_with_input(&["mktree"], level.as_bytes());
    }
    let commit = repo.git(&["commit-tree", "-m", "bomb", &tree]);
    let commit = baton_source::Commit::parse(&commit).expect("a commit");
    let world = World::with(|settings| {
        settings.local.insert(URL.to_owned(), repo.path().to_owned());
        settings.limits.entries = 100_000;
    });
    let fault = world.repositories.tree(URL, &Access::anonymous(), &commit).await.expect_err("cut off");
    assert!(matches!(&fault, SourceError::Limit { why, .. } if why.contains("100000")), "{fault}");
}

#[tokio::test]
async fn a_huge_file_is_refused_by_its_size() {
    let repo = Repo::new();
    repo.write("huge.yaml", vec![0; 30 << 20]);
    let commit = repo.commit();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let read =
        world.repositories.read(&server.url(), &Access::anonymous(), &commit, &paths(&["huge.yaml"])).await;
    let fault = read.expect_err("too large").to_string();
    assert!(fault.contains("huge.yaml") && fault.contains(&(30 << 20).to_string()), "{fault}");
}

#[tokio::test]
async fn a_link_s_target_is_bounded() {
    let repo = Repo::new();
    let target = repo.git_with_input(&["hash-object", "-w", "--stdin"], &[b'a'; 5000]);
    let commit = commit_raw(&repo, &[("120000", b"link", &target)]);
    let fault =
        mapped(&repo).repositories.tree(URL, &Access::anonymous(), &commit).await.expect_err("refused");
    assert!(matches!(fault, SourceError::Limit { .. }), "{fault}");
}

#[tokio::test]
async fn revisions_and_urls_are_never_options() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    for revision in ["--upload-pack=touch x", "--output=x", "-", "a\0b", "main\nrefs/heads/x"] {
        let fault = world.repositories.resolve(&server.url(), &anonymous, revision, false).await;
        assert!(matches!(fault, Err(SourceError::Revision { .. })), "{revision:?}: {fault:?}");
    }
    for url in ["--upload-pack=touch x", "ext::sh -c 'touch x'", "file:///etc", "-u", "https://-x/y"] {
        let fault = world.repositories.resolve(url, &anonymous, "main", false).await;
        assert!(matches!(fault, Err(SourceError::Url { .. })), "{url:?}: {fault:?}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn more_references_than_allowed_are_refused() {
    let (repo, commit) = Repo::filled();
    let lines: String = (0..50).map(|n| format!("create refs/heads/b{n} {commit}\n")).collect();
    repo.git_with_input(&["update-ref", "--stdin"], lines.as_bytes());
    let server = Server::start(repo.path()).await;
    let world = World::with(|settings| settings.limits.references = 40);
    let fault = world.repositories.resolve(&server.url(), &Access::anonymous(), "main", false).await;
    assert!(matches!(fault, Err(SourceError::Limit { .. })), "{fault:?}");
}
