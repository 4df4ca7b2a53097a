//! A client of a running server: one request, one answer, over TCP or a Unix socket.
//!
//! The command line waits for each answer, so nothing here looks asynchronous from outside.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;

/// Where a server is when nobody says otherwise.
pub(crate) const USUAL: &str = "http://127.0.0.1:1339";

/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How long to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A server that can be asked.
pub(crate) struct Client {
    place: Place,
    runtime: Runtime,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// `http://HOST:PORT`
    Tcp(String),
    /// `unix:PATH`, or a path.
    Unix(PathBuf),
}

/// What a server has said no to.
#[derive(Debug, thiserror::Error)]
#[error("{detail}")]
pub(crate) struct Refused {
    /// The status of the answer.
    pub(crate) status: u16,
    /// Why, for people.
    pub(crate) detail: String,
}

impl Client {
    /// A client of the server there: `http://HOST:PORT`, or `unix:PATH`.
    pub(crate) fn new(url: &str) -> Result<Self> {
        let place = match (url.strip_prefix("http://"), url.strip_prefix("unix:")) {
            (Some(authority), _) => Place::Tcp(authority.trim_end_matches('/').to_owned()),
            (None, Some(path)) => Place::Unix(path.into()),
            (None, None) if url.starts_with('/') => Place::Unix(url.into()),
            (None, None) => bail!("not the address of a server: {url}\n  hint: {USUAL}, or unix:PATH"),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { place, runtime })
    }

    /// Reads something.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        understand(&self.send(Method::GET, path, &[], Bytes::new())?)
    }

    /// Asks for something.
    pub(crate) fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T> {
        let body = Bytes::from(serde_json::to_vec(body)?);
        understand(&self.send(Method::POST, path, &[(CONTENT_TYPE.as_str(), "application/json")], body)?)
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
        self.runtime.block_on(async {
            let response = self.exchange(request).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|problem| anyhow::anyhow!("the answer broke off: {problem}"))?;
            Ok((status, body.to_bytes()))
        })
    }

    /// Follows a stream of server-sent events, giving the data of each, until told to stop or the server ends it.
    pub(crate) fn follow(&self, path: &str, mut each: impl FnMut(&str) -> ControlFlow<()>) -> Result<()> {
        let request = self.request(Method::GET, path, &[], Bytes::new())?;
        self.runtime.block_on(async {
            let mut body = self.exchange(request).await?.into_body();
            let mut text = String::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.context("the stream broke off")?;
                text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap_or(&Bytes::new())));
                while let Some(end) = text.find('\n') {
                    let line: String = text.drain(..=end).collect();
                    if let Some(data) = line.trim_end().strip_prefix("data: ")
                        && each(data).is_break()
                    {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>> {
        let host = match &self.place {
            Place::Tcp(authority) => authority,
            Place::Unix(_) => "localhost",
        };
        let mut request =
            Request::builder().method(method).uri(path).header(HOST, HeaderValue::from_str(host)?);
        request = request.header(ACCEPT, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.body(Full::new(body))?)
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        let hint = || {
            format!(
                "cannot reach a server at {self}\n  hint: start one with `forewarn dev`, or say --api URL"
            )
        };
        let connect = async {
            match &self.place {
                Place::Tcp(authority) => talk(TcpStream::connect(authority).await?, request).await,
                Place::Unix(path) => talk(UnixStream::connect(path).await?, request).await,
            }
        };
        connect.await.with_context(hint)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(authority) => write!(out, "http://{authority}"),
            Place::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

async fn talk<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaking = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = tokio::time::timeout(CONNECT_MAX, shaking).await??;
    // It ends with the last answer; whatever goes wrong with it shows in the answer.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender.send_request(request).await?)
}

fn understand<T: DeserializeOwned>((status, body): &(u16, Bytes)) -> Result<T> {
    if (200..300).contains(status) {
        return serde_json::from_slice(body).context("the answer of the server is not understood");
    }
    let problem: Result<serde_json::Value, _> = serde_json::from_slice(body);
    let detail = problem.ok().and_then(|problem| problem["detail"].as_str().map(str::to_owned));
    let detail = detail.unwrap_or_else(|| format!("the server answers {status}"));
    Err(Refused { status: *status, detail }.into())
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
        assert!(shown("localhost:1339").unwrap_err().to_string().contains("hint"));
    }

    #[test]
    fn a_refusal_keeps_its_status_and_its_words() {
        let body = Bytes::from(r#"{"status":409,"detail":"the brake is on"}"#);
        let problem = understand::<()>(&(409, body)).unwrap_err();
        let refused: &Refused = problem.downcast_ref().unwrap();
        assert_eq!((refused.status, refused.detail.as_str()), (409, "the brake is on"));
        let problem = understand::<()>(&(502, Bytes::from("<html>"))).unwrap_err();
        assert_eq!(problem.to_string(), "the server answers 502");
    }
}
