//! Lists of resources that are only kept, page by page.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::response::Response;
use forewarn_azure::ArmError;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::{Entry, Role};
use serde_json::{Value, json};

use super::call::Call;
use super::compute::Visit;
use super::place::check_subscription;
use super::{Arm, answer, kept, refusal};
use crate::engine::State;

/// Resources of one page.
const PAGE_MAX: usize = 500;

/// A page, and the key of the first that is on the next one.
type Page = (Vec<Value>, Option<String>);

/// Those of a group.
pub(super) async fn in_group(visit: &Visit<'_>, namespace: &str, kind: &str) -> Result<Response, ArmError> {
    kept::check(&visit.call.permit, Role::Viewer)?;
    let prefix = format!("{}/providers/{namespace}/{kind}/", visit.group.id).to_lowercase();
    let from = from(visit.call);
    let look = move |state: &State<'_>| {
        let depth = prefix.matches('/').count();
        let own = state.catalogue.entries_below(&prefix);
        page(own.filter(|(key, _)| key.matches('/').count() == depth), from.as_deref())
    };
    let page = visit.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    Ok(shown(visit.call, page))
}

/// Those of a subscription.
pub(super) async fn in_subscription(
    arm: &Arm,
    call: &Call,
    namespace: &str,
    kind: &str,
) -> Result<Response, ArmError> {
    call.version()?;
    kept::check(&call.permit, Role::Viewer)?;
    let (subscription, permit, from) = (call.path[1].clone(), Arc::clone(&call.permit), from(call));
    let kind = format!("{namespace}/{kind}");
    let look = move |state: &State<'_>| {
        check_subscription(state, &permit, &subscription)?;
        let prefix = format!("/subscriptions/{}/resourcegroups/", subscription.to_lowercase());
        let own = state.catalogue.entries_below(&prefix).filter(|(_, entry)| {
            permit.reaches(entry.cluster) && ResourceId::parse(&entry.id).is_some_and(|id| id.is(&kind))
        });
        Ok(page(own, from.as_deref()))
    };
    let page = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))??;
    Ok(shown(call, page))
}

fn from(call: &Call) -> Option<String> {
    call.page().map(str::to_lowercase)
}

fn page<'a>(entries: impl Iterator<Item = (&'a str, &'a Entry)>, from: Option<&str>) -> Page {
    let mut page = Vec::new();
    let mut entries = entries.filter(|(key, _)| from.is_none_or(|from| from <= *key));
    let over = entries.try_for_each(|(key, entry)| {
        if page.len() == PAGE_MAX {
            return ControlFlow::Break(key.to_owned());
        }
        page.extend(ResourceId::parse(&entry.id).map(|id| kept::show_entry(entry, &id)));
        ControlFlow::Continue(())
    });
    (page, over.break_value())
}

fn shown(call: &Call, (items, next): Page) -> Response {
    let mut body = json!({ "value": items });
    if let Some(next) = next {
        body["nextLink"] = json!(call.next_page(&next));
    }
    answer::ok(body)
}
