//! The files of the dashboard, with headers that allow nothing from other hosts.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use forewarn_dashboard::{ASSETS, Asset};

use super::super::tagged::{Tags, tag_of};

/// The page may load its own files and send requests to its own server, and nothing else. No other page may show it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // A browser asks each time, and gets a 304 until the program is another.
    (header::CACHE_CONTROL, "no-cache"),
];

/// Tags of all files, computed once.
static TAGS: LazyLock<HashMap<&'static str, String>> =
    LazyLock::new(|| ASSETS.iter().map(|asset| (asset.path, tag_of(asset.bytes))).collect());

/// Returns true for the path of a file, which anyone may read.
pub(in super::super) fn is_file(path: &str) -> bool {
    ASSETS.iter().any(|asset| asset.path == path)
}

/// Routes of all files.
pub(in super::super) fn routes<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    let add = |router: Router<S>, asset: &'static Asset| {
        router.route(asset.path, get(move |request: Request| async move { send(asset, &request) }))
    };
    ASSETS.iter().fold(router, add)
}

fn send(asset: &'static Asset, request: &Request) -> Response {
    let tag = TAGS.get(asset.path).map_or("", String::as_str);
    let known = request.headers().get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| Tags::new(known.to_owned()).fits(tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, asset.content_type)], asset.bytes).into_response()
    };
    let headers = response.headers_mut();
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
