//! An object kept as bytes and parsed when it is asked for.
//!
//! As parsed JSON an object takes about ten times the room of its compressed text, and most are looked at only when
//! their Application is.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;

/// Texts from this length on are compressed.
const COMPRESS_FROM: usize = 512;

/// One object.
#[derive(Debug)]
pub(crate) struct Packed {
    text: Text,
    /// Shared by all who look at it at the same time.
    parsed: Mutex<Weak<Value>>,
}

#[derive(Debug)]
enum Text {
    Plain(Box<[u8]>),
    Compressed(Box<[u8]>),
}

impl Packed {
    pub(crate) fn new(object: &Value) -> Packed {
        // Writing a value that was read cannot fail: its keys are texts.
        let plain = serde_json::to_vec(object).unwrap_or_default();
        let text = match plain.len() < COMPRESS_FROM {
            true => Text::Plain(plain.into_boxed_slice()),
            false => Text::Compressed(lz4_flex::compress_prepend_size(&plain).into_boxed_slice()),
        };
        Packed { text, parsed: Mutex::new(Weak::new()) }
    }

    /// The object, parsed once for all who hold it.
    pub(crate) fn open(&self) -> Arc<Value> {
        let mut parsed = self.parsed.lock();
        if let Some(value) = parsed.upgrade() {
            return value;
        }
        let value = match &self.text {
            Text::Plain(text) => serde_json::from_slice(text),
            // The bytes are our own, so the size they state is true.
            Text::Compressed(text) => {
                let plain = lz4_flex::decompress_size_prepended(text).unwrap_or_default();
                serde_json::from_slice(&plain)
            }
        };
        let value = Arc::new(value.unwrap_or_default());
        *parsed = Arc::downgrade(&value);
        value
    }

    /// Bytes it takes.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        match &self.text {
            Text::Plain(text) | Text::Compressed(text) => text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_comes_out_as_it_went_in_and_is_shared() {
        for object in [json!({"a": 1}), json!({"a": "x".repeat(5000)})] {
            let packed = Packed::new(&object);
            let opened = packed.open();
            assert_eq!(*opened, object);
            assert!(Arc::ptr_eq(&opened, &packed.open()));
        }
        assert!(Packed::new(&json!({"a": "x".repeat(5000)})).size() < 200);
    }
}
