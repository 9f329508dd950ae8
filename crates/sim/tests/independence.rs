//! What judges, and what stands in for Argo CD's Application controller, know nothing of the product: no decision of it is asked,
//! nor is anything around them.

use std::fs;
use std::path::{Path, PathBuf};

/// What each may use of this crate and of the others, as it is written.
const ALLOWED: [(&str, &[&str]); 2] = [
    ("src/checker", &["crate::checker::", "crate::dice::"]),
    ("src/foreign", &["crate::dice::", "baton_grammar::yaml"]),
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn the_judge_and_the_stand_in_know_nothing_of_the_product() {
    for (directory, allowed) in ALLOWED {
        let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory));
        assert!(files.len() > 5, "{directory} has moved");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source");
            // Words in prose are no use of anything.
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let used = ["baton_", "crate::"].into_iter().flat_map(|start| line.match_indices(start));
                for (place, _) in used {
                    let is_allowed = allowed.iter().any(|allowed| line[place..].starts_with(allowed));
                    assert!(is_allowed, "{}: {}", file.display(), line.trim());
                }
            }
        }
    }
}
