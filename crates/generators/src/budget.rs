//! How much a pass has produced, against how much it may.

use std::sync::atomic::{AtomicUsize, Ordering};

use baton_render::Params;
use baton_template::{Map, Value};

use crate::settings::Limits;

/// Counts of one pass.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Budget {
        Budget { limits, bytes: AtomicUsize::new(0) }
    }

    /// Fails when one generator yields more sets than it may.
    pub(crate) fn sets(&self, count: usize) -> Result<(), String> {
        if count > self.limits.sets {
            return Err(format!("more than {} parameter sets", self.limits.sets));
        }
        Ok(())
    }

    /// Pays for one set that was made.
    pub(crate) fn pay(&self, params: &Params) -> Result<(), String> {
        self.spend(map_size(params))
    }

    /// Pays for texts that were made.
    pub(crate) fn spend(&self, size: usize) -> Result<(), String> {
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.limits.bytes {
            return Err(format!("parameters take more than {} bytes", self.limits.bytes));
        }
        Ok(())
    }
}

fn map_size(map: &Map) -> usize {
    // Nothing is free: an empty set still takes an entry.
    map.snapshot().iter().fold(8, |sum, (key, value)| sum + key.len() + size(value))
}

fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(list) => list.items().iter().map(size).sum(),
        Value::Map(map) => map_size(map),
        _ => 8,
    }
}
