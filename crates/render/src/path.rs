//! Paths of fields, as people write them.

use std::fmt::Write;

/// Adds a field: `.name`, or `["any text"]`.
pub(crate) fn push_field(path: &mut String, name: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        // Writing to a String cannot fail.
        let _ = write!(path, "[{name:?}]");
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Adds an element: `[index]`.
pub(crate) fn push_element(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}
