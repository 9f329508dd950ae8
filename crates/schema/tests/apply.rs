//! Server-side apply and the bookkeeping of field owners.

mod apply {
    mod goldens;
    mod properties;
    mod rules;
}
