//! Polls all peers once a second and independently: a slow peer or name lookup delays no other peer.
//!
//! A peer has at most one request in flight. A round ends when every peer that was known at its start has responded or
//! timed out.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use forewarn_agent_core::{PeerReport, PeersToPoll};
use forewarn_types::Steady;
use tokio::task::{Id, JoinError, JoinSet};

use super::finder::Peer;
use super::peer_client::PeerClient;
use crate::clock;

/// Interval of polls of the same peer.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Polls peers while [`PeerPoller::next`] is awaited.
#[derive(Debug, Default)]
pub(crate) struct PeerPoller {
    /// The client; `None` if this agent has no peers, so that rounds end at once.
    client: Option<PeerClient>,
    steps: JoinSet<PollerStep>,
    requests: HashMap<Id, Peer>,
    search: Option<Id>,
    /// The peers that were found last, for this selection.
    found: Option<(PeersToPoll, Vec<Peer>)>,
    round: Option<Round>,
    news: VecDeque<PeerNews>,
    last_round: Option<Instant>,
}

/// A result of the poller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerNews {
    /// A peer has responded.
    Report(PeerReport),
    /// Every peer has been polled since `begun`.
    RoundEnded { begun: Steady },
}

#[derive(Debug)]
struct Round {
    begun: Steady,
    /// Peers without a response yet; `None` while the discovery runs.
    missing: Option<BTreeSet<Peer>>,
}

#[derive(Debug)]
enum PollerStep {
    Found(PeersToPoll, Vec<Peer>),
    Polled(Option<PeerReport>),
}

impl PeerPoller {
    /// Replaces the client and aborts requests of the previous one.
    pub(crate) fn set_client(&mut self, client: Option<PeerClient>) {
        *self = Self { client, news: std::mem::take(&mut self.news), ..Self::default() };
    }

    /// Time until the next round.
    pub(crate) fn due_in(&self) -> Duration {
        self.last_round.map_or(Duration::ZERO, |last_round| POLL_EVERY.saturating_sub(last_round.elapsed()))
    }

    /// Starts a round if it is due.
    pub(crate) fn poll(&mut self, peers_to_poll: &PeersToPoll) {
        if *peers_to_poll == PeersToPoll::None || !self.due_in().is_zero() {
            return;
        }
        self.last_round = Some(Instant::now());
        self.round.get_or_insert_with(|| Round { begun: clock::now(), missing: None });
        if self.search.is_none() {
            let (client, peers_to_poll) = (self.client.clone(), peers_to_poll.clone());
            let search = self.steps.spawn(async move {
                let found = match client {
                    Some(client) => client.find(&peers_to_poll).await,
                    None => Vec::new(),
                };
                PollerStep::Found(peers_to_poll, found)
            });
            self.search = Some(search.id());
        } else if let Some((_, peers)) = self.found.take_if(|(known, _)| known == peers_to_poll) {
            // Discovery may be slow: known peers are polled meanwhile.
            self.send_requests(&peers);
            self.found = Some((peers_to_poll.clone(), peers));
        }
    }

    /// The next result; never, if nothing is in flight. Cancel safe.
    pub(crate) async fn next(&mut self) -> PeerNews {
        loop {
            if let Some(news) = self.news.pop_front() {
                return news;
            }
            match self.steps.join_next_with_id().await {
                Some(joined) => self.on_joined(joined),
                None => std::future::pending().await,
            }
        }
    }

    fn on_joined(&mut self, joined: Result<(Id, PollerStep), JoinError>) {
        match joined {
            Ok((_, PollerStep::Found(peers_to_poll, peers))) => {
                self.search = None;
                self.send_requests(&peers);
                if let Some(round) = &mut self.round
                    && round.missing.is_none()
                {
                    round.missing = Some(peers.iter().cloned().collect());
                }
                self.found = Some((peers_to_poll, peers));
            }
            Ok((id, PollerStep::Polled(report))) => {
                self.finish_request(id);
                self.news.extend(report.map(PeerNews::Report));
            }
            Err(error) => {
                tracing::error!(%error, "poll of a peer failed inside the agent");
                if self.search == Some(error.id()) {
                    (self.search, self.round) = (None, None);
                }
                self.finish_request(error.id());
            }
        }
        self.round = self.round.take().and_then(|round| match &round.missing {
            Some(missing) if missing.is_empty() => {
                self.news.push_back(PeerNews::RoundEnded { begun: round.begun });
                None
            }
            Some(_) | None => Some(round),
        });
    }

    /// Records the end of a request.
    fn finish_request(&mut self, id: Id) {
        let peer = self.requests.remove(&id);
        let missing = self.round.as_mut().and_then(|round| round.missing.as_mut());
        if let (Some(peer), Some(missing)) = (peer, missing) {
            missing.remove(&peer);
        }
    }

    /// Polls the peers without a request in flight.
    fn send_requests(&mut self, peers: &[Peer]) {
        let Some(client) = &self.client else { return };
        let busy: BTreeSet<_> = self.requests.values().cloned().collect();
        for peer in peers.iter().filter(|peer| !busy.contains(peer)) {
            let (client, last_round) = (client.clone(), peer.clone());
            let send_requests =
                self.steps.spawn(async move { PollerStep::Polled(client.poll(&last_round).await) });
            self.requests.insert(send_requests.id(), peer.clone());
        }
    }
}
