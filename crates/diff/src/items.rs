//! Items of lists, told apart by what identifies them.

use std::collections::HashMap;

use serde_json::Value;

use crate::fields::{Fields, Part};

/// What tells the items of a list apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Identity {
    /// The values of these fields.
    Keys(Vec<String>),
    /// The value itself.
    Value,
}

/// Items of one list by what identifies them.
pub(crate) struct Items<'a> {
    list: &'a [Value],
    /// Identity of each item, in the order of the list.
    pub(crate) order: Vec<String>,
    places: HashMap<String, Vec<usize>>,
}

impl Identity {
    /// How the list is taken apart by sets of fields that own parts of it; `None` where they disagree, and the list can
    /// only be taken as a whole.
    pub(crate) fn of<'f>(parts: impl IntoIterator<Item = &'f (Part, Fields)>) -> Option<Identity> {
        let mut identity = None;
        for (part, _) in parts {
            let this = match part {
                Part::Item(key) => Identity::Keys(key.keys().cloned().collect()),
                Part::Member(_) => Identity::Value,
                Part::Field(_) | Part::Place(_) => return None,
            };
            match &identity {
                None => identity = Some(this),
                Some(known) if *known == this => {}
                Some(_) => return None,
            }
        }
        identity
    }

    /// What identifies an item of a list.
    pub(crate) fn of_item(&self, item: &Value) -> String {
        match self {
            Identity::Keys(names) => {
                names.iter().map(|name| item[name.as_str()].to_string() + "\n").collect()
            }
            Identity::Value => item.to_string(),
        }
    }

    /// What identifies the item a part leads to.
    pub(crate) fn of_part(&self, part: &Part) -> String {
        match part {
            Part::Item(key) => key.values().map(|value| value.to_string() + "\n").collect(),
            Part::Member(value) => value.to_string(),
            Part::Field(_) | Part::Place(_) => String::new(),
        }
    }
}

impl<'a> Items<'a> {
    pub(crate) fn new(list: &'a [Value], identity: &Identity) -> Items<'a> {
        let order: Vec<String> = list.iter().map(|item| identity.of_item(item)).collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, id) in order.iter().enumerate() {
            places.entry(id.clone()).or_default().push(place);
        }
        Items { list, order, places }
    }

    /// The items of this identity. More than one is an error of whoever wrote the list, and possible.
    pub(crate) fn all(&self, id: &str) -> Vec<&'a Value> {
        self.places(id).iter().map(|place| &self.list[*place]).collect()
    }

    /// The only item of this identity.
    pub(crate) fn only(&self, id: &str) -> Option<&'a Value> {
        match self.places(id) {
            [place] => Some(&self.list[*place]),
            _ => None,
        }
    }

    /// Where the items of this identity stand.
    pub(crate) fn places(&self, id: &str) -> &[usize] {
        self.places.get(id).map_or(&[], Vec::as_slice)
    }
}
