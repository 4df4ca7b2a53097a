//! A line to one place: one request, one answer, over HTTP/1.1.
//!
//! The connection is kept for the next request. A request on a kept connection that was closed meanwhile is sent again on a new
//! one, so whatever is sent may arrive twice. Dropping [`HttpClient::send`] half-way closes the connection, and nothing else.

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

/// Who asks, if the request does not say.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("forewarn/", env!("CARGO_PKG_VERSION")));

/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A connection on which nothing is said is looked at after so long, so often, and so many times before it counts as broken.
const STILL_THERE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// What was answered.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status: 200 is well.
    pub status: u16,
    /// The header.
    pub headers: HeaderMap,
    /// All of the body; of one that [`HttpClient::tell`] could not read, nothing.
    pub body: Bytes,
}

/// How long it may take, and how much may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the whole answer is there, connecting included.
    pub answer: Duration,
    /// Bytes of the body of the answer.
    pub body_bytes: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// There is nobody, or nobody to be believed.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It takes too long.
    #[error("does not answer within {} seconds", .0.as_secs_f32())]
    Late(Duration),
    /// The connection broke, or what came is no HTTP.
    #[error("does not answer properly: {0}")]
    Broken(String),
    /// The answer has more bytes than that.
    #[error("answers with more than {0} bytes")]
    TooLong(usize),
    /// Nothing like this can be asked.
    #[error("cannot be asked: {0}")]
    Unaskable(String),
}

/// A line to one place.
#[derive(Debug)]
pub struct HttpClient {
    url: Url,
    trust: Arc<Trust>,
    /// A connection on which nothing is under way.
    open: Option<Connection>,
}

impl Default for Limits {
    /// Five seconds, thirty seconds, one mebibyte.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), answer: Duration::from_secs(30), body_bytes: 1024 * 1024 }
    }
}

impl HttpResponse {
    /// A header that is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }
}

impl HttpClient {
    /// A line to the host and port of a URL. Nothing is sent yet.
    #[must_use]
    pub fn new(url: Url, trust: Arc<Trust>) -> Self {
        Self { url, trust, open: None }
    }

    /// Sends a request, and waits for the answer, but not for long.
    ///
    /// # Errors
    /// When there is no whole answer. An answer with any status is one.
    pub async fn send(&mut self, request: &Request, limits: Limits) -> Result<HttpResponse, HttpError> {
        let Received { answer, trouble } = self.receive(request, limits).await?;
        trouble.map_or(Ok(answer), Err)
    }

    /// Sends a request to somebody of whom it matters only whether they take it: a body that breaks off, or is too long, makes
    /// the answer no worse.
    ///
    /// # Errors
    /// When nothing is answered, or the body does not end in time.
    pub async fn tell(&mut self, request: &Request, limits: Limits) -> Result<HttpResponse, HttpError> {
        Ok(self.receive(request, limits).await?.answer)
    }

    /// There is nothing more to say for now.
    pub fn hang_up(&mut self) {
        self.open = None;
    }

    async fn receive(&mut self, request: &Request, limits: Limits) -> Result<Received, HttpError> {
        let open = self.open.take();
        let exchanged = timeout(limits.answer, self.exchange(open, request, limits)).await;
        let (received, open) = exchanged.unwrap_or(Err(HttpError::Late(limits.answer)))?;
        self.open = open;
        Ok(received)
    }

    async fn exchange(
        &self,
        open: Option<Connection>,
        request: &Request,
        limits: Limits,
    ) -> Result<(Received, Option<Connection>), HttpError> {
        if let Some(mut open) = open
            && open.sender.ready().await.is_ok()
            && let Ok(response) = open.ask(self.request(request)?).await
        {
            return Ok(read(open, response, limits).await);
        }
        // There was no connection, or it was closed meanwhile.
        let mut open = self.connect(limits).await?;
        let response = open.ask(self.request(request)?).await;
        let response = response.map_err(|problem| HttpError::Broken(error_chain(&problem)))?;
        Ok(read(open, response, limits).await)
    }

    async fn connect(&self, limits: Limits) -> Result<Connection, HttpError> {
        let connecting = async {
            let stream = TcpStream::connect((self.url.host(), self.url.port())).await;
            let stream = stream.map_err(|problem| HttpError::Unreachable(error_chain(&problem)))?;
            // Both only make it quicker: to send, and to see that nobody is there any more.
            stream.set_nodelay(true).ok();
            let (idle, every, times) = STILL_THERE;
            let still_there = TcpKeepalive::new().with_time(idle).with_interval(every).with_retries(times);
            SockRef::from(&stream).set_tcp_keepalive(&still_there).ok();
            match self.url.scheme() {
                Scheme::Http => talk(stream).await,
                Scheme::Https => {
                    let secured = self.trust.secure(stream, self.url.host()).await;
                    talk(secured.map_err(|problem| HttpError::Unreachable(error_chain(&problem)))?).await
                }
            }
        };
        let nobody = || format!("no connection within {} seconds", limits.connect.as_secs_f32());
        timeout(limits.connect, connecting).await.unwrap_or_else(|_| Err(HttpError::Unreachable(nobody())))
    }

    fn request(&self, request: &Request) -> Result<hyper::Request<Full<Bytes>>, HttpError> {
        let host = HeaderValue::from_str(self.url.authority());
        let host = host.map_err(|problem| HttpError::Unaskable(error_chain(&problem)))?;
        let built = hyper::Request::builder().method(request.method.clone()).uri(&request.target);
        let built = built.body(Full::new(request.body.clone()));
        let mut built = built.map_err(|problem| HttpError::Unaskable(error_chain(&problem)))?;
        built.headers_mut().insert(USER_AGENT, AGENT);
        built.headers_mut().extend(request.headers.clone());
        built.headers_mut().insert(HOST, host);
        Ok(built)
    }
}

/// What came back.
struct Received {
    answer: HttpResponse,
    /// Why the body is not there.
    trouble: Option<HttpError>,
}

/// A connection, and the task that moves its bytes. When nobody has the connection any more, it says goodbye; one on which
/// something is under way breaks off.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    mover: JoinHandle<()>,
    is_under_way: bool,
}

impl Connection {
    /// Sends a request. Until the whole answer was read, it is under way.
    async fn ask(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        self.is_under_way = true;
        self.sender.send_request(request).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_under_way {
            self.mover.abort();
        }
    }
}

async fn talk<S>(stream: S) -> Result<Connection, HttpError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let opened = open(stream, Some(HEAD_BYTES_MAX)).await;
    let (sender, mover) = opened.map_err(|problem| HttpError::Broken(error_chain(&problem)))?;
    Ok(Connection { sender, mover, is_under_way: false })
}

/// Reads an answer to its end, and keeps the connection if it can be used again.
async fn read(
    mut open: Connection,
    response: hyper::Response<Incoming>,
    limits: Limits,
) -> (Received, Option<Connection>) {
    let (head, body) = response.into_parts();
    let (body, trouble) = match read_body(body, limits).await {
        Ok(body) => (body, None),
        Err(trouble) => (Bytes::new(), Some(trouble)),
    };
    open.is_under_way = trouble.is_some();
    let is_usable = trouble.is_none() && !open.sender.is_closed();
    let answer = HttpResponse { status: head.status.as_u16(), headers: head.headers, body };
    (Received { answer, trouble }, is_usable.then_some(open))
}

async fn read_body(body: Incoming, limits: Limits) -> Result<Bytes, HttpError> {
    // Of what says that it is too long nothing is read.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > limits.body_bytes) {
        return Err(HttpError::TooLong(limits.body_bytes));
    }
    let read = Limited::new(body, limits.body_bytes).collect().await;
    let read = read.map_err(|problem| {
        if problem.is::<LengthLimitError>() {
            return HttpError::TooLong(limits.body_bytes);
        }
        HttpError::Broken(error_chain(problem.as_ref()))
    })?;
    Ok(read.to_bytes())
}
