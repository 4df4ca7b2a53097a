//! Fuzzes `Target::ControlRequest`; run by hand, it examines the files that are named.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(forewarn_fuzz::Target::ControlRequest.examine(bytes)));

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    forewarn_fuzz::corpus::examine_files(forewarn_fuzz::Target::ControlRequest)
}
