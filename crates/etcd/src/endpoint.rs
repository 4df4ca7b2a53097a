//! One endpoint: the URL of a member, and the connection to it, which is opened when it is needed.
//!
//! Connecting is a task of its own. A call that cannot wait for it fails; the connection serves the next one.

use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forewarn_url::{Scheme, Url};
use hyper::http::uri::{PathAndQuery, Uri};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::client::Grpc;

use crate::channel::Channel;
use crate::codec::MessageCodec;
use crate::connection::{Connection, ExaminationTimes, tune};
use crate::error::error_chain;
use crate::messages::{StatusRequest, StatusResponse};
use crate::settings::EtcdLimits;
use crate::tls::TlsFiles;

/// Path of the call that examines a connection.
const EXAMINATION: PathAndQuery = PathAndQuery::from_static("/etcdserverpb.Maintenance/Status");

/// A member.
#[derive(Debug)]
pub(crate) struct Endpoint {
    url: Url,
    /// Scheme and authority of requests.
    origin: Uri,
    files: TlsFiles,
    limits: EtcdLimits,
    slot: Mutex<ConnectionSlot>,
}

/// The connection of an endpoint.
#[derive(Debug)]
enum ConnectionSlot {
    Closed,
    Opening(watch::Receiver<OpeningState>),
    Open(Arc<Connection>),
}

/// The state of an attempt to connect: none until it has ended, then a connection or the reason why there is none.
type OpeningState = Option<Result<Arc<Connection>, String>>;

impl Endpoint {
    pub(crate) fn new(url: Url, files: TlsFiles, limits: EtcdLimits) -> Self {
        let scheme = match url.scheme() {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        // The parsed URL has only characters that an authority may have.
        let origin = format!("{scheme}://{}", url.authority()).parse().unwrap_or_default();
        Self { url, origin, files, limits, slot: Mutex::new(ConnectionSlot::Closed) }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The name of the endpoint in errors.
    pub(crate) fn name(&self) -> String {
        self.url.redacted_to_host()
    }

    /// The open connection, or a new one.
    pub(crate) async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut opening = match self.open_or_opening() {
            Ok(connection) => return Ok(connection),
            Err(opening) => opening,
        };
        let ended = opening.wait_for(Option::is_some).await;
        let ended = ended.map(|state| state.clone()).ok().flatten();
        ended.unwrap_or_else(|| Err("connecting was interrupted".to_owned()))
    }

    /// Has the open connection examined.
    pub(crate) fn suspect(&self) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let ConnectionSlot::Open(connection) = &*slot {
            connection.suspect();
        }
    }

    /// The client of gRPC on a channel to this endpoint.
    pub(crate) fn grpc(&self, channel: Channel) -> Grpc<Channel> {
        grpc(channel, self.origin.clone(), self.limits)
    }

    /// The open connection, if there is one; or else the attempt to open one, which begins now if it has not begun.
    fn open_or_opening(self: &Arc<Self>) -> Result<Arc<Connection>, watch::Receiver<OpeningState>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            ConnectionSlot::Open(connection) if !connection.is_closed() => return Ok(Arc::clone(connection)),
            ConnectionSlot::Opening(opening) if opening.has_changed().is_ok() => return Err(opening.clone()),
            ConnectionSlot::Open(_) | ConnectionSlot::Opening(_) | ConnectionSlot::Closed => {}
        }
        let (state, opening) = watch::channel(None);
        *slot = ConnectionSlot::Opening(opening.clone());
        let endpoint = Arc::clone(self);
        tokio::spawn(async move {
            let opened = endpoint.open().await;
            endpoint.fill_slot(&opened);
            state.send_replace(Some(opened));
        });
        Err(opening)
    }

    fn fill_slot(&self, opened: &Result<Arc<Connection>, String>) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = match opened {
            Ok(connection) => ConnectionSlot::Open(Arc::clone(connection)),
            Err(_) => ConnectionSlot::Closed,
        };
    }

    async fn open(&self) -> Result<Arc<Connection>, String> {
        let limit = self.limits.connect;
        let timed_out = || Err(format!("no connection within {} seconds", limit.as_secs_f32()));
        timeout(limit, self.open_unlimited()).await.unwrap_or_else(|_| timed_out())
    }

    /// Connects, and has the member answer once: only then nothing is known to be in the way of a request.
    async fn open_unlimited(&self) -> Result<Arc<Connection>, String> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await;
        let stream = stream.map_err(|error| error_chain(&error))?;
        tune(&stream);
        let connection = match self.url.scheme() {
            Scheme::Http => self.start(stream).await?,
            Scheme::Https => self.start(self.secure(stream).await?).await?,
        };
        let channel = Arc::clone(&connection).enter().channel();
        match examine(self.grpc(channel), self.limits.connect).await {
            Ok(()) => Ok(connection),
            Err(message) => Err(self.explain(connection.failure().unwrap_or(&message))),
        }
    }

    /// The reason why a new connection was closed. A member that misses a certificate says so after the handshake, and
    /// its words may be lost.
    fn explain(&self, message: &str) -> String {
        let hint = match self.url.scheme() {
            Scheme::Https if !self.files.has_certificate() => {
                "\n  hint: etcd may demand a client certificate"
            }
            Scheme::Http | Scheme::Https => "",
        };
        format!("{message}{hint}")
    }

    async fn secure(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(self.url.host().to_owned()).map_err(|error| error_chain(&error))?;
        let files = self.files.clone();
        let config = tokio::task::spawn_blocking(move || files.read()).await;
        let config = config.map_err(|error| error_chain(&error))?.map_err(|error| error_chain(&error))?;
        TlsConnector::from(config).connect(name, stream).await.map_err(|error| error_chain(&error))
    }

    async fn start<S>(&self, stream: S) -> Result<Arc<Connection>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (origin, limits) = (self.origin.clone(), self.limits);
        let examine = move |channel| {
            let examined = examine(grpc(channel, origin.clone(), limits), limits.examination);
            async { examined.await.is_ok() }
        };
        let times = ExaminationTimes { interval: limits.examination_interval, limit: limits.examination };
        Connection::start(stream, times, examine).await.map_err(|error| error_chain(&error))
    }
}

fn grpc(channel: Channel, origin: Uri, limits: EtcdLimits) -> Grpc<Channel> {
    Grpc::with_origin(channel, origin)
        .max_encoding_message_size(limits.request_bytes)
        .max_decoding_message_size(limits.answer_bytes)
}

/// Calls for the status of a member. Any answer will do, even an error.
async fn examine(mut grpc: Grpc<Channel>, limit: Duration) -> Result<(), String> {
    let mut request = tonic::Request::new(StatusRequest {});
    request.set_timeout(limit);
    let codec = MessageCodec::<StatusRequest, StatusResponse>::new();
    match grpc.unary(request, EXAMINATION, codec).await {
        Ok(_) => Ok(()),
        Err(status) => status.source().map_or(Ok(()), |source| Err(error_chain(source))),
    }
}
