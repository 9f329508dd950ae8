//! Where a check stands inside an object, written out only when something is wrong there.

use std::fmt::Write;

/// A position as a chain of borrowed steps: walking costs no allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A known field.
    Field(&'a Path<'a>, &'a str),
    /// A key of a map.
    Key(&'a Path<'a>, &'a str),
    /// A list element.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Path<'a> {
        Path::Key(self, name)
    }

    pub(crate) fn index(&'a self, at: usize) -> Path<'a> {
        Path::Index(self, at)
    }

    /// Map keys in brackets (`spec.labels[app]`), as Kubernetes' own checks print them.
    pub(crate) fn bracketed(&self) -> String {
        self.text(true)
    }

    /// Map keys after a dot (`spec.labels.app`), as checks against an OpenAPI schema print them.
    pub(crate) fn dotted(&self) -> String {
        self.text(false)
    }

    fn text(&self, brackets: bool) -> String {
        let mut steps = Vec::new();
        let mut at = self;
        while let Path::Field(parent, _) | Path::Key(parent, _) | Path::Index(parent, _) = at {
            steps.push(at);
            at = parent;
        }
        let mut out = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Path::Root => {}
                Path::Key(_, name) if brackets => {
                    let _ = write!(out, "[{name}]");
                }
                Path::Field(_, name) | Path::Key(_, name) => {
                    if !out.is_empty() {
                        out.push('.');
                    }
                    out.push_str(name);
                }
                Path::Index(_, at) => {
                    let _ = write!(out, "[{at}]");
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_notations_differ_only_in_map_keys() {
        let root = Path::Root;
        let spec = root.field("spec");
        let items = spec.field("items");
        let item = items.index(3);
        let key = item.key("a/b");
        let last = key.field("x");
        assert_eq!(last.bracketed(), "spec.items[3][a/b].x");
        assert_eq!(last.dotted(), "spec.items[3].a/b.x");
        assert_eq!(Path::Root.dotted(), "");
    }
}
