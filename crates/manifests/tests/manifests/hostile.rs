//! Repositories that mean harm.

use serde_json::json;

use crate::support::{Repo, URL, World, config_map};

#[tokio::test]
async fn a_bomb_of_aliases_is_refused() {
    let mut bomb =
        String::from("apiVersion: v1\nkind: A\nmetadata: {name: x}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
    }
    let repo = Repo::with(&[("app/a.yaml", &bomb)]);
    let message = World::new(&repo).names(json!({"path": "app"})).await.expect_err("a bomb");
    assert!(message.contains("Failed to unmarshal \"a.yaml\""), "{message}");
}

#[tokio::test]
async fn deep_nesting_is_refused() {
    let deep = format!("apiVersion: v1\nkind: A\nmetadata: {{name: x}}\nspec: {}", "[".repeat(100_000));
    let json =
        format!(r#"{{"apiVersion":"v1","kind":"A","metadata":{{"name":"x"}},"spec":{}"#, "[".repeat(100_000));
    for (file, content) in [("app/a.yaml", &deep), ("app/a.json", &json), ("app/b.yaml", &json)] {
        let repo = Repo::with(&[(file, content)]);
        let names = World::new(&repo).names(json!({"path": "app"})).await;
        assert!(names.is_err() || names == Ok(vec![]), "{file}: {names:?}");
    }
}

#[tokio::test]
async fn more_bytes_than_allowed_are_refused() {
    let large = format!("{}data: {{k: {}}}\n", config_map("large"), "x".repeat(3000));
    let repo = Repo::with(&[("app/a.yaml", &large), ("app/b.yaml", &large)]);
    for (most, why) in [
        (5000, "exceeded max combined manifest file size"),
        (3000, "exceeded max combined manifest file size"),
        (100, "a.yaml\" of repository https://git.example.com/team/repo.git at"),
    ] {
        let world = World::with(&[(URL, &repo)], |settings| settings.limits.manifest_bytes = most);
        let message = world.names(json!({"path": "app"})).await.expect_err("too large");
        assert!(message.contains(why), "{most}: {message}");
    }
    let world = World::with(&[(URL, &repo)], |settings| settings.limits.manifest_bytes = 7000);
    assert_eq!(world.names(json!({"path": "app"})).await.expect("within the limit").len(), 2);
}

#[tokio::test]
async fn more_objects_than_allowed_are_refused() {
    let items = "{apiVersion: v1, kind: A, metadata: {name: x}},".repeat(20);
    let repo = Repo::with(&[("app/a.yaml", &format!("kind: List\nitems: [{items}]\n"))]);
    let world = World::with(&[(URL, &repo)], |settings| settings.limits.objects = 10);
    let message = world.names(json!({"path": "app"})).await.expect_err("too many");
    assert!(message.contains("more than 10 objects"), "{message}");
}

#[tokio::test]
async fn a_hundred_thousand_files_and_deep_directories_are_no_obstacle() {
    let repo = Repo::new();
    let blob = repo.git_with_input(&["hash-object", "-w", "--stdin"], config_map("one").as_bytes());
    let mut index = String::new();
    for number in 0..100_000 {
        index += &format!("100644 {blob}\tother/{}/{number}.yaml\n", number % 100);
    }
    let deep = "d/".repeat(400);
    index += &format!("100644 {blob}\tapp/{deep}a.yaml\n");
    repo.git_with_input(&["update-index", "--index-info"], index.as_bytes());
    repo.git(&["commit", "-q", "-m", "many"]);
    let world = World::new(&repo);
    let names = world.names(json!({"path": "app", "directory": {"recurse": true}})).await;
    assert_eq!(names, Ok(vec!["one".to_owned()]));
    let some = json!({"path": ".", "directory": {"recurse": true, "include": "other/7/*0*.yaml"}});
    assert_eq!(world.names(some).await.expect("rendered").len(), 999);
}

#[tokio::test]
async fn the_name_of_an_application_cannot_lead_out_of_its_directory() {
    let repo = Repo::with(&[
        ("app/a.yaml", &config_map("a")),
        ("app/.argocd-source-x/b.yaml", "kind: A\nmetadata: {name: b}\n"),
        ("secret.yaml", "directory: {include: nothing}\n"),
    ]);
    let world = World::new(&repo);
    let sources = [crate::support::source(json!({"path": "app"}))];
    let rendered =
        world.ask(&sources, |request| request.instance = "x/../../secret").await.expect("rendered");
    assert_eq!(rendered.objects.len(), 1);
}
