//! The endpoint: found, asked for the name of this machine, and then watched, for as long as the agent lives.
//!
//! A task of its own, so that a question that waits for news is not given up whenever something else happens. It never gives up.

use std::time::Duration;

use forewarn_client::{Client, Endpoint, Search, Turn, backoff::Backoff};
use forewarn_wire::Edition;
use tokio::sync::mpsc;

use crate::config::Config;

/// How long it waits before it searches again, or asks for the name again: at first, and at most.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(15);

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
    let endpoint = find(config, tell).await?;
    let mut client = Client::new(endpoint).with_pace(config.poll).with_long_poll(config.long_poll);
    let name = match &config.name {
        Some(name) => name.clone(),
        None => ask_name(&mut client, tell).await?,
    };
    tell.send(Heard::Name(name)).await?;
    loop {
        let turn = client.turn().await;
        let (edition, server) = (client.edition(), client.server().map(str::to_owned));
        tell.send(Heard::Turn { turn, edition, server }).await?;
    }
}

async fn find(
    config: &Config,
    tell: &mpsc::Sender<Heard>,
) -> Result<Endpoint, mpsc::error::SendError<Heard>> {
    let mut backoff = Backoff::by_chance(PAUSE, PAUSE_MAX);
    let search = search(config);
    loop {
        match search.run().await {
            Ok(found) => {
                let (endpoint, by) = (found.endpoint, found.by.to_string());
                tell.send(Heard::Found { endpoint: endpoint.clone(), by }).await?;
                return Ok(endpoint);
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
