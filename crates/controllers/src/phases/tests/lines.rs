//! The lines of the log, as far as they are written unless somebody asks for more.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// What this thread logs, until it is dropped.
pub(super) struct Lines {
    kept: Kept,
    _guard: DefaultGuard,
}

type Kept = Arc<Mutex<Vec<(String, String)>>>;

struct Listener(Kept);

struct Fields(String);

impl Lines {
    pub(super) fn listen() -> Lines {
        let kept = Kept::default();
        let guard = tracing::subscriber::set_default(Listener(kept.clone()));
        Lines { kept, _guard: guard }
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
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0.lock().push((event.metadata().target().to_owned(), fields.0));
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
