//! Memory of the state of a cluster, and of a command.
//!
//! A test program of its own, with one test: whatever else ran beside it would be counted, too.

#![cfg(test)]

#[path = "costs/fleet.rs"]
mod fleet;

use fleet::CostlyFleet;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MACHINES: u32 = 20_000;
/// Machines of one fleet file.
const BLOCK: usize = 1_000;
const BYTES_PER_MACHINE_MAX: usize = 200;
const BYTES_PER_APPLIED_MACHINE_MAX: usize = 330;
const COMMANDS: u32 = 200;
/// What all commands together may leave: the descriptions of ten machines.
const BYTES_OF_COMMANDS_MAX: usize = 16 << 10;

/// Bytes that some work leaves.
fn bytes(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.current_usage();
    work();
    ALLOCATOR.current_usage().saturating_sub(before)
}

/// promise: C4
#[test]
fn a_machine_takes_little_memory_and_a_command_leaves_none() {
    let mut fleet = None;
    let filled = bytes(|| fleet = Some(CostlyFleet::filled(MACHINES))) / MACHINES as usize;
    let mut fleet = fleet.unwrap();
    // The first ones allocate tables.
    fleet.add_block();
    (0..COMMANDS).for_each(|number| fleet.describe(number));
    let applied = bytes(|| fleet.add_block()) / BLOCK;
    let commands = bytes(|| (COMMANDS..2 * COMMANDS).for_each(|number| fleet.describe(number)));
    println!("a machine: {filled} bytes, one with details: {applied}; {COMMANDS} commands: {commands}");
    assert!(filled <= BYTES_PER_MACHINE_MAX, "a machine: {filled} bytes");
    assert!(applied <= BYTES_PER_APPLIED_MACHINE_MAX, "a machine of a fleet file: {applied} bytes");
    assert!(commands <= BYTES_OF_COMMANDS_MAX, "{COMMANDS} commands: {commands} bytes");
}
