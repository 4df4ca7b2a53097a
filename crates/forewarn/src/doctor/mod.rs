//! `forewarn doctor`: what is wrong here, why it matters, and what to type about it.
//!
//! Without a file of settings it looks at a running server, and at this computer; with one, at what a server with those
//! settings would need where it is to run. It changes nothing, and what cannot be known is said to be unknown.

mod clock;
mod encryption;
mod network;
mod processes;
mod report;
mod running;
mod settings;
mod storage;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::operator::{Options, Output, print, visible};
use report::Report;

/// Look for what is wrong: with a running server, or with what a server would need here. Each finding has a remedy.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forewarn doctor                                       the server at --api, and this computer
  forewarn doctor --config /etc/forewarn/serve.toml     what a server with these settings would need here")]
pub(crate) struct Arguments {
    /// The settings of a server that is to run here.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn command(arguments: &Arguments, options: &Options) -> Result<()> {
    let mut report = Report::default();
    match &arguments.config {
        Some(file) => settings::look(&mut report, file),
        None => {
            clock::look(&mut report, None);
            running::look(&mut report, options);
        }
    }
    let text = match options.output() {
        Output::Json => format!("{:#}\n", report.json()),
        Output::Table | Output::Wide => visible(&report.to_string()),
    };
    print(&text)?;
    match report.findings() {
        0 => Ok(()),
        1 => bail!("1 finding"),
        several => bail!("{several} findings"),
    }
}
