//! Plain manifests.

use serde_json::json;

use crate::support::{Repo, World, config_map, source};

#[tokio::test]
async fn files_are_read_in_the_order_of_a_walk_and_only_at_the_top_unless_told() {
    let repo = Repo::new();
    for (path, name) in [
        ("app/b.yaml", "b"),
        ("app/a.yml", "a"),
        ("app/a/deep.yaml", "deep"),
        ("app/README.md", "no"),
        ("app/notes.txt", "no"),
        ("other/c.yaml", "c"),
    ] {
        repo.write(path, config_map(name));
    }
    repo.write("app/c.json", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"}}"#);
    repo.commit();
    let world = World::new(&repo);
    assert_eq!(world.names(json!({"path": "app"})).await, Ok(owned(["a", "b", "json"])));
    let recurse = json!({"path": "./app/", "directory": {"recurse": true}});
    assert_eq!(world.names(recurse).await, Ok(owned(["deep", "a", "b", "json"])));
    let whole = json!({"path": ".", "directory": {"recurse": true}});
    assert_eq!(world.names(whole).await, Ok(owned(["deep", "a", "b", "json", "c"])));
}

#[tokio::test]
async fn globs_see_the_path_from_the_source_and_stars_cross_slashes() {
    let repo = Repo::new();
    for path in ["app/root.yaml", "app/dir/one.yaml", "app/dir/two.yaml", "app/dir/sub/three.yaml"] {
        let name = path.rsplit('/').next().expect("a name").trim_end_matches(".yaml");
        repo.write(path, config_map(name));
    }
    repo.commit();
    let world = World::new(&repo);
    let cases: [(&str, &str, &[&str]); 6] = [
        ("*.yaml", "", &["one", "three", "two", "root"]),
        ("**/*.yaml", "", &["one", "three", "two"]),
        ("dir/*", "", &["one", "three", "two"]),
        ("{root,dir/one}.yaml", "", &["one", "root"]),
        ("", "dir/*", &["root"]),
        ("*", "{*two*,root*}", &["one", "three"]),
    ];
    for (include, exclude, expected) in cases {
        let directory = json!({"recurse": true, "include": include, "exclude": exclude});
        let names = world.names(json!({"path": "app", "directory": directory})).await;
        assert_eq!(names, Ok(owned(expected.iter().copied())), "include {include} exclude {exclude}");
    }
    let broken = world.names(json!({"path": "app", "directory": {"include": "[z-a]"}})).await;
    let message = broken.expect_err("no pattern");
    assert!(message.contains("directory.include"), "{message}");
}

#[tokio::test]
async fn without_the_extension_filter_every_file_counts() {
    let repo = Repo::with(&[("app/manifest", &config_map("bare")), ("app/a.tmpl", &config_map("template"))]);
    let world = World::new(&repo);
    let all = json!({"path": "app", "directory": {"disableExtensionFilter": true}});
    assert_eq!(world.names(all).await, Ok(owned(["template", "bare"])));
    assert_eq!(world.names(json!({"path": "app"})).await, Ok(vec![]));
}

#[tokio::test]
async fn documents_and_lists_become_single_objects() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: in-list}}\n\
                - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: nested}}]}\n";
    let many = format!("# first\n---\n{}--- # second\n\n---\n{}", config_map("one"), config_map("two"));
    let repo = Repo::with(&[
        ("app/a.yaml", &many),
        ("app/b.yaml", list),
        ("app/c.yaml", "apiVersion: v1\nkind: ConfigMapList\nitems: null\n"),
        ("app/d.yaml", "apiVersion: v1\nkind: ConfigMapList\nitems: []\n"),
        ("app/e.yaml", "apiVersion: v1\nkind: Menu\nmetadata: {name: kept}\nspec: {}\nitems: null\n"),
        (
            "app/f.yaml",
            "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"j1\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"j2\"}}\n---\napiVersion: v1\nkind: A\nmetadata: {name: y3}\n",
        ),
        ("app/g.yaml", ""),
    ]);
    let names = World::new(&repo).names(json!({"path": "app"})).await;
    assert_eq!(names, Ok(owned(["one", "two", "in-list", "nested", "kept", "j1", "j2", "y3"])));
}

#[tokio::test]
async fn files_in_utf_16_or_with_a_byte_order_mark_are_read() {
    let repo = Repo::new();
    let wide = |text: &str, number: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(number).collect()
    };
    repo.write("app/a.yaml", wide(&config_map("little"), u16::to_le_bytes));
    repo.write("app/b.yaml", wide(&config_map("big"), u16::to_be_bytes));
    repo.write("app/c.yaml", format!("\u{feff}{}", config_map("marked")));
    repo.write(
        "app/d.json",
        "\u{feff}{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"json\"}}",
    );
    repo.commit();
    let names = World::new(&repo).names(json!({"path": "app"})).await;
    assert_eq!(names, Ok(owned(["little", "big", "marked", "json"])));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_an_error_only_where_it_looks_like_a_manifest() {
    let good = config_map("good");
    let cases = [
        ("values.yaml", "replicas: 3\n".to_owned(), Ok(vec![])),
        ("helm.yaml", "{{ if true }}\nfoo: bar\n{{ end }}\n".to_owned(), Ok(vec![])),
        ("list.yaml", "- a\n- b\n".to_owned(), Ok(vec![])),
        (
            "broken.yaml",
            "apiVersion: v1\nkind: A\nmetadata: {name: x\n".to_owned(),
            Err("Failed to unmarshal"),
        ),
        ("second.yaml", format!("{good}---\nfoo: [\n"), Err("Failed to unmarshal \"second.yaml\"")),
        ("kindless.yaml", format!("{good}---\nfoo: bar\n"), Err("document 2: Object 'Kind' is missing")),
        (
            "two.json",
            r#"{"kind":"A","metadata":{"name":"x"}} {"kind":"A"}"#.to_owned(),
            Err("Found multiple objects in \"two.json\""),
        ),
        ("package.json", r#"{"name":"x"}"#.to_owned(), Err("Object 'Kind' is missing")),
        ("empty.json", String::new(), Err("EOF")),
    ];
    for (file, content, expected) in cases {
        let repo = Repo::with(&[(&format!("app/{file}"), &content)]);
        let names = World::new(&repo).names(json!({"path": "app"})).await;
        match expected {
            Ok(expected) => assert_eq!(names, Ok(expected), "{file}"),
            Err(part) => {
                let message = names.expect_err(file);
                assert!(message.contains(part), "{file}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn the_content_of_a_broken_secret_is_not_shown() {
    let repo = Repo::with(&[(
        "app/a.yaml",
        "apiVersion: v1\nkind:\nmetadata: {name: x}\nstringData: {p: hunter2}\n",
    )]);
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("no kind");
    assert!(!message.contains("hunter2"), "{message}");
}

#[tokio::test]
async fn a_file_with_the_marker_is_passed_over() {
    let marked = format!("# +argocd:skip-file-rendering\n{}", config_map("marked"));
    let repo = Repo::with(&[("app/a.yaml", &marked), ("app/b.yaml", &config_map("b"))]);
    assert_eq!(World::new(&repo).names(json!({"path": "app"})).await, Ok(owned(["b"])));
}

#[tokio::test]
async fn links_are_followed_to_files_of_the_repository_and_nowhere_else() {
    let repo = Repo::with(&[("shared/real.yaml", &config_map("real")), ("app/own.yaml", &config_map("own"))]);
    repo.link("app/link.yaml", "../shared/real.yaml");
    repo.link("app/dangling.yaml", "nowhere.yaml");
    repo.link("app/directory.yaml", "../shared");
    repo.link("app/text", "/etc/passwd");
    repo.link("alias", "app");
    repo.commit();
    let world = World::new(&repo);
    assert_eq!(world.names(json!({"path": "app"})).await, Ok(owned(["real", "own"])));
    assert_eq!(world.names(json!({"path": "alias"})).await, Ok(owned(["real", "own"])));
    for target in ["/etc/hostname", "../../outside.yaml", "loop.yaml"] {
        let repo = Repo::with(&[("app/own.yaml", &config_map("own"))]);
        repo.link("app/loop.yaml", target);
        repo.commit();
        let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err(target);
        assert!(message.contains("invalid manifest file \"app/loop.yaml\""), "{message}");
    }
}

#[tokio::test]
async fn paths_must_be_directories_of_the_repository() {
    let repo = Repo::with(&[("app/own.yaml", &config_map("own"))]);
    repo.link("out", "..");
    repo.commit();
    let world = World::new(&repo);
    for (path, why) in [
        ("/app", "is absolute"),
        ("../app", "outside root"),
        ("app/../../x", "outside root"),
        ("out", "outside root"),
        ("none", "does not exist"),
        ("app/own.yaml", "is not a directory"),
        ("app\0", "does not exist"),
    ] {
        let message = world.names(json!({"path": path})).await.expect_err(path);
        let expected = format!("failed to generate manifest for source 1 of 1: {path}: app path {why}");
        assert_eq!(message, expected);
    }
}

#[tokio::test]
async fn jsonnet_and_plugins_are_said_not_to_be_supported() {
    let repo = Repo::with(&[("app/a.jsonnet", "{}"), ("app/b.yaml", &config_map("b"))]);
    let world = World::new(&repo);
    let message = world.names(json!({"path": "app"})).await.expect_err("Jsonnet");
    assert!(message.contains("Jsonnet is not supported"), "{message}");
    let excluded = world.names(json!({"path": "app", "directory": {"exclude": "*.jsonnet"}})).await;
    assert_eq!(excluded, Ok(owned(["b"])));
    let message = world.names(json!({"path": "app", "plugin": {"name": "p"}})).await.expect_err("a plugin");
    assert!(message.contains("plugins are not supported"), "{message}");
}

#[tokio::test]
async fn options_beside_the_manifests_override_those_of_the_source() {
    let repo = Repo::with(&[
        ("app/a.yaml", &config_map("a")),
        ("app/sub/b.yaml", &config_map("b")),
        (
            "app/.argocd-source.yaml",
            "path: elsewhere\nrepoURL: https://evil\ndirectory: {recurse: true, exclude: .argo*}\n",
        ),
        ("app/.argocd-source-shop.yaml", "directory: {exclude: '{a*,.argo*}'}\n"),
        ("app/.argocd-source-other.yaml", "directory: {recurse: false}\n"),
    ]);
    let world = World::new(&repo);
    assert_eq!(world.names(json!({"path": "app"})).await, Ok(owned(["b"])));
    let sources = [source(json!({"path": "app"}))];
    let other = world.ask(&sources, |request| request.instance = "third").await.expect("rendered");
    assert_eq!(crate::support::names(&other), ["a", "b"]);
    let broken = Repo::with(&[("app/.argocd-source.yaml", "directory: [")]);
    let message = World::new(&broken).names(json!({"path": "app"})).await.expect_err("no YAML");
    assert!(message.contains("error while parsing source parameters: .argocd-source.yaml"), "{message}");
}

#[tokio::test]
async fn one_source_has_one_type() {
    let repo = Repo::with(&[("app/a.yaml", &config_map("a"))]);
    let both = json!({"path": "app", "helm": {}, "directory": {}, "kustomize": {}});
    let message = World::new(&repo).names(both).await.expect_err("three types");
    assert!(message.ends_with("multiple application sources defined: Kustomize,Helm,Directory"), "{message}");
}

fn owned<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
