//! What clients look up before they make something: kinds of resources, images, sizes. It is the same for everybody.

use axum::http::Method;
use axum::response::Response;
use forewarn_azure::{ArmError, Image, providers, sizes};
use forewarn_lifecycle::Shape;

use super::call::Call;
use super::{Arm, answer, engines_of, refusal, subscriptions};
use crate::engine::State;

/// Answers what is asked about the kinds of resources; `rest` is what follows `providers`.
pub(super) async fn providers(arm: &Arm, call: &Call, rest: &[String]) -> Result<Response, ArmError> {
    let location = first_location(arm, call).await?;
    let is_register = matches!(rest, [_, action] if action.eq_ignore_ascii_case("register"));
    match (rest, &call.method) {
        ([], &Method::GET) => {
            let all = providers::namespaces().map(|namespace| providers::provider(namespace, &location));
            Ok(answer::list(all.collect()))
        }
        ([namespace], &Method::GET) => Ok(answer::ok(providers::provider(namespace, &location))),
        ([namespace, _], &Method::POST) if is_register => {
            Ok(answer::ok(providers::provider(namespace, &location)))
        }
        _ => Err(super::unsupported(call)),
    }
}

/// The sizes of machines, in all places of a subscription.
pub(super) async fn skus(arm: &Arm, call: &Call) -> Result<Response, ArmError> {
    let locations = subscriptions::places(arm, call, &call.path[1]).await?;
    // `location eq 'eastus'` is the only filter that there is.
    let wanted = call.parameter("$filter").and_then(|filter| filter.split('\'').nth(1));
    let names = locations.iter().map(|(name, _)| name.as_str());
    let names: Vec<_> =
        names.filter(|name| wanted.is_none_or(|wanted| name.eq_ignore_ascii_case(wanted))).collect();
    Ok(answer::list(sizes::skus(&names)))
}

/// Answers what is asked about a place; `rest` is what follows its name.
pub(super) async fn in_location(
    arm: &Arm,
    call: &Call,
    location: &str,
    rest: &[String],
) -> Result<Response, ArmError> {
    subscriptions::check(arm, call, &call.path[1]).await?;
    let lower: Vec<_> = rest.iter().map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let text = |place: usize| rest.get(place).map_or("", String::as_str);
    let image =
        Image { subscription: &call.path[1], location, publisher: text(1), offer: text(5), sku: text(7) };
    match lower.as_slice() {
        ["vmsizes"] => Ok(answer::list(sizes::vm_sizes())),
        ["usages"] => usages(arm, call).await,
        ["publishers"] => Ok(answer::ok(image.publishers())),
        ["publishers", _, "artifacttypes", "vmimage", "offers"] => Ok(answer::ok(image.offers())),
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus"] => Ok(answer::ok(image.skus())),
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus", _, "versions"] => {
            Ok(answer::ok(image.versions()))
        }
        ["publishers", _, "artifacttypes", "vmimage", "offers", _, "skus", _, "versions", _] => {
            Ok(answer::ok(image.version(text(9))))
        }
        _ => Err(super::unsupported(call)),
    }
}

/// How many of each kind there are, as far as whoever asks may know.
async fn usages(arm: &Arm, call: &Call) -> Result<Response, ArmError> {
    let (mut machines, mut sets, mut scale_sets) = (0, 0, 0);
    for engine in engines_of(arm, call).await? {
        let permit = std::sync::Arc::clone(&call.permit);
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
        let counts = engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
        (machines, sets, scale_sets) = (machines + counts.0, sets + counts.1, scale_sets + counts.2);
    }
    Ok(answer::list(sizes::usages(machines, sets, scale_sets)))
}

async fn first_location(arm: &Arm, call: &Call) -> Result<String, ArmError> {
    let mut places = subscriptions::places(arm, call, &call.path[1]).await?;
    Ok(if places.is_empty() { String::new() } else { places.swap_remove(0).0 })
}
