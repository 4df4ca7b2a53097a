//! The proxy on loopback: who may ask, and the answers that are not those of the server.
//!
//! Every process and every web page of this computer can reach the port. Files of the dashboard are for all of them;
//! everything else needs the cookie of a session and the header of the page, from the same origin.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use forewarn_http_client::error_chain;
use forewarn_server::Scheme;
use forewarn_server::operator::{cookie_value, is_own_page, session_cookie};
use http_body_util::{BodyExt, Either, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderMap, SET_COOKIE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::AddressPrinter;
use super::entrance::{Entrance, SESSION_TIME_MAX};
use super::forward::{Credentials, forward};
use super::problem::{ProxyBody, ProxyProblem, whole};
use crate::client::Client;

/// Connections at once. Further ones wait.
const CONNECTIONS_MAX: usize = 128;

/// Bytes of the head of a request, and its header fields.
const HEAD_BYTES_MAX: usize = 32 * 1_024;
const HEADERS_MAX: usize = 64;

/// The longest time until the head of a request, or a login, has arrived. Idle connections are closed, too.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes of a login.
const LOGIN_BYTES_MAX: usize = 1_024;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Path of logins.
const SESSION_PATH: &str = "/session";

const NO_SESSION: &str = "this browser has no session\n  hint: open the address that `forewarn dashboard` prints in \
                          its terminal; each works once, within a minute";

const NO_TOKEN: &str = "the server no longer accepts the token of `forewarn dashboard`: it was revoked or has \
                        expired\n  hint: end the command with Ctrl-C, and start it with another token";

/// The proxy to one server.
pub(super) struct Proxy {
    client: Arc<Client>,
    entrance: Entrance,
    printer: AddressPrinter,
}

/// Body of a login.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: String,
}

impl Proxy {
    pub(super) fn new(client: Arc<Client>, printer: AddressPrinter) -> Arc<Self> {
        Arc::new(Self { client, entrance: Entrance::default(), printer })
    }

    /// Prints the first address, and returns it.
    pub(super) fn begin(&self) -> Result<String> {
        let code = self.entrance.renew_code(Instant::now())?.context("there is a code already")?;
        let url = self.printer.url(&code);
        let note = format!(
            "Dashboard of {}. Open this address within a minute; it works once. Ctrl-C ends the dashboard.",
            self.client
        );
        self.printer.print(&note, &url)?;
        Ok(url)
    }

    /// Serves browsers until the command ends.
    pub(super) async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let proxy = Arc::clone(self);
                    tokio::spawn(async move {
                        proxy.connection(stream).await;
                        drop(place);
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        stream.set_nodelay(true).ok();
        let answer = service_fn(|request| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
        builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
        // The browser may leave at any time.
        drop(builder.serve_connection(TokioIo::new(stream), answer).await);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        if !self.is_own_host(&request) {
            let detail = format!("unknown host name\n  hint: open http://127.0.0.1:{}/", self.printer.port);
            return ProxyProblem::Foreign.response(&detail);
        }
        let path = request.uri().path();
        if path == forewarn_dashboard::PAGE || path.starts_with(forewarn_dashboard::DIRECTORY) {
            return match *request.method() {
                Method::GET | Method::HEAD => self.forward(request, Credentials::Nothing).await,
                _ => ProxyProblem::Method.response("the path does not support the method"),
            };
        }
        if !is_own_page(request.headers()) {
            return ProxyProblem::Foreign.response("requests of other web pages are rejected");
        }
        if path == SESSION_PATH {
            return match *request.method() {
                Method::POST => self.log_in(request).await,
                Method::DELETE => self.log_out(request.headers()),
                _ => ProxyProblem::Method.response("the path does not support the method"),
            };
        }
        match self.session(request.headers()) {
            Some(session) if self.entrance.admits(session, Instant::now()) => {
                self.forward(request, Credentials::Token).await
            }
            Some(_) | None => self.without_session(),
        }
    }

    /// Returns true if every host name of a request is that of the proxy: no other domain resolves to it.
    fn is_own_host(&self, request: &Request<Incoming>) -> bool {
        let own = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.printer.port));
        let is_own = |host: &str| own.iter().any(|own| own.eq_ignore_ascii_case(host));
        let mut hosts = request.headers().get_all(HOST).iter();
        let is_host = hosts.next().is_some_and(|host| host.to_str().is_ok_and(is_own));
        let is_target = request.uri().authority().is_none_or(|authority| is_own(authority.as_str()));
        is_host && hosts.next().is_none() && is_target && request.method() != Method::CONNECT
    }

    /// Browsers send the cookies of a host to each of its ports: the name tells servers apart.
    fn cookie_name(&self) -> String {
        format!("forewarn_dashboard_{}", self.printer.port)
    }

    fn session<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        cookie_value(headers, &self.cookie_name())
    }

    /// Exchanges a code for a session.
    async fn log_in(&self, request: Request<Incoming>) -> Response<ProxyBody> {
        let body = timeout(HEAD_TIME_MAX, Limited::new(request.into_body(), LOGIN_BYTES_MAX).collect()).await;
        let login = match body {
            Ok(Ok(body)) => serde_json::from_slice::<Login>(&body.to_bytes()).ok(),
            Ok(Err(_)) | Err(_) => None,
        };
        let Some(Login { code }) = login else {
            return ProxyProblem::Invalid.response("invalid login: expected {\"code\": …}");
        };
        match self.entrance.exchange(&code, Instant::now()) {
            Ok(Some(session)) => {
                eprintln!("forewarn: the dashboard is open in a browser");
                self.with_cookie(&session, SESSION_TIME_MAX)
            }
            Ok(None) => self.without_session(),
            Err(error) => ProxyProblem::Internal.response(&format!("{error:#}")),
        }
    }

    /// Ends the session of the request, if it has one.
    fn log_out(&self, headers: &HeaderMap) -> Response<ProxyBody> {
        if let Some(session) = self.session(headers) {
            self.entrance.end(session);
        }
        self.with_cookie("", Duration::ZERO)
    }

    fn with_cookie(&self, session: &str, time: Duration) -> Response<ProxyBody> {
        let mut response = Response::new(whole(""));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let cookie = session_cookie(&self.cookie_name(), session, time, Scheme::Http);
        response.headers_mut().insert(SET_COOKIE, cookie);
        response
    }

    /// Prints another address, unless the last one still works: at most one in a minute, whoever asks.
    fn without_session(&self) -> Response<ProxyBody> {
        let renewed = self.entrance.renew_code(Instant::now()).and_then(|code| match code {
            Some(code) => {
                let note = "forewarn: a browser without a session asks for the dashboard; if it is yours, open this address";
                self.printer.print(note, &self.printer.url(&code))
            }
            None => Ok(()),
        });
        match renewed {
            Ok(()) => ProxyProblem::NoSession.response(NO_SESSION),
            Err(error) => ProxyProblem::Internal.response(&format!("{error:#}")),
        }
    }

    async fn forward(&self, request: Request<Incoming>, credentials: Credentials) -> Response<ProxyBody> {
        match forward(&self.client, request, credentials).await {
            Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                ProxyProblem::NoToken.response(NO_TOKEN)
            }
            Ok(response) => response.map(Either::Right),
            Err(error) => ProxyProblem::Unreachable.response(&error_chain(error.as_ref())),
        }
    }
}
