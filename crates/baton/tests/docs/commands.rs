//! Every command of the README and of the quick start is run, one page after the other as a reader would.

use std::process::Command;

use crate::page::steps;
use crate::reader::Reader;
use crate::{read, root};

/// What only the tests do, with the reason: nothing else of these pages is done otherwise than it stands there.
const HIDDEN: [(&str, &str); 1] =
    [("export KUBECONFIG=/tmp/api/kubeconfig", "an embedded API stands for the reader's own cluster")];

fn follow(page: &str) {
    let mut reader = Reader::new();
    for step in steps(&read(page)) {
        reader.follow(page, &step);
    }
    reader.leaves();
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    follow("README.md");
}

#[test]
fn the_commands_of_the_quick_start_do_what_it_says() {
    follow("docs/quick-start.md");
}

#[test]
fn no_command_of_these_pages_is_left_out() {
    let pages = ["README.md", "docs/quick-start.md"].map(read);
    let steps: Vec<_> = pages.iter().flat_map(|page| steps(page)).collect();
    let hidden: Vec<&str> =
        steps.iter().filter(|step| step.hidden).map(|step| step.command.as_str()).collect();
    assert_eq!(hidden, HIDDEN.map(|(command, _)| command));
    assert!(steps.len() > 50, "only {} commands were found", steps.len());
}

/// The tests have a binary already; what they leave out of the Makefile is the building of one in the same place.
#[test]
fn make_build_makes_the_binary_that_make_up_runs() {
    let told = |target: &str, more: &[&str]| {
        let mut make = Command::new("make");
        // Where a make runs these tests, ours would take it for its parent and say which directory it enters.
        for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
            make.env_remove(inherited);
        }
        let output = make.args(["--dry-run", target]).args(more).current_dir(root()).output();
        String::from_utf8(output.expect("make").stdout).expect("UTF-8")
    };
    assert!(told("build", &[]).contains("build --release --locked -p baton"));
    assert!(told("up", &["--old-file=build"]).starts_with("target/release/baton up "));
}
