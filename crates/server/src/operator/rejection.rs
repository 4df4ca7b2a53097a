//! Converts error responses of the web framework to problem documents.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::decode_errors::plain;
use super::problem::ApiProblem;

/// Maximum bytes of the framework's message.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Prefixes of the framework's messages, and their replacements.
const PREFIXES: [(&str, &str); 4] = [
    ("Failed to deserialize query string: ", "invalid query: "),
    ("Failed to deserialize path parameters: ", "invalid path: "),
    ("Invalid URL: ", "invalid path: "),
    ("Failed to buffer the request body: ", "cannot read the body: "),
];

/// Returns successes unchanged, and errors as problem documents.
pub(super) async fn documented(response: Response) -> Response {
    let status = response.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !is_refusal || kind == Some(ApiProblem::CONTENT_TYPE.as_bytes()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let mut problem = ApiProblem::of_status(parts.status, message(body).await).into_response();
    // Other headers, such as `Allow`, are kept.
    for (name, value) in &parts.headers {
        if ![header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) {
            problem.headers_mut().append(name, value.clone());
        }
    }
    problem
}

async fn message(body: Body) -> String {
    let bytes = to_bytes(body, MESSAGE_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let known = PREFIXES.iter().find_map(|(theirs, ours)| Some((text.strip_prefix(theirs)?, ours)));
    match known {
        Some((rest, ours)) => format!("{ours}{}", plain(rest)),
        None if text.is_empty() => "internal error".to_owned(),
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
        assert_eq!(kind, ApiProblem::CONTENT_TYPE);
        let bytes = to_bytes(response.into_body(), MESSAGE_BYTES_MAX).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(problem["status"], status.as_u16());
        (status, problem["detail"].as_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn a_refusal_of_the_framework_becomes_a_problem_document() {
        let too_long =
            (StatusCode::PAYLOAD_TOO_LARGE, "Failed to buffer the request body: length limit exceeded");
        let expected = "cannot read the body: length limit exceeded".to_owned();
        assert_eq!(detail(too_long.into_response()).await, (StatusCode::PAYLOAD_TOO_LARGE, expected));
        let empty = detail(StatusCode::INTERNAL_SERVER_ERROR.into_response()).await;
        assert_eq!(empty.1, "internal error");
    }

    #[tokio::test]
    async fn problem_documents_and_successes_stay_as_they_are() {
        assert_eq!(detail(ApiProblem::bad("why").into_response()).await.1, "why");
        let fine = documented("ok".into_response()).await;
        assert_eq!(to_bytes(fine.into_body(), MESSAGE_BYTES_MAX).await.unwrap(), "ok");
    }
}
