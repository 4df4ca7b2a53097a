//! The endpoint: found, asked for the name of this machine, and then watched, for as long as the agent lives.
//!
//! A task of its own, so that a question that waits for news is not given up whenever something else happens. It never gives up.

use std::time::Duration;

use forewarn_client::{Client, Endpoint, Found, How, Search, Turn, backoff::Backoff};
use forewarn_imds::Edition;
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
    let link = Link { config: config.clone(), search: search(config), lost: LOST, tell };
    tokio::spawn(async move {
        // Nobody listens any more: then there is nothing left to do.
        link.follow().await.ok();
    });
    heard
}

/// Where the endpoint is looked for.
pub(crate) fn search(config: &Config) -> Search {
    let search = Search::from_environment();
    match &config.endpoint {
        Some(endpoint) => Search { explicit: Some(endpoint.clone()), ..search },
        None => search,
    }
}

struct Link {
    config: Config,
    search: Search,
    /// One that was found and is of no use for so long is searched for again.
    lost: Duration,
    tell: mpsc::Sender<Heard>,
}

type Told<T> = Result<T, mpsc::error::SendError<Heard>>;

impl Link {
    async fn follow(&self) -> Told<()> {
        let mut given_up = None;
        loop {
            let found = self.find(given_up.as_ref()).await?;
            given_up = self.watch(found).await?;
        }
    }

    /// Asks an endpoint for as long as it may be the right one: for ever, if somebody has said where it is. One that was never of
    /// any use is given back.
    async fn watch(&self, found: Found) -> Told<Option<Endpoint>> {
        let was_said = matches!(found.by, How::Setting | How::Variable);
        let Config { poll, long_poll, .. } = self.config;
        let mut client = Client::new(found.endpoint.clone()).with_pace(poll).with_long_poll(long_poll);
        let mut answered = Instant::now();
        let is_lost = |answered: Instant| !was_said && answered.elapsed() >= self.lost;
        let name = match &self.config.name {
            Some(name) => name.clone(),
            None => match self.ask_name(&mut client, || is_lost(answered)).await? {
                Some(name) => name,
                None => return Ok(Some(found.endpoint)),
            },
        };
        self.tell.send(Heard::Name(name)).await?;
        answered = Instant::now();
        let mut is_one = false;
        loop {
            let turn = client.turn().await;
            match turn {
                Turn::News(_) | Turn::Quiet { .. } => (answered, is_one) = (Instant::now(), true),
                Turn::Failed { .. } => {}
            }
            let (edition, server) = (client.edition(), client.server().map(str::to_owned));
            self.tell.send(Heard::Turn { turn, edition, server }).await?;
            if is_lost(answered) {
                return Ok((!is_one).then_some(found.endpoint));
            }
        }
    }

    /// Looks for it until it is found: elsewhere first, if one was given up.
    async fn find(&self, given_up: Option<&Endpoint>) -> Told<Found> {
        let mut backoff = Backoff::by_chance(PAUSE, PAUSE_MAX);
        loop {
            let elsewhere = match given_up {
                Some(given_up) => self.search.run_past(given_up).await.ok(),
                None => None,
            };
            let found = match elsewhere {
                Some(found) => Ok(found),
                None => self.search.run().await,
            };
            match found {
                Ok(found) => {
                    let (endpoint, by) = (found.endpoint.clone(), found.by.to_string());
                    self.tell.send(Heard::Found { endpoint, by }).await?;
                    return Ok(found);
                }
                Err(nowhere) => self.tell.send(Heard::Nowhere(nowhere.to_string())).await?,
            }
            tokio::time::sleep(backoff.pause(None)).await;
        }
    }

    /// Asks for the name of this machine until it is said, or until nobody there will say it any more.
    async fn ask_name(&self, client: &mut Client, is_lost: impl Fn() -> bool) -> Told<Option<String>> {
        let mut backoff = Backoff::by_chance(PAUSE, PAUSE_MAX);
        loop {
            let problem = match client.name().await {
                Ok(name) => return Ok(Some(name)),
                Err(problem) => problem,
            };
            let wish = problem.retry_after();
            self.tell.send(Heard::Nameless(problem.to_string())).await?;
            if is_lost() {
                return Ok(None);
            }
            tokio::time::sleep(backoff.pause(wish)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// Longer than anything takes. Whoever waits for it has failed already.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Somebody who answers everything with 403, and how often it was asked.
    async fn unwilling() -> (Endpoint, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut head, mut more) = (Vec::new(), 1);
                while more > 0 && !head.ends_with(b"\r\n\r\n") {
                    more = stream.read_buf(&mut head).await.unwrap_or(0);
                }
                count.fetch_add(1, Ordering::Relaxed);
                stream
                    .write_all(b"HTTP/1.1 403 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .await
                    .ok();
            }
        });
        (endpoint, asked)
    }

    /// The link of an agent that gives up at once.
    fn link(settings: &str, search: Search) -> (Link, mpsc::Receiver<Heard>) {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("agent.toml");
        std::fs::write(&file, settings).unwrap();
        let (tell, heard) = mpsc::channel(1);
        (Link { config: Config::load(Some(&file)).unwrap(), search, lost: Duration::ZERO, tell }, heard)
    }

    fn nowhere() -> Search {
        Search { explicit: None, variable: None, well_known: None, lease_files: Vec::new(), discover: false }
    }

    async fn heard(heard: &mut mpsc::Receiver<Heard>, count: usize) -> Vec<&'static str> {
        let mut words = Vec::new();
        for _ in 0..count {
            let next = tokio::time::timeout(PATIENCE, heard.recv()).await.expect("waited in vain");
            words.push(match next.expect("it goes on") {
                Heard::Nowhere(_) => "nowhere",
                Heard::Found { .. } => "found",
                Heard::Nameless(_) => "nameless",
                Heard::Name(_) => "name",
                Heard::Turn { .. } => "turn",
            });
        }
        words
    }

    #[tokio::test]
    async fn an_endpoint_that_was_found_and_says_no_name_is_not_asked_for_ever() {
        let (endpoint, asked) = unwilling().await;
        let (link, mut told) = link("", Search { well_known: Some(endpoint), ..nowhere() });
        let following = tokio::spawn(async move { link.follow().await.is_ok() });
        let words = heard(&mut told, 4).await;
        assert_eq!(
            words,
            ["found", "nameless", "found", "nameless"],
            "there is no other, and so it is this one"
        );
        assert!(asked.load(Ordering::Relaxed) >= 4, "it was searched for again");
        following.abort();
    }

    #[tokio::test]
    async fn one_that_somebody_has_named_is_asked_for_ever() {
        let (endpoint, _) = unwilling().await;
        let (link, mut told) = link("", Search { explicit: Some(endpoint), ..nowhere() });
        let following = tokio::spawn(async move { link.follow().await.is_ok() });
        assert_eq!(heard(&mut told, 3).await, ["found", "nameless", "nameless"]);
        following.abort();
    }

    #[tokio::test]
    async fn one_that_was_never_of_any_use_is_passed_over() {
        let (endpoint, _) = unwilling().await;
        let found = || Found { endpoint: endpoint.clone(), by: How::WellKnown };
        for settings in ["", "name = \"web_0\"\n"] {
            let (link, mut told) = link(settings, nowhere());
            let listening = tokio::spawn(async move { while told.recv().await.is_some() {} });
            let watched = tokio::time::timeout(PATIENCE, link.watch(found())).await.expect("waited in vain");
            assert_eq!(watched.unwrap(), Some(endpoint.clone()), "{settings}");
            listening.abort();
        }
    }
}
