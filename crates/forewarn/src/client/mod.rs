//! The HTTP client of the command line: requests to a running server over TCP, TLS or a Unix socket.
//!
//! Its methods block: a command has nothing else to do while it waits for a response.

mod stream;

pub(crate) use stream::StreamOutcome;

use data_encoding::HEXLOWER;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use forewarn_control::Items;
use forewarn_http_client::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use forewarn_http_client::{
    Authority, Bytes, HeaderName, HeaderValue, Method, PreparedRequest, Request, StreamedResponse, exchange,
    is_broken_off,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;

use crate::service::{Installation, installation};
use crate::trust::CaSource;

/// The default address of the server.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:1339";

/// The default ports of URLs.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Bytes of a response body.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Items of a page: the maximum of the server.
const PAGE_ITEMS: u16 = 1_000;

/// The timeout of a connection attempt.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The header with the key that makes a request safe to retry.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Random bytes of an idempotency key.
const KEY_BYTES: usize = 16;

/// The pauses before a change with unknown result is retried.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The status of a rejection that may be temporary.
const UNAVAILABLE: u16 = 503;

/// The problem type of a cluster that has failed.
const CLUSTER_FAILED: &str = "/problems/cluster-failed";

/// A client of one server.
pub(crate) struct Client {
    address: ServerAddress,
    source: AddressSource,
    token: Option<String>,
    trust: CaSource,
    /// None to wait without limit.
    timeout: Option<Duration>,
    runtime: Runtime,
}

/// A connection to the server: a TCP socket, TLS or a Unix socket.
pub(crate) type ServerStream = Box<dyn Duplex>;

/// A stream in both directions.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// The source of the address, for errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressSource {
    /// Such as `from context prod`. None if the user sees the address.
    pub(crate) name: Option<String>,
    /// The hint for a server that cannot be reached.
    pub(crate) hint: String,
}

impl Default for AddressSource {
    fn default() -> Self {
        let hint = match installation() {
            Installation::Installed => "check that the server is running, or use --api URL",
            Installation::Absent => "start a server with `forewarn dev`, or use --api URL",
        };
        Self { name: None, hint: hint.to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerAddress {
    /// `http://HOST:PORT`
    Tcp(String),
    /// `https://HOST:PORT`, with the host for the certificate.
    Tls { authority: String, host: String },
    /// `unix:PATH`, or a path.
    Unix(PathBuf),
}

/// An error response of the server.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// The problem type: `/problems/…`.
    pub(crate) kind: String,
    pub(crate) detail: String,
    /// JSON pointer to the invalid part of the request.
    pub(crate) pointer: Option<String>,
}

/// A connection that was closed before the end of the response. The server may have executed the request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConnectionLost(String);

/// An invalid server address: a usage error.
#[derive(Debug, thiserror::Error)]
#[error("invalid server address: {0:?}\n  hint: write http://HOST:PORT, https://HOST:PORT, or unix:PATH")]
pub(crate) struct InvalidServerUrl(String);

impl FromStr for ServerAddress {
    type Err = InvalidServerUrl;

    fn from_str(url: &str) -> Result<Self, InvalidServerUrl> {
        let invalid = || InvalidServerUrl(url.to_owned());
        let path = url.strip_prefix("unix:").or_else(|| url.starts_with('/').then_some(url));
        if let Some(path) = path {
            return if path.is_empty() { Err(invalid()) } else { Ok(Self::Unix(path.into())) };
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
        let default_port = match scheme {
            "http" => HTTP_PORT,
            "https" => HTTPS_PORT,
            _ => return Err(invalid()),
        };
        let rest = rest.trim_end_matches('/');
        // The documentation shows URLs with `/v1`, so users may copy it.
        let authority: Authority = rest.strip_suffix("/v1").unwrap_or(rest).parse().map_err(|_| invalid())?;
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host) {
            Some("") if !host.is_empty() => default_port,
            Some(port) if !host.is_empty() => {
                port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(invalid)?
            }
            Some(_) | None => return Err(invalid()),
        };
        let authority = format!("{host}:{port}");
        if scheme == "http" {
            return Ok(Self::Tcp(authority));
        }
        // Only in a URL are IPv6 addresses in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Tls { authority, host })
    }
}

impl Client {
    /// A client for `http://HOST:PORT`, `https://HOST:PORT`, or `unix:PATH`.
    pub(crate) fn new(url: &str) -> Result<Self> {
        let address = url.parse()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let source = AddressSource::default();
        Ok(Self { address, source, token: None, trust: CaSource::System, timeout: None, runtime })
    }

    /// Sets the source of the address.
    pub(crate) fn with_source(self, source: AddressSource) -> Self {
        Self { source, ..self }
    }

    /// Returns true if requests need a token: on a socket they need none.
    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some() && self.host().is_some()
    }

    /// Sets the API token.
    pub(crate) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Trusts only the CA certificates of the file; without a file, those of the system.
    pub(crate) fn with_ca_file(self, file: Option<PathBuf>) -> Self {
        Self { trust: file.map_or(CaSource::System, CaSource::File), ..self }
    }

    /// Trusts only these CA certificates.
    pub(crate) fn with_ca(self, pem: Vec<u8>) -> Self {
        Self { trust: CaSource::Text(pem), ..self }
    }

    /// The host of the server address: `127.0.0.1`, `[::1]`, `forewarn.internal`. None for a Unix socket.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.address {
            ServerAddress::Tcp(authority) | ServerAddress::Tls { authority, .. } => {
                authority.rsplit_once(':').map(|(host, _)| host)
            }
            ServerAddress::Unix(_) => None,
        }
    }

    /// The value of the header `Host`.
    pub(crate) fn host_header(&self) -> &str {
        match &self.address {
            ServerAddress::Tcp(authority) | ServerAddress::Tls { authority, .. } => authority,
            ServerAddress::Unix(_) => "localhost",
        }
    }

    /// The value of the header `Authorization`. None without a token.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>> {
        let Some(token) = &self.token else { return Ok(None) };
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).context("invalid API token")?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Sets a timeout for each request.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Streams a response of any length.
    pub(crate) fn download(&self, path: &str, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let request = self.request(Method::GET, path, &[], Bytes::new())?;
        self.runtime.block_on(async {
            let mut response = self.exchange(request).await?;
            let status = response.status();
            if status != 200 {
                let body = response.whole(BODY_BYTES_MAX).await;
                let body = body.map_err(|error| anyhow!("incomplete response: {error}"))?;
                return parse(&(status, body));
            }
            while let Some(piece) = response.piece().await {
                each(&piece.context("incomplete response")?)?;
            }
            Ok(())
        })
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        parse(&self.send(Method::GET, path, &[], Bytes::new())?)
    }

    /// Reads all pages of a list.
    pub(crate) fn pages<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        let more = if path.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        let mut after = String::new();
        loop {
            let page: Items<T> = self.get(&format!("{path}{more}limit={PAGE_ITEMS}{after}"))?;
            all.extend(page.items);
            match page.next {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(all),
            }
        }
    }

    pub(crate) fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T> {
        self.change(Method::POST, path, Some(body))
    }

    /// Sends a change with an idempotency key, and retries it if its result is unknown: the server executes it once.
    pub(crate) fn change<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<T> {
        let key = random_key()?;
        let mut headers = vec![(IDEMPOTENCY_KEY, key.as_str())];
        let body = match body {
            Some(body) => {
                headers.push((CONTENT_TYPE.as_str(), "application/json"));
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        let mut is_uncertain = false;
        for pause in RETRY_PAUSES {
            let response = self.send(method.clone(), path, &headers, body.clone());
            is_uncertain |= match &response {
                Ok(response) => is_temporary(response),
                Err(error) => error.is::<ConnectionLost>(),
            };
            match response {
                // The server may have executed the change, and may be restarting.
                Err(_) if is_uncertain => std::thread::sleep(pause),
                Ok(response) if is_temporary(&response) => std::thread::sleep(pause),
                response => return parse(&response?),
            }
        }
        parse(&self.send(method, path, &headers, body)?)
    }

    /// Sends a request. Returns the status and the body of the response, also of an error response.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<(u16, Bytes)> {
        let request = self.request(method, path, headers, body)?;
        let exchange = async {
            let response = self.exchange(request).await?;
            let status = response.status();
            let body = response.whole(BODY_BYTES_MAX).await;
            let body = body.map_err(|error| ConnectionLost(format!("incomplete response: {error}")))?;
            Ok((status, body))
        };
        self.runtime.block_on(async {
            let Some(timeout) = self.timeout else { return exchange.await };
            let response = tokio::time::timeout(timeout, exchange).await;
            response.unwrap_or_else(|_| bail!("{self} timed out after {} seconds", timeout.as_secs()))
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<PreparedRequest> {
        let host = HeaderValue::from_str(self.host_header())?;
        let mut request = Request::new(method, path, body).with(HOST, host);
        request = request.with(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = self.authorization()? {
            request = request.with(AUTHORIZATION, token);
        }
        for (name, value) in headers {
            request.headers.append(name.parse::<HeaderName>()?, HeaderValue::from_str(value)?);
        }
        Ok(request.prepare()?)
    }

    async fn exchange(&self, request: PreparedRequest) -> Result<StreamedResponse> {
        let exchanged = async { Ok(exchange(self.open().await?, request).await?) };
        exchanged.await.map_err(|error: anyhow::Error| self.explained(&error))
    }

    /// Connects to the server, with TLS if its address says so.
    pub(crate) async fn connect(&self) -> Result<ServerStream> {
        self.open().await.map_err(|error: anyhow::Error| self.explained(&error))
    }

    async fn open(&self) -> Result<ServerStream> {
        Ok(match &self.address {
            ServerAddress::Tcp(authority) => Box::new(in_time(TcpStream::connect(authority)).await?),
            ServerAddress::Tls { authority, host } => {
                let stream = in_time(TcpStream::connect(authority)).await?;
                Box::new(in_time(self.trust.secure(stream, host)).await?)
            }
            ServerAddress::Unix(path) => Box::new(in_time(UnixStream::connect(path)).await?),
        })
    }

    /// The error of a connection, for the user.
    fn explained(&self, error: &anyhow::Error) -> anyhow::Error {
        let hint = crate::trust::hint(error).or_else(|| self.permission_hint(error));
        if hint.is_none() && error.chain().any(is_broken_off) {
            return ConnectionLost(format!("lost the connection to {self}: {error:#}")).into();
        }
        let source = self.source.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let hint = hint.unwrap_or_else(|| self.source.hint.clone());
        anyhow!("cannot reach the server at {self}{source}: {error:#}\n  hint: {hint}")
    }

    /// A hint for a socket that this user may not use. None for other errors.
    fn permission_hint(&self, error: &anyhow::Error) -> Option<String> {
        let ServerAddress::Unix(_) = &self.address else { return None };
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
        causes.find(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied)?;
        let hint = "only root and the user of the server may use the socket, and no group: use `sudo`, or a token with \
                    `forewarn context set NAME --api URL --token-file FILE`";
        Some(hint.to_owned())
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            ServerAddress::Tcp(authority) => write!(out, "http://{authority}"),
            ServerAddress::Tls { authority, .. } => write!(out, "https://{authority}"),
            ServerAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

async fn in_time<S, E>(connecting: impl Future<Output = Result<S, E>>) -> Result<S>
where
    anyhow::Error: From<E>,
{
    let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
    Ok(connected.map_err(|_| anyhow!("timed out after {} seconds", CONNECT_MAX.as_secs()))??)
}

/// A new idempotency key.
fn random_key() -> Result<String> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).context("cannot get random bytes from the operating system")?;
    Ok(HEXLOWER.encode(&bytes))
}

fn parse<T: DeserializeOwned>((status, body): &(u16, Bytes)) -> Result<T> {
    if (200..300).contains(status) {
        return serde_json::from_slice(body).context("invalid response of the server");
    }
    Err(api_error(*status, body))
}

/// Returns true if a retry may help. For a cluster that has failed, only a restart of the server helps.
fn is_temporary((status, body): &(u16, Bytes)) -> bool {
    let kind = || serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default()["type"].take();
    *status == UNAVAILABLE && kind() != CLUSTER_FAILED
}

/// The error of an error response.
pub(crate) fn api_error(status: u16, body: &Bytes) -> anyhow::Error {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = match (&problem["detail"], &problem["error"]) {
        (serde_json::Value::String(detail), _) => detail.clone(),
        // Only the metadata endpoint has errors in this form.
        (_, serde_json::Value::String(_)) => format!(
            "this is the metadata endpoint of machines, not the operator API\n  hint: use the address of the API, such as {DEFAULT_URL}"
        ),
        (_, _) => format!("the server responds with status {status}"),
    };
    let kind = problem["type"].as_str().unwrap_or_default().to_owned();
    let pointer = problem["pointer"].as_str().map(str::to_owned);
    ApiError { status, kind, detail, pointer }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_address_is_a_url_or_a_path() {
        let shown = |url: &str| Client::new(url).map(|client| client.to_string());
        assert_eq!(shown("http://127.0.0.1:1339/").unwrap(), "http://127.0.0.1:1339");
        assert_eq!(shown("unix:/run/x.sock").unwrap(), "unix:/run/x.sock");
        assert_eq!(shown("/run/x.sock").unwrap(), "unix:/run/x.sock");
        assert_eq!(shown("http://[::1]:1339/v1/").unwrap(), "http://[::1]:1339");
        assert_eq!(shown("http://forewarn/v1").unwrap(), "http://forewarn:80");
        assert_eq!(shown("https://forewarn.internal/v1").unwrap(), "https://forewarn.internal:443");
        let host = |url: &str| match url.parse().unwrap() {
            ServerAddress::Tls { host, .. } => host,
            ServerAddress::Tcp(_) | ServerAddress::Unix(_) => panic!("{url}"),
        };
        assert_eq!(host("https://[::1]:1339"), "::1");
        for wrong in [
            "localhost:1339",
            "",
            "unix:",
            "http://",
            "http:///v1",
            "http://x:99999",
            "http://x/v2",
            "https://",
            "ftp://x",
        ] {
            assert!(shown(wrong).unwrap_err().is::<InvalidServerUrl>(), "{wrong}");
        }
    }

    #[test]
    fn a_cluster_that_has_failed_is_not_tried_again() {
        let body = |kind: &str| Bytes::from(format!(r#"{{"type":"/problems/{kind}","status":503}}"#));
        assert!(is_temporary(&(503, body("unavailable"))) && is_temporary(&(503, Bytes::new())));
        assert!(!is_temporary(&(503, body("cluster-failed"))) && !is_temporary(&(409, body("refused"))));
    }

    #[test]
    fn an_error_response_keeps_its_status_and_its_message() {
        let body = Bytes::from(r#"{"type":"/problems/refused","status":409,"detail":"the brake is on"}"#);
        let problem = parse::<()>(&(409, body)).unwrap_err();
        let ApiError { status, kind, detail, .. } = problem.downcast_ref().unwrap();
        assert_eq!((*status, kind.as_str(), detail.as_str()), (409, "/problems/refused", "the brake is on"));
        let body = Bytes::from(r#"{ "error": "Not found" }"#);
        let problem = parse::<()>(&(404, body)).unwrap_err().to_string();
        assert!(problem.starts_with("this is the metadata endpoint"), "{problem}");
        let problem = parse::<()>(&(502, Bytes::from("<html>"))).unwrap_err();
        assert_eq!(problem.to_string(), "the server responds with status 502");
    }
}
