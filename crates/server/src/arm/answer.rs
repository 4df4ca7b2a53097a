//! Answers: bodies, and where to ask how an operation goes.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::shared::Operation;
use serde_json::{Map, Value};

use super::call::{Call, encoded};

/// How long a client waits before it asks again, in seconds. With less, or nothing, it waits for half a minute.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

const ASYNC_OPERATION: HeaderName = HeaderName::from_static("azure-asyncoperation");

/// Where operations are asked for; the place is part of the address, and means nothing.
const OPERATIONS: &str = "providers/Microsoft.Compute/locations/local/operations";

/// A body.
pub(crate) fn ok(body: Value) -> Response {
    Json(body).into_response()
}

/// A list, all of it.
pub(crate) fn list(items: Vec<Value>) -> Response {
    let mut body = Map::new();
    body.insert("value".to_owned(), Value::Array(items));
    ok(Value::Object(body))
}

/// There is nothing, or nothing to say.
pub(crate) fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// What was put, and where to ask when it is there. There is no `Location`: clients would take its answer for the resource.
pub(crate) fn put(
    call: &Call,
    subscription: &str,
    status: StatusCode,
    body: Value,
    operation: &Operation,
) -> Response {
    let mut response = (status, Json(body)).into_response();
    let address = address(call, subscription, operation);
    insert(&mut response, ASYNC_OPERATION, &address);
    insert(&mut response, HeaderName::from_static("azure-asyncnotification"), "Enabled");
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// An action is under way, and where to ask for it.
pub(crate) fn accepted(call: &Call, subscription: &str, operation: &Operation) -> Response {
    let mut response = StatusCode::ACCEPTED.into_response();
    let address = address(call, subscription, operation);
    insert(&mut response, ASYNC_OPERATION, &address);
    insert(&mut response, header::LOCATION, &format!("{address}&monitor=true"));
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// Something is still under way: ask again, there.
pub(crate) fn ask_again(location: &str) -> Response {
    let mut response = StatusCode::ACCEPTED.into_response();
    insert(&mut response, header::LOCATION, location);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// The same answer, with when to ask again.
pub(crate) fn later(mut response: Response) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

/// It is made of what the client asked: it may know this server by another name than others.
fn address(call: &Call, subscription: &str, operation: &Operation) -> String {
    let version = call.parameter("api-version").unwrap_or("2022-11-01");
    let (base, name, subscription) = (&call.base, &operation.name, encoded(subscription));
    format!("{base}/subscriptions/{subscription}/{OPERATIONS}/{name}?api-version={}", encoded(version))
}

fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
