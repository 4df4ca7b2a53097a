//! `forewarn-agent find`: prints the address of the endpoint.

use anyhow::Result;

use super::{GlobalOptions, block_on, print};
use crate::run;

pub(super) fn command(options: &GlobalOptions) -> Result<()> {
    let config = options.load()?;
    let found = block_on(async { Ok(run::search(&config).run().await?) })?;
    print(&format!("{}\n", found.endpoint))?;
    match config.given.endpoint {
        Some(_) => eprintln!("given by --endpoint"),
        None => eprintln!("found {}", found.by),
    }
    Ok(())
}
