//! Whether a commit touches what an Application is generated from (`argocd.argoproj.io/manifest-generate-paths`).

use baton_grammar::globs::path::Pattern;
use baton_source::Tree;

use crate::checkout::cleaned;

/// The paths an annotation names, separated by semicolons: from the root where they begin with a slash, otherwise from a
/// source's own path.
#[derive(Debug)]
pub(crate) struct Watched(Vec<Item>);

#[derive(Debug)]
struct Item {
    path: String,
    glob: Option<Pattern>,
}

impl Watched {
    /// Reads the annotation for sources at these paths; `None` where it names nothing.
    pub(crate) fn read(annotation: &str, source_paths: &[&str]) -> Option<Watched> {
        let items = annotation.split(';').map(str::trim).filter(|item| !item.is_empty());
        // What leads out of the repository cannot be changed by a commit.
        let paths = items.flat_map(|item| source_paths.iter().filter_map(|source| cleaned(source, item)));
        let watched: Vec<Item> = paths.map(|path| Item { glob: Pattern::new(&path).ok(), path }).collect();
        (!watched.is_empty()).then_some(Watched(watched))
    }

    /// Whether anything that differs between two trees is watched.
    pub(crate) fn touched(&self, before: &Tree, after: &Tree) -> bool {
        before.differences(after).any(|path| self.covers(path))
    }

    fn covers(&self, path: &str) -> bool {
        self.0.iter().any(|item| {
            let is_under = item.path.is_empty()
                || path
                    .strip_prefix(item.path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            is_under || item.glob.as_ref().is_some_and(|glob| glob.matches(path))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_meant_from_the_source_or_from_the_root() {
        let cases: [(&str, &[&str], &[&str]); 6] = [
            (".", &["apps/a/x.yaml", "apps/a/sub/y"], &["apps/ab/x", "apps/b", "x"]),
            (". ; ../common", &["apps/a/x", "apps/common/x"], &["apps/b/x"]),
            ("/shared", &["shared/x", "shared"], &["apps/a/x", "shared2/x"]),
            ("/", &["anything"], &[]),
            (
                "*.yaml;/lib/*.json",
                &["apps/a/x.yaml", "lib/x.json"],
                &["apps/a/sub/x.yaml", "lib/sub/x.json"],
            ),
            ("../../../..;kustomize", &["apps/a/kustomize/x"], &["x"]),
        ];
        for (annotation, covered, others) in cases {
            let watched = Watched::read(annotation, &["apps/a"]).expect(annotation);
            for path in covered {
                assert!(watched.covers(path), "{annotation} covers {path}");
            }
            for path in others {
                assert!(!watched.covers(path), "{annotation} does not cover {path}");
            }
        }
        assert!(Watched::read(" ;; ", &["apps/a"]).is_none());
    }
}
