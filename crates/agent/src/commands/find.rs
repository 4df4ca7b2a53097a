//! `forewarn-agent find`: prints the address of the endpoint.

use anyhow::Result;
use serde_json::json;

use super::{GlobalOptions, OutputFormat, block_on, print, print_data};
use crate::run;

pub(super) fn command(options: &GlobalOptions) -> Result<()> {
    let config = options.load()?;
    let found = block_on(async { Ok(run::search(&config).run().await?) })?;
    let endpoint = found.endpoint.to_string();
    match options.output() {
        OutputFormat::Text(_) => {
            print(&format!("{endpoint}\n"))?;
            eprintln!("found {}", found.by);
            Ok(())
        }
        OutputFormat::Data(format) => {
            let value = json!({ "endpoint": &endpoint, "found": found.by.to_string() });
            print_data(format, &value, |_| vec![endpoint])
        }
    }
}
