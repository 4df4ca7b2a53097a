//! The files of the dashboard, logins, and requests of the page and of other pages, through the router.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use forewarn_dashboard::ASSETS;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::super::tests::TestServer;
use super::super::{Access, HostNames, router};
use super::{OWN_PAGE_HEADER, SESSION_PATH};
use crate::scheme::Scheme;

/// One server behind a listener with TLS, for tokens, and behind its socket.
struct Place {
    tokens: Router,
    socket: Router,
}

/// A response.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

const HOST: (&str, &str) = ("host", "localhost:1339");
const MARK: (&str, &str) = (OWN_PAGE_HEADER, "1");

impl Place {
    fn new() -> Self {
        let server = TestServer::new(Access::Tokens);
        let serve = |access, scheme| router(server.shared.clone(), access, scheme, HostNames::default());
        Self {
            tokens: serve(Access::Tokens, Scheme::Https),
            socket: serve(Access::Open("socket"), Scheme::Http),
        }
    }

    async fn token(&self, name: &str, role: &str) -> String {
        let body = json!({ "name": name, "role": role }).to_string();
        let issued =
            send(&self.socket, "POST /v1/tokens", &[HOST, ("content-type", "application/json")], &body);
        issued.await.json()["text"].as_str().unwrap().to_owned()
    }

    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        send(&self.tokens, line, headers, body).await
    }

    /// Logs in; gives the cookie as a browser sends it.
    async fn log_in(&self, token: &str) -> String {
        let body = json!({ "token": token }).to_string();
        let answer = self.send(LOGIN, &[HOST, MARK], &body).await;
        assert_eq!(answer.status, StatusCode::OK);
        answer.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

const LOGIN: &str = "POST /session";
const CALLER: &str = "GET /v1/caller";

async fn send(router: &Router, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method.parse::<Method>().unwrap()).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let (head, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    Answer { status: head.status, headers: head.headers, body }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// promise: S1
#[tokio::test]
async fn every_file_is_sent_to_anyone_with_headers_that_allow_nothing_else() {
    let place = Place::new();
    for router in [&place.tokens, &place.socket] {
        for asset in ASSETS {
            let line = format!("GET {}", asset.path);
            let answer = send(router, &line, &[HOST], "").await;
            assert_eq!((answer.status, answer.body.as_slice()), (StatusCode::OK, asset.bytes), "{line}");
            assert_eq!(answer.headers[header::CONTENT_TYPE], asset.content_type, "{line}");
            let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "connect-src 'self'",
                "frame-ancestors 'none'",
                "base-uri 'none'",
                "form-action 'none'",
                "require-trusted-types-for 'script'",
            ] {
                assert!(policy.split("; ").any(|one| one == part), "{line}: {part} in {policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{line}");
            assert_eq!(answer.headers["referrer-policy"], "no-referrer", "{line}");
            assert_eq!(answer.headers["cross-origin-resource-policy"], "same-origin", "{line}");
            assert_eq!(answer.headers["cross-origin-opener-policy"], "same-origin", "{line}");
            assert!(!answer.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{line}");
        }
    }
}

#[tokio::test]
async fn a_known_file_is_not_sent_again() {
    let place = Place::new();
    for asset in ASSETS {
        let line = format!("GET {}", asset.path);
        let first = place.send(&line, &[HOST], "").await;
        let tag = first.headers[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!(first.headers[header::CACHE_CONTROL], "no-cache", "{line}");
        let again = place.send(&line, &[HOST, ("if-none-match", &tag)], "").await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{line}");
        assert_eq!(again.headers[header::ETAG], tag.as_str(), "{line}");
        assert!(again.headers.contains_key(header::CONTENT_SECURITY_POLICY), "{line}");
        let changed = place.send(&line, &[HOST, ("if-none-match", "\"older\"")], "").await;
        assert_eq!(changed.status, StatusCode::OK, "{line}");
        let head = place.send(&line.replace("GET", "HEAD"), &[HOST], "").await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0), "{line}");
        assert_eq!(head.headers[header::CONTENT_LENGTH], asset.bytes.len().to_string().as_str(), "{line}");
        assert_eq!(head.headers[header::ETAG], tag.as_str(), "{line}");
    }
}

#[tokio::test]
async fn a_file_is_read_and_nothing_else() {
    let place = Place::new();
    for line in ["POST /", "DELETE /dashboard/main.js", "PUT /"] {
        let answer = place.send(line, &[HOST], "").await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{line}");
    }
    let token = place.token("ci", "viewer").await;
    for path in ["/dashboard/", "/dashboard", "/dashboard/../v1", "/dashboard/%6dain.js", "/index.html", "//"]
    {
        let line = format!("GET {path}");
        assert_eq!(place.send(&line, &[HOST], "").await.status, StatusCode::UNAUTHORIZED, "{path}");
        let bearer = format!("Bearer {token}");
        let answer = place.send(&line, &[HOST, ("authorization", &bearer)], "").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
}

/// promise: S2
#[tokio::test]
async fn a_token_is_exchanged_for_a_cookie_that_scripts_cannot_read() {
    let place = Place::new();
    let token = place.token("ci", "viewer").await;
    let body = json!({ "token": format!(" {token}\n") }).to_string();
    let answer = place.send(LOGIN, &[HOST, MARK], &body).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!((&answer.json()["by"], &answer.json()["role"]), (&json!("token ci"), &json!("viewer")));
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    let parts: Vec<_> = cookie.split("; ").collect();
    assert!(parts[0].starts_with("forewarn_session_1339="), "{cookie}");
    assert_eq!(parts[1..], ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict", "Secure"]);
    assert!(!String::from_utf8(answer.body).unwrap().contains(&token));
    let plain = send(&place.socket, LOGIN, &[HOST, MARK], &body).await;
    assert!(!plain.headers[header::SET_COOKIE].to_str().unwrap().contains("Secure"), "no TLS, no Secure");
}

/// promise: S2
#[tokio::test]
async fn a_login_needs_a_token_and_the_header_of_the_page() {
    let place = Place::new();
    let token = place.token("ci", "viewer").await;
    let right = json!({ "token": token }).to_string();
    let wrong = json!({ "token": format!("{}0", &token[..token.len() - 1]) }).to_string();
    let wrong = if wrong == right { wrong.replace("0\"}", "1\"}") } else { wrong };
    let long = json!({ "token": "x".repeat(10_000) }).to_string();
    for (headers, body, status) in [
        (&[HOST][..], right.as_str(), StatusCode::FORBIDDEN),
        (&[HOST, MARK, ("origin", "http://evil.example")], &right, StatusCode::FORBIDDEN),
        (&[HOST, MARK, ("sec-fetch-site", "cross-site")], &right, StatusCode::FORBIDDEN),
        (&[("host", "evil.example"), MARK], &right, StatusCode::FORBIDDEN),
        (&[HOST, MARK], &wrong, StatusCode::UNAUTHORIZED),
        (&[HOST, MARK], r#"{"token":""}"#, StatusCode::UNAUTHORIZED),
        (&[HOST, MARK], r#"{"code":"x"}"#, StatusCode::BAD_REQUEST),
        (&[HOST, MARK], "", StatusCode::BAD_REQUEST),
        (&[HOST, MARK], &long, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let answer = place.send(LOGIN, headers, body).await;
        assert_eq!(answer.status, status, "{headers:?} {body}");
        assert!(!answer.headers.contains_key(header::SET_COOKIE), "{headers:?} {body}");
        assert!(!String::from_utf8(answer.body).unwrap().contains(&token), "{body}");
    }
    assert_eq!(
        place.send(&format!("GET {SESSION_PATH}"), &[HOST, MARK], "").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
}

/// promise: S1
#[tokio::test]
async fn a_cookie_counts_only_for_the_page_of_this_server() {
    let place = Place::new();
    let cookie = place.log_in(&place.token("ci", "viewer").await).await;
    let cookie = ("cookie", cookie.as_str());
    let own = ("sec-fetch-site", "same-origin");
    for headers in
        [&[HOST, MARK, cookie][..], &[HOST, MARK, cookie, own, ("origin", "https://localhost:1339")]]
    {
        let answer = place.send(CALLER, headers, "").await;
        assert_eq!(
            (answer.status, &answer.json()["by"]),
            (StatusCode::OK, &json!("token ci")),
            "{headers:?}"
        );
    }
    for (headers, status) in [
        (&[HOST, cookie][..], StatusCode::UNAUTHORIZED),
        (&[HOST, cookie, own], StatusCode::FORBIDDEN),
        (&[HOST, MARK], StatusCode::UNAUTHORIZED),
        (&[HOST, MARK, ("cookie", "forewarn_session_1339=0")], StatusCode::UNAUTHORIZED),
        (&[("host", "localhost:1340"), MARK, cookie], StatusCode::UNAUTHORIZED),
        (&[HOST, MARK, cookie, ("sec-fetch-site", "cross-site")], StatusCode::FORBIDDEN),
        (&[HOST, MARK, cookie, ("sec-fetch-site", "same-site")], StatusCode::FORBIDDEN),
        (&[HOST, MARK, cookie, ("origin", "https://localhost:1340")], StatusCode::FORBIDDEN),
        (&[HOST, MARK, cookie, ("origin", "null")], StatusCode::FORBIDDEN),
        (
            &[("host", "evil.example:1339"), MARK, cookie, ("origin", "https://evil.example:1339")],
            StatusCode::FORBIDDEN,
        ),
    ] {
        assert_eq!(place.send(CALLER, headers, "").await.status, status, "{headers:?}");
    }
}

/// promise: S1
#[tokio::test]
async fn a_page_of_another_site_gets_the_page_and_nothing_of_the_api() {
    let place = Place::new();
    for site in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(place.send("GET /", &[HOST, site], "").await.status, StatusCode::OK, "a link leads here");
        for router in [&place.tokens, &place.socket] {
            let form = ("content-type", "text/plain");
            for line in ["GET /v1/events", "POST /v1/commands", "GET /healthz", LOGIN, "DELETE /session"] {
                let answer = send(router, line, &[HOST, site, form], "{}").await;
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{line}");
            }
        }
        let rebound = place.send("GET /", &[("host", "evil.example"), site], "").await;
        assert_eq!(rebound.status, StatusCode::FORBIDDEN, "a foreign host name has no page");
    }
}

/// promise: S2
#[tokio::test]
async fn a_logout_ends_the_session_and_removes_the_cookie() {
    let place = Place::new();
    let token = place.token("ci", "viewer").await;
    let (one, other) = (place.log_in(&token).await, place.log_in(&token).await);
    let without_mark = place.send("DELETE /session", &[HOST, ("cookie", &one)], "").await;
    assert_eq!(without_mark.status, StatusCode::FORBIDDEN);
    let answer = place.send("DELETE /session", &[HOST, MARK, ("cookie", &one)], "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("forewarn_session_1339=; ") && cookie.contains("Max-Age=0"), "{cookie}");
    let status = async |cookie: &str| place.send(CALLER, &[HOST, MARK, ("cookie", cookie)], "").await.status;
    assert_eq!((status(&one).await, status(&other).await), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    let again = place.send("DELETE /session", &[HOST, MARK, ("cookie", &one)], "").await;
    assert_eq!(again.status, StatusCode::NO_CONTENT, "safe to repeat");
}

/// promise: S2
#[tokio::test]
async fn a_session_may_do_what_its_token_may_and_ends_with_it() {
    let place = Place::new();
    let cookie = place.log_in(&place.token("reader", "viewer").await).await;
    let headers = [HOST, MARK, ("cookie", cookie.as_str()), ("content-type", "application/json")];
    assert_eq!(place.send("GET /v1/events", &headers, "").await.status, StatusCode::OK);
    let brake = r#"{"command":"brake_on"}"#;
    assert_eq!(place.send("POST /v1/commands", &headers, brake).await.status, StatusCode::FORBIDDEN);
    assert_eq!(place.send("GET /v1/tokens", &headers, "").await.status, StatusCode::FORBIDDEN);
    let revoked = send(&place.socket, "DELETE /v1/tokens/reader", &[HOST], "").await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(place.send("GET /v1/events", &headers, "").await.status, StatusCode::UNAUTHORIZED);
}
