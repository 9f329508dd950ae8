//! Answers to lists, kept to be given again when they are old. In bounds: the oldest go first.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;

/// Most answers kept of one list.
const EACH: usize = 4;
/// Most answers kept of all lists.
const ALL: usize = 256;
/// Most bytes of all lists together.
const BYTES: usize = 64 * 1024 * 1024;

/// An answer to a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The answers of a proxy's life that are still known.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    answers: VecDeque<(String, Arc<Answer>)>,
    bytes: usize,
}

impl Kept {
    /// The answers to a list, oldest first.
    pub(crate) fn of(&self, list: &str) -> Vec<Arc<Answer>> {
        self.0.lock().of(list).map(|(_, answer)| answer.clone()).collect()
    }

    /// Keeps an answer, unless it is the last one again.
    pub(crate) fn keep(&self, list: &str, answer: Answer) {
        let mut state = self.0.lock();
        let known = state.of(list).count();
        if state.of(list).last().is_some_and(|(_, last)| last.body == answer.body) {
            return;
        }
        if known == EACH
            && let Some(oldest) = state.answers.iter().position(|(key, _)| key == list)
        {
            state.drop_at(oldest);
        }
        state.bytes += size(list, &answer);
        state.answers.push_back((list.to_owned(), Arc::new(answer)));
        while state.answers.len() > ALL || state.bytes > BYTES {
            state.drop_at(0);
        }
    }
}

impl State {
    fn of(&self, list: &str) -> impl Iterator<Item = &(String, Arc<Answer>)> {
        self.answers.iter().filter(move |(key, _)| key == list)
    }

    fn drop_at(&mut self, index: usize) {
        if let Some((key, answer)) = self.answers.remove(index) {
            self.bytes -= size(&key, &answer);
        }
    }
}

/// The bytes an answer takes, about.
fn size(list: &str, answer: &Answer) -> usize {
    list.len() + answer.body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: impl Into<Bytes>) -> Answer {
        Answer { headers: HeaderMap::new(), body: body.into() }
    }

    fn bodies(kept: &Kept, list: &str) -> Vec<Bytes> {
        kept.of(list).iter().map(|answer| answer.body.clone()).collect()
    }

    #[test]
    fn the_last_answers_of_each_list_are_kept_and_nothing_twice() {
        let kept = Kept::default();
        kept.keep("nodes", answer("n"));
        for number in 1..=6 {
            kept.keep("pods", answer(number.to_string()));
            kept.keep("pods", answer(number.to_string()));
        }
        assert_eq!(bodies(&kept, "pods"), ["3", "4", "5", "6"]);
        assert_eq!(bodies(&kept, "nodes"), ["n"]);
        assert!(bodies(&kept, "secrets").is_empty());
    }

    #[test]
    fn number_and_size_are_bounded() {
        let kept = Kept::default();
        for number in 0..1000 {
            kept.keep(&format!("list {number}"), answer("x"));
        }
        assert_eq!(kept.0.lock().answers.len(), ALL);
        let large = Bytes::from(vec![0; BYTES / 3]);
        for number in 0..10 {
            kept.keep(&format!("large {number}"), answer(large.clone()));
        }
        let state = kept.0.lock();
        assert!(state.bytes <= BYTES);
        assert_eq!(state.bytes, state.answers.iter().map(|(key, answer)| size(key, answer)).sum::<usize>());
        assert_eq!(state.answers.back().map(|(key, _)| key.as_str()), Some("large 9"));
    }
}
