//! `forewarn-agent approve`: approves events for all machines that they name.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Result;
use clap::Args;
use forewarn_agent_core::{ObservedEvent, Status};
use forewarn_cli_support::table::Width;
use forewarn_cli_support::visible::one_line;
use forewarn_client::Client;
use forewarn_types::EventId;
use serde_json::json;

use super::event_ids::resolve_id;
use super::events::Listing;
use super::{GlobalOptions, OutputFormat, block_on, print, print_data};

/// Limit of an input line.
const ANSWER_CHARS_MAX: usize = 1024;

/// Approve events so that they may start now, for all machines that they name
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  forewarn-agent approve 28512AF7\n  forewarn-agent approve --all\n  yes | forewarn-agent approve --interactive"
)]
#[group(skip)]
pub(super) struct ApproveArgs {
    /// Event ids, or prefixes of at least four characters
    #[arg(value_name = "ID", required_unless_present_any = ["all", "interactive"])]
    ids: Vec<String>,
    /// Approve all scheduled events that name this machine
    #[arg(long, conflicts_with_all = ["ids", "interactive"])]
    all: bool,
    /// Show each scheduled event and ask for confirmation
    #[arg(long, conflicts_with = "ids")]
    interactive: bool,
}

pub(super) fn command(options: &GlobalOptions, arguments: &ApproveArgs) -> Result<()> {
    block_on(async {
        let (mut client, config) = options.client().await?;
        let listing = Listing::fetch(&mut client, &config).await?;
        let scheduled: Vec<_> =
            listing.events.iter().filter(|observed| observed.status == Status::Scheduled).collect();
        if arguments.interactive {
            return confirm_each(&mut client, &listing, &scheduled, options.output()).await;
        }
        let chosen: Vec<_> = if arguments.all {
            scheduled
                .iter()
                .filter(|observed| observed.names(&listing.me))
                .map(|observed| observed.id)
                .collect()
        } else {
            let known: Vec<_> = listing.events.iter().map(|observed| observed.id).collect();
            let resolve = |text: &String| resolve_id(&known, text, "forewarn-agent events");
            arguments.ids.iter().map(resolve).collect::<Result<_>>()?
        };
        if chosen.is_empty() {
            eprintln!("no scheduled event names {}", one_line(&listing.me));
        } else {
            client.approve(&chosen).await?;
        }
        let mut report = ApprovalReport::new(options.output());
        chosen.iter().try_for_each(|id| report.add(*id, Answer::Approved))?;
        report.end()
    })
}

/// The answer about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Approved,
    Declined,
}

/// Prints each answer as a sentence, or all of them as data at the end.
struct ApprovalReport {
    output: OutputFormat,
    answers: Vec<(EventId, Answer)>,
}

impl ApprovalReport {
    fn new(output: OutputFormat) -> Self {
        Self { output, answers: Vec::new() }
    }

    fn add(&mut self, id: EventId, answer: Answer) -> Result<()> {
        self.answers.push((id, answer));
        match (self.output, answer) {
            (OutputFormat::Text(_), Answer::Approved) => print(&format!("{id} is approved\n")),
            (OutputFormat::Text(_), Answer::Declined) => print(&format!("{id} is not approved\n")),
            (OutputFormat::Data(_), Answer::Approved | Answer::Declined) => Ok(()),
        }
    }

    /// The names are those of the approved events.
    fn end(&self) -> Result<()> {
        let OutputFormat::Data(format) = self.output else { return Ok(()) };
        let is_approved = |answer: Answer| answer == Answer::Approved;
        let entry = |(id, answer): &(EventId, Answer)| json!({ "id": id.to_string(), "approved": is_approved(*answer) });
        let approved = || self.answers.iter().filter(|(_, answer)| is_approved(*answer));
        let list: Vec<_> = self.answers.iter().map(entry).collect();
        print_data(format, &list, |_| approved().map(|(id, _)| id.to_string()).collect())
    }
}

async fn confirm_each(
    client: &mut Client,
    listing: &Listing,
    scheduled: &[&ObservedEvent],
    output: OutputFormat,
) -> Result<()> {
    let mut report = ApprovalReport::new(output);
    if scheduled.is_empty() {
        eprintln!("no event is scheduled");
    }
    for observed in scheduled {
        eprint!("{}", listing.table([*observed], Width::USUAL));
        match confirm()? {
            Some(true) => {
                client.approve(&[observed.id]).await?;
                report.add(observed.id, Answer::Approved)?;
            }
            Some(false) => report.add(observed.id, Answer::Declined)?,
            None => {
                eprintln!("end of input: no further event is approved");
                break;
            }
        }
    }
    report.end()
}

/// Reads a confirmation; `None` at the end of the input.
fn confirm() -> Result<Option<bool>> {
    let mut input = io::stdin().lock();
    loop {
        eprint!("approve it? [y/N] ");
        io::stderr().flush()?;
        let mut line = String::new();
        let read = io::Read::take(&mut input, ANSWER_CHARS_MAX as u64).read_line(&mut line)?;
        if !io::stdin().is_terminal() {
            eprintln!();
        }
        match line.trim().to_ascii_lowercase().as_str() {
            _ if read == 0 => return Ok(None),
            "y" | "yes" => return Ok(Some(true)),
            "" | "n" | "no" => return Ok(Some(false)),
            _ => eprintln!("enter y or n"),
        }
    }
}
