//! `forewarn test`: runs a program against announced maintenance, and judges it.
//!
//! ```text
//! server in this process ──metadata endpoint──▶ COMMAND, a child process
//!   ▲ frozen clock                               │ polls, drains, approves
//!   └── pacer ◀── observer (polls, documents) ◀──┘
//! events, one after the other ──▶ verdict ──▶ sentences, reports, exit code
//! ```

mod hints;
mod html;
mod machines;
mod observer;
mod outcome;
mod pacer;
mod preparation;
mod program_output;
mod programs;
mod reports;
mod run;
mod scenario;
mod story_stage;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use forewarn_cli_support::log;
use forewarn_cli_support::log::{Detail, Format};
use forewarn_cli_support::output::names_in;
use forewarn_types::TcpAddress;
use forewarn_verdict::{ApprovalRule, UntestedRule, VerdictRules};

use crate::exit_code::ExitError;
use crate::operator::{GlobalOptions, OutputFormat, print, print_data, visible};
use crate::requested_events::{RequestedEvent, parse_after};
use crate::server::open_listeners::OpenListenerArgs;
use reports::{VerdictReportFormat, check_report, parse_report, write_report};

/// Run a program against announced maintenance, and judge it: does it approve each event before it starts?
///
/// The program gets the address of its metadata endpoint as FOREWARN_METADATA, and appends /metadata/scheduledevents. The
/// clock of the test stands still while the program works, and jumps over the time in which nothing happens. Exit code
/// 0: passed; 1: failed; 2: invalid command line; 3: timeout. If COMMAND fails, its exit code is passed through.
#[derive(Args, Debug)]
#[command(before_help = "\
Examples:
  forewarn test -- ./service                            announces a Reboot of the machine svc
  forewarn test --event Freeze --event Terminate -- ./service
  forewarn test --event Preempt:cheap --patience 30s --report verdict.html -- ./service
  forewarn test --story spot-eviction -- ./service      a story, from `forewarn story ls`
  forewarn test --fleet fleet.toml --event Redeploy:web_0 --vm web_0 -- ./service
  forewarn test --metadata-listen 169.254.169.254:80 --i-know-this-is-open -- ./service")]
pub(crate) struct TestArgs {
    /// Story file, page with a story, or name of a story of the library: it says what happens
    #[arg(long, value_name = "FILE|NAME", conflicts_with_all = ["fleet", "event", "after"])]
    story: Option<PathBuf>,
    /// Fleet file (TOML) [default: one VM for each machine that --event names, or svc]
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Announce an event of this type: Freeze, Reboot, Redeploy, Preempt or Terminate; repeatable, one after the other
    /// [default: Reboot]
    #[arg(long, value_name = "TYPE[:VM]")]
    event: Vec<RequestedEvent>,
    /// Announce each event this long after its machine has polled, or after the event before it, on the clock of the test
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_after)]
    after: Duration,
    /// Machine that COMMAND is [default: the first one]
    #[arg(long, value_name = "NAME")]
    vm: Option<String>,
    /// Wait at most this long for a program to poll, and to approve an event that it has read, in real time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_limit)]
    patience: Duration,
    /// Wait at most this long for the first poll of a machine, in real time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_limit)]
    startup: Duration,
    /// End the test after this long, in real time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_limit)]
    timeout: Duration,
    /// Require that programs approve events, or not
    #[arg(long, value_enum, default_value_t)]
    approval: ApprovalArg,
    /// Address of the metadata endpoint, for a program with a fixed address or in another network; port 0 selects a free
    /// port. Requests without /vm/NAME come from the machine of COMMAND
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    metadata_listen: TcpAddress,
    #[command(flatten)]
    open: OpenListenerArgs,
    /// Pass even if no machine polls, or no event is shown to one
    #[arg(long)]
    allow_untested: bool,
    /// Write a report to this file: JUnit (.xml), TAP (.tap), JSON (.json) or a page with a timeline (.html); repeatable
    #[arg(long, value_name = "FILE", value_parser = parse_report)]
    report: Vec<(PathBuf, VerdictReportFormat)>,
    /// Program and its arguments; not needed if all programs are in the story
    #[arg(last = true, required_unless_present = "story", value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ApprovalArg {
    /// Each event that a program has read is approved before it starts
    #[default]
    Required,
    /// Events may start without approval
    Optional,
}

/// The longest time that an option permits.
const LIMIT_MAX: Duration = Duration::from_hours(24);

fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = forewarn_types::parse_duration(text).filter(|limit| !limit.is_zero() && *limit <= LIMIT_MAX);
    limit.ok_or_else(|| "not a duration from 1s to 24h: write 5s, 2m".to_owned())
}

impl TestArgs {
    fn rules(&self) -> VerdictRules {
        VerdictRules {
            approval: match self.approval {
                ApprovalArg::Required => ApprovalRule::Required,
                ApprovalArg::Optional => ApprovalRule::Optional,
            },
            untested: if self.allow_untested { UntestedRule::Passes } else { UntestedRule::Fails },
        }
    }
}

/// Runs the test. Returns its exit code.
pub(crate) fn command(arguments: &TestArgs, options: &GlobalOptions) -> Result<ExitCode> {
    log::start(Format::Text, Detail::Warn);
    arguments.report.iter().try_for_each(|(path, _)| check_report(path)).map_err(ExitError::usage)?;
    arguments.open.check([arguments.metadata_listen.0]).map_err(ExitError::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(run::run(arguments, options.output()))?;
    // The thread of a story that hangs must not keep the command.
    runtime.shutdown_background();
    match options.output() {
        OutputFormat::Data(format) => {
            print_data(format, &outcome.json(), |outcome| names_in(&outcome["events"], "id"))?;
        }
        OutputFormat::Text(_) => print(&visible(&outcome.text()))?,
    }
    arguments.report.iter().try_for_each(|(path, format)| write_report(&outcome, path, *format))?;
    Ok(ExitCode::from(outcome.exit_code()))
}
