//! The realm as a server sees it: calls to the engine, heartbeats, owners.

use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_ownership::{Answer, ClusterStanding, HEARTBEAT_MILLIS, ServerDuty, Uptime, drain_moves};

use super::{Driver, Server};
use crate::context::Context;
use crate::engine::{EngineAnswer, EngineCall, EngineView};
use crate::message::{FrontKey, Message, Node, ServerReport};
use crate::names::{SERVERS, index_of, name_of};

/// Interval of the renewal of the lease.
pub(super) const LEASE_RENEWAL_MILLIS: u64 = 1_000;
/// Interval of reads while no watch reports a change.
const LOOK_MILLIS: u64 = 500;
/// Time limit of a call.
const CALL_MILLIS: u64 = 300;

/// The use of the answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPurpose {
    Lease,
    Follow,
    /// The transaction in flight of a cluster: a commit, a move or a takeover.
    Transaction(ClusterId),
    /// The head for a takeover.
    Head(ClusterId),
    /// The log after a takeover.
    Log(ClusterId),
    /// The confirmation of a read.
    Read(FrontKey),
}

impl Server {
    pub(super) fn call(&mut self, context: &mut Context<'_>, purpose: CallPurpose, call: EngineCall) -> u64 {
        let id = context.new_id();
        if let Some(process) = &mut self.process {
            process.calls.insert(id, (purpose, context.now + CALL_MILLIS));
        }
        context.send(Node::Engine, Message::Call { server: self.index, id, call });
        id
    }

    /// Reads all keys, and the batches that the copies lack.
    pub(super) fn look(&mut self, context: &mut Context<'_>, purpose: CallPurpose) -> u64 {
        let positions = self.journals.iter().map(|(cluster, journal)| (*cluster, journal.len() as u64));
        let call = EngineCall::Look(positions.collect());
        self.call(context, purpose, call)
    }

    pub(super) fn look_if_due(&mut self, context: &mut Context<'_>) {
        let Some(process) = &mut self.process else { return };
        let is_looking = process.calls.values().any(|(purpose, _)| *purpose == CallPurpose::Follow);
        if process.next_look <= context.now && !is_looking {
            process.next_look = context.now + LOOK_MILLIS;
            self.look(context, CallPurpose::Follow);
        }
    }

    /// Reads the keys because a cluster was moved to this server.
    pub(super) fn look_now(&mut self, context: &mut Context<'_>, cluster: ClusterId) {
        if self.process.as_ref().is_some_and(|process| process.drivers.contains_key(&cluster)) {
            self.look(context, CallPurpose::Follow);
        }
    }

    pub(super) fn expire_calls(&mut self, context: &mut Context<'_>) {
        let Some(process) = &mut self.process else { return };
        let expired: Vec<_> =
            process.calls.iter().filter(|(_, (_, until))| *until <= context.now).map(|(id, _)| *id).collect();
        for id in expired {
            let purpose = self.process.as_mut().and_then(|process| process.calls.remove(&id));
            match purpose {
                Some((CallPurpose::Transaction(cluster), _)) => {
                    self.take_transaction_answer(context, cluster, id, Answer::NoAnswer);
                }
                Some((CallPurpose::Head(cluster) | CallPurpose::Log(cluster), _)) => {
                    self.repeat_takeover_read(context, cluster, id);
                }
                Some((CallPurpose::Lease | CallPurpose::Follow | CallPurpose::Read(_), _)) | None => {}
            }
        }
    }

    pub(super) fn take_engine_answer(&mut self, context: &mut Context<'_>, id: u64, answer: EngineAnswer) {
        let uptime = self.clock.uptime(context.now);
        let Some(process) = &mut self.process else { return };
        // The answer to a call that has expired, or a second answer.
        let Some((purpose, _)) = process.calls.remove(&id) else { return };
        process.peers.engine_answered(uptime);
        match (purpose, answer) {
            (CallPurpose::Transaction(cluster), EngineAnswer::Transacted(answer)) => {
                self.take_transaction_answer(context, cluster, id, *answer);
            }
            (CallPurpose::Follow, EngineAnswer::Looked(view)) => self.follow_view(context, &view),
            (CallPurpose::Head(cluster), EngineAnswer::Looked(view)) => {
                // The log is read after the takeover.
                self.begin_takeover(context, cluster, id, &view);
            }
            (CallPurpose::Log(cluster), EngineAnswer::Looked(view)) => {
                self.follow_view(context, &view);
                self.end_takeover(context, cluster, id);
            }
            (CallPurpose::Read(key), EngineAnswer::Looked(view)) => {
                self.follow_view(context, &view);
                self.confirm_read(context, key, &view);
            }
            (
                CallPurpose::Lease
                | CallPurpose::Follow
                | CallPurpose::Transaction(_)
                | CallPurpose::Head(_)
                | CallPurpose::Log(_)
                | CallPurpose::Read(_),
                EngineAnswer::LeaseKept | EngineAnswer::Transacted(_) | EngineAnswer::Looked(_),
            ) => {}
        }
    }

    /// Follows the keys of the engine: members, owners, batches.
    fn follow_view(&mut self, context: &mut Context<'_>, view: &Arc<EngineView>) {
        let uptime = self.clock.uptime(context.now);
        if self.process.as_ref().is_some_and(|process| process.drivers.is_empty()) {
            self.join(context, view);
        }
        let Some(process) = &mut self.process else { return };
        if view.revision < process.seen_revision {
            return;
        }
        process.seen_revision = view.revision;
        process.peers.set_members(uptime, &view.members);
        let mut lost = Vec::new();
        for (id, stream) in &view.streams {
            let new = || ClusterStanding { cluster: *id, owner: None, since: uptime, preferred: None };
            let standing = process.standings.entry(*id).or_insert_with(new);
            if standing.owner != stream.owner {
                if let Some(former) = &standing.owner {
                    process.former_terms.insert(*id, former.term.0);
                }
                (standing.owner, standing.since) = (stream.owner.clone(), uptime);
            }
            // It may be this server again: others had the cluster in between, and gave it back.
            let own = process.drivers.get(id).and_then(Driver::owned_term);
            if own.is_some_and(|own| stream.owner.as_ref().is_some_and(|owner| owner.term.0 > own)) {
                lost.push(*id);
            }
        }
        for (id, stream) in &view.streams {
            self.with_driver(context, *id, |driver, local, context| {
                // The outcome of a commit in flight is decided first.
                if lost.contains(id) && driver.transaction().is_none() && !omits_fencing(context) {
                    driver.was_fenced = true;
                    driver.end_ownership(local, context);
                }
                for (number, payload) in &stream.batches {
                    driver.follow(local, context, (*number, payload));
                }
            });
        }
    }

    pub(super) fn report(&self, now: u64) -> ServerReport {
        let uptime = self.clock.uptime(now);
        let process = self.process.as_ref().expect("a process answers");
        let owned = process
            .drivers
            .iter()
            .filter_map(|(id, driver)| Some((*id, (driver.owned_term()?, driver.published.log_number()))));
        ServerReport {
            answer: process.peers.own_answer(uptime, self.clock.wall(now)),
            owned: owned.collect(),
        }
    }

    pub(super) fn send_heartbeats_if_due(&mut self, context: &mut Context<'_>) {
        let Some(process) = &mut self.process else { return };
        if process.next_heartbeat > context.now {
            return;
        }
        process.next_heartbeat = context.now + HEARTBEAT_MILLIS;
        let (sent, report) = (self.clock.uptime(context.now), self.report(context.now));
        for other in (0..SERVERS).filter(|other| *other != self.index) {
            let report = Box::new(report.clone());
            context.send(Node::Server(other), Message::Heartbeat { from: self.index, sent, report });
        }
    }

    pub(super) fn hear(
        &mut self,
        context: &mut Context<'_>,
        from: usize,
        sent: Uptime,
        report: &ServerReport,
    ) {
        let uptime = self.clock.uptime(context.now);
        self.follow_publications(context, report);
        if let Some(process) = &mut self.process {
            process.peers.heard(uptime, &name_of(from), uptime.since(sent), report.answer.clone());
        }
    }

    /// Shows what the owners of clusters have shown.
    pub(super) fn follow_publications(&mut self, context: &mut Context<'_>, report: &ServerReport) {
        for (cluster, (term, published)) in &report.owned {
            let Some(process) = &self.process else { return };
            let standing = process.standings.get(cluster);
            let owner = standing.and_then(|standing| standing.owner.as_ref());
            if owner.is_some_and(|owner| owner.term.0 == *term) {
                self.with_driver(context, *cluster, |driver, local, context| {
                    driver.follow_publication(local, context, *published);
                });
            }
        }
    }

    /// Gives all clusters away, and takes them again afterwards.
    pub(super) fn drain(&mut self, context: &mut Context<'_>) {
        let uptime = self.clock.uptime(context.now);
        let Some(process) = &mut self.process else { return };
        process.peers.set_duty(ServerDuty::Draining);
        let owned = process.drivers.iter().filter(|(_, driver)| driver.owned_term().is_some());
        let owned: Vec<_> = owned.map(|(id, _)| (*id, None)).collect();
        let moves = drain_moves(&process.peers, uptime, owned);
        process.peers.set_duty(ServerDuty::Active);
        for one in moves {
            let to = index_of(&one.to);
            self.with_driver(context, one.cluster, |driver, local, context| {
                driver.move_to = to;
                driver.pump(local, context);
            });
        }
    }
}

fn omits_fencing(context: &Context<'_>) -> bool {
    context.omits(crate::omission::Omission::Fencing)
}
