//! Webhooks: who is told of events, how it is with them, and a test of one.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::ClusterId;
use forewarn_control::refusal::Refusal;
use forewarn_control::shared::{Authorization, Filter, Reach, Schema, Scope, SharedState, Webhook};
use forewarn_control::{
    Items, NewWebhook, Outcome, SchemaWord, TestOrder, WebhookTest, WebhookView, schema, similar,
};
use forewarn_lifecycle::Name;
use forewarn_types::Moment;
use forewarn_url::Url;

use super::access::new_name;
use super::body::read;
use super::fault::Fault;
use super::fault::Kind::{NotFound, Refused, Unavailable};
use super::needs::Needs;
use super::page::{Cursor, Page, Paging, Shown};
use super::route::{Link, Route};
use super::tagged::{Tagged, tag};
use super::visit::{Visit, no_cluster};
use crate::snapshot::State;
use crate::webhooks::Post;
use forewarn_control::ControlError;
use forewarn_control::request::Administration;
use forewarn_control::shared::Role;

const FIRST_NAME: &str = "$response.body#/items/0/name";
const NAME: &str = "$response.body#/name";
const SENT_NAME: &str = "$request.body#/name";
const SAME_NAME: &str = "$request.path.name";

pub(super) fn routes() -> Vec<Route> {
    let viewer = Needs::OfServer(Role::Viewer);
    let admin = Needs::OfServer(Role::Admin);
    let test = serde_json::json!({});
    let routes = [
        Route::get(
            "/v1/webhooks",
            "listWebhooks",
            "Webhooks: who is told of events, and how it is with them",
            list,
        )
        .needs(viewer)
        .query::<Paging>()
        .json::<Items<WebhookView>>()
        .link(Link::next_page("listWebhooks"))
        .link(Link::to("getWebhook", "One of them.").with("name", FIRST_NAME)),
        Route::post::<NewWebhook, _, _>(
            "/v1/webhooks",
            "addWebhook",
            "Somebody is told of events from now on, once it has said that it wants to be",
            add,
        )
        .needs(admin)
        .json::<Outcome>()
        .may_be(&[NotFound, Refused])
        .link(Link::to("getWebhook", "How it is with it.").with("name", SENT_NAME))
        .link(Link::to("testWebhook", "It is tried out.").with("name", SENT_NAME).sending(test.clone()))
        .link(Link::to("removeWebhook", "It is told nothing any more.").with("name", SENT_NAME)),
        Route::get("/v1/webhooks/{name}", "getWebhook", "A webhook, without its secrets", show)
            .needs(viewer)
            .part::<schema::Name>("name")
            .json::<WebhookView>()
            .tagged()
            .link(Link::to("testWebhook", "It is tried out.").with("name", NAME).sending(test))
            .link(Link::to("removeWebhook", "It is told nothing any more.").with("name", NAME).unchanged()),
        Route::delete("/v1/webhooks/{name}", "removeWebhook", "Somebody is told nothing any more", remove)
            .needs(admin)
            .part::<schema::Name>("name")
            .json::<Outcome>()
            .link(Link::to("getWebhook", "It is gone.").with("name", SAME_NAME)),
        Route::post::<TestOrder, _, _>(
            "/v1/webhooks/{name}/test",
            "testWebhook",
            "A webhook is sent an event that says that it is a test, after a handshake if there was none",
            test_it,
        )
        .changing_nothing()
        .needs(admin)
        .part::<schema::Name>("name")
        .json::<WebhookTest>(),
    ];
    routes.into_iter().map(|route| route.may_be(&[Unavailable])).collect()
}

async fn list(visit: Visit, page: Page) -> Result<Shown<WebhookView>, Fault> {
    let first = page.first_number(u32::MAX);
    let post = Arc::clone(&visit.api.webhooks);
    let look = move |state: &State<'_>| {
        let called = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
        let wanted = state.shared.webhooks().filter(|webhook| webhook.number >= first);
        wanted
            .map(|webhook| (Cursor(webhook.number.into()), view(&post, webhook, called)))
            .collect::<Vec<_>>()
    };
    Ok(page.fill(visit.engine.look(look)?.into_iter()))
}

async fn show(visit: Visit, Path(name): Path<String>) -> Result<Tagged<WebhookView>, Fault> {
    let (post, wanted) = (Arc::clone(&visit.api.webhooks), name.clone());
    let shown = visit.engine.look(move |state| named(&post, state, &wanted))?;
    Ok(visit.tagged(shown.ok_or_else(|| no_webhook(&name, &visit.engine.shared()))?))
}

async fn add(visit: Visit, body: Bytes) -> Result<Json<Outcome>, Fault> {
    let wanted: NewWebhook = read(&body)?;
    let name = new_name(&wanted.name)?;
    // What is wrong with it is said, and not what it is: it may be a secret.
    let url = Url::parse(&wanted.url).map_err(|why| Fault::bad(why.to_string()))?;
    let secret = wanted.authorization.as_deref().map(Authorization::new).transpose();
    let authorization = secret.map_err(|why| Fault::bad(why.to_string()))?;
    let schema = match wanted.schema {
        SchemaWord::CloudEvents => Schema::CloudEvents,
        SchemaWord::EventGrid => Schema::EventGrid,
    };
    let filter = filter(&wanted, &visit)?;
    let add = Administration::AddWebhook { name, url, schema, filter, authorization };
    Ok(Json(visit.engine.administer(add, visit.context(&body)?).await?))
}

async fn remove(visit: Visit, Path(name): Path<String>) -> Result<Json<Outcome>, Fault> {
    let none = || no_webhook(&name, &visit.engine.shared());
    let command = Administration::RemoveWebhook(Name::new(&name).map_err(|_| none())?);
    let (post, wanted) = (Arc::clone(&visit.api.webhooks), name.clone());
    let tag = |state: &State<'_>| Some(tag(&named(&post, state, &wanted)?));
    match visit.administer_if(&visit.engine.of(ClusterId::DEFAULT), command, &[], tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::Rejected(Refusal::NoSuchWebhook(_))) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

async fn test_it(visit: Visit, Path(name): Path<String>, body: Bytes) -> Result<Json<WebhookTest>, Fault> {
    let TestOrder {} = read(&body)?;
    let shared = visit.engine.shared();
    let webhook = shared.webhook_named(&name).ok_or_else(|| no_webhook(&name, &shared))?;
    Ok(Json(visit.api.webhooks.test(webhook).await))
}

fn named(post: &Post, state: &State<'_>, name: &str) -> Option<WebhookView> {
    let called = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
    Some(view(post, state.shared.webhook_named(name)?, called))
}

/// A webhook, as far as it can be shown.
fn view(post: &Post, webhook: &Webhook, called: impl Fn(&ClusterId) -> Option<String>) -> WebhookView {
    let Filter { scope, kinds } = &webhook.filter;
    let standing = post.standing(webhook.number);
    let progress = standing.as_ref().map_or(webhook.progress, |standing| standing.progress);
    WebhookView {
        name: webhook.name.to_string(),
        url: webhook.url.shown(),
        schema: match webhook.schema {
            Schema::CloudEvents => SchemaWord::CloudEvents,
            Schema::EventGrid => SchemaWord::EventGrid,
        },
        clusters: (!scope.clusters.is_all()).then(|| scope.clusters.named().filter_map(called).collect()),
        tenants: (!scope.tenants.is_all()).then(|| scope.tenants.named().map(ToString::to_string).collect()),
        types: (!kinds.is_all()).then(|| kinds.named().copied().collect()),
        authorization: webhook.authorization.is_some(),
        state: post.state(webhook),
        problem: standing.as_ref().and_then(|standing| standing.problem.clone()),
        failing_since: progress.failing.map(|failing| Moment(failing.since)),
        told: progress.cursor,
        delivered: standing.map_or(0, |standing| standing.delivered),
        lost: progress.lost,
        created: Moment(webhook.created),
        by: webhook.by.clone(),
    }
}

fn filter(wanted: &NewWebhook, visit: &Visit) -> Result<Filter, Fault> {
    let shared = visit.engine.shared();
    let cluster = |name: &String| {
        shared.cluster_named(name).ok_or_else(|| no_cluster(Some(name), &visit.permit, &shared))
    };
    let clusters = match &wanted.clusters {
        None => Reach::All,
        Some(names) => Reach::Only(names.iter().map(cluster).collect::<Result<_, _>>()?),
    };
    let tenants = match &wanted.tenants {
        None => Reach::All,
        Some(names) => Reach::Only(names.iter().map(|name| new_name(name)).collect::<Result<_, _>>()?),
    };
    let kinds = match &wanted.types {
        None => Reach::All,
        Some(kinds) => kinds.iter().copied().collect(),
    };
    Ok(Filter { scope: Scope { clusters, tenants }, kinds })
}

fn no_webhook(name: &str, shared: &SharedState) -> Fault {
    let hint = match similar(name, shared.webhooks().map(|webhook| webhook.name.as_str())) {
        Some(near) => format!("did you mean {near}?"),
        None => "`forewarn webhook ls` shows them".to_owned(),
    };
    Fault::not_found(format!("no such webhook: {name}\n  hint: {hint}"))
}
