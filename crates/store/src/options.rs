//! Bounds of a store, and how far they are used.

/// How much history a store keeps. The oldest events go first; the newest is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Events kept.
    pub history_events: usize,
    /// Bytes of bodies kept only for history: superseded and deleted states, as held in memory.
    pub history_bytes: usize,
    /// Whether bodies are held compressed where that pays: less memory for more work.
    pub compress: bool,
}

impl Options {
    /// Keeps all history, and at once at hand, for tests that read it.
    pub fn unlimited() -> Self {
        Self { history_events: usize::MAX, history_bytes: usize::MAX, compress: false }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { history_events: 10_000, history_bytes: 16 << 20, compress: true }
    }
}

/// What a store holds at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Current revision.
    pub revision: u64,
    /// Oldest revision that can be listed at or watched from.
    pub oldest: u64,
    /// Objects.
    pub objects: usize,
    /// Bytes of their bodies as held in memory.
    pub object_bytes: usize,
    /// Events kept.
    pub history_events: usize,
    /// Bytes of bodies kept only for history.
    pub history_bytes: usize,
    /// Watches.
    pub watches: usize,
}
