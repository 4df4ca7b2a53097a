//! Responses to rejected connections: 503 if there is no room, 408 if the client was too slow.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::sync::SemaphorePermit;

use super::stream::Duplex;

/// Time for a client to read its rejection.
const TAKE_MAX: Duration = Duration::from_secs(2);

/// Bytes of a rejected request that are read: closing with unread bytes would lose the response.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of a rejected request that are read at once.
const SKIPPED_BYTES: usize = 1_024;

/// Format of the rejections of a listener, which its clients understand.
#[derive(Clone, Copy, Debug)]
pub struct RefusalFormat {
    /// Value of `content-type`.
    pub content_type: &'static str,
    pub body: fn(ConnectionRefusal) -> String,
}

/// Rejection of a client whose request was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// There is no room.
    Busy,
    /// The request did not arrive in time.
    TooSlow,
}

impl ConnectionRefusal {
    /// Status code of the response.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Busy => 503,
            Self::TooSlow => 408,
        }
    }

    const fn phrase(self) -> &'static str {
        match self {
            Self::Busy => "Service Unavailable",
            Self::TooSlow => "Request Timeout",
        }
    }

    fn bytes(self, format: RefusalFormat) -> String {
        let (status, phrase) = (self.status(), self.phrase());
        let (kind, body) = (format.content_type, (format.body)(self));
        let retry = match self {
            Self::Busy => "retry-after: 1\r\n",
            Self::TooSlow => "",
        };
        format!(
            "HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Sends the rejection and closes the stream, within a short time. With a permit, the client has time to read it.
    pub(super) async fn send(
        self,
        format: RefusalFormat,
        mut stream: Duplex,
        wait: Option<SemaphorePermit<'_>>,
    ) {
        let send = async {
            stream.write_all(self.bytes(format).as_bytes()).await?;
            stream.shutdown().await?;
            let mut rest = stream.take(UNREAD_BYTES_MAX);
            match wait {
                Some(_) => tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop),
                None => skip_received(&mut rest).await,
            }
        };
        // The client may have disconnected.
        drop(tokio::time::timeout(TAKE_MAX, send).await);
    }
}

/// Reads the bytes that have arrived, and waits for no others.
async fn skip_received(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut bytes = [0; SKIPPED_BYTES];
    poll_fn(|context| {
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
                Poll::Ready(ended) => return Poll::Ready(ended),
                Poll::Pending => return Poll::Ready(Ok(())),
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::PROBLEM_REFUSALS;

    /// promise: S5
    #[test]
    fn a_refusal_is_in_the_form_that_its_reader_knows() {
        let busy = ConnectionRefusal::Busy.bytes(PROBLEM_REFUSALS);
        assert!(busy.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{busy}");
        assert!(busy.contains("\r\nretry-after: 1\r\n") && busy.contains("\"/problems/busy\""), "{busy}");
        let plain =
            RefusalFormat { content_type: "text/plain", body: |refusal| refusal.status().to_string() };
        let slow = ConnectionRefusal::TooSlow.bytes(plain);
        assert!(slow.starts_with("HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain\r\n"), "{slow}");
        assert!(slow.ends_with("\r\n\r\n408"), "{slow}");
    }
}
