//! One request on a connection of its own, over any stream: a socket, TLS, a Unix socket. The body of the answer is read piece by
//! piece, or whole.
//!
//! The caller connects, and says how long everything may take.

use std::io::ErrorKind;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::request::Prepared;

/// The reason why a body is not whole: the connection broke off, or the body is too long.
pub type Incomplete = Box<dyn std::error::Error + Send + Sync>;

/// An answer whose body has not been read.
#[derive(Debug)]
pub struct Response {
    status: u16,
    body: Incoming,
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The next piece of the body; none at its end. A piece may be empty.
    pub async fn piece(&mut self) -> Option<hyper::Result<Bytes>> {
        let frame = self.body.frame().await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// The whole body.
    ///
    /// # Errors
    /// Fails if the connection breaks off, or the body has more bytes than that.
    pub async fn whole(self, bytes_max: usize) -> Result<Bytes, Incomplete> {
        Ok(Limited::new(self.body, bytes_max).collect().await?.to_bytes())
    }
}

/// Sends a request over a stream, and waits for the head of the answer. The connection ends with the answer.
///
/// # Errors
/// Fails if the connection breaks off, or the answer is not HTTP.
pub async fn exchange<S>(stream: S, request: Prepared) -> hyper::Result<Response>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, _) = open(stream, None).await?;
    let response = sender.send_request(request.0).await?;
    Ok(Response { status: response.status().as_u16(), body: response.into_body() })
}

/// Returns true if an error says that a connection that was there has gone.
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

/// Opens HTTP on a stream: the sender of requests, and the task that moves bytes. Whatever goes wrong with the task shows in an answer.
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
