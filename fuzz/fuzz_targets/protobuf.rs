//! See `baton_hostile::protobuf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baton_hostile::protobuf(bytes));
