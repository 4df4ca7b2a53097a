//! The stream of one client: from the entries that it has to the newest one.
//!
//! ```text
//!   greeting ──▶ audit log ──▶ newest events ──▶ chunks of a group
//!                    ▲                               │
//!                    └── the client is too slow ─────┘
//! ```

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use forewarn_store::ReadError;
use tokio_stream::Stream;

use super::super::seen_entries::SeenEntries;
use super::IdOrigin;
use super::event::missed;
use super::feed::AuditFeed;
use super::feed_state::{CHUNK_BYTES_MAX, Place, SWEPT, StreamAdmission, append_new};
use super::filter::EntryFilter;
use super::group::NextChunk;
use super::log_pages::LogPage;

/// The stream of one client.
pub(super) struct AuditStream {
    feed: Arc<AuditFeed>,
    filter: Arc<EntryFilter>,
    /// The examined entries, while the client is in no group.
    seen: Option<SeenEntries>,
    origin: IdOrigin,
    /// Replacements of the audit log before the stream.
    restarts: u64,
    step: Step,
}

/// The source of the next text.
enum Step {
    Greeting,
    /// The newest events, or the audit log before them.
    CatchUp,
    Reading(ReadingPage),
    /// A page of the audit log, from this event on.
    Page(Arc<LogPage>, usize),
    Group(Place),
    End,
}

type ReadingPage = Pin<Box<dyn Future<Output = Result<Arc<LogPage>, ReadError>> + Send>>;

impl AuditStream {
    /// A stream for a client that has these entries; without them, from the entries that come now: a client that has the
    /// head of the response misses nothing that it causes.
    pub(super) fn new(
        feed: Arc<AuditFeed>,
        filter: EntryFilter,
        (seen, origin): (Option<SeenEntries>, IdOrigin),
    ) -> Self {
        feed.metrics.streams.inc();
        let restarts = feed.restarts();
        let seen = Some(seen.unwrap_or_else(|| feed.current_state().seen().clone()));
        Self { feed, filter: Arc::new(filter), seen, origin, restarts, step: Step::Greeting }
    }

    /// The first id lets a client resume from here even if no entry follows.
    fn greeting(&mut self) -> Bytes {
        let seen = self.seen.get_or_insert_default();
        let mut text = format!("id: {seen}\n: listening\n\n").into_bytes();
        match self.origin {
            IdOrigin::ThisLog => {}
            IdOrigin::AnotherLog => text.extend(missed("the id is of another audit log")),
        }
        text.into()
    }

    /// Joins a group, if the client has all but the newest entries.
    fn catch_up(&mut self) -> (Step, Bytes) {
        let seen = self.seen.get_or_insert_default();
        match self.feed.current_state().admit(&self.filter, seen) {
            StreamAdmission::Joined(place, text) => {
                self.seen = None;
                (Step::Group(place), text)
            }
            StreamAdmission::Text(text) => (Step::CatchUp, text),
            StreamAdmission::Log(after) => {
                let (pages, control) = (Arc::clone(&self.feed.pages), self.feed.control.clone());
                (Step::Reading(Box::pin(pages.read(control, after))), Bytes::new())
            }
            StreamAdmission::Closed => (Step::End, Bytes::new()),
        }
    }

    /// Shows a part of a page.
    fn show(&mut self, page: Arc<LogPage>, from: usize) -> (Step, Bytes) {
        let seen = self.seen.get_or_insert_default();
        let mut text = Vec::new();
        if page.swept > seen.all_to() {
            text.extend(missed(SWEPT));
            seen.add_all_to(page.swept);
        }
        if page.events.is_empty() && text.is_empty() {
            // Entries are missing that neither the feed nor the log has: the client resumes by reconnecting.
            return (Step::End, Bytes::new());
        }
        for (place, event) in page.events.iter().enumerate().skip(from) {
            if text.len() > CHUNK_BYTES_MAX {
                return (Step::Page(page, place), text.into());
            }
            append_new(event, &self.filter, seen, &mut text, &self.feed.metrics.renderings);
        }
        (Step::CatchUp, text.into())
    }

    /// Takes the next step. Its text may be empty.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<(Step, Bytes)> {
        if self.feed.restarts() != self.restarts {
            // The client reconnects, and gets the entries of the new log. The group is gone.
            self.step = Step::End;
        }
        Poll::Ready(match std::mem::replace(&mut self.step, Step::End) {
            Step::Greeting => (Step::CatchUp, self.greeting()),
            Step::CatchUp => self.catch_up(),
            Step::Reading(mut reading) => match reading.as_mut().poll(context) {
                Poll::Pending => {
                    self.step = Step::Reading(reading);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(page)) => (Step::Page(page, 0), Bytes::new()),
                // The client resumes by reconnecting.
                Poll::Ready(Err(_)) => (Step::End, Bytes::new()),
            },
            Step::Page(page, from) => self.show(page, from),
            Step::Group(place) => {
                let mut state = self.feed.state();
                match state.take(place, context.waker()) {
                    Some(NextChunk::Chunk(text)) => (Step::Group(place), text),
                    Some(NextChunk::None) => {
                        self.step = Step::Group(place);
                        return Poll::Pending;
                    }
                    Some(NextChunk::Behind(seen)) => {
                        state.leave(place);
                        self.seen = Some(seen);
                        (Step::CatchUp, Bytes::new())
                    }
                    None => {
                        state.leave(place);
                        (Step::End, Bytes::new())
                    }
                }
            }
            Step::End => (Step::End, Bytes::new()),
        })
    }
}

impl Stream for AuditStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let (step, text) = ready!(self.poll_step(context));
            let is_over = matches!(step, Step::End);
            self.step = step;
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(text)));
            }
            if is_over {
                return Poll::Ready(None);
            }
        }
    }
}

impl Drop for AuditStream {
    fn drop(&mut self) {
        self.feed.metrics.streams.dec();
        match self.step {
            Step::Group(place) => self.feed.state().leave(place),
            Step::Greeting | Step::CatchUp | Step::Reading(_) | Step::Page(..) | Step::End => {}
        }
    }
}
