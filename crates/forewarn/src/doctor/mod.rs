//! `forewarn doctor`: finds problems, their effects and their remedies.
//!
//! Without `--config` it checks a running server and this computer; with it, everything that a server with this
//! configuration needs on this computer. It changes nothing; a check without a result is reported as unknown.

mod clock;
mod encryption;
mod engine;
mod network;
mod processes;
mod report;
mod running;
mod settings;
mod storage;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::findings::{fail_if_any, print_report};
use crate::operator::GlobalOptions;
use report::DoctorReport;

/// Check a running server, or the configuration of a server for this computer; each finding has a remedy
#[derive(Args)]
#[command(before_help = "\
Examples:
  forewarn doctor                                       check the server at --api, and this computer
  forewarn doctor --config /etc/forewarn/serve.toml     check the requirements of this configuration")]
pub(crate) struct DoctorArgs {
    /// Configuration file of the server to check [default: check the running server]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn command(arguments: &DoctorArgs, options: &GlobalOptions) -> Result<()> {
    let mut report = DoctorReport::default();
    match &arguments.config {
        Some(file) => settings::check(&mut report, file),
        None => {
            clock::check(&mut report, None);
            running::check(&mut report, options);
        }
    }
    print_report(options, &report.json(), |_| report.to_string())?;
    fail_if_any(report.findings(), "finding", str::to_owned)
}
