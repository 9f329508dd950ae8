//! What is written about the examples: each line in which one differs from the proposal is told of, with a reason.

use std::collections::BTreeMap;
use std::fs;

use crate::process::run;
use crate::stage::examples;

const FILES: [&str; 5] = [
    "progressive-environments.yaml",
    "canary.yaml",
    "change-management.yaml",
    "basic-progressive.yaml",
    "advanced-hooks.yaml",
];

fn read(path: &str) -> String {
    let path = examples().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines of the set alone, without comments, and how often each is there.
fn lines(text: &str) -> BTreeMap<String, i32> {
    let set = text.rsplit("---\n").next().unwrap_or(text);
    let mut lines = BTreeMap::new();
    for line in set.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

#[test]
fn every_changed_line_is_told_of() {
    let page = read("../../docs/differences.md");
    let (_, section) =
        page.split_once("## The examples of the proposal for phases").expect("a section about them");
    let section = section.split("\n## ").next().unwrap_or(section);
    for file in FILES {
        let row = section
            .lines()
            .filter(|row| row.starts_with(&format!("| `{file}` |")) || row.starts_with("| all |"))
            .collect::<String>();
        let (before, after) = (lines(&read(&format!("../seeds/004-{file}"))), lines(&read(file)));
        for (line, count) in &after {
            if before.get(line) != Some(count) {
                assert!(row.contains(&format!("`{line}`")), "{file}: {line} is not told of: {row}");
            }
        }
        for line in before.keys().filter(|line| !after.contains_key(*line)) {
            assert!(row.contains(&format!("`{line}`")), "{file}: {line} is gone, and not told of: {row}");
        }
    }
}

#[test]
fn the_examples_have_no_mistakes_a_linter_finds() {
    for file in FILES {
        let path = examples().join(file);
        let outcome = run(["appset", "lint", "-f", path.to_str().expect("UTF-8")]);
        // What an operator has to allow first is told, and is no mistake.
        let mistakes: Vec<&str> =
            outcome.stdout.lines().filter(|line| !line.ends_with("[hook-operator]")).collect();
        assert_eq!(mistakes, [""; 0], "{file}: {}", outcome.stderr);
        assert!(matches!(outcome.code, Some(0 | 4)), "{file}: {}", outcome.stderr);
    }
}
