//! `forewarn driver`: judges driver programs.
//!
//! `driver check` plays the server: it sends every order to a program, repeats, truncates and interrupts orders, and
//! compares the responses and the states of the machine with the contract (`docs/reference/driver.md`). It needs no
//! server.

mod attempt;
mod report;
mod request;
mod trial;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::findings::{fail_if_any, print_report};
use crate::operator::{ConfirmationArgs, GlobalOptions};
use request::HostVerb;
use trial::DriverTrial;

#[derive(Subcommand)]
pub(crate) enum Command {
    Check(CheckArgs),
}

/// Check a driver program: send it every order, repeated and interrupted too, and judge its responses
///
/// The machine is paused, restarted, stopped and started. At the end it runs, unless --destroy was given.
#[derive(Args)]
#[command(before_help = "\
Examples:
  forewarn driver check ./driver --machine scratch --host kvm1
  forewarn driver check ./driver --machine scratch --host kvm1 --to kvm2 --yes --output json")]
pub(crate) struct CheckArgs {
    /// Driver program
    program: PathBuf,
    /// Machine to act on: one without data and users
    #[arg(long, value_name = "NAME")]
    machine: String,
    /// Host of the machine
    #[arg(long, value_name = "HOST")]
    host: String,
    /// Tenant of the machine [default: the name of the machine]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Another host, to check migrate and redeploy: the machine moves there and back
    #[arg(long, value_name = "HOST")]
    to: Option<String>,
    /// Also check this order on the host; repeatable
    #[arg(long, value_name = "VERB", value_enum)]
    host_order: Vec<HostVerb>,
    /// Also check reimage and delete: the machine and its disks are lost
    #[arg(long)]
    destroy: bool,
    /// Time limit of one attempt
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_time_limit)]
    time_limit: Duration,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
}

fn parse_time_limit(text: &str) -> Result<Duration, String> {
    let limit = forewarn_types::parse_duration(text).filter(|limit| *limit >= Duration::from_secs(1));
    limit.ok_or_else(|| "not a duration of at least 1s: write 90s, 5m".to_owned())
}

pub(crate) fn run(command: &Command, options: &GlobalOptions) -> Result<()> {
    match command {
        Command::Check(arguments) => check(arguments, options),
    }
}

fn check(arguments: &CheckArgs, options: &GlobalOptions) -> Result<()> {
    let CheckArgs { program, machine, host, to, host_order, destroy, confirmation, .. } = arguments;
    let orders = host_order.iter().map(|verb| format!(", {} of {host}", verb.as_str()));
    let fate = if *destroy { ", reimage and delete" } else { "" };
    let moves = if to.is_some() { ", move" } else { "" };
    let what = format!(
        "check of {}: pause, restart, stop{moves}{fate} of {machine}{}",
        program.display(),
        orders.collect::<String>()
    );
    confirmation.obtain_without_server(&what)?;
    let report = DriverTrial::new(arguments)?.run()?;
    print_report(options, &report.json(), |_| report.to_string())?;
    fail_if_any(report.findings(), "finding", |found| {
        format!("the program does not keep the contract: {found}")
    })
}
