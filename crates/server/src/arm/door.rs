//! A door by which clients of Azure come in: the listener with TLS, or one of the operators'.
//!
//! ```text
//!   request ──▶ from a web page, or to a foreign name? ──▶ 403
//!                 │
//!                 ├─▶ what strangers may ask: where things are, whom to believe, how to get a token
//!                 └─▶ whoever may do something gets a permit, everybody else a 401 ──▶ the rest
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
use forewarn_azure::ArmError;
use serde_json::json;

use super::entrance::{Credentials, Entrance};
use super::free::Free;
use super::identity::{self, Directory};
use super::signing::Purpose;
use super::{Arm, Scheme, discovery, show};
use crate::engine::Engine;
use crate::metadata::{Holder, token_body};
use crate::operator::{
    Access, Foreign, HostNames, NotAdmitted, Permit, authenticate, bearer, find_token, foreign,
};

/// Bytes of a form.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// Which door it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The listener with TLS.
    Listener,
    /// One of the operators'.
    Operators,
}

/// A door: who may come in, and what is behind it.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(super) arm: Arm,
    place: Place,
    access: Access,
    names: HostNames,
    pub(super) entrance: Arc<Entrance>,
}

impl Door {
    /// The listener with TLS.
    pub(crate) fn of_listener(engine: &Engine, names: HostNames, entrance: &Arc<Entrance>) -> Self {
        let (arm, access) =
            (Arm::new(engine, Scheme::Https, &entrance.directory), entrance.credentials.access());
        Self { arm, place: Place::Listener, access, names, entrance: Arc::clone(entrance) }
    }

    /// A door of the operators'.
    pub(crate) fn of_operators(
        engine: &Engine,
        scheme: Scheme,
        access: Access,
        names: HostNames,
        entrance: &Arc<Entrance>,
    ) -> Self {
        let arm = Arm::new(engine, scheme, &entrance.directory);
        Self { arm, place: Place::Operators, access, names, entrance: Arc::clone(entrance) }
    }

    /// Nothing but what is behind this door.
    pub(crate) fn router(self) -> Router {
        let enter = async |State(door): State<Arc<Self>>, request: Request| door.enter(request).await;
        Router::new().fallback(enter).with_state(Arc::new(self))
    }

    /// Answers a request, whoever sent it.
    pub(crate) async fn enter(&self, request: Request) -> Response {
        if let Some(why) = foreign(&request, &self.names) {
            return show(&refused(why));
        }
        match Free::at(request.uri().path()) {
            Some(free) => self.answer_stranger(free, request).await.unwrap_or_else(|refused| show(&refused)),
            None => match self.admit(&request) {
                Ok(permit) => {
                    let (mut request, permit) = (request, Arc::new(permit));
                    authenticate(&request, &permit);
                    request.extensions_mut().insert(permit);
                    super::respond(State(self.arm.clone()), request).await
                }
                Err(why) => self.challenge(&request, &why),
            },
        }
    }

    /// What whoever asks may do.
    fn admit(&self, request: &Request) -> Result<Permit, NotAdmitted> {
        match self.access {
            Access::Open(by) => Ok(Permit::unlimited(by)),
            Access::Tokens => {
                let text = bearer(request.headers()).ok_or(NotAdmitted::Wrong)?;
                let (roster, wall) = (self.arm.engine.roster(), self.arm.engine.clock().now().wall);
                let times = (SystemTime::now(), wall);
                let token = match self.entrance.signer.admit(&roster, text, Purpose::Access, times) {
                    Err(NotAdmitted::Wrong) => find_token(&roster, text, wall)?,
                    Ok(token) => token,
                    Err(expired @ NotAdmitted::Expired(_)) => return Err(expired),
                };
                Ok(Permit::of(token))
            }
        }
    }

    /// That whoever asks may not, and where they get what they need.
    fn challenge(&self, request: &Request, why: &NotAdmitted) -> Response {
        let refused = match why {
            NotAdmitted::Wrong => ArmError::new(
                401,
                "InvalidAuthenticationToken",
                "The access token is missing or invalid: it has to be one that this server has signed, or a token of an operator's.",
            ),
            NotAdmitted::Expired(_) => ArmError::new(
                401,
                "ExpiredAuthenticationToken",
                "The access token has expired, or the token behind it.",
            ),
        };
        let mut response = show(&refused);
        if let Ok(base) = self.base(request) {
            let directory = &self.entrance.directory;
            let challenge =
                format!("Bearer authorization_uri=\"{base}/{directory}\", error=\"invalid_token\"");
            // It has the name by which the server was called, and that is one which a header can have.
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }

    async fn answer_stranger(&self, free: Free, request: Request) -> Result<Response, ArmError> {
        let expected = free.method();
        let is_read = expected == Method::GET && request.method() == Method::HEAD;
        if *request.method() != expected && !is_read {
            let message = format!("Here is only {expected}.");
            return Err(ArmError::new(405, "MethodNotAllowed", message));
        }
        let base = self.base(&request);
        let directory =
            |tenant: String| base.clone().map(|base| Directory { url: format!("{base}/{tenant}"), tenant });
        Ok(match free {
            Free::Endpoints => {
                let version = parameter(&request, "api-version");
                Json(discovery::endpoints(&base?, version.as_deref())?).into_response()
            }
            Free::Authority => self.authority()?,
            Free::Aliases => Json(discovery::aliases()).into_response(),
            Free::OpenId(tenant) => Json(directory(tenant)?.offers(&self.entrance.directory)).into_response(),
            Free::Instance => Json(directory("common".to_owned())?.discovery()).into_response(),
            // Signatures are for this server alone to look at.
            Free::Keys => Json(json!({ "keys": [] })).into_response(),
            Free::Realm => Json(json!({ "ver": "1.0", "account_type": "Managed" })).into_response(),
            Free::DeviceCode(tenant) => identity::device_code(self, &directory(tenant)?),
            Free::Token(tenant) => identity::token(self, &directory(tenant)?, &form(request).await?),
            Free::Machine => self.identity_of_nobody(&request)?,
        })
    }

    /// Where the listener with TLS is, by the name by which whoever asks has called this server.
    fn base(&self, request: &Request) -> Result<String, ArmError> {
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or(request.uri().authority().map(Authority::as_str)).unwrap_or_default();
        match (self.place, &self.entrance.listener) {
            (Place::Listener, _) => Ok(format!("https://{host}")),
            (Place::Operators, Some((port, _))) => Ok(format!("https://{}:{port}", without_port(host))),
            (Place::Operators, None) => Err(ArmError::new(
                404,
                "NotFound",
                "This server has no listener with TLS for clients of Azure: forewarn dev has one unless it is told --arm-listen off.",
            )),
        }
    }

    /// Whom clients have to believe.
    fn authority(&self) -> Result<Response, ArmError> {
        let authority = self.entrance.listener.as_ref().and_then(|(_, tls)| tls.authority());
        let none = || ArmError::new(404, "NotFound", "This server has no authority of its own.");
        let pem = authority.ok_or_else(none)?;
        Ok(([(header::CONTENT_TYPE, "application/x-pem-file")], pem).into_response())
    }

    /// An identity token as a machine gets one, for whoever is none.
    fn identity_of_nobody(&self, request: &Request) -> Result<Response, ArmError> {
        if self.entrance.credentials == Credentials::Tokens {
            return Err(ArmError::new(404, "NotFound", "Machines ask elsewhere who they are."));
        }
        let is_meant = request
            .headers()
            .get("metadata")
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
        if !is_meant {
            let problem = forewarn_imds::Problem::TokenHeaderMissing;
            let kind = [(header::CONTENT_TYPE, "application/json")];
            let status = axum::http::StatusCode::from_u16(problem.status()).unwrap_or_default();
            return Ok((status, kind, problem.body().into_owned()).into_response());
        }
        let resource = parameter(request, "resource").unwrap_or_default();
        let holder = Holder { id: "00000000-0000-4000-8000-000000000000", resource_id: "" };
        let body = token_body(&self.entrance.directory, &holder, &resource, SystemTime::now());
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }
}

fn refused(why: Foreign) -> ArmError {
    let message = match why {
        Foreign::Page => "This is not for web pages.",
        Foreign::Name => {
            "This server is not called by that name: use its address, or localhost, or have the name in its settings (host_names)."
        }
    };
    ArmError::new(403, "Forbidden", message)
}

fn parameter(request: &Request, name: &str) -> Option<String> {
    let Query(query) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok()?;
    query.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

async fn form(request: Request) -> Result<identity::Form, ArmError> {
    let bad = |why: String| ArmError::new(400, "BadRequest", format!("The form is not understood: {why}."));
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, FORM_BYTES_MAX).await;
    let bytes = bytes.map_err(|_| bad("it is too long".to_owned()))?;
    let whole = Request::from_parts(parts, bytes.into());
    let Form(form) = Form::from_request(whole, &()).await.map_err(|problem| bad(problem.body_text()))?;
    Ok(form)
}

/// What a `Host` names, without a port: a name, an address, or one of version 6 in its brackets.
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
