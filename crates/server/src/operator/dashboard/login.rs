//! Login and logout of the dashboard: a token is sent once, and a cookie comes back.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use forewarn_control::CallerView;
use serde::Deserialize;

use super::super::Api;
use super::super::body::read;
use super::super::caller::caller_view;
use super::super::problem::{ApiProblem, ProblemKind};
use super::super::sessions::{SESSION_TIME_MAX, SessionId};
use super::super::token::{self, PresentedToken, TokenError};
use super::cookie::{cookie_value, session_cookie};
use super::own_page::OWN_PAGE_HEADER;

/// Path of logins.
pub(in super::super) const SESSION_PATH: &str = "/session";

/// Bytes of a login. Nobody is authenticated yet.
const LOGIN_BYTES_MAX: usize = 4 * 1_024;

/// Body of a login. The token must appear nowhere else: there is no `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

/// Routes of logins.
pub(in super::super) fn session_routes(router: Router<Api>) -> Router<Api> {
    let routes = post(begin).delete(end).layer(DefaultBodyLimit::max(LOGIN_BYTES_MAX));
    router.route(SESSION_PATH, routes)
}

/// The cookie of a server. Browsers send the cookies of a host to each of its ports: the name tells servers apart.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.map_or_else(|| "forewarn_session".to_owned(), |port| format!("forewarn_session_{port}"))
}

/// The session that a request names in its cookie.
pub(in super::super) fn session_of(headers: &HeaderMap) -> Option<SessionId> {
    cookie_value(headers, &cookie_name(headers)).map(SessionId::presented)
}

/// Exchanges a token for a session.
async fn begin(State(api): State<Api>, headers: HeaderMap, body: Bytes) -> Result<Response, ApiProblem> {
    check_own_page(&headers)?;
    // The usual message may repeat parts of the body, and the body has a token.
    let Login { token } =
        read(&body).map_err(|_| ApiProblem::bad("invalid login: expected {\"token\": \"fwt_…\"}"))?;
    let token = token.trim();
    let view: CallerView = {
        let shared = api.control.shared();
        let permit = token::admit(&shared, token, api.control.clock().now().wall)?;
        caller_view(&permit, &shared)
    };
    let presented = PresentedToken::parse(token).ok_or(TokenError::Invalid)?;
    let id = api
        .sessions
        .begin(presented, Instant::now())
        .map_err(|error| ApiProblem::new(ProblemKind::Internal, error.to_string()))?;
    let cookie = session_cookie(&cookie_name(&headers), id.text(), SESSION_TIME_MAX, api.scheme);
    Ok(([(header::SET_COOKIE, cookie)], Json(view)).into_response())
}

/// Ends the session of the request, if it has one.
async fn end(State(api): State<Api>, headers: HeaderMap) -> Result<Response, ApiProblem> {
    check_own_page(&headers)?;
    if session_of(&headers).is_some_and(|id| api.sessions.end(&id)) {
        // Its streams end.
        api.feed.comment();
    }
    let cookie = session_cookie(&cookie_name(&headers), "", Duration::ZERO, api.scheme);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// Authentication has rejected other web pages; here the header must be present, also in requests of no browser.
fn check_own_page(headers: &HeaderMap) -> Result<(), ApiProblem> {
    if headers.contains_key(OWN_PAGE_HEADER) {
        return Ok(());
    }
    Err(ApiProblem::forbidden(
        "logins are for the dashboard\n  hint: send `Authorization: Bearer TOKEN` to the API",
    ))
}
