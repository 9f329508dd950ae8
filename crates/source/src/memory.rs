//! What is remembered between calls: listings of references and trees.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::Slot;
use crate::references::{Commit, References};
use crate::tree::Tree;

/// Most repositories whose references are remembered.
const MAX_LISTINGS: usize = 2000;

/// The references of one repository. Whoever asks for them holds the lock meanwhile, so that others who want the same
/// wait for the one answer.
type Place = Arc<tokio::sync::Mutex<Option<Listing>>>;

/// The references of one repository, as they were when it was asked.
#[derive(Debug)]
pub(crate) struct Listing {
    /// When it was asked.
    pub(crate) begun: Instant,
    /// Which of all askings that was: a clock may stand still between two.
    pub(crate) number: u64,
    pub(crate) references: Arc<References>,
}

/// Listings of references.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    places: Mutex<HashMap<Slot, Place>>,
    last: AtomicU64,
}

impl Listings {
    /// A number higher than all before.
    pub(crate) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    /// The place for the references of one repository.
    pub(crate) fn place(&self, slot: &Slot) -> Place {
        let mut listings = self.places.lock();
        if listings.len() >= MAX_LISTINGS && !listings.contains_key(slot) {
            listings.retain(|_, place| Arc::strong_count(place) > 1);
        }
        listings.entry(slot.clone()).or_default().clone()
    }
}

/// Where a tree comes from.
type Key = (PathBuf, Commit);

/// Trees, the least recently used forgotten first.
#[derive(Debug)]
pub(crate) struct Trees {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    trees: HashMap<Key, (u64, Arc<Tree>)>,
    weight: usize,
    /// Counts uses.
    now: u64,
}

impl Trees {
    /// Keeps trees of that many entries together.
    pub(crate) fn new(most: usize) -> Trees {
        Trees { most, kept: Mutex::default() }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Tree>> {
        let mut kept = self.kept.lock();
        kept.now += 1;
        let now = kept.now;
        let (used, tree) = kept.trees.get_mut(key)?;
        *used = now;
        Some(tree.clone())
    }

    pub(crate) fn insert(&self, key: Key, tree: Arc<Tree>) {
        let mut kept = self.kept.lock();
        kept.now += 1;
        let now = kept.now;
        kept.weight += tree.weight();
        if let Some((_, replaced)) = kept.trees.insert(key, (now, tree)) {
            kept.weight -= replaced.weight();
        }
        while kept.weight > self.most && kept.trees.len() > 1 {
            let oldest = kept.trees.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            let Some((_, forgotten)) = oldest.and_then(|key| kept.trees.remove(&key)) else { return };
            kept.weight -= forgotten.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_tree_is_forgotten_first() {
        let commit = |digit: &str| Commit::parse(&digit.repeat(40)).expect("a commit");
        let key = |digit: &str| (PathBuf::from("/r"), commit(digit));
        let trees = Trees::new(2);
        for digit in ["a", "b"] {
            let tree = Tree::new("r", commit(digit), Vec::new(), false, 10);
            trees.insert(key(digit), Arc::new(tree));
        }
        assert!(trees.get(&key("a")).is_some());
        trees.insert(key("c"), Arc::new(Tree::new("r", commit("c"), Vec::new(), false, 10)));
        let left = ["a", "b", "c"].map(|digit| trees.get(&key(digit)).is_some());
        assert_eq!(left, [true, false, true]);
    }
}
