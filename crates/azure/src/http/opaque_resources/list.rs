//! Lists of opaque resources, page by page.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::response::Response;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::Resource;
use forewarn_control::shared::Role;
use forewarn_server::State;
use serde_json::{Value, json};

use super::{check, show_entry};
use crate::ArmError;
use crate::http::compute::GroupScope;
use crate::http::request::ArmRequest;
use crate::http::scopes::check_subscription;
use crate::http::{ArmContext, errors, responses};

/// Resources of one page.
const PAGE_MAX: usize = 500;

/// A page, and the key of the first resource of the next one.
type Page = (Vec<Value>, Option<String>);

/// Lists the resources of a type in a resource group.
pub(super) async fn in_group(
    scope: &GroupScope<'_>,
    namespace: &str,
    kind: &str,
) -> Result<Response, ArmError> {
    check(&scope.request.permit, Role::Viewer)?;
    let prefix = format!("{}/providers/{namespace}/{kind}/", scope.group.id).to_lowercase();
    let from = from(scope.request);
    let look = move |state: &State<'_>| {
        let depth = prefix.matches('/').count();
        let own = state.all.resources_below(&prefix);
        page(own.filter(|(key, _)| key.matches('/').count() == depth), from.as_deref())
    };
    let page = scope.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    Ok(shown(scope.request, page))
}

/// Lists the resources of a type in a subscription.
pub(in crate::http) async fn in_subscription(
    context: &ArmContext,
    request: &ArmRequest,
    namespace: &str,
    kind: &str,
) -> Result<Response, ArmError> {
    request.version()?;
    check(&request.permit, Role::Viewer)?;
    let (subscription, permit, from) = (request.path[1].clone(), Arc::clone(&request.permit), from(request));
    let kind = format!("{namespace}/{kind}");
    let look = move |state: &State<'_>| {
        check_subscription(state, &permit, &subscription)?;
        let prefix = format!("/subscriptions/{}/resourcegroups/", subscription.to_lowercase());
        let own = state.all.resources_below(&prefix).filter(|(_, entry)| {
            permit.reaches(entry.cluster) && ResourceId::parse(&entry.id).is_some_and(|id| id.is(&kind))
        });
        Ok(page(own, from.as_deref()))
    };
    let page = context.control.look(look).map_err(|problem| errors::of_problem(&problem))??;
    Ok(shown(request, page))
}

fn from(request: &ArmRequest) -> Option<String> {
    request.page().map(str::to_lowercase)
}

fn page<'a>(entries: impl Iterator<Item = (&'a str, &'a Resource)>, from: Option<&str>) -> Page {
    let mut page = Vec::new();
    let mut entries = entries.filter(|(key, _)| from.is_none_or(|from| from <= *key));
    let over = entries.try_for_each(|(key, entry)| {
        if page.len() == PAGE_MAX {
            return ControlFlow::Break(key.to_owned());
        }
        page.extend(ResourceId::parse(&entry.id).map(|id| show_entry(entry, &id)));
        ControlFlow::Continue(())
    });
    (page, over.break_value())
}

fn shown(request: &ArmRequest, (items, next): Page) -> Response {
    let mut body = json!({ "value": items });
    if let Some(next) = next {
        body["nextLink"] = json!(request.next_page(&next));
    }
    responses::ok(body)
}
