//! The driver of a cluster on one server: the order of steps of `crates/server/src/driver`, without tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use forewarn_control::request::{ClusterRequest, Reply};
use forewarn_control::{
    Chain, ClusterId, ClusterState, ControlError, Effect, Entry, Environment, Fencing, HypervisorKind,
    Record, decide_in_cluster,
};
use forewarn_lifecycle::simulator::{self, Completion};
use forewarn_lifecycle::{Action, Command, Exposure, MaintenanceId, Now, Steady, Target, TenantId};
use forewarn_ownership::{ServerName, StreamClock, StreamWriter, Takeover};

use crate::context::Context;
use crate::engine::{HeadDetails, Payload, StreamTransaction};
use crate::host_clock::HostClock;
use crate::message::{Message, Node, Order, RequestAnswer};
use crate::omission::Omission;

use super::batch::{Batch, PendingCommit, ReplyTo};

/// Time after which an order without a result is sent again, in milliseconds.
const ORDER_MILLIS: u64 = 2_000;
/// Interval of records of the clock while something waits for it.
const RECORD_MILLIS: u64 = 5_000;
/// Steps that are due at one instant: beyond it, the rules do not settle.
const STEPS_MAX: usize = 10_000;

/// The parts of a server that its drivers use.
pub(crate) struct Local<'a> {
    pub(crate) server: usize,
    pub(crate) epoch: u64,
    pub(crate) name: &'a ServerName,
    pub(crate) clock: &'a HostClock,
    /// The copy of the log on disk.
    pub(crate) journal: &'a mut Vec<Payload>,
    /// The wall clock differs from those of the other servers: nothing starts.
    pub(crate) is_clock_held: bool,
}

/// The part of a server in a cluster.
pub(crate) enum Role {
    Follower,
    TakingOver(TakeoverStage),
    Owner(Box<Ownership>),
}

/// The stages of a takeover.
pub(crate) enum TakeoverStage {
    /// The head is being read.
    Head,
    /// The takeover is being written.
    Write(Box<Takeover<HeadDetails, Payload>>, StreamClock),
    /// The log is being read.
    Log(Box<StreamWriter<HeadDetails, Payload>>, StreamClock),
}

pub(crate) struct Ownership {
    pub(crate) writer: StreamWriter<HeadDetails, Payload>,
    pub(crate) clock: StreamClock,
    pub(crate) commit: Option<PendingCommit>,
    pub(crate) is_moving: bool,
}

pub(crate) struct Driver {
    pub(crate) id: ClusterId,
    pub(crate) state: Arc<ClusterState>,
    pub(crate) audit_end: Chain,
    pub(crate) audit_shown: Chain,
    /// The state after the last batch of the log, and the end of its audit log.
    pub(crate) logged: (Arc<ClusterState>, Chain),
    pub(crate) published: Arc<ClusterState>,
    /// Guests can read the documents.
    pub(crate) has_documents: bool,
    /// Announcements that no VM may have read.
    pub(crate) unread: BTreeSet<MaintenanceId>,
    /// Batches are applied and not published.
    pub(crate) is_held: bool,
    pub(crate) batch: Batch,
    pub(crate) replies: Vec<(ReplyTo, RequestAnswer)>,
    /// Replies that are to be sent now.
    pub(crate) answered: Vec<(ReplyTo, RequestAnswer)>,
    pub(crate) role: Role,
    pub(crate) inbox: VecDeque<(ReplyTo, Arc<ClusterRequest>)>,
    pub(crate) recorded: Steady,
    /// Orders without a result, and the time at which each is sent again.
    orders: BTreeMap<(MaintenanceId, Target), u64>,
    /// The server that should get the cluster.
    pub(crate) move_to: Option<usize>,
    /// The call with the transaction in flight, or with the read of a takeover.
    pub(crate) call: Option<u64>,
    /// Another server has taken the cluster.
    pub(crate) was_fenced: bool,
}

/// An environment in which no action ends by itself, and every tenant polls some server.
struct RealmEnvironment;

impl simulator::Environment for RealmEnvironment {
    fn take_completion(&mut self, _: Now) -> Option<Completion> {
        None
    }

    fn next_completion(&self) -> Option<Steady> {
        None
    }

    fn last_heard(&self, _: TenantId, now: Now) -> Option<Steady> {
        Some(now.steady)
    }
}

impl Driver {
    /// A follower that starts from its copy. It has no documents before it knows if the owner has shown the last batches,
    /// which contain announcements.
    pub(crate) fn new(
        id: ClusterId,
        (state, audit_end): (Arc<ClusterState>, Chain),
        (published, audit_shown): (Arc<ClusterState>, Chain),
        unread: BTreeSet<MaintenanceId>,
    ) -> Self {
        Self {
            id,
            logged: (Arc::clone(&state), audit_end),
            is_held: !unread.is_empty(),
            has_documents: unread.is_empty(),
            published,
            state,
            audit_end,
            audit_shown,
            unread,
            batch: Batch::default(),
            replies: Vec::new(),
            answered: Vec::new(),
            role: Role::Follower,
            inbox: VecDeque::new(),
            recorded: Steady::START,
            orders: BTreeMap::new(),
            move_to: None,
            call: None,
            was_fenced: false,
        }
    }

    pub(crate) fn owned_term(&self) -> Option<u64> {
        match &self.role {
            Role::Owner(ownership) => Some(ownership.writer.head().term.0),
            Role::Follower | Role::TakingOver(_) => None,
        }
    }

    /// The transaction in flight.
    pub(crate) fn transaction(&self) -> Option<&StreamTransaction> {
        match &self.role {
            Role::Follower | Role::TakingOver(TakeoverStage::Head | TakeoverStage::Log(..)) => None,
            Role::TakingOver(TakeoverStage::Write(takeover, _)) => Some(takeover.transaction()),
            Role::Owner(ownership) => ownership.writer.in_flight(),
        }
    }

    /// The clocks of the stream; None if this server does not own it.
    pub(crate) fn now(&self, local: &Local<'_>, context: &Context<'_>) -> Option<Now> {
        match &self.role {
            Role::Owner(ownership) => Some(local.clock.read(&ownership.clock, context.now)),
            Role::Follower | Role::TakingOver(_) => None,
        }
    }

    /// Does everything that can be done now, until a commit is in flight or nothing is due.
    pub(crate) fn pump(&mut self, local: &mut Local<'_>, context: &mut Context<'_>) {
        for _ in 0..STEPS_MAX {
            let Role::Owner(ownership) = &self.role else { return self.refuse_inbox() };
            if ownership.writer.in_flight().is_some() {
                return;
            }
            let is_moving = ownership.is_moving;
            let Some(now) = self.now(local, context) else { return };
            if !self.batch.is_empty() {
                self.begin_commit(local, context);
                continue;
            }
            let pending = std::mem::take(&mut self.batch.pending);
            self.replies
                .extend(pending.into_iter().map(|(to, reply)| (to, RequestAnswer::Decided(Box::new(reply)))));
            if is_moving || self.step(local, context, now) {
                continue;
            }
            self.answered.append(&mut self.replies);
            if self.begin_move_if_wanted(local, context) {
                return;
            }
            if self.inbox.is_empty() {
                return;
            }
            self.handle_inbox(context, now);
        }
        context.checks.fail(context.now, "the rules do not come to rest".to_owned());
    }

    /// Requests to a follower are for another server.
    fn refuse_inbox(&mut self) {
        let refused = self.inbox.drain(..).map(|(to, _)| (to, RequestAnswer::NotDone));
        self.answered.extend(refused);
    }

    fn handle_inbox(&mut self, context: &mut Context<'_>, now: Now) {
        while let Some((to, request)) = self.inbox.pop_front() {
            match self.decide(context, now, &request) {
                Ok(reply) => self.batch.pending.push((to, Ok(reply))),
                Err(error) => self.answered.push((to, RequestAnswer::Decided(Box::new(Err(error))))),
            }
        }
    }

    pub(crate) fn decide(
        &mut self,
        context: &Context<'_>,
        now: Now,
        request: &ClusterRequest,
    ) -> Result<Reply, ControlError> {
        let environment = Environment {
            now,
            audit: self.audit_end,
            hypervisor: HypervisorKind::Program(Fencing::Off),
            revision: self.state.log_number() << 20,
            jammed: &BTreeSet::new(),
        };
        let decision = decide_in_cluster(self.id, &self.state, context.shared, &environment, request)?;
        (self.state, self.audit_end) = (decision.state, decision.audit_end);
        self.batch.records.extend(decision.records);
        self.batch.audit.extend(decision.audit);
        decision.effects.into_iter().for_each(|effect| self.batch.add(&effect));
        Ok(decision.reply)
    }

    /// Decides the first thing that is due. Returns false if nothing is.
    fn step(&mut self, local: &Local<'_>, context: &mut Context<'_>, now: Now) -> bool {
        if local.is_clock_held {
            return false;
        }
        let Some(command) = simulator::due(self.state.rules(), now, &mut RealmEnvironment) else {
            return self.record_clock_if_due(now);
        };
        let decided = self.decide(context, now, &ClusterRequest::Rules(command));
        if let Err(error) = &decided {
            context.checks.fail(context.now, format!("the rules rejected their own command: {error}"));
        }
        decided.is_ok() && !self.batch.is_empty()
    }

    fn record_clock_if_due(&mut self, now: Now) -> bool {
        let is_busy = self.state.rules().maintenances().next().is_some();
        let is_due = now.steady.millis() >= self.recorded.millis() + RECORD_MILLIS;
        if !is_busy || !is_due {
            return false;
        }
        self.recorded = now.steady;
        self.record(Record::clock_in(now, forewarn_control::Stream::Cluster(self.id)));
        true
    }

    /// Adds a record that no request has made to the batch.
    pub(crate) fn record(&mut self, record: Record) {
        self.apply(std::slice::from_ref(&record)).into_iter().for_each(|effect| self.batch.add(&effect));
        self.batch.records.push(record);
    }

    pub(crate) fn apply(&mut self, records: &[Record]) -> Vec<Effect> {
        let state = Arc::make_mut(&mut self.state);
        let mut effects = Vec::new();
        for record in records {
            if let Entry::Cluster(id, entry) = &record.entry {
                effects.extend(state.apply(*id, record.now, entry));
            }
        }
        effects
    }

    pub(crate) fn publish(&mut self, local: &Local<'_>, context: &mut Context<'_>) {
        (self.published, self.has_documents) = (Arc::clone(&self.state), true);
        self.audit_shown = self.audit_end;
        context.checks.published(context.now, (local.server, self.id), &self.published, context.step_log);
    }

    /// VMs can read announcements of which it is unknown since when: their starts wait.
    pub(crate) fn hold_starts(
        &mut self,
        context: &mut Context<'_>,
        now: Now,
        announced: BTreeSet<MaintenanceId>,
    ) {
        if announced.is_empty() {
            return;
        }
        let (maintenances, exposure) = (announced.into_iter().collect(), Exposure::PerhapsRead);
        let command = Command::EnsureNotice { maintenances, exposure };
        if let Err(error) = self.decide(context, now, &ClusterRequest::Rules(command)) {
            context.checks.fail(context.now, format!("cannot extend the notice: {error}"));
        }
    }

    /// Orders an action now, and again until it has a result.
    pub(crate) fn perform(&mut self, local: &Local<'_>, context: &mut Context<'_>, action: Action) {
        self.orders.insert((action.maintenance, action.target), context.now + ORDER_MILLIS);
        let Some(term) = self.owned_term() else { return };
        let order = Order {
            cluster: self.id,
            term,
            name: self.state.rules().action_name(action.maintenance, action.target),
            action,
            from: (local.server, local.epoch),
        };
        context.send(Node::Hypervisor, Message::Order(Box::new(order)));
    }

    /// Sends orders again that have had no result for a while, and forgets those that are no longer wanted.
    pub(crate) fn repeat_orders(&mut self, local: &Local<'_>, context: &mut Context<'_>) {
        if self.orders.is_empty() || self.owned_term().is_none() {
            return;
        }
        let due: Vec<_> =
            self.orders.iter().filter(|(_, at)| **at <= context.now).map(|(key, _)| *key).collect();
        for (work, target) in due {
            let maintenance = self.logged.0.rules().maintenance(work);
            match maintenance.and_then(|known| known.action_on(target)) {
                Some(action) => self.perform(local, context, action),
                None => drop(self.orders.remove(&(work, target))),
            }
        }
    }

    /// Another server owns the cluster now. Decisions that are not in the log have not happened.
    pub(crate) fn end_ownership(&mut self, local: &Local<'_>, context: &mut Context<'_>) {
        if !matches!(self.role, Role::Owner(_)) {
            return;
        }
        let undone = std::mem::take(&mut self.batch);
        (self.state, self.audit_end) = self.logged.clone();
        self.answered.extend(undone.pending.into_iter().map(|(to, _)| (to, RequestAnswer::NotDone)));
        self.answered.append(&mut self.replies);
        self.role = Role::Follower;
        (self.call, self.move_to) = (None, None);
        self.orders.clear();
        self.refuse_inbox();
        context.step_log.add(context.now, local.name.as_str(), || format!("follows cluster {}", self.id));
        if !self.is_held {
            self.publish(local, context);
        }
    }

    /// True if rule 6 is left out in this way.
    pub(crate) fn forgets_unread(context: &Context<'_>) -> bool {
        context.omits(Omission::HoldOfLastBatch) || context.omits(Omission::NoticeFromReadable)
    }
}
