//! One request on a connection of its own, over any stream: a TCP socket, TLS or a Unix socket. The response body is
//! read piece by piece or as a whole.
//!
//! The caller connects, and applies its own timeouts.

use std::io::ErrorKind;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::request::PreparedRequest;

/// Reason why a body is incomplete: the connection broke off, or the body is too long.
pub type Incomplete = Box<dyn std::error::Error + Send + Sync>;

/// A response whose body has not been read.
#[derive(Debug)]
pub struct StreamedResponse {
    status: u16,
    body: Incoming,
}

impl StreamedResponse {
    /// HTTP status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The next piece of the body; `None` at its end. A piece may be empty.
    pub async fn piece(&mut self) -> Option<hyper::Result<Bytes>> {
        let frame = self.body.frame().await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// Fails if the connection breaks off, or the body has more than `bytes_max` bytes.
    pub async fn whole(self, bytes_max: usize) -> Result<Bytes, Incomplete> {
        Ok(Limited::new(self.body, bytes_max).collect().await?.to_bytes())
    }
}

/// Sends a request over a stream, and waits for the head of the response. The connection ends with the response.
///
/// # Errors
/// Fails if the connection breaks off, or the response is not HTTP.
pub async fn exchange<S>(stream: S, request: PreparedRequest) -> hyper::Result<StreamedResponse>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, _) = open(stream, None).await?;
    let response = sender.send_request(request.0).await?;
    Ok(StreamedResponse { status: response.status().as_u16(), body: response.into_body() })
}

/// Returns true if an error says that an established connection was lost.
#[must_use]
pub fn is_broken_off(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_gone = |kind: ErrorKind| {
        matches!(
            kind,
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        )
    };
    error.downcast_ref::<std::io::Error>().is_some_and(|error| is_gone(error.kind()))
        || error
            .downcast_ref::<hyper::Error>()
            .is_some_and(|error| error.is_incomplete_message() || error.is_closed() || error.is_canceled())
}

/// Starts HTTP on a stream. Returns the sender of requests, and the task that drives the connection; errors of the task
/// surface in the response.
pub(crate) async fn open<S>(
    stream: S,
    head_bytes_max: Option<usize>,
) -> hyper::Result<(SendRequest<Full<Bytes>>, JoinHandle<()>)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new();
    if let Some(bytes) = head_bytes_max {
        builder.max_buf_size(bytes);
    }
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    Ok((sender, tokio::spawn(async move { drop(connection.await) })))
}
