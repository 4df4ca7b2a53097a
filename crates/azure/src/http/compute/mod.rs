//! Microsoft.Compute: machines, scale sets and their instances, availability sets.
//!
//! ```text
//!   PUT, PATCH ─▶ write: current body, merged with the one sent ─▶ commands, and an entry of the register
//!   POST       ─▶ act: commands for some machines
//!   DELETE     ─▶ remove
//!   GET        ─▶ show, list
//! ```

mod act;
mod instances;
mod list;
mod lookup;
mod remove;
mod show;
mod write;

use axum::http::Method;
use axum::response::Response;
use forewarn_control::resource_id::ResourceId;
use forewarn_server::State;
use forewarn_server::{ControlHandle, ResourceGroup};

use super::request::ArmRequest;
use super::scopes::no_resource;
use super::{errors, responses};
use crate::{ArmError, Expand};
pub(crate) use list::{candidates, candidates_named, list_all};
pub(crate) use lookup::{ComputeKind, FoundResource, find, found, is_resource, sees};
pub(crate) use remove::{Removal, removal};
pub(crate) use show::show;
pub(crate) use write::{
    Conditions, WriteMethod, WriteRequest, check_permit as check_commands, plan_write, write,
};

/// A request, and the resource group that it is about.
pub(crate) struct GroupScope<'a> {
    pub(crate) request: &'a ArmRequest,
    pub(crate) group: ResourceGroup,
    pub(crate) control: ControlHandle,
}

/// Serves machines, scale sets and availability sets of a group; `rest` is the path behind the namespace.
pub(crate) async fn serve(scope: &GroupScope<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let lower: Vec<_> = rest.iter().map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let request = scope.request;
    let kind = lower.first().and_then(|kind| ComputeKind::of(&format!("Microsoft.Compute/{kind}")));
    let Some(kind) = kind else { return Err(super::unsupported(request)) };
    match (kind, &lower[1..]) {
        (_, []) if request.method == Method::GET => list::list(scope, kind).await,
        (_, [_]) => one(scope, kind, &rest[1]).await,
        (ComputeKind::Machine | ComputeKind::ScaleSet, [_, "instanceview"])
            if request.method == Method::GET =>
        {
            show::instance_view(scope, kind, &rest[1]).await
        }
        (ComputeKind::ScaleSet, [_, "virtualmachines", ..]) => {
            instances::serve(scope, &rest[1], &rest[3..]).await
        }
        (ComputeKind::ScaleSet, [_, "skus"]) if request.method == Method::GET => {
            show::skus(scope, &rest[1]).await
        }
        (ComputeKind::ScaleSet, [_, "rollingupgrades", "latest"]) if request.method == Method::GET => {
            show::rolling_upgrade(scope, &rest[1]).await
        }
        (ComputeKind::Machine | ComputeKind::ScaleSet, [_, action]) if request.method == Method::POST => {
            act::act(scope, kind, &rest[1], action).await
        }
        (ComputeKind::Machine | ComputeKind::ScaleSet | ComputeKind::AvailabilitySet, _) => {
            Err(super::unsupported(request))
        }
    }
}

async fn one(scope: &GroupScope<'_>, kind: ComputeKind, name: &str) -> Result<Response, ArmError> {
    let request = scope.request;
    match request.method {
        Method::GET | Method::HEAD => show::one(scope, kind, name).await,
        Method::PUT => write::reply(scope, kind, name, WriteMethod::Put).await,
        Method::PATCH => write::reply(scope, kind, name, WriteMethod::Patch).await,
        Method::DELETE => remove::reply(scope, kind, name).await,
        _ => Err(super::unsupported(request)),
    }
}

impl GroupScope<'_> {
    /// The id of a resource of this group, in the client's spelling.
    pub(crate) fn id(&self, kind: ComputeKind, name: &str) -> ResourceId {
        let (namespace, kind) = kind.text().split_once('/').unwrap_or_default();
        self.group.id.resource(namespace, kind, name)
    }

    pub(crate) fn look<T>(
        &self,
        kind: ComputeKind,
        name: &str,
        look: impl FnOnce(&State<'_>, FoundResource) -> Result<T, ArmError>,
    ) -> Result<T, ArmError> {
        let (asker, group) =
            ((std::sync::Arc::clone(&self.request.permit), self.request.version()?), self.group.clone());
        let (id, name) = (self.id(kind, name), name.to_owned());
        let look = move |state: &State<'_>| {
            let found =
                find(state, (&asker.0, asker.1), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
            look(state, found)
        };
        self.control.look(look).map_err(|problem| errors::of_problem(&problem))?
    }
}

/// The `$expand` parameter.
fn expand(request: &ArmRequest) -> Expand {
    request.parameter("$expand").map_or(Expand::Nothing, Expand::parse)
}

/// Response to an action that needs no operation.
fn done() -> Response {
    responses::nothing()
}
