//! The HTTP API of Azure Resource Manager, for `az` and the Azure SDKs.
//!
//! ```text
//!   own listener ──────┐
//!                      ├─▶ auth: permit ─▶ ArmRequest ─▶ serve: by the segments of the path ─▶ handlers
//!   operator listener ─┘                                     │
//!                                                            └─▶ ControlHandle::transact: commands, entries and
//!                                                                an operation in one commit
//! ```

mod acknowledge;
mod auth;
mod catalogs;
mod compute;
mod deployments;
mod discovery;
mod errors;
mod extension;
mod groups;
mod login;
mod opaque_resources;
mod operations;
mod page;
mod public_routes;
mod rejections;
mod request;
mod resources;
mod responses;
mod scopes;
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
use forewarn_control::ClusterId;
use forewarn_control::resource_id::GroupId;
use forewarn_control::resources::Body as StoredBody;
use forewarn_server::{ControlHandle, Scheme, State as ClusterState};
use forewarn_types::Moment;

use crate::ArmError;
use compute::{ComputeKind, GroupScope};
pub use extension::{ArmPlan, LISTENER};
pub use login::Credentials;
use rejections::ChangeAttempt;
use request::ArmRequest;

/// Facts that every handler needs.
#[derive(Clone, Debug)]
pub(crate) struct ArmContext {
    pub(crate) control: ControlHandle,
    /// Scheme of the listener's URL.
    pub(crate) scheme: Scheme,
    /// Directory of every subscription.
    pub(crate) directory: Arc<str>,
}

impl ArmContext {
    /// The context of a listener.
    pub(crate) fn new(control: &ControlHandle, scheme: Scheme, directory: &str) -> Self {
        Self { control: control.clone(), scheme, directory: directory.into() }
    }
}

/// Answers a request that has passed authentication.
async fn respond(State(context): State<ArmContext>, request: Request) -> Response {
    let client_request_id = request.headers().get("x-ms-client-request-id").cloned();
    let answered = match ArmRequest::read(request, context.scheme).await {
        Ok(request) => {
            let attempt = ChangeAttempt::of(&request);
            let answered = serve(&context, request).await;
            if let (Err(refused), Some(attempt)) = (&answered, attempt) {
                let at = Moment(context.control.clock().now().wall);
                attempt.remember(context.control.rejections(), refused, at);
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
    if let Some(client_request_id) = client_request_id {
        headers.insert("x-ms-client-request-id", client_request_id);
    }
    response
}

/// Dispatches a request by its path.
pub(crate) async fn serve(context: &ArmContext, request: ArmRequest) -> Result<Response, ArmError> {
    let lower = request.lower_path();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let is_get = request.method == Method::GET;
    match lower.as_slice() {
        ["tenants"] if is_get => subscriptions::directories(context, &request),
        ["subscriptions"] if is_get => subscriptions::list(context, &request).await,
        ["subscriptions", _] if is_get => subscriptions::one(context, &request, &request.path[1]).await,
        ["subscriptions", _, "locations"] if is_get => {
            subscriptions::locations(context, &request, &request.path[1]).await
        }
        ["subscriptions", _, "resourcegroups"] if is_get => {
            groups::list(context, &request, &request.path[1]).await
        }
        ["subscriptions", _, "operationresults", name] => operations::result(context, &request, name).await,
        ["subscriptions", _, "providers", "microsoft.compute", "locations", _, "operations", name] => {
            operations::show(context, &request, name).await
        }
        ["subscriptions", _, "providers", "microsoft.compute", "locations", _, ..] if is_get => {
            catalogs::in_location(context, &request, &request.path[5], &request.path[6..]).await
        }
        ["subscriptions", _, "providers", "microsoft.compute", "skus"] if is_get => {
            catalogs::skus(context, &request).await
        }
        ["subscriptions", _, "providers", namespace, kind] if is_get => {
            in_subscription(context, &request, namespace, kind).await
        }
        ["subscriptions", _, "providers", ..] => {
            catalogs::providers(context, &request, &request.path[3..]).await
        }
        ["subscriptions", _, "resources"] if is_get => {
            subscriptions::check(context, &request, &request.path[1]).await?;
            resources::list(&request, None, control_handles_of(context, &request).await?).await
        }
        ["subscriptions", _, "resourcegroups", _, "resources"] if is_get => {
            let (group, control) = context.group(&request, (&request.path[1], &request.path[3])).await?;
            resources::list(&request, Some(group.id), vec![(group.cluster, control)]).await
        }
        ["subscriptions", _, "resourcegroups", _] => {
            let id = GroupId { subscription: request.path[1].clone(), name: request.path[3].clone() };
            groups::one(context, &request, id).await
        }
        ["subscriptions", _, "resourcegroups", _, "providers", ..] => in_group(context, &request).await,
        // Clients also leave out the provider.
        ["subscriptions", _, "resourcegroups", _, "deployments", ..] => {
            let (group, control) = context.group(&request, (&request.path[1], &request.path[3])).await?;
            request.version()?;
            deployments::serve(&GroupScope { request: &request, group, control }, &request.path[5..]).await
        }
        _ => Err(nothing_here(&request)),
    }
}

/// Lists the resources of a type in a subscription.
async fn in_subscription(
    context: &ArmContext,
    request: &ArmRequest,
    namespace: &str,
    kind: &str,
) -> Result<Response, ArmError> {
    if let Some(kind) = compute::ComputeKind::of(&format!("{namespace}/{kind}")) {
        subscriptions::check(context, request, &request.path[1]).await?;
        return compute::list_all(request, kind, control_handles_of(context, request).await?).await;
    }
    if opaque_resources::is_opaque(namespace, kind) {
        return opaque_resources::list::in_subscription(context, request, namespace, kind).await;
    }
    Err(unsupported(request))
}

/// Serves resources of a resource group.
async fn in_group(context: &ArmContext, request: &ArmRequest) -> Result<Response, ArmError> {
    let (group, control) = context.group(request, (&request.path[1], &request.path[3])).await?;
    request.version()?;
    let scope = GroupScope { request, group, control };
    if request.is(5, "Microsoft.Resources") && request.is(6, "deployments") {
        return deployments::serve(&scope, &request.path[7..]).await;
    }
    if request.path.len() > 6 && opaque_resources::is_opaque(&request.path[5], &request.path[6]) {
        return opaque_resources::serve(&scope, &request.path[5..]).await;
    }
    if !request.is(5, "Microsoft.Compute") {
        return Err(unsupported(request));
    }
    if request.is(8, "providers")
        && request.is(9, "Microsoft.Maintenance")
        && request.is(10, "scheduledevents")
    {
        let kind = ComputeKind::of(&format!("Microsoft.Compute/{}", request.path[6]));
        let kind = kind.ok_or_else(|| unsupported(request))?;
        return acknowledge::serve(&scope, (kind, &request.path[7]), &request.path[11..]).await;
    }
    compute::serve(&scope, &request.path[6..]).await
}

/// The clusters of a subscription within the permit.
async fn control_handles_of(
    context: &ArmContext,
    request: &ArmRequest,
) -> Result<Vec<(ClusterId, ControlHandle)>, ArmError> {
    let (wanted, permit) = (request.path[1].clone(), Arc::clone(&request.permit));
    let look = move |state: &ClusterState<'_>| {
        scopes::clusters_of(state, &permit, &wanted).map(|(id, _)| id).collect::<Vec<_>>()
    };
    let clusters = context.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    Ok(clusters.into_iter().map(|cluster| (cluster, context.control.of(cluster))).collect())
}

/// Error for a feature that real ARM has and this server has not.
pub(crate) fn unsupported(request: &ArmRequest) -> ArmError {
    let what = format!("{} /{}", request.method, request.path.join("/"));
    let message = format!("Forewarn does not support '{what}': it manages the lifecycle of machines only.");
    ArmError::new(400, "OperationNotSupported", message)
}

/// JSON as entries store it.
pub(crate) fn written(value: &serde_json::Value) -> StoredBody {
    StoredBody(value.to_string().into_bytes().into())
}

/// Error for an unknown path.
pub(crate) fn nothing_here(request: &ArmRequest) -> ArmError {
    let message =
        format!("There is no resource or action at '{} /{}'.", request.method, request.path.join("/"));
    ArmError::new(404, "NotFound", message)
}

/// The response for an error.
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

/// A new request id.
fn request_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("00000000-0000-0000-{:04x}-{:012x}", number >> 48, number & 0xffff_ffff_ffff)
}
