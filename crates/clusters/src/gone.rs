//! Objects known to be gone, so that late news of them does not bring them back.

use std::collections::{HashSet, VecDeque};

use crate::live::Uid;

/// News later than this many deletions is not expected.
const REMEMBERED: usize = 4096;

/// The uids of the last deleted objects. A uid never comes back.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    uids: HashSet<Uid>,
    order: VecDeque<Uid>,
}

impl Gone {
    pub(crate) fn insert(&mut self, uid: &Uid) {
        if !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid.clone());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, uid: &Uid) -> bool {
        self.uids.contains(uid)
    }
}
