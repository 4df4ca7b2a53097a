//! Lists of opaque resources, page by page.

use axum::response::Response;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::Resource;
use forewarn_control::shared::Role;
use forewarn_server::State;

use super::{check, show_entry};
use crate::ArmError;
use crate::http::compute::GroupScope;
use crate::http::page::{PageItems, key_of_page};
use crate::http::request::ArmRequest;
use crate::http::scopes::{check_subscription, groups_prefix};
use crate::http::{ArmContext, errors};

/// Lists the resources of a type in a resource group.
pub(super) async fn in_group(
    scope: &GroupScope<'_>,
    namespace: &str,
    kind: &str,
) -> Result<Response, ArmError> {
    check(&scope.request.permit, Role::Viewer)?;
    let prefix = format!("{}/providers/{namespace}/{kind}/", scope.group.id).to_lowercase();
    let from = key_of_page(scope.request, &prefix)?;
    let look = |state: &State<'_>| {
        let depth = prefix.matches('/').count();
        let own = state.all.resources_below_from(&prefix, &from);
        fill(own, |key, _| key.matches('/').count() == depth)
    };
    let (page, next) = scope.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    Ok(page.response(scope.request, next))
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
    let (subscription, permit) = (&request.path[1], &request.permit);
    let kind = format!("{namespace}/{kind}");
    let prefix = groups_prefix(subscription);
    let from = key_of_page(request, &prefix)?;
    let look = |state: &State<'_>| {
        check_subscription(state, permit, subscription)?;
        let is_of_kind = |entry: &Resource| ResourceId::parse(&entry.id).is_some_and(|id| id.is(&kind));
        let all = state.all.resources_below_from(&prefix, &from);
        Ok(fill(all, |_, entry| permit.reaches(entry.cluster) && is_of_kind(entry)))
    };
    let (page, next) = context.control.look(look).map_err(|problem| errors::of_problem(&problem))??;
    Ok(page.response(request, next))
}

/// Fills a page with the resources that are wanted. Returns it with the key of the first resource of the next one.
fn fill<'a>(
    entries: impl Iterator<Item = (&'a str, &'a Resource)>,
    is_wanted: impl Fn(&str, &Resource) -> bool,
) -> (PageItems, Option<String>) {
    let mut page = PageItems::default();
    for (key, entry) in entries {
        if !page.visit() {
            return (page, Some(key.to_owned()));
        }
        if is_wanted(key, entry)
            && let Some(id) = ResourceId::parse(&entry.id)
        {
            page.push(show_entry(entry, &id));
        }
    }
    (page, None)
}
