//! Subscriptions: those of the clusters' sites. Nobody makes one here.

use std::sync::Arc;

use axum::response::Response;
use forewarn_azure::ArmError;
use serde_json::{Value, json};

use super::call::Call;
use super::place::{check_subscription, clusters_of};
use super::{Arm, answer, refusal};
use crate::engine::State;

/// Places that clients may name besides those of the clusters: what they name by habit is as good as any.
const LOCATIONS: [(&str, &str); 6] = [
    ("eastus", "East US"),
    ("eastus2", "East US 2"),
    ("westus2", "West US 2"),
    ("centralus", "Central US"),
    ("northeurope", "North Europe"),
    ("westeurope", "West Europe"),
];

/// The one directory that there is.
pub(super) fn directories(arm: &Arm, call: &Call) -> Result<Response, ArmError> {
    call.version()?;
    let id = &*arm.directory;
    Ok(answer::list(vec![json!({
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

/// Every subscription.
pub(super) async fn list(arm: &Arm, call: &Call) -> Result<Response, ArmError> {
    call.version()?;
    let permit = Arc::clone(&call.permit);
    let look = move |state: &State<'_>| {
        let reached = state.all.iter().filter(|(id, _)| permit.reaches(**id));
        let mut ids: Vec<_> = reached.map(|(_, estate)| estate.site.subscription.clone()).collect();
        let mut seen = std::collections::BTreeSet::new();
        ids.retain(|id| seen.insert(id.to_lowercase()));
        ids
    };
    let ids = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    let count = json!({ "type": "Total", "value": ids.len() });
    Ok(answer::ok(
        json!({ "value": ids.iter().map(|id| shown(arm, id)).collect::<Vec<_>>(), "count": count }),
    ))
}

/// One of them.
pub(super) async fn one(arm: &Arm, call: &Call, id: &str) -> Result<Response, ArmError> {
    check(arm, call, id).await?;
    Ok(answer::ok(shown(arm, id)))
}

/// The places of a subscription.
pub(super) async fn locations(arm: &Arm, call: &Call, id: &str) -> Result<Response, ArmError> {
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
    let places = places(arm, call, id).await?;
    Ok(answer::list(places.into_iter().map(shown).collect()))
}

/// The places of a subscription by their names, and what people call them: those of its clusters first.
pub(super) async fn places(arm: &Arm, call: &Call, id: &str) -> Result<Vec<(String, String)>, ArmError> {
    check(arm, call, id).await?;
    let (wanted, permit) = (id.to_owned(), Arc::clone(&call.permit));
    let look = move |state: &State<'_>| {
        clusters_of(state, &permit, &wanted).map(|(_, site)| site.location.clone()).collect::<Vec<_>>()
    };
    let own = arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
    let own = own.into_iter().map(|name| (name.clone(), name));
    let others = LOCATIONS.iter().map(|(name, display)| ((*name).to_owned(), (*display).to_owned()));
    let mut seen = std::collections::BTreeSet::new();
    Ok(own.chain(others).filter(|(name, _)| seen.insert(name.to_lowercase())).collect())
}

/// Whether there is such a subscription, and the request is one.
pub(super) async fn check(arm: &Arm, call: &Call, id: &str) -> Result<(), ArmError> {
    call.version()?;
    let (wanted, permit) = (id.to_owned(), Arc::clone(&call.permit));
    let look = move |state: &State<'_>| check_subscription(state, &permit, &wanted);
    arm.engine.look(look).await.map_err(|problem| refusal::of(&problem))?
}

fn shown(arm: &Arm, id: &str) -> Value {
    json!({
        "id": format!("/subscriptions/{id}"),
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "subscriptionId": id,
        "tenantId": &*arm.directory,
        "displayName": "Forewarn",
        "state": "Enabled",
        "subscriptionPolicies": { "locationPlacementId": "Public_2014-09-01", "quotaId": "Forewarn", "spendingLimit": "Off" },
    })
}
