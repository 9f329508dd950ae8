//! Answers kept with their ETag, so that a host need only say that nothing has changed.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::answers::Answer;
use super::auth::Identity;

/// A bounded number of bytes of answers; the oldest make room for new ones.
pub(super) struct Cache {
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    answers: HashMap<Key, Known>,
    /// Oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

type Key = (Identity, String);

#[derive(Clone)]
pub(super) struct Known {
    pub(super) etag: HeaderValue,
    pub(super) answer: Answer,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Cache {
        Cache { limit, kept: Mutex::default() }
    }

    pub(super) fn get(&self, identity: Identity, url: &Url) -> Option<Known> {
        self.kept.lock().answers.get(&(identity, url.to_string())).cloned()
    }

    pub(super) fn put(&self, identity: Identity, url: &Url, etag: HeaderValue, answer: &Answer) {
        let key = (identity, url.to_string());
        let size = |known: &Known| known.answer.size() + known.etag.len() + key.1.len() + 256;
        let known = Known { etag, answer: answer.clone() };
        // One answer must not push all others out.
        if size(&known) > self.limit / 8 {
            return;
        }
        let mut kept = self.kept.lock();
        kept.bytes += size(&known);
        if let Some(old) = kept.answers.insert(key.clone(), known) {
            kept.bytes -= size(&old);
        } else {
            kept.order.push_back(key);
        }
        while kept.bytes > self.limit {
            let Some(oldest) = kept.order.pop_front() else { return };
            if let Some(old) = kept.answers.remove(&oldest) {
                kept.bytes =
                    kept.bytes.saturating_sub(old.answer.size() + old.etag.len() + oldest.1.len() + 256);
            }
        }
    }
}
