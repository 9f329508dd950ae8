//! The lines of the log, as far as they are written unless somebody asks for more.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What this thread logs, until it is dropped.
pub(super) struct Lines {
    kept: Kept,
}

type Kept = Arc<Mutex<Vec<(String, String)>>>;

/// Hears every thread, and keeps what is said on those that somebody listens on. One for the whole process: whether a line is
/// wanted at all is found out once, by whichever thread comes first.
struct Listener;

thread_local! {
    static HEARD: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

struct Fields(String);

impl Lines {
    pub(super) fn listen() -> Lines {
        static LISTENER: Once = Once::new();
        LISTENER
            .call_once(|| tracing::subscriber::set_global_default(Listener).expect("nobody else listens"));
        let kept = Kept::default();
        HEARD.set(Some(kept.clone()));
        Lines { kept }
    }

    /// The lines of a target.
    pub(super) fn of(&self, target: &str) -> Vec<String> {
        let kept = self.kept.lock();
        kept.iter().filter(|(of, _)| of == target).map(|(_, line)| line.clone()).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> String {
        self.kept.lock().iter().map(|(target, line)| format!("{target} {line}\n")).collect()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        HEARD.set(None);
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(kept) = HEARD.with_borrow(Clone::clone) else { return };
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        kept.lock().push((event.metadata().target().to_owned(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}
