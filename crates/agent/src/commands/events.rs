//! `forewarn-agent events`: what the endpoint says now. It asks itself; no agent needs to run.

use anyhow::{Result, bail};
use clap::Args;
use forewarn_agent_core::{Seen, Status};
use forewarn_cli_support::table::{Table, some};
use forewarn_cli_support::visible::{self, one_line};
use forewarn_client::{Client, MalformedEvent, News, Sighting};
use forewarn_types::show_duration;
use serde_json::json;

use super::{Options, block_on, print};
use crate::config::Config;

/// Show the events that the endpoint tells of now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forewarn-agent events\n  forewarn-agent events --json | jq '.[].id'")]
pub(super) struct Arguments {
    /// As JSON: a list.
    #[arg(long)]
    json: bool,
}

/// Events as they are told of now, and for whom.
pub(super) struct Listing {
    pub(super) events: Vec<Seen>,
    /// Events that cannot be read. They are named, and nothing is done about them.
    malformed: Vec<MalformedEvent>,
    pub(super) me: String,
    date: forewarn_types::Timestamp,
}

impl Listing {
    /// Asks for it.
    pub(super) async fn ask(client: &mut Client, config: &Config) -> Result<Self> {
        let me = match &config.name {
            Some(name) => name.clone(),
            None => client.name().await?,
        };
        let Sighting { document, edition, date, .. } = match client.poll().await? {
            News::Document(sighting) => sighting,
            News::Unchanged { .. } | News::NoNews { .. } => bail!(
                "there is no document yet: Scheduled Events are being enabled\n  hint: this may take two minutes; try again"
            ),
        };
        let mut events = Vec::new();
        let mut malformed = document.malformed;
        for event in &document.events {
            match Seen::read(event, edition) {
                Ok(seen) => events.push(seen),
                Err(problem) => malformed.push(problem),
            }
        }
        Ok(Self { events, malformed, me, date })
    }

    /// Names the events that cannot be read.
    fn warn(&self) {
        for MalformedEvent { id, problem } in &self.malformed {
            let id = id.map_or("without a readable id".to_owned(), |id| id.to_string());
            eprintln!("skipped a malformed event: {id}: {}", one_line(problem));
        }
    }

    /// How long it is until an event may start by itself.
    pub(super) fn left(&self, seen: &Seen) -> Option<std::time::Duration> {
        let is_scheduled = seen.status == Status::Scheduled;
        seen.not_before.filter(|_| is_scheduled).map(|at| at.0.since(self.date))
    }

    /// Rows of a table, for some of them.
    pub(super) fn table<'a>(&self, events: impl IntoIterator<Item = &'a Seen>) -> Table {
        let headings = [
            "id",
            "type",
            "status",
            "not before",
            "left",
            "source",
            "duration",
            "mine",
            "resources",
            "description",
        ];
        let mut table = Table::new(&headings);
        for seen in events {
            let duration = seen.duration().map(show_duration).unwrap_or_default();
            table.row([
                seen.id.to_string(),
                seen.kind.clone(),
                seen.status.as_str().to_owned(),
                seen.not_before.map(|at| at.to_string()).unwrap_or_default(),
                self.left(seen).map(show_duration).unwrap_or_default(),
                seen.source.clone().unwrap_or_default(),
                duration,
                if seen.names(&self.me) { "yes" } else { "no" }.to_owned(),
                some(&seen.resources),
                seen.description.clone().unwrap_or_default(),
            ]);
        }
        table
    }
}

pub(super) fn command(options: &Options, arguments: &Arguments) -> Result<()> {
    let listing = block_on(async {
        let (mut client, config) = options.client().await?;
        Listing::ask(&mut client, &config).await
    })?;
    listing.warn();
    if arguments.json {
        let list: Vec<_> = listing.events.iter().map(|seen| entry(&listing, seen)).collect();
        return print(&visible::json(&format!("{:#}\n", json!(list))));
    }
    if listing.events.is_empty() {
        eprintln!("no event is pending");
        return Ok(());
    }
    print(&listing.table(&listing.events).to_string())
}

fn entry(listing: &Listing, seen: &Seen) -> serde_json::Value {
    json!({
        "id": seen.id.to_string(),
        "type": seen.kind,
        "status": seen.status.as_str(),
        "not_before": seen.not_before,
        "seconds_left": listing.left(seen).map(|left| left.as_secs()),
        "source": seen.source,
        "duration_seconds": seen.duration_seconds,
        "mine": seen.names(&listing.me),
        "resource_type": seen.resource_type,
        "resources": seen.resources,
        "description": seen.description,
    })
}
