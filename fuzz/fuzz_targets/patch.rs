//! See `baton_hostile::patch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::patch(bytes));
