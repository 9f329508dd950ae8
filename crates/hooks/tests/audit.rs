//! `docs/security-audit.md` names a test for each threat it says is met, and a table beside the tests of phases one for each
//! question that the proposal leaves open. This sees to it that each of them is there, and that every row either names one or
//! says that it is not met yet.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A table that was emptied by mistake must not look as if all were well.
const LEAST_ROWS: usize = 60;
const LEAST_TESTS: usize = 90;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of tables whose last column is for tests: what stands in their cells.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut of_tests = false;
    for line in text.lines() {
        if !line.starts_with('|') {
            of_tests = false;
            continue;
        }
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        if cells.last().is_some_and(|last| last == "test") {
            of_tests = true;
        } else if of_tests && !line.starts_with("|---") {
            rows.push(cells);
        }
    }
    rows
}

/// What is named as `file::test` in a text.
fn named(text: &str) -> Vec<(&str, &str)> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("crates/")).filter_map(|span| span.split_once(".rs::")).collect()
}

/// Whether a source has a test of this name, and one that runs.
fn holds(source: &str, test: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let is_it = |line: &str| {
        let declared = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        declared.and_then(|rest| rest.strip_prefix(test)).is_some_and(|rest| rest.starts_with('('))
    };
    (0..lines.len()).filter(|&at| is_it(lines[at])).any(|at| {
        let above = lines[..at].iter().rev();
        let above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let above: Vec<&str> = above.copied().collect();
        let is_test =
            above.iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
        is_test && !above.iter().any(|line| line.starts_with("#[ignore"))
    })
}

/// Looks up every test that rows name: those that are there, and what is wrong.
fn look_up(rows: &[Vec<String>]) -> (BTreeSet<(String, String)>, Vec<String>) {
    let mut tests = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in rows {
        let last = row.last().expect("a row has cells");
        let found = named(last);
        if row.len() != 3 || (found.is_empty() != last.starts_with("not yet")) {
            wrong.push(format!("neither a test nor `not yet`: {row:?}"));
        }
        for (file, test) in found {
            let path = format!("{file}.rs");
            match fs::read_to_string(root().join(&path)) {
                Ok(source) if holds(&source, test) => drop(tests.insert((path, test.to_owned()))),
                Ok(_) => wrong.push(format!("{path} has no test {test}")),
                Err(error) => wrong.push(format!("{path}: {error}")),
            }
        }
    }
    (tests, wrong)
}

#[test]
fn every_test_that_the_audit_names_is_there() {
    let audit = fs::read_to_string(root().join("docs/security-audit.md")).expect("the audit");
    let rows = rows(&audit);
    assert!(rows.len() >= LEAST_ROWS, "{} rows", rows.len());
    let (tests, wrong) = look_up(&rows);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tests.len() >= LEAST_TESTS, "{} tests", tests.len());
}

#[test]
fn every_question_of_the_proposal_has_a_row_and_a_test_that_is_there() {
    let table = root().join("crates/phases/tests/behaviour/rows.md");
    let rows = rows(&fs::read_to_string(table).expect("the table"));
    let numbers: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(numbers, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>());
    let (tests, wrong) = look_up(&rows);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.iter().all(|row| !row[2].starts_with("not yet")), "all of them are answered");
    // Who calls a test after a row means that it holds it.
    let of_row = |name: &str| {
        let number = name.strip_prefix("row_").or_else(|| name.strip_prefix("rows_"))?;
        number.split('_').next()?.parse::<usize>().ok()
    };
    for (file, test) in &tests {
        let Some(row) = of_row(test).map(|number| &rows[number - 1]) else { continue };
        assert!(row[2].contains(test.as_str()), "{file}::{test} is not named in its own row {}", row[0]);
    }
}

#[test]
fn what_is_no_test_is_not_taken_for_one() {
    let source = "
        #[test]
        fn a_test() {}

        /// Told of.
        #[tokio::test(start_paused = true)]
        async fn another_test() {}

        fn a_helper() {}

        #[tokio::test]
        #[ignore = \"not now\"]
        async fn a_test_that_does_not_run() {}
    ";
    for (name, expected) in [
        ("a_test", true),
        ("another_test", true),
        ("a_helper", false),
        ("a_test_that_does_not_run", false),
        ("a_tes", false),
        ("nothing", false),
    ] {
        assert_eq!(holds(source, name), expected, "{name}");
    }
    let table = "| threat | how | test |\n|---|---|---|\n| a | b | `crates/a/b.rs::c`<br>`crates/d.rs::e` |\n\n| x | y |\n";
    assert_eq!(rows(table).len(), 1);
    assert_eq!(named(&rows(table)[0][2]), [("crates/a/b", "c"), ("crates/d", "e")]);
}
