//! A watch of the simulated engine.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use forewarn_ownership::Revision;
use tokio::sync::watch as signal;

use super::SharedStore;
use super::faults::{ClientFaults, Reach, WatchFault};
use crate::engine::error::EngineError;
use crate::engine::request::{KeyEvent, KeySpan};

/// A watch of the simulated engine. It ends when it is dropped.
#[derive(Debug)]
pub struct SimulatedWatch {
    shared: Arc<SharedStore>,
    faults: Arc<Mutex<ClientFaults>>,
    keys: KeySpan,
    /// The first revision that was not looked at.
    next: i64,
    /// Events that were found and not given out.
    found: VecDeque<KeyEvent>,
    changed: signal::Receiver<i64>,
    end: Option<EngineError>,
}

impl SimulatedWatch {
    pub(super) fn new(
        shared: Arc<SharedStore>,
        faults: Arc<Mutex<ClientFaults>>,
        keys: KeySpan,
        Revision(next): Revision,
        changed: signal::Receiver<i64>,
    ) -> Self {
        Self { shared, faults, keys, next, found: VecDeque::new(), changed, end: None }
    }

    pub(in crate::engine) async fn next(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        loop {
            if let Some(end) = &self.end {
                return Err(end.clone());
            }
            self.changed.mark_unchanged();
            match self.look() {
                Ok(events) if events.is_empty() => {}
                Ok(events) => return Ok(events),
                Err(error) => {
                    self.end = Some(error);
                    continue;
                }
            }
            // The engine outlives the watch: the sender is never gone.
            drop(self.changed.changed().await);
        }
    }

    /// Events since the last look, after their faults.
    fn look(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.reach == Reach::Cut {
            return Err(EngineError::Unknown("the client is cut off".to_owned()));
        }
        let (events, next) = self.shared.lock().events_from(&self.keys, self.next)?;
        self.found.extend(events);
        self.next = next;
        let mut given = Vec::new();
        while let Some(event) = self.found.pop_front() {
            match faults.next_of_watch() {
                None => given.push(event),
                Some(WatchFault::Dropped) => {}
                Some(WatchFault::Repeated) => given.extend([event.clone(), event]),
                Some(WatchFault::Ended) => {
                    self.end = Some(EngineError::Unknown("the watch has ended".to_owned()));
                    break;
                }
            }
        }
        Ok(given)
    }
}
