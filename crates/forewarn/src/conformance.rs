//! `forewarn conformance`: judges any endpoint of Scheduled Events. It needs no server of Forewarn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use forewarn_cli_support::table::{Table, Width};
use forewarn_conformance::{Assignment, Report};
use forewarn_types::EventKind;
use forewarn_url::{Url, percent};

use crate::event_pattern::not_a_type;
use crate::findings::{fail_if_any, print_report};
use crate::operator::GlobalOptions;

/// Check an endpoint of Scheduled Events: this one, a mock, or that of a cloud, from inside a VM
///
/// Events are needed for most checks. Without --event, only events that are visible by chance are judged, and none is
/// approved. A check that could not run is not counted. Exit code 1: a check with points has failed.
#[derive(Args)]
#[command(before_help = "\
Examples:
  forewarn conformance http://169.254.169.254 --read-only
  forewarn conformance http://127.0.0.1:1338 --as web_0 --event Reboot='forewarn vm restart web_0' \\
    --event Redeploy='forewarn vm redeploy web_1' --advance 'forewarn clock advance 5m' --report conformance.md")]
pub(crate) struct ConformanceArgs {
    /// Base URL of the endpoint, to which /metadata/scheduledevents is appended
    #[arg(value_parser = parse_url)]
    url: Url,
    /// Act as this machine of `forewarn dev`: append /vm/NAME to the URL
    #[arg(long = "as", value_name = "VM")]
    machine: Option<String>,
    /// Send no start requests and run no commands
    #[arg(long, conflicts_with_all = ["event", "advance"])]
    read_only: bool,
    /// Run a shell command that makes an event of this type, and approve the event; repeatable
    #[arg(long, value_name = "TYPE=COMMAND", value_parser = parse_cause)]
    event: Vec<(EventKind, String)>,
    /// Run a shell command after approval, so that events end: for example one that advances a virtual clock
    #[arg(long, value_name = "COMMAND")]
    advance: Option<String>,
    /// Watch unapproved events for this long
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_limit)]
    watch: Duration,
    /// Wait at most this long for a response, and for an event to appear, to start and to end
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_limit)]
    patience: Duration,
    /// Write a report to this file: JSON (.json), Markdown (.md) or JUnit (.xml); repeatable
    #[arg(long, value_name = "FILE", value_parser = parse_report)]
    report: Vec<(PathBuf, ReportFormat)>,
}

#[derive(Clone, Copy)]
enum ReportFormat {
    Json,
    Markdown,
    Junit,
}

/// The longest time that an option permits.
const LIMIT_MAX: Duration = Duration::from_secs(60 * 60);

fn parse_url(text: &str) -> Result<Url, String> {
    let base = text.trim_end_matches('/');
    let base = base.strip_suffix("/metadata/scheduledevents").unwrap_or(base);
    Url::parse(base).map_err(|error| format!("{error}: write http://HOST:PORT"))
}

fn parse_cause(text: &str) -> Result<(EventKind, String), String> {
    let (kind, command) = text.split_once('=').ok_or("write TYPE=COMMAND")?;
    let kind = EventKind::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(kind));
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    Ok((kind.ok_or_else(not_a_type)?, command.to_owned()))
}

fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = forewarn_types::parse_duration(text).filter(|limit| *limit <= LIMIT_MAX);
    limit.ok_or_else(|| "not a duration of at most 1h: write 5s, 2m".to_owned())
}

fn parse_report(text: &str) -> Result<(PathBuf, ReportFormat), String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    let format = match ending {
        Some("json") => ReportFormat::Json,
        Some("md") => ReportFormat::Markdown,
        Some("xml") => ReportFormat::Junit,
        Some(_) | None => return Err("the name must end with .json, .md or .xml".to_owned()),
    };
    Ok((path, format))
}

pub(crate) fn command(arguments: &ConformanceArgs, options: &GlobalOptions) -> Result<()> {
    let assignment = Assignment {
        url: base(arguments)?,
        is_read_only: arguments.read_only,
        causes: arguments.event.clone(),
        advance: arguments.advance.clone(),
        watch: arguments.watch,
        patience: arguments.patience,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let report = runtime.block_on(forewarn_conformance::run(&assignment))?;
    print_report(options, &report.json(), |width| table(&report, width))?;
    arguments.report.iter().try_for_each(|(path, format)| write(&report, path, *format))?;
    fail_if_any(report.score().failed, "check", |failed| {
        format!("the endpoint does not keep the contract: {failed} failed")
    })
}

fn base(arguments: &ConformanceArgs) -> Result<Url> {
    let Some(machine) = &arguments.machine else { return Ok(arguments.url.clone()) };
    ensure!(!machine.is_empty(), "the name of the machine is empty");
    let base = arguments.url.reveal().trim_end_matches('/');
    Ok(Url::parse(&format!("{base}/vm/{}", percent::encode(machine)))?)
}

fn table(report: &Report, width: Width) -> String {
    let mut table = Table::new(width, &["check", "severity", "outcome", "details"]).dropping(&["severity"]);
    report.rows().for_each(|row| table.row(row));
    format!("{table}{}\n", report.summary())
}

fn write(report: &Report, path: &Path, format: ReportFormat) -> Result<()> {
    let text = match format {
        ReportFormat::Json => format!("{:#}\n", report.json()),
        ReportFormat::Markdown => report.markdown(),
        ReportFormat::Junit => report.junit(),
    };
    std::fs::write(path, text).with_context(|| format!("cannot write the report: {}", path.display()))
}
