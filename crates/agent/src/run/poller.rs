//! The poller of the endpoint: finds it, reads the machine name, and then polls for as long as the agent runs.
//!
//! Runs in a task of its own, so that other inputs do not abort a long poll. It never gives up.

use std::time::Duration;

use forewarn_client::{Client, DiscoverySource, Endpoint, Found, PollStep, Search, backoff::Backoff};
use forewarn_imds::Edition;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::Config;

/// The first and the longest pause before a search or a name lookup is retried.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Time without a response after which a discovered endpoint is searched for again.
const LOST_AFTER: Duration = Duration::from_secs(300);

/// News from the endpoint.
#[derive(Debug)]
pub(super) enum EndpointNews {
    /// No endpoint was found.
    NotFound(String),
    /// An endpoint was found.
    Found {
        endpoint: Endpoint,
        /// The source of its address.
        by: String,
    },
    /// The endpoint does not return the machine name.
    NoName(String),
    /// The name of this machine.
    Name(String),
    /// The result of a poll.
    Polled {
        step: PollStep,
        /// The edition of the request.
        edition: Edition,
        /// The `Server` header.
        server: Option<String>,
    },
}

/// Starts the poller. It stops when the receiver is dropped.
pub(super) fn start(config: &Config) -> mpsc::Receiver<EndpointNews> {
    let (sender, receiver) = mpsc::channel(1);
    let poller =
        EndpointPoller { config: config.clone(), search: search(config), lost_after: LOST_AFTER, sender };
    tokio::spawn(async move {
        // An error means that the receiver was dropped.
        poller.run().await.ok();
    });
    receiver
}

/// The search for the endpoint.
pub(crate) fn search(config: &Config) -> Search {
    let by = match config.given.endpoint {
        Some(_) => DiscoverySource::CommandLine,
        None => DiscoverySource::Setting,
    };
    let explicit = config.endpoint.clone().map(|endpoint| Found { endpoint, by });
    Search { explicit, ..Search::from_environment() }
}

struct EndpointPoller {
    config: Config,
    search: Search,
    /// Time without success after which a discovered endpoint is searched for again.
    lost_after: Duration,
    sender: mpsc::Sender<EndpointNews>,
}

type SendResult<T> = Result<T, mpsc::error::SendError<EndpointNews>>;

impl EndpointPoller {
    async fn run(&self) -> SendResult<()> {
        let mut skipped = None;
        loop {
            let found = self.find(skipped.as_ref()).await?;
            skipped = self.watch(found).await?;
        }
    }

    /// Polls an endpoint: for ever if it was configured, else until it counts as lost. Returns an endpoint that never
    /// worked, so that the search can skip it.
    async fn watch(&self, found: Found) -> SendResult<Option<Endpoint>> {
        let is_configured = match found.by {
            DiscoverySource::Setting | DiscoverySource::CommandLine | DiscoverySource::Variable => true,
            DiscoverySource::WellKnown | DiscoverySource::Lease(_) | DiscoverySource::Dhcp(_) => false,
        };
        let Config { poll, long_poll, .. } = self.config;
        let mut client = Client::new(found.endpoint.clone()).with_pace(poll).with_long_poll(long_poll);
        let mut last_success = Instant::now();
        let is_lost = |last_success: Instant| !is_configured && last_success.elapsed() >= self.lost_after;
        let name = match &self.config.name {
            Some(name) => name.clone(),
            None => match self.read_name(&mut client, || is_lost(last_success)).await? {
                Some(name) => name,
                None => return Ok(Some(found.endpoint)),
            },
        };
        self.sender.send(EndpointNews::Name(name)).await?;
        last_success = Instant::now();
        let mut has_worked = false;
        loop {
            let step = client.poll_step().await;
            match step {
                PollStep::Changed(_) | PollStep::Unchanged { .. } => {
                    (last_success, has_worked) = (Instant::now(), true);
                }
                PollStep::Failed { .. } => {}
            }
            let (edition, server) = (client.edition(), client.server().map(str::to_owned));
            self.sender.send(EndpointNews::Polled { step, edition, server }).await?;
            if is_lost(last_success) {
                return Ok((!has_worked).then_some(found.endpoint));
            }
        }
    }

    /// Searches until an endpoint is found; skips the one that did not work.
    async fn find(&self, skipped: Option<&Endpoint>) -> SendResult<Found> {
        let mut backoff = Backoff::with_random_seed(PAUSE, PAUSE_MAX);
        loop {
            let other = match skipped {
                Some(skipped) => self.search.run_past(skipped).await.ok(),
                None => None,
            };
            let found = match other {
                Some(found) => Ok(found),
                None => self.search.run().await,
            };
            match found {
                Ok(found) => {
                    let (endpoint, by) = (found.endpoint.clone(), found.by.to_string());
                    self.sender.send(EndpointNews::Found { endpoint, by }).await?;
                    return Ok(found);
                }
                Err(not_found) => {
                    self.sender.send(EndpointNews::NotFound(not_found.to_string())).await?;
                }
            }
            tokio::time::sleep(backoff.pause(None)).await;
        }
    }

    /// Reads the name of this machine, until it is known or the endpoint counts as lost.
    async fn read_name(&self, client: &mut Client, is_lost: impl Fn() -> bool) -> SendResult<Option<String>> {
        let mut backoff = Backoff::with_random_seed(PAUSE, PAUSE_MAX);
        loop {
            let error = match client.name().await {
                Ok(name) => return Ok(Some(name)),
                Err(error) => error,
            };
            let retry_after = error.retry_after();
            self.sender.send(EndpointNews::NoName(error.to_string())).await?;
            if is_lost() {
                return Ok(None);
            }
            tokio::time::sleep(backoff.pause(retry_after)).await;
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

    /// Deadline for conditions in tests, longer than any of them takes.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// A server that returns 403 to every request, and the number of requests.
    async fn rejecting_server() -> (Endpoint, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
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
        (endpoint, requests)
    }

    /// A poller that gives up at once.
    fn poller(settings: &str, search: Search) -> (EndpointPoller, mpsc::Receiver<EndpointNews>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.toml");
        std::fs::write(&file, settings).unwrap();
        let (sender, receiver) = mpsc::channel(1);
        (
            EndpointPoller {
                config: Config::load(Some(&file)).unwrap(),
                search,
                lost_after: Duration::ZERO,
                sender,
            },
            receiver,
        )
    }

    fn empty_search() -> Search {
        Search { explicit: None, variable: None, well_known: None, lease_files: Vec::new(), discover: false }
    }

    async fn received(receiver: &mut mpsc::Receiver<EndpointNews>, count: usize) -> Vec<&'static str> {
        let mut names = Vec::new();
        for _ in 0..count {
            let next = tokio::time::timeout(TIMEOUT, receiver.recv()).await.expect("timed out");
            names.push(match next.expect("the poller runs") {
                EndpointNews::NotFound(_) => "not found",
                EndpointNews::Found { .. } => "found",
                EndpointNews::NoName(_) => "no name",
                EndpointNews::Name(_) => "name",
                EndpointNews::Polled { .. } => "polled",
            });
        }
        names
    }

    #[tokio::test]
    async fn an_endpoint_that_was_found_and_says_no_name_is_not_asked_for_ever() {
        let (endpoint, requests) = rejecting_server().await;
        let (poller, mut receiver) = poller("", Search { well_known: Some(endpoint), ..empty_search() });
        let running = tokio::spawn(async move { poller.run().await.is_ok() });
        let names = received(&mut receiver, 4).await;
        assert_eq!(names, ["found", "no name", "found", "no name"], "there is no other endpoint");
        assert!(requests.load(Ordering::Relaxed) >= 4, "the search was repeated");
        running.abort();
    }

    #[tokio::test]
    async fn a_configured_endpoint_is_polled_for_ever() {
        let (endpoint, _) = rejecting_server().await;
        let explicit = Found { endpoint, by: DiscoverySource::Setting };
        let (poller, mut receiver) = poller("", Search { explicit: Some(explicit), ..empty_search() });
        let running = tokio::spawn(async move { poller.run().await.is_ok() });
        assert_eq!(received(&mut receiver, 3).await, ["found", "no name", "no name"]);
        running.abort();
    }

    #[tokio::test]
    async fn one_that_was_never_of_any_use_is_passed_over() {
        let (endpoint, _) = rejecting_server().await;
        let found = || Found { endpoint: endpoint.clone(), by: DiscoverySource::WellKnown };
        for settings in ["", "name = \"web_0\"\n"] {
            let (poller, mut receiver) = poller(settings, empty_search());
            let listening = tokio::spawn(async move { while receiver.recv().await.is_some() {} });
            let watched = tokio::time::timeout(TIMEOUT, poller.watch(found())).await.expect("timed out");
            assert_eq!(watched.unwrap(), Some(endpoint.clone()), "{settings}");
            listening.abort();
        }
    }
}
