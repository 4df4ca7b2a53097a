//! How a cluster behaves, read and edited one part at a time: settings, site, policies, the brake.
//!
//! Each is edited by a command that can be sent as well; here it can be said what was read before.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use forewarn_control::{
    BrakeView, BrakeWord, NamedCommand, Outcome, PolicyEntry, SettingsChange, SettingsView, Site, SiteChange,
    find_tenant, settings_view,
};

use super::body::read;
use super::fault::Fault;
use super::reads::{look, there};
use super::tagged::{Tagged, tag};
use super::visit::Visit;
use crate::snapshot::State;

type Shown<T> = Result<Tagged<T>, Fault>;
type Edited = Result<Json<Outcome>, Fault>;

async fn edit(
    visit: &Visit,
    command: NamedCommand,
    body: &Bytes,
    tag: impl Fn(&State<'_>) -> Option<String>,
) -> Edited {
    let edited = visit.order_if(vec![command], body, tag).await;
    Ok(Json(edited.map_err(|fault| visit.discreet(fault))?))
}

pub(super) async fn settings(visit: Visit) -> Shown<SettingsView> {
    look(&visit, |state| Ok(settings_view(state.cluster)))
}

pub(super) async fn change_settings(visit: Visit, body: Bytes) -> Edited {
    let change: SettingsChange = read(&body)?;
    let tag = |state: &State<'_>| Some(tag(&settings_view(state.cluster)));
    edit(&visit, NamedCommand::ChangeSettings(change), &body, tag).await
}

pub(super) async fn site(visit: Visit) -> Shown<Site> {
    look(&visit, |state| Ok(state.site.clone()))
}

pub(super) async fn change_site(visit: Visit, body: Bytes) -> Edited {
    let change: SiteChange = read(&body)?;
    let tag = |state: &State<'_>| Some(tag(state.site));
    edit(&visit, NamedCommand::ChangeSite(change), &body, tag).await
}

fn policy_of(state: &State<'_>, tenant: &str) -> Option<PolicyEntry> {
    let id = find_tenant(state.cluster, tenant).ok()?;
    Some(state.cluster.tenant(id)?.policy.into())
}

pub(super) async fn policy(visit: Visit, Path(name): Path<String>) -> Shown<PolicyEntry> {
    let permit = Arc::clone(&visit.permit);
    look(&visit, move |state| {
        permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
        there(policy_of(state, &name))
    })
}

pub(super) async fn change_policy(visit: Visit, Path(tenant): Path<String>, body: Bytes) -> Edited {
    let policy: PolicyEntry = read(&body)?;
    let name = tenant.clone();
    let tag = |state: &State<'_>| policy_of(state, &name).as_ref().map(tag);
    edit(&visit, NamedCommand::ChangePolicy { tenant, policy }, &body, tag).await
}

fn brake_of(state: &State<'_>) -> BrakeView {
    BrakeView { brake: state.cluster.brake().into() }
}

pub(super) async fn brake(visit: Visit) -> Shown<BrakeView> {
    look(&visit, |state| Ok(brake_of(state)))
}

pub(super) async fn change_brake(visit: Visit, body: Bytes) -> Edited {
    let command = match read::<BrakeView>(&body)?.brake {
        BrakeWord::On => NamedCommand::BrakeOn {},
        BrakeWord::Off => NamedCommand::BrakeOff {},
    };
    edit(&visit, command, &body, |state: &State<'_>| Some(tag(&brake_of(state)))).await
}
