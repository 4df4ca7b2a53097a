//! A client of a running server: one request, one answer, over TCP (with TLS or without) or a Unix socket.
//!
//! The command line waits for each answer, so nothing here looks asynchronous from outside.

mod following;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use forewarn_control::Items;
use forewarn_http_client::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use forewarn_http_client::{
    Authority, Bytes, HeaderName, HeaderValue, Method, Prepared, Request, Response, exchange, is_broken_off,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;

use crate::trust::Trust;

/// Where a server is when nobody says otherwise.
pub(crate) const USUAL: &str = "http://127.0.0.1:1339";

/// The port of a URL that names none.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Things of a list that are asked for at once: as many as a server gives.
const PAGE_ITEMS: u16 = 1_000;

/// How long to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The header with a key that makes a request safe to repeat.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Random bytes in such a key.
const KEY_BYTES: usize = 16;

/// When a change is asked for again of which it is not known whether it was done.
const REPEATED_AFTER: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The status of an answer that says: not now.
const UNAVAILABLE: u16 = 503;

/// A server that can be asked.
pub(crate) struct Client {
    place: Place,
    token: Option<String>,
    trust: Trust,
    patience: Option<Duration>,
    runtime: Runtime,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// `http://HOST:PORT`
    Tcp(String),
    /// `https://HOST:PORT`, and the host alone.
    Tls { authority: String, host: String },
    /// `unix:PATH`, or a path.
    Unix(PathBuf),
}

/// What a server has said no to.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Refused {
    /// The status of the answer.
    pub(crate) status: u16,
    /// The kind of problem: `/problems/…`.
    pub(crate) kind: String,
    /// Why, for people.
    pub(crate) detail: String,
    /// JSON pointer to the part of the request that is the reason.
    pub(crate) pointer: Option<String>,
}

/// A connection that ended before the answer did. What was asked for may have been done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BrokenOff(String);

/// A text that is not where a server is: a matter of usage.
#[derive(Debug, thiserror::Error)]
#[error("not the address of a server: {0:?}\n  hint: {USUAL}, https://HOST:PORT, or unix:PATH")]
pub(crate) struct NotAnAddress(String);

impl FromStr for Place {
    type Err = NotAnAddress;

    fn from_str(url: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(url.to_owned());
        let path = url.strip_prefix("unix:").or_else(|| url.starts_with('/').then_some(url));
        if let Some(path) = path {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let usual_port = match scheme {
            "http" => HTTP_PORT,
            "https" => HTTPS_PORT,
            _ => return Err(wrong()),
        };
        let rest = rest.trim_end_matches('/');
        // Documents speak of `/v1`, and so do people.
        let authority: Authority = rest.strip_suffix("/v1").unwrap_or(rest).parse().map_err(|_| wrong())?;
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host) {
            Some("") if !host.is_empty() => usual_port,
            Some(port) if !host.is_empty() => {
                port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(wrong)?
            }
            Some(_) | None => return Err(wrong()),
        };
        let authority = format!("{host}:{port}");
        if scheme == "http" {
            return Ok(Self::Tcp(authority));
        }
        // Addresses of version 6 stand in brackets in a URL, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Tls { authority, host })
    }
}

impl Client {
    /// A client of the server there: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:PATH`.
    pub(crate) fn new(url: &str) -> Result<Self> {
        let place = url.parse()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { place, token: None, trust: Trust::System, patience: None, runtime })
    }

    /// The same, with a key to the server.
    pub(crate) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// The same; believes only the authorities in that file, if there is one.
    pub(crate) fn with_authorities(self, file: Option<PathBuf>) -> Self {
        Self { trust: file.map_or(Trust::System, Trust::File), ..self }
    }

    /// The same; believes only the authorities in that text.
    pub(crate) fn with_authority(self, pem: Vec<u8>) -> Self {
        Self { trust: Trust::Text(pem), ..self }
    }

    /// The host by which the server is called, where it is: `127.0.0.1`, `[::1]`, `forewarn.internal`.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.place {
            Place::Tcp(authority) | Place::Tls { authority, .. } => {
                authority.rsplit_once(':').map(|(host, _)| host)
            }
            Place::Unix(_) => None,
        }
    }

    /// The same; waits that long for an answer, and no longer.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Reads something of any length, piece by piece.
    pub(crate) fn download(&self, path: &str, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let request = self.request(Method::GET, path, &[], Bytes::new())?;
        self.runtime.block_on(async {
            let mut response = self.exchange(request).await?;
            let status = response.status();
            if status != 200 {
                let body = response.whole(ANSWER_BYTES_MAX).await;
                let body = body.map_err(|problem| anyhow!("the answer broke off: {problem}"))?;
                return understand(&(status, body));
            }
            while let Some(piece) = response.piece().await {
                each(&piece.context("the answer broke off")?)?;
            }
            Ok(())
        })
    }

    /// Reads something.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        understand(&self.send(Method::GET, path, &[], Bytes::new())?)
    }

    /// Reads a list to its end, page by page.
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

    /// Asks for something.
    pub(crate) fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T> {
        self.change(Method::POST, path, Some(body))
    }

    /// Has something changed, once: it is asked for under a key, so that it can be asked for again when it is not known
    /// whether it was done.
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
        let mut is_unsure = false;
        for pause in REPEATED_AFTER {
            let answered = self.send(method.clone(), path, &headers, body.clone());
            is_unsure |= match &answered {
                Ok((status, _)) => *status == UNAVAILABLE,
                Err(problem) => problem.is::<BrokenOff>(),
            };
            match answered {
                // It may have been done, and the server may be coming back.
                Err(_) | Ok((UNAVAILABLE, _)) if is_unsure => std::thread::sleep(pause),
                answered => return understand(&answered?),
            }
        }
        understand(&self.send(method, path, &headers, body)?)
    }

    /// Sends any request, and gives status and body of any answer.
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
            let body = response.whole(ANSWER_BYTES_MAX).await;
            let body = body.map_err(|problem| BrokenOff(format!("the answer broke off: {problem}")))?;
            Ok((status, body))
        };
        self.runtime.block_on(async {
            let Some(patience) = self.patience else { return exchange.await };
            let answered = tokio::time::timeout(patience, exchange).await;
            answered.unwrap_or_else(|_| bail!("{self} does not answer within {} seconds", patience.as_secs()))
        })
    }

    fn request(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Prepared> {
        let host = match &self.place {
            Place::Tcp(authority) | Place::Tls { authority, .. } => authority,
            Place::Unix(_) => "localhost",
        };
        let mut request = Request::new(method, path, body).with(HOST, HeaderValue::from_str(host)?);
        request = request.with(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            request = request.with(AUTHORIZATION, value.context("this cannot be a key")?);
        }
        for (name, value) in headers {
            request.headers.append(name.parse::<HeaderName>()?, HeaderValue::from_str(value)?);
        }
        Ok(request.prepare()?)
    }

    async fn exchange(&self, request: Prepared) -> Result<Response> {
        let connect = async {
            match &self.place {
                Place::Tcp(authority) => {
                    exchange(in_time(TcpStream::connect(authority)).await?, request).await
                }
                Place::Tls { authority, host } => {
                    let stream = in_time(TcpStream::connect(authority)).await?;
                    exchange(in_time(self.trust.secure(stream, host)).await?, request).await
                }
                Place::Unix(path) => exchange(in_time(UnixStream::connect(path)).await?, request).await,
            }
            .map_err(anyhow::Error::from)
        };
        connect.await.map_err(|why: anyhow::Error| {
            let hint = crate::trust::hint(&why);
            if hint.is_none() && why.chain().any(is_broken_off) {
                return BrokenOff(format!("the connection to {self} broke off: {why:#}")).into();
            }
            let hint = hint.unwrap_or_else(|| "start one with `forewarn dev`, or say --api URL".to_owned());
            anyhow!("cannot reach a server at {self}: {why:#}\n  hint: {hint}")
        })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(authority) => write!(out, "http://{authority}"),
            Place::Tls { authority, .. } => write!(out, "https://{authority}"),
            Place::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

async fn in_time<S, E>(connecting: impl Future<Output = Result<S, E>>) -> Result<S>
where
    anyhow::Error: From<E>,
{
    let connected = tokio::time::timeout(CONNECT_MAX, connecting).await;
    Ok(connected.map_err(|_| anyhow!("no answer in {} seconds", CONNECT_MAX.as_secs()))??)
}

/// A key that nobody has used before.
fn random_key() -> Result<String> {
    let mut bytes = [0; KEY_BYTES];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.context("no random numbers to be had: /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn understand<T: DeserializeOwned>((status, body): &(u16, Bytes)) -> Result<T> {
    if (200..300).contains(status) {
        return serde_json::from_slice(body).context("the answer of the server is not understood");
    }
    Err(refused(*status, body))
}

fn refused(status: u16, body: &Bytes) -> anyhow::Error {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = match (&problem["detail"], &problem["error"]) {
        (serde_json::Value::String(detail), _) => detail.clone(),
        // Only the side of machines says what is wrong in this way.
        (_, serde_json::Value::String(_)) => format!(
            "that is the metadata endpoint, where machines ask\n  hint: operators have an address of their own, such as {USUAL}"
        ),
        (_, _) => format!("the server answers {status}"),
    };
    let kind = problem["type"].as_str().unwrap_or_default().to_owned();
    let pointer = problem["pointer"].as_str().map(str::to_owned);
    Refused { status, kind, detail, pointer }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_url_or_by_path() {
        let shown = |url: &str| Client::new(url).map(|client| client.to_string());
        assert_eq!(shown("http://127.0.0.1:1339/").unwrap(), "http://127.0.0.1:1339");
        assert_eq!(shown("unix:/run/x.sock").unwrap(), "unix:/run/x.sock");
        assert_eq!(shown("/run/x.sock").unwrap(), "unix:/run/x.sock");
        assert_eq!(shown("http://[::1]:1339/v1/").unwrap(), "http://[::1]:1339");
        assert_eq!(shown("http://forewarn/v1").unwrap(), "http://forewarn:80");
        assert_eq!(shown("https://forewarn.internal/v1").unwrap(), "https://forewarn.internal:443");
        let inside = |url: &str| match url.parse().unwrap() {
            Place::Tls { host, .. } => host,
            Place::Tcp(_) | Place::Unix(_) => panic!("{url}"),
        };
        assert_eq!(inside("https://[::1]:1339"), "::1");
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
            assert!(shown(wrong).unwrap_err().is::<NotAnAddress>(), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_status_and_its_words() {
        let body = Bytes::from(r#"{"type":"/problems/refused","status":409,"detail":"the brake is on"}"#);
        let problem = understand::<()>(&(409, body)).unwrap_err();
        let Refused { status, kind, detail, .. } = problem.downcast_ref().unwrap();
        assert_eq!((*status, kind.as_str(), detail.as_str()), (409, "/problems/refused", "the brake is on"));
        let body = Bytes::from(r#"{ "error": "Not found" }"#);
        let problem = understand::<()>(&(404, body)).unwrap_err().to_string();
        assert!(problem.starts_with("that is the metadata endpoint"), "{problem}");
        let problem = understand::<()>(&(502, Bytes::from("<html>"))).unwrap_err();
        assert_eq!(problem.to_string(), "the server answers 502");
    }
}
