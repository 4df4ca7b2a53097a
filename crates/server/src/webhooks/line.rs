//! A line to a webhook: one request, one answer, over HTTP/1.1, with TLS or without.
//!
//! A connection is kept while there is more to say: one that nobody uses may be the only one that a webhook can have. Redirects
//! are not followed: who was asked whether it wants to be told was the one at this address. Nothing of the address behind `?`,
//! and nothing that is sent, is in any problem.

use std::sync::Arc;
use std::time::Duration;

use forewarn_catalogue::{Scheme, Url};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::patience::Failure;
use super::trust::Trust;

/// How long an answer may take, connecting included.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = forewarn_wire::push::VALIDATION_BYTES_MAX;

/// Who asks.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("forewarn/", env!("CARGO_PKG_VERSION")));

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// As much of it as is read.
    pub(super) body: Bytes,
}

/// Why somebody could not be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// There is nobody, or nobody to be believed.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It takes too long.
    #[error("it does not answer within {} seconds", ANSWER_MAX.as_secs())]
    Late,
    /// It does not take it.
    #[error("it answers {status}{}", said(*.status))]
    Refused {
        /// The status of its answer.
        status: u16,
        /// When it wants to be tried again.
        retry_after: Option<Duration>,
    },
    /// It has not said that it wants to be told.
    #[error("it does not say that it wants to be told: {0}")]
    Unwilling(&'static str),
}

/// What a status means here.
fn said(status: u16) -> &'static str {
    match status {
        300..400 => ", and redirects are not followed",
        410 => ": it says that it is gone for good",
        _ => "",
    }
}

impl Trouble {
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Refused { status: 410, .. } => Failure::Gone,
            Self::Refused { retry_after: Some(wish), .. } => Failure::Busy(*wish),
            Self::Refused { retry_after: None, .. }
            | Self::Unreachable(_)
            | Self::Late
            | Self::Unwilling(_) => Failure::Passing,
        }
    }
}

impl Answer {
    /// Whether it was taken.
    pub(super) fn check(&self) -> Result<(), Trouble> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        Err(Trouble::Refused { status: self.status, retry_after: retry_after(&self.headers) })
    }
}

/// When somebody wants to be tried again: in so many seconds, or at a moment.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = forewarn_wire::parse_date(text)?;
    Some(at.since(crate::clock::wall()))
}

/// A line to a webhook.
#[derive(Debug)]
pub(super) struct Line {
    url: Url,
    trust: Arc<Trust>,
    /// A connection on which nothing is under way.
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Line {
    pub(super) fn new(url: Url, trust: Arc<Trust>) -> Self {
        Self { url, trust, open: None }
    }

    /// Sends a request, and waits for the answer, but not for long.
    pub(super) async fn send(&mut self, letter: &Letter) -> Result<Answer, Trouble> {
        let open = self.open.take();
        let sent = tokio::time::timeout(ANSWER_MAX, self.exchange(open, letter)).await;
        let (answer, open) = sent.unwrap_or(Err(Trouble::Late))?;
        self.open = open;
        Ok(answer)
    }

    /// There is nothing more to say for now.
    pub(super) fn hang_up(&mut self) {
        self.open = None;
    }

    async fn exchange(
        &self,
        open: Option<SendRequest<Full<Bytes>>>,
        letter: &Letter,
    ) -> Result<Exchanged, Trouble> {
        if let Some(mut open) = open
            && open.ready().await.is_ok()
            && let Ok(exchanged) = self.ask(open, letter).await
        {
            return Ok(exchanged);
        }
        // There was no connection, or it was closed meanwhile.
        self.ask(self.connect().await?, letter).await
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Trouble> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await;
        let stream = stream.map_err(|problem| Trouble::Unreachable(told(&problem)))?;
        // It costs time, and nothing else depends on it.
        stream.set_nodelay(true).ok();
        match self.url.scheme() {
            Scheme::Http => talk(stream).await,
            Scheme::Https => {
                let secured = self.trust.secure(stream, self.url.host()).await;
                talk(secured.map_err(Trouble::Unreachable)?).await
            }
        }
    }

    async fn ask(&self, mut open: SendRequest<Full<Bytes>>, letter: &Letter) -> Result<Exchanged, Trouble> {
        let broken = |problem: hyper::Error| Trouble::Unreachable(told(&problem));
        let response = open.send_request(self.request(letter)?).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        // Of what is too long nothing is needed, and the connection is not worth reading it to its end.
        let (body, open) = body.map_or((Bytes::new(), None), |body| (body.to_bytes(), Some(open)));
        Ok((Answer { status: head.status.as_u16(), headers: head.headers, body }, open))
    }

    fn request(&self, letter: &Letter) -> Result<Request<Full<Bytes>>, Trouble> {
        let wrong = |_| Trouble::Unreachable("nothing can be asked there".to_owned());
        let host = HeaderValue::from_str(self.url.authority())
            .map_err(|_| Trouble::Unreachable("nobody can be called that".to_owned()))?;
        let request = Request::builder().method(letter.method.clone()).uri(self.url.target());
        let mut request = request.body(Full::new(letter.body.clone())).map_err(wrong)?;
        request.headers_mut().extend(letter.headers.clone());
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(USER_AGENT, AGENT);
        Ok(request)
    }
}

/// An answer, and the connection if it can be used again.
type Exchanged = (Answer, Option<SendRequest<Full<Bytes>>>);

async fn talk<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|problem| Trouble::Unreachable(told(&problem)))?;
    // It ends when nobody sends any more; whatever goes wrong with it shows in an answer.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// A problem with its causes.
pub(super) fn told(problem: &dyn std::error::Error) -> String {
    let mut text = problem.to_string();
    let mut cause = problem.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retry: Option<&str>) -> Trouble {
        let mut headers = HeaderMap::new();
        retry.map(|text| headers.insert(RETRY_AFTER, text.parse().unwrap()));
        Answer { status, headers, body: Bytes::new() }.check().unwrap_err()
    }

    #[test]
    fn two_hundred_and_something_is_taken_and_nothing_else() {
        for status in [200, 201, 202, 204, 299] {
            assert!(Answer { status, headers: HeaderMap::new(), body: Bytes::new() }.check().is_ok());
        }
        assert_eq!(refused(301, None).to_string(), "it answers 301, and redirects are not followed");
        assert_eq!(refused(410, None).to_string(), "it answers 410: it says that it is gone for good");
        assert_eq!(
            (refused(503, None).to_string().as_str(), refused(410, Some("5")).failure()),
            ("it answers 503", Failure::Gone)
        );
    }

    #[test]
    fn a_wish_is_a_number_of_seconds_or_a_moment() {
        let wish = |text: &str| refused(429, Some(text)).failure();
        assert_eq!(wish("120"), Failure::Busy(Duration::from_secs(120)));
        assert_eq!(wish("Wed, 21 Oct 2015 07:28:00 GMT"), Failure::Busy(Duration::ZERO));
        assert!(
            matches!(wish("Sat, 21 Oct 2090 07:28:00 GMT"), Failure::Busy(long) if long > Duration::from_hours(24))
        );
        for wrong in ["", "soon", "-5", "1.5"] {
            assert_eq!(wish(wrong), Failure::Passing, "{wrong}");
        }
    }
}
