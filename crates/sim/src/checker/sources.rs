//! The sources of a specification, the branches they follow, and the commits an Application says it has of them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{Git, text};

/// One source of a specification.
#[derive(Clone, Copy)]
pub(super) struct Source<'h> {
    pub(super) branch: (&'h str, &'h str),
    pub(super) directory: &'h str,
}

/// For each source of an Application, the commits it may be at.
pub(super) type Accepted<'h> = Vec<BTreeSet<&'h str>>;

/// The sources of a specification, in order.
pub(super) fn sources(spec: &Value) -> Vec<Source<'_>> {
    let several = spec["sources"].as_array().filter(|all| !all.is_empty());
    let all: Vec<&Value> = match several {
        Some(several) => several.iter().collect(),
        None => vec![&spec["source"]],
    };
    let source = |source| Source {
        branch: (text(source, "/repoURL"), text(source, "/targetRevision")),
        directory: text(source, "/path"),
    };
    all.into_iter().map(source).collect()
}

/// The commits an object names, one per source: in `revisions` where there are several sources, else in `revision`.
pub(super) fn revisions(object: &Value) -> Vec<&str> {
    match object["revisions"].as_array().filter(|all| !all.is_empty()) {
        Some(all) => all.iter().map(|revision| revision.as_str().unwrap_or_default()).collect(),
        None => vec![text(object, "/revision")],
    }
}

/// Whether each of these commits may be the one of its source.
pub(super) fn accepts(accepted: &Accepted<'_>, revisions: &[&str]) -> bool {
    accepted.len() == revisions.len()
        && accepted.iter().zip(revisions).all(|(accepted, revision)| accepted.contains(revision))
}

/// Commits as people write them.
pub(super) fn short(revisions: &[&str]) -> String {
    revisions.iter().map(|revision| format!("{revision:.7}")).collect::<Vec<_>>().join(", ")
}

impl Git {
    /// The commit that somebody names, in whatever words.
    pub(crate) fn commit<'g>(&'g self, revision: &'g str) -> &'g str {
        self.aliases.get(revision).map_or(revision, String::as_str)
    }

    /// The commits that an object names, one per source.
    pub(super) fn commits<'g>(&'g self, object: &'g Value) -> Vec<&'g str> {
        revisions(object).into_iter().map(|revision| self.commit(revision)).collect()
    }

    /// The commits a branch pointed to at any moment between two.
    pub(super) fn tips(&self, branch: (&str, &str), from: Timestamp, to: Timestamp) -> BTreeSet<&str> {
        let mut tips = BTreeSet::new();
        let pushes = self.pushes.iter().filter(|(_, (url, name), _)| (url.as_str(), name.as_str()) == branch);
        for (at, _, commit) in pushes.take_while(|(at, ..)| *at <= to) {
            if *at <= from {
                tips.clear();
            }
            tips.insert(commit.as_str());
        }
        tips
    }

    /// The commit each source is at in the end.
    pub(super) fn ends(&self, sources: &[Source<'_>]) -> Accepted<'_> {
        sources.iter().map(|source| self.tips(source.branch, Timestamp::MAX, Timestamp::MAX)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_source_or_several_are_read_alike() {
        let one = json!({"repoURL": "r", "targetRevision": "main", "path": "a"});
        let other = json!({"repoURL": "x", "targetRevision": "main", "path": "b"});
        let directories =
            |spec: &Value| sources(spec).iter().map(|source| source.directory.to_owned()).collect::<Vec<_>>();
        assert_eq!(directories(&json!({"source": one})), ["a"]);
        assert_eq!(directories(&json!({"sources": [one, other]})), ["a", "b"]);
        assert_eq!(revisions(&json!({"revision": "1"})), ["1"]);
        assert_eq!(revisions(&json!({"revision": "", "revisions": ["1", "2"]})), ["1", "2"]);
        let accepted = vec![BTreeSet::from(["1"]), BTreeSet::from(["2", "3"])];
        assert!(accepts(&accepted, &["1", "3"]));
        assert!(!accepts(&accepted, &["2", "3"]) && !accepts(&accepted, &["1"]));
    }

    #[test]
    fn a_branch_points_to_what_was_pushed_last() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let main = || ("r".to_owned(), "main".to_owned());
        let other = ("r".to_owned(), "other".to_owned());
        let push = |time, branch, commit: &str| (time, branch, commit.to_owned());
        let pushes = vec![
            push(at(0), main(), "1"),
            push(at(5), other, "x"),
            push(at(10), main(), "2"),
            push(at(20), main(), "3"),
        ];
        let git = Git { pushes, ..Git::default() };
        let tips = |from, to| git.tips(("r", "main"), at(from), at(to)).into_iter().collect::<Vec<_>>();
        assert_eq!(tips(1, 9), ["1"]);
        assert_eq!(tips(1, 10), ["1", "2"]);
        assert_eq!(tips(10, 15), ["2"]);
        assert_eq!(tips(11, 30), ["2", "3"]);
    }
}
