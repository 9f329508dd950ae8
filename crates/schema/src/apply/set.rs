//! Sets of field paths: what `FieldsV1` encodes.

use serde_json::{Map, Value};

use super::element::{Element, Unreadable};

/// Deepest `FieldsV1` that is read.
const DEEPEST: usize = 128;

/// A set of field paths, as a tree.
///
/// Invariants: nodes are sorted and distinct, and each is a member itself or has members below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    nodes: Vec<Node>,
}

/// A step that is in the set, or leads to one that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: Element,
    /// Whether the path that ends here is itself in the set.
    pub(crate) member: bool,
    pub(crate) children: Set,
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// The set of these nodes, in whatever order they come.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Set {
        nodes.retain(|node| node.member || !node.children.is_empty());
        if !nodes.is_sorted_by(|a, b| a.element < b.element) {
            // One sort, where adding them one by one could cost a move of all the others each time.
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            let mut distinct: Vec<Node> = Vec::with_capacity(nodes.len());
            for node in nodes {
                match distinct.last_mut().filter(|last| last.element == node.element) {
                    Some(last) => {
                        last.member |= node.member;
                        last.children = std::mem::take(&mut last.children).union(node.children);
                    }
                    None => distinct.push(node),
                }
            }
            nodes = distinct;
        }
        Set { nodes }
    }

    /// Adds a path element with what is below it; does nothing if that says nothing.
    pub(crate) fn add(&mut self, element: Element, member: bool, children: Set) {
        if !member && children.is_empty() {
            return;
        }
        // Walks visit fields in order, so the end is nearly always the place.
        let last = self.nodes.last().map(|node| node.element.cmp(&element));
        let at = match last {
            None | Some(std::cmp::Ordering::Less) => self.nodes.len(),
            _ => match self.nodes.binary_search_by(|node| node.element.cmp(&element)) {
                Ok(at) => {
                    let node = &mut self.nodes[at];
                    node.member |= member;
                    let before = std::mem::take(&mut node.children);
                    node.children = before.union(children);
                    return;
                }
                Err(at) => at,
            },
        };
        self.nodes.insert(at, Node { element, member, children });
    }

    /// Adds a path of field names.
    pub(crate) fn add_fields(&mut self, names: &[&str]) {
        if let [first, rest @ ..] = names {
            let mut below = Set::default();
            below.add_fields(rest);
            self.add(Element::field(first), rest.is_empty(), below);
        }
    }

    /// The node for an element.
    pub(crate) fn get(&self, element: &Element) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(at)
    }

    /// The node for a field.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp_field(name)).ok()?;
        self.nodes.get(at)
    }

    /// Paths in either set.
    pub(crate) fn union(self, other: Set) -> Set {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut others = other.nodes.into_iter().peekable();
        for mut node in self.nodes {
            while let Some(smaller) = others.next_if(|other| other.element < node.element) {
                nodes.push(smaller);
            }
            if let Some(equal) = others.next_if(|other| other.element == node.element) {
                node.member |= equal.member;
                node.children = node.children.union(equal.children);
            }
            nodes.push(node);
        }
        nodes.extend(others);
        Set { nodes }
    }

    /// Paths in this set and not in the other. Taking a path away leaves what is below it.
    pub(crate) fn without(self, other: &Set) -> Set {
        self.subtract(other, false)
    }

    /// Paths in this set that are neither in the other nor below a path of it.
    pub(crate) fn without_trees(self, other: &Set) -> Set {
        self.subtract(other, true)
    }

    fn subtract(self, other: &Set, trees: bool) -> Set {
        if self.is_empty() || other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut others = other.nodes.iter().peekable();
        for mut node in self.nodes {
            while others.next_if(|other| other.element < node.element).is_some() {}
            if let Some(equal) = others.next_if(|other| other.element == node.element) {
                if trees && equal.member {
                    continue;
                }
                node.member &= !equal.member;
                node.children = node.children.subtract(&equal.children, trees);
            }
            if node.member || !node.children.is_empty() {
                nodes.push(node);
            }
        }
        Set { nodes }
    }

    /// Paths in both sets.
    pub(crate) fn intersection(&self, other: &Set) -> Set {
        let mut both = Set::default();
        let mut others = other.nodes.iter().peekable();
        for node in &self.nodes {
            while others.next_if(|other| other.element < node.element).is_some() {}
            if let Some(equal) = others.next_if(|other| other.element == node.element) {
                let children = node.children.intersection(&equal.children);
                both.add(node.element.clone(), node.member && equal.member, children);
            }
        }
        both
    }

    /// Whether every path of this set is in the other.
    pub(crate) fn is_within(&self, other: &Set) -> bool {
        let mut others = other.nodes.iter().peekable();
        self.nodes.iter().all(|node| {
            while others.next_if(|other| other.element < node.element).is_some() {}
            others.next_if(|other| other.element == node.element).is_some_and(|equal| {
                (!node.member || equal.member) && node.children.is_within(&equal.children)
            })
        })
    }

    /// Every path: first those that end on this level, then those below, each in order.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            paths.push(path);
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// Reads `FieldsV1`.
    pub(crate) fn read(fields: &Value) -> Result<Set, String> {
        match fields {
            Value::Null => Ok(Set::default()),
            Value::Object(fields) => Ok(read_level(fields, 0)?.0),
            _ => Err("fieldsV1 is not an object".into()),
        }
    }

    /// Writes `FieldsV1`.
    pub(crate) fn written(self) -> Value {
        Value::Object(self.level(false))
    }

    fn level(self, with_self: bool) -> Map<String, Value> {
        let itself = (with_self && !self.is_empty()).then(|| (".".to_owned(), Value::Object(Map::new())));
        let below = self.nodes.into_iter();
        let below =
            below.map(|node| (node.element.written(), Value::Object(node.children.level(node.member))));
        // In one go: the map is built faster from sorted entries than by inserting them.
        itself.into_iter().chain(below).collect()
    }
}

/// The paths of one level, and whether the level itself is in the set.
fn read_level(fields: &Map<String, Value>, depth: usize) -> Result<(Set, bool), String> {
    if depth > DEEPEST {
        return Err("fieldsV1 is nested too deeply".into());
    }
    let mut nodes = Vec::with_capacity(fields.len());
    let mut itself = false;
    for (key, value) in fields {
        if key == "." {
            itself = true;
            continue;
        }
        let element = match Element::read(key) {
            Ok(element) => element,
            Err(Unreadable::Unknown) => continue,
            Err(Unreadable::Malformed(why)) => return Err(why),
        };
        let (children, member) = match value {
            Value::Null => (Set::default(), true),
            Value::Object(below) => read_level(below, depth + 1)?,
            _ => return Err(format!("{key} is not an object")),
        };
        nodes.push(Node { element, member, children });
    }
    let set = Set::from_nodes(nodes);
    let alone = set.is_empty();
    Ok((set, itself || alone))
}
