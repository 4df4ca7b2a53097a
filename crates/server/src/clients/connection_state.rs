//! State of one connection: its stage, since when, and its permit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::counts::OpenCount;
use super::limits::{ClientLimits, SILENCE_MAX, Trust};
use super::stage::Stage;
use forewarn_control::Permit;

/// State of one connection, shared by its task, its stream, its bodies and the table of the listener.
#[derive(Debug)]
pub(super) struct ConnectionState {
    facts: Mutex<StateFields>,
    closing: Notify,
}

#[derive(Debug)]
struct StateFields {
    stage: Stage,
    since: Instant,
    /// Start of the current request's handler: the deadline of a body counts from here.
    request_since: Instant,
    /// Time of the last byte, in either direction.
    progress: Instant,
    permit: Option<Arc<Permit>>,
    reuse: Reuse,
    is_closed: bool,
    open: OpenCount,
}

/// Reuse of the connection after the current request. Only the HTTP library knows the rules: this is the part of them
/// that is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reuse {
    /// The library may close the connection after the response.
    Unknown,
    /// The next bytes are a new request, once the body of this one was read.
    AfterBody,
    /// The next bytes are a new request.
    Certain,
}

/// Deadline of a connection in its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) stage: Stage,
    pub(super) is_silence: bool,
}

impl ConnectionState {
    /// A connection that was just accepted.
    pub(super) fn new(stage: Stage, open: OpenCount) -> Arc<Self> {
        let now = Instant::now();
        let facts = StateFields {
            stage,
            since: now,
            request_since: now,
            progress: now,
            permit: None,
            reuse: Reuse::Unknown,
            is_closed: false,
            open,
        };
        Arc::new(Self { facts: Mutex::new(facts), closing: Notify::new() })
    }

    /// A panic cannot leave a change half done.
    fn facts(&self) -> MutexGuard<'_, StateFields> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, stage: Stage) {
        let mut facts = self.facts();
        if facts.stage == stage {
            return;
        }
        let now = Instant::now();
        if facts.stage != Stage::Body && stage == Stage::Handling {
            facts.request_since = now;
        }
        (facts.stage, facts.since) = (stage, now);
    }

    /// Enters a stage, if the connection is in another given one.
    pub(super) fn pass(&self, from: Stage, to: Stage) {
        if self.stage() == from {
            self.enter(to);
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.facts().stage
    }

    pub(super) fn since(&self) -> Instant {
        self.facts().since
    }

    /// Records that bytes were read or written.
    pub(super) fn progress(&self) {
        self.facts().progress = Instant::now();
    }

    pub(super) fn set_reuse(&self, reuse: Reuse) {
        self.facts().reuse = reuse;
    }

    /// Records that the body of the request was read to its end.
    pub(super) fn body_ended(&self) {
        let mut facts = self.facts();
        if facts.reuse == Reuse::AfterBody {
            facts.reuse = Reuse::Certain;
        }
    }

    /// Returns true if the connection waits for a new request.
    pub(super) fn is_idle(&self) -> bool {
        let facts = self.facts();
        facts.stage == Stage::Idle && facts.reuse == Reuse::Certain
    }

    /// Number of the token that the last request has authenticated with.
    pub(super) fn token(&self) -> Option<u32> {
        self.facts().permit.as_ref().and_then(|permit| permit.token)
    }

    /// Records that a request on this connection has authenticated.
    pub(super) fn authenticate(&self, permit: &Arc<Permit>) {
        let mut facts = self.facts();
        facts.open.authenticate();
        facts.permit = Some(Arc::clone(permit));
    }

    /// Returns true if it has authenticated with a token that is still valid.
    pub(super) fn has(&self, is_valid: impl FnOnce(&Permit) -> bool) -> bool {
        let permit = self.facts().permit.clone();
        permit.is_some_and(|permit| is_valid(&permit))
    }

    pub(super) fn deadline(&self, limits: &ClientLimits) -> Deadline {
        let facts = self.facts();
        let stage = facts.stage;
        let trust = if facts.permit.is_some() { Trust::Authenticated } else { Trust::None };
        let since = if stage == Stage::Body { facts.request_since } else { facts.since };
        let silence = Deadline { at: facts.progress + SILENCE_MAX, stage, is_silence: true };
        let is_silent = matches!(stage, Stage::Handling | Stage::Body | Stage::Response | Stage::Flush);
        match limits.time_in(stage, trust).map(|time| since + time) {
            Some(at) if !is_silent || at <= silence.at => Deadline { at, stage, is_silence: false },
            Some(_) | None => silence,
        }
    }

    /// Tells the task of the connection to close it.
    pub(super) fn close(&self) {
        self.facts().is_closed = true;
        self.closing.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn closed(&self) {
        while !self.facts().is_closed {
            self.closing.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clients::counts::ClientCounts;

    fn state(stage: Stage) -> Arc<ConnectionState> {
        let counts = ClientCounts::new(&mut prometheus_client::registry::Registry::default());
        ConnectionState::new(stage, counts.of("api").open())
    }

    /// promise: S5
    #[tokio::test(start_paused = true)]
    async fn bytes_that_trickle_in_do_not_extend_the_time_for_a_header_or_a_body() {
        let (limits, begin) = (ClientLimits::default(), Instant::now());
        let state = state(Stage::New);
        state.enter(Stage::Head);
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            state.progress();
            state.enter(Stage::Head);
        }
        let deadline = state.deadline(&limits);
        assert_eq!((deadline.at, deadline.is_silence), (begin + limits.head, false));
        let begin = Instant::now();
        state.enter(Stage::Handling);
        for _ in 0..9 {
            state.enter(Stage::Body);
            tokio::time::advance(Duration::from_secs(1)).await;
            state.progress();
            state.enter(Stage::Handling);
        }
        state.enter(Stage::Body);
        assert_eq!(state.deadline(&limits).at, begin + limits.body);
    }

    /// promise: S5
    #[tokio::test(start_paused = true)]
    async fn an_authenticated_client_has_more_time_and_streams_until_it_is_silent() {
        let limits = ClientLimits::default();
        let state = state(Stage::Idle);
        state.authenticate(&Arc::new(Permit::unlimited("anyone")));
        let begin = Instant::now();
        assert_eq!(state.deadline(&limits).at, begin + limits.idle_authenticated);
        state.enter(Stage::Handling);
        state.enter(Stage::Response);
        tokio::time::advance(Duration::from_secs(200)).await;
        state.progress();
        let deadline = state.deadline(&limits);
        assert_eq!((deadline.at, deadline.is_silence), (Instant::now() + SILENCE_MAX, true));
    }
}
