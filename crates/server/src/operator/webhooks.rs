//! Routes and handlers of webhooks.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::ClusterId;
use forewarn_control::refusal::Refusal;
use forewarn_control::shared::{Authorization, Filter, Reach, Scope, SharedState, Webhook, WebhookFormat};
use forewarn_control::{
    Items, NewWebhook, Outcome, WebhookTest, WebhookTestRequest, WebhookView, schema, similar,
};
use forewarn_lifecycle::Name;
use forewarn_types::Moment;
use forewarn_url::Url;

use super::access::new_name;
use super::body::read;
use super::context::{OperatorRequest, no_cluster};
use super::page::{Cursor, Page, PageResponse, Paging};
use super::problem::ApiProblem;
use super::problem::ProblemKind::{NotFound, Refused, Unavailable};
use super::required_permit::RequiredPermit;
use super::route::{Link, Route};
use super::tagged::{Tagged, tag};
use crate::snapshot::State;
use crate::webhooks::{DeliveryStatus, WebhooksShared};
use forewarn_control::ControlError;
use forewarn_control::request::Administration;
use forewarn_control::shared::Role;

const FIRST_NAME: &str = "$response.body#/items/0/name";
const NAME: &str = "$response.body#/name";
const SENT_NAME: &str = "$request.body#/name";
const SAME_NAME: &str = "$request.path.name";

pub(super) fn routes() -> Vec<Route> {
    let viewer = RequiredPermit::Server(Role::Viewer);
    let admin = RequiredPermit::Server(Role::Admin);
    let test = serde_json::json!({});
    let routes = [
        Route::get("/v1/webhooks", "listWebhooks", "List webhooks with their delivery state", list)
            .requires(viewer)
            .query::<Paging>()
            .json::<Items<WebhookView>>()
            .link(Link::next_page("listWebhooks"))
            .link(Link::to("getWebhook", "One item of the list.").with("name", FIRST_NAME)),
        Route::post::<NewWebhook, _, _>(
            "/v1/webhooks",
            "addWebhook",
            "Add a webhook; delivery starts when the receiver confirms the subscription, to a chat at once",
            add,
        )
        .requires(admin)
        .json::<Outcome>()
        .may_fail_with(&[NotFound, Refused])
        .link(Link::to("getWebhook", "Delivery state of the webhook.").with("name", SENT_NAME))
        .link(Link::to("testWebhook", "Test it.").with("name", SENT_NAME).sending(test.clone()))
        .link(Link::to("removeWebhook", "Remove it.").with("name", SENT_NAME)),
        Route::get("/v1/webhooks/{name}", "getWebhook", "Get a webhook, without its secrets", show)
            .requires(viewer)
            .path_parameter::<schema::Name>("name")
            .json::<WebhookView>()
            .tagged()
            .link(Link::to("testWebhook", "Test it.").with("name", NAME).sending(test))
            .link(Link::to("removeWebhook", "Remove it.").with("name", NAME).unchanged()),
        Route::delete("/v1/webhooks/{name}", "removeWebhook", "Remove a webhook", remove)
            .requires(admin)
            .path_parameter::<schema::Name>("name")
            .json::<Outcome>()
            .link(Link::to("getWebhook", "No longer found.").with("name", SAME_NAME)),
        Route::post::<WebhookTestRequest, _, _>(
            "/v1/webhooks/{name}/test",
            "testWebhook",
            "Send a test event to a webhook, after a handshake if it is unconfirmed",
            test_it,
        )
        .changing_nothing()
        .requires(admin)
        .path_parameter::<schema::Name>("name")
        .json::<WebhookTest>(),
    ];
    routes.into_iter().map(|route| route.may_fail_with(&[Unavailable])).collect()
}

async fn list(request: OperatorRequest, page: Page) -> Result<PageResponse<WebhookView>, ApiProblem> {
    let first = page.first_number(u32::MAX);
    let webhooks = Arc::clone(&request.api.webhooks);
    let look = move |state: &State<'_>| {
        let cluster_name = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
        let wanted = state.shared.webhooks().filter(|webhook| webhook.number >= first);
        wanted
            .map(|webhook| (Cursor(webhook.number.into()), view(&webhooks, webhook, cluster_name)))
            .collect::<Vec<_>>()
    };
    Ok(page.fill(request.control.look(look)?.into_iter()))
}

async fn show(request: OperatorRequest, Path(name): Path<String>) -> Result<Tagged<WebhookView>, ApiProblem> {
    let (webhooks, wanted) = (Arc::clone(&request.api.webhooks), name.clone());
    let shown = request.control.look(move |state| named(&webhooks, state, &wanted))?;
    Ok(request.tagged(shown.ok_or_else(|| no_webhook(&name, &request.control.shared()))?))
}

async fn add(request: OperatorRequest, body: Bytes) -> Result<Json<Outcome>, ApiProblem> {
    let wanted: NewWebhook = read(&body)?;
    let name = new_name(&wanted.name)?;
    // The error does not quote the URL: it may contain a secret.
    let url = wanted.url.as_deref().or_else(|| wanted.format.default_url());
    let url = url.ok_or_else(|| ApiProblem::conflict(format!("webhook {name} needs a URL: `url`")))?;
    let url = Url::parse(url).map_err(|why| ApiProblem::bad(why.to_string()))?;
    let (authorization, filter) = (secret(&wanted)?, filter(&wanted, &request)?);
    let format = wanted.format;
    let add = Administration::AddWebhook { name, url, format, filter, authorization };
    Ok(Json(request.control.administer(add, request.context(&body)?).await?))
}

/// The secret of a webhook: its routing key if it is of PagerDuty, else the value of `Authorization`.
fn secret(wanted: &NewWebhook) -> Result<Option<Authorization>, ApiProblem> {
    let NewWebhook { format, authorization, key, .. } = wanted;
    let is_keyed = *format == WebhookFormat::PagerDuty;
    match (authorization, key) {
        (Some(_), _) if is_keyed => Err(ApiProblem::conflict(
            "format pagerduty takes no `authorization`\n  hint: its routing key is `key`",
        )),
        (_, Some(_)) if !is_keyed => Err(ApiProblem::conflict(format!(
            "format {format} takes no `key`\n  hint: only pagerduty has one"
        ))),
        // An invalid routing key counts as none: the rules reject it.
        (None, Some(key)) => Ok(Authorization::new(key).ok()),
        (Some(text), _) => match Authorization::new(text) {
            Ok(authorization) => Ok(Some(authorization)),
            Err(why) => Err(ApiProblem::bad(why.to_string())),
        },
        (None, None) => Ok(None),
    }
}

async fn remove(request: OperatorRequest, Path(name): Path<String>) -> Result<Json<Outcome>, ApiProblem> {
    let none = || no_webhook(&name, &request.control.shared());
    let command = Administration::RemoveWebhook(Name::new(&name).map_err(|_| none())?);
    let (webhooks, wanted) = (Arc::clone(&request.api.webhooks), name.clone());
    let tag = |state: &State<'_>| Some(tag(&named(&webhooks, state, &wanted)?));
    match request.administer_if(&request.control.of(ClusterId::DEFAULT), command, &[], tag).await? {
        Ok(outcome) => Ok(Json(outcome)),
        Err(ControlError::Rejected(Refusal::NoSuchWebhook(_))) => Err(none()),
        Err(problem) => Err(problem.into()),
    }
}

async fn test_it(
    request: OperatorRequest,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<WebhookTest>, ApiProblem> {
    let WebhookTestRequest {} = read(&body)?;
    let shared = request.control.shared();
    let webhook = shared.webhook_named(&name).ok_or_else(|| no_webhook(&name, &shared))?;
    Ok(Json(request.api.webhooks.test(webhook).await))
}

fn named(webhooks: &WebhooksShared, state: &State<'_>, name: &str) -> Option<WebhookView> {
    let cluster_name = |id: &ClusterId| state.shared.cluster_name(*id).map(ToString::to_string);
    Some(view(webhooks, state.shared.webhook_named(name)?, cluster_name))
}

/// The view of a webhook, without its secrets.
fn view(
    webhooks: &WebhooksShared,
    webhook: &Webhook,
    cluster_name: impl Fn(&ClusterId) -> Option<String>,
) -> WebhookView {
    let Filter { scope, kinds } = &webhook.filter;
    let is_keyed = webhook.format == WebhookFormat::PagerDuty;
    let statuses = webhooks.statuses(webhook.number);
    let failing = statuses.iter().filter_map(|(_, status)| status.progress.failing);
    let sum = |of: fn(&DeliveryStatus) -> u64| statuses.iter().map(|(_, status)| of(status)).sum();
    let last_entry =
        |(id, status): &(ClusterId, DeliveryStatus)| Some((cluster_name(id)?, status.progress.cursor));
    WebhookView {
        name: webhook.name.to_string(),
        url: webhook.format.shown_url(&webhook.url),
        format: webhook.format,
        clusters: (!scope.clusters.is_all())
            .then(|| scope.clusters.named().filter_map(&cluster_name).collect()),
        tenants: (!scope.tenants.is_all()).then(|| scope.tenants.named().map(ToString::to_string).collect()),
        types: (!kinds.is_all()).then(|| kinds.named().copied().collect()),
        authorization: webhook.authorization.is_some() && !is_keyed,
        key: webhook.authorization.is_some() && is_keyed,
        state: webhooks.state(webhook),
        error: statuses.iter().find_map(|(_, status)| status.error.clone()),
        failing_since: failing.map(|failing| Moment(failing.since)).min(),
        last_entries: statuses.iter().filter_map(last_entry).collect(),
        delivered: sum(|status| status.delivered),
        lost: sum(|status| status.progress.lost),
        created: Moment(webhook.created),
        by: webhook.by.clone(),
    }
}

fn filter(wanted: &NewWebhook, request: &OperatorRequest) -> Result<Filter, ApiProblem> {
    let shared = request.control.shared();
    let cluster = |name: &String| {
        shared.cluster_named(name).ok_or_else(|| no_cluster(Some(name), &request.permit, &shared))
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

pub(super) fn no_webhook(name: &str, shared: &SharedState) -> ApiProblem {
    let hint = match similar(name, shared.webhooks().map(|webhook| webhook.name.as_str())) {
        Some(near) => format!("did you mean {near}?"),
        None => "`forewarn webhook ls` lists webhooks".to_owned(),
    };
    ApiProblem::not_found(format!("no such webhook: {name}\n  hint: {hint}"))
}
