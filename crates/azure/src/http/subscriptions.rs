//! Subscriptions: those of the clusters' sites. Clients cannot create one.

use std::sync::Arc;

use axum::response::Response;
use forewarn_server::State;
use serde_json::{Value, json};

use super::request::ArmRequest;
use super::scopes::{check_subscription, clusters_of};
use super::{ArmContext, errors, responses};
use crate::ArmError;

/// Locations that clients may name besides those of the clusters.
const LOCATIONS: [(&str, &str); 6] = [
    ("eastus", "East US"),
    ("eastus2", "East US 2"),
    ("westus2", "West US 2"),
    ("centralus", "Central US"),
    ("northeurope", "North Europe"),
    ("westeurope", "West Europe"),
];

/// Lists the only directory.
pub(super) fn directories(context: &ArmContext, request: &ArmRequest) -> Result<Response, ArmError> {
    request.version()?;
    let id = &*context.directory;
    Ok(responses::list(vec![json!({
        "id": format!("/tenants/{id}"),
        "tenantId": id,
        "countryCode": "US",
        "displayName": "Forewarn",
        "defaultDomain": "forewarn.localhost",
        "domains": ["forewarn.localhost"],
        "tenantCategory": "Home",
        "tenantType": "AAD",
    })]))
}

/// Lists the subscriptions within the permit.
pub(super) async fn list(context: &ArmContext, request: &ArmRequest) -> Result<Response, ArmError> {
    request.version()?;
    let permit = Arc::clone(&request.permit);
    let look = move |state: &State<'_>| {
        let reached = state.all.clusters().filter(|(id, _)| permit.reaches(*id));
        let mut ids: Vec<_> = reached.map(|(_, other)| other.site().subscription.clone()).collect();
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.to_lowercase()));
        ids
    };
    let ids = context.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    let count = json!({ "type": "Total", "value": ids.len() });
    Ok(responses::ok(
        json!({ "value": ids.iter().map(|id| shown(context, id)).collect::<Vec<_>>(), "count": count }),
    ))
}

pub(super) async fn one(context: &ArmContext, request: &ArmRequest, id: &str) -> Result<Response, ArmError> {
    check(context, request, id).await?;
    Ok(responses::ok(shown(context, id)))
}

/// Lists the locations of a subscription.
pub(super) async fn locations(
    context: &ArmContext,
    request: &ArmRequest,
    id: &str,
) -> Result<Response, ArmError> {
    let shown = |(name, display): (String, String)| {
        json!({
            "id": format!("/subscriptions/{id}/locations/{name}"),
            "name": name,
            "displayName": display,
            "regionalDisplayName": display,
            "type": "Region",
            "metadata": { "regionType": "Physical", "regionCategory": "Recommended" },
        })
    };
    let named_locations = named_locations(context, request, id).await?;
    Ok(responses::list(named_locations.into_iter().map(shown).collect()))
}

/// The locations of a subscription, with their display names: those of its clusters first.
pub(super) async fn named_locations(
    context: &ArmContext,
    request: &ArmRequest,
    id: &str,
) -> Result<Vec<(String, String)>, ArmError> {
    check(context, request, id).await?;
    let (wanted, permit) = (id.to_owned(), Arc::clone(&request.permit));
    let look = move |state: &State<'_>| {
        clusters_of(state, &permit, &wanted).map(|(_, site)| site.location.clone()).collect::<Vec<_>>()
    };
    let own = context.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
    let own = own.into_iter().map(|name| (name.clone(), name));
    let others = LOCATIONS.iter().map(|(name, display)| ((*name).to_owned(), (*display).to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    Ok(own.chain(others).filter(|(name, _)| seen.insert(name.to_lowercase())).collect())
}

/// Checks the api-version, and that the subscription exists within the permit.
pub(super) async fn check(context: &ArmContext, request: &ArmRequest, id: &str) -> Result<(), ArmError> {
    request.version()?;
    let (wanted, permit) = (id.to_owned(), Arc::clone(&request.permit));
    let look = move |state: &State<'_>| check_subscription(state, &permit, &wanted);
    context.control.look(look).map_err(|problem| errors::of_problem(&problem))?
}

fn shown(context: &ArmContext, id: &str) -> Value {
    json!({
        "id": format!("/subscriptions/{id}"),
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "subscriptionId": id,
        "tenantId": &*context.directory,
        "displayName": "Forewarn",
        "state": "Enabled",
        "subscriptionPolicies": { "locationPlacementId": "Public_2014-09-01", "quotaId": "Forewarn", "spendingLimit": "Off" },
    })
}
