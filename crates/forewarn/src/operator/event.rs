//! `forewarn event`: what is announced or under way.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::Subcommand;
use forewarn_control::{AllWord, EventSelection, EventView, NamedCommand};
use forewarn_types::Moment;

use super::ask::{self, Errand};
use super::identifier::{Beginning, short};
use super::session::{Session, escaped, print};
use super::table::{Table, Width, listed, some};
use super::{Named, Output, explain, say, visible};

const EXAMPLES: &str = "\
Examples:
  forewarn event approve 28512AF7       as much of an id as is unique, 4 characters at least
  forewarn event approve --tenant web   everything that web sees";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  forewarn event explain 28512AF7   an event, by as much of its id as is unique
  forewarn event explain web_3      a machine: why it saw no Terminate, or another NotBefore than expected
  forewarn event explain web        a scale set: also what clients of Azure were refused of it";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List events.
    Ls {
        /// Only those that this tenant sees.
        #[arg(long)]
        tenant: Option<Named>,
    },
    /// Show an event.
    Show {
        /// Its id, or how it begins.
        id: Beginning,
    },
    /// Explain an event: why it is there, who asked for it, who blocks, what comes next. Also one that is over, or was never seen.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Its id, or how it begins; or the machine or scale set of which one is missed.
        what: Named,
    },
    /// Approve events, as their owner would: they need not wait any longer.
    #[command(after_help = EXAMPLES)]
    Approve {
        /// Their ids, or how they begin.
        #[arg(value_name = "ID", required_unless_present = "tenant", conflicts_with = "tenant")]
        ids: Vec<Beginning>,
        /// All that this tenant sees.
        #[arg(long)]
        tenant: Option<Named>,
    },
    /// Take back an event that has not started.
    Cancel {
        /// Its id, or how it begins.
        id: Beginning,
    },
    /// Start an event now, whoever still waits.
    Start {
        /// Its id, or how it begins.
        id: Beginning,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls { tenant } => list(session, tenant.as_ref()),
        Command::Show { id } => show(session, &id),
        Command::Explain { what } => explain::whatever(session, &what),
        Command::Approve { ids, tenant: None } => approve(session, &ids),
        Command::Approve { ids: _, tenant: Some(Named(tenant)) } => approve_all(session, tenant),
        Command::Cancel { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::Cancel { event: event.id.clone() };
            ask::one(session, &Errand::new(format!("cancellation of {}", called(&event)), command)).map(drop)
        }
        Command::Start { id } => {
            let event = id.resolve(session)?;
            let command = NamedCommand::ForceStart { event: event.id.clone() };
            ask::one(session, &Errand::new(format!("start of {}", called(&event)), command))?;
            stand(session, &[event])
        }
    }
}

fn called(event: &EventView) -> String {
    format!("{}, event {}", say::what(event), event.id)
}

fn list(session: &Session, tenant: Option<&Named>) -> Result<()> {
    let query = tenant.map(|Named(name)| format!("?tenant={}", escaped(name))).unwrap_or_default();
    session.list(&format!("/v1/events{query}"), |events: Vec<EventView>| {
        Ok(table(&events, session.now()?, session.width()))
    })
}

fn table(events: &[EventView], now: Moment, width: Width) -> String {
    let usual = ["id", "tenant", "event", "status", "machines", "not before", "approved", "why"];
    let more = ["source", "seconds", "by", "progress", "work", "description"];
    let mut table = Table::with_more(width, &usual, &more);
    for event in events {
        let id = match width {
            Width::Usual => short(&event.id).to_owned(),
            Width::Wide => event.id.clone(),
        };
        let usual = [
            id,
            event.tenant.clone(),
            event.kind.clone(),
            event.status.clone(),
            listed(&event.resources),
            event.not_before.map(|moment| say::when(moment, now)).unwrap_or_default(),
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

fn show(session: &Session, id: &Beginning) -> Result<()> {
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
        ("not before", event.not_before.map(|moment| say::when(moment, now)).unwrap_or_default()),
        ("approved", if event.approved { "yes" } else { "no" }.to_owned()),
        ("by", event.by.unwrap_or_default()),
        ("why", event.cause),
        ("progress", event.progress),
    ];
    Table::facts(facts).to_string()
}

/// Approves for each tenant what is named of it, in one request: it counts whole or not at all.
fn approve(session: &Session, ids: &[Beginning]) -> Result<()> {
    let mut tenants: BTreeMap<String, Vec<EventView>> = BTreeMap::new();
    for id in ids {
        let event = id.resolve(session)?;
        tenants.entry(event.tenant.clone()).or_default().push(event);
    }
    for (tenant, events) in tenants {
        let ids: Vec<_> = events.iter().map(|event| event.id.clone()).collect();
        let phrase = match events.as_slice() {
            [event] => format!("approval of {}", called(event)),
            _ => format!("approval of events {}", some(&ids.iter().map(|id| short(id)).collect::<Vec<_>>())),
        };
        ask::one(
            session,
            &Errand::new(phrase, NamedCommand::Approve { tenant, events: EventSelection::Ids(ids) }),
        )?;
        stand(session, &events)?;
    }
    Ok(())
}

/// Approves what a tenant sees.
fn approve_all(session: &Session, tenant: String) -> Result<()> {
    let seen: Vec<EventView> = session.all(&format!("/v1/events?tenant={}", escaped(&tenant)))?;
    if seen.is_empty() {
        bail!("nothing to approve: {tenant} sees no event");
    }
    let phrase = format!("approval of all that {tenant} sees");
    let command = NamedCommand::Approve { tenant, events: EventSelection::Every(AllWord::All) };
    ask::one(session, &Errand::new(phrase, command))?;
    stand(session, &seen)
}

/// Says how events stand now.
fn stand(session: &Session, events: &[EventView]) -> Result<()> {
    match session.output() {
        Output::Json => return Ok(()),
        Output::Table | Output::Wide => {}
    }
    let now = session.now()?;
    for event in events {
        match session.look::<EventView>(&format!("/v1/events/{}", event.id))? {
            Some(event) => print(&visible(&format!("{}.\n", say::standing(&event, now))))?,
            None => print(&visible(&format!("{} is over.\n", say::what(event))))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::say::tests::event;
    use super::*;

    #[test]
    fn events_are_listed_by_how_their_ids_begin() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            table(&[event("Scheduled"), event("Started")], now, Width::Usual),
            "ID        TENANT  EVENT   STATUS     MACHINES  NOT BEFORE                    APPROVED  WHY\n\
             28512AF7  web     Reboot  Scheduled  web_0     2026-01-01 00:15:00Z (in 5m)  no        restart by the owner\n\
             28512AF7  web     Reboot  Started    web_0     -                             no        restart by the owner\n"
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
