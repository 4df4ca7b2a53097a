//! The stream of a client in a realm: it reads the log of each stream after the entries that the client has, so that the
//! client may go on at another server. Nothing here depends on the order in which this server has copied the streams.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use forewarn_control::Stream as LogStream;
use forewarn_store::{AuditQuery, Direction, ReadError};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::Stream;

use super::super::stream_numbers::StreamNumbers;
use super::event::{StreamEvent, missed};
use super::feed::AuditFeed;
use super::feed_state::{CHUNK_BYTES_MAX, SWEPT};
use super::filter::EntryFilter;
use super::log_pages::PAGE_ENTRIES;
use crate::control_handle::ControlHandle;

/// Time between comments on a stream without entries.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Pause before a busy audit log is read again.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// Chunks that wait for the connection of a client.
const CHUNKS_MAX: usize = 4;

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The stream of one client.
pub(super) struct RealmStream {
    chunks: mpsc::Receiver<Bytes>,
    feed: Arc<AuditFeed>,
}

/// The task that reads for a client.
struct RealmReader {
    control: ControlHandle,
    feed: Arc<AuditFeed>,
    filter: EntryFilter,
    seen: StreamNumbers,
    chunks: mpsc::Sender<Bytes>,
}

/// The client has gone, or the log cannot be read: the stream ends.
struct StreamOver;

impl RealmStream {
    /// A stream for a client that has these entries.
    pub(super) fn start(
        control: &ControlHandle,
        feed: Arc<AuditFeed>,
        filter: EntryFilter,
        seen: StreamNumbers,
    ) -> Self {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        feed.metrics.streams.inc();
        let (control, reader_feed) = (control.clone(), Arc::clone(&feed));
        let reader = RealmReader { control, feed: reader_feed, filter, seen, chunks: sender };
        // The client reconnects after an error.
        tokio::spawn(async move { drop(reader.run().await) });
        Self { chunks, feed }
    }
}

impl Drop for RealmStream {
    fn drop(&mut self) {
        self.feed.metrics.streams.dec();
    }
}

impl Stream for RealmStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}

impl RealmReader {
    async fn run(mut self) -> Result<(), StreamOver> {
        let (mut commits, mut stopped) = (self.control.commits(), self.feed.stopped());
        let mut tokens = self.feed.tokens();
        let mut comments = interval(COMMENT_INTERVAL);
        comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        comments.reset();
        // The first id lets a client resume from here even if no entry follows.
        self.send(format!("id: {}\n: listening\n\n", self.seen).into()).await?;
        loop {
            commits.mark_unchanged();
            self.send_new_entries().await?;
            // A stream whose token is gone ends when it gets something.
            let before = std::mem::replace(&mut tokens, self.feed.tokens());
            if tokens != before {
                self.send(COMMENT).await?;
            }
            let is_quiet = tokio::select! {
                // An error means that the drivers stop.
                changed = commits.changed() => changed.map(|()| false).map_err(|_| StreamOver)?,
                _ = comments.tick() => true,
                () = self.chunks.closed() => return Err(StreamOver),
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
            };
            if is_quiet {
                self.send(COMMENT).await?;
            }
        }
    }

    async fn send(&self, chunk: Bytes) -> Result<(), StreamOver> {
        self.chunks.send(chunk).await.map_err(|_| StreamOver)
    }

    /// Sends the entries of all streams that the client does not have.
    async fn send_new_entries(&mut self) -> Result<(), StreamOver> {
        let snapshot = self.control.snapshot();
        let clusters = snapshot.state.clusters().map(|(id, _)| id);
        let end = |id| snapshot.runtimes.get(&id).map_or(0, |view| view.audit_end);
        let grown = clusters.map(|id| (LogStream::Cluster(id), end(id)));
        let mut streams: Vec<_> =
            grown.filter(|(stream, end)| self.seen.of(*stream) < *end).map(|(stream, _)| stream).collect();
        streams.insert(0, LogStream::Shared);
        // Clusters that were removed meanwhile have no further entries.
        let is_gone = |stream: &LogStream| match stream {
            LogStream::Shared => false,
            LogStream::Cluster(id) => snapshot.state.cluster(*id).is_none(),
        };
        let gone: Vec<_> = self.seen.streams().filter(is_gone).collect();
        drop(snapshot);
        for stream in streams.into_iter().chain(gone.iter().copied()) {
            self.send_stream(stream).await?;
        }
        gone.into_iter().for_each(|stream| self.seen.forget(stream));
        Ok(())
    }

    async fn send_stream(&mut self, stream: LogStream) -> Result<(), StreamOver> {
        loop {
            let seen = self.seen.of(stream);
            let query = AuditQuery {
                stream: Some(stream),
                after: Some(seen),
                limit: PAGE_ENTRIES,
                ..AuditQuery::default()
            };
            let page = read(&self.control, query).await?;
            let mut text = Vec::new();
            if page.end < seen {
                // The id is of another realm, or of this one before it was restored.
                self.seen.set(stream, page.head);
                text.extend(missed("the id is of another audit log"));
            } else if page.swept > seen {
                self.seen.set(stream, page.swept);
                text.extend(missed(SWEPT));
            }
            let is_last = page.next.is_none();
            for logged in page.entries {
                self.seen.set(stream, logged.entry.number);
                if self.filter.admits(&logged.entry) {
                    StreamEvent::new(logged).write(&mut text, &self.seen, &self.feed.metrics.renderings);
                }
                if text.len() > CHUNK_BYTES_MAX {
                    self.send(std::mem::take(&mut text).into()).await?;
                }
            }
            if !text.is_empty() {
                self.send(text.into()).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The numbers of the last entries of all streams, for a client that wants the entries that come now.
pub(super) async fn current_numbers(control: &ControlHandle) -> Result<StreamNumbers, ReadError> {
    let snapshot = control.snapshot();
    let mut seen = StreamNumbers::default();
    for (id, _) in snapshot.state.clusters() {
        let end = snapshot.runtimes.get(&id).map_or(0, |view| view.audit_end);
        seen.set(LogStream::Cluster(id), end);
    }
    let newest = AuditQuery {
        stream: Some(LogStream::Shared),
        direction: Direction::NewestFirst,
        limit: 0,
        ..AuditQuery::default()
    };
    seen.set(LogStream::Shared, control.read_audit_log(newest).await?.head);
    Ok(seen)
}

async fn read(control: &ControlHandle, query: AuditQuery) -> Result<forewarn_store::AuditBatch, StreamOver> {
    loop {
        match control.read_audit_log(query.clone()).await {
            Ok(page) => return Ok(page),
            Err(ReadError::Busy) => tokio::time::sleep(READ_PAUSE).await,
            Err(
                error @ (ReadError::Closed
                | ReadError::TooMany(_)
                | ReadError::Damaged(_)
                | ReadError::Failed(_)),
            ) => {
                tracing::debug!(%error, "cannot read audit entries for a stream");
                return Err(StreamOver);
            }
        }
    }
}
