//! No request makes the endpoint take more than a mebibyte of memory, however hostile it is.
//!
//! A test program of its own, with one test: whatever else ran beside it would be counted, too.

#![cfg(test)]

use forewarn_fuzz::corpus::{self, Input};
use forewarn_fuzz::endpoint::MemoryEndpoint;
use forewarn_fuzz::{Target, large};
use forewarn_metadata::fuzzing::Script;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a piece: as much as the endpoint reads at once.
const PIECE_BYTES: usize = 2 * 1024;

/// The most that was taken while one connection was answered, without what it sent and was sent.
fn peak(endpoint: &MemoryEndpoint, input: &Input) -> usize {
    let script = Script::new(input.bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec).collect());
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let answers = endpoint.answer(script);
    ALLOCATOR.peak_usage().saturating_sub(before + 2 * answers.capacity())
}

/// promise: M5
#[test]
fn no_request_takes_more_than_a_mebibyte() {
    let endpoint = MemoryEndpoint::new();
    let mut inputs = corpus::files(Target::Request);
    inputs.extend(large::inputs(Target::Request));
    for body in corpus::files(Target::StartRequests) {
        inputs.push(Input { name: body.name, bytes: corpus::approval(&body.bytes) });
    }
    let mut worst = (0, String::new());
    for input in inputs {
        let bytes = peak(&endpoint, &input);
        assert!(bytes <= BYTES_MAX, "{}: {bytes} bytes", input.name);
        worst = worst.max((bytes, input.name));
    }
    println!("at most {} bytes: {}", worst.0, worst.1);
}
