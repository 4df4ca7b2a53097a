//! Clusters and tokens: what there is to be let into, and who is.

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
use super::fault::Fault;
use super::page::{Cursor, Page, Shown};
use super::tagged::{Tagged, tag};
use super::token::{Secret, hash};
use super::visit::{Visit, no_cluster};
use crate::snapshot::State;
use forewarn_control::ControlError;
use forewarn_control::Permit;
use forewarn_control::request::Administration;

type Changed = Result<Json<Outcome>, Fault>;

/// A cluster, as far as somebody may see it.
fn seen(state: &State<'_>, permit: &Permit) -> ClusterView {
    let sees = |tenant: TenantId| permit.sees(state.cluster, tenant);
    let only: Option<&dyn Fn(TenantId) -> bool> =
        if permit.scope.tenants.is_all() { None } else { Some(&sees) };
    cluster_view(state.name, state.cluster, only)
}

pub(super) async fn clusters(visit: Visit, page: Page) -> Result<Shown<ClusterView>, Fault> {
    let first = ClusterId(page.first_number(u32::MAX));
    let shared = visit.engine.shared();
    let reached = shared.clusters().map(|(id, _)| id).filter(|id| visit.permit.reaches(*id) && *id >= first);
    let mut views = Vec::new();
    for id in reached.take(page.wanted()) {
        let permit = Arc::clone(&visit.permit);
        match visit.engine.of(id).look(move |state| seen(state, &permit)) {
            Ok(view) => views.push((Cursor(id.0.into()), view)),
            // It has gone since.
            Err(ControlError::NoSuchCluster) => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(page.fill(views.into_iter()))
}

pub(super) async fn cluster(visit: Visit, Path(name): Path<String>) -> Result<Tagged<ClusterView>, Fault> {
    let shared = visit.engine.shared();
    let none = || no_cluster(Some(&name), &visit.permit, &shared);
    let id = shared.cluster_named(&name).filter(|id| visit.permit.reaches(*id)).ok_or_else(none)?;
    let permit = Arc::clone(&visit.permit);
    Ok(visit.tagged(visit.engine.of(id).look(move |state| seen(state, &permit))?))
}

pub(super) async fn create_cluster(visit: Visit, body: Bytes) -> Changed {
    let NewCluster { name } = read(&body)?;
    let context = visit.context(&body)?;
    Ok(Json(visit.engine.administer(Administration::CreateCluster(new_name(&name)?), context).await?))
}

pub(super) async fn rename_cluster(visit: Visit, Path(cluster): Path<String>, body: Bytes) -> Changed {
    let ClusterChange { name } = read(&body)?;
    let new = new_name(&name)?;
    administer_cluster(&visit, &cluster, &body, |cluster| Administration::RenameCluster {
        cluster,
        name: new,
    })
    .await
}

pub(super) async fn remove_cluster(visit: Visit, Path(cluster): Path<String>) -> Changed {
    administer_cluster(&visit, &cluster, &[], Administration::RemoveCluster).await
}

/// Whether there is such a cluster, the driver says: whoever asks again is to be answered the same.
async fn administer_cluster(
    visit: &Visit,
    cluster: &str,
    body: &[u8],
    make: impl FnOnce(Name) -> Administration,
) -> Changed {
    let none = || no_cluster(Some(cluster), &visit.permit, &visit.engine.shared());
    let command = make(Name::new(cluster).map_err(|_| none())?);
    let tag = |state: &State<'_>| Some(tag(&seen(state, &visit.permit)));
    let engine = visit.engine.named(cluster).unwrap_or_else(|_| visit.engine.clone());
    match visit.administer_if(&engine, command, body, tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::NoSuchCluster) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

pub(super) async fn tokens(visit: Visit, page: Page) -> Result<Shown<TokenView>, Fault> {
    let (shared, now) = (visit.engine.shared(), visit.engine.clock().now().wall);
    let called = |id: &ClusterId| shared.cluster_name(*id).map(ToString::to_string);
    Ok(page.fill(shared.tokens().map(|token| (Cursor(token.number.into()), shown(token, now, called)))))
}

pub(super) async fn token(visit: Visit, Path(name): Path<String>) -> Result<Tagged<TokenView>, Fault> {
    let (shared, now) = (visit.engine.shared(), visit.engine.clock().now().wall);
    let token = shared.token_named(&name).ok_or_else(|| no_token(&name, &shared))?;
    Ok(visit.tagged(shown(token, now, |id| shared.cluster_name(*id).map(ToString::to_string))))
}

/// How often somebody else may be faster.
const TRIES_MAX: usize = 8;

pub(super) async fn issue_token(visit: Visit, body: Bytes) -> Result<Json<IssuedToken>, Fault> {
    let wanted: NewToken = read(&body)?;
    let (shared, now) = (visit.engine.shared(), visit.engine.clock().now().wall);
    let name = new_name(&wanted.name)?;
    let role = role(wanted.role);
    let scope = scope(&wanted, &shared, &visit.permit)?;
    let expires = expiry(&wanted, now);
    let mut number = shared.next_token();
    for _ in 0..TRIES_MAX {
        let no_secret = |_| Fault::unavailable("no random numbers to be had");
        let text = Secret::new().map_err(no_secret)?.text(number);
        let hash = hash(&text);
        let (name, scope) = (name.clone(), scope.clone());
        let issue = Administration::IssueToken { number, name, role, scope, hash, expires };
        match visit.engine.administer(issue, visit.context(&body)?).await {
            Ok(outcome) => {
                let token = TokenView {
                    name: wanted.name,
                    role: wanted.role,
                    clusters: wanted.clusters,
                    tenants: wanted.tenants,
                    created: outcome.now,
                    expires: expires.map(Moment),
                    expired: false,
                    by: visit.permit.by.clone(),
                };
                return Ok(Json(IssuedToken { text, token }));
            }
            // Somebody else has just issued one; the number is part of the text.
            Err(ControlError::Rejected(Refusal::NotNextToken { next, .. })) => number = next,
            Err(problem) => return Err(problem.into()),
        }
    }
    Err(Fault::unavailable("many tokens are issued at once; try again"))
}

pub(super) async fn revoke_token(visit: Visit, Path(name): Path<String>) -> Changed {
    let none = || no_token(&name, &visit.engine.shared());
    let command = Administration::RevokeToken(Name::new(&name).map_err(|_| none())?);
    let tag = |state: &State<'_>| {
        let token = state.shared.token_named(&name)?;
        let called = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
        Some(tag(&shown(token, state.now.wall, called)))
    };
    match visit.administer_if(&visit.engine.of(ClusterId::DEFAULT), command, &[], tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::Rejected(Refusal::NoSuchToken(_))) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

/// A token, as far as it can be shown.
fn shown(token: &Token, now: Timestamp, called: impl Fn(&ClusterId) -> Option<String>) -> TokenView {
    let Scope { clusters, tenants } = &token.scope;
    TokenView {
        name: token.name.to_string(),
        role: role_word(token.role),
        clusters: (!clusters.is_all()).then(|| clusters.named().filter_map(called).collect()),
        tenants: (!tenants.is_all()).then(|| tenants.named().map(ToString::to_string).collect()),
        created: Moment(token.created),
        expires: token.expires.map(Moment),
        expired: token.is_expired(now),
        by: token.by.clone(),
    }
}

fn scope(wanted: &NewToken, shared: &SharedState, permit: &Permit) -> Result<Scope, Fault> {
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

/// The earlier of both.
fn expiry(wanted: &NewToken, now: Timestamp) -> Option<Timestamp> {
    let after = wanted.expires_in.map(|Span(span)| now.plus(span));
    wanted.expires.map(|Moment(at)| at).into_iter().chain(after).min()
}

fn no_token(name: &str, shared: &SharedState) -> Fault {
    let near = similar(name, shared.tokens().map(|token| token.name.as_str()));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`forewarn token ls` shows them".to_owned(),
    };
    Fault::not_found(format!("no such token: {name}\n  hint: {hint}"))
}

/// Characters of what is not a name that are shown.
const SHOWN_CHARS_MAX: usize = 100;

pub(super) fn new_name(text: &str) -> Result<Name, Fault> {
    let shown = || text.chars().take(SHOWN_CHARS_MAX).collect::<String>();
    Name::new(text).map_err(|why| Fault::bad(format!("not a name: {:?}: {why}", shown())))
}

fn role(word: RoleWord) -> Role {
    match word {
        RoleWord::Viewer => Role::Viewer,
        RoleWord::Operator => Role::Operator,
        RoleWord::Admin => Role::Admin,
    }
}

fn role_word(role: Role) -> RoleWord {
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
    fn roles_have_the_same_words_here_and_there() {
        for known in Role::ALL {
            let word = serde_json::to_value(role_word(known)).unwrap();
            assert_eq!((word, role(role_word(known))), (known.as_str().into(), known));
        }
    }
}
