//! Follows a stream of server-sent events, and reconnects when the connection is lost.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use forewarn_http_client::{Bytes, Method, PreparedRequest};
use forewarn_types::show_duration;

use super::{ApiError, BODY_BYTES_MAX, Client, api_error};

/// Bytes of a line of the stream.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The pauses before a reconnection: doubled each time, until data arrives.
const RESUME_MIN: Duration = Duration::from_millis(250);
const RESUME_MAX: Duration = Duration::from_secs(10);

/// The way in which following a stream up to a deadline ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamOutcome {
    /// The callback stopped it.
    Stopped,
    /// The deadline has passed.
    TimedOut,
}

/// The way in which a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    /// The callback stopped it.
    Stopped,
    /// The server closed it.
    Closed,
}

/// True for a permanent rejection. 503 is temporary: the server is starting or stopping.
fn is_rejection(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiError>().is_some_and(|rejection| rejection.status != 503)
}

/// The position in the stream.
#[derive(Debug, Default)]
struct StreamPosition {
    /// The id of the last complete event.
    id: Option<String>,
    /// The id of the incomplete event.
    pending: Option<String>,
    data: Option<String>,
    /// Number of received lines.
    lines: u64,
}

fn append_data(position: &mut StreamPosition, more: &str) {
    match &mut position.data {
        Some(data) => {
            data.push('\n');
            data.push_str(more);
        }
        None => position.data = Some(more.to_owned()),
    }
}

impl Client {
    /// Follows a stream of server-sent events and passes the data of each to `each`, until `each` stops it, Ctrl-C, or
    /// a rejection. After a lost connection it continues at the same event; `note` gets a message for the user.
    pub(crate) fn follow(
        &self,
        path: &str,
        mut each: impl FnMut(&str) -> ControlFlow<()>,
        mut note: impl FnMut(&str),
    ) -> Result<()> {
        let mut position = StreamPosition::default();
        self.runtime.block_on(async {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
                followed = self.follow_on(path, &mut position, &mut each, &mut note) => followed,
            }
        })
    }

    /// The same after the event with this id, until `each` stops it or the deadline has passed. The id becomes that of
    /// the last event that `each` got.
    pub(crate) fn follow_from(
        &self,
        path: &str,
        id: &mut String,
        deadline: Option<Instant>,
        mut each: impl FnMut(&str) -> ControlFlow<()>,
        mut note: impl FnMut(&str),
    ) -> Result<StreamOutcome> {
        let mut position = StreamPosition { id: Some(id.clone()), ..StreamPosition::default() };
        let followed = self.runtime.block_on(async {
            let follow = self.follow_on(path, &mut position, &mut each, &mut note);
            match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline.into(), follow).await.ok(),
                None => Some(follow.await),
            }
        });
        if let Some(last) = position.id {
            *id = last;
        }
        match followed {
            Some(followed) => followed.map(|()| StreamOutcome::Stopped),
            None => Ok(StreamOutcome::TimedOut),
        }
    }

    async fn follow_on(
        &self,
        path: &str,
        position: &mut StreamPosition,
        each: &mut impl FnMut(&str) -> ControlFlow<()>,
        note: &mut impl FnMut(&str),
    ) -> Result<()> {
        // A first connection that fails is an error; only an established stream is resumed.
        let mut pause = RESUME_MIN;
        loop {
            let last = position.id.clone();
            let headers: Vec<_> = last.iter().map(|id| ("last-event-id", id.as_str())).collect();
            let request = self.request(Method::GET, path, &headers, Bytes::new())?;
            let lines_before = position.lines;
            let reason = match self.stream(request, each, position).await {
                Ok(StreamEnd::Stopped) => return Ok(()),
                Ok(StreamEnd::Closed) => "the server closed the stream".to_owned(),
                Err(error) if position.lines == 0 || is_rejection(&error) => return Err(error),
                Err(error) => format!("{error:#}"),
            };
            if position.lines > lines_before {
                pause = RESUME_MIN;
            }
            let line = reason.lines().next().unwrap_or_default();
            let when = if pause < Duration::from_secs(1) {
                String::new()
            } else {
                format!(" in {}", show_duration(pause))
            };
            note(&format!("{line}; reconnecting{when}"));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RESUME_MAX);
        }
    }

    async fn stream(
        &self,
        request: PreparedRequest,
        each: &mut impl FnMut(&str) -> ControlFlow<()>,
        position: &mut StreamPosition,
    ) -> Result<StreamEnd> {
        let mut response = self.exchange(request).await?;
        let status = response.status();
        if !(200..300).contains(&status) {
            let body = response.whole(BODY_BYTES_MAX).await;
            return Err(api_error(status, &body.unwrap_or_default()));
        }
        (position.pending, position.data) = (None, None);
        let mut bytes = Vec::new();
        while let Some(piece) = response.piece().await {
            bytes.extend_from_slice(&piece.context("lost the stream")?);
            // Only complete lines: a chunk may end within a character.
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                position.lines += 1;
                if let Some(id) = line.strip_prefix("id:") {
                    position.pending = Some(id.trim().to_owned());
                } else if let Some(data) = line.strip_prefix("data:") {
                    append_data(position, data.trim_start());
                } else if line.is_empty() {
                    // An empty line completes an event.
                    position.id = position.pending.take().or(position.id.take());
                    if position.data.take().is_some_and(|data| each(&data).is_break()) {
                        return Ok(StreamEnd::Stopped);
                    }
                }
            }
            if bytes.len() > LINE_BYTES_MAX {
                bail!("the stream has a line of more than {LINE_BYTES_MAX} bytes");
            }
        }
        Ok(StreamEnd::Closed)
    }
}
