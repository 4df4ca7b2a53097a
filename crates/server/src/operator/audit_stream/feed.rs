//! The audit log as it grows, for all clients of the stream: examines each entry once, and renders it once.
//!
//! ```text
//!   drivers ──broadcast──▶ feed ──▶ group of a filter: chunks ──▶ client, client, client …
//!                           ▲   ──▶ group of a filter: chunks ──▶ client …
//!   audit log ──gaps────────┘
//! ```
//!
//! The feed runs on the thread of streams. Drivers only send entries to the broadcast, and never wait for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::feed_state::FeedState;
use super::log_pages::{LogPages, read_page};
use crate::control_handle::ControlHandle;

/// Time between comments on a stream without entries. It is far below the time after which a silent connection ends.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Pause after a batch for each client that gets it: with many clients, a batch has many entries.
const PAUSE_PER_CLIENT: Duration = Duration::from_micros(50);

/// Pause before a busy audit log is read again.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// The audit log as it grows.
#[derive(Debug)]
pub(crate) struct AuditFeed {
    pub(super) control: ControlHandle,
    pub(super) pages: Arc<LogPages>,
    pub(super) metrics: StreamMetrics,
    state: Mutex<FeedState>,
    /// Number of replacements of the audit log: streams of a former log end.
    restarts: AtomicU64,
    /// True once the server stops.
    stopped: watch::Sender<bool>,
}

/// Metrics of the streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamMetrics {
    /// Entries that were rendered.
    pub(super) renderings: Counter,
    /// Open streams.
    pub(super) streams: Gauge,
}

/// The next work of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Entries,
    Comment,
    End,
}

impl StreamMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let help = "Audit entries rendered for the clients of /v1/watch: each one once for all of them";
        registry.register("watch_renderings", help, metrics.renderings.clone());
        registry.register("watch_streams", "Open streams of /v1/watch", metrics.streams.clone());
        metrics
    }
}

impl AuditFeed {
    /// A feed of the entries from now on. It has to be run.
    pub(crate) fn new(control: ControlHandle, metrics: StreamMetrics) -> Arc<Self> {
        let entries = control.entries();
        let state = FeedState::new(entries, control.published_position(), metrics.renderings.clone());
        let feed = Arc::new(Self {
            control,
            pages: Arc::default(),
            metrics,
            state: Mutex::new(state),
            restarts: AtomicU64::default(),
            stopped: watch::Sender::new(false),
        });
        let restarted = Arc::downgrade(&feed);
        feed.control.on_replaced(move || restarted.upgrade().iter().for_each(|feed| feed.restart()));
        feed
    }

    /// Begins with the audit log of another state. All streams end.
    fn restart(&self) {
        let entries = self.control.entries();
        let waiting = {
            let mut state = self.state();
            self.restarts.fetch_add(1, Ordering::AcqRel);
            state.restart(entries, self.control.published_position())
        };
        wake(waiting);
    }

    /// The number of replacements of the audit log.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Acquire)
    }

    /// Distributes entries until the server stops.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut commits = self.control.commits();
        let mut tokens = self.tokens();
        let mut comments = interval_at(Instant::now() + COMMENT_INTERVAL, COMMENT_INTERVAL);
        comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = tokio::select! {
                // An error means that the drivers, or the server, stop.
                changed = commits.changed() => if changed.is_ok() { Due::Entries } else { Due::End },
                _ = comments.tick() => Due::Comment,
                _ = stop.wait_for(|stop| *stop) => Due::End,
            };
            let woken = match due {
                Due::Entries => {
                    let woken = self.advance().await;
                    let before = std::mem::replace(&mut tokens, self.tokens());
                    // A stream whose token is gone ends when it is woken, also if it would get no entry.
                    woken + if tokens == before { 0 } else { self.comment() }
                }
                Due::Comment => self.comment(),
                Due::End => break,
            };
            tokio::time::sleep(PAUSE_PER_CLIENT.saturating_mul(woken)).await;
        }
        self.stopped.send_replace(true);
        let waiting = self.state().close();
        wake(waiting);
    }

    /// Becomes true once the server stops.
    pub(super) fn stopped(&self) -> watch::Receiver<bool> {
        self.stopped.subscribe()
    }

    /// Distributes all published entries. Returns the number of clients that it woke.
    async fn advance(&self) -> u32 {
        let mut woken = self.drain();
        if self.gap().is_some() {
            // An entry is published just before it is broadcast.
            tokio::task::yield_now().await;
            woken += self.drain();
        }
        while let Some(after) = self.gap() {
            match read_page(&self.control, after).await {
                Ok((page, _)) => {
                    let waiting = self.state().add_page(page);
                    woken += wake(waiting);
                    if self.gap() == Some(after) {
                        // The log does not show the entries yet: they are read with the next ones.
                        tokio::time::sleep(READ_PAUSE).await;
                        return woken;
                    }
                }
                // The entries are read with the next ones.
                Err(error) => {
                    tracing::debug!(%error, "cannot read audit entries for streams");
                    tokio::time::sleep(READ_PAUSE).await;
                    return woken;
                }
            }
        }
        woken + self.drain()
    }

    fn gap(&self) -> Option<u64> {
        let published = self.control.published_position();
        self.state().gap(published)
    }

    /// A value that changes when a token is revoked: the number of tokens, and that of the next one.
    pub(super) fn tokens(&self) -> (usize, u32) {
        let shared = self.control.shared();
        (shared.tokens().count(), shared.next_token())
    }

    /// Sends a comment to every client: one that may no longer receive anything ends. Returns the number of clients
    /// that it woke.
    pub(in super::super) fn comment(&self) -> u32 {
        let waiting = self.state().comment();
        wake(waiting)
    }

    fn drain(&self) -> u32 {
        let waiting = self.state().drain();
        wake(waiting)
    }

    /// The state, with all entries that were broadcast up to now.
    pub(super) fn current_state(&self) -> MutexGuard<'_, FeedState> {
        self.drain();
        self.state()
    }

    /// A panic cannot leave a change half done.
    pub(super) fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes clients. Returns their number.
fn wake(clients: Vec<Waker>) -> u32 {
    let count = u32::try_from(clients.len()).unwrap_or(u32::MAX);
    clients.into_iter().for_each(Waker::wake);
    count
}
