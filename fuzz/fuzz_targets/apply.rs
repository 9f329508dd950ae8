//! See `baton_hostile::apply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::apply(bytes));
