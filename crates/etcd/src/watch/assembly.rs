//! Puts events together again: those of one revision are never separated.

use prost::Message as _;

use super::WatchEvent;
use crate::messages::{EventMessage, event_types};

/// Events of a revision that is not complete yet.
#[derive(Debug)]
pub(super) struct EventAssembly {
    waiting: Vec<WatchEvent>,
    waiting_bytes: usize,
    bytes_max: usize,
}

/// Reason why events cannot be put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AssemblyError {
    #[error("too many bytes in one revision")]
    TooLarge,
    #[error("event without a key, or of an unknown kind")]
    InvalidEvent,
}

/// The position of an answer among those that etcd has split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// More follow.
    Inner,
    /// The last one, or one that was not split.
    Last,
}

impl EventAssembly {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { waiting: Vec::new(), waiting_bytes: 0, bytes_max }
    }

    /// Adds events. Returns those whose revisions are complete.
    pub(super) fn add(
        &mut self,
        messages: Vec<EventMessage>,
        piece: Piece,
    ) -> Result<Vec<WatchEvent>, AssemblyError> {
        self.waiting_bytes += messages.iter().map(EventMessage::encoded_len).sum::<usize>();
        if self.waiting_bytes > self.bytes_max.saturating_mul(2) {
            return Err(AssemblyError::TooLarge);
        }
        for message in messages {
            self.waiting.push(WatchEvent::of(message).ok_or(AssemblyError::InvalidEvent)?);
        }
        let complete = match piece {
            Piece::Last => self.waiting.len(),
            Piece::Inner => self.complete_count(),
        };
        if complete > 0 {
            self.waiting_bytes = 0;
        }
        let rest = self.waiting.split_off(complete);
        Ok(std::mem::replace(&mut self.waiting, rest))
    }

    /// The number of events before those of the last revision.
    fn complete_count(&self) -> usize {
        let revision = |event: &WatchEvent| event.mod_revision();
        let last = self.waiting.last().map(revision);
        self.waiting.iter().position(|event| Some(revision(event)) == last).unwrap_or(0)
    }
}

impl WatchEvent {
    fn of(message: EventMessage) -> Option<Self> {
        let kv = message.kv?;
        match message.kind {
            event_types::PUT => Some(Self::Put(kv.into())),
            event_types::DELETE => Some(Self::Delete { key: kv.key, mod_revision: kv.mod_revision }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::KeyValueMessage;

    fn events(revisions: &[i64]) -> Vec<EventMessage> {
        let kv = |mod_revision| KeyValueMessage { mod_revision, ..KeyValueMessage::default() };
        revisions.iter().map(|revision| EventMessage { kind: 0, kv: Some(kv(*revision)) }).collect()
    }

    fn revisions(events: &[WatchEvent]) -> Vec<i64> {
        events.iter().map(WatchEvent::mod_revision).collect()
    }

    #[test]
    fn events_of_one_revision_are_never_separated() {
        let mut assembly = EventAssembly::new(1_000);
        let mut add = |list: &[i64], piece| revisions(&assembly.add(events(list), piece).unwrap());
        assert_eq!(add(&[4, 5], Piece::Last), [4, 5]);
        assert_eq!(add(&[6, 7, 7], Piece::Inner), [6]);
        assert_eq!(add(&[7], Piece::Inner), []);
        assert_eq!(add(&[7, 8], Piece::Inner), [7, 7, 7, 7]);
        assert_eq!(add(&[9], Piece::Last), [8, 9]);
        assert_eq!(add(&[], Piece::Last), []);
    }

    #[test]
    fn the_bytes_of_one_revision_are_limited() {
        let mut assembly = EventAssembly::new(100);
        let added = (0..100).map(|_| assembly.add(events(&[7; 10]), Piece::Inner));
        assert_eq!(added.into_iter().find_map(Result::err), Some(AssemblyError::TooLarge));
        let mut assembly = EventAssembly::new(100);
        for revision in 0..100 {
            assembly.add(events(&[revision; 10]), Piece::Inner).unwrap();
        }
    }

    #[test]
    fn an_event_without_a_key_is_an_error() {
        let mut assembly = EventAssembly::new(100);
        let added = assembly.add(vec![EventMessage { kind: 0, kv: None }], Piece::Last);
        assert_eq!(added, Err(AssemblyError::InvalidEvent));
        let added = assembly.add(vec![EventMessage { kind: 2, ..events(&[1])[0].clone() }], Piece::Last);
        assert_eq!(added, Err(AssemblyError::InvalidEvent));
    }
}
