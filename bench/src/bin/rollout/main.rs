//! A rolling update of every host of a fleet, in virtual time: the processor time of all decisions, and of loading the
//! stored state before them.
//!
//! Prints one line of JSON. Count the instructions of completions, or of approvals, with
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*measured_completion*' --callgrind-out-file=/dev/null rollout
//! ```

mod arguments;
mod control;
mod fleet;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use arguments::Arguments;
use control::{Control, Counts};
use forewarn_bench::program;
use forewarn_lifecycle::Now;

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), run)
}

fn run(arguments: Arguments) -> Result<String, Box<dyn Error>> {
    let Arguments { machines, group, enrolled, starts } = arguments;
    let now = Now::at_millis(1_767_225_600_000);
    let rows = fleet::build(now, machines, enrolled)?.into_rows().collect();
    let built = processor_nanoseconds()?;
    let mut control = Control::load(now, rows, starts)?;
    let loaded = processor_nanoseconds()?;
    let groups = control.update_every_host(group)?;
    let milliseconds = processor_nanoseconds()?.saturating_sub(loaded) / 1_000_000;
    let load = loaded.saturating_sub(built) / 1_000_000;
    let Counts { completions, approvals, ticks } = control.counts;
    Ok(format!(
        "{{\"machines\":{machines},\"groups\":{groups},\"completions\":{completions},\"approvals\":{approvals},\
         \"ticks\":{ticks},\"load_milliseconds\":{load},\"milliseconds\":{milliseconds}}}"
    ))
}

/// Processor time of this process, which has one thread.
fn processor_nanoseconds() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/schedstat")?;
    let first = text.split_whitespace().next().ok_or("no processor time")?;
    Ok(first.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arguments::Starts;
    use fleet::Enrolled;

    #[test]
    fn every_machine_is_updated_once() {
        for (enrolled, starts, approvals) in [
            (Enrolled::All, Starts::Approved, 100),
            (Enrolled::All, Starts::Expired, 0),
            (Enrolled::One, Starts::Approved, 5),
        ] {
            let line = run(Arguments { machines: 200, group: 40, enrolled, starts }).unwrap();
            let expected = format!(
                "{{\"machines\":200,\"groups\":5,\"completions\":200,\"approvals\":{approvals},\"ticks\":"
            );
            assert!(line.starts_with(&expected), "{line}");
        }
    }
}
