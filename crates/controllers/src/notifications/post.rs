//! How many messages are on their way at once: so many all in all, and of these only a part to one service, so that one
//! that hangs does not hold up the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_notifications::{Doubt, Entry, Failure, Post, ServiceConfig};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// A post with so much room for each service.
pub(super) struct Turnstile {
    post: Arc<dyn Post>,
    each: usize,
    services: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// Nothing new is begun.
    closed: AtomicBool,
}

// === impl Turnstile ===

impl Turnstile {
    /// Room for a quarter of the workers at each service.
    pub(super) fn new(post: Arc<dyn Post>, workers: usize) -> Turnstile {
        Turnstile {
            post,
            each: (workers / 4).max(1),
            services: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Begins nothing new from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn places(&self, service: &str) -> Arc<Semaphore> {
        let mut services = self.services.lock();
        services.entry(service.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.each))).clone()
    }
}

impl Post for Turnstile {
    fn deliver<'a>(
        &'a self,
        service: &'a ServiceConfig,
        entry: &'a Entry,
        doubt: Doubt,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let places = self.places(&entry.service);
            // It is never closed, so there is always a place in the end.
            let _place = places.acquire().await;
            self.post.deliver(service, entry, doubt).await
        })
    }

    fn has_room(&self, service: &str) -> bool {
        let places = self.services.lock().get(service).map(|places| places.available_permits());
        !self.closed.load(Ordering::Relaxed) && places != Some(0) && self.post.has_room(service)
    }
}
