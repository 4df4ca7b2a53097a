//! `forewarn host maintenance`: maintenance mode of hosts.

use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{HostStepWord, LeavingWord, MaintenanceEntry, MaintenanceModeView, NamedCommand};
use forewarn_types::Span;

use super::Name;
use super::sentences::Wording;
use super::task::{NoticeRequirement, Task, WaitArgs};

const ENTER_EXAMPLES: &str = "\
Examples:
  forewarn host maintenance enter h1 --wait
  forewarn host maintenance enter h1 --work 'new power supply'
  forewarn host maintenance enter h1 --move stop --kind reboot";

const EXIT_EXAMPLES: &str = "\
Examples:
  forewarn host maintenance exit h1
  forewarn host maintenance exit h1 --return --wait";

#[derive(Subcommand)]
pub(crate) enum ModeCommand {
    /// Close a host to machines and have its machines leave, as announced; then the empty host may have its work
    #[command(before_help = ENTER_EXAMPLES)]
    Enter(EnterArgs),
    /// Open a host in maintenance mode to machines again; announced work of the mode is withdrawn
    #[command(before_help = EXIT_EXAMPLES)]
    Exit(ExitArgs),
}

#[derive(Args)]
pub(crate) struct EnterArgs {
    /// Host
    host: Name,
    /// Way in which the machines leave [default: live]
    #[arg(long = "move", value_enum, value_name = "WAY")]
    way: Option<Way>,
    /// Work on the empty host, for the driver and for people, such as "kernel 6.12.9"
    #[arg(long, value_name = "TEXT")]
    work: Option<String>,
    /// Kind of work on the empty host [default: update if `--work` is given, else none]
    #[arg(long, value_enum)]
    kind: Option<StepKind>,
    /// Take no step on the host itself, also if an earlier command asked for one
    #[arg(long, conflicts_with_all = ["work", "kind"])]
    no_work: bool,
    /// Announced length of the interruption [default: 5s for a live migration]
    #[arg(long, value_name = "DURATION")]
    duration: Option<Span>,
    #[command(flatten)]
    waiting: WaitArgs,
    #[command(flatten)]
    notice: NoticeRequirement,
}

#[derive(Args)]
pub(crate) struct ExitArgs {
    /// Host
    host: Name,
    /// Bring the machines that left back in the way in which they left; stopped machines are started
    #[arg(long = "return")]
    return_guests: bool,
    /// Wait until the machines have returned, not only for the announcement
    #[arg(long, requires = "return_guests")]
    wait: bool,
    #[command(flatten)]
    notice: NoticeRequirement,
}

/// The way in which machines leave a host.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// Moved live to other hosts
    Live,
    /// Redeployed on other hosts; memory and the ephemeral disk are lost
    Redeploy,
    /// Stopped; they stay on the host, off
    Stop,
}

/// The work on the empty host.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StepKind {
    /// Update the host
    Update,
    /// Restart the host
    Reboot,
}

impl ModeCommand {
    /// The task, and the wish to wait for its end.
    pub(super) fn task(self) -> (Task, WaitArgs) {
        match self {
            Self::Enter(enter) => enter.task(),
            Self::Exit(exit) => exit.task(),
        }
    }
}

impl EnterArgs {
    fn task(self) -> (Task, WaitArgs) {
        let Self { host: Name(host), way, work, kind, no_work, duration, waiting, notice } = self;
        let wording = Wording {
            noun: format!("maintenance mode of {host}"),
            done: format!("{host} is in maintenance mode."),
            unchanged: format!("{host} is in maintenance mode already, or about to enter it in this way."),
        };
        let leaving = way.map_or(LeavingWord::Live, |way| match way {
            Way::Live => LeavingWord::Live,
            Way::Redeploy => LeavingWord::Redeploy,
            Way::Stop => LeavingWord::Stop,
        });
        let kind = kind.map(|kind| match kind {
            StepKind::Update => HostStepWord::Update,
            StepKind::Reboot => HostStepWord::Reboot,
        });
        let entry = MaintenanceEntry { host, leaving, work, kind, no_work, duration };
        (Task::new(wording, NamedCommand::EnterMaintenance(entry)).requiring(notice), waiting)
    }
}

impl ExitArgs {
    fn task(self) -> (Task, WaitArgs) {
        let Self { host: Name(host), return_guests, wait, notice } = self;
        let wording = Wording {
            noun: format!("return of machines to {host}"),
            done: format!("{host} is no longer in maintenance mode."),
            unchanged: format!("{host} is not in maintenance mode."),
        };
        let task = Task::new(wording, NamedCommand::ExitMaintenance { host, return_guests });
        (task.requiring(notice), WaitArgs { wait })
    }
}

/// The state of the mode, as a part of the state of a host.
pub(super) fn state_word(mode: &MaintenanceModeView) -> &'static str {
    match mode.state.as_str() {
        "entering" => "entering maintenance mode",
        "incomplete" => "maintenance mode incomplete",
        _ => "in maintenance mode",
    }
}
