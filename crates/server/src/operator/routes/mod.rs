//! The route table of the operator API.
//!
//! Each route is declared once, here or next to its handlers; see [`super::route`] for what is derived from it.

/// OpenAPI expression for a member of the first item of a page.
macro_rules! first {
    ($member:literal) => {
        concat!("$response.body#/items/0/", $member)
    };
}

mod access;
mod audit;
mod fleet;
mod server;
mod work;

use super::route::Route;
use super::{faults, machine_sets, realm, scalesets, stories, webhooks};

/// All routes, in the order of the reference page.
pub(super) fn routes() -> Vec<Route> {
    let cluster = [
        fleet::hosts(),
        fleet::machines(),
        fleet::tenants(),
        scalesets::routes(),
        machine_sets::routes(),
        work::work(),
        work::rollouts(),
        fleet::fleet(),
        server::clock(),
    ];
    let server = [
        audit::explanations(),
        audit::audit_log(),
        server::server(),
        server::caller(),
        access::routes(),
        webhooks::routes(),
        realm::routes(),
        faults::routes(),
        stories::routes(),
    ];
    cluster.into_iter().chain(server).flatten().collect()
}
