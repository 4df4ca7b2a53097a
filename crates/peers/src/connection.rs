//! One connection to another server: opened with certificates of both sides, then one message at a time.

use std::time::Duration;

use forewarn_http_client::error_chain;
use forewarn_types::Name;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::bodies::{UnreadBody, decode, read_body};
use crate::certified_name::{certified_name, dns_name};
use crate::error::PeerError;
use crate::identity::PeerIdentity;
use crate::limits::{CONNECTION_AGE_MAX, HEAD_BYTES_MAX, PeerLimits, SMALL_BYTES_MAX};
use crate::message::{HELLO, Hello};
use crate::peer::Peer;
use crate::socket::tune;

/// A message that can be sent again: its body is shared.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingMessage {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) body: Bytes,
}

/// The reason why a message has no answer.
#[derive(Debug)]
pub(crate) enum SendFailure {
    /// Nothing of it was sent.
    NotSent(PeerError),
    /// It may have arrived.
    Unknown(PeerError),
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

/// An open connection. Dropping it closes it; a message in flight is given up.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    is_in_flight: bool,
    opened: Instant,
    used: Instant,
}

impl SendFailure {
    pub(crate) fn into_error(self) -> PeerError {
        match self {
            Self::NotSent(error) | Self::Unknown(error) => error,
        }
    }
}

impl PeerConnection {
    /// Connects, verifies the certificate of the other server, and waits until that has verified ours.
    pub(crate) async fn open(
        peer: &Peer,
        identity: &PeerIdentity,
        limits: &PeerLimits,
    ) -> Result<Self, PeerError> {
        let stream = timeout(limits.connect, TcpStream::connect(&peer.address)).await;
        let stream = stream.map_err(|_| PeerError::TimedOut(limits.connect))?;
        let stream = stream.map_err(|error| PeerError::Unreachable(error_chain(&error)))?;
        tune(&stream);
        let introduced = timeout(limits.handshake, introduce(stream, peer, identity, limits)).await;
        introduced.map_err(|_| PeerError::TimedOut(limits.handshake))?
    }

    /// Returns true if the next message can be sent on it.
    pub(crate) fn is_usable(&self, idle_max: Duration) -> bool {
        !self.sender.is_closed()
            && self.opened.elapsed() < CONNECTION_AGE_MAX
            && self.used.elapsed() < idle_max
    }

    /// Sends a message and reads the whole answer. A connection that failed is not used again.
    pub(crate) async fn exchange(
        &mut self,
        message: &OutgoingMessage,
        bytes_max: usize,
        time_max: Duration,
    ) -> Result<WholeAnswer, SendFailure> {
        let begun = Instant::now();
        let response = self.send(message, time_max).await?;
        let status = response.status().as_u16();
        let left = time_max.saturating_sub(begun.elapsed());
        let body = read_body(response.into_body(), bytes_max, left).await;
        let body = body.map_err(|unread| SendFailure::Unknown(unread.into_error(bytes_max, time_max)))?;
        self.is_in_flight = false;
        self.used = Instant::now();
        Ok(WholeAnswer { status, body })
    }

    /// Sends a message, and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        message: &OutgoingMessage,
        time_max: Duration,
    ) -> Result<Response<Incoming>, SendFailure> {
        let request = message.request().map_err(SendFailure::NotSent)?;
        let broken = |error: &hyper::Error| PeerError::BrokenOff(error_chain(error));
        let late = || PeerError::TimedOut(time_max);
        let ready = timeout(time_max, self.sender.ready()).await.map_err(|_| SendFailure::NotSent(late()))?;
        ready.map_err(|error| SendFailure::NotSent(broken(&error)))?;
        self.is_in_flight = true;
        let sent = timeout(time_max, self.sender.try_send_request(request)).await;
        let sent = sent.map_err(|_| SendFailure::Unknown(late()))?;
        sent.map_err(|error| match error.message() {
            Some(_) => SendFailure::NotSent(broken(error.error())),
            None => SendFailure::Unknown(broken(error.error())),
        })
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        if self.is_in_flight {
            self.driver.abort();
        }
    }
}

impl OutgoingMessage {
    pub(crate) fn get(target: impl Into<String>) -> Self {
        Self { method: Method::GET, target: target.into(), body: Bytes::new() }
    }

    pub(crate) fn post(target: impl Into<String>, body: Bytes) -> Self {
        Self { method: Method::POST, target: target.into(), body }
    }

    fn request(&self) -> Result<Request<Full<Bytes>>, PeerError> {
        let built = Request::builder()
            .method(self.method.clone())
            .uri(&self.target)
            .header(HOST, HeaderValue::from_static("peer"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(Full::new(self.body.clone()));
        built.map_err(|error| PeerError::InvalidAnswer(error_chain(&error)))
    }
}

impl UnreadBody {
    pub(crate) fn into_error(self, bytes_max: usize, time_max: Duration) -> PeerError {
        match self {
            Self::TooLarge => PeerError::InvalidAnswer(format!("more than {bytes_max} bytes")),
            Self::TimedOut => PeerError::TimedOut(time_max),
            Self::BrokenOff(reason) => PeerError::BrokenOff(reason),
        }
    }
}

/// Does the TLS handshake, and sends the first message: only its answer shows that the other server has accepted our
/// certificate.
async fn introduce(
    stream: TcpStream,
    peer: &Peer,
    identity: &PeerIdentity,
    limits: &PeerLimits,
) -> Result<PeerConnection, PeerError> {
    let stream = secure(stream, &peer.name, identity).await?;
    let opened = Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
    let (sender, connection) = opened.map_err(|error| PeerError::BrokenOff(error_chain(&error)))?;
    let driver = tokio::spawn(async move { drop(connection.await) });
    let now = Instant::now();
    let mut connection = PeerConnection { sender, driver, is_in_flight: false, opened: now, used: now };
    let answer = connection.exchange(&OutgoingMessage::get(HELLO), SMALL_BYTES_MAX, limits.handshake).await;
    let answer = answer.map_err(|failure| failure.into_error().in_handshake())?;
    let hello: Result<Hello, _> = decode(answer.body).await;
    match hello {
        Ok(hello) if hello.server == peer.name => Ok(connection),
        Ok(hello) => Err(PeerError::Handshake(format!("it is server {}", hello.server))),
        Err(reason) => Err(PeerError::InvalidAnswer(format!("status {}: {reason}", answer.status))),
    }
}

async fn secure(
    stream: TcpStream,
    name: &Name,
    identity: &PeerIdentity,
) -> Result<TlsStream<TcpStream>, PeerError> {
    let handshake = |error: &dyn std::error::Error| PeerError::Handshake(error_chain(error));
    let expected = dns_name(name).map_err(|error| handshake(&error))?;
    let expected = ServerName::try_from(expected).map_err(|error| handshake(&error))?;
    let connector = TlsConnector::from(identity.client_config());
    let stream = connector.connect(expected, stream).await.map_err(|error| handshake(&error))?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    // The name of a certificate might have a wildcard.
    if certificates.first().and_then(certified_name).as_ref() == Some(name) {
        return Ok(stream);
    }
    Err(PeerError::Handshake("the certificate is not that of the server".to_owned()))
}
