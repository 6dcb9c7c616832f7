//! `conformance::fuzzing::lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(failure) = conformance::fuzzing::lines(data) {
        panic!("{failure}");
    }
});
