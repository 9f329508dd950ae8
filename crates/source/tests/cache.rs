//! What is kept between calls, how it is shared, and what happens when it breaks.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_source::{Access, Commit, Repositories, SourceError};
use support::server::{Mood, Server};
use support::{Repo, World, paths, settings};

async fn read(repositories: &Repositories, url: &str, commit: &Commit) -> Result<usize, SourceError> {
    let anonymous = Access::anonymous();
    let tree = repositories.tree(url, &anonymous, commit).await?;
    let found = tree.files_like_pathspec("*")?;
    Ok(repositories.read(url, &anonymous, commit, &found).await?.len())
}

#[tokio::test(start_paused = true)]
async fn references_are_believed_for_as_long_as_the_settings_say() {
    let (repo, first) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::with(|settings| settings.revision_cache = Duration::from_secs(180));
    let anonymous = Access::anonymous();
    let resolve = async |fresh| world.repositories.resolve(&server.url(), &anonymous, "main", fresh).await;
    assert_eq!(resolve(false).await.expect("resolved"), first);
    repo.write("new", "x");
    let second = repo.commit();
    tokio::time::advance(Duration::from_secs(179)).await;
    assert_eq!(resolve(false).await.expect("remembered"), first);
    assert_eq!(server.listings(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(resolve(false).await.expect("asked again"), second);
    repo.write("newer", "x");
    let third = repo.commit();
    assert_eq!(resolve(true).await.expect("fresh"), third);
    assert_eq!(resolve(false).await.expect("remembered"), third);
    assert_eq!(server.listings(), 2);
}

#[tokio::test]
async fn a_failed_listing_is_not_remembered() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    server.mood(Mood::Status(500));
    assert!(world.repositories.resolve(&server.url(), &anonymous, "main", false).await.is_err());
    server.mood(Mood::Serve);
    assert_eq!(
        world.repositories.resolve(&server.url(), &anonymous, "main", false).await.expect("passed"),
        commit
    );
}

#[tokio::test]
async fn those_who_want_the_same_share_one_answer() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let anonymous = Access::anonymous();
    let url = server.url();
    let resolve = || world.repositories.resolve(&url, &anonymous, "main", false);
    let all = futures::future::join_all((0..20).map(|_| resolve())).await;
    assert!(all.into_iter().all(|resolved| resolved.is_ok_and(|resolved| resolved == commit)));
    assert_eq!(server.listings(), 1);
    let tree = || world.repositories.tree(&url, &anonymous, &commit);
    let all = futures::future::join_all((0..20).map(|_| tree())).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(server.listings(), 1, "one fetch");
}

#[tokio::test]
async fn processes_that_share_the_directory_do_not_disturb_each_other() {
    let repo = Repo::new();
    let mut commits = Vec::new();
    for n in 0..6 {
        repo.write("file", format!("{n}"));
        commits.push(repo.commit());
    }
    let server = Server::start(repo.path()).await;
    let cache = tempfile::tempdir().expect("a directory");
    let url = server.url();
    // Each has its own state, as processes have; only the directory is shared.
    let readers: Vec<Repositories> = (0..6).map(|_| Repositories::new(settings(cache.path()))).collect();
    let all = readers.iter().zip(&commits).map(|(repositories, commit)| read(repositories, &url, commit));
    for count in futures::future::join_all(all).await {
        assert_eq!(count.expect("read"), 1);
    }
}

/// Damages every cached repository and reads again, with nothing remembered.
async fn survives(damage: impl Fn(&Path)) {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    assert_eq!(read(&world.repositories, &server.url(), &commit).await.expect("read"), 3);
    for directory in world.cached() {
        damage(&directory);
    }
    let again = Repositories::new(settings(world.cache.path()));
    assert_eq!(read(&again, &server.url(), &commit).await.expect("read in spite of the damage"), 3);
}

fn packs(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory.join("objects/pack")).expect("packs").flatten();
    files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == extension)).collect()
}

fn overwrite(path: &Path, content: &[u8]) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("writable");
    std::fs::write(path, content).expect("written");
}

#[tokio::test]
async fn a_cache_without_its_head_is_made_anew() {
    survives(|directory| std::fs::remove_file(directory.join("HEAD")).expect("removed")).await;
}

#[tokio::test]
async fn a_cache_with_broken_packs_is_made_anew() {
    survives(|directory| packs(directory, "pack").iter().for_each(|pack| overwrite(pack, b"nonsense"))).await;
    survives(|directory| packs(directory, "idx").iter().for_each(|index| overwrite(index, b"nonsense")))
        .await;
    survives(|directory| {
        packs(directory, "idx").iter().for_each(|index| std::fs::remove_file(index).expect("gone"))
    })
    .await;
}

#[tokio::test]
async fn a_cache_with_broken_contents_is_made_anew() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    let url = server.url();
    world.repositories.tree(&url, &Access::anonymous(), &commit).await.expect("a tree");
    let directory = world.cached().pop().expect("a cached repository");
    let trees = packs(&directory, "pack");
    read(&world.repositories, &url, &commit).await.expect("read");
    let contents: Vec<PathBuf> =
        packs(&directory, "pack").into_iter().filter(|pack| !trees.contains(pack)).collect();
    assert_eq!(contents.len(), 1);
    for pack in &contents {
        let mut bytes = std::fs::read(pack).expect("a pack");
        bytes[20..40].fill(0xa5);
        overwrite(pack, &bytes);
    }
    assert_eq!(read(&world.repositories, &url, &commit).await.expect("read in spite of the damage"), 3);
}

#[tokio::test]
async fn a_cache_left_by_a_killed_process_is_used_again() {
    survives(|directory| {
        for name in ["shallow.lock", "config.lock", "packed-refs.lock", "objects/pack/tmp_pack_x"] {
            std::fs::write(directory.join(name), "").expect("written");
        }
        std::fs::write(directory.join("config"), "[core").expect("written");
        for pack in packs(directory, "pack").iter().chain(&packs(directory, "idx")) {
            std::fs::remove_file(pack).expect("gone");
        }
    })
    .await;
}

#[tokio::test]
async fn a_cache_that_went_away_while_its_tree_is_remembered_is_fetched_again() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::new();
    read(&world.repositories, &server.url(), &commit).await.expect("read");
    for directory in world.cached() {
        std::fs::remove_dir_all(directory).expect("removed");
    }
    assert_eq!(read(&world.repositories, &server.url(), &commit).await.expect("read"), 3);
}

#[tokio::test]
async fn the_cache_keeps_only_as_many_repositories_as_it_may() {
    let world = World::with(|settings| settings.limits.cached_repositories = 2);
    for _ in 0..4 {
        let (repo, commit) = Repo::filled();
        let server = Server::start(repo.path()).await;
        assert_eq!(read(&world.repositories, &server.url(), &commit).await.expect("read"), 3);
        assert!(world.cached().len() <= 2);
    }
}

/// A `git` that writes down its process before it runs.
fn noted_git(directory: &Path) -> PathBuf {
    let path = directory.join("git");
    let script = format!("#!/bin/sh\necho $$ >> '{}/processes'\nexec git \"$@\"\n", directory.display());
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("runnable");
    path
}

/// The processes of the groups that were noted, by their names.
fn alive(directory: &Path) -> Vec<String> {
    let noted = std::fs::read_to_string(directory.join("processes")).unwrap_or_default();
    let groups: Vec<&str> = noted.lines().collect();
    let stats = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let mut words = after_name.split_whitespace();
            let is_running = words.next() != Some("Z");
            is_running && words.nth(1).is_some_and(|group| groups.contains(&group))
        })
        .collect()
}

#[tokio::test]
async fn a_request_nobody_waits_for_ends_its_processes() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    server.mood(Mood::Hang);
    let notes = tempfile::tempdir().expect("a directory");
    let world = World::with(|settings| settings.git = noted_git(notes.path()));
    let repositories = world.repositories.clone();
    let url = server.url();
    let waiting =
        tokio::spawn(async move { repositories.tree(&url, &Access::anonymous(), &commit).await.map(drop) });
    server.wait_for_requests(1).await;
    assert!(alive(notes.path()).len() > 1, "git and its transport run");
    waiting.abort();
    assert!(waiting.await.is_err_and(|fault| fault.is_cancelled()));
    while !alive(notes.path()).is_empty() {
        tokio::task::yield_now().await;
    }
    server.mood(Mood::Serve);
    assert_eq!(read(&world.repositories, &server.url(), &commit).await.expect("read"), 3);
}

#[tokio::test]
async fn what_git_leaves_running_holds_nothing_up() {
    let (repo, commit) = Repo::filled();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("git");
    std::fs::write(&path, "#!/bin/sh\nsleep 600 &\nexec git \"$@\"\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("runnable");
    let server = Server::start(repo.path()).await;
    let world = World::with(|settings| settings.git = path);
    assert_eq!(read(&world.repositories, &server.url(), &commit).await.expect("read"), 3);
}

#[tokio::test]
async fn a_missing_git_is_said_to_be_missing() {
    let (repo, _) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let world = World::with(|settings| settings.git = PathBuf::from("/nonexistent/git"));
    let fault = world.repositories.resolve(&server.url(), &Access::anonymous(), "main", false).await;
    let fault = fault.expect_err("no git").to_string();
    assert!(fault.contains("git program was not found"), "{fault}");
}

#[tokio::test]
async fn secrets_are_on_no_command_line() {
    let (repo, commit) = Repo::filled();
    let server = Server::start(repo.path()).await;
    let url = server.url();
    server.require_password("jane", "CANARY");
    let notes = tempfile::tempdir().expect("a directory");
    let script = notes.path().join("git");
    // Its own words, and those of the programs git itself runs.
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{0}/words'\nGIT_TRACE='{0}/trace' exec git \"$@\"\n",
        notes.path().display()
    );
    std::fs::write(&script, text).expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("runnable");
    let in_url = url.replace("http://", "http://jane:CANARY@");
    let secret = support::access_with(&url, &[("username", "jane"), ("password", "CANARY")]);
    for (url, access) in [(&url, &secret), (&in_url, &Access::anonymous())] {
        let world = World::with(|settings| settings.git = script.clone());
        world.repositories.resolve(url, access, "main", false).await.expect("resolved");
        let path = paths(&["README.md"]);
        world.repositories.read(url, access, &commit, &path).await.expect("read");
        for directory in world.cached() {
            let config = std::fs::read_to_string(directory.join("config")).expect("a configuration");
            assert!(!config.contains("CANARY") && !config.contains("url"), "{config}");
        }
    }
    let words = std::fs::read_to_string(notes.path().join("words")).expect("words");
    let trace = std::fs::read_to_string(notes.path().join("trace")).expect("a trace");
    assert!(trace.contains("remote-http") && !trace.contains("CANARY"), "{trace}");
    assert!(!words.contains("CANARY"), "{words}");
}
