//! A server: its computer, its process, and its copy of the logs on disk.

mod batch;
mod commit;
mod driver;
mod following;
mod front;
mod realm;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::{Chain, ClusterId, ClusterState, Entry};
use forewarn_ownership::{BootId, ClusterStanding, Peers, ServerName};

use batch::ReplyTo;
pub(crate) use driver::{Driver, Local};
use following::{announced_at_end, end_of_audit};
use front::{Front, PendingRead};
use realm::CallPurpose;

use crate::checks::ServerCopies;
use crate::context::Context;
use crate::engine::{EngineCall, EngineView, Payload};
use crate::host_clock::HostClock;
use crate::message::{FrontKey, Message, Node};
use crate::names::name_of;
use crate::omission::Omission;

/// The states of clusters before the first batch, and the ends of their audit logs.
pub(crate) type InitialStates = BTreeMap<ClusterId, (Arc<ClusterState>, Chain)>;

/// A state and the end of its audit log after some batches.
fn replay(
    (mut state, mut end): (Arc<ClusterState>, Chain),
    batches: &[Payload],
) -> (Arc<ClusterState>, Chain) {
    for batch in batches {
        let state = Arc::make_mut(&mut state);
        for record in &batch.records {
            if let Entry::Cluster(id, entry) = &record.entry {
                state.apply(*id, record.now, entry);
            }
        }
        end = end_of_audit(end, batch);
    }
    (state, end)
}

/// A server with its computer.
pub(crate) struct Server {
    pub(crate) index: usize,
    pub(crate) name: ServerName,
    pub(crate) clock: HostClock,
    /// Counts the processes of this server.
    pub(crate) epoch: u64,
    pub(crate) process: Option<Process>,
    /// Copies of the logs, on disk.
    pub(crate) journals: BTreeMap<ClusterId, Vec<Payload>>,
    initial: Arc<InitialStates>,
}

/// The memory of a server.
pub(crate) struct Process {
    pub(crate) peers: Peers,
    /// Empty until the copies have caught up with the logs.
    pub(crate) drivers: BTreeMap<ClusterId, Driver>,
    standings: BTreeMap<ClusterId, ClusterStanding>,
    /// The last owner of each cluster before the one of the standing, as this process has seen it.
    former_terms: BTreeMap<ClusterId, u64>,
    seen_revision: i64,
    calls: BTreeMap<u64, (CallPurpose, u64)>,
    next_look: u64,
    next_lease: u64,
    next_heartbeat: u64,
    fronts: BTreeMap<FrontKey, Front>,
    attempts: BTreeMap<u64, FrontKey>,
    reads: Vec<PendingRead>,
    is_clock_held: bool,
}

impl Server {
    pub(crate) fn new(index: usize, clock: HostClock, initial: &Arc<InitialStates>) -> Self {
        let journals = initial.keys().map(|id| (*id, Vec::new())).collect();
        let initial = Arc::clone(initial);
        Self { index, name: name_of(index), clock, epoch: 0, process: None, journals, initial }
    }

    /// Starts a process, which first reads what its copies lack.
    pub(crate) fn start(&mut self, context: &mut Context<'_>) {
        self.epoch += 1;
        let uptime = self.clock.uptime(context.now);
        self.process = Some(Process {
            peers: Peers::new(self.name.clone(), uptime),
            drivers: BTreeMap::new(),
            standings: BTreeMap::new(),
            former_terms: BTreeMap::new(),
            seen_revision: -1,
            calls: BTreeMap::new(),
            next_look: context.now,
            next_lease: context.now,
            next_heartbeat: context.now,
            fronts: BTreeMap::new(),
            attempts: BTreeMap::new(),
            reads: Vec::new(),
            is_clock_held: false,
        });
        context.step_log.add(context.now, self.name.as_str(), || "starts".to_owned());
    }

    /// The process ends, and the computer may start again. The last batches of each copy may be lost.
    pub(crate) fn crash(&mut self, context: &mut Context<'_>, lost_batches: usize, reboot: Option<BootId>) {
        self.process = None;
        for journal in self.journals.values_mut() {
            journal.truncate(journal.len().saturating_sub(lost_batches));
        }
        if let Some(boot) = reboot {
            self.clock.reboot(context.now, boot);
        }
        context.step_log.add(context.now, self.name.as_str(), || {
            format!(
                "crashes, without the last {lost_batches} batches of its copies, reboot: {}",
                reboot.is_some()
            )
        });
    }

    /// The copies are complete: the process begins to serve.
    fn join(&mut self, context: &mut Context<'_>, view: &EngineView) {
        let Some(process) = &mut self.process else { return };
        for (id, stream) in &view.streams {
            let (Some(journal), Some(initial)) = (self.journals.get_mut(id), self.initial.get(id)) else {
                continue;
            };
            let at = journal.len() as u64;
            let missing = stream.batches.iter().filter(|(number, _)| *number > at);
            journal.extend(missing.map(|(_, payload)| Arc::clone(payload)));
            let is_shown = |batch: &&Payload| announced_at_end(&batch.records).is_empty();
            // The owner may still move times in the last batches, and VMs may have read the documents before them or after.
            let shown = journal.iter().rposition(|batch| is_shown(&batch)).map_or(0, |last| last + 1);
            let former = replay(initial.clone(), &journal[..shown]);
            let latest = replay(former.clone(), &journal[shown..]);
            let unread = journal.last().map_or_else(BTreeSet::new, |batch| announced_at_end(&batch.records));
            let mut driver = Driver::new(*id, latest, former, unread);
            if context.omits(Omission::DocumentsAfterStart) {
                driver.published = Arc::clone(&driver.state);
                (driver.has_documents, driver.is_held) = (true, false);
            }
            if driver.has_documents {
                context.checks.published(context.now, (self.index, *id), &driver.published, context.step_log);
            }
            process.drivers.insert(*id, driver);
        }
        context.step_log.add(context.now, self.name.as_str(), || "serves".to_owned());
    }

    /// The copies on disk, and the states that the server shows.
    pub(crate) fn copies(&self) -> ServerCopies<'_> {
        let drivers = self.process.iter().flat_map(|process| &process.drivers);
        let states = drivers.map(|(id, driver)| (*id, driver.published.as_ref())).collect();
        ServerCopies { server: &self.name, logs: &self.journals, states }
    }

    /// One interval of the server's own tasks.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        let uptime = self.clock.uptime(context.now);
        let wall = self.clock.wall(context.now);
        let Some(process) = &mut self.process else { return };
        process.peers.tick(uptime);
        let verdict = process.peers.clock_verdict(uptime, wall);
        process.is_clock_held = matches!(verdict, forewarn_ownership::ClockVerdict::Hold { .. });
        if process.next_lease <= context.now {
            process.next_lease = context.now + realm::LEASE_RENEWAL_MILLIS;
            let call = EngineCall::KeepLease(self.name.clone());
            self.call(context, CallPurpose::Lease, call);
        }
        self.look_if_due(context);
        self.send_heartbeats_if_due(context);
        self.expire_calls(context);
        self.begin_takeovers(context);
        self.try_fronts(context);
        self.finish_reads(context);
        let clusters: Vec<_> =
            self.process.iter().flat_map(|process| process.drivers.keys().copied()).collect();
        for cluster in clusters {
            self.with_driver(context, cluster, |driver, local, context| {
                driver.repeat_orders(local, context);
                driver.pump(local, context);
            });
        }
    }

    /// Handles a message.
    pub(crate) fn receive(&mut self, context: &mut Context<'_>, message: Message) {
        if self.process.is_none() {
            return;
        }
        match message {
            Message::Answer { id, answer } => self.take_engine_answer(context, id, answer),
            Message::Changed => {
                if let Some(process) = &mut self.process {
                    process.next_look = context.now;
                }
                self.look_if_due(context);
            }
            Message::Heartbeat { from, sent, report } => {
                self.follow_publications(context, &report);
                let report = Box::new(self.report(context.now));
                let answer = Message::HeartbeatAnswer { from: self.index, sent, report };
                context.send(Node::Server(from), answer);
            }
            Message::HeartbeatAnswer { from, sent, report } => self.hear(context, from, sent, &report),
            Message::Request { from, ticket, cluster, request } => {
                self.accept(context, (from, ticket), cluster, request);
            }
            Message::Forward { from, attempt, cluster, request } => {
                self.accept_forwarded(context, ReplyTo { server: from, attempt }, cluster, request);
            }
            Message::ForwardReply { attempt, answer } => self.take_reply(context, attempt, answer),
            Message::Read { from, ticket, cluster } => self.begin_read(context, (from, ticket), cluster),
            Message::Poll { guest, cluster, machine } => self.answer_poll(context, guest, cluster, machine),
            Message::Result { epoch, cluster, work, target, report } => {
                if epoch == self.epoch {
                    self.take_result(context, cluster, (work, target), report);
                }
            }
            Message::Move { cluster, to } => {
                self.with_driver(context, cluster, |driver, local, context| {
                    driver.move_to = Some(to);
                    driver.pump(local, context);
                });
            }
            Message::Drain => self.drain(context),
            Message::Moved { cluster } => self.look_now(context, cluster),
            Message::Call { .. }
            | Message::Reply { .. }
            | Message::ReadReply { .. }
            | Message::Document { .. }
            | Message::Order(_) => {}
        }
    }

    /// Gives a driver a step, and then sends its transaction and its replies.
    fn with_driver(
        &mut self,
        context: &mut Context<'_>,
        cluster: ClusterId,
        step: impl FnOnce(&mut Driver, &mut Local<'_>, &mut Context<'_>),
    ) {
        let Some(process) = &mut self.process else { return };
        let (Some(driver), Some(journal)) =
            (process.drivers.get_mut(&cluster), self.journals.get_mut(&cluster))
        else {
            return;
        };
        let mut local = Local {
            server: self.index,
            epoch: self.epoch,
            name: &self.name,
            clock: &self.clock,
            journal,
            is_clock_held: process.is_clock_held,
        };
        step(driver, &mut local, context);
        if std::mem::take(&mut driver.was_fenced) {
            process.peers.fenced(self.clock.uptime(context.now));
        }
        let answered = std::mem::take(&mut driver.answered);
        let transaction = driver.transaction().filter(|_| driver.call.is_none()).cloned();
        if let Some(transaction) = transaction {
            let call = EngineCall::Transact(cluster, Box::new(transaction));
            let id = self.call(context, CallPurpose::Transaction(cluster), call);
            if let Some(driver) = self.process.as_mut().and_then(|process| process.drivers.get_mut(&cluster))
            {
                driver.call = Some(id);
            }
        }
        for (to, answer) in answered {
            if to.server == self.index {
                self.take_reply(context, to.attempt, answer);
            } else {
                let reply = Message::ForwardReply { attempt: to.attempt, answer };
                context.send(Node::Server(to.server), reply);
            }
        }
    }
}
