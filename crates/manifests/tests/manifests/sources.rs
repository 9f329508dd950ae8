//! Several sources, revisions, and what is remembered.

use std::sync::Arc;

use serde_json::json;

use crate::support::{Repo, URL, World, config_map, names, source};

const OTHER: &str = "https://git.example.com/team/other.git";

#[tokio::test]
async fn sources_are_rendered_in_order_each_at_its_revision() {
    let first = Repo::with(&[("a.yaml", &config_map("old"))]);
    let old = first.git(&["rev-parse", "HEAD"]);
    first.write("a.yaml", config_map("new"));
    let new = first.commit().to_string();
    let second = Repo::with(&[("dir/b.yaml", &config_map("b"))]);
    let at = second.git(&["rev-parse", "HEAD"]);
    let world = World::with(&[(URL, &first), (OTHER, &second)], |_| {});
    let sources = [
        source(json!({"path": "."})),
        source(json!({"repoURL": OTHER, "path": "dir", "targetRevision": "main"})),
        source(json!({"repoURL": OTHER, "ref": "values"})),
    ];
    let rendered = world.render(&sources).await.expect("rendered");
    assert_eq!(names(&rendered), ["new", "b"]);
    assert_eq!(rendered.revisions, [new, at.clone(), at.clone()]);
    assert_eq!(rendered.source_types.len(), 3);
    let exact = [old.clone(), String::new()];
    let rendered = world.ask(&sources, |request| request.revisions = &exact).await.expect("rendered");
    assert_eq!(names(&rendered), ["old", "b"]);
    assert_eq!(rendered.revisions, [old, at.clone(), at]);
}

#[tokio::test]
async fn a_range_looks_at_tags_of_the_prefix_only() {
    let repo = Repo::new();
    for (name, tag) in
        [("one", "shop/1.0.0"), ("two", "shop/1.1.0"), ("three", "2.0.0"), ("four", "bank/1.9.0")]
    {
        repo.write("a.yaml", config_map(name));
        repo.commit();
        repo.git(&["tag", tag]);
    }
    let world = World::new(&repo);
    for (prefix, range, name) in
        [("shop/", "1.x", "two"), ("shop/", "1.0.*", "one"), ("bank/", "*", "four"), ("", "*", "three")]
    {
        let names = world.names(json!({"path": ".", "tagPrefix": prefix, "targetRevision": range})).await;
        assert_eq!(names, Ok(vec![name.to_owned()]), "{prefix} {range}");
    }
    let message = world.names(json!({"path": ".", "tagPrefix": "shop/", "targetRevision": "3.x"})).await;
    assert!(message.expect_err("no such version").contains("none of its 2 tags is within that range"));
}

#[tokio::test]
async fn an_error_names_the_source_it_is_about() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let world = World::new(&repo);
    let sources = [source(json!({"path": "."})), source(json!({"path": ".", "targetRevision": "gone"}))];
    let error = world.render(&sources).await.expect_err("no such revision");
    let message = error.to_string();
    assert!(
        message.starts_with("failed to generate manifest for source 2 of 2: unable to resolve 'gone'"),
        "{message}"
    );
    assert!(!error.is_transient());
}

#[tokio::test]
async fn the_same_commit_is_rendered_once() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let world = World::new(&repo);
    let sources = [source(json!({"path": "."}))];
    let first = world.render(&sources).await.expect("rendered");
    let again = world.render(&sources).await.expect("rendered");
    assert!(Arc::ptr_eq(&first.objects[0], &again.objects[0]), "the objects are the same, not only equal");
    let anew = world.ask(&sources, |request| request.ignore_cache = true).await.expect("rendered");
    assert!(!Arc::ptr_eq(&first.objects[0], &anew.objects[0]));
    assert_eq!(first.digest, anew.digest);
    let elsewhere = world.ask(&sources, |request| request.namespace = "test").await.expect("rendered");
    assert!(Arc::ptr_eq(&anew.objects[0], &elsewhere.objects[0]), "plain files are held once for a fleet");
    let part = [source(json!({"path": ".", "directory": {"exclude": "a.yaml"}}))];
    assert!(
        world.render(&part).await.expect("rendered").objects.is_empty(),
        "other options are another matter"
    );
}

#[tokio::test]
async fn those_who_ask_for_the_same_at_once_share_one_rendering() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let world = World::with(&[(URL, &repo)], |settings| settings.limits.cached_bytes = 0);
    let sources = [source(json!({"path": "."}))];
    let (first, second) = tokio::join!(world.render(&sources), world.render(&sources));
    let (first, second) = (first.expect("rendered"), second.expect("rendered"));
    assert!(Arc::ptr_eq(&first.objects[0], &second.objects[0]));
    let later = world.render(&sources).await.expect("rendered");
    assert!(!Arc::ptr_eq(&first.objects[0], &later.objects[0]), "nothing is kept where nothing may be");
}

#[tokio::test]
async fn the_digest_follows_the_objects() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let world = World::new(&repo);
    let sources = [source(json!({"path": "."}))];
    let first = world.render(&sources).await.expect("rendered");
    repo.write("README.md", "more");
    repo.commit();
    let same = world.render(&sources).await.expect("rendered");
    assert_ne!(first.revisions, same.revisions);
    assert_eq!(first.digest, same.digest);
    repo.write("a.yaml", config_map("b"));
    repo.commit();
    assert_ne!(world.render(&sources).await.expect("rendered").digest, first.digest);
}

#[tokio::test]
async fn a_commit_that_touches_nothing_watched_gives_the_same_objects_again() {
    let repo = Repo::with(&[("apps/a/a.yaml", &config_map("a")), ("lib/x", "1")]);
    let world = World::new(&repo);
    let sources = [source(json!({"path": "apps/a"}))];
    let first = world.render(&sources).await.expect("rendered");
    let later = async |paths: Option<&'static str>| {
        let ask = world.ask(&sources, |request| {
            request.generate_paths = paths;
            request.previous = Some((&first.revisions, &first));
        });
        ask.await.expect("rendered")
    };
    repo.write("elsewhere.txt", "changed");
    let next = repo.commit().to_string();
    let kept = later(Some(".;/lib")).await;
    assert!(Arc::ptr_eq(&kept.objects[0], &first.objects[0]));
    assert_eq!((kept.revisions[0].as_str(), kept.digest), (next.as_str(), first.digest));
    for paths in [None, Some(""), Some("/elsewhere.txt"), Some("/")] {
        assert!(!Arc::ptr_eq(&later(paths).await.objects[0], &first.objects[0]), "{paths:?}");
    }
    repo.write("lib/x", "2");
    repo.commit();
    assert!(!Arc::ptr_eq(&later(Some(".;/lib")).await.objects[0], &first.objects[0]));
    assert!(Arc::ptr_eq(&later(Some(".")).await.objects[0], &first.objects[0]));
    let anew = world.ask(&sources, |request| {
        request.generate_paths = Some(".");
        request.previous = Some((&first.revisions, &first));
        request.ignore_cache = true;
    });
    assert!(!Arc::ptr_eq(&anew.await.expect("rendered").objects[0], &first.objects[0]), "asked for anew");
}

#[tokio::test]
async fn a_previous_commit_that_is_gone_or_of_other_sources_is_not_relied_on() {
    let repo = Repo::with(&[("a.yaml", &config_map("a"))]);
    let world = World::new(&repo);
    let sources = [source(json!({"path": "."}))];
    let first = world.render(&sources).await.expect("rendered");
    repo.write("README.md", "x");
    repo.commit();
    let gone = ["0".repeat(40)];
    for revisions in [&gone[..], &[], &["1.2.3".to_owned()]] {
        let ask = world.ask(&sources, |request| {
            request.generate_paths = Some("/a.yaml");
            request.previous = Some((revisions, &first));
        });
        let rendered = ask.await.expect("rendered");
        assert!(!Arc::ptr_eq(&rendered.objects[0], &first.objects[0]), "{revisions:?}");
    }
}
