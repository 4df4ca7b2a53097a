//! `forewarn serve`: a server for real machines, on the real clock.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use forewarn_server::{ClockPlan, Plan};
use forewarn_wire::operator::Fleet;

use super::config::{CONFIG_BYTES_MAX, Config};
use super::dev::cores;
use super::{log, random_seed, read, read_fleet, run, write_addresses};

/// Run a server for real machines, on the real clock, as a file says.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The settings, as TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Write where the server listens to this file, as JSON, once it does.
    #[arg(long, value_name = "FILE")]
    addresses_file: Option<PathBuf>,
    /// Only check the settings and the fleet.
    #[arg(long)]
    check: bool,
}

pub(crate) fn command(arguments: &Arguments) -> Result<()> {
    let file = &arguments.config;
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the settings: {}", file.display()))?;
    let config = Config::parse(&text).with_context(|| format!("not settings: {}", file.display()))?;
    let (format, level) = (config.log.format, config.log.level);
    let plan = plan(config).with_context(|| format!("in {}", file.display()))?;
    if arguments.check {
        println!("{} is in order", file.display());
        return Ok(());
    }
    log::start(format, level);
    run(plan, |service| {
        if let Some(file) = &arguments.addresses_file {
            write_addresses(file, service)?;
        }
        if let Some(key) = service.new_key() {
            // The only time that it can be seen; it is not for the log.
            println!("the key of operators, shown once: {key}");
        }
        tracing::info!(metadata = service.metadata_url(), api = service.api_url(), "forewarn serves");
        Ok(())
    })
}

fn plan(config: Config) -> Result<Plan> {
    Ok(Plan {
        mode: "serve",
        seed: random_seed()?,
        clock: ClockPlan::Real,
        data_dir: config.data_dir()?,
        fleet: config.fleet.as_deref().map_or_else(|| Ok(Fleet::default()), read_fleet)?,
        settings: config.metadata.settings()?,
        doors: config.metadata.doors()?,
        threads: config.metadata.threads.unwrap_or_else(cores),
        api: config.api.door()?,
        hands: config.hands.hands(),
    })
}
