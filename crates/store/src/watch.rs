//! Following the history as it grows.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

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
    wake: Arc<Notify>,
    /// Empty for all resources.
    resource: Box<str>,
    namespace: Option<Box<str>>,
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
        let feed = locked.add_watch(resource);
        Ok(Self {
            state: state.clone(),
            wake: feed.wake.clone(),
            resource: resource.into(),
            namespace: namespace.map(Into::into),
            cursor: feed.position_after(from),
            delivered: from,
        })
    }

    /// Waits for the next event. Cancelling the wait loses nothing. On a closed store it never returns.
    ///
    /// # Errors
    ///
    /// [`Compacted`] if the next event is no longer kept; so is every later call.
    pub async fn next(&mut self) -> Result<Arc<Event>, Compacted> {
        if let Some(event) = self.try_next()? {
            return Ok(event);
        }
        loop {
            // Taken before looking, so that an event in between is not slept through.
            let wake = self.wake.clone();
            let woken = wake.notified();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            woken.await;
        }
    }

    /// The next event if there is one already.
    ///
    /// # Errors
    ///
    /// As for [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Compacted> {
        let state = self.state.lock();
        let Some(feed) = state.feed(&self.resource) else { return Ok(None) };
        if feed.has_dropped(self.cursor) {
            return Err(Compacted { oldest: state.oldest() });
        }
        let (cursor, event) = self.seek(feed);
        let event = event.cloned();
        let delivered = event.as_ref().map_or(state.revision(), |event| event.revision);
        drop(state);
        self.delivered = self.delivered.max(delivered);
        self.cursor = cursor + u64::from(event.is_some());
        Ok(event)
    }

    /// The revision up to which every event of interest has been delivered: a watch started from here
    /// would deliver the same events as this one from now on.
    pub fn position(&self) -> u64 {
        let state = self.state.lock();
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

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.lock().remove_watch(&self.resource);
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
