//! The network: delays, losses, copies that arrive twice, and partitions in one direction.

use crate::message::{Message, Node};
use crate::random::Random;

/// The usual delay of a message, in milliseconds.
const DELAY_MAX: u64 = 4;

#[derive(Debug)]
pub(crate) struct Network {
    random: Random,
    /// Directions in which nothing arrives, each with its end.
    blocked: Vec<(Node, Node, u64)>,
    /// Losses, late messages and repeated messages among a thousand.
    pub(crate) losses: u64,
    pub(crate) late: u64,
    pub(crate) repeated: u64,
    /// The longest delay of a late message.
    pub(crate) late_millis: u64,
}

impl Network {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, blocked: Vec::new(), losses: 0, late: 0, repeated: 0, late_millis: 1 }
    }

    pub(crate) fn block(&mut self, from: Node, to: Node, until: u64) {
        self.blocked.push((from, to, until));
    }

    /// Everything arrives from now on.
    pub(crate) fn recover(&mut self) {
        self.blocked.clear();
        (self.losses, self.late, self.repeated) = (0, 0, 0);
    }

    /// The times at which copies of a message arrive.
    pub(crate) fn arrivals(&mut self, now: u64, from: Node, to: Node, message: &Message) -> Vec<u64> {
        self.blocked.retain(|(_, _, until)| *until > now);
        if self.blocked.iter().any(|(a, b, _)| (*a, *b) == (from, to)) || self.random.per_mille(self.losses) {
            return Vec::new();
        }
        let copies = 1 + u64::from(is_repeatable(message) && self.random.per_mille(self.repeated));
        (0..copies).map(|_| now + self.delay()).collect()
    }

    fn delay(&mut self) -> u64 {
        let late =
            if self.random.per_mille(self.late) { self.random.between(0, self.late_millis) } else { 0 };
        self.random.between(1, DELAY_MAX) + late
    }
}

/// True if the network may deliver a message twice. A request is sent on a connection: it arrives once or not at all.
fn is_repeatable(message: &Message) -> bool {
    match message {
        Message::Call { .. }
        | Message::Answer { .. }
        | Message::Changed
        | Message::Heartbeat { .. }
        | Message::HeartbeatAnswer { .. }
        | Message::Poll { .. }
        | Message::Document { .. }
        | Message::Order(_)
        | Message::Result { .. }
        | Message::Moved { .. } => true,
        Message::Request { .. }
        | Message::Reply { .. }
        | Message::Forward { .. }
        | Message::ForwardReply { .. }
        | Message::Read { .. }
        | Message::ReadReply { .. }
        | Message::Move { .. }
        | Message::Drain => false,
    }
}
