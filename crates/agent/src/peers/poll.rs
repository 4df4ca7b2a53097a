//! Asks peers once a second, each of them on its own: a peer that hangs, or a name that takes long to look up, delays no other peer.
//!
//! A peer has one question at a time. A round is over when every peer that was found at its beginning has answered or had its time.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use forewarn_agent_core::{Asking, PeerReport};
use forewarn_types::Steady;
use tokio::task::{Id, JoinError, JoinSet};

use super::ask::Asker;
use super::find::Peer;
use crate::clock;

/// Pause between two questions to the same peer.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Asks peers, for as long as somebody waits for [`PeerPoller::next`].
#[derive(Debug, Default)]
pub(crate) struct PeerPoller {
    /// None: this agent has no peers, and every round is over at once.
    asker: Option<Asker>,
    steps: JoinSet<Step>,
    /// Questions under way.
    questions: HashMap<Id, Peer>,
    search: Option<Id>,
    /// The peers that were found last, for these wishes.
    found: Option<(Asking, Vec<Peer>)>,
    round: Option<Round>,
    news: VecDeque<PeerNews>,
    asked: Option<Instant>,
}

/// Something new about peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerNews {
    /// A peer has answered.
    Report(PeerReport),
    /// Every peer has been asked since that moment.
    RoundOver { begun: Steady },
}

#[derive(Debug)]
struct Round {
    begun: Steady,
    /// Peers whose answers are missing; none while they are still searched for.
    missing: Option<BTreeSet<Peer>>,
}

#[derive(Debug)]
enum Step {
    Found(Asking, Vec<Peer>),
    Answered(Option<PeerReport>),
}

impl PeerPoller {
    /// Asks through this asker from now on. Questions of the one before are given up.
    pub(crate) fn set_asker(&mut self, asker: Option<Asker>) {
        *self = Self { asker, news: std::mem::take(&mut self.news), ..Self::default() };
    }

    /// Time until peers are asked next.
    pub(crate) fn due_in(&self) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| ASK_EVERY.saturating_sub(asked.elapsed()))
    }

    /// Asks these peers, if it is time.
    pub(crate) fn ask(&mut self, asking: &Asking) {
        if *asking == Asking::Nobody || !self.due_in().is_zero() {
            return;
        }
        self.asked = Some(Instant::now());
        self.round.get_or_insert_with(|| Round { begun: clock::now(), missing: None });
        if self.search.is_none() {
            let (asker, asking) = (self.asker.clone(), asking.clone());
            let search = self.steps.spawn(async move {
                let found = match asker {
                    Some(asker) => asker.find(&asking).await,
                    None => Vec::new(),
                };
                Step::Found(asking, found)
            });
            self.search = Some(search.id());
        } else if let Some((_, peers)) = self.found.take_if(|(known, _)| known == asking) {
            // The search takes long. Those who are known do not wait for it.
            self.question(&peers);
            self.found = Some((asking.clone(), peers));
        }
    }

    /// The next news; never, if nothing is under way. No news is lost if this is dropped before it ends.
    pub(crate) async fn next(&mut self) -> PeerNews {
        loop {
            if let Some(news) = self.news.pop_front() {
                return news;
            }
            match self.steps.join_next_with_id().await {
                Some(joined) => self.take(joined),
                None => std::future::pending().await,
            }
        }
    }

    fn take(&mut self, joined: Result<(Id, Step), JoinError>) {
        match joined {
            Ok((_, Step::Found(asking, peers))) => {
                self.search = None;
                self.question(&peers);
                if let Some(round) = &mut self.round
                    && round.missing.is_none()
                {
                    round.missing = Some(peers.iter().cloned().collect());
                }
                self.found = Some((asking, peers));
            }
            Ok((id, Step::Answered(report))) => {
                self.settle(id);
                self.news.extend(report.map(PeerNews::Report));
            }
            Err(problem) => {
                tracing::error!(%problem, "a question to a peer has failed inside the agent");
                if self.search == Some(problem.id()) {
                    (self.search, self.round) = (None, None);
                }
                self.settle(problem.id());
            }
        }
        self.round = self.round.take().and_then(|round| match &round.missing {
            Some(missing) if missing.is_empty() => {
                self.news.push_back(PeerNews::RoundOver { begun: round.begun });
                None
            }
            Some(_) | None => Some(round),
        });
    }

    /// A question has ended.
    fn settle(&mut self, id: Id) {
        let peer = self.questions.remove(&id);
        let missing = self.round.as_mut().and_then(|round| round.missing.as_mut());
        if let (Some(peer), Some(missing)) = (peer, missing) {
            missing.remove(&peer);
        }
    }

    /// Asks those of the peers to whom no question is under way.
    fn question(&mut self, peers: &[Peer]) {
        let Some(asker) = &self.asker else { return };
        let busy: BTreeSet<_> = self.questions.values().cloned().collect();
        for peer in peers.iter().filter(|peer| !busy.contains(peer)) {
            let (asker, asked) = (asker.clone(), peer.clone());
            let question = self.steps.spawn(async move { Step::Answered(asker.ask(&asked).await) });
            self.questions.insert(question.id(), peer.clone());
        }
    }
}
