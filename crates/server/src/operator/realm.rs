//! Routes and handlers of a realm: its servers, the owners of clusters, the realm itself.

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::schema::Name;
use forewarn_control::shared::Role;
use forewarn_control::{
    ClusterMoveRequest, ClusterOwnerView, DrainChange, DrainWord, FormatChange, Items, RealmServerView,
    RealmView,
};
use serde_json::json;

use super::body::read;
use super::context::{OperatorRequest, no_cluster};
use super::page::{Cursor, Page, PageResponse, Paging};
use super::problem::ApiProblem;
use super::problem::ProblemKind::{self, Refused, Unavailable};
use super::reads::JsonResult;
use super::required_permit::RequiredPermit;
use super::route::{Link, Route};
use crate::realm::RealmAdminError;

/// Path of the realm, and the beginning of the paths below it.
pub(super) const REALM_PATH: &str = "/v1/realm";
pub(super) const REALM_PATHS: &str = "/v1/realm/";

const SERVERS_PATH: &str = "/v1/servers";

const FIRST_NAME: &str = "$response.body#/items/0/name";
const NAME: &str = "$response.body#/name";

/// Returns true for reads that every server outside of a realm refuses.
pub(super) fn is_of_a_realm(path: &str) -> bool {
    [REALM_PATH, SERVERS_PATH].contains(&path)
}

pub(super) fn routes() -> Vec<Route> {
    let routes = servers().into_iter().chain(realm());
    routes.map(|route| route.may_fail_with(&[Refused, Unavailable])).collect()
}

fn servers() -> Vec<Route> {
    let (viewer, operator) = (RequiredPermit::Server(Role::Viewer), RequiredPermit::Server(Role::Operator));
    let drain = json!({ "drain": "on" });
    vec![
        Route::get(
            SERVERS_PATH,
            "listServers",
            "List the servers of the realm with their clusters and heartbeats",
            list_servers,
        )
        .requires(viewer)
        .query::<Paging>()
        .json::<Items<RealmServerView>>()
        .link(Link::next_page("listServers"))
        .link(Link::to("getRealmServer", "One item of the list.").with("name", FIRST_NAME)),
        Route::get("/v1/servers/{name}", "getRealmServer", "Get a server of the realm", show_server)
            .requires(viewer)
            .path_parameter::<Name>("name")
            .json::<RealmServerView>()
            .link(Link::to("drainServer", "Drain it.").with("name", NAME).sending(drain)),
        Route::put::<DrainChange, _, _>(
            "/v1/servers/{name}/drain",
            "drainServer",
            "Move all clusters of a server to others, and let it take none until it restarts; or end that",
            drain_server,
        )
        .storing_nothing()
        .requires(operator)
        .path_parameter::<Name>("name")
        .json::<RealmServerView>(),
        Route::delete(
            "/v1/servers/{name}",
            "forgetServer",
            "Forget a server that is gone, with its archive",
            forget_server,
        )
        .storing_nothing()
        .requires(RequiredPermit::Server(Role::Admin))
        .path_parameter::<Name>("name")
        .json::<RealmServerView>(),
        Route::post::<ClusterMoveRequest, _, _>(
            "/v1/clusters/{name}/move",
            "moveCluster",
            "Move a cluster to a server of the realm, which is preferred from now on",
            move_cluster,
        )
        .storing_nothing()
        .requires(operator)
        .path_parameter::<Name>("name")
        .json::<ClusterOwnerView>(),
    ]
}

fn realm() -> Vec<Route> {
    vec![
        Route::get(
            REALM_PATH,
            "getRealm",
            "Get the realm: its servers, the members of its engine, its streams",
            show_realm,
        )
        .requires(RequiredPermit::Server(Role::Viewer))
        .json::<RealmView>()
        .link(Link::to("listServers", "Its servers.")),
        Route::put::<FormatChange, _, _>(
            "/v1/realm/format",
            "setFormat",
            "Set the format in which records of the realm are written: one that all servers read",
            set_format,
        )
        .storing_nothing()
        .requires(RequiredPermit::Server(Role::Admin))
        .json::<RealmView>(),
    ]
}

async fn list_servers(
    request: OperatorRequest,
    page: Page,
) -> Result<PageResponse<RealmServerView>, ApiProblem> {
    let servers = request.control.realm_admin()?.servers().await?;
    Ok(page.fill((1..).map(Cursor).zip(servers)))
}

async fn show_server(request: OperatorRequest, Path(name): Path<String>) -> JsonResult<RealmServerView> {
    Ok(Json(request.control.realm_admin()?.server(&name).await?))
}

async fn drain_server(
    request: OperatorRequest,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonResult<RealmServerView> {
    let is_on = match read::<DrainChange>(&body)?.drain {
        DrainWord::On => true,
        DrainWord::Off => false,
    };
    let drained = request.control.realm_admin()?.set_draining(&name, is_on).await?;
    tracing::info!(server = name, drain = is_on, by = request.permit.by, "drain of a server");
    Ok(Json(drained))
}

async fn forget_server(request: OperatorRequest, Path(name): Path<String>) -> JsonResult<RealmServerView> {
    let forgotten = request.control.realm_admin()?.forget_server(&name).await?;
    tracing::info!(server = name, by = request.permit.by, "server forgotten");
    Ok(Json(forgotten))
}

async fn move_cluster(
    request: OperatorRequest,
    Path(name): Path<String>,
    body: Bytes,
) -> JsonResult<ClusterOwnerView> {
    let ClusterMoveRequest { to } = read(&body)?;
    let admin = request.control.realm_admin()?;
    let shared = request.control.shared();
    let none = || no_cluster(Some(&name), &request.permit, &shared);
    let cluster = shared.cluster_named(&name).filter(|id| request.permit.reaches(*id)).ok_or_else(none)?;
    tracing::info!(cluster = cluster.0, to, by = request.permit.by, "move of a cluster");
    Ok(Json(admin.move_cluster(cluster, &to).await?))
}

async fn show_realm(request: OperatorRequest) -> JsonResult<RealmView> {
    Ok(Json(request.control.realm_admin()?.describe().await?))
}

async fn set_format(request: OperatorRequest, body: Bytes) -> JsonResult<RealmView> {
    let FormatChange { format } = read(&body)?;
    Ok(Json(request.control.realm_admin()?.set_format(format).await?))
}

impl From<RealmAdminError> for ApiProblem {
    fn from(error: RealmAdminError) -> Self {
        let kind = match error {
            RealmAdminError::NoRealm | RealmAdminError::Refused(_) => ProblemKind::Refused,
            RealmAdminError::NoSuchServer { .. } => ProblemKind::NotFound,
            RealmAdminError::Unavailable(_) => ProblemKind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}
