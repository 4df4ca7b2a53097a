//! A server of the model: it runs the code of the crate, and adds the application.

use forewarn_ownership::{
    Answer, BatchId, BootId, ClockAnchor, Commit, Head, HeadClock, Revision, ServerName, StreamClock,
    StreamTimers, StreamWriter, Takeover, Term, Uptime,
};
use forewarn_types::Steady;

use super::application::{Batch, ClientWrite, EventState, Record, notice, uptime};
use super::engine::{Engine, StreamTransaction};
use super::{Omission, RealmModel};

/// The computer of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelHost {
    pub(super) boot: BootId,
    pub(super) booted_ticks_ago: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelServer {
    pub(super) name: ServerName,
    pub(super) host: ModelHost,
    pub(super) role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Standby,
    TakingOver {
        takeover: Takeover<(), Batch>,
        clock: StreamClock,
    },
    Owner(Driver),
    /// The last term that the server knew.
    Fenced(Term),
}

/// The owner of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Driver {
    pub(super) writer: StreamWriter<(), Batch>,
    pub(super) clock: StreamClock,
    pub(super) state: EventState,
    pub(super) notice: NoticeState,
}

/// Notice of the event at its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NoticeState {
    /// No guest can read an announcement, and none waits to be shown.
    NotAnnounced,
    /// The announcement became durable too late: the next commit moves its time.
    TooLate,
    /// Guests can read the event.
    Shown,
}

/// Commits that an owner may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Announce,
    Defer,
    Write(ClientWrite),
    Start,
    Refresh,
}

impl ModelServer {
    pub(super) fn uptime(&self, tick: u8) -> Uptime {
        uptime(self.host.booted_ticks_ago, tick)
    }

    /// An id that no other transaction has: a server begins one for each revision of the head, and another one only
    /// after a rejection.
    pub(super) fn batch_after(&self, revision: Revision, rejections: u8) -> BatchId {
        let server = self.name.as_str().bytes().next().map_or(0, u128::from);
        let number = revision.0.unsigned_abs() << 8 | u64::from(rejections);
        BatchId((server << 64 | u128::from(number)).to_be_bytes())
    }

    /// The clock with which this server continues after a head.
    pub(super) fn resumed_clock(&self, model: &RealmModel, head: &HeadClock, tick: u8) -> StreamClock {
        let boot = self.host.boot;
        let mut head = *head;
        if model.omission == Some(Omission::ClockAnchor) {
            // The offset counts on every computer.
            head.anchor = head.anchor.map(|anchor| ClockAnchor { boot, ..anchor });
        }
        StreamClock::resumed(&head, Some(boot), self.uptime(tick))
    }

    /// Reads the log and becomes the driver.
    pub(super) fn open(
        &mut self,
        model: &RealmModel,
        writer: StreamWriter<(), Batch>,
        clock: StreamClock,
        (engine, tick): (&Engine, u8),
    ) {
        let mut state = EventState::replay(&engine.log);
        if EventState::is_perhaps_unread(&engine.log) && model.holds_last_batch() {
            state.held_until = clock.at(self.uptime(tick)).plus(notice());
        }
        let notice = if state.not_before.is_some() { NoticeState::Shown } else { NoticeState::NotAnnounced };
        self.role = Role::Owner(Driver { writer, clock, state, notice });
    }

    /// The transaction in flight.
    pub(super) fn in_flight(&self) -> Option<&StreamTransaction> {
        match &self.role {
            Role::Standby | Role::Fenced(_) => None,
            Role::TakingOver { takeover, .. } => Some(takeover.transaction()),
            Role::Owner(driver) => driver.writer.in_flight(),
        }
    }

    /// The revision of the head that the owner knows.
    pub(super) fn known_revision(&self) -> Revision {
        self.driver().map_or(Revision::ABSENT, |driver| driver.writer.revision())
    }

    pub(super) fn driver(&self) -> Option<&Driver> {
        match &self.role {
            Role::Owner(driver) => Some(driver),
            Role::Standby | Role::TakingOver { .. } | Role::Fenced(_) => None,
        }
    }
}

impl Driver {
    /// The commits that this owner may begin.
    pub(super) fn choices(&self, now: Steady, write: ClientWrite) -> Vec<Choice> {
        if self.writer.in_flight().is_some() {
            return Vec::new();
        }
        if self.notice == NoticeState::TooLate {
            return vec![Choice::Defer];
        }
        let timers = if self.state.is_pending() { StreamTimers::Running } else { StreamTimers::Idle };
        let refresh = self.writer.head().clock.refresh_at(timers).is_some_and(|at| now >= at);
        let permitted = [
            (Choice::Announce, self.state.not_before.is_none()),
            (Choice::Write(write), self.state.not_before.is_some() && self.state.written.is_none()),
            (Choice::Start, self.state.is_due(now)),
            (Choice::Refresh, refresh),
        ];
        permitted.into_iter().filter_map(|(choice, is_permitted)| is_permitted.then_some(choice)).collect()
    }

    pub(super) fn begin(
        &mut self,
        model: &RealmModel,
        choice: Choice,
        batch: BatchId,
        uptime: Uptime,
    ) -> StreamTransaction {
        let not_before = self.clock.at(uptime).plus(notice());
        let record = match choice {
            Choice::Announce => Some(Record::Announced { not_before }),
            Choice::Defer => Some(Record::Deferred { not_before }),
            Choice::Write(write) => Some(Record::Written(write)),
            Choice::Start => Some(Record::Started),
            Choice::Refresh => None,
        };
        let held_until =
            if model.omission == Some(Omission::DurableHold) { Steady::START } else { self.state.held_until };
        let payload = record.map(|record| Batch { record, held_until });
        let commit = Commit { batch, payload, details: (), clock: self.clock.head_clock(uptime) };
        self.writer.begin(commit).expect("the writer is ready").clone()
    }

    /// Decides if an announcement that has become durable may be shown.
    pub(super) fn check_notice(&mut self, model: &RealmModel, uptime: Uptime) {
        let Some(not_before) = self.state.not_before else { return };
        let in_time = not_before >= self.clock.at(uptime).plus(notice());
        let shown = in_time || !model.defers();
        self.notice = if shown { NoticeState::Shown } else { NoticeState::TooLate };
    }
}

/// A fenced writer begins nothing and expects no answer.
pub(super) fn is_at_rest(mut writer: StreamWriter<(), Batch>) -> bool {
    let clock = writer.head().clock;
    let commit = Commit { batch: BatchId([9; 16]), payload: None, details: (), clock };
    let refused = [
        writer.begin(commit).is_err(),
        writer.begin_move(writer.owner().server, BatchId([9; 16]), clock).is_err(),
        writer.answer(Answer::Applied { revision: Revision(99) }).is_err(),
    ];
    refused == [true; 3]
}

/// The head that a takeover reads.
pub(super) fn begin_takeover(
    server: &mut ModelServer,
    model: &RealmModel,
    (engine, tick): (&Engine, u8),
    batch: BatchId,
) -> StreamTransaction {
    let head: &Head<()> = &engine.head;
    let clock = server.resumed_clock(model, &head.clock, tick);
    let head_clock = clock.head_clock(server.uptime(tick));
    let takeover = Takeover::new(server.name.clone(), engine.revision, head, batch, head_clock)
        .expect("the clock has not gone back");
    let transaction = takeover.transaction().clone();
    server.role = Role::TakingOver { takeover, clock };
    transaction
}
