//! Following a stream of server-sent events, over connections that break off.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use forewarn_http_client::{Bytes, Method, Prepared};
use forewarn_types::show_duration;

use super::{ANSWER_BYTES_MAX, Client, Refused, refused};

/// Bytes of a line of a stream.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long to wait before a stream is taken up again: longer each time, until there is something to hear.
const RESUME_MIN: Duration = Duration::from_millis(250);
const RESUME_MAX: Duration = Duration::from_secs(10);

/// How far a stream was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    /// Until somebody here had enough.
    UntilStopped,
    /// Until the server ended it.
    ToItsEnd,
}

/// Whether a server has said no, and would again: one that is about to stop, or has just started, would not.
fn is_refusal(problem: &anyhow::Error) -> bool {
    problem.downcast_ref::<Refused>().is_some_and(|refused| refused.status != 503)
}

/// How far somebody has come with a stream.
#[derive(Debug, Default)]
struct Seen {
    /// The last event that was seen whole.
    id: Option<String>,
    /// The one that is being read.
    pending: Option<String>,
    data: Option<String>,
    /// Lines that were heard at all.
    heard: u64,
}

fn data_seen(place: &mut Seen, more: &str) {
    match &mut place.data {
        Some(data) => {
            data.push('\n');
            data.push_str(more);
        }
        None => place.data = Some(more.to_owned()),
    }
}

impl Client {
    /// Follows a stream of server-sent events, giving the data of each, until told to stop, interrupted (Ctrl-C), or the
    /// server refuses. When it breaks off it is taken up where it was, as often as that works; `note` says so to somebody.
    pub(crate) fn follow(
        &self,
        path: &str,
        mut each: impl FnMut(&str) -> ControlFlow<()>,
        mut note: impl FnMut(&str),
    ) -> Result<()> {
        self.runtime.block_on(async {
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
                followed = self.follow_on(path, &mut each, &mut note) => followed,
            }
        })
    }

    async fn follow_on(
        &self,
        path: &str,
        each: &mut impl FnMut(&str) -> ControlFlow<()>,
        note: &mut impl FnMut(&str),
    ) -> Result<()> {
        // Who was never let in gives up at once; who was has something to come back to.
        let mut place = Seen::default();
        let mut pause = RESUME_MIN;
        loop {
            let last = place.id.clone();
            let headers: Vec<_> = last.iter().map(|id| ("last-event-id", id.as_str())).collect();
            let request = self.request(Method::GET, path, &headers, Bytes::new())?;
            let had = place.heard;
            let broken = match self.stream(request, each, &mut place).await {
                Ok(Followed::UntilStopped) => return Ok(()),
                Ok(Followed::ToItsEnd) => "the server has ended the stream".to_owned(),
                Err(problem) if place.heard == 0 || is_refusal(&problem) => return Err(problem),
                Err(problem) => format!("{problem:#}"),
            };
            if place.heard > had {
                pause = RESUME_MIN;
            }
            let line = broken.lines().next().unwrap_or_default();
            let when = if pause < Duration::from_secs(1) {
                String::new()
            } else {
                format!(" in {}", show_duration(pause))
            };
            note(&format!("{line}; trying again{when}"));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RESUME_MAX);
        }
    }

    async fn stream(
        &self,
        request: Prepared,
        each: &mut impl FnMut(&str) -> ControlFlow<()>,
        place: &mut Seen,
    ) -> Result<Followed> {
        let mut response = self.exchange(request).await?;
        let status = response.status();
        if !(200..300).contains(&status) {
            let told = response.whole(ANSWER_BYTES_MAX).await;
            return Err(refused(status, &told.unwrap_or_default()));
        }
        (place.pending, place.data) = (None, None);
        let mut bytes = Vec::new();
        while let Some(piece) = response.piece().await {
            bytes.extend_from_slice(&piece.context("the stream broke off")?);
            // Only whole lines: a frame may end in the middle of a letter.
            while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                place.heard += 1;
                if let Some(id) = line.strip_prefix("id:") {
                    place.pending = Some(id.trim().to_owned());
                } else if let Some(data) = line.strip_prefix("data:") {
                    data_seen(place, data.trim_start());
                } else if line.is_empty() {
                    // With the empty line an event is whole: not before that is it seen.
                    place.id = place.pending.take().or(place.id.take());
                    if place.data.take().is_some_and(|data| each(&data).is_break()) {
                        return Ok(Followed::UntilStopped);
                    }
                }
            }
            if bytes.len() > LINE_BYTES_MAX {
                bail!("the stream has a line that is too long: more than {LINE_BYTES_MAX} bytes");
            }
        }
        Ok(Followed::ToItsEnd)
    }
}
