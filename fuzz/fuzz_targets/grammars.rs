//! See `baton_hostile::grammars`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::grammars(bytes));
