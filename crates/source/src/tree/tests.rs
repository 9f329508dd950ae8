use proptest::prelude::*;

use super::*;

const OBJECT: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// A tree of paths; `path -> target` is a link, `path @` a submodule.
fn tree(paths: &[&str]) -> Tree {
    tree_with(paths, false)
}

fn tree_with(paths: &[&str], include_hidden: bool) -> Tree {
    let mut listing = Vec::new();
    let mut targets = Vec::new();
    for line in paths {
        let (path, mode) = if let Some((path, target)) = line.split_once(" -> ") {
            targets.push((path, target));
            (path, "120000 blob")
        } else if let Some(path) = line.strip_suffix(" @") {
            (path, "160000 commit")
        } else {
            (*line, "100644 blob")
        };
        listing.extend(format!("{mode} {OBJECT}\t{path}\0").into_bytes());
    }
    let mut entries = Tree::read_entries(&mut listing.as_slice(), 1000, 4096).expect("a listing");
    targets.sort_unstable();
    let targets: Vec<_> = targets.iter().map(|(_, target)| Some(Bytes::from((*target).to_owned()))).collect();
    Tree::set_targets(&mut entries, &targets);
    let commit = Commit::parse(OBJECT).expect("forty digits");
    Tree::new("r", commit, entries, include_hidden, 1000)
}

#[test]
fn directories_come_in_the_order_of_a_walk() {
    let tree = tree(&["a/b/c", "a-b/c", "a.b/c", "top", "z/y", "module @", "deep/module @", "link -> a"]);
    let listed: Vec<&str> = tree.directories().collect();
    assert_eq!(listed, ["a", "a/b", "a-b", "a.b", "deep", "deep/module", "module", "z"]);
}

#[test]
fn hidden_directories_are_left_out_with_all_beneath_them() {
    let paths = [".github/workflows/x", "apps/.secret/a/b", "apps/x/.keep", "apps/y.d/z"];
    assert_eq!(tree(&paths).directories().collect::<Vec<_>>(), ["apps", "apps/x", "apps/y.d"]);
    let all: Vec<String> = tree_with(&paths, true).directories().map(str::to_owned).collect();
    assert_eq!(all.len(), 7);
    assert_eq!(all[0], ".github");
}

#[test]
fn paths_no_checkout_may_have_are_refused() {
    for path in ["../x", "a/../b", "a/./b", "a//b", "/etc/passwd", ".git/config", "a/.GIT/hooks/x", "."] {
        let listing = format!("100644 blob {OBJECT}\t{path}\0");
        let read = Tree::read_entries(&mut listing.as_bytes(), 10, 4096);
        assert!(matches!(read, Err(Refusal::Content(_))), "{path}: {read:?}");
    }
    for path in ["...", "a/.gitignore", ".gitmodules", "..a", "a\nb", "ä"] {
        let listing = format!("100644 blob {OBJECT}\t{path}\0");
        assert_eq!(Tree::read_entries(&mut listing.as_bytes(), 10, 4096).expect(path).len(), 1, "{path}");
    }
}

#[test]
fn listings_are_bounded_and_odd_ones_refused() {
    let many = format!("100644 blob {OBJECT}\tx\0").repeat(11);
    assert!(matches!(Tree::read_entries(&mut many.as_bytes(), 10, 4096), Err(Refusal::Limit(_))));
    let long = format!("100644 blob {OBJECT}\t{}\0", "x".repeat(200));
    assert!(matches!(Tree::read_entries(&mut long.as_bytes(), 10, 100), Err(Refusal::Limit(_))));
    for odd in ["nonsense\0", "100644 blob\tx\0", "100644 blob xyz\tx\0", "\0"] {
        assert!(
            matches!(Tree::read_entries(&mut odd.as_bytes(), 10, 100), Err(Refusal::Content(_))),
            "{odd}"
        );
    }
    let not_utf8 = [format!("100644 blob {OBJECT}\t").as_bytes(), b"a\xff\0"].concat();
    assert!(Tree::read_entries(&mut not_utf8.as_slice(), 10, 100).expect("passed over").is_empty());
}

#[test]
fn links_lead_to_what_a_checkout_would_read() {
    let tree = tree(&[
        "dir/file",
        "dir/sub/file",
        "plain -> dir/file",
        "dir/up -> ../dir/sub",
        "dir/sub/back -> ../file",
        "chain -> plain",
        "to-dir -> dir",
        "abs -> /etc/passwd",
        "out -> ../outside",
        "in-and-out -> dir/../../r/dir/file",
        "loop-a -> loop-b",
        "loop-b -> loop-a",
        "self -> self/x",
        "dangling -> nowhere",
        "through-file -> dir/file/x",
        "empty -> ",
        "module @",
        "to-module -> module",
    ]);
    for (path, expected) in [
        ("dir/file", Ok(())),
        ("plain", Ok(())),
        ("chain", Ok(())),
        ("dir/up/file", Ok(())),
        ("dir/up/back", Ok(())),
        ("to-dir/up/back", Ok(())),
        ("./dir//file", Ok(())),
        ("dir", Err(Astray::Directory)),
        ("to-dir", Err(Astray::Directory)),
        ("abs", Err(Astray::Outside)),
        ("out", Err(Astray::Outside)),
        ("in-and-out", Err(Astray::Outside)),
        ("../r/dir/file", Err(Astray::Outside)),
        ("loop-a", Err(Astray::Loop)),
        ("self", Err(Astray::Loop)),
        ("dangling", Err(Astray::Missing)),
        ("through-file", Err(Astray::Missing)),
        ("empty", Err(Astray::Missing)),
        ("nothing", Err(Astray::Missing)),
        ("module", Err(Astray::Submodule)),
        ("to-module", Err(Astray::Submodule)),
    ] {
        assert_eq!(tree.file(path).map(drop), expected, "{path}");
    }
}

#[test]
fn a_pathspec_lists_files_and_links_but_no_submodules() {
    let tree = tree(&["a/x.yaml", "a/b/y.yaml", "link.yaml -> a/x.yaml", "m.yaml @", "z.json"]);
    assert_eq!(
        tree.files_like_pathspec("*.yaml").expect("a pattern"),
        ["a/b/y.yaml", "a/x.yaml", "link.yaml"]
    );
    assert_eq!(tree.files_like_pathspec("a").expect("a pattern"), ["a/b/y.yaml", "a/x.yaml"]);
    assert!(matches!(tree.files_like_pathspec("../x"), Err(SourceError::Pattern { .. })));
}

#[test]
fn doublestar_follows_links_within_the_repository_only() {
    let tree = tree(&[
        "apps/a/config.yaml",
        "apps/b -> ../shared",
        "shared/config.yaml",
        "shared/more/config.yaml",
        "shared/here -> .",
        "shared/up -> ..",
        "outside -> ../../etc",
        "out.yaml -> /etc/passwd",
        "dangling.yaml -> nothing",
        "file.yaml -> shared/config.yaml",
    ]);
    let list = |pattern: &str| tree.files_like_doublestar(pattern).expect(pattern);
    assert_eq!(list("apps/*/config.yaml"), ["apps/a/config.yaml", "apps/b/config.yaml"]);
    assert_eq!(
        list("apps/**/config.yaml"),
        ["apps/a/config.yaml", "apps/b/config.yaml", "apps/b/more/config.yaml"]
    );
    assert_eq!(list("*.yaml"), ["dangling.yaml", "file.yaml"]);
    assert_eq!(list("./shared/../shared//config.yaml"), ["shared/config.yaml"]);
    assert!(matches!(tree.files_like_doublestar("../**"), Err(SourceError::Pattern { .. })));
    assert!(list("shared").is_empty());
    assert!(matches!(tree.files_like_doublestar("[a"), Err(SourceError::Pattern { .. })));
}

#[test]
fn links_that_multiply_are_cut_off() {
    let mut paths = vec!["d20/file".to_owned()];
    for level in 0..20 {
        for link in 0..3 {
            paths.push(format!("d{level:02}/l{link} -> ../d{:02}", level + 1));
        }
    }
    let tree = tree(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(matches!(tree.files_like_doublestar("**"), Err(SourceError::Limit { .. })));
}

/// Each line has a pattern and, after a tab, the files that doublestar 4.10.0 found for it, as Argo CD calls it, in a
/// checkout of this tree; directories, which Argo CD trips over, left out.
#[test]
fn doublestar_finds_what_go_finds_in_a_checkout() {
    let tree = tree(&[
        ".hid/config.yaml",
        "alias -> shared",
        "apps/a/config.yaml",
        "apps/a/deep/config.yaml",
        "apps/b -> ../shared",
        "br{a}ce.yaml",
        "file.yaml -> shared/config.yaml",
        "out.yaml -> /etc/passwd",
        "outdir -> /etc/apt",
        "shared/config.yaml",
        "shared/more/config.yaml",
        "shared/toy -> ../x/y",
        "top.yaml",
        "x/top.json",
        "x/y/z/v.json",
    ]);
    for line in include_str!("doublestar.tsv").lines() {
        let (pattern, expected) = line.split_once('\t').expect("a pattern and files");
        let found = tree.files_like_doublestar(pattern).expect(pattern);
        assert_eq!(found.join(","), expected, "{pattern}");
    }
}

proptest! {
    #[test]
    fn no_listing_panics(listing in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Tree::read_entries(&mut listing.as_slice(), 10, 50);
    }

    #[test]
    fn no_tree_of_links_panics_or_runs_for_ever(
        links in prop::collection::btree_map("[a-c](/[a-c]){0,3}", "(\\.\\./|[a-c]/?|/|\\./){0,6}", 0..12),
        path in "(\\.\\./|[a-c]/?){0,8}",
    ) {
        let lines: Vec<String> = links.iter().map(|(path, target)| format!("{path} -> {target}")).collect();
        let mut all: Vec<&str> = lines.iter().map(String::as_str).collect();
        all.push("f/g");
        let tree = tree(&all);
        let _ = tree.file(&path);
        let _ = tree.files_like_doublestar("**");
        let _ = tree.directories().count();
    }
}
