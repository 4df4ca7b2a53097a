//! Figures of a realm: three servers on three members of etcd, all on loopback.
//!
//! Prints one line of JSON, and ends everything that it has started.
//!
//! ```text
//! realm gap --loss server|leader|both|move --rounds N …
//! realm commits --streams N …
//! realm takeover --machines N …
//! realm forwarding|publication …
//! realm outage --seconds N …
//! ```
//!
//! Each takes `--forewarn PROGRAM --etcd PROGRAM --directory EMPTY_DIRECTORY`.

mod arguments;
mod gaps;
mod rates;
mod site;

use std::process::ExitCode;

use arguments::{Arguments, Part};
use forewarn_bench::{LoadResult, program};
use serde_json::{Value, json};
use site::SitePlan;

/// Speed of the clock during an outage: an event of 15 minutes becomes due in it.
const OUTAGE_SPEED: u32 = 60;

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), |arguments| measure(&arguments))
}

fn measure(arguments: &Arguments) -> LoadResult<String> {
    let speed = if arguments.part == Part::Outage { OUTAGE_SPEED } else { 1 };
    let Arguments { forewarn, etcd, directory, .. } = arguments;
    let site = SitePlan { forewarn, etcd, directory, speed }.start()?;
    let result: Value = match arguments.part {
        Part::Gap => {
            let gaps = (0..arguments.rounds).map(|round| gaps::measure(&site, arguments.loss, round));
            json!({ "gaps": gaps.collect::<LoadResult<Vec<_>>>()? })
        }
        Part::Commits => rates::commits(&site, arguments.streams)?,
        Part::Takeover => rates::takeover(&site, arguments.machines)?,
        Part::Forwarding => rates::forwarding(&site)?,
        Part::Publication => rates::publication(&site)?,
        Part::Outage => rates::outage(&site, arguments.seconds)?,
    };
    Ok(result.to_string())
}
