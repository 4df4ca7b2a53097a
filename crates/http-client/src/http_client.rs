//! A client for one host: one request at a time, over HTTP/1.1.
//!
//! The connection is reused for the next request. A request on a reused connection that the server has closed meanwhile
//! is sent again on a new one, so a request may arrive twice. Dropping [`HttpClient::send`] closes the connection.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{HOST, HeaderMap, HeaderValue, USER_AGENT};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error_chain;
use crate::exchange::open;
use crate::request::Request;
use crate::trust::Trust;
use forewarn_url::{Scheme, Url};

/// Default `User-Agent`.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("forewarn/", env!("CARGO_PKG_VERSION")));

/// Maximum bytes of the head of a response.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// TCP keepalive: idle time, interval, and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// A complete response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// HTTP status code.
    pub status: u16,
    /// Header fields.
    pub headers: HeaderMap,
    /// The whole body; empty if [`HttpClient::send_ignoring_body`] could not read it.
    pub body: Bytes,
}

/// Time and size limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time to connect.
    pub connect: Duration,
    /// Maximum time until the whole response has arrived, connecting included.
    pub answer: Duration,
    /// Maximum bytes of the response body.
    pub body_bytes: usize,
}

/// Reason why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No connection, or the server's certificate is not trusted.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The time limit was exceeded.
    #[error("did not respond within {} seconds", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The connection broke off, or the response is not HTTP.
    #[error("sent an invalid response: {0}")]
    InvalidResponse(String),
    /// The response body exceeds the limit.
    #[error("sent a body of more than {0} bytes")]
    BodyTooLarge(usize),
    /// The request or its URL is invalid.
    #[error("cannot be sent the request: {0}")]
    InvalidRequest(String),
}

/// A client for one host.
#[derive(Debug)]
pub struct HttpClient {
    url: Url,
    trust: Arc<Trust>,
    /// An idle connection for the next request.
    open: Option<ClientConnection>,
}

impl Default for Limits {
    /// 5 seconds to connect, 30 seconds in all, 1 MiB.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), answer: Duration::from_secs(30), body_bytes: 1024 * 1024 }
    }
}

impl HttpResponse {
    /// Value of a header field, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }
}

impl HttpClient {
    /// A client for the host and port of a URL. Does not connect yet.
    #[must_use]
    pub fn new(url: Url, trust: Arc<Trust>) -> Self {
        Self { url, trust, open: None }
    }

    /// Sends a request, and waits for the response within the limits.
    ///
    /// # Errors
    /// Fails if there is no complete response. A response with any status is a success.
    pub async fn send(&mut self, request: &Request, limits: Limits) -> Result<HttpResponse, HttpError> {
        let ReceivedResponse { response, body_error } = self.receive(request, limits).await?;
        body_error.map_or(Ok(response), Err)
    }

    /// Sends a request whose response body does not matter: a body that breaks off or is too long is no error.
    ///
    /// # Errors
    /// Fails if there is no response, or its body does not end in time.
    pub async fn send_ignoring_body(
        &mut self,
        request: &Request,
        limits: Limits,
    ) -> Result<HttpResponse, HttpError> {
        Ok(self.receive(request, limits).await?.response)
    }

    /// Closes the idle connection.
    pub fn disconnect(&mut self) {
        self.open = None;
    }

    async fn receive(&mut self, request: &Request, limits: Limits) -> Result<ReceivedResponse, HttpError> {
        let open = self.open.take();
        let exchanged = timeout(limits.answer, self.exchange(open, request, limits)).await;
        let (received, open) = exchanged.unwrap_or(Err(HttpError::TimedOut(limits.answer)))?;
        self.open = open;
        Ok(received)
    }

    async fn exchange(
        &self,
        open: Option<ClientConnection>,
        request: &Request,
        limits: Limits,
    ) -> Result<(ReceivedResponse, Option<ClientConnection>), HttpError> {
        if let Some(mut open) = open
            && open.sender.ready().await.is_ok()
            && let Ok(response) = open.send(self.request(request)?).await
        {
            return Ok(read(open, response, limits).await);
        }
        // There was no connection, or the server has closed it meanwhile.
        let mut open = self.connect(limits).await?;
        let response = open.send(self.request(request)?).await;
        let response = response.map_err(|error| HttpError::InvalidResponse(error_chain(&error)))?;
        Ok(read(open, response, limits).await)
    }

    async fn connect(&self, limits: Limits) -> Result<ClientConnection, HttpError> {
        let connecting = async {
            let stream = TcpStream::connect((self.url.host(), self.url.port())).await;
            let stream = stream.map_err(|error| HttpError::Unreachable(error_chain(&error)))?;
            // Best effort: both options only reduce latency, of sending and of noticing a lost peer.
            stream.set_nodelay(true).ok();
            let (idle, every, times) = KEEPALIVE;
            let keepalive = TcpKeepalive::new().with_time(idle).with_interval(every).with_retries(times);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok();
            match self.url.scheme() {
                Scheme::Http => start_http(stream).await,
                Scheme::Https => {
                    let secured = self.trust.secure(stream, self.url.host()).await;
                    start_http(secured.map_err(|error| HttpError::Unreachable(error_chain(&error)))?).await
                }
            }
        };
        let timed_out = || format!("no connection within {} seconds", limits.connect.as_secs_f32());
        timeout(limits.connect, connecting).await.unwrap_or_else(|_| Err(HttpError::Unreachable(timed_out())))
    }

    fn request(&self, request: &Request) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
        let host = HeaderValue::from_str(self.url.authority());
        let host = host.map_err(|error| HttpError::InvalidRequest(error_chain(&error)))?;
        let built = hyper::Request::builder().method(request.method.clone()).uri(&request.target);
        let built = built.body(Full::new(request.body.clone()));
        let mut built = built.map_err(|error| HttpError::InvalidRequest(error_chain(&error)))?;
        built.headers_mut().insert(HOST, host);
        built.headers_mut().insert(USER_AGENT, AGENT);
        built.headers_mut().extend(request.headers.clone());
        Ok(built)
    }
}

/// A response as far as it was received.
struct ReceivedResponse {
    response: HttpResponse,
    /// Error of the body; `None` if it is complete.
    body_error: Option<HttpError>,
}

/// A connection with the task that drives it. Dropping it closes the connection; if a request is in flight, the task is
/// aborted.
#[derive(Debug)]
struct ClientConnection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    in_flight: bool,
}

impl ClientConnection {
    /// Sends a request. It is in flight until the whole response has been read.
    async fn send(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        self.in_flight = true;
        self.sender.send_request(request).await
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        if self.in_flight {
            self.driver.abort();
        }
    }
}

async fn start_http<S>(stream: S) -> Result<ClientConnection, HttpError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = open(stream, Some(HEAD_BYTES_MAX)).await;
    let (sender, driver) = opened.map_err(|error| HttpError::InvalidResponse(error_chain(&error)))?;
    Ok(ClientConnection { sender, driver, in_flight: false })
}

/// Reads a response to its end. Returns the connection if it can be reused.
async fn read(
    mut open: ClientConnection,
    response: hyper::Response<Incoming>,
    limits: Limits,
) -> (ReceivedResponse, Option<ClientConnection>) {
    let (head, body) = response.into_parts();
    let (body, body_error) = match read_body(body, limits).await {
        Ok(body) => (body, None),
        Err(body_error) => (Bytes::new(), Some(body_error)),
    };
    open.in_flight = body_error.is_some();
    let is_usable = body_error.is_none() && !open.sender.is_closed();
    let response = HttpResponse { status: head.status.as_u16(), headers: head.headers, body };
    (ReceivedResponse { response, body_error }, is_usable.then_some(open))
}

async fn read_body(body: Incoming, limits: Limits) -> Result<Bytes, HttpError> {
    // A body whose announced length exceeds the limit is not read.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > limits.body_bytes) {
        return Err(HttpError::BodyTooLarge(limits.body_bytes));
    }
    let read = Limited::new(body, limits.body_bytes).collect().await;
    let read = read.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return HttpError::BodyTooLarge(limits.body_bytes);
        }
        HttpError::InvalidResponse(error_chain(error.as_ref()))
    })?;
    Ok(read.to_bytes())
}
