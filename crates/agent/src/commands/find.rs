//! `forewarn-agent find`: where the endpoint is.

use anyhow::Result;

use super::{Options, block_on, print};
use crate::run;

pub(super) fn command(options: &Options) -> Result<()> {
    let config = options.load()?;
    let found = block_on(async { Ok(run::search(&config).run().await?) })?;
    print(&format!("{}\n", found.endpoint))?;
    eprintln!("found {}", found.by);
    Ok(())
}
