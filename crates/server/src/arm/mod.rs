//! Azure Resource Manager: so that `az` and the SDKs drive the fleet.
//!
//! ```text
//!   https listener ─┐
//!                   ├─▶ gate (who) ─▶ Call (what) ─▶ serve: by the segments of the path ─▶ handlers
//!   operator door ──┘                                      │
//!                                                          └─▶ Engine::arrange: commands, rows and an operation in one commit
//! ```
//!
//! Shapes and rules of bodies are [`forewarn_azure`]; here are the routes, and what is asked of the engine.

mod acknowledge;
mod answer;
mod call;
pub(crate) mod compute;
#[cfg(test)]
mod condition_tests;
mod deployments;
mod discovery;
mod door;
mod entrance;
mod free;
mod groups;
mod identity;
mod kept;
mod kept_list;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod list_tests;
mod lookups;
#[cfg(test)]
mod operation_tests;
mod operations;
#[cfg(test)]
mod permit_tests;
mod place;
#[cfg(test)]
mod place_tests;
mod refusal;
mod refusals;
mod resources;
mod signing;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_azure::ArmError;
use forewarn_control::resource_id::GroupId;
use forewarn_imds::Moment;

use crate::engine::Engine;
pub(crate) use call::{Call, Scheme};
use compute::{Kind, Visit};
pub(crate) use door::Door;
pub(crate) use entrance::Entrance;
pub use entrance::{ArmPlan, Credentials};
pub(crate) use free::is_path;
pub(crate) use place::group_here;
use refusals::Attempt;
pub(crate) use refusals::Refusals;

/// What every handler needs.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) engine: Engine,
    /// How clients reach the door through which this is seen.
    pub(crate) scheme: Scheme,
    /// The directory that every subscription is in.
    pub(crate) directory: Arc<str>,
}

impl Arm {
    /// What is seen through a door that is reached in this way.
    pub(crate) fn new(engine: &Engine, scheme: Scheme, directory: &str) -> Self {
        Self { engine: engine.clone(), scheme, directory: directory.into() }
    }
}

/// Answers whoever has come through a door.
async fn respond(State(arm): State<Arm>, request: Request) -> Response {
    let asked = request.headers().get("x-ms-client-request-id").cloned();
    let answered = match Call::read(request, arm.scheme).await {
        Ok(call) => {
            let attempt = Attempt::of(&call);
            let answered = serve(&arm, call).await;
            if let (Err(refused), Some(attempt)) = (&answered, attempt) {
                let at = Moment(arm.engine.clock().now().wall);
                arm.engine.refusals().remember(attempt, refused, at);
            }
            answered
        }
        Err(refused) => Err(refused),
    };
    let mut response = answered.unwrap_or_else(|refused| show(&refused));
    let id = HeaderValue::from_str(&request_id()).unwrap_or_else(|_| HeaderValue::from_static(""));
    let headers = response.headers_mut();
    headers.insert("x-ms-request-id", id.clone());
    headers.insert("x-ms-correlation-request-id", id);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Some(asked) = asked {
        headers.insert("x-ms-client-request-id", asked);
    }
    response
}

/// Finds who answers a request.
pub(crate) async fn serve(arm: &Arm, call: Call) -> Result<Response, ArmError> {
    let lower = call.lower_path();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let is_get = call.method == Method::GET;
    match lower.as_slice() {
        ["tenants"] if is_get => subscriptions::directories(arm, &call),
        ["subscriptions"] if is_get => subscriptions::list(arm, &call).await,
        ["subscriptions", _] if is_get => subscriptions::one(arm, &call, &call.path[1]).await,
        ["subscriptions", _, "locations"] if is_get => {
            subscriptions::locations(arm, &call, &call.path[1]).await
        }
        ["subscriptions", _, "resourcegroups"] if is_get => groups::list(arm, &call, &call.path[1]).await,
        ["subscriptions", _, "operationresults", name] => operations::result(arm, &call, name).await,
        ["subscriptions", _, "providers", "microsoft.compute", "locations", _, "operations", name] => {
            operations::show(arm, &call, name).await
        }
        ["subscriptions", _, "providers", "microsoft.compute", "locations", _, ..] if is_get => {
            lookups::in_location(arm, &call, &call.path[5], &call.path[6..]).await
        }
        ["subscriptions", _, "providers", "microsoft.compute", "skus"] if is_get => {
            lookups::skus(arm, &call).await
        }
        ["subscriptions", _, "providers", namespace, kind] if is_get => {
            in_subscription(arm, &call, namespace, kind).await
        }
        ["subscriptions", _, "providers", ..] => lookups::providers(arm, &call, &call.path[3..]).await,
        ["subscriptions", _, "resources"] if is_get => {
            subscriptions::check(arm, &call, &call.path[1]).await?;
            resources::list(&call, None, engines_of(arm, &call).await?).await
        }
        ["subscriptions", _, "resourcegroups", _, "resources"] if is_get => {
            let (group, engine) = arm.group(&call, (&call.path[1], &call.path[3])).await?;
            resources::list(&call, Some(group.id), vec![engine]).await
        }
        ["subscriptions", _, "resourcegroups", _] => {
            let id = GroupId { subscription: call.path[1].clone(), name: call.path[3].clone() };
            groups::one(arm, &call, id).await
        }
        ["subscriptions", _, "resourcegroups", _, "providers", ..] => in_group(arm, &call).await,
        // Clients also leave out whose deployments they are.
        ["subscriptions", _, "resourcegroups", _, "deployments", ..] => {
            let (group, engine) = arm.group(&call, (&call.path[1], &call.path[3])).await?;
            call.version()?;
            deployments::serve(&Visit { call: &call, group, engine }, &call.path[5..]).await
        }
        _ => Err(nothing_here(&call)),
    }
}

/// All resources of a type in a subscription.
async fn in_subscription(arm: &Arm, call: &Call, namespace: &str, kind: &str) -> Result<Response, ArmError> {
    if let Some(kind) = compute::Kind::of(&format!("{namespace}/{kind}")) {
        subscriptions::check(arm, call, &call.path[1]).await?;
        return compute::list_all(call, kind, engines_of(arm, call).await?).await;
    }
    if kept::is_kept(namespace, kind) {
        return kept_list::in_subscription(arm, call, namespace, kind).await;
    }
    Err(unsupported(call))
}

/// What is asked about something in a resource group.
async fn in_group(arm: &Arm, call: &Call) -> Result<Response, ArmError> {
    let (group, engine) = arm.group(call, (&call.path[1], &call.path[3])).await?;
    call.version()?;
    let visit = Visit { call, group, engine };
    if call.is(5, "Microsoft.Resources") && call.is(6, "deployments") {
        return deployments::serve(&visit, &call.path[7..]).await;
    }
    if call.path.len() > 6 && kept::is_kept(&call.path[5], &call.path[6]) {
        return kept::serve(&visit, &call.path[5..]).await;
    }
    if !call.is(5, "Microsoft.Compute") {
        return Err(unsupported(call));
    }
    if call.is(8, "providers") && call.is(9, "Microsoft.Maintenance") && call.is(10, "scheduledevents") {
        let kind = Kind::of(&format!("Microsoft.Compute/{}", call.path[6]));
        let kind = kind.ok_or_else(|| unsupported(call))?;
        return acknowledge::serve(&visit, (kind, &call.path[7]), &call.path[11..]).await;
    }
    compute::serve(&visit, &call.path[6..]).await
}

/// The clusters of a subscription that whoever asks may see.
async fn engines_of(arm: &Arm, call: &Call) -> Result<Vec<Engine>, ArmError> {
    let (wanted, permit) = (call.path[1].clone(), std::sync::Arc::clone(&call.permit));
    let look = move |state: &crate::engine::State<'_>| {
        place::clusters_of(state, &permit, &wanted).map(|(id, _)| id).collect::<Vec<_>>()
    };
    let clusters = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    Ok(clusters.into_iter().map(|cluster| arm.engine.of(cluster)).collect())
}

/// Something that real ARM has and this server has not.
pub(crate) fn unsupported(call: &Call) -> ArmError {
    let what = format!("{} /{}", call.method, call.path.join("/"));
    let message = format!(
        "Forewarn does not do this: '{what}'. It is about the life of machines, and nothing besides."
    );
    ArmError::new(400, "OperationNotSupported", message)
}

/// JSON as it is kept.
pub(crate) fn written(value: &serde_json::Value) -> forewarn_control::shared::Body {
    forewarn_control::shared::Body(value.to_string().into_bytes().into())
}

/// Nothing answers to that path.
pub(crate) fn nothing_here(call: &Call) -> ArmError {
    let message = format!("No resource or action is at '{} /{}'.", call.method, call.path.join("/"));
    ArmError::new(404, "NotFound", message)
}

/// A refusal as clients read it.
pub(crate) fn show(refused: &ArmError) -> Response {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(refused.body())).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::NO_CONTENT {
        *response.body_mut() = Body::empty();
    }
    response
}

/// A number by which this request could be called.
fn request_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("00000000-0000-0000-{:04x}-{:012x}", number >> 48, number & 0xffff_ffff_ffff)
}
