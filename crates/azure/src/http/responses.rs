//! Responses: bodies, and the headers with the address of an operation.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::resources::Operation;
use serde_json::{Map, Value};

use super::request::{ArmRequest, encoded};

/// Seconds until a client polls again. Without the header, clients wait for half a minute.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");

/// Path of operations; the location in it has no meaning.
const OPERATIONS: &str = "providers/Microsoft.Compute/locations/local/operations";

/// 200 with a body.
pub(crate) fn ok(body: Value) -> Response {
    Json(body).into_response()
}

/// 200 with a list that has no further page.
pub(crate) fn list(items: Vec<Value>) -> Response {
    let mut body = Map::new();
    body.insert("value".to_owned(), Value::Array(items));
    ok(Value::Object(body))
}

pub(crate) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// The resource of a PUT, and the address of its operation. Without `Location`: clients would read the resource there.
pub(crate) fn put(
    request: &ArmRequest,
    subscription: &str,
    status: StatusCode,
    body: Value,
    operation: &Operation,
) -> Response {
    let mut response = (status, Json(body)).into_response();
    let address = address(request, subscription, operation);
    insert(&mut response, ASYNC_OPERATION, &address);
    insert(&mut response, HeaderName::from_static("azure-asyncnotification"), "Enabled");
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// 202 with the address of the operation.
pub(crate) fn accepted(request: &ArmRequest, subscription: &str, operation: &Operation) -> Response {
    let mut response = StatusCode::ACCEPTED.into_response();
    let address = address(request, subscription, operation);
    insert(&mut response, ASYNC_OPERATION, &address);
    insert(&mut response, header::LOCATION, &format!("{address}&monitor=true"));
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// 202 with the address to poll.
pub(crate) fn ask_again(location: &str) -> Response {
    let mut response = StatusCode::ACCEPTED.into_response();
    insert(&mut response, header::LOCATION, location);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// Adds `Retry-After`.
pub(crate) fn later(mut response: Response) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// Address of an operation, with the host name of the client's request. `c` is the number of its cluster.
fn address(request: &ArmRequest, subscription: &str, operation: &Operation) -> String {
    let version = encoded(request.parameter("api-version").unwrap_or("2022-11-01"));
    let (base, subscription) = (&request.base, encoded(subscription));
    let (name, cluster) = (&operation.name, operation.cluster.0);
    format!("{base}/subscriptions/{subscription}/{OPERATIONS}/{name}?api-version={version}&c={cluster}")
}

fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
