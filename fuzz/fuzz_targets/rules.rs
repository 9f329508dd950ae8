//! See `baton_hostile::rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::rules(bytes));
