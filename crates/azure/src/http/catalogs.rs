//! Catalogs that clients read before they create a resource: providers, images, sizes, usage.

use axum::http::Method;
use axum::response::Response;
use forewarn_lifecycle::Shape;
use forewarn_server::State;

use super::request::ArmRequest;
use super::{ArmContext, control_handles_of, errors, responses, subscriptions};
use crate::{ArmError, Image, providers, sizes};

/// Serves `…/providers/…`; `rest` is the rest of the path.
pub(super) async fn providers(
    context: &ArmContext,
    request: &ArmRequest,
    rest: &[String],
) -> Result<Response, ArmError> {
    let location = first_location(context, request).await?;
    let is_register = matches!(rest, [_, action] if action.eq_ignore_ascii_case("register"));
    match (rest, &request.method) {
        ([], &Method::GET) => {
            let all = providers::namespaces().map(|namespace| providers::provider(namespace, &location));
            Ok(responses::list(all.collect()))
        }
        ([namespace], &Method::GET) => Ok(responses::ok(providers::provider(namespace, &location))),
        ([namespace, _], &Method::POST) if is_register => {
            Ok(responses::ok(providers::provider(namespace, &location)))
        }
        _ => Err(super::unsupported(request)),
    }
}

/// The sizes of machines, in all locations of a subscription.
pub(super) async fn skus(context: &ArmContext, request: &ArmRequest) -> Result<Response, ArmError> {
    let locations = subscriptions::named_locations(context, request, &request.path[1]).await?;
    // The only filter is `location eq 'eastus'`.
    let wanted = request.parameter("$filter").and_then(|filter| filter.split('\'').nth(1));
    let names = locations.iter().map(|(name, _)| name.as_str());
    let names: Vec<_> =
        names.filter(|name| wanted.is_none_or(|wanted| name.eq_ignore_ascii_case(wanted))).collect();
    Ok(responses::list(sizes::skus(&names)))
}

/// Serves `…/locations/NAME/…`; `rest` is the rest of the path.
pub(super) async fn in_location(
    context: &ArmContext,
    request: &ArmRequest,
    location: &str,
    rest: &[String],
) -> Result<Response, ArmError> {
    subscriptions::check(context, request, &request.path[1]).await?;
    let lower: Vec<_> = rest.iter().map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let text = |position: usize| rest.get(position).map_or("", String::as_str);
    let image =
        Image { subscription: &request.path[1], location, publisher: text(1), offer: text(5), sku: text(7) };
    match lower.as_slice() {
        ["vmsizes"] => Ok(responses::list(sizes::vm_sizes())),
        ["usages"] => usages(context, request).await,
        ["publishers"] => Ok(responses::ok(image.publishers())),
        ["publishers", _, "artifacttypes", "vmimage", "offers"] => Ok(responses::ok(image.offers())),
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus"] => Ok(responses::ok(image.skus())),
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus", _, "versions"] => {
            Ok(responses::ok(image.versions()))
        }
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus", _, "versions", _] => {
            Ok(responses::ok(image.version(text(9))))
        }
        _ => Err(super::unsupported(request)),
    }
}

/// Number of resources of each kind within the permit.
async fn usages(context: &ArmContext, request: &ArmRequest) -> Result<Response, ArmError> {
    let (mut machines, mut sets, mut scale_sets) = (0, 0, 0);
    for (_, control) in control_handles_of(context, request).await? {
        let permit = std::sync::Arc::clone(&request.permit);
        let look = move |state: &State<'_>| {
            let cluster = state.cluster;
            let tenants = cluster.tenants().filter(|(id, _)| permit.sees(cluster, *id));
            let (mut machines, mut sets) = (0, 0);
            for (_, tenant) in tenants {
                machines += tenant.machines().len();
                sets += usize::from(tenant.shape == Shape::AvailabilitySet);
            }
            let scale_sets = cluster.scale_sets().filter(|(_, set)| permit.sees_named(set.name.as_str()));
            (machines, sets, scale_sets.count())
        };
        let counts = control.look(look).map_err(|problem| errors::of_problem(&problem))?;
        (machines, sets, scale_sets) = (machines + counts.0, sets + counts.1, scale_sets + counts.2);
    }
    Ok(responses::list(sizes::usages(machines, sets, scale_sets)))
}

async fn first_location(context: &ArmContext, request: &ArmRequest) -> Result<String, ArmError> {
    let mut locations = subscriptions::named_locations(context, request, &request.path[1]).await?;
    Ok(if locations.is_empty() { String::new() } else { locations.swap_remove(0).0 })
}
