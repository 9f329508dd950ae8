//! What watches saw of the Applications of sets that are being rolled out, until it is looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_rules::{Rule, holds};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::sight::Sight;
use crate::cache::ObjectKey;
use crate::queue::Queue;

/// News come in bursts, and one look serves them all: a burst is over when nothing came for this long,
const QUIET: Duration = Duration::from_millis(5);
/// or when it has lasted this long.
const BURST: Duration = Duration::from_millis(50);

/// What was seen of one Application.
#[derive(Debug)]
pub(crate) enum News {
    /// A version of it.
    Seen(Box<Sight>),
    /// It is gone, or no longer the set's.
    Gone {
        /// Its name.
        name: Arc<str>,
        /// Its UID.
        uid: Arc<str>,
    },
}

/// News by set. Only those of sets that asked for them are kept.
pub(crate) struct Inbox {
    boxes: Mutex<BTreeMap<ObjectKey, Letters>>,
    queue: Queue<ObjectKey>,
}

#[derive(Default)]
struct Letters {
    /// By Application, in the order seen.
    news: BTreeMap<Arc<str>, Vec<News>>,
    /// Whether some news may be missing.
    gap: bool,
    /// When the first and the last of them came.
    span: Option<(Instant, Instant)>,
}

impl Inbox {
    /// An inbox whose news wakes the keys of this queue.
    pub(crate) fn new(queue: Queue<ObjectKey>) -> Inbox {
        Inbox { boxes: Mutex::default(), queue }
    }

    /// From now on the news of this set are kept.
    pub(crate) fn open(&self, set: &ObjectKey) {
        self.boxes.lock().insert(set.clone(), Letters::default());
    }

    /// Nobody waits for news of this set any more.
    pub(crate) fn close(&self, set: &ObjectKey) {
        self.boxes.lock().remove(set);
    }

    /// The sets whose news are kept.
    pub(crate) fn sets(&self) -> Vec<ObjectKey> {
        self.boxes.lock().keys().cloned().collect()
    }

    /// A version of an Application of this set was seen.
    pub(crate) fn seen(&self, set: &ObjectKey, sight: Box<Sight>) {
        let mut boxes = self.boxes.lock();
        let Some(all) = boxes.get_mut(set) else { return };
        let news = all.news.entry(sight.name.clone()).or_default();
        match news.last_mut() {
            Some(News::Seen(known)) if known.uid == sight.uid => {
                if known.version <= sight.version || !holds(Rule::NewestVersion) {
                    *known = sight;
                }
            }
            _ => news.push(News::Seen(sight)),
        }
        all.came();
        drop(boxes);
        if holds(Rule::Triggers) {
            self.queue.add_after(set.clone(), QUIET);
        }
    }

    /// An Application of this set is gone, or no longer the set's.
    pub(crate) fn gone(&self, set: &ObjectKey, name: &str, uid: &str) {
        let mut boxes = self.boxes.lock();
        let Some(all) = boxes.get_mut(set) else { return };
        let name: Arc<str> = name.into();
        all.news.entry(name.clone()).or_default().push(News::Gone { name, uid: uid.into() });
        all.came();
        drop(boxes);
        if holds(Rule::Triggers) {
            self.queue.add_after(set.clone(), QUIET);
        }
    }

    /// How long the news of a set may still be coming in.
    pub(crate) fn settles_in(&self, set: &ObjectKey) -> Option<Duration> {
        let (first, last) = self.boxes.lock().get(set)?.span?;
        let rest = (last + QUIET).min(first + BURST).checked_duration_since(Instant::now())?;
        (!rest.is_zero()).then_some(rest)
    }

    /// News may have been missed: every set has to look for itself.
    pub(crate) fn interrupted(&self) {
        let mut boxes = self.boxes.lock();
        let sets: Vec<ObjectKey> = boxes.keys().cloned().collect();
        boxes.values_mut().for_each(|all| all.gap = true);
        drop(boxes);
        sets.into_iter().for_each(|set| self.queue.add_after(set, QUIET));
    }

    /// The news of a set, and whether some may be missing.
    pub(crate) fn take(&self, set: &ObjectKey) -> (Vec<News>, bool) {
        let mut boxes = self.boxes.lock();
        let Some(all) = boxes.get_mut(set) else { return (Vec::new(), false) };
        let taken = std::mem::take(all);
        (taken.news.into_values().flatten().collect(), taken.gap)
    }
}

impl Letters {
    fn came(&mut self) {
        let now = Instant::now();
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }
}
