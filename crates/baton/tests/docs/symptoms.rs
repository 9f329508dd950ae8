//! What a rollout waits for is told of by the page for whoever looks for it.

use std::collections::BTreeSet;

use baton_rollout::blocker::Reason;

use crate::read;

/// The words in the first cells of a section's tables.
fn named_in(page: &str, heading: &str) -> BTreeSet<String> {
    let text = read(page);
    let (_, section) =
        text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading} in {page}"));
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    cells.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_blocker_has_a_row_and_every_row_is_of_a_blocker() {
    let told = named_in("docs/troubleshooting.md", "What a rollout waits for");
    let all: BTreeSet<String> = Reason::ALL.into_iter().map(|reason| reason.as_str().to_owned()).collect();
    assert_eq!(all.difference(&told).collect::<Vec<_>>(), [""; 0], "the page does not tell of these");
    assert_eq!(
        told.difference(&all).collect::<Vec<_>>(),
        [""; 0],
        "the page tells of what is not waited for"
    );
}
