//! Where in a text each value of a document stands.

use std::collections::HashMap;

use super::build::key_text;
use super::compose::{Document, Id, Kind};

/// Most bytes of paths remembered of one document; what lies beyond is found by its nearest ancestor.
const MOST_BYTES: usize = 32 << 20;

/// Line and column of every value of a document, by path: `spec.steps[0].name`.
///
/// What an alias or a merge brings in stands where the alias or merge is written.
#[derive(Debug, Clone, Default)]
pub struct Places {
    by_path: HashMap<String, Place>,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

impl Places {
    /// Where the value stands, or the nearest value around it that is written down.
    pub fn nearest(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.by_path.get(path) {
                return *place;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return self.by_path.get("").copied().unwrap_or(Place { line: 1, column: 1 }),
            }
        }
    }

    pub(super) fn of(document: &Document) -> Places {
        let mut places = Places::default();
        let mut open: Vec<(String, Id, Id)> = vec![(String::new(), document.root, document.root)];
        let mut bytes = 0;
        while let Some((path, shown_at, id)) = open.pop() {
            bytes += path.len();
            if bytes > MOST_BYTES {
                break;
            }
            let node = &document.nodes[id];
            match &node.kind {
                Kind::Mapping(entries) => {
                    for &(key, value) in entries {
                        if let Some(name) = key_text(document, key) {
                            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                            open.push((path, key, value));
                        }
                    }
                }
                Kind::Sequence(items) => {
                    open.extend(
                        items
                            .iter()
                            .enumerate()
                            .map(|(index, &item)| (format!("{path}[{index}]"), item, item)),
                    );
                }
                Kind::Scalar(_) | Kind::Alias { .. } => {}
            }
            let place = document.nodes[shown_at].place;
            places.by_path.insert(path, Place { line: place.line, column: place.column });
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::super::located;

    #[test]
    fn a_value_is_found_where_its_key_stands() {
        let text = "# a comment\na:\n  b: [1, {c: 2}]\n  on: x\nd: &d {e: 1}\nf: *d\n";
        let documents = located(text).expect("YAML");
        let places = &documents[0].1;
        for (path, expected) in [
            ("", (2, 1)),
            ("a", (2, 1)),
            ("a.b", (3, 3)),
            ("a.b[0]", (3, 7)),
            ("a.b[1].c", (3, 11)),
            ("a.true", (4, 3)),
            ("f.e", (6, 1)),
            ("a.b[1].c.nothing[3].here", (3, 11)),
            ("unknown", (2, 1)),
        ] {
            let place = places.nearest(path);
            assert_eq!((place.line, place.column), expected, "{path}");
        }
    }

    #[test]
    fn each_document_has_its_own_places() {
        let documents = located("a: 1\n---\n\nb: 2\n").expect("YAML");
        assert_eq!(documents.iter().map(|(_, places)| places.nearest("b").line).collect::<Vec<_>>(), [1, 4]);
    }
}
