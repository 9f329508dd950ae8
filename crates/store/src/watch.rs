//! Following the history as it grows.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use crate::error::Compacted;
use crate::event::Event;
use crate::feed::Feed;
use crate::state::State;

/// A reader of the history from some revision on, as given by [`Store::watch`](crate::Store::watch).
///
/// It reads the store's own history and copies none of it: an idle watch costs a few hundred bytes, and one
/// that is read too slowly gets [`Compacted`] instead of holding history back.
pub struct Watch {
    state: Arc<Mutex<State>>,
    reader: Reader,
}

/// What is read, and how far.
struct Reader {
    /// Which of the feed's watches this is.
    number: u64,
    /// Empty for all resources.
    resource: Box<str>,
    namespace: Option<Arc<str>>,
    /// Where in the feed the next unread event is or will be.
    cursor: u64,
    /// Every event of interest up to this revision has been delivered.
    delivered: u64,
}

impl Watch {
    pub(crate) fn new(
        state: &Arc<Mutex<State>>,
        resource: &str,
        namespace: Option<&str>,
        from: u64,
    ) -> Result<Self, Compacted> {
        let mut locked = state.lock();
        locked.check_kept(from)?;
        let feed = locked.feed_mut(resource);
        let namespace: Option<Arc<str>> = namespace.map(Into::into);
        let reader = Reader {
            number: feed.add_watch(namespace.clone()),
            resource: resource.into(),
            namespace,
            cursor: feed.position_after(from),
            delivered: from,
        };
        Ok(Self { state: state.clone(), reader })
    }

    /// Waits for the next event. Cancelling the wait loses nothing. On a closed store it waits forever.
    ///
    /// # Errors
    ///
    /// [`Compacted`] if the next event is no longer kept; so is every later call.
    pub async fn next(&mut self) -> Result<Arc<Event>, Compacted> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// What [`Watch::next`] does, for those who implement a stream.
    ///
    /// # Errors
    ///
    /// As for [`Watch::next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Arc<Event>, Compacted>> {
        let mut state = self.state.lock();
        let Some(event) = self.reader.read(&state).transpose() else {
            // Under the same lock as the reading: no event can come in between.
            state.feed_mut(&self.reader.resource).sleep(self.reader.number, context.waker());
            return Poll::Pending;
        };
        Poll::Ready(event)
    }

    /// The next event if there is one already.
    ///
    /// # Errors
    ///
    /// As for [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Compacted> {
        self.reader.read(&self.state.lock())
    }

    /// The revision up to which every event of interest has been delivered: a watch started from here
    /// would deliver the same events as this one from now on.
    pub fn position(&self) -> u64 {
        self.reader.position(&self.state.lock())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.lock().remove_watch(&self.reader.resource, self.reader.number);
    }
}

impl Reader {
    fn read(&mut self, state: &State) -> Result<Option<Arc<Event>>, Compacted> {
        let Some(feed) = state.feed(&self.resource) else { return Ok(None) };
        if feed.has_dropped(self.cursor) {
            return Err(Compacted { oldest: state.oldest() });
        }
        let (cursor, event) = self.seek(feed);
        self.cursor = cursor + u64::from(event.is_some());
        self.delivered = self.delivered.max(event.map_or(state.revision(), |event| event.revision));
        Ok(event.cloned())
    }

    fn position(&self, state: &State) -> u64 {
        let Some(feed) = state.feed(&self.resource) else { return self.delivered };
        if feed.has_dropped(self.cursor) {
            return self.delivered;
        }
        let (_, next) = self.seek(feed);
        self.delivered.max(next.map_or(state.revision(), |event| event.revision - 1))
    }

    /// The first event of interest at or after the cursor, and where it is or will be.
    fn seek<'f>(&self, feed: &'f Feed) -> (u64, Option<&'f Arc<Event>>) {
        let mut cursor = self.cursor;
        while let Some(event) = feed.at(cursor) {
            if self.wants(event) {
                return (cursor, Some(event));
            }
            cursor += 1;
        }
        (cursor, None)
    }

    fn wants(&self, event: &Event) -> bool {
        // A watch may be asked to start at a revision that is still to come.
        event.revision > self.delivered
            && self.namespace.as_deref().is_none_or(|namespace| *namespace == *event.record.key.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::state::FIRST_REVISION;

    #[test]
    fn a_dropped_watch_leaves_nothing_behind() {
        let state = Arc::new(Mutex::new(State::new(Options::default(), FIRST_REVISION, [])));
        for resource in ["no-such-resource", ""] {
            let first = Watch::new(&state, resource, None, FIRST_REVISION).unwrap();
            let second = Watch::new(&state, resource, None, FIRST_REVISION).unwrap();
            drop(first);
            assert_eq!(state.lock().stats().watches, 1);
            drop(second);
            assert_eq!(state.lock().stats().watches, 0);
            assert!(state.lock().table(resource).is_none());
            assert_eq!(Arc::strong_count(&state), 1);
        }
    }
}
