//! Peers: their reports, the choice of the leader, and the order in which machines prepare.

use std::collections::BTreeMap;

use forewarn_types::{EventId, Steady};
use serde::{Deserialize, Serialize};

use crate::event_case::{Consent, EventCase};
use crate::obstacle::{ApprovalObstacle, AwaitedPeer, PeerState};
use crate::settings::{Peers, Silence};
use crate::stage::Stage;

/// The status that a machine reports to its peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// The name of the machine, as listed in `Resources`.
    pub name: String,
    /// Its pending events, by id.
    pub events: BTreeMap<String, PeerEventStatus>,
}

/// The state of one event on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEventStatus {
    /// Progress of the preparation.
    pub stage: Stage,
    /// True if the machine has approved the event and the endpoint has accepted that.
    pub approved: bool,
}

/// The result of polling one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerReport {
    /// The peer has reported its status.
    Status(PeerStatus),
    /// The named peer is alive but did not report its status. It is neither silent nor ready.
    Alive(String),
    /// The named peer did not respond, or its response is not valid.
    Failed { name: String, error: String },
}

/// The peers to poll, about once a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeersToPoll {
    /// No peer: nothing depends on one.
    None,
    /// Peers with these names.
    Named(Vec<String>),
    All,
}

/// Reports of all peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerViews {
    by_name: BTreeMap<String, PeerView>,
    /// Start of the last completed round of polls.
    last_round: Option<Steady>,
}

/// The reports of one peer.
#[derive(Clone, Debug, Default)]
struct PeerView {
    /// Time of the last response of any kind.
    alive: Option<Steady>,
    status: Option<(Steady, PeerStatus)>,
    /// The error of the last poll, if it failed.
    error: Option<String>,
}

/// The decision about an approval by the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is approved, for this reason.
    Wait(ApprovalObstacle),
    /// All machines are ready. The machines in `without` are silent and count as ready.
    Go { without: Vec<String> },
}

/// The answer to the question if this machine may begin to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// The peers are asked first.
    Asking,
    /// These machines come first.
    Behind(Vec<String>),
}

impl PeerViews {
    pub(crate) fn record(&mut self, now: Steady, report: PeerReport) {
        match report {
            PeerReport::Status(status) => {
                let view = self.by_name.entry(status.name.clone()).or_default();
                *view = PeerView { alive: Some(now), status: Some((now, status)), error: None };
            }
            PeerReport::Alive(name) => {
                let view = self.by_name.entry(name).or_default();
                (view.alive, view.error) = (Some(now), None);
            }
            PeerReport::Failed { name, error } => {
                self.by_name.entry(name).or_default().error = Some(error);
            }
        }
    }

    pub(crate) fn record_round(&mut self, begun: Steady) {
        self.last_round = Some(begun);
    }

    /// True if a peer reports that it has approved the event.
    pub(crate) fn has_approval(&self, event: EventId) -> bool {
        let id = event.to_string();
        let reports = self.by_name.values().filter_map(|view| view.status.as_ref());
        reports
            .map(|(_, status)| status)
            .any(|status| status.events.get(&id).is_some_and(|event| event.approved))
    }

    /// Decides whether this machine approves an event for which it is ready.
    ///
    /// The first named machine that is alive approves. Two machines that cannot reach each other may both approve:
    /// approval is idempotent.
    pub(crate) fn verdict(&self, now: Steady, case: &EventCase, me: &str, peers: &Peers) -> Verdict {
        let (mut without, mut awaited) = (Vec::new(), Vec::new());
        let mut leader = None;
        let mut before_me = true;
        for name in &case.observed.resources {
            if name == me {
                before_me = false;
                continue;
            }
            let is_silent = self.is_silent(now, name, case, peers);
            if is_silent && may_proceed(now, case, peers) {
                without.push(name.clone());
                continue;
            }
            if before_me && !is_silent {
                leader.get_or_insert_with(|| name.clone());
            }
            let state = match self.stage(now, name, case.observed.id, peers) {
                Some(_) | None if is_silent => PeerState::Silent,
                // A machine that ignores the event has nothing to prepare.
                Some(Stage::Ready | Stage::Idle) => continue,
                Some(stage @ (Stage::Waiting | Stage::Preparing | Stage::Failed)) => PeerState::Stage(stage),
                None => PeerState::Unknown,
            };
            let error = self.by_name.get(name).and_then(|view| view.error.clone());
            awaited.push(AwaitedPeer { name: name.clone(), state, error });
        }
        match leader {
            _ if !awaited.is_empty() => Verdict::Wait(ApprovalObstacle::Peers(awaited)),
            Some(leader) => Verdict::Wait(ApprovalObstacle::Leader(leader)),
            None => Verdict::Go { without },
        }
    }

    /// The machine may begin to prepare if fewer than `at_once` machines are drained for other events or come before
    /// it.
    pub(crate) fn turn(&self, now: Steady, case: &EventCase, at_once: u32, peers: &Peers) -> Turn {
        if time_left(now, case).is_some_and(|left| left <= peers.reserve) {
            return Turn::Now;
        }
        // All peers have to be polled first. If no poll ever completes, `silent_after` bounds the wait.
        let was_polled = self.last_round.is_some_and(|at| at >= case.live.since);
        if !was_polled && now.since(case.live.since) <= peers.silent_after {
            return Turn::Asking;
        }
        let mine = case.observed.id.to_string();
        let is_before = |view: &PeerView| {
            let Some((_, status)) = &view.status else { return false };
            view.alive.is_some_and(|at| !self.is_silent_since(now, at, peers))
                && status.events.iter().any(|(id, event)| {
                    *id != mine
                        && match event.stage {
                            Stage::Preparing | Stage::Ready | Stage::Failed => true,
                            Stage::Waiting => *id < mine,
                            Stage::Idle => false,
                        }
                })
        };
        let before = self.by_name.iter().filter(|(_, view)| is_before(view));
        let behind: Vec<_> = before.map(|(name, _)| name.clone()).collect();
        match u32::try_from(behind.len()) {
            Ok(count) if count < at_once => Turn::Now,
            Ok(_) | Err(_) => Turn::Behind(behind),
        }
    }

    /// True if a peer is silent. A peer without any response gets `silent_after` from the start of the case.
    fn is_silent(&self, now: Steady, name: &str, case: &EventCase, peers: &Peers) -> bool {
        self.is_silent_since(now, self.last_sign(name, case), peers)
    }

    /// True if the last response is older than `silent_after` and a later poll got none.
    ///
    /// Time alone proves nothing: this machine may have been paused, or too busy to poll.
    fn is_silent_since(&self, now: Steady, last: Steady, peers: &Peers) -> bool {
        let was_polled = |begun: Steady| begun >= last.plus(peers.silent_after / 2);
        now.since(last) > peers.silent_after && self.last_round.is_some_and(was_polled)
    }

    /// Time of the last response of a peer, or the start of the case if that is later.
    fn last_sign(&self, name: &str, case: &EventCase) -> Steady {
        let alive = self.by_name.get(name).and_then(|view| view.alive);
        alive.map_or(case.live.since, |at| at.max(case.live.since))
    }

    /// The stage in a recent report. A peer that is alive may have moved on since an older report.
    fn stage(&self, now: Steady, name: &str, event: EventId, peers: &Peers) -> Option<Stage> {
        let (at, status) = self.by_name.get(name)?.status.as_ref()?;
        let is_fresh = now.since(*at) <= peers.silent_after;
        Some(status.events.get(&event.to_string()).filter(|_| is_fresh)?.stage)
    }

    /// The earliest time at which a peer counts as silent, if it does not respond.
    pub(crate) fn next_silence(
        &self,
        now: Steady,
        case: &EventCase,
        me: &str,
        peers: &Peers,
    ) -> Option<Steady> {
        let others = case.observed.resources.iter().filter(|name| *name != me);
        let last = others.map(|name| self.last_sign(name, case));
        let next = last.map(|at| at.plus(peers.silent_after + std::time::Duration::from_millis(1)));
        next.filter(|at| *at > now).min()
    }
}

fn may_proceed(now: Steady, case: &EventCase, peers: &Peers) -> bool {
    match peers.silence {
        Silence::Wait => false,
        Silence::GoOn => true,
        Silence::GoOnWhenLeft(bound) => time_left(now, case).is_some_and(|left| left <= bound),
    }
}

pub(crate) fn time_left(now: Steady, case: &EventCase) -> Option<std::time::Duration> {
    case.live.deadline.map(|deadline| deadline.since(now))
}

/// True if an approval is known to be accepted.
pub(crate) fn is_given(consent: Consent) -> bool {
    match consent {
        Consent::Given | Consent::ByPeer => true,
        Consent::None | Consent::Tried => false,
    }
}
