//! Authentication of requests on one listener: the one with TLS, or one of operators.
//!
//! ```text
//!   request ──▶ from a web page, or with a foreign host name? ──▶ 403
//!                 │
//!                 ├─▶ public route: endpoints, certificate of the authority, login
//!                 └─▶ valid token? ──▶ permit ──▶ routes
//!                          └─no─▶ 401
//! ```

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Form, FromRequest, Query, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use forewarn_control::Permit;
use forewarn_imds::{TokenHolder, unsigned_token};
use forewarn_server::operator::{Access, ForeignRequest, HostNames, TokenError, bearer, find_token, foreign};
use forewarn_server::{ControlHandle, ExtensionMount, Scheme, TlsListener, authenticate_connection};
use serde_json::json;

use super::errors::of_problem;
use super::login::{self, Credentials, Login, LoginDirectory};
use super::public_routes::PublicRoute;
use super::signing::Purpose;
use super::{ArmContext, discovery, show};
use crate::ArmError;

/// Bytes of a form.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// The listener that an endpoint is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenerKind {
    /// The listener with TLS.
    Own,
    /// A listener of operators.
    Operators,
}

/// Azure Resource Manager behind one listener: authenticates requests, and answers those that need no token.
#[derive(Clone, Debug)]
pub(super) struct ArmEndpoint {
    context: ArmContext,
    kind: ListenerKind,
    access: Access,
    names: HostNames,
    login: Arc<Login>,
}

impl ArmEndpoint {
    /// The endpoint behind a listener.
    pub(super) fn new(control: &ControlHandle, mount: ExtensionMount, login: &Arc<Login>) -> Self {
        let (kind, scheme, access, names) = match mount {
            ExtensionMount::Own { host_names } => {
                (ListenerKind::Own, Scheme::Https, login.credentials.access(), host_names)
            }
            ExtensionMount::Operators { scheme, access, host_names } => {
                (ListenerKind::Operators, scheme, access, host_names)
            }
        };
        let context = ArmContext::new(control, scheme, &login.directory);
        Self { context, kind, access, names, login: Arc::clone(login) }
    }

    /// Router that hands every request to this endpoint.
    pub(super) fn router(self) -> Router {
        let handle =
            async |State(endpoint): State<Arc<Self>>, request: Request| endpoint.handle(request).await;
        Router::new().fallback(handle).with_state(Arc::new(self))
    }

    async fn handle(&self, request: Request) -> Response {
        if let Some(why) = foreign(&request, &self.names) {
            return show(&foreign_error(why));
        }
        match PublicRoute::at(request.uri().path()) {
            Some(route) => self.answer_public(route, request).await.unwrap_or_else(|refused| show(&refused)),
            None => self.answer_admitted(request).await,
        }
    }

    async fn answer_admitted(&self, request: Request) -> Response {
        if let Err(error) = self.context.control.confirm_reads().await {
            return show(&of_problem(&error));
        }
        match self.admit(&request) {
            Ok(permit) => {
                let (mut request, permit) = (request, Arc::new(permit));
                if authenticate_connection(&request, &permit).is_err() {
                    return busy();
                }
                request.extensions_mut().insert(permit);
                super::respond(State(self.context.clone()), request).await
            }
            Err(why) => self.challenge(&request, &why),
        }
    }

    /// The permit of a request.
    fn admit(&self, request: &Request) -> Result<Permit, TokenError> {
        match self.access {
            Access::Open(by) => Ok(Permit::unlimited(by)),
            Access::Tokens => {
                let text = bearer(request.headers()).ok_or(TokenError::Invalid)?;
                let (shared, wall) = (self.context.control.shared(), self.context.control.clock().now().wall);
                let times = (SystemTime::now(), wall);
                let token = match self.login.signer.admit(&shared, text, Purpose::Access, times) {
                    Err(TokenError::Invalid) => find_token(&shared, text, wall)?,
                    Ok(token) => token,
                    Err(expired @ TokenError::Expired(_)) => return Err(expired),
                };
                Ok(Permit::of(token))
            }
        }
    }

    /// 401, and the address at which a client gets a token.
    fn challenge(&self, request: &Request, why: &TokenError) -> Response {
        let refused = match why {
            TokenError::Invalid => ArmError::new(
                401,
                "InvalidAuthenticationToken",
                "The access token is missing or invalid: it has to be one that this server has signed, or a token of an operator's.",
            ),
            TokenError::Expired(_) => ArmError::new(
                401,
                "ExpiredAuthenticationToken",
                "The access token has expired, or the token behind it.",
            ),
        };
        let mut response = show(&refused);
        if let Ok(base) = self.base(request) {
            let directory = &self.login.directory;
            let challenge =
                format!("Bearer authorization_uri=\"{base}/{directory}\", error=\"invalid_token\"");
            // The URL has the host name of the request, which came in a header.
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }

    async fn answer_public(&self, route: PublicRoute, request: Request) -> Result<Response, ArmError> {
        let expected = route.method();
        let is_read = expected == Method::GET && request.method() == Method::HEAD;
        if *request.method() != expected && !is_read {
            let message = format!("Only {expected} is allowed here.");
            return Err(ArmError::new(405, "MethodNotAllowed", message));
        }
        let base = self.base(&request);
        let directory = |tenant: String| {
            base.clone().map(|base| LoginDirectory { url: format!("{base}/{tenant}"), tenant })
        };
        Ok(match route {
            PublicRoute::Endpoints => {
                let version = parameter(&request, "api-version");
                Json(discovery::endpoints(&base?, version.as_deref())?).into_response()
            }
            PublicRoute::Authority => self.authority()?,
            PublicRoute::Aliases => Json(discovery::aliases()).into_response(),
            PublicRoute::OpenId(tenant) => {
                Json(directory(tenant)?.offers(&self.login.directory)).into_response()
            }
            PublicRoute::Instance => Json(directory("common".to_owned())?.discovery()).into_response(),
            // Only this server verifies its signatures.
            PublicRoute::Keys => Json(json!({ "keys": [] })).into_response(),
            PublicRoute::Realm => Json(json!({ "ver": "1.0", "account_type": "Managed" })).into_response(),
            PublicRoute::DeviceCode(tenant) => login::device_code(&self.login, &directory(tenant)?),
            PublicRoute::Token(tenant) => {
                let (directory, form) = (directory(tenant)?, form(request).await?);
                login::token(&self.login, &self.context.control, &directory, &form)
            }
            PublicRoute::ManagedIdentity => self.managed_identity(&request)?,
        })
    }

    /// URL of the listener with TLS, with the host name of the request.
    fn base(&self, request: &Request) -> Result<String, ArmError> {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or(request.uri().authority().map(Authority::as_str)).unwrap_or_default();
        match (self.kind, &self.login.listener) {
            (ListenerKind::Own, _) => Ok(format!("https://{host}")),
            (ListenerKind::Operators, Some(TlsListener { port, .. })) => {
                Ok(format!("https://{}:{port}", without_port(host)))
            }
            (ListenerKind::Operators, None) => Err(ArmError::new(
                404,
                "NotFound",
                "This server has no listener with TLS for clients of Azure.",
            )),
        }
    }

    /// Certificate of the authority that clients must trust.
    fn authority(&self) -> Result<Response, ArmError> {
        let authority = self.login.listener.as_ref().and_then(|listener| listener.tls.authority());
        let none = || ArmError::new(404, "NotFound", "This server has no authority of its own.");
        let pem = authority.ok_or_else(none)?;
        Ok(([(header::CONTENT_TYPE, "application/x-pem-file")], pem).into_response())
    }

    /// The managed identity token of a client that is no machine.
    fn managed_identity(&self, request: &Request) -> Result<Response, ArmError> {
        if self.login.credentials == Credentials::Tokens {
            return Err(ArmError::new(404, "NotFound", "This listener issues no managed identity tokens."));
        }
        let is_meant = request
            .headers()
            .get("metadata")
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
        if !is_meant {
            let problem = forewarn_imds::RequestError::TokenHeaderMissing;
            let kind = [(header::CONTENT_TYPE, "application/json")];
            let status = axum::http::StatusCode::from_u16(problem.status()).unwrap_or_default();
            return Ok((status, kind, problem.body().into_owned()).into_response());
        }
        let resource = parameter(request, "resource").unwrap_or_default();
        let holder = TokenHolder { id: "00000000-0000-4000-8000-000000000000", resource_id: "" };
        let body = unsigned_token(&self.login.directory, &holder, &resource, SystemTime::now());
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }
}

/// 503 for a token with too many connections. The client loses this one.
fn busy() -> Response {
    let refused =
        ArmError::new(503, "ServerBusy", "The access token has too many connections. Try again later.");
    let mut response = show(&refused);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn foreign_error(why: ForeignRequest) -> ArmError {
    let message = match why {
        ForeignRequest::Page => "Requests of web pages are rejected.".to_owned(),
        ForeignRequest::Name { advice } => {
            let advice = advice.map(|advice| format!(", or {advice}")).unwrap_or_default();
            format!("Unknown host name: use the address of the server or localhost{advice}.")
        }
    };
    ArmError::new(403, "Forbidden", message)
}

fn parameter(request: &Request, name: &str) -> Option<String> {
    let Query(query) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    query.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

async fn form(request: Request) -> Result<login::FormFields, ArmError> {
    let bad = |why: String| ArmError::new(400, "BadRequest", format!("Invalid form: {why}."));
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, FORM_BYTES_MAX).await;
    let bytes = bytes.map_err(|_| bad("it is too long".to_owned()))?;
    let whole = Request::from_parts(parts, bytes.into());
    let Form(form) = Form::from_request(whole, &()).await.map_err(|problem| bad(problem.body_text()))?;
    Ok(form)
}

/// The host of a `Host` header without its port; an IPv6 address is in brackets.
fn without_port(host: &str) -> Cow<'_, str> {
    if host.parse::<Ipv6Addr>().is_ok() {
        return format!("[{host}]").into();
    }
    match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name.into(),
        Some(_) | None => host.into(),
    }
}

#[cfg(test)]
mod tests;
