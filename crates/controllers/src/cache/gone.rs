//! Objects known to be gone, so that late news of them does not bring them back.

use std::collections::{BTreeSet, VecDeque};

/// News later than this many deletions is not expected.
const REMEMBERED: usize = 4096;

/// The uids of the last deleted objects. A uid never comes back.
#[derive(Debug, Default)]
pub(super) struct Gone {
    uids: BTreeSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl Gone {
    pub(super) fn insert(&mut self, uid: &str) {
        if uid.is_empty() || !self.uids.insert(uid.into()) {
            return;
        }
        self.order.push_back(uid.into());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}
