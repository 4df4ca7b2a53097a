//! `forewarn wait`: waits until conditions hold, for tests and scripts.
//!
//! The server holds every request: the live stream of the audit log wakes the command when an entry may have changed a
//! condition, and unfinished work is a held request. The stream begins at the entry that was the last one before the
//! conditions were checked, so nothing that happens in between is missed.

mod approval;
mod condition;
mod idleness;
mod log;
mod machine_name;
mod met;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use forewarn_control::AuditEntry;
use forewarn_types::{Span, show_duration};
use serde_json::json;

use super::session::{Session, print, print_data};
use super::visible::one_line;
use super::{Name, OutputFormat};
use crate::client::StreamOutcome;
use crate::event_pattern::EventPattern;
use crate::exit_code::ExitError;
use condition::Condition;
use met::Met;

pub(crate) const EXAMPLES: &str = "\
Examples:
  forewarn wait --enrolled solo                    a machine of solo has polled
  forewarn wait --event Reboot:web_0 --timeout 10s
  forewarn wait --approved web_0                   also if the event has started or completed meanwhile
  forewarn wait --idle                             no work is in progress or announced

Exit code 3: the conditions did not hold in time.";

#[derive(Args)]
#[command(group = ArgGroup::new("condition").required(true).multiple(true))]
pub(crate) struct WaitForArgs {
    /// Wait until this tenant, or the tenant of this machine, is enrolled: its machines get events; repeatable
    #[arg(long, value_name = "NAME", group = "condition")]
    enrolled: Vec<Name>,
    /// Wait until such an event is announced; TYPE is Freeze, Reboot, Redeploy, Preempt or Terminate [default: any
    /// event]; repeatable
    #[arg(
        long,
        value_name = "[TYPE][:VM]",
        group = "condition",
        num_args = 0..=1,
        default_missing_value = ""
    )]
    event: Vec<EventPattern>,
    /// Wait until this event, or the latest event of this machine, is approved; repeatable
    #[arg(long, value_name = "EVENT|VM", group = "condition")]
    approved: Vec<Name>,
    /// Wait until no work is in progress or announced
    #[arg(long, group = "condition")]
    idle: bool,
    /// Count events and approvals after this entry of the audit log, and only these, also if they are over; `entry` in
    /// the JSON output of a command [default: what is announced now]
    #[arg(long, value_name = "ENTRY")]
    since: Option<u64>,
    /// Maximum time to wait; after it, the exit code is 3
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    timeout: Span,
}

pub(super) fn run(session: &Session, arguments: &WaitForArgs) -> Result<()> {
    let Span(timeout) = arguments.timeout;
    let mut waiting = Waiting {
        session,
        deadline: Instant::now().checked_add(timeout),
        position: log::end(session)?,
        conditions: Vec::new(),
    };
    for mut condition in arguments.conditions(session)? {
        let met = condition.check(session, arguments.since)?;
        waiting.conditions.push((condition, met));
    }
    waiting.follow()?;
    let idle = if arguments.idle {
        IdleCheck::Asked(idleness::wait(session, waiting.deadline)?)
    } else {
        IdleCheck::Unasked
    };
    waiting.report(&idle, timeout)
}

impl WaitForArgs {
    fn conditions(&self, session: &Session) -> Result<Vec<Condition>> {
        let enrolled = self.enrolled.iter().map(|Name(name)| Condition::enrolled(session, name));
        let events = self.event.iter().map(|pattern| Condition::event(session, pattern));
        let approved = self.approved.iter().map(|Name(name)| Condition::approved(session, name));
        enrolled.chain(events).chain(approved).collect()
    }
}

/// The result of the wait for the end of all work.
enum IdleCheck {
    Unasked,
    /// None if work is left.
    Asked(Option<Met>),
}

/// Conditions, and the part of the audit log that has been read.
struct Waiting<'a> {
    session: &'a Session,
    /// None if it is too far away to be told.
    deadline: Option<Instant>,
    /// Position in the live stream.
    position: String,
    conditions: Vec<(Condition, Option<Met>)>,
}

impl Waiting<'_> {
    /// Follows the audit log until every condition has been met, or the time is over.
    fn follow(&mut self) -> Result<()> {
        while self.conditions.iter().any(|(_, met)| met.is_none()) {
            let mut received = None;
            let conditions = &self.conditions;
            let is_awaited = |entry: &AuditEntry| {
                conditions.iter().any(|(condition, met)| met.is_none() && condition.depends_on(entry))
            };
            let each = |data: &str| match serde_json::from_str::<AuditEntry>(data) {
                // Entries that the retention has deleted are reported in another form.
                Err(_) => ControlFlow::Continue(()),
                Ok(entry) if is_awaited(&entry) => {
                    received = Some(entry);
                    ControlFlow::Break(())
                }
                Ok(_) => ControlFlow::Continue(()),
            };
            let outcome = self.session.follow_from("/v1/watch", &mut self.position, self.deadline, each);
            match outcome.context("cannot follow the audit log")? {
                StreamOutcome::Stopped => {}
                StreamOutcome::TimedOut => return Ok(()),
            }
            if let Some(entry) = received {
                for (condition, met) in self.conditions.iter_mut().filter(|(_, met)| met.is_none()) {
                    *met = condition.observe(self.session, &entry)?;
                }
            }
        }
        Ok(())
    }

    /// Prints what has happened; or fails with what was observed instead.
    fn report(&self, idle: &IdleCheck, timeout: Duration) -> Result<()> {
        let mut observed = Vec::new();
        for (condition, _) in self.conditions.iter().filter(|(_, met)| met.is_none()) {
            observed.push(condition.observed(self.session)?);
        }
        let mut met: Vec<_> = self.conditions.iter().filter_map(|(_, met)| met.as_ref()).collect();
        match idle {
            IdleCheck::Unasked => {}
            IdleCheck::Asked(Some(idle)) => met.push(idle),
            IdleCheck::Asked(None) => observed.push(idleness::observed(self.session)?),
        }
        if observed.is_empty() {
            return self.print(&met);
        }
        let span = show_duration(timeout);
        Err(ExitError::timeout(format!("timed out after {span}: {}", observed.join("\n"))).into())
    }

    /// Prints the met conditions. The name of one is its event, else the words of the caller.
    fn print(&self, met: &[&Met]) -> Result<()> {
        let names =
            |met: &[&Met]| met.iter().filter_map(|met| met.event.clone().or(met.name.clone())).collect();
        match self.session.output() {
            OutputFormat::Data(format) => print_data(format, &json!({ "conditions": met }), |_| names(met)),
            OutputFormat::Text(_) => {
                let texts: Vec<_> = met.iter().map(|met| format!("{}.", met.text)).collect();
                print(&format!("{}\n", one_line(&texts.join(" "))))
            }
        }
    }
}
