//! What the rules cost: time per command and memory per machine, for a fleet of a given size.
//!
//! Builds a fleet, then puts a fixed mix of commands to it and prints one line of JSON. Only `decide` and `evolve` are
//! measured, one command at a time, in [`measured`]; what drives them is not. After the mix, copies of the fleet are measured
//! in [`copies`]. Count the instructions of commands with
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*measured*' --callgrind-out-file=/dev/null core --machines 1000
//! ```

mod arguments;
mod copies;
mod memory;
mod mix;
mod tally;

use std::error::Error;
use std::process::ExitCode;

use forewarn_bench::{program, rules_fleet};
use forewarn_lifecycle::{Change, Cluster, Command, Effect, Now, Refusal};

use arguments::Arguments;
use mix::Mix;

/// What one command did.
struct Outcome {
    changes: Vec<Change>,
    effects: Vec<Effect>,
}

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), run)
}

fn run(arguments: Arguments) -> Result<String, Box<dyn Error>> {
    let before = memory::resident_bytes()?;
    let cluster = rules_fleet::build(arguments.blocks())?;
    let bytes = memory::resident_bytes()?.saturating_sub(before);
    let mut mix = Mix::new(cluster, arguments.blocks());
    mix.run(arguments.commands)?;
    let copies = copies::measure(mix.cluster(), mix.now(), arguments.machines)?;
    Ok(mix.tally().to_json(arguments.machines, bytes / u64::from(arguments.machines), copies))
}

/// One command, decided and applied. The profiler finds it by its name, so it is never inlined, and has no closures,
/// whose names would hold its own.
#[inline(never)]
fn measured(cluster: &mut Cluster, now: Now, command: &Command) -> Result<Outcome, Refusal> {
    let changes = cluster.decide(now, command)?;
    let mut effects = Vec::new();
    for change in &changes {
        effects.append(&mut cluster.evolve(now, change));
    }
    Ok(Outcome { changes, effects })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_machines_take_the_mix_without_a_refusal() {
        let line = run(Arguments { machines: 1_000, commands: 5_000 }).unwrap();
        assert!(line.starts_with("{\"machines\":1000,\"commands\":5"), "{line}");
        assert!(line.contains("\"resident_bytes_per_machine\":"), "{line}");
        assert!(line.contains("\"copy\":{\"nanoseconds\":"), "{line}");
    }
}
