//! `forewarn rollout` and `forewarn brake`: work over many hosts, and what keeps it from spreading.

mod options;
mod show;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use forewarn_control::{AuditPage, FAILURES_MAX, NamedCommand, RolloutEntry, RolloutView, Unfinished};
use forewarn_explain::PreviewView;

use super::ask::{self, Errand, Patience};
use super::session::{Session, print};
use super::{Named, Output, visible, wait};
use options::{Selection, TermsOptions};

const START_EXAMPLES: &str = "\
Examples:
  forewarn rollout start h1 h2 h3                        one update domain after the other
  forewarn rollout start --all --dry-run                 only show what would happen
  forewarn rollout start --all --work reboot --at-once 5 --tenant-share 25%
  forewarn rollout start --zone 1 --window \"mon-fri 22:00-06:00 +01:00\" --pause-between 10m --confirm first";

const CHANGE_EXAMPLES: &str = "\
Examples:
  forewarn rollout change 3 --at-once 10                 the other terms stay
  forewarn rollout change 3 --window any --remove h7
  forewarn rollout change 3 --add h9                     also one on which something failed";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start work on hosts, group by group: no tenant has two update domains in planned work at once.
    #[command(after_help = START_EXAMPLES)]
    Start {
        #[command(flatten)]
        work: Work,
        /// Only show what would happen, as `rollout preview` does.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        patience: Patience,
    },
    /// Show what a rollout would do: its steps, how long it takes, what each tenant will see.
    Preview(Work),
    /// List rollouts that are not over.
    Ls {
        /// Also those that are over, as long as they are remembered.
        #[arg(long)]
        all: bool,
    },
    /// Show a rollout: how far it is, what it waits for, what failed.
    Status {
        /// Its number.
        id: u64,
    },
    /// Announce nothing more until it is resumed; what is announced keeps its time.
    Pause {
        /// Its number.
        id: u64,
        /// Take back what is announced and has not started; its hosts wait for their turn again.
        #[arg(long)]
        take_back: bool,
    },
    /// Go on: after a pause, after failures, or past a gate.
    Resume {
        /// Its number.
        id: u64,
    },
    /// Change the terms of a rollout under way, or its hosts. What is announced stays.
    #[command(after_help = CHANGE_EXAMPLES)]
    Change(Change),
    /// End a rollout: what has not started is taken back, and no further host follows.
    Cancel {
        /// Its number.
        id: u64,
    },
}

/// What is done to which hosts, and how.
#[derive(Args)]
pub(crate) struct Work {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    terms: TermsOptions,
}

#[derive(Args)]
pub(crate) struct Change {
    /// Its number.
    id: u64,
    /// A host that comes after those that wait.
    #[arg(long, value_name = "HOST")]
    add: Vec<Named>,
    /// A host that has not been announced and shall not be.
    #[arg(long, value_name = "HOST")]
    remove: Vec<Named>,
    #[command(flatten)]
    terms: TermsOptions,
}

#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Brake {
    /// Nothing starts; what is announced waits.
    On,
    /// What has waited starts.
    Off,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let (phrase, command) = match command {
        Command::Start { work, dry_run: true, .. } | Command::Preview(work) => {
            return session
                .ask("/v1/rollouts/preview", &work.entry(), |view: PreviewView| Ok(show::preview(&view)));
        }
        Command::Start { work, patience, .. } => return start(session, &work, patience),
        Command::Ls { all } => {
            return session.list(&format!("/v1/rollouts?ended={all}"), |rollouts: Vec<RolloutView>| {
                Ok(show::table(&rollouts))
            });
        }
        Command::Status { id } => {
            let now = session.now()?;
            return session
                .show(&format!("/v1/rollouts/{id}"), |view: RolloutView| Ok(show::status(&view, now)));
        }
        Command::Pause { id, take_back } => {
            (format!("pause of rollout {id}"), NamedCommand::PauseRollout { rollout: id, take_back })
        }
        Command::Resume { id } => {
            (format!("resumption of rollout {id}"), NamedCommand::ResumeRollout { rollout: id })
        }
        Command::Change(change) => (format!("change of rollout {}", change.id), change.command()),
        Command::Cancel { id } => {
            (format!("cancellation of rollout {id}"), NamedCommand::CancelRollout { rollout: id })
        }
    };
    ask::one(session, &Errand::new(phrase, command)).map(drop)
}

/// Starts a rollout; if that is wanted, says how it ended.
fn start(session: &Session, work: &Work, patience: Patience) -> Result<()> {
    let outcome =
        ask::one(session, &Errand::new(work.selection.phrase(), NamedCommand::StartRollout(work.entry())))?;
    let Some(id) = outcome.rollouts.first() else { return Ok(()) };
    let path = format!("/v1/rollouts/{id}");
    if outcome.work.is_empty() && session.output() == Output::Table {
        let view: RolloutView = session.get(&path)?;
        eprintln!("Rollout {id} {}", visible(&view.text));
    }
    if !patience.wait {
        return Ok(());
    }
    let unfinished = Unfinished { work: outcome.work, rollouts: vec![*id], ended: Vec::new() };
    wait::until_over(session, unfinished)?;
    let view: RolloutView = session.get(&path)?;
    if session.output() == Output::Table {
        print(&format!("Rollout {id} is over, {}.\n", visible(&view.text)))?;
    }
    let left = view.failed.len() + view.skipped.len() + view.waiting.len();
    if left > 0 {
        let reasons = reasons(session, *id)?;
        bail!(
            "{left} hosts were not done, or not without failures{reasons}\n  hint: forewarn rollout status {id}"
        );
    }
    Ok(())
}

/// Entries of the trail that are searched for the reasons of failures.
const SEARCHED_MAX: usize = 1_000;

/// The reasons that driver programs gave for failures of a rollout, each on a line of its own.
fn reasons(session: &Session, id: u64) -> Result<String> {
    let page: AuditPage =
        session.get(&format!("/v1/audit?kind=completed&rollout={id}&limit={SEARCHED_MAX}"))?;
    let failures = page.items.iter().rev().filter_map(|entry| {
        let (machine, reason) = (entry.machines.first()?, entry.reason.as_ref()?);
        Some(format!("\n  {machine}: {reason}"))
    });
    Ok(failures.take(FAILURES_MAX).collect())
}

impl Work {
    fn entry(&self) -> RolloutEntry {
        RolloutEntry { work: self.selection.work(), hosts: self.selection.hosts(), terms: self.terms.entry() }
    }
}

impl Change {
    fn command(self) -> NamedCommand {
        let names = |hosts: Vec<Named>| hosts.into_iter().map(|Named(host)| host).collect();
        NamedCommand::ChangeRollout {
            rollout: self.id,
            terms: self.terms.entry(),
            add: names(self.add),
            remove: names(self.remove),
        }
    }
}

pub(super) fn brake(session: &Session, brake: Brake) -> Result<()> {
    let errand = match brake {
        Brake::On => Errand::new("brake on: nothing starts", NamedCommand::BrakeOn {}),
        Brake::Off => Errand::new("brake off", NamedCommand::BrakeOff {}),
    };
    ask::one(session, &errand).map(drop)
}
