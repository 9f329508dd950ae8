//! What one Application may use.

use baton_template::Limits;

use crate::error::{RenderError, Subject};

/// Bytes all strings of one Application may hold; an API server refuses objects far smaller.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Deepest nesting of values; what a JSON parser still reads back.
pub(crate) const MAX_DEPTH: usize = 120;

/// Most values one template may hold.
pub(crate) const MAX_NODES: usize = 200_000;

/// Steps all templates of one Application share.
const STEPS: u64 = 20_000_000;

/// What a template may use when it is one of `count` that are rendered together.
pub(crate) fn share(count: usize) -> Limits {
    let steps = (STEPS / count.max(1) as u64).clamp(2_000, 1_000_000);
    Limits { steps, output: MAX_BYTES, ..Limits::default() }
}

/// The bytes still to be had.
pub(crate) struct Budget {
    left: usize,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { left: MAX_BYTES }
    }

    pub(crate) fn take(&mut self, bytes: usize, subject: Subject, path: &str) -> Result<(), RenderError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let message = format!("rendered text is larger than {MAX_BYTES} bytes in all");
            RenderError::new(subject, path, message)
        })?;
        Ok(())
    }
}
