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
        let known = Known { etag, answer: answer.clone() };
        let size = size(&key, &known);
        // One answer must not push all others out.
        if size > self.limit / 8 {
            return;
        }
        let mut kept = self.kept.lock();
        kept.remove(&key);
        kept.bytes += size;
        kept.order.push_back(key.clone());
        kept.answers.insert(key, known);
        while kept.bytes > self.limit
            && let Some(oldest) = kept.order.front().cloned()
        {
            kept.remove(&oldest);
        }
    }

    pub(super) fn remove(&self, identity: Identity, url: &Url) {
        self.kept.lock().remove(&(identity, url.to_string()));
    }
}

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some(known) = self.answers.remove(key) {
            self.bytes -= size(key, &known);
            if self.order.front() == Some(key) {
                self.order.pop_front();
            } else {
                self.order.retain(|other| other != key);
            }
        }
    }
}

/// Bytes an answer takes, about.
fn size(key: &Key, known: &Known) -> usize {
    known.answer.size() + known.etag.len() + key.1.len() + 256
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::*;

    fn url(number: usize) -> Url {
        Url::parse(&format!("https://git.example.com/{number}")).expect("it is a URL")
    }

    fn put(cache: &Cache, number: usize, size: usize) {
        let answer =
            Answer::new(String::new(), StatusCode::OK, &HeaderMap::new(), Bytes::from(vec![b'x'; size]));
        cache.put(Identity::default(), &url(number), HeaderValue::from_static("\"1\""), &answer);
    }

    fn knows(cache: &Cache, number: usize) -> bool {
        cache.get(Identity::default(), &url(number)).is_some()
    }

    #[test]
    fn the_oldest_answers_make_room() {
        let cache = Cache::new(20_000);
        for number in 0..40 {
            put(&cache, number, 1_000);
            let kept = cache.kept.lock();
            assert!(kept.bytes <= 20_000 && kept.order.len() == kept.answers.len());
        }
        assert!(!knows(&cache, 0) && knows(&cache, 39) && knows(&cache, 30));
    }

    #[test]
    fn an_answer_kept_anew_takes_its_room_once() {
        let cache = Cache::new(20_000);
        put(&cache, 1, 2_000);
        let before = cache.kept.lock().bytes;
        for _ in 0..100 {
            put(&cache, 1, 2_000);
        }
        assert_eq!(cache.kept.lock().bytes, before);
        put(&cache, 1, 100);
        assert_eq!(cache.kept.lock().bytes, before - 1_900);
    }

    #[test]
    fn a_large_answer_is_not_kept() {
        let cache = Cache::new(20_000);
        put(&cache, 1, 100);
        put(&cache, 2, 5_000);
        assert!(knows(&cache, 1) && !knows(&cache, 2));
    }
}
