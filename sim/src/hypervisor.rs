//! The hypervisor that all servers share, with its action log: an action has its effect once.

use std::collections::BTreeMap;

use forewarn_control::ClusterId;
use forewarn_lifecycle::{ActionName, Report};

use crate::context::Context;
use crate::message::{Message, Node, Order};
use crate::omission::Omission;
use crate::random::Random;

/// Duration of an action, in milliseconds.
const DURATION: (u64, u64) = (200, 4_000);
/// Failed actions among a thousand.
const FAILURES: u64 = 40;

#[derive(Debug)]
pub(crate) struct Hypervisor {
    random: Random,
    log: BTreeMap<ActionName, LoggedAction>,
    terms: BTreeMap<ClusterId, u64>,
}

/// An action of the log.
#[derive(Debug)]
struct LoggedAction {
    order: Order,
    result: Option<Report>,
}

impl Hypervisor {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, log: BTreeMap::new(), terms: BTreeMap::new() }
    }

    /// Takes an order. Returns the time at which its action ends, if it has begun now.
    pub(crate) fn take(&mut self, context: &mut Context<'_>, order: Order) -> Option<(ActionName, u64)> {
        let highest = self.terms.entry(order.cluster).or_insert(order.term);
        if order.term < *highest {
            return None;
        }
        *highest = order.term;
        let name = order.name;
        let is_known = self.log.contains_key(&name);
        if is_known && !context.omits(Omission::ActionLog) {
            if let Some(known) = self.log.get_mut(&name) {
                known.order = order;
            }
            self.report(context, name);
            return None;
        }
        let (cluster, work, target) = (order.cluster, order.action.maintenance, order.action.target);
        context.step_log.add(context.now, "hypervisor", || {
            format!(
                "carries out {:?} of work {} in cluster {cluster}: {target:?}",
                order.action.impact, work.0
            )
        });
        context.checks.effect(context.now, order.cluster, name);
        self.log.insert(name, LoggedAction { order, result: None });
        let (shortest, longest) = DURATION;
        Some((name, context.now + self.random.between(shortest, longest)))
    }

    /// An action has ended.
    pub(crate) fn end(&mut self, context: &mut Context<'_>, name: ActionName) {
        let report = if self.random.per_mille(FAILURES) { Report::Failed } else { Report::Done };
        if let Some(known) = self.log.get_mut(&name) {
            known.result.get_or_insert(report);
        }
        self.report(context, name);
    }

    fn report(&self, context: &mut Context<'_>, name: ActionName) {
        let Some(LoggedAction { order, result: Some(report) }) = self.log.get(&name) else { return };
        let (server, epoch) = order.from;
        let (work, target) = (order.action.maintenance, order.action.target);
        let message = Message::Result { epoch, cluster: order.cluster, work, target, report: *report };
        context.send(Node::Server(server), message);
    }
}
