//! Links between the pages lead to files and headings that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{read, root};

/// Every page that people read, from the root.
fn pages() -> BTreeSet<String> {
    let mut pages: BTreeSet<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "ui/README.md"].map(str::to_owned).into();
    let mut folders: Vec<PathBuf> = ["docs", "examples", "deploy"].map(PathBuf::from).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("a kind of file").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                pages.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    pages
}

/// Lines of a page that are no code.
fn prose(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// What stands in the address of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(text).iter().filter(|line| line.starts_with('#')) {
        let heading = anchor(line.trim_start_matches('#').trim());
        let before = times.entry(heading.clone()).or_default();
        anchors.insert(if *before == 0 { heading } else { format!("{heading}-{before}") });
        *before += 1;
    }
    anchors
}

/// Where the links of a page lead, as they are written.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let bare: String = line.split('`').step_by(2).collect();
        for (at, _) in bare.match_indices("](") {
            let rest = &bare[at + 2..];
            links.push(rest[..rest.find(')').unwrap_or(rest.len())].to_owned());
        }
    }
    links
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut astray = Vec::new();
    let mut followed = 0;
    for page in pages() {
        let text = read(&page);
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&page).parent().expect("a page is in a folder");
            let to = if file.is_empty() { PathBuf::from(&page) } else { folder.join(file) };
            let there = root().join(&to).exists();
            let is_page = to.extension().is_some_and(|kind| kind == "md");
            let found = there
                && (heading.is_empty() || is_page && anchors(&read(&to.to_string_lossy())).contains(heading));
            if !found {
                astray.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(followed > 100, "only {followed} links were found");
    assert_eq!(astray, [""; 0], "links that lead nowhere");
}

#[test]
fn every_document_is_reached_from_the_readme() {
    let mut reached = BTreeSet::from(["README.md".to_owned()]);
    let mut next = vec!["README.md".to_owned()];
    while let Some(page) = next.pop() {
        let folder = Path::new(&page).parent().expect("a page is in a folder").to_owned();
        for link in links(&read(&page)) {
            let file = link.split('#').next().unwrap_or_default();
            let to = root().join(&folder).join(file);
            let Some(to) = to.canonicalize().ok().filter(|_| file.ends_with(".md")) else { continue };
            let to = to.strip_prefix(root()).expect("inside the repository").to_string_lossy().into_owned();
            if reached.insert(to.clone()) {
                next.push(to);
            }
        }
    }
    let documents = pages().into_iter().filter(|page| page.starts_with("docs/"));
    let lonely: Vec<String> = documents.filter(|page| !reached.contains(page)).collect();
    assert_eq!(lonely, [""; 0], "documents that no link leads to");
}

#[test]
fn headings_have_the_addresses_that_github_gives_them() {
    let text = "# One, two: `three`\n## A\n```\n# no heading\n```\n## A\n### a_b-c (d)\n";
    let expected = ["one-two-three", "a", "a-1", "a_b-c-d"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(links("[a](b.md#c) `[d](e)` ![](f.png)"), ["b.md#c", "f.png"]);
}
