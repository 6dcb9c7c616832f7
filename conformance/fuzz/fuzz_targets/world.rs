//! `conformance::fuzzing::world`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(failure) = conformance::fuzzing::world(data) {
        panic!("{failure}");
    }
});
