//! Microsoft.Compute: machines, scale sets and their instances, availability sets.
//!
//! ```text
//!   PUT, PATCH ─▶ write: what is shown, merged with what is sent ─▶ commands, and an entry of the register
//!   POST       ─▶ act: commands for some machines
//!   DELETE     ─▶ remove
//!   GET        ─▶ show, list
//! ```

mod act;
mod found;
mod instances;
mod list;
mod remove;
mod show;
mod write;

use axum::http::Method;
use axum::response::Response;
use forewarn_azure::{ArmError, Expand};
use forewarn_control::resource_id::ResourceId;

pub(crate) use found::{Found, Kind, find, found, group_of, links, sees};
pub(crate) use list::list_all;
pub(crate) use remove::{Removal, removal};
pub(crate) use show::show;
pub(crate) use write::{Asked, Conditions, Way, check_permit as check_commands, write};

use super::call::Call;
use super::place::{Group, no_resource};
use super::{answer, refusal};
use crate::engine::{Engine, State};

/// A request about one resource group: who asks, what, and where it is.
pub(crate) struct Visit<'a> {
    pub(crate) call: &'a Call,
    pub(crate) group: Group,
    pub(crate) engine: Engine,
}

/// Answers what is asked about machines, scale sets and availability sets of a group; `rest` is what follows the namespace.
pub(crate) async fn serve(visit: &Visit<'_>, rest: &[String]) -> Result<Response, ArmError> {
    let lower: Vec<_> = rest.iter().map(|segment| segment.to_lowercase()).collect();
    let lower: Vec<_> = lower.iter().map(String::as_str).collect();
    let call = visit.call;
    let kind = lower.first().and_then(|kind| Kind::of(&format!("Microsoft.Compute/{kind}")));
    let Some(kind) = kind else { return Err(super::unsupported(call)) };
    match (kind, &lower[1..]) {
        (_, []) if call.method == Method::GET => list::list(visit, kind).await,
        (_, [_]) => one(visit, kind, &rest[1]).await,
        (Kind::Machine | Kind::ScaleSet, [_, "instanceview"]) if call.method == Method::GET => {
            show::instance_view(visit, kind, &rest[1]).await
        }
        (Kind::ScaleSet, [_, "virtualmachines", ..]) => instances::serve(visit, &rest[1], &rest[3..]).await,
        (Kind::ScaleSet, [_, "skus"]) if call.method == Method::GET => show::skus(visit, &rest[1]).await,
        (Kind::ScaleSet, [_, "rollingupgrades", "latest"]) if call.method == Method::GET => {
            show::rolling_upgrade(visit, &rest[1]).await
        }
        (Kind::Machine | Kind::ScaleSet, [_, action]) if call.method == Method::POST => {
            act::act(visit, kind, &rest[1], action).await
        }
        (Kind::Machine | Kind::ScaleSet | Kind::AvailabilitySet, _) => Err(super::unsupported(call)),
    }
}

async fn one(visit: &Visit<'_>, kind: Kind, name: &str) -> Result<Response, ArmError> {
    let call = visit.call;
    match call.method {
        Method::GET | Method::HEAD => show::one(visit, kind, name).await,
        Method::PUT => write::reply(visit, kind, name, Way::Put).await,
        Method::PATCH => write::reply(visit, kind, name, Way::Patch).await,
        Method::DELETE => remove::reply(visit, kind, name).await,
        _ => Err(super::unsupported(call)),
    }
}

impl Visit<'_> {
    /// The id of a resource of this group, as the client writes it.
    pub(crate) fn id(&self, kind: Kind, name: &str) -> ResourceId {
        let (namespace, kind) = kind.text().split_once('/').unwrap_or_default();
        self.group.id.resource(namespace, kind, name)
    }

    /// Looks at something that is there.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        kind: Kind,
        name: &str,
        look: impl FnOnce(&State<'_>, Found) -> Result<T, ArmError> + Send + 'static,
    ) -> Result<T, ArmError> {
        let (asker, group) =
            ((std::sync::Arc::clone(&self.call.permit), self.call.version()?), self.group.clone());
        let (id, name) = (self.id(kind, name), name.to_owned());
        let look = move |state: &State<'_>| {
            let found =
                find(state, (&asker.0, asker.1), kind, &group, &name).ok_or_else(|| no_resource(&id))?;
            look(state, found)
        };
        self.engine.look(look).await.map_err(|problem| refusal::of(&problem))?
    }
}

/// What a client wants to see besides.
fn expand(call: &Call) -> Expand {
    call.parameter("$expand").map_or(Expand::Nothing, Expand::parse)
}

/// How an action ended that a client need not wait for.
fn done() -> Response {
    answer::nothing()
}
