//! The watches of a follower. Two of them: parts of batches and of states lie between the keys that it needs.

use forewarn_ownership::Revision;

use crate::engine::{EngineError, EngineWatch, KeyEvent, KeySpan};
use crate::realm::{Attempts, Realm};

/// Watches that are begun without an event in between, before the engine counts as unavailable.
const WATCHES_MAX: u32 = 12;

/// The watches of all keys that a follower needs.
#[derive(Debug)]
pub(super) struct RealmWatches {
    spans: [SpanWatch; 2],
    /// Watches that were begun since the last event.
    begun: u32,
}

/// A watch of some keys.
#[derive(Debug)]
struct SpanWatch {
    keys: KeySpan,
    watch: Option<EngineWatch>,
    /// The first revision that was not seen.
    next: Revision,
}

impl SpanWatch {
    /// Waits for events of a watch that was begun.
    async fn next(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        match &mut self.watch {
            Some(watch) => watch.next().await,
            None => Err(EngineError::NotReached("the watch was not begun".to_owned())),
        }
    }

    /// Takes note of events, or of the end of the watch.
    fn note(&mut self, events: &Result<Vec<KeyEvent>, EngineError>) {
        match events {
            Ok(events) => {
                let last = events.iter().map(|event| event.mod_revision().0 + 1).max();
                self.next = self.next.max(Revision(last.unwrap_or_default()));
            }
            Err(_) => self.watch = None,
        }
    }
}

impl RealmWatches {
    /// Watches from a revision on, which are begun with the first events.
    pub(super) fn new(realm: &Realm, next: Revision) -> Self {
        let spans = realm.keys().followed().map(|keys| SpanWatch { keys, watch: None, next });
        Self { spans, begun: 0 }
    }

    /// Waits for the next events. May be dropped at any time without losing any. Watches that end begin again.
    pub(super) async fn next(&mut self, realm: &Realm) -> Result<Vec<KeyEvent>, EngineError> {
        loop {
            let events = match self.begin_all(realm).await {
                Ok(()) => self.next_of_any().await,
                Err(error) => Err(error),
            };
            match events {
                Ok(events) => {
                    self.begun = 0;
                    return Ok(events);
                }
                Err(error) if error.may_be_repeated() && self.begun < WATCHES_MAX => {}
                Err(error) => {
                    self.begun = 0;
                    return Err(error);
                }
            }
        }
    }

    async fn next_of_any(&mut self) -> Result<Vec<KeyEvent>, EngineError> {
        let [first, second] = &mut self.spans;
        let (events, span) = tokio::select! {
            events = first.next() => (events, first),
            events = second.next() => (events, second),
        };
        span.note(&events);
        events
    }

    /// Begins the watches that are not there.
    async fn begin_all(&mut self, realm: &Realm) -> Result<(), EngineError> {
        let mut attempts = Attempts::new(*realm.times());
        for span in self.spans.iter_mut().filter(|span| span.watch.is_none()) {
            // The first ones at once; later ones wait, because members may be down.
            for _ in 2..self.begun.min(6) {
                attempts.pause().await;
            }
            self.begun += 1;
            let keys = span.keys.clone();
            span.watch = Some(realm.engine().watch(keys, span.next, realm.times().attempt).await?);
        }
        Ok(())
    }
}
