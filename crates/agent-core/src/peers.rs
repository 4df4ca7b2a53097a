//! The other machines: what they say of themselves, who leads, and whose turn it is.

use std::collections::BTreeMap;

use forewarn_types::{EventId, Steady};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Consent};
use crate::settings::{Peers, Silence};

/// What a machine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerWord {
    /// Its name, as it is written in `Resources`.
    pub name: String,
    /// The events that it has in hand, by id.
    pub events: BTreeMap<String, Standing>,
}

/// How a machine stands to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// How far it has come.
    pub stage: Stage,
    /// Whether it has approved, and that was taken.
    pub approved: bool,
}

/// How far a machine has come with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It waits for its turn.
    Waiting,
    /// Its hooks run.
    Preparing,
    /// It is ready.
    Ready,
    /// It is not, and will not be.
    Failed,
    /// It is none of its business, or it does nothing about it.
    Idle,
}

/// Result of one question to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerReport {
    /// The peer has said how it stands.
    Word(PeerWord),
    /// The peer of that name is alive, but has no time to say how it stands. It is not silent, and not ready either.
    Alive(String),
}

/// Whom to ask how they are, every second or so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Nobody: there is nothing to wait for.
    Nobody,
    /// These, by name.
    These(Vec<String>),
    /// Everybody that there is.
    Everybody,
}

/// What was heard of the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    by_name: BTreeMap<String, View>,
    /// The beginning of the last round in which all of them were asked.
    asked: Option<Steady>,
}

/// What one peer has said, and when.
#[derive(Clone, Debug, Default)]
struct View {
    /// The last sign of life.
    alive: Option<Steady>,
    word: Option<(Steady, PeerWord)>,
}

/// Whether everybody who is named is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Somebody else has to approve, or somebody is not ready.
    Wait,
    /// All are; those were not heard of, and count as ready.
    Go { without: Vec<String> },
}

impl Views {
    pub(crate) fn hear(&mut self, now: Steady, report: PeerReport) {
        match report {
            PeerReport::Word(word) => {
                let view = self.by_name.entry(word.name.clone()).or_default();
                *view = View { alive: Some(now), word: Some((now, word)) };
            }
            PeerReport::Alive(name) => self.by_name.entry(name).or_default().alive = Some(now),
        }
    }

    pub(crate) fn asked(&mut self, begun: Steady) {
        self.asked = Some(begun);
    }

    /// Whether a peer says that it has approved an event.
    pub(crate) fn say_approved(&self, event: EventId) -> bool {
        let id = event.to_string();
        let words = self.by_name.values().filter_map(|view| view.word.as_ref());
        words.map(|(_, word)| word).any(|word| word.events.get(&id).is_some_and(|standing| standing.approved))
    }

    /// Whether this machine has to approve an event for which it is ready.
    ///
    /// The first that is named and alive does. Two machines that cannot hear each other may both think so: approving twice is
    /// approving once.
    pub(crate) fn verdict(&self, now: Steady, case: &Case, me: &str, peers: &Peers) -> Verdict {
        let mut without = Vec::new();
        let mut someone_before_me = false;
        let mut before_me = true;
        for name in &case.seen.resources {
            if name == me {
                before_me = false;
                continue;
            }
            if self.is_silent(now, name, case, peers) {
                if !may_go_on(now, case, peers) {
                    return Verdict::Wait;
                }
                without.push(name.clone());
                continue;
            }
            someone_before_me |= before_me;
            match self.stage(now, name, case.seen.id, peers) {
                // Whoever does nothing about it has nothing to get ready.
                Some(Stage::Ready | Stage::Idle) => {}
                Some(Stage::Waiting | Stage::Preparing | Stage::Failed) | None => return Verdict::Wait,
            }
        }
        if someone_before_me { Verdict::Wait } else { Verdict::Go { without } }
    }

    /// Whether a machine may begin to prepare: fewer than so many are drained for other events, or will be before it.
    pub(crate) fn has_turn(&self, now: Steady, case: &Case, at_once: u32, peers: &Peers) -> bool {
        if time_left(now, case).is_some_and(|left| left <= peers.reserve) {
            return true;
        }
        // Those who are there have to be asked first, unless nobody ever asks them.
        let was_asked = self.asked.is_some_and(|at| at >= case.live.since);
        if !was_asked && now.since(case.live.since) <= peers.silent_after {
            return false;
        }
        let mine = case.seen.id.to_string();
        let is_before = |view: &&View| {
            let Some((_, word)) = &view.word else { return false };
            view.alive.is_some_and(|at| !self.is_silent_since(now, at, peers))
                && word.events.iter().any(|(id, standing)| {
                    *id != mine
                        && match standing.stage {
                            Stage::Preparing | Stage::Ready | Stage::Failed => true,
                            Stage::Waiting => *id < mine,
                            Stage::Idle => false,
                        }
                })
        };
        let before = self.by_name.values().filter(is_before).count();
        u32::try_from(before).is_ok_and(|before| before < at_once)
    }

    /// A machine that has not been heard of is given time to answer before it is called silent.
    fn is_silent(&self, now: Steady, name: &str, case: &Case, peers: &Peers) -> bool {
        self.is_silent_since(now, self.last_sign(name, case), peers)
    }

    /// Whether a machine that gave its last sign of life at that moment is silent: long enough ago, and it was asked since, in vain.
    ///
    /// Time alone proves nothing: this machine may have been paused, or too busy to ask.
    fn is_silent_since(&self, now: Steady, last: Steady, peers: &Peers) -> bool {
        let was_asked = |begun: Steady| begun >= last.plus(peers.silent_after / 2);
        now.since(last) > peers.silent_after && self.asked.is_some_and(was_asked)
    }

    /// The last sign of life of a machine, or the moment from which on it was expected.
    fn last_sign(&self, name: &str, case: &Case) -> Steady {
        let alive = self.by_name.get(name).and_then(|view| view.alive);
        alive.map_or(case.live.since, |at| at.max(case.live.since))
    }

    /// The stage that a machine has told of not too long ago. A machine that is alive may have told of another stage since then.
    fn stage(&self, now: Steady, name: &str, event: EventId, peers: &Peers) -> Option<Stage> {
        let (at, word) = self.by_name.get(name)?.word.as_ref()?;
        let is_fresh = now.since(*at) <= peers.silent_after;
        Some(word.events.get(&event.to_string()).filter(|_| is_fresh)?.stage)
    }

    /// When a peer that is waited for will count as silent, if nothing is heard of it.
    pub(crate) fn next_silence(&self, now: Steady, case: &Case, me: &str, peers: &Peers) -> Option<Steady> {
        let others = case.seen.resources.iter().filter(|name| *name != me);
        let last = others.map(|name| self.last_sign(name, case));
        let next = last.map(|at| at.plus(peers.silent_after + std::time::Duration::from_millis(1)));
        next.filter(|at| *at > now).min()
    }
}

fn may_go_on(now: Steady, case: &Case, peers: &Peers) -> bool {
    match peers.silence {
        Silence::Wait => false,
        Silence::GoOn => true,
        Silence::GoOnWhenLeft(bound) => time_left(now, case).is_some_and(|left| left <= bound),
    }
}

pub(crate) fn time_left(now: Steady, case: &Case) -> Option<std::time::Duration> {
    case.live.deadline.map(|deadline| deadline.since(now))
}

/// Whether what is known of a consent is that it was taken.
pub(crate) fn is_given(consent: Consent) -> bool {
    match consent {
        Consent::Given | Consent::ByPeer => true,
        Consent::None | Consent::Tried => false,
    }
}
