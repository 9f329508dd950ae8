//! Repositories on this machine's disk.

mod support;

use baton_source::{Access, Kind, Repositories, SourceError};
use support::{Repo, URL, World, mapped, paths, settings, texts};

async fn resolve(world: &World, revision: &str) -> Result<String, SourceError> {
    let commit = world.repositories.resolve(URL, &Access::anonymous(), revision, false).await;
    commit.map(|commit| commit.to_string())
}

#[tokio::test]
async fn a_mapped_working_tree_shows_what_is_committed() {
    let (repo, commit) = Repo::filled();
    repo.write("apps/c/config.yaml", "not committed");
    repo.write("apps/a/config.yaml", "changed but not committed");
    let world = mapped(&repo);
    let anonymous = Access::anonymous();
    let resolved = world.repositories.resolve(URL, &anonymous, "HEAD", false).await.expect("resolved");
    assert_eq!(resolved, commit);
    let tree = world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    assert_eq!(tree.directories().collect::<Vec<_>>(), ["apps", "apps/a", "apps/b"]);
    let found = tree.files_like_pathspec("apps/*/config.yaml").expect("a pattern");
    let files = world.repositories.read(URL, &anonymous, &commit, &found).await.expect("read");
    let expected = [("apps/a/config.yaml", "name: a\n"), ("apps/b/config.yaml", "name: b\n")];
    assert_eq!(texts(files), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    assert!(world.cached().is_empty());
}

#[tokio::test]
async fn bare_repositories_and_linked_working_trees_are_read_too() {
    let (repo, commit) = Repo::filled();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let bare = elsewhere.path().join("bare.git");
    let linked = elsewhere.path().join("linked");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().expect("UTF-8")]);
    repo.git(&["worktree", "add", "-q", "--detach", linked.to_str().expect("UTF-8")]);
    for path in [bare, linked] {
        let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), path.clone())));
        assert_eq!(resolve(&world, "").await.expect("resolved"), commit.to_string(), "{path:?}");
        let tree = world.repositories.tree(URL, &Access::anonymous(), &commit).await.expect("a tree");
        assert_eq!(tree.files().count(), 3);
    }
}

#[tokio::test]
async fn the_files_of_a_mapped_directory_stand_for_every_revision() {
    let plain = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(plain.path().join("apps/a")).expect("a directory");
    std::fs::write(plain.path().join("apps/a/config.yaml"), "name: a\n").expect("a file");
    let path = plain.path().to_owned();
    let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), path.clone())));
    let anonymous = Access::anonymous();
    let first = resolve(&world, "main").await.expect("a snapshot");
    assert_eq!(
        resolve(&world, "HEAD").await.expect("a snapshot"),
        first,
        "the same files are the same commit"
    );
    std::fs::write(plain.path().join("apps/a/config.yaml"), "name: b\n").expect("a file");
    let commit = world.repositories.resolve(URL, &anonymous, "v1.2", false).await.expect("a snapshot");
    assert_ne!(commit.to_string(), first);
    let tree = world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    assert_eq!(tree.directories().collect::<Vec<_>>(), ["apps", "apps/a"]);
    let wanted = ["apps/a/config.yaml".to_owned()];
    let files = world.repositories.read(URL, &anonymous, &commit, &wanted).await.expect("read");
    assert_eq!(texts(files), [("apps/a/config.yaml".to_owned(), "name: b\n".to_owned())]);
    assert!(!plain.path().join(".git").exists(), "nothing is written into the directory");
}

#[tokio::test]
async fn a_cache_may_be_named_relative_to_where_the_process_runs() {
    let plain = tempfile::tempdir().expect("a directory");
    std::fs::write(plain.path().join("config.yaml"), "a: 1\n").expect("a file");
    let here = tempfile::tempdir_in(".").expect("a directory");
    let relative = std::path::PathBuf::from(here.path().file_name().expect("a name"));
    let path = plain.path().to_owned();
    let world = World::with(|settings| {
        settings.cache_dir = relative;
        settings.local.insert(URL.to_owned(), path);
    });
    resolve(&world, "main").await.expect("a snapshot");
}

#[tokio::test]
async fn what_gitignore_names_is_a_file_like_others_where_there_is_no_repository() {
    let plain = tempfile::tempdir().expect("a directory");
    std::fs::write(plain.path().join(".gitignore"), "*.yaml\n").expect("a file");
    std::fs::write(plain.path().join("config.yaml"), "a: 1\n").expect("a file");
    let path = plain.path().to_owned();
    let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), path)));
    let anonymous = Access::anonymous();
    let commit = world.repositories.resolve(URL, &anonymous, "main", false).await.expect("a snapshot");
    let tree = world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    assert_eq!(tree.files_like_pathspec("*.yaml").expect("a pattern"), ["config.yaml"]);
}

#[tokio::test]
async fn a_mapped_directory_that_loses_what_it_had_is_an_error_and_never_empty() {
    // A repository stays one: with its directory emptied, as by a lost mount, there is nothing to read.
    let (repo, _) = Repo::filled();
    let world = mapped(&repo);
    resolve(&world, "HEAD").await.expect("a repository");
    std::fs::remove_dir_all(repo.path().join(".git")).expect("removed");
    let error = resolve(&world, "HEAD").await.expect_err("no repository any more").to_string();
    assert!(error.contains(URL), "{error}");

    let plain = tempfile::tempdir().expect("a directory");
    std::fs::write(plain.path().join("config.yaml"), "a: 1\n").expect("a file");
    let path = plain.path().to_owned();
    let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), path)));
    resolve(&world, "HEAD").await.expect("a snapshot");
    std::fs::remove_file(plain.path().join("config.yaml")).expect("removed");
    let error = resolve(&world, "HEAD").await.expect_err("an empty directory").to_string();
    assert!(error.contains("is empty"), "{error}");
}

#[tokio::test]
async fn snapshots_of_one_directory_are_taken_at_the_same_time() {
    let plain = tempfile::tempdir().expect("a directory");
    std::fs::write(plain.path().join("config.yaml"), "a: 1\n").expect("a file");
    let path = plain.path().to_owned();
    let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), path)));
    let all = futures::future::join_all((0..12).map(|_| resolve(&world, "main"))).await;
    let first = all[0].as_ref().expect("a snapshot");
    assert!(all.iter().all(|commit| commit.as_ref().ok() == Some(first)), "{all:?}");
}

#[tokio::test]
async fn what_is_no_directory_is_said_to_be_none() {
    let nowhere = tempfile::tempdir().expect("a directory").path().join("gone");
    let world = World::with(|settings| drop(settings.local.insert(URL.to_owned(), nowhere)));
    let error = resolve(&world, "HEAD").await.expect_err("no repository").to_string();
    assert!(error.contains(URL), "{error}");
}

#[tokio::test]
async fn an_empty_repository_has_no_head() {
    let repo = Repo::new();
    let fault = resolve(&mapped(&repo), "HEAD").await.expect_err("nothing committed").to_string();
    assert!(fault.contains("no commit"), "{fault}");
}

#[tokio::test]
async fn every_kind_of_revision_is_resolved() {
    let repo = Repo::new();
    repo.write("f", "1");
    let first = repo.commit().to_string();
    repo.git(&["tag", "v1.0.0"]);
    repo.write("f", "2");
    let second = repo.commit().to_string();
    repo.git(&["tag", "-a", "-m", "annotated", "v1.1.0"]);
    repo.git(&["branch", "feature/x"]);
    repo.write("f", "3");
    let third = repo.commit().to_string();
    repo.git(&["tag", "-a", "-m", "release candidate", "v2.0.0-rc.1"]);
    repo.git(&["update-ref", "refs/pull/7/head", &first]);
    let world = mapped(&repo);
    for (revision, expected) in [
        ("", &third),
        ("HEAD", &third),
        ("main", &third),
        ("refs/heads/main", &third),
        ("feature/x", &second),
        ("v1.0.0", &first),
        ("v1.1.0", &second),
        ("refs/tags/v1.1.0", &second),
        ("1.x", &second),
        ("~1.0", &first),
        (">=2.0.0-0", &third),
        ("pull/7/head", &first),
        (first.as_str(), &first),
        (first.to_uppercase().as_str(), &first),
        (&second[..7], &second),
        (&third[..12], &third),
    ] {
        assert_eq!(resolve(&world, revision).await.expect(revision), *expected, "{revision}");
    }
    for revision in ["nothing", "3.x", "abcdef", "0000000", "HEAD~1", "main^", "@", ":/change", "main@{0}"] {
        let fault = resolve(&world, revision).await.expect_err(revision).to_string();
        assert!(fault.contains(URL) && fault.contains(revision), "{fault}");
    }
    for revision in ["--all", "-x", "a\nb"] {
        assert!(matches!(resolve(&world, revision).await, Err(SourceError::Revision { .. })), "{revision}");
    }
}

#[tokio::test]
async fn a_commit_that_is_not_there_is_not_found() {
    let (repo, _) = Repo::filled();
    let world = mapped(&repo);
    let absent = baton_source::Commit::parse(&"ab".repeat(20)).expect("a commit");
    let fault = world.repositories.tree(URL, &Access::anonymous(), &absent).await.expect_err("absent");
    assert!(
        matches!(&fault, SourceError::NotFound { revision, .. } if *revision == "ab".repeat(20)),
        "{fault}"
    );
}

#[tokio::test]
async fn local_urls_need_permission() {
    let (repo, commit) = Repo::filled();
    let cache = tempfile::tempdir().expect("a directory");
    let allowed = baton_source::Settings { allow_local: true, ..settings(cache.path()) };
    let plain = repo.path().to_str().expect("UTF-8").to_owned();
    for url in [plain.clone(), format!("file://{plain}")] {
        let repositories = Repositories::new(allowed.clone());
        assert_eq!(
            repositories.resolve(&url, &Access::anonymous(), "main", false).await.expect("allowed"),
            commit
        );
        let strict = Repositories::new(settings(cache.path()));
        let fault = strict.resolve(&url, &Access::anonymous(), "main", false).await.expect_err("not allowed");
        assert!(fault.to_string().contains("not allowed"), "{fault}");
        assert!(strict.tree(&url, &Access::anonymous(), &commit).await.is_err());
    }
}

#[tokio::test]
async fn a_repository_s_own_configuration_runs_nothing() {
    let (repo, commit) = Repo::filled();
    let trace = tempfile::tempdir().expect("a directory");
    let touch = format!("touch {}/ran", trace.path().display());
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "credential.helper",
        "core.askPass",
    ] {
        repo.git(&["config", key, &touch]);
    }
    repo.git(&["config", "core.hooksPath", trace.path().to_str().expect("UTF-8")]);
    let world = mapped(&repo);
    resolve(&world, "main").await.expect("resolved");
    let anonymous = Access::anonymous();
    world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    world.repositories.read(URL, &anonymous, &commit, &paths(&["README.md"])).await.expect("read");
    assert!(!trace.path().join("ran").exists());
}

#[tokio::test]
async fn links_submodules_and_strange_names_are_seen_as_in_a_checkout() {
    let (other, _) = Repo::filled();
    let repo = Repo::new();
    repo.write("real/config.yaml", "real");
    repo.write("ümläut/☃.yaml", "snow");
    repo.write("line\nbreak/x.yaml", "odd");
    repo.link("alias", "real");
    repo.link("inside.yaml", "real/config.yaml");
    repo.link("outside.yaml", "../../etc/passwd");
    repo.link("absolute.yaml", "/etc/passwd");
    repo.link("circle.yaml", "circle.yaml");
    repo.git(&["submodule", "--quiet", "add", other.path().to_str().expect("UTF-8"), "vendor/module"]);
    let commit = repo.commit();
    let world = mapped(&repo);
    let anonymous = Access::anonymous();
    let tree = world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    let directories: Vec<&str> = tree.directories().collect();
    assert_eq!(directories, ["line\nbreak", "real", "vendor", "vendor/module", "ümläut"]);
    assert!(tree.files().any(|entry| *entry.kind() == Kind::Submodule));
    let read = async |path: &str| world.repositories.read(URL, &anonymous, &commit, &paths(&[path])).await;
    assert_eq!(texts(read("inside.yaml").await.expect("read"))[0].1, "real");
    assert_eq!(texts(read("alias/config.yaml").await.expect("read"))[0].1, "real");
    assert_eq!(texts(read("ümläut/☃.yaml").await.expect("read"))[0].1, "snow");
    for (path, why) in [
        ("outside.yaml", "out of the repository"),
        ("absolute.yaml", "out of the repository"),
        ("circle.yaml", "circle"),
        ("vendor/module", "submodule"),
        ("real", "directory"),
        ("../x", "out of the repository"),
        ("missing", "no such file"),
    ] {
        let fault = read(path).await.expect_err(path).to_string();
        assert!(fault.contains(why) && fault.contains(path), "{fault}");
    }
}

#[tokio::test]
async fn lfs_pointers_are_reported_and_not_followed() {
    let repo = Repo::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    repo.write("big.yaml", pointer);
    repo.write("small.yaml", "a: 1");
    let commit = repo.commit();
    let world = mapped(&repo);
    let both = paths(&["small.yaml", "big.yaml"]);
    let fault =
        world.repositories.read(URL, &Access::anonymous(), &commit, &both).await.expect_err("a pointer");
    assert!(fault.to_string().contains("big.yaml") && fault.to_string().contains("LFS"), "{fault}");
}

#[tokio::test]
async fn files_and_trees_over_the_limits_are_refused() {
    let repo = Repo::new();
    for n in 0..30 {
        repo.write(&format!("d/{n:02}"), vec![b'x'; 1000]);
    }
    repo.write("large", vec![b'x'; 5001]);
    let commit = repo.commit();
    let world = World::with(|settings| {
        settings.local.insert(URL.to_owned(), repo.path().to_owned());
        settings.limits.file_bytes = 5000;
        settings.limits.read_bytes = 10_000;
    });
    let anonymous = Access::anonymous();
    let tree = world.repositories.tree(URL, &anonymous, &commit).await.expect("a tree");
    let some: Vec<String> = tree.files_like_pathspec("d").expect("a pattern").into_iter().take(10).collect();
    assert_eq!(world.repositories.read(URL, &anonymous, &commit, &some).await.expect("read").len(), 10);
    let many = tree.files_like_pathspec("d").expect("a pattern");
    let fault = world.repositories.read(URL, &anonymous, &commit, &many).await.expect_err("too many bytes");
    assert!(matches!(fault, SourceError::Limit { .. }), "{fault}");
    let fault = world.repositories.read(URL, &anonymous, &commit, &paths(&["d/00", "large"])).await;
    let fault = fault.expect_err("too large").to_string();
    assert!(fault.contains("large") && fault.contains("5001"), "{fault}");
    let narrow = World::with(|settings| {
        settings.local.insert(URL.to_owned(), repo.path().to_owned());
        settings.limits.entries = 30;
    });
    let fault = narrow.repositories.tree(URL, &anonymous, &commit).await.expect_err("too many entries");
    assert!(matches!(&fault, SourceError::Limit { why, .. } if why.contains("30")), "{fault}");
}
