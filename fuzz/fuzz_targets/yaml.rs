//! See `baton_hostile::yaml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::yaml(bytes));
