//! Clients: guests that poll any server and approve, and operators that send commands through any server.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::request::{ClusterRequest, CommandBatch, IdempotencyKey, Reply, RequestContext};
use forewarn_control::{ClusterId, NamedCommand, Outcome};
use forewarn_lifecycle::{Approver, Command};

use crate::checks::AnsweredRequest;
use crate::context::Context;
use crate::fleet::FleetMachine;
use crate::message::{Document, Message, Node, ReadAnswer, RequestAnswer, Ticket};
use crate::names::{SERVERS, name_of};
use crate::random::Random;

/// Time after which a client sends its request again, in milliseconds.
const PATIENCE_MILLIS: u64 = 4_000;
/// Events that an operator remembers.
const EVENTS_MAX: usize = 8;

/// The guest of a machine.
#[derive(Debug)]
pub(crate) struct Guest {
    index: usize,
    random: Random,
    place: FleetMachine,
    /// Events that it approves among a thousand documents in which it sees them.
    approvals: u64,
}

impl Guest {
    pub(crate) fn new(index: usize, mut random: Random, place: FleetMachine) -> Self {
        let approvals = [0, 0, 50, 500][random.index(4)];
        Self { index, random, place, approvals }
    }

    /// Approves everything from now on, except on a spot machine, whose events have a short notice.
    pub(crate) fn approve_long_notices(&mut self) {
        if !self.place.is_spot {
            self.approvals = 1_000;
        }
    }

    /// Polls a server. Returns the time of the next poll.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> u64 {
        let FleetMachine { cluster, machine, .. } = self.place;
        let server = Node::Server(self.random.index(SERVERS));
        context.send(server, Message::Poll { guest: self.index, cluster, machine });
        context.now + self.random.between(700, 2_500)
    }

    pub(crate) fn read(&mut self, context: &mut Context<'_>, document: &Document) {
        let unapproved = document.events.iter().filter(|event| event.is_unapproved);
        let events: Vec<_> = unapproved.map(|event| event.id).collect();
        if events.is_empty() || !self.random.per_mille(self.approvals) {
            return;
        }
        context.checks.approves(&events);
        let (tenant, by) = (document.tenant, Approver::Machine(document.machine));
        let request = Arc::new(ClusterRequest::Rules(Command::Approve { tenant, events, by }));
        let (from, ticket) = (Node::Guest(self.index), Ticket(context.new_id()));
        let server = Node::Server(self.random.index(SERVERS));
        context.send(server, Message::Request { from, ticket, cluster: self.place.cluster, request });
    }
}

/// An operator, which sends one request after the other.
#[derive(Debug)]
pub(crate) struct Operator {
    index: usize,
    random: Random,
    machines: Vec<FleetMachine>,
    outstanding: Option<Outstanding>,
    /// Events of its requests, with their clusters.
    events: Vec<(ClusterId, String)>,
    next_at: u64,
}

#[derive(Debug)]
struct Outstanding {
    ticket: Ticket,
    cluster: ClusterId,
    /// None: a read.
    request: Option<Arc<ClusterRequest>>,
    by: String,
    words: String,
    first_sent: u64,
    sends: u32,
    next_send: u64,
}

impl Operator {
    pub(crate) fn new(index: usize, random: Random, machines: &[FleetMachine]) -> Self {
        let machines = machines.to_vec();
        Self { index, random, machines, outstanding: None, events: Vec::new(), next_at: 1_000 }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Sends the outstanding request again, or another one, if it is time. `is_active` is false after the faults.
    pub(crate) fn turn(&mut self, context: &mut Context<'_>, is_active: bool) {
        if self.outstanding.is_none() && is_active && self.next_at <= context.now {
            self.choose(context);
        }
        let (index, place) = (self.index, self.random.index(SERVERS));
        let Some(outstanding) = &mut self.outstanding else { return };
        if outstanding.next_send > context.now {
            return;
        }
        outstanding.sends += 1;
        outstanding.next_send = context.now + PATIENCE_MILLIS;
        let (from, ticket, cluster) = (Node::Operator(index), outstanding.ticket, outstanding.cluster);
        let (words, sends) = (&outstanding.words, outstanding.sends);
        context.step_log.add(context.now, &format!("operator {index}"), || {
            format!("sends {words} to cluster {cluster} through {}, time {sends}", name_of(place))
        });
        let message = match &outstanding.request {
            Some(request) => Message::Request { from, ticket, cluster, request: Arc::clone(request) },
            None => Message::Read { from, ticket, cluster },
        };
        context.send(Node::Server(place), message);
    }

    fn choose(&mut self, context: &mut Context<'_>) {
        let place = self.machines[self.random.index(self.machines.len())].clone();
        let command = self.command(&place);
        let ticket = Ticket(context.new_id());
        let by = format!("token operator-{}-{}", self.index, ticket.0);
        let words = command.as_ref().map_or("a read".to_owned(), |command| format!("{command:?}"));
        let cluster = match &command {
            Some(NamedCommand::Cancel { event } | NamedCommand::ForceStart { event }) => {
                if let Some(NamedCommand::ForceStart { .. }) = &command {
                    context.checks.forces(event);
                }
                let known = self.events.iter().find(|(_, known)| known == event);
                known.map_or(place.cluster, |(cluster, _)| *cluster)
            }
            Some(_) | None => place.cluster,
        };
        let key = IdempotencyKey { key: format!("key-{}", ticket.0), fingerprint: [7; 32] };
        let request = command.map(|command| {
            let context = RequestContext { by: by.clone(), once: Some(key), ..RequestContext::default() };
            Arc::new(ClusterRequest::Commands(CommandBatch { commands: vec![command], context }))
        });
        let (first_sent, sends, next_send) = (context.now, 0, context.now);
        self.outstanding =
            Some(Outstanding { ticket, cluster, request, by, words, first_sent, sends, next_send });
    }

    /// A command; None is a read.
    fn command(&mut self, place: &FleetMachine) -> Option<NamedCommand> {
        let machine = place.name.clone();
        let event = (!self.events.is_empty()).then(|| {
            let index = self.random.index(self.events.len());
            self.events[index].1.clone()
        });
        let tag = self.random.next().to_string();
        let describe = |machine| NamedCommand::Describe {
            machine,
            addresses: None,
            tags: Some(BTreeMap::from([("note".to_owned(), tag)])),
        };
        Some(match (self.random.between(0, 99), event) {
            (0..15, _) => return None,
            (15..45, _) if place.is_spot => NamedCommand::Evict { machine },
            (45..55, _) if place.is_spot => NamedCommand::Start { machine },
            (15..35, _) => NamedCommand::Restart { machine },
            (35..45, _) => NamedCommand::Redeploy { machine },
            (55..60, Some(event)) => NamedCommand::Cancel { event },
            (60..63, Some(event)) => NamedCommand::ForceStart { event },
            _ => describe(machine),
        })
    }

    pub(crate) fn take_reply(&mut self, context: &mut Context<'_>, ticket: Ticket, answer: &RequestAnswer) {
        let Some(outstanding) = self.outstanding.as_mut().filter(|known| known.ticket == ticket) else {
            return;
        };
        let outcome = match answer {
            RequestAnswer::Decided(decided) => match decided.as_ref() {
                Ok(Reply::Outcome(outcome) | Reply::Repeated(outcome)) => Some(outcome.clone()),
                Ok(Reply::Decided(_) | Reply::Transacted(_) | Reply::Done) | Err(_) => None,
            },
            RequestAnswer::NotDone if outstanding.sends == 1 && self.random.per_mille(500) => {
                context.checks.answered_not_done(outstanding.cluster, &outstanding.by);
                return self.rest(context);
            }
            RequestAnswer::NotDone | RequestAnswer::Unknown => {
                outstanding.next_send = context.now + self.random.between(20, 500);
                return;
            }
        };
        let entry = outcome.as_ref().and_then(|outcome| outcome.entry);
        context.step_log.add(context.now, &format!("operator {}", self.index), || {
            format!("gets the answer to {}: {answer:?}", outstanding.words).chars().take(180).collect()
        });
        context.checks.answered(AnsweredRequest {
            cluster: outstanding.cluster,
            by: outstanding.by.clone(),
            sent: outstanding.first_sent,
            answered: context.now,
            entry,
        });
        let cluster = outstanding.cluster;
        if let Some(Outcome { events, .. }) = outcome {
            self.events.extend(events.into_iter().map(|event| (cluster, event.id)));
            let excess = self.events.len().saturating_sub(EVENTS_MAX);
            self.events.drain(..excess);
        }
        self.rest(context);
    }

    pub(crate) fn take_read(
        &mut self,
        context: &mut Context<'_>,
        ticket: Ticket,
        answer: Option<ReadAnswer>,
    ) {
        let Some(outstanding) = self.outstanding.as_mut().filter(|known| known.ticket == ticket) else {
            return;
        };
        match answer {
            Some(answer) => {
                context.checks.read(outstanding.cluster, outstanding.first_sent, answer.audit);
                self.rest(context);
            }
            None => outstanding.next_send = context.now + 100,
        }
    }

    fn rest(&mut self, context: &Context<'_>) {
        self.outstanding = None;
        self.next_at = context.now + self.random.between(100, 2_500);
    }
}
