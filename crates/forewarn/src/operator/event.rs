//! `forewarn event`: announced and started events.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Subcommand;
use forewarn_control::{AllWord, EventSelection, EventView, NamedCommand, Outcome, StartState};
use forewarn_types::Moment;

use super::event_id::{EventIdPrefix, short};
use super::sentences::Wording;
use super::session::{Session, escaped, print};
use super::table::{Table, Width, listed, some};
use super::task::{self, Task};
use super::{Name, OutputFormat, explain, sentences, visible};

const LIST_EXAMPLES: &str = "\
Examples:
  forewarn event ls --tenant web
  forewarn event ls --output wide       with complete ids and descriptions";

const CANCEL_EXAMPLES: &str = "\
Example:
  forewarn event cancel 28512AF7";

const APPROVE_EXAMPLES: &str = "\
Examples:
  forewarn event approve 28512AF7       a unique prefix of the id, at least 4 characters
  forewarn event approve --tenant web   all events of web";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  forewarn event explain 28512AF7   an event, by a unique prefix of its id
  forewarn event explain web_3      a machine: the reason for a missing Terminate event
  forewarn event explain web        a scale set, with the rejected requests of Azure clients";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List events
    #[command(before_help = LIST_EXAMPLES)]
    Ls {
        /// Only events of this tenant
        #[arg(long)]
        tenant: Option<Name>,
    },
    /// Show an event
    Show {
        /// Event id, or a unique prefix
        id: EventIdPrefix,
    },
    /// Explain an event: its reason, its caller, its blockers and its next step; also a completed or a missing one
    #[command(before_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Event id or a unique prefix; or the machine or scale set that lacks an event
        #[arg(value_name = "ID|NAME")]
        what: Name,
    },
    /// Approve events in place of the owner, so that they start without waiting for the notice
    #[command(before_help = APPROVE_EXAMPLES)]
    Approve {
        /// Event ids, or unique prefixes
        #[arg(value_name = "ID", required_unless_present = "tenant", conflicts_with = "tenant")]
        ids: Vec<EventIdPrefix>,
        /// Approve all events of this tenant
        #[arg(long)]
        tenant: Option<Name>,
    },
    /// Cancel an event that has not started
    #[command(before_help = CANCEL_EXAMPLES)]
    Cancel {
        /// Event id, or a unique prefix
        id: EventIdPrefix,
    },
    /// Start an event now, without waiting for approval or notice
    Start {
        /// Event id, or a unique prefix
        id: EventIdPrefix,
    },
    /// Repeat the unfinished actions of a started event now, also those that wait for an operator
    Retry {
        /// Event id, or a unique prefix
        id: EventIdPrefix,
    },
    /// Count the unfinished actions of a started event as failed
    GiveUp {
        /// Event id, or a unique prefix
        id: EventIdPrefix,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls { tenant } => list(session, tenant.as_ref()),
        Command::Show { id } => show(session, &id),
        Command::Explain { what } => explain::find(session, &what),
        Command::Approve { ids, tenant: None } => approve(session, &ids),
        Command::Approve { ids: _, tenant: Some(Name(tenant)) } => approve_all(session, tenant),
        Command::Cancel { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::Cancel { event: event.id.clone() };
            task::run(session, &Task::new(wording("cancellation", &event, "cancelled"), command)).map(drop)
        }
        Command::Start { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::ForceStart { event: event.id.clone() };
            let outcome = task::run(session, &Task::new(wording("start", &event, "started"), command))?;
            print_states(session, &outcome, &[event])
        }
        Command::Retry { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::Retry { event: event.id.clone() };
            task::run(session, &Task::new(wording("retry", &event, "retried"), command)).map(drop)
        }
        Command::GiveUp { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::GiveUp { event: event.id.clone() };
            task::run(session, &Task::new(wording("end", &event, "given up"), command)).map(drop)
        }
    }
}

/// The words for a task on one event, such as `approval` and `approved`.
fn wording(noun: &str, event: &EventView, done: &str) -> Wording {
    let what = format!("{} ({})", event.id, sentences::what(event));
    Wording {
        noun: format!("{noun} of event {what}"),
        done: format!("Event {what} {done}."),
        unchanged: format!("Event {what} is already {done}."),
    }
}

fn list(session: &Session, tenant: Option<&Name>) -> Result<()> {
    let query = tenant.map(|Name(name)| format!("?tenant={}", escaped(name))).unwrap_or_default();
    session.list(&format!("/v1/events{query}"), |events: Vec<EventView>| {
        Ok(table(&events, session.now()?, session.width()))
    })
}

fn table(events: &[EventView], now: Moment, width: Width) -> String {
    let usual = ["id", "tenant", "event", "status", "machines", "not before", "approved", "why"];
    let more = ["source", "seconds", "by", "progress", "work", "description"];
    let dropped = ["why", "tenant", "approved", "not before", "machines"];
    let mut table = Table::with_more(width, &usual, &more).dropping(&dropped);
    for event in events {
        let when: fn(Moment, Moment) -> String = match width {
            Width::Fit(_) => sentences::short_when,
            Width::Wide => sentences::when,
        };
        let (id, machines) = match width {
            Width::Fit(_) => (short(&event.id).to_owned(), some(&event.resources)),
            Width::Wide => (event.id.clone(), listed(&event.resources)),
        };
        let usual = [
            id,
            event.tenant.clone(),
            event.kind.clone(),
            event.status.clone(),
            machines,
            event.not_before.map(|moment| when(moment, now)).unwrap_or_default(),
            if event.approved { "yes" } else { "no" }.to_owned(),
            event.cause.clone(),
        ];
        let more = [
            event.source.clone(),
            event.duration_seconds.to_string(),
            event.by.clone().unwrap_or_default(),
            event.progress.clone(),
            event.work.to_string(),
            event.description.clone(),
        ];
        table.row_with_more(usual, more);
    }
    table.to_string()
}

fn show(session: &Session, id: &EventIdPrefix) -> Result<()> {
    let event = id.resolve(session)?;
    session.show(&format!("/v1/events/{}", event.id), |event| Ok(facts(event, session.now()?)))
}

fn facts(event: EventView, now: Moment) -> String {
    let facts = [
        ("id", event.id),
        ("tenant", event.tenant),
        ("event", event.kind),
        ("status", event.status),
        ("machines", listed(event.resources)),
        ("source", event.source),
        ("description", event.description),
        ("seconds", event.duration_seconds.to_string()),
        ("not before", event.not_before.map(|moment| sentences::when(moment, now)).unwrap_or_default()),
        ("approved", if event.approved { "yes" } else { "no" }.to_owned()),
        ("by", event.by.unwrap_or_default()),
        ("why", event.cause),
        ("progress", event.progress),
    ];
    Table::facts(facts).to_string()
}

/// Approves the events of each tenant in one request: all or none.
fn approve(session: &Session, ids: &[EventIdPrefix]) -> Result<()> {
    let mut tenants: BTreeMap<String, Vec<EventView>> = BTreeMap::new();
    for id in ids {
        let event = id.resolve(session)?;
        tenants.entry(event.tenant.clone()).or_default().push(event);
    }
    for (tenant, events) in tenants {
        let ids: Vec<_> = events.iter().map(|event| event.id.clone()).collect();
        let wording = match events.as_slice() {
            [event] => wording("approval", event, "approved"),
            _ => {
                let list = some(&ids.iter().map(|id| short(id)).collect::<Vec<_>>());
                Wording {
                    noun: format!("approval of events {list}"),
                    done: format!("Events {list} approved."),
                    unchanged: format!("Events {list} are already approved."),
                }
            }
        };
        let command = NamedCommand::Approve { tenant, events: EventSelection::Ids(ids) };
        let outcome = task::run(session, &Task::new(wording, command))?;
        print_states(session, &outcome, &events)?;
    }
    Ok(())
}

/// Approves all events of a tenant.
fn approve_all(session: &Session, tenant: String) -> Result<()> {
    let events: Vec<EventView> = session.all(&format!("/v1/events?tenant={}", escaped(&tenant)))?;
    if events.is_empty() {
        bail!("nothing to approve: {tenant} has no events");
    }
    let wording = Wording {
        noun: format!("approval of all events of {tenant}"),
        done: format!("All events of {tenant} approved."),
        unchanged: format!("All events of {tenant} are already approved."),
    };
    let command = NamedCommand::Approve { tenant, events: EventSelection::Every(AllWord::All) };
    let outcome = task::run(session, &Task::new(wording, command))?;
    print_states(session, &outcome, &events)
}

/// Prints the states of events after a decision about them.
fn print_states(session: &Session, outcome: &Outcome, events: &[EventView]) -> Result<()> {
    match session.output() {
        OutputFormat::Data(_) => return Ok(()),
        OutputFormat::Text(_) => {}
    }
    for event in events {
        let state = match outcome.start_of(event.work) {
            Some(start) if start.state != StartState::Waiting => {
                let not_before = event.not_before.filter(|_| start.state != StartState::Started);
                let decided = EventView { progress: start.progress.clone(), not_before, ..event.clone() };
                sentences::state(&decided, outcome.now)
            }
            // The view of an event that waits names the other tenants that have not approved.
            Some(_) | None => match session.find::<EventView>(&format!("/v1/events/{}", event.id))? {
                Some(event) => sentences::state(&event, outcome.now),
                None => format!("{} has ended", sentences::what(event)),
            },
        };
        print(&visible(&format!("{state}.\n")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sentences::tests::event;
    use super::*;

    #[test]
    fn events_are_listed_with_short_ids() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            table(&[event("Scheduled"), event("Started")], now, Width::USUAL),
            "ID        TENANT  EVENT   STATUS     MACHINES  NOT BEFORE         APPROVED\n\
             28512AF7  web     Reboot  Scheduled  web_0     00:15:00Z (in 5m)  no\n\
             28512AF7  web     Reboot  Started    web_0     -                  no\n"
        );
        let before: Moment = "2025-12-31T23:55:00Z".parse().unwrap();
        assert_eq!(
            table(&[event("Scheduled")], before, Width::USUAL),
            "ID        EVENT   STATUS     MACHINES  NOT BEFORE                     APPROVED\n\
             28512AF7  Reboot  Scheduled  web_0     2026-01-01 00:15:00Z (in 20m)  no\n"
        );
        assert_eq!(
            table(&[event("Started")], now, Width::Fit(100)),
            "ID        TENANT  EVENT   STATUS   MACHINES  NOT BEFORE  APPROVED  WHY\n\
             28512AF7  web     Reboot  Started  web_0     -           no        restart by the owner\n"
        );
        let wide = table(&[event("Started")], now, Width::Wide);
        assert!(wide.contains("\n28512AF7-C957-4500-9BC4-842D6FB531E4  web "), "{wide}");
    }

    #[test]
    fn an_event_is_shown_whole() {
        let shown = facts(event("Started"), "2026-01-01T00:10:00Z".parse().unwrap());
        assert!(shown.contains("by           the failure of its host\n"), "{shown}");
        assert!(shown.contains("not before   -\n"), "{shown}");
    }
}
