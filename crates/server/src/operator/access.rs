//! Handlers of clusters and tokens.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::ClusterId;
use forewarn_control::refusal::Refusal;
use forewarn_control::shared::{Reach, Role, Scope, SharedState, Token};
use forewarn_control::{
    ClusterChange, ClusterView, IssuedToken, NewCluster, NewToken, Outcome, RoleWord, TokenView,
    cluster_view, similar,
};
use forewarn_lifecycle::{Name, TenantId, Timestamp};
use forewarn_types::{Moment, Span};

use super::body::read;
use super::context::{OperatorRequest, no_cluster};
use super::page::{Cursor, Page, PageResponse};
use super::problem::ApiProblem;
use super::tagged::{Tagged, tag};
use super::token::{Secret, hash};
use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use forewarn_control::ControlError;
use forewarn_control::Permit;
use forewarn_control::request::Administration;

pub(super) type OutcomeResult = Result<Json<Outcome>, ApiProblem>;

/// A cluster, restricted to the tenants of the permit, the reason why it takes no requests, and its owner.
fn visible_cluster(state: &State<'_>, permit: &Permit, control: &ControlHandle) -> ClusterView {
    let sees = |tenant: TenantId| permit.sees(state.cluster, tenant);
    let only: Option<&dyn Fn(TenantId) -> bool> =
        if permit.scope.tenants.is_all() { None } else { Some(&sees) };
    // Callers that are limited to some tenants see no servers.
    let admin = control.realm_admin().ok().filter(|_| permit.scope.tenants.is_all());
    let (failure, owner) = (control.failure(), admin.map(|admin| admin.owner(state.id)));
    ClusterView { failure, owner, ..cluster_view(state.name, state.cluster, only) }
}

pub(super) async fn clusters(
    request: OperatorRequest,
    page: Page,
) -> Result<PageResponse<ClusterView>, ApiProblem> {
    let first = ClusterId(page.first_number(u32::MAX));
    let shared = request.control.shared();
    let reached =
        shared.clusters().map(|(id, _)| id).filter(|id| request.permit.reaches(*id) && *id >= first);
    let mut views = Vec::new();
    for id in reached.take(page.wanted()) {
        let permit = Arc::clone(&request.permit);
        let control = request.control.of(id);
        match control.look(|state| visible_cluster(state, &permit, &control)) {
            Ok(view) => views.push((Cursor(id.0.into()), view)),
            // The cluster was removed meanwhile.
            Err(ControlError::NoSuchCluster) => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(page.fill(views.into_iter()))
}

pub(super) async fn cluster(
    request: OperatorRequest,
    Path(name): Path<String>,
) -> Result<Tagged<ClusterView>, ApiProblem> {
    let shared = request.control.shared();
    let none = || no_cluster(Some(&name), &request.permit, &shared);
    let id = shared.cluster_named(&name).filter(|id| request.permit.reaches(*id)).ok_or_else(none)?;
    let permit = Arc::clone(&request.permit);
    let control = request.control.of(id);
    Ok(request.tagged(control.look(|state| visible_cluster(state, &permit, &control))?))
}

pub(super) async fn create_cluster(request: OperatorRequest, body: Bytes) -> OutcomeResult {
    let NewCluster { name } = read(&body)?;
    let context = request.context(&body)?;
    Ok(Json(request.control.administer(Administration::CreateCluster(new_name(&name)?), context).await?))
}

pub(super) async fn rename_cluster(
    request: OperatorRequest,
    Path(cluster): Path<String>,
    body: Bytes,
) -> OutcomeResult {
    let ClusterChange { name } = read(&body)?;
    let new = new_name(&name)?;
    administer_cluster(&request, &cluster, &body, |cluster| Administration::RenameCluster {
        cluster,
        name: new,
    })
    .await
}

pub(super) async fn remove_cluster(request: OperatorRequest, Path(cluster): Path<String>) -> OutcomeResult {
    administer_cluster(&request, &cluster, &[], Administration::RemoveCluster).await
}

/// The driver checks that the cluster exists, so that a repeated request under the same key gets the same response.
async fn administer_cluster(
    request: &OperatorRequest,
    cluster: &str,
    body: &[u8],
    make: impl FnOnce(Name) -> Administration,
) -> OutcomeResult {
    let none = || no_cluster(Some(cluster), &request.permit, &request.control.shared());
    let command = make(Name::new(cluster).map_err(|_| none())?);
    let control = request.control.named(cluster).unwrap_or_else(|_| request.control.clone());
    let tag = |state: &State<'_>| Some(tag(&visible_cluster(state, &request.permit, &control)));
    match request.administer_if(&control, command, body, tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::NoSuchCluster) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

pub(super) async fn tokens(
    request: OperatorRequest,
    page: Page,
) -> Result<PageResponse<TokenView>, ApiProblem> {
    let (shared, now) = (request.control.shared(), request.control.clock().now().wall);
    let cluster_name = |id: &ClusterId| shared.cluster_name(*id).map(ToString::to_string);
    Ok(page.fill(
        shared.tokens().map(|token| (Cursor(token.number.into()), token_view(token, now, cluster_name))),
    ))
}

pub(super) async fn token(
    request: OperatorRequest,
    Path(name): Path<String>,
) -> Result<Tagged<TokenView>, ApiProblem> {
    let (shared, now) = (request.control.shared(), request.control.clock().now().wall);
    let token = shared.token_named(&name).ok_or_else(|| no_token(&name, &shared))?;
    Ok(request.tagged(token_view(token, now, |id| shared.cluster_name(*id).map(ToString::to_string))))
}

/// Attempts to issue a token while others are being issued.
const TRIES_MAX: usize = 8;

pub(super) async fn issue_token(
    request: OperatorRequest,
    body: Bytes,
) -> Result<Json<IssuedToken>, ApiProblem> {
    let wanted: NewToken = read(&body)?;
    let (shared, now) = (request.control.shared(), request.control.clock().now().wall);
    let name = new_name(&wanted.name)?;
    let role = role(wanted.role);
    let scope = scope(&wanted, &shared, &request.permit)?;
    let expires = expiry(&wanted, now);
    let mut number = shared.next_token();
    for _ in 0..TRIES_MAX {
        let no_secret = |_| ApiProblem::unavailable("no random numbers available");
        let text = Secret::new().map_err(no_secret)?.text(number);
        let hash = hash(&text);
        let (name, scope) = (name.clone(), scope.clone());
        let issue = Administration::IssueToken { number, name, role, scope, hash, expires };
        match request.control.administer(issue, request.context(&body)?).await {
            Ok(outcome) => {
                let token = TokenView {
                    name: wanted.name,
                    role: wanted.role,
                    clusters: wanted.clusters,
                    tenants: wanted.tenants,
                    created: outcome.now,
                    expires: expires.map(Moment),
                    expired: false,
                    by: request.permit.by.clone(),
                };
                return Ok(Json(IssuedToken { text, token }));
            }
            // Another token was issued meanwhile; the number is part of the text.
            Err(ControlError::Rejected(Refusal::NotNextToken { next, .. })) => number = next,
            Err(problem) => return Err(problem.into()),
        }
    }
    Err(ApiProblem::unavailable("too many tokens are being issued at once; try again"))
}

pub(super) async fn revoke_token(request: OperatorRequest, Path(name): Path<String>) -> OutcomeResult {
    let none = || no_token(&name, &request.control.shared());
    let command = Administration::RevokeToken(Name::new(&name).map_err(|_| none())?);
    let tag = |state: &State<'_>| {
        let token = state.shared.token_named(&name)?;
        let cluster_name = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
        Some(tag(&token_view(token, state.now.wall, cluster_name)))
    };
    match request.administer_if(&request.control.of(ClusterId::DEFAULT), command, &[], tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::Rejected(Refusal::NoSuchToken(_))) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

/// The view of a token, without its secret.
fn token_view(
    token: &Token,
    now: Timestamp,
    cluster_name: impl Fn(&ClusterId) -> Option<String>,
) -> TokenView {
    let Scope { clusters, tenants } = &token.scope;
    TokenView {
        name: token.name.to_string(),
        role: role_word(token.role),
        clusters: (!clusters.is_all()).then(|| clusters.named().filter_map(cluster_name).collect()),
        tenants: (!tenants.is_all()).then(|| tenants.named().map(ToString::to_string).collect()),
        created: Moment(token.created),
        expires: token.expires.map(Moment),
        expired: token.is_expired(now),
        by: token.by.clone(),
    }
}

fn scope(wanted: &NewToken, shared: &SharedState, permit: &Permit) -> Result<Scope, ApiProblem> {
    let cluster =
        |name: &String| shared.cluster_named(name).ok_or_else(|| no_cluster(Some(name), permit, shared));
    let clusters = match &wanted.clusters {
        None => Reach::All,
        Some(names) => Reach::Only(names.iter().map(cluster).collect::<Result<_, _>>()?),
    };
    let tenants = match &wanted.tenants {
        None => Reach::All,
        Some(names) => Reach::Only(names.iter().map(|name| new_name(name)).collect::<Result<_, _>>()?),
    };
    Ok(Scope { clusters, tenants })
}

/// The earlier of `expires` and `expires_in`.
fn expiry(wanted: &NewToken, now: Timestamp) -> Option<Timestamp> {
    let after = wanted.expires_in.map(|Span(span)| now.plus(span));
    wanted.expires.map(|Moment(at)| at).into_iter().chain(after).min()
}

fn no_token(name: &str, shared: &SharedState) -> ApiProblem {
    let near = similar(name, shared.tokens().map(|token| token.name.as_str()));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`forewarn token ls` lists tokens".to_owned(),
    };
    ApiProblem::not_found(format!("no such token: {name}\n  hint: {hint}"))
}

/// Characters of an invalid name in an error message.
const QUOTED_CHARS_MAX: usize = 100;

pub(super) fn new_name(text: &str) -> Result<Name, ApiProblem> {
    let quoted = || text.chars().take(QUOTED_CHARS_MAX).collect::<String>();
    Name::new(text).map_err(|why| ApiProblem::bad(format!("invalid name {:?}: {why}", quoted())))
}

fn role(word: RoleWord) -> Role {
    match word {
        RoleWord::Viewer => Role::Viewer,
        RoleWord::Operator => Role::Operator,
        RoleWord::Admin => Role::Admin,
    }
}

pub(super) fn role_word(role: Role) -> RoleWord {
    match role {
        Role::Viewer => RoleWord::Viewer,
        Role::Operator => RoleWord::Operator,
        Role::Admin => RoleWord::Admin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(json: &str) -> NewToken {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_token_expires_at_the_earlier_of_both() {
        let now = Timestamp::from_millis(0);
        let expires = |rest: &str| expiry(&wanted(&format!(r#"{{"name":"a","role":"viewer"{rest}}}"#)), now);
        assert_eq!(expires(""), None);
        assert_eq!(expires(r#","expires_in":"2s""#), Some(Timestamp::from_millis(2_000)));
        let both = |at: &str| expires(&format!(r#","expires_in":"2s","expires":"1970-01-01T00:00:0{at}Z""#));
        assert_eq!(both("1"), Some(Timestamp::from_millis(1_000)));
        assert_eq!(both("3"), Some(Timestamp::from_millis(2_000)));
    }

    #[test]
    fn roles_have_the_same_names_in_views_and_rules() {
        for known in Role::ALL {
            let word = serde_json::to_value(role_word(known)).unwrap();
            assert_eq!((word, role(role_word(known))), (known.as_str().into(), known));
        }
    }
}
