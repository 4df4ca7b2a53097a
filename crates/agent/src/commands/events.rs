//! `forewarn-agent events`: lists the events of the endpoint. No agent needs to run.

use anyhow::{Result, bail};
use forewarn_agent_core::{ObservedEvent, Status};
use forewarn_cli_support::output::names_in;
use forewarn_cli_support::table::{Table, Width, some};
use forewarn_cli_support::visible::one_line;
use forewarn_client::{Client, MalformedEvent, Observation, PollResponse};
use forewarn_types::show_duration;
use serde_json::json;

use super::status::shown_id;
use super::{GlobalOptions, OutputFormat, block_on, print, print_data};
use crate::config::Config;

/// The current events, and the name of this machine.
pub(super) struct Listing {
    pub(super) events: Vec<ObservedEvent>,
    /// Malformed events. They are reported and otherwise ignored.
    malformed: Vec<MalformedEvent>,
    pub(super) me: String,
    date: forewarn_types::Timestamp,
}

impl Listing {
    /// Requests the current document.
    pub(super) async fn fetch(client: &mut Client, config: &Config) -> Result<Self> {
        let me = match &config.name {
            Some(name) => name.clone(),
            None => client.name().await?,
        };
        let Observation { document, edition, date, .. } = match client.poll().await? {
            PollResponse::Document(observation) => observation,
            PollResponse::Unchanged { .. } | PollResponse::Empty { .. } => bail!(
                "no document yet: Scheduled Events are being enabled\n  hint: this may take two minutes; try again"
            ),
        };
        let mut events = Vec::new();
        let mut malformed = document.malformed;
        for event in &document.events {
            match ObservedEvent::read(event, edition) {
                Ok(observed) => events.push(observed),
                Err(problem) => malformed.push(problem),
            }
        }
        Ok(Self { events, malformed, me, date })
    }

    /// Prints a warning for each malformed event.
    fn warn(&self) {
        for MalformedEvent { id, error: problem } in &self.malformed {
            let id = id.map_or("(no id)".to_owned(), |id| id.to_string());
            eprintln!("skipped malformed event: {id}: {}", one_line(problem));
        }
    }

    /// The time until an event may start without approval.
    pub(super) fn left(&self, observed: &ObservedEvent) -> Option<std::time::Duration> {
        let is_scheduled = observed.status == Status::Scheduled;
        observed.not_before.filter(|_| is_scheduled).map(|at| at.0.since(self.date))
    }

    /// A table of events.
    pub(super) fn table<'a>(
        &self,
        events: impl IntoIterator<Item = &'a ObservedEvent>,
        width: Width,
    ) -> Table {
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
        let dropped = ["description", "source", "duration", "not before", "resources", "mine", "left"];
        let mut table = Table::new(width, &headings).dropping(&dropped);
        for observed in events {
            let duration = observed.duration().map(show_duration).unwrap_or_default();
            table.row([
                shown_id(&observed.id.to_string(), width),
                observed.kind.clone(),
                observed.status.as_str().to_owned(),
                observed.not_before.map(|at| at.to_string()).unwrap_or_default(),
                self.left(observed).map(show_duration).unwrap_or_default(),
                observed.source.clone().unwrap_or_default(),
                duration,
                if observed.names(&self.me) { "yes" } else { "no" }.to_owned(),
                some(&observed.resources),
                observed.description.clone().unwrap_or_default(),
            ]);
        }
        table
    }
}

pub(super) fn command(options: &GlobalOptions) -> Result<()> {
    let listing = block_on(async {
        let (mut client, config) = options.client().await?;
        Listing::fetch(&mut client, &config).await
    })?;
    listing.warn();
    match options.output() {
        OutputFormat::Data(format) => {
            let list: Vec<_> = listing.events.iter().map(|observed| entry(&listing, observed)).collect();
            print_data(format, &list, |list| names_in(list, "id"))
        }
        OutputFormat::Text(_) if listing.events.is_empty() => {
            eprintln!("no event is pending");
            Ok(())
        }
        OutputFormat::Text(width) => print(&listing.table(&listing.events, width).to_string()),
    }
}

fn entry(listing: &Listing, observed: &ObservedEvent) -> serde_json::Value {
    json!({
        "id": observed.id.to_string(),
        "type": observed.kind,
        "status": observed.status.as_str(),
        "not_before": observed.not_before,
        "seconds_left": listing.left(observed).map(|left| left.as_secs()),
        "source": observed.source,
        "duration_seconds": observed.duration_seconds,
        "mine": observed.names(&listing.me),
        "resource_type": observed.resource_type,
        "resources": observed.resources,
        "description": observed.description,
    })
}
