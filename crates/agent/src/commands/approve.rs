//! `forewarn-agent approve`: approves events for all machines that they name.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_agent_core::{ObservedEvent, Status};
use forewarn_cli_support::visible::one_line;
use forewarn_client::Client;
use forewarn_types::EventId;

use super::events::Listing;
use super::{GlobalOptions, block_on, print};

/// Minimum length of an id prefix.
const ID_CHARS_MIN: usize = 4;

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
            return confirm_each(&mut client, &listing, &scheduled).await;
        }
        let chosen = if arguments.all {
            scheduled
                .iter()
                .filter(|observed| observed.names(&listing.me))
                .map(|observed| observed.id)
                .collect()
        } else {
            resolve_ids(&listing, &arguments.ids)?
        };
        if chosen.is_empty() {
            eprintln!("no scheduled event names {}", one_line(&listing.me));
            return Ok(());
        }
        client.approve(&chosen).await?;
        chosen.iter().try_for_each(|id| print(&format!("{id} is approved\n")))
    })
}

/// Resolves ids and prefixes of ids.
fn resolve_ids(listing: &Listing, ids: &[String]) -> Result<Vec<EventId>> {
    ids.iter().map(|text| resolve_id(listing, text)).collect()
}

fn resolve_id(listing: &Listing, text: &str) -> Result<EventId> {
    // A complete id is passed on: the endpoint checks it.
    if let Some(id) = EventId::parse(text) {
        return Ok(id);
    }
    let start = text.to_ascii_uppercase();
    let fits = |observed: &&ObservedEvent| observed.id.to_string().starts_with(&start);
    let found: Vec<_> = listing.events.iter().filter(fits).collect();
    match found[..] {
        _ if text.len() < ID_CHARS_MIN => {
            bail!(
                "an id prefix has at least {ID_CHARS_MIN} characters: {text}\n  hint: forewarn-agent events"
            )
        }
        [observed] => Ok(observed.id),
        [] => bail!("event not found: {text}\n  hint: forewarn-agent events"),
        [..] => bail!("{} events begin with {text}: use a longer prefix", found.len()),
    }
}

async fn confirm_each(client: &mut Client, listing: &Listing, scheduled: &[&ObservedEvent]) -> Result<()> {
    if scheduled.is_empty() {
        eprintln!("no event is scheduled");
    }
    for observed in scheduled {
        eprint!("{}", listing.table([*observed]));
        match confirm()? {
            Some(true) => {
                client.approve(&[observed.id]).await?;
                print(&format!("{} is approved\n", observed.id))?;
            }
            Some(false) => print(&format!("{} is not approved\n", observed.id))?,
            None => {
                eprintln!("end of input: no further event is approved");
                return Ok(());
            }
        }
    }
    Ok(())
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
