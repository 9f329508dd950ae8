//! See `baton_hostile::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::request(bytes));
