//! Handlers of settings, site, policies and the brake of a cluster.
//!
//! Each has a command as well; these routes also take `If-Match`.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::{
    BrakeView, BrakeWord, NamedCommand, PolicyEntry, SettingsChange, SettingsView, Site, SiteChange,
    find_tenant, settings_view,
};

use super::access::OutcomeResult;
use super::body::read;
use super::context::OperatorRequest;
use super::reads::{TaggedResult, existing, look};
use super::tagged::tag;
use crate::snapshot::State;

async fn edit(
    request: &OperatorRequest,
    command: NamedCommand,
    body: &Bytes,
    tag: impl Fn(&State<'_>) -> Option<String>,
) -> OutcomeResult {
    let edited = request.run_if(vec![command], body, tag).await;
    Ok(Json(edited.map_err(|problem| request.hide_names(problem))?))
}

pub(super) async fn settings(request: OperatorRequest) -> TaggedResult<SettingsView> {
    look(&request, |state| Ok(settings_view(state.cluster)))
}

pub(super) async fn change_settings(request: OperatorRequest, body: Bytes) -> OutcomeResult {
    let change: SettingsChange = read(&body)?;
    let tag = |state: &State<'_>| Some(tag(&settings_view(state.cluster)));
    edit(&request, NamedCommand::ChangeSettings(change), &body, tag).await
}

pub(super) async fn site(request: OperatorRequest) -> TaggedResult<Site> {
    look(&request, |state| Ok(state.site.clone()))
}

pub(super) async fn change_site(request: OperatorRequest, body: Bytes) -> OutcomeResult {
    let change: SiteChange = read(&body)?;
    let tag = |state: &State<'_>| Some(tag(state.site));
    edit(&request, NamedCommand::ChangeSite(change), &body, tag).await
}

fn policy_of(state: &State<'_>, tenant: &str) -> Option<PolicyEntry> {
    let id = find_tenant(state.cluster, tenant).ok()?;
    Some(state.cluster.tenant(id)?.policy.into())
}

pub(super) async fn policy(request: OperatorRequest, Path(name): Path<String>) -> TaggedResult<PolicyEntry> {
    let permit = Arc::clone(&request.permit);
    look(&request, move |state| {
        permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        existing(policy_of(state, &name))
    })
}

pub(super) async fn change_policy(
    request: OperatorRequest,
    Path(tenant): Path<String>,
    body: Bytes,
) -> OutcomeResult {
    let policy: PolicyEntry = read(&body)?;
    let name = tenant.clone();
    let tag = |state: &State<'_>| policy_of(state, &name).as_ref().map(tag);
    edit(&request, NamedCommand::ChangePolicy { tenant, policy }, &body, tag).await
}

fn brake_of(state: &State<'_>) -> BrakeView {
    BrakeView { brake: state.cluster.brake().into() }
}

pub(super) async fn brake(request: OperatorRequest) -> TaggedResult<BrakeView> {
    look(&request, |state| Ok(brake_of(state)))
}

pub(super) async fn change_brake(request: OperatorRequest, body: Bytes) -> OutcomeResult {
    let command = match read::<BrakeView>(&body)?.brake {
        BrakeWord::On => NamedCommand::BrakeOn {},
        BrakeWord::Off => NamedCommand::BrakeOff {},
    };
    edit(&request, command, &body, |state: &State<'_>| Some(tag(&brake_of(state)))).await
}
