//! Costs of the control plane that do not depend on time: instructions, as valgrind counts them.
//!
//! The test starts its own program under valgrind, for a small and for a large fleet. It is a step of `cargo xtask test`
//! (`costs`), which installs valgrind.

#![cfg(test)]

mod callgrind;
mod fleet;

use callgrind::Counts;
use fleet::CostlyFleet;

/// The number of machines, for the program under valgrind.
const MACHINES: &str = "FOREWARN_COST_MACHINES";
const SMALL: u32 = 1_000;
const LARGE: u32 = 100_000;
const COMMANDS: u32 = 50;
/// Instructions at the large size, in percent of those at the small one.
const RATIO_PERCENT_MAX: u64 = 150;

/// The work that is counted: commands first, then a fleet file.
#[test]
#[ignore = "it is counted by another test, under valgrind"]
fn work_that_is_counted() {
    let Ok(machines) = std::env::var(MACHINES) else { return };
    let mut fleet = CostlyFleet::filled(machines.parse().unwrap());
    (0..COMMANDS).for_each(|number| fleet.describe(number));
    fleet.add_block();
}

fn count(machines: u32) -> Counts {
    callgrind::count("work_that_is_counted", &[(MACHINES, machines.to_string())])
}

/// promise: C4
#[test]
#[ignore = "needs valgrind: a step of `cargo xtask test`"]
fn instructions_of_a_command_and_of_an_admitted_machine_do_not_grow_with_the_fleet() {
    let (small, large) = (count(SMALL), count(LARGE));
    for (name, small, large) in [
        ("command by plain name", small.commands / u64::from(COMMANDS), large.commands / u64::from(COMMANDS)),
        ("admitted machine", small.apply / 1_000, large.apply / 1_000),
    ] {
        println!("instructions of one {name}: {small} at {SMALL} machines, {large} at {LARGE}");
        let percent = large * 100 / small.max(1);
        assert!(percent <= RATIO_PERCENT_MAX, "{name}: {percent} percent");
    }
}
