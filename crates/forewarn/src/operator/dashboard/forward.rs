//! Requests to the server: each on a connection of its own. Bodies of both directions flow through, piece by piece.

use anyhow::{Context, Result};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_NONE_MATCH, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::client::Client;

/// Header fields of the browser that the server gets. All others belong to the proxy: cookies, origins, credentials.
const REQUEST_HEADERS: [HeaderName; 6] = [
    ACCEPT,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
];

/// Header fields of the server that the browser does not get: those of the connection, and those of a login.
const RESPONSE_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    WWW_AUTHENTICATE,
];

/// The credentials that a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// The token of the context.
    Token,
    /// None: for files that anyone may read.
    Nothing,
}

/// Sends a request of the browser to the server. Returns the response when its head has arrived.
pub(super) async fn forward(
    client: &Client,
    request: Request<Incoming>,
    credentials: Credentials,
) -> Result<Response<Incoming>> {
    let (Parts { method, uri, headers, .. }, body) = request.into_parts();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut outgoing = Request::builder().method(method).uri(target).body(body)?;
    *outgoing.headers_mut() = request_headers(client, &headers, credentials)?;
    let stream = client.connect().await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Errors of the connection surface in the response.
    tokio::spawn(async move { drop(connection.await) });
    let mut response = sender.send_request(outgoing).await.context("lost the connection to the server")?;
    for name in RESPONSE_HEADERS {
        response.headers_mut().remove(name);
    }
    Ok(response)
}

fn request_headers(client: &Client, headers: &HeaderMap, credentials: Credentials) -> Result<HeaderMap> {
    let mut outgoing = HeaderMap::new();
    for name in REQUEST_HEADERS {
        for value in headers.get_all(&name) {
            outgoing.append(&name, value.clone());
        }
    }
    outgoing.insert(HOST, HeaderValue::from_str(client.host_header())?);
    match (credentials, client.authorization()?) {
        (Credentials::Token, Some(token)) => drop(outgoing.insert(AUTHORIZATION, token)),
        (Credentials::Token, None) | (Credentials::Nothing, _) => {}
    }
    Ok(outgoing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_gets_the_token_and_nothing_that_is_for_the_proxy() {
        let client = Client::new("http://10.0.0.1:1339").unwrap().with_token(Some("fwt_1".to_owned()));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "127.0.0.1:5"),
            ("cookie", "forewarn_dashboard_5=secret"),
            ("origin", "http://127.0.0.1:5"),
            ("sec-fetch-site", "same-origin"),
            ("forewarn-dashboard", "1"),
            ("authorization", "Bearer of the browser"),
            ("x-forwarded-for", "10.0.0.9"),
            ("connection", "keep-alive, upgrade"),
            ("idempotency-key", "k"),
            ("last-event-id", "7"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let sent = request_headers(&client, &headers, Credentials::Token).unwrap();
        let mut sent: Vec<_> =
            sent.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        sent.sort_unstable();
        let expected = [
            ("authorization", "Bearer fwt_1"),
            ("host", "10.0.0.1:1339"),
            ("idempotency-key", "k"),
            ("last-event-id", "7"),
        ];
        assert_eq!(sent, expected);
        let public = request_headers(&client, &headers, Credentials::Nothing).unwrap();
        assert!(!public.contains_key(AUTHORIZATION));
    }
}
