//! Every refusal is a problem document: those that the web framework writes are made ones here.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::fault::Fault;
use super::wording::plain;

/// Bytes that are read of what a refusal says.
const SAID_BYTES_MAX: usize = 16 * 1024;

/// How the framework begins, and how this API does.
const BEGINNINGS: [(&str, &str); 4] = [
    ("Failed to deserialize query string: ", "the query is not understood: "),
    ("Failed to deserialize path parameters: ", "the path is not understood: "),
    ("Invalid URL: ", "the path is not understood: "),
    ("Failed to buffer the request body: ", "the body cannot be read: "),
];

/// The same answer; if it is a refusal, as a problem document.
pub(super) async fn documented(response: Response) -> Response {
    let status = response.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !is_refusal || kind == Some(Fault::CONTENT_TYPE.as_bytes()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let mut problem = Fault::of_status(parts.status, said(body).await).into_response();
    // What else it says, such as which methods there are, is still true.
    for (name, value) in &parts.headers {
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) {
            problem.headers_mut().append(name, value.clone());
        }
    }
    problem
}

async fn said(body: Body) -> String {
    let bytes = to_bytes(body, SAID_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let known = BEGINNINGS.iter().find_map(|(theirs, ours)| Some((text.strip_prefix(theirs)?, ours)));
    match known {
        Some((rest, ours)) => format!("{ours}{}", plain(rest)),
        None if text.is_empty() => "this cannot be answered".to_owned(),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    async fn detail(response: Response) -> (StatusCode, String) {
        let response = documented(response).await;
        let (status, kind) = (response.status(), response.headers()[header::CONTENT_TYPE].clone());
        assert_eq!(kind, Fault::CONTENT_TYPE);
        let bytes = to_bytes(response.into_body(), SAID_BYTES_MAX).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(problem["status"], status.as_u16());
        (status, problem["detail"].as_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_refusal_of_the_framework_becomes_a_problem_document() {
        let too_long =
            (StatusCode::PAYLOAD_TOO_LARGE, "Failed to buffer the request body: length limit exceeded");
        let expected = "the body cannot be read: length limit exceeded".to_owned();
        assert_eq!(detail(too_long.into_response()).await, (StatusCode::PAYLOAD_TOO_LARGE, expected));
        let empty = detail(StatusCode::INTERNAL_SERVER_ERROR.into_response()).await;
        assert_eq!(empty.1, "this cannot be answered");
    }

    #[tokio::test]
    async fn problem_documents_and_successes_stay_as_they_are() {
        assert_eq!(detail(Fault::bad("why").into_response()).await.1, "why");
        let fine = documented("ok".into_response()).await;
        assert_eq!(to_bytes(fine.into_body(), SAID_BYTES_MAX).await.unwrap(), "ok");
    }
}
