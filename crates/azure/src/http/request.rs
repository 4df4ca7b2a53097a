//! A request as the handlers read it.

use forewarn_url::percent;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Query;
use axum::http::{HeaderMap, Method, Request, header};
use forewarn_control::Permit;
use forewarn_server::Scheme;
use serde_json::Value;

use crate::{ApiVersion, ArmError, BODY_BYTES_MAX, read_body};

/// A request that has passed authentication.
#[derive(Clone, Debug)]
pub(crate) struct ArmRequest {
    pub(crate) method: Method,
    /// Segments of the path as sent, without empty ones: clients double slashes.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    /// Path and query as sent.
    target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// URL of this server in the request: `https://HOST:PORT`.
    pub(crate) base: String,
    pub(crate) permit: Arc<Permit>,
}

/// Query parameter with the start of a page.
const SKIP_TOKEN: &str = "$skiptoken";

/// Segments of one path.
const SEGMENTS_MAX: usize = 32;

impl ArmRequest {
    pub(super) async fn read(request: Request<Body>, scheme: Scheme) -> Result<Self, ArmError> {
        let (parts, body) = request.into_parts();
        let too_long = |_| {
            let most = BODY_BYTES_MAX >> 20;
            ArmError::new(413, "RequestEntityTooLarge", format!("a request has at most {most} MiB"))
        };
        let body = to_bytes(body, BODY_BYTES_MAX).await.map_err(too_long)?;
        let permit = parts.extensions.get::<Arc<Permit>>().cloned().ok_or_else(unauthenticated)?;
        let Query(query) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|problem| ArmError::new(400, "BadRequest", problem.body_text()))?;
        let path = segments(parts.uri.path())?;
        let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.or(parts.uri.authority().map(axum::http::uri::Authority::as_str));
        let scheme = match scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let base = format!("{scheme}://{}", host.unwrap_or_default());
        let target = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Ok(Self { method: parts.method, path, query, target, headers: parts.headers, body, base, permit })
    }

    pub(crate) fn version(&self) -> Result<ApiVersion, ArmError> {
        let Some(text) = self.parameter("api-version").filter(|text| !text.is_empty()) else {
            return Err(ArmError::new(
                400,
                "MissingApiVersionParameter",
                "The api-version query parameter (?api-version=) is required for all requests.",
            ));
        };
        let version = ApiVersion::parse(text).ok().filter(|version| *version >= ApiVersion::FIRST);
        version.ok_or_else(|| {
            let message =
                format!("The api-version '{text}' is invalid: it is a date from {} on.", ApiVersion::FIRST);
            ArmError::new(400, "InvalidApiVersionParameter", message)
        })
    }

    /// URL of the same request.
    pub(crate) fn again(&self) -> String {
        format!("{}{}", self.base, self.target)
    }

    /// URL of the next page of a list.
    pub(crate) fn next_page(&self, token: &str) -> String {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let is_token = |pair: &&str| {
            let name = pair.split('=').next().and_then(decoded);
            name.is_some_and(|name| name.eq_ignore_ascii_case(SKIP_TOKEN))
        };
        let others = query.split('&').filter(|pair| !pair.is_empty() && !is_token(pair));
        let token = format!("{SKIP_TOKEN}={}", encoded(token));
        let query: Vec<_> = others.chain([token.as_str()]).collect();
        format!("{}{path}?{}", self.base, query.join("&"))
    }

    /// Start of the requested page; none for the first.
    pub(crate) fn page(&self) -> Option<&str> {
        self.parameter(SKIP_TOKEN)
    }

    /// Value of a query parameter; the case of its name makes no difference.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A segment of the path is that word, in any case.
    pub(crate) fn is(&self, position: usize, word: &str) -> bool {
        self.path.get(position).is_some_and(|segment| segment.eq_ignore_ascii_case(word))
    }

    /// Segments of the path in lower case.
    pub(crate) fn lower_path(&self) -> Vec<String> {
        self.path.iter().map(|segment| segment.to_lowercase()).collect()
    }

    /// The text of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as JSON; an empty one is an empty object.
    pub(crate) fn json(&self) -> Result<Value, ArmError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        let value = read_body(&self.body)?;
        if value.is_object() {
            return Ok(value);
        }
        Err(ArmError::new(400, "InvalidRequestContent", "The request content is not a JSON object."))
    }
}

/// The request carries no permit.
pub(super) fn unauthenticated() -> ArmError {
    ArmError::new(
        401,
        "AuthenticationFailed",
        "Authentication failed. The 'Authorization' header is missing.",
    )
}

fn segments(path: &str) -> Result<Vec<String>, ArmError> {
    let bad = |what: &str| ArmError::new(400, "InvalidRequestUri", format!("The path {what}."));
    let mut segments = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        if segments.len() == SEGMENTS_MAX {
            return Err(bad("has too many segments"));
        }
        segments.push(decoded(segment).ok_or_else(|| bad("is not UTF-8, percent-encoded"))?);
    }
    Ok(segments)
}

fn decoded(segment: &str) -> Option<String> {
    let bytes = percent::decode(segment)?.into_owned();
    let text = String::from_utf8(bytes).ok()?;
    // Names are shown in terminals.
    (!text.contains('/') && !text.chars().any(char::is_control)).then_some(text)
}

/// Percent-encodes a text for a URL; slashes stay.
pub(super) fn encoded(text: &str) -> String {
    percent::encode_path(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_that_are_doubled_or_trail_make_no_difference() {
        let read = |path: &str| segments(path).map(|segments| segments.join("|"));
        assert_eq!(read("/a//b/"), Ok("a|b".to_owned()));
        assert_eq!(read("/my%20group/%C3%A9"), Ok("my group|é".to_owned()));
        for bad in ["/%", "/%2", "/%zz", "/a%2Fb", "/%ff", "/%0a", &"/x".repeat(SEGMENTS_MAX + 1)] {
            assert_eq!(read(bad).unwrap_err().code, "InvalidRequestUri", "{bad}");
        }
    }

    async fn call(target: &str) -> ArmRequest {
        let request = Request::builder().uri(target).header("host", "h:1");
        let request = request.extension(Arc::new(Permit::unlimited("anyone")));
        ArmRequest::read(request.body(Body::empty()).unwrap(), Scheme::Https).await.unwrap()
    }

    /// promise: Z1
    #[tokio::test]
    async fn the_url_of_a_request_is_repeated_exactly() {
        let call = call("//a/b%20c/%C3%A9?x=1%262&%24SkipToken=old&$filter=a+b%23&y").await;
        assert_eq!(call.again(), "https://h:1//a/b%20c/%C3%A9?x=1%262&%24SkipToken=old&$filter=a+b%23&y");
        let next = call.next_page("/a b/&#é%");
        assert_eq!(
            next,
            "https://h:1//a/b%20c/%C3%A9?x=1%262&$filter=a+b%23&y&$skiptoken=/a%20b/%26%23%C3%A9%25"
        );
        let next = self::call(next.strip_prefix("https://h:1").unwrap()).await;
        assert_eq!((next.page(), next.path.join("|")), (Some("/a b/&#é%"), "a|b c|é".to_owned()));
        assert_eq!(self::call("/a").await.next_page("7"), "https://h:1/a?$skiptoken=7");
    }
}
