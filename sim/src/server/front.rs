//! Requests, reads and polls that a server accepts: a request goes to the owner of its cluster, a read waits until the
//! copy contains everything that was committed before.

use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::request::ClusterRequest;
use forewarn_lifecycle::{Command, MachineId, MaintenanceId, Report, Target};

use super::Server;
use super::batch::ReplyTo;
use super::realm::CallPurpose;
use crate::context::Context;
use crate::engine::EngineView;
use crate::message::{Document, DocumentEvent, FrontKey, Message, Node, ReadAnswer, RequestAnswer, Ticket};
use crate::names::index_of;

/// Longest wait for an owner, pause between two attempts, and longest wait for the answer of an owner.
const OWNER_MILLIS: u64 = 3_000;
const PAUSE_MILLIS: u64 = 50;
const ATTEMPT_MILLIS: u64 = 2_000;
/// Longest wait of a read.
const READ_MILLIS: u64 = 3_000;

/// A request of a client at the server that accepted it.
pub(super) struct Front {
    cluster: ClusterId,
    request: Arc<ClusterRequest>,
    deadline: u64,
    next_try: u64,
    /// The attempt under way, and its end.
    attempt: Option<(u64, u64)>,
    /// An attempt had no answer: the request may have been carried out.
    is_unknown: bool,
}

pub(super) struct PendingRead {
    key: FrontKey,
    cluster: ClusterId,
    deadline: u64,
    /// The number that the copy must reach; None until the engine has confirmed it.
    number: Option<u64>,
}

impl Server {
    pub(super) fn accept(
        &mut self,
        context: &mut Context<'_>,
        key: FrontKey,
        cluster: ClusterId,
        request: Arc<ClusterRequest>,
    ) {
        let Some(process) = &mut self.process else { return };
        process.fronts.entry(key).or_insert(Front {
            cluster,
            request,
            deadline: context.now + OWNER_MILLIS,
            next_try: context.now,
            attempt: None,
            is_unknown: false,
        });
        self.try_front(context, key);
    }

    pub(super) fn try_fronts(&mut self, context: &mut Context<'_>) {
        let keys: Vec<_> = self.process.iter().flat_map(|process| process.fronts.keys().copied()).collect();
        keys.into_iter().for_each(|key| self.try_front(context, key));
    }

    fn try_front(&mut self, context: &mut Context<'_>, key: FrontKey) {
        let Some(process) = &mut self.process else { return };
        let Some(front) = process.fronts.get_mut(&key) else { return };
        if let Some((attempt, until)) = front.attempt {
            if until > context.now {
                return;
            }
            process.attempts.remove(&attempt);
            (front.attempt, front.is_unknown) = (None, true);
        }
        if front.deadline <= context.now {
            let answer = if front.is_unknown { RequestAnswer::Unknown } else { RequestAnswer::NotDone };
            return self.answer_front(context, key, answer);
        }
        if front.next_try > context.now {
            return;
        }
        let cluster = front.cluster;
        let standing = process.standings.get(&cluster);
        let Some(owner) = standing.and_then(|standing| standing.owner.as_ref()) else { return };
        let attempt = context.new_id();
        front.attempt = Some((attempt, context.now + ATTEMPT_MILLIS));
        process.attempts.insert(attempt, key);
        let request = Arc::clone(&front.request);
        match index_of(&owner.server) {
            Some(index) if index == self.index => {
                self.accept_forwarded(context, ReplyTo { server: index, attempt }, cluster, request);
            }
            Some(index) => {
                let message = Message::Forward { from: self.index, attempt, cluster, request };
                context.send(Node::Server(index), message);
            }
            None => {}
        }
    }

    /// A request for the driver of this server.
    pub(super) fn accept_forwarded(
        &mut self,
        context: &mut Context<'_>,
        to: ReplyTo,
        cluster: ClusterId,
        request: Arc<ClusterRequest>,
    ) {
        self.with_driver(context, cluster, |driver, local, context| {
            driver.inbox.push_back((to, request));
            driver.pump(local, context);
        });
    }

    pub(super) fn take_reply(&mut self, context: &mut Context<'_>, attempt: u64, answer: RequestAnswer) {
        let Some(process) = &mut self.process else { return };
        let Some(key) = process.attempts.remove(&attempt) else { return };
        let Some(front) = process.fronts.get_mut(&key) else { return };
        match answer {
            RequestAnswer::NotDone => {
                front.attempt = None;
                front.next_try = context.now + PAUSE_MILLIS;
            }
            RequestAnswer::Decided(_) | RequestAnswer::Unknown => self.answer_front(context, key, answer),
        }
    }

    fn answer_front(&mut self, context: &mut Context<'_>, key: FrontKey, answer: RequestAnswer) {
        if let Some(process) = &mut self.process {
            process.fronts.remove(&key);
        }
        let (node, ticket) = key;
        if node != Node::Server(self.index) {
            context.send(node, Message::Reply { ticket, answer });
        }
    }

    /// The result of an action becomes a request to the driver, if it still decides.
    pub(super) fn take_result(
        &mut self,
        context: &mut Context<'_>,
        cluster: ClusterId,
        (work, target): (MaintenanceId, Target),
        report: Report,
    ) {
        let (attempt, request) =
            (context.new_id(), ClusterRequest::Report { work, target, report, reason: None });
        self.accept_forwarded(context, ReplyTo { server: self.index, attempt }, cluster, Arc::new(request));
    }

    pub(super) fn begin_read(&mut self, context: &mut Context<'_>, key: FrontKey, cluster: ClusterId) {
        let deadline = context.now + READ_MILLIS;
        if let Some(process) = &mut self.process {
            process.reads.push(PendingRead { key, cluster, deadline, number: None });
        }
        // It begins after the request has arrived.
        self.look(context, CallPurpose::Read(key));
    }

    pub(super) fn confirm_read(&mut self, context: &mut Context<'_>, key: FrontKey, view: &EngineView) {
        let Some(process) = &mut self.process else { return };
        for read in process.reads.iter_mut().filter(|read| read.key == key) {
            let head = view.streams.get(&read.cluster).and_then(|stream| stream.head.as_ref());
            read.number = Some(head.map_or(0, |head| head.number));
        }
        self.finish_reads(context);
    }

    pub(super) fn finish_reads(&mut self, context: &mut Context<'_>) {
        let Some(process) = &mut self.process else { return };
        let drivers = &process.drivers;
        process.reads.retain(|read| {
            let driver = drivers.get(&read.cluster);
            let reached = driver
                .filter(|driver| read.number.is_some_and(|number| driver.published.log_number() >= number));
            let answer = reached.map(|driver| ReadAnswer { audit: driver.audit_shown });
            if answer.is_none() && read.deadline > context.now {
                return true;
            }
            let (node, ticket) = read.key;
            context.send(node, Message::ReadReply { ticket, answer });
            false
        });
    }

    /// Answers a poll from the published document. The first poll of a tenant enrols it.
    pub(super) fn answer_poll(
        &mut self,
        context: &mut Context<'_>,
        guest: usize,
        cluster: ClusterId,
        machine: MachineId,
    ) {
        let Some(process) = &self.process else { return };
        let Some(driver) = process.drivers.get(&cluster).filter(|driver| driver.has_documents) else {
            return;
        };
        let rules = driver.published.rules();
        let known =
            rules.machine(machine).and_then(|known| Some((known.tenant, rules.tenant(known.tenant)?)));
        let document = known.map(|(id, tenant)| {
            let event = |event: &forewarn_lifecycle::Event| DocumentEvent {
                id: event.id(),
                is_unapproved: event.is_unapproved(),
            };
            let events = tenant.events().iter().map(event).collect();
            Box::new(Document { is_enrolled: tenant.is_enrolled(), tenant: id, machine, events })
        });
        let first =
            document.as_ref().filter(|document| !document.is_enrolled).map(|document| document.tenant);
        context.send(Node::Guest(guest), Message::Document { document });
        if let Some(tenant) = first {
            let key = (Node::Server(self.index), Ticket(context.new_id()));
            self.accept(context, key, cluster, Arc::new(ClusterRequest::Rules(Command::Enrol(tenant))));
        }
    }
}
