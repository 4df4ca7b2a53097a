//! `forewarn rollout` and `forewarn brake`: work on many hosts, and the switch that holds it back.

mod options;
mod show;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use forewarn_control::{AuditPage, FAILURES_MAX, NamedCommand, RolloutEntry, RolloutView, SettingsView};
use forewarn_explain::PreviewView;

use super::sentences::Wording;
use super::session::{Session, print};
use super::table::Table;
use super::task::{self, NoticeRequirement, Task, WaitArgs};
use super::wait::Awaited;
use super::{Name, OutputFormat, cluster, visible, wait};
use options::{HostSelectionArgs, TermsArgs};

const START_EXAMPLES: &str = "\
Examples:
  forewarn rollout start h1 h2 h3                        one update domain after the other
  forewarn rollout start --all --dry-run                 only show the plan
  forewarn rollout start --all --kind reboot --at-once 5 --tenant-share 25%
  forewarn rollout start --zone 1 --window \"mon-fri 22:00-06:00 +01:00\" --confirm first";

const SET_EXAMPLES: &str = "\
Examples:
  forewarn rollout set 3 --at-once 10                 the other terms keep their value
  forewarn rollout set 3 --window any --remove h7
  forewarn rollout set 3 --add h9                     also to retry a failed host";

const PREVIEW_EXAMPLES: &str = "\
Example:
  forewarn rollout preview --zone 1 --kind reboot --at-once 5";

const SHOW_EXAMPLES: &str = "\
Example:
  forewarn rollout show 3";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start work on hosts, group by group; a tenant never has planned work in two update domains at once
    #[command(before_help = START_EXAMPLES)]
    Start {
        #[command(flatten)]
        rollout: RolloutArgs,
        /// Only show the plan, like `rollout preview`
        #[arg(long, conflicts_with = "wait")]
        dry_run: bool,
        #[command(flatten)]
        waiting: WaitArgs,
        #[command(flatten)]
        notice: NoticeRequirement,
    },
    /// Show the plan of a rollout: its steps, its duration, and the events of each tenant
    #[command(before_help = PREVIEW_EXAMPLES)]
    Preview(RolloutArgs),
    /// List rollouts that have not ended
    Ls {
        /// Include ended rollouts, as far as they are stored
        #[arg(long)]
        all: bool,
    },
    /// Show the progress of a rollout: its hosts, its next step, its failures
    #[command(before_help = SHOW_EXAMPLES, alias = "status")]
    Show {
        /// Rollout number
        id: u64,
    },
    /// Pause a rollout: it announces no further events; announced events keep their time
    Pause {
        /// Rollout number
        id: u64,
        /// Withdraw announced events that have not started; their hosts wait again
        #[arg(long)]
        take_back: bool,
    },
    /// Resume a rollout after a pause, after failures, or at a confirmation
    Resume {
        /// Rollout number
        id: u64,
    },
    /// Change the terms or the hosts of a running rollout; announced events stay
    #[command(before_help = SET_EXAMPLES, alias = "change")]
    Set(RolloutChangeArgs),
    /// Cancel a rollout: withdraw its events that have not started, and skip the remaining hosts
    Cancel {
        /// Rollout number
        id: u64,
    },
}

/// The hosts, the work and the terms of a rollout.
#[derive(Args)]
pub(crate) struct RolloutArgs {
    #[command(flatten)]
    selection: HostSelectionArgs,
    #[command(flatten)]
    terms: TermsArgs,
}

#[derive(Args)]
pub(crate) struct RolloutChangeArgs {
    /// Rollout number
    id: u64,
    /// Host to append to the waiting hosts; repeatable
    #[arg(long, value_name = "HOST")]
    add: Vec<Name>,
    /// Waiting host to remove; repeatable
    #[arg(long, value_name = "HOST")]
    remove: Vec<Name>,
    #[command(flatten)]
    terms: TermsArgs,
}

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum BrakeCommand {
    /// Show the state of the brake
    Show,
    /// Hold back the start of all events
    On,
    /// Release the events that wait
    Off,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let (wording, command) = match command {
        Command::Start { rollout, dry_run: true, .. } | Command::Preview(rollout) => {
            let preview = session.post("/v1/rollouts/preview", &rollout.entry()?)?;
            let text = |view: PreviewView| Ok(show::preview(&view, session.width()));
            return session.present_named(preview, show::hosts, text);
        }
        Command::Start { rollout, waiting, notice, .. } => return start(session, &rollout, waiting, notice),
        Command::Ls { all } => {
            return session.list(&format!("/v1/rollouts?ended={all}"), |rollouts: Vec<RolloutView>| {
                Ok(show::table(&rollouts, session.width()))
            });
        }
        Command::Show { id } => {
            let now = session.now()?;
            return session
                .show(&format!("/v1/rollouts/{id}"), |view: RolloutView| Ok(show::status(&view, now)));
        }
        Command::Pause { id, take_back } => {
            (wording("pause", id, "paused"), NamedCommand::PauseRollout { rollout: id, take_back })
        }
        Command::Resume { id } => {
            (wording("resumption", id, "resumed"), NamedCommand::ResumeRollout { rollout: id })
        }
        Command::Set(change) => (wording("change", change.id, "changed"), change.command()),
        Command::Cancel { id } => {
            (wording("cancellation", id, "cancelled"), NamedCommand::CancelRollout { rollout: id })
        }
    };
    task::run(session, &Task::new(wording, command)).map(drop)
}

/// The words for a task on a rollout, such as `pause` and `paused`.
fn wording(noun: &str, id: u64, done: &str) -> Wording {
    Wording {
        noun: format!("{noun} of rollout {id}"),
        done: format!("Rollout {id} {done}."),
        unchanged: format!("Rollout {id}: nothing to change."),
    }
}

/// Starts a rollout; with `--wait`, waits for its end and prints the result.
fn start(
    session: &Session,
    rollout: &RolloutArgs,
    waiting: WaitArgs,
    notice: NoticeRequirement,
) -> Result<()> {
    let noun = rollout.selection.phrase();
    let wording = Wording {
        done: format!("Rollout planned: {noun}."),
        unchanged: format!("Nothing to do: {noun}."),
        noun,
    };
    let task = Task::new(wording, NamedCommand::StartRollout(rollout.entry()?)).requiring(notice);
    let outcome = task::run(session, &task)?;
    let Some(id) = outcome.rollouts.first() else { return Ok(()) };
    let path = format!("/v1/rollouts/{id}");
    if outcome.work.is_empty() && matches!(session.output(), OutputFormat::Text(_)) {
        let view: RolloutView = session.get(&path)?;
        eprintln!("Rollout {id} {}", visible(&view.text));
    }
    if !waiting.wait {
        return Ok(());
    }
    let mut awaited = Awaited::default();
    awaited.add(&outcome);
    wait::until_over(session, awaited)?;
    let view: RolloutView = session.get(&path)?;
    if matches!(session.output(), OutputFormat::Text(_)) {
        print(&format!("Rollout {id} has ended: {}.\n", visible(&view.text)))?;
    }
    let left = view.failed.len() + view.skipped.len() + view.waiting.len();
    if left > 0 {
        let reasons = reasons(session, *id)?;
        bail!("{left} hosts failed or were skipped{reasons}\n  hint: forewarn rollout show {id}");
    }
    Ok(())
}

/// Entries of the audit log that are searched for the reasons of failures.
const SEARCHED_MAX: usize = 1_000;

/// The reasons of the driver for the failures of a rollout, one per line.
fn reasons(session: &Session, id: u64) -> Result<String> {
    let page: AuditPage =
        session.get(&format!("/v1/audit?kind=completed&rollout={id}&limit={SEARCHED_MAX}"))?;
    let failures = page.items.iter().rev().filter_map(|entry| {
        let (object, reason) = (entry.machines.first().or(entry.hosts.first())?, entry.reason.as_ref()?);
        Some(format!("\n  {object}: {reason}"))
    });
    Ok(failures.take(FAILURES_MAX).collect())
}

impl RolloutArgs {
    fn entry(&self) -> Result<RolloutEntry> {
        self.selection.entry(self.terms.entry())
    }
}

impl RolloutChangeArgs {
    fn command(self) -> NamedCommand {
        let names = |hosts: Vec<Name>| hosts.into_iter().map(|Name(host)| host).collect();
        NamedCommand::ChangeRollout {
            rollout: self.id,
            terms: self.terms.entry(),
            add: names(self.add),
            remove: names(self.remove),
        }
    }
}

pub(super) fn brake(session: &Session, brake: BrakeCommand) -> Result<()> {
    let wording = |noun: &str, done: &str, unchanged: &str| Wording {
        noun: noun.to_owned(),
        done: done.to_owned(),
        unchanged: unchanged.to_owned(),
    };
    let task = match brake {
        BrakeCommand::Show => {
            return session.show("/v1/settings", |settings: SettingsView| {
                Ok(Table::facts([("brake", cluster::brake(settings.brake).to_owned())]).to_string())
            });
        }
        BrakeCommand::On => {
            let wording = wording("brake", "The brake is on: no event starts.", "The brake is already on.");
            Task::new(wording, NamedCommand::BrakeOn {})
        }
        BrakeCommand::Off => {
            let wording = wording("release of the brake", "The brake is off.", "The brake is already off.");
            Task::new(wording, NamedCommand::BrakeOff {})
        }
    };
    task::run(session, &task).map(drop)
}
