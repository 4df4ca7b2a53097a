//! `forewarn-agent approve`: says for this machine, or for all that an event names, that it may start now.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_agent_core::{Seen, Status};
use forewarn_cli_support::visible::one_line;
use forewarn_client::Client;
use forewarn_types::EventId;

use super::events::Listing;
use super::{Options, block_on, print};

/// Characters of an id that are enough to mean it.
const ID_CHARS_MIN: usize = 4;

/// Characters of a line that is read as an answer.
const ANSWER_CHARS_MAX: usize = 1024;

/// Approve events: they may start now, for all machines that they name.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forewarn-agent approve 28512AF7\n  forewarn-agent approve --all\n  yes | forewarn-agent approve --interactive"
)]
#[group(skip)]
pub(super) struct Arguments {
    /// Their ids, or the first four characters or more of each.
    #[arg(value_name = "ID", required_unless_present_any = ["all", "interactive"])]
    ids: Vec<String>,
    /// All that are scheduled and name this machine.
    #[arg(long, conflicts_with_all = ["ids", "interactive"])]
    all: bool,
    /// Show each that is scheduled, and ask.
    #[arg(long, conflicts_with = "ids")]
    interactive: bool,
}

pub(super) fn command(options: &Options, arguments: &Arguments) -> Result<()> {
    block_on(async {
        let (mut client, config) = options.client().await?;
        let listing = Listing::ask(&mut client, &config).await?;
        let scheduled: Vec<_> =
            listing.events.iter().filter(|seen| seen.status == Status::Scheduled).collect();
        if arguments.interactive {
            return ask_for_each(&mut client, &listing, &scheduled).await;
        }
        let chosen = if arguments.all {
            scheduled.iter().filter(|seen| seen.names(&listing.me)).map(|seen| seen.id).collect()
        } else {
            meant(&listing, &arguments.ids)?
        };
        if chosen.is_empty() {
            eprintln!("no scheduled event names {}", one_line(&listing.me));
            return Ok(());
        }
        client.approve(&chosen).await?;
        chosen.iter().try_for_each(|id| print(&format!("{id} is approved\n")))
    })
}

/// The events that are meant by ids, or by how they begin.
fn meant(listing: &Listing, ids: &[String]) -> Result<Vec<EventId>> {
    ids.iter().map(|text| one(listing, text)).collect()
}

fn one(listing: &Listing, text: &str) -> Result<EventId> {
    // A whole id is believed: the endpoint says what is wrong with it.
    if let Some(id) = EventId::parse(text) {
        return Ok(id);
    }
    let start = text.to_ascii_uppercase();
    let fits = |seen: &&Seen| seen.id.to_string().starts_with(&start);
    let found: Vec<_> = listing.events.iter().filter(fits).collect();
    match found[..] {
        _ if text.len() < ID_CHARS_MIN => {
            bail!("{ID_CHARS_MIN} characters of an id at least: {text}\n  hint: forewarn-agent events")
        }
        [seen] => Ok(seen.id),
        [] => bail!("there is no such event: {text}\n  hint: forewarn-agent events"),
        [..] => bail!("{} events begin with {text}: give more of the id", found.len()),
    }
}

async fn ask_for_each(client: &mut Client, listing: &Listing, scheduled: &[&Seen]) -> Result<()> {
    if scheduled.is_empty() {
        eprintln!("no event is scheduled");
    }
    for seen in scheduled {
        eprint!("{}", listing.table([*seen]));
        match confirm()? {
            Some(true) => {
                client.approve(&[seen.id]).await?;
                print(&format!("{} is approved\n", seen.id))?;
            }
            Some(false) => print(&format!("{} is not approved\n", seen.id))?,
            None => {
                eprintln!("nobody answers any more: nothing else is approved");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Asks whether it is meant, until that is said; nothing, if nobody answers.
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
            _ => eprintln!("y or n"),
        }
    }
}
