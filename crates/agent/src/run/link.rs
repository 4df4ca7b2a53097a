//! The endpoint: found, asked for the name of this machine, and then watched, for as long as the agent lives.
//!
//! A task of its own, so that a question that waits for news is not given up whenever something else happens. It never gives up.

use std::time::Duration;

use forewarn_client::{Client, Endpoint, Found, How, Search, Turn, backoff::Backoff};
use forewarn_wire::Edition;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::Config;

/// How long it waits before it searches again, or asks for the name again: at first, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// One that was found and has not answered for so long may be elsewhere by now: it is searched for again.
const LOST: Duration = Duration::from_secs(300);

/// What is heard from there.
#[derive(Debug)]
pub(super) enum Heard {
    /// It is nowhere, as far as can be seen.
    Nowhere(String),
    /// It is there.
    Found {
        /// Where.
        endpoint: Endpoint,
        /// How it was found.
        by: String,
    },
    /// It does not say what this machine is called.
    Nameless(String),
    /// What this machine is called.
    Name(String),
    /// It was asked for news.
    Turn {
        /// What it said.
        turn: Turn,
        /// In which edition.
        edition: Edition,
        /// What it calls itself.
        server: Option<String>,
    },
}

/// Starts to ask. It ends when nobody listens any more.
pub(super) fn start(config: &Config) -> mpsc::Receiver<Heard> {
    let (tell, heard) = mpsc::channel(1);
    let config = config.clone();
    tokio::spawn(async move {
        // Nobody listens any more: then there is nothing left to do.
        follow(&config, &tell).await.ok();
    });
    heard
}

type Told = Result<(), mpsc::error::SendError<Heard>>;

async fn follow(config: &Config, tell: &mpsc::Sender<Heard>) -> Told {
    loop {
        let found = find(config, tell).await?;
        watch(config, found, tell).await?;
    }
}

/// Asks an endpoint for as long as it may be the right one: for ever, if somebody has said where it is.
async fn watch(config: &Config, found: Found, tell: &mpsc::Sender<Heard>) -> Told {
    let was_said = matches!(found.by, How::Setting | How::Variable);
    let mut client = Client::new(found.endpoint).with_pace(config.poll).with_long_poll(config.long_poll);
    let name = match &config.name {
        Some(name) => name.clone(),
        None => ask_name(&mut client, tell).await?,
    };
    tell.send(Heard::Name(name)).await?;
    let mut answered = Instant::now();
    while was_said || answered.elapsed() < LOST {
        let turn = client.turn().await;
        match turn {
            Turn::News(_) | Turn::Quiet { .. } => answered = Instant::now(),
            Turn::Failed { .. } => {}
        }
        let (edition, server) = (client.edition(), client.server().map(str::to_owned));
        tell.send(Heard::Turn { turn, edition, server }).await?;
    }
    Ok(())
}

async fn find(config: &Config, tell: &mpsc::Sender<Heard>) -> Result<Found, mpsc::error::SendError<Heard>> {
    let mut backoff = Backoff::by_chance(PAUSE, PAUSE_MAX);
    let search = search(config);
    loop {
        match search.run().await {
            Ok(found) => {
                let (endpoint, by) = (found.endpoint.clone(), found.by.to_string());
                tell.send(Heard::Found { endpoint, by }).await?;
                return Ok(found);
            }
            Err(nowhere) => tell.send(Heard::Nowhere(nowhere.to_string())).await?,
        }
        tokio::time::sleep(backoff.pause(None)).await;
    }
}

/// Where the endpoint is looked for.
pub(crate) fn search(config: &Config) -> Search {
    let search = Search::from_environment();
    match &config.endpoint {
        Some(endpoint) => Search { explicit: Some(endpoint.clone()), ..search },
        None => search,
    }
}

async fn ask_name(
    client: &mut Client,
    tell: &mpsc::Sender<Heard>,
) -> Result<String, mpsc::error::SendError<Heard>> {
    let mut backoff = Backoff::by_chance(PAUSE, PAUSE_MAX);
    loop {
        match client.name().await {
            Ok(name) => return Ok(name),
            Err(problem) => {
                let wish = problem.retry_after();
                tell.send(Heard::Nameless(problem.to_string())).await?;
                tokio::time::sleep(backoff.pause(wish)).await;
            }
        }
    }
}
